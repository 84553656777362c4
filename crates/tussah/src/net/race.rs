//! Connecting to a host's addresses while they are being looked up: the sockets and timers around
//! [`Eyeballs`].

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::eyeballs::{Eyeballs, Family, Step};
use crate::dns;
use crate::time::{Sleep, now, sleep_until};

/// A lookup of the addresses of one family.
pub(super) type Lookup<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<SocketAddr>, dns::Error>> + Send + 'a>>;

/// The failed lookups and attempts.
#[derive(Debug, Default)]
pub(super) struct Lost {
    pub(super) lookups: Vec<dns::Error>,
    pub(super) attempts: Vec<(SocketAddr, io::Error)>,
    pub(super) timed_out: bool,
}

/// Returns the first connection that succeeds. Drops the other attempts and lookups, which closes
/// their sockets.
///
/// # Errors
/// Returns the results of all lookups and attempts.
///
/// # Panics
/// Panics if polled outside a runtime.
pub(super) async fn race<T, F>(
    eyeballs: Eyeballs,
    limit: Duration,
    lookups: Vec<(Family, Lookup<'_>)>,
    open: impl Fn(SocketAddr) -> F,
) -> Result<T, Lost>
where
    F: Future<Output = io::Result<T>>,
{
    let mut race = Race {
        eyeballs,
        limit,
        lookups,
        open,
        attempts: Vec::new(),
        timer: None,
        lost: Lost::default(),
    };
    poll_fn(|context| race.poll(context)).await
}

struct Race<'a, F, O> {
    eyeballs: Eyeballs,
    limit: Duration,
    lookups: Vec<(Family, Lookup<'a>)>,
    open: O,
    attempts: Vec<(SocketAddr, Pin<Box<F>>)>,
    timer: Option<Pin<Box<Sleep>>>,
    lost: Lost,
}

impl<T, F: Future<Output = io::Result<T>>, O: Fn(SocketAddr) -> F> Race<'_, F, O> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<T, Lost>> {
        loop {
            self.poll_lookups(context);
            if let Some(connected) = self.poll_attempts(context) {
                return Poll::Ready(Ok(connected));
            }
            match self.eyeballs.step(now()) {
                Step::Connect(address) => {
                    let attempt = Box::pin((self.open)(address));
                    self.attempts.push((address, attempt));
                }
                Step::Wait(until) => {
                    let timer = self
                        .timer
                        .get_or_insert_with(|| Box::pin(sleep_until(until)));
                    if timer.deadline() != until || timer.is_elapsed() {
                        timer.as_mut().reset(until);
                    }
                    if timer.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                }
                Step::Exhausted => return Poll::Ready(Err(std::mem::take(&mut self.lost))),
                Step::TimedOut => return Poll::Ready(Err(self.timed_out())),
            }
        }
    }

    fn poll_lookups(&mut self, context: &mut Context<'_>) {
        let Self {
            eyeballs,
            lookups,
            lost,
            ..
        } = self;
        lookups.retain_mut(|(family, lookup)| {
            let Poll::Ready(result) = lookup.as_mut().poll(context) else {
                return true;
            };
            let addresses = result.unwrap_or_else(|error| {
                lost.lookups.push(error);
                Vec::new()
            });
            eyeballs.answer(now(), *family, addresses);
            false
        });
    }

    fn poll_attempts(&mut self, context: &mut Context<'_>) -> Option<T> {
        let Self {
            eyeballs,
            attempts,
            lost,
            ..
        } = self;
        let mut connected = None;
        attempts.retain_mut(|(address, attempt)| {
            if connected.is_some() {
                return true;
            }
            match attempt.as_mut().poll(context) {
                Poll::Pending => return true,
                Poll::Ready(Ok(connection)) => connected = Some(connection),
                Poll::Ready(Err(error)) => {
                    lost.attempts.push((*address, error));
                    eyeballs.failed();
                }
            }
            false
        });
        connected
    }

    fn timed_out(&mut self) -> Lost {
        let mut lost = std::mem::take(&mut self.lost);
        lost.timed_out = true;
        for (address, _) in self.attempts.drain(..) {
            let what = NotInTime(self.limit);
            let error = io::Error::new(io::ErrorKind::TimedOut, what);
            lost.attempts.push((address, error));
        }
        lost
    }
}

/// The error of an attempt that had no answer when the total time was up.
#[derive(Debug)]
struct NotInTime(Duration);

impl fmt::Display for NotInTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no answer within {:?}", self.0)
    }
}

impl std::error::Error for NotInTime {}

#[cfg(test)]
mod tests;
