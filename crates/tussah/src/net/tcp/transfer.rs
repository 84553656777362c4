//! The future of an operation on a stream. It is small, and timeouts cost nothing unless one is
//! set.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::extra::Extra;
use super::polled::Polled;
use crate::net::socket::{Direction, Socket};
use crate::time::{Sleep, sleep};

/// The operations of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::net) enum Verb {
    Read,
    ReceiveFds,
    Peek,
    Write,
    SendFds,
    SendFile,
    Shutdown,
    Set,
    Ask,
}

impl Verb {
    pub(super) fn direction(self) -> Direction {
        match self {
            Self::Read | Self::ReceiveFds | Self::Peek => Direction::Read,
            _ => Direction::Write,
        }
    }

    /// Returns the operation's text for error messages, before the peer.
    pub(in crate::net) fn text(self) -> &'static str {
        match self {
            Self::Read => "read from",
            Self::ReceiveFds => "receive descriptors from",
            Self::Peek => "peek at data from",
            Self::Write => "write to",
            Self::SendFds => "send descriptors to",
            Self::SendFile => "send a file to",
            Self::Shutdown => "shut down the connection with",
            Self::Set => "set an option of the connection with",
            Self::Ask => "ask about the connection with",
        }
    }
}

/// A stream whose operations have limits.
pub(in crate::net) trait Limited {
    fn socket(&self) -> &Socket;

    /// Returns the place of the state that only some streams have.
    fn extra_place(&self) -> &OnceLock<Box<Extra>>;

    /// Converts an error for users.
    fn failed(&self, verb: Verb, error: io::Error) -> io::Error;

    /// Returns the state that only some streams have.
    #[inline]
    fn extra(&self) -> Option<&Extra> {
        self.extra_place().get().map(|extra| &**extra)
    }

    /// Returns the state that only some streams have, and creates it if necessary.
    fn make_extra(&self) -> &Extra {
        self.extra_place().get_or_init(Box::default)
    }
}

/// Calls `attempt` on a stream until it returns `Some` or the timeout elapses.
pub(in crate::net) fn transfer<'a, S, R, F>(
    stream: &'a S,
    verb: Verb,
    attempt: F,
) -> Transfer<'a, S, impl Future<Output = io::Result<Option<R>>> + Unpin + use<'a, S, R, F>>
where
    S: Limited,
    F: FnMut() -> io::Result<Option<R>> + Unpin,
{
    Transfer {
        stream,
        pace: None,
        verb,
        operation: stream.socket().operate(verb.direction(), attempt),
    }
}

/// Does the same as [`transfer`] for callers that keep no state between polls.
pub(in crate::net) fn poll_transfer<S: Limited, R>(
    stream: &S,
    context: &mut Context<'_>,
    verb: Verb,
    attempt: impl FnMut() -> io::Result<R>,
) -> Poll<io::Result<R>> {
    let (socket, direction) = (stream.socket(), verb.direction());
    let Some(extra) = stream.extra() else {
        let done = socket.poll_operate(context, direction, attempt);
        return done.map_err(|error| stream.failed(verb, error));
    };
    // Take it out: a waker cloned or dropped here may poll this stream itself.
    let mut polled = extra.replace_polled(direction, Polled::default());
    let done = extra.poll_limited(context, socket, direction, &mut polled, attempt);
    if done.is_pending() {
        drop(extra.replace_polled(direction, polled));
    }
    done.map_err(|error| stream.failed(verb, error))
}

/// A timer that an operation waits for.
pub(super) struct Pace {
    /// True if the timer enforces the rate limit. Otherwise it enforces the timeout.
    limited: bool,
    /// Boxed again to keep operations movable.
    sleep: Pin<Box<Sleep>>,
}

impl Pace {
    fn new(limited: bool, duration: Duration) -> Box<Self> {
        let sleep = Box::pin(sleep(duration));
        Box::new(Self { limited, sleep })
    }
}

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sleep.fmt(f)
    }
}

impl Extra {
    /// Makes an attempt within the limits. The wait ends when the attempt completes.
    fn poll_limited<R>(
        &self,
        context: &mut Context<'_>,
        socket: &Socket,
        direction: Direction,
        polled: &mut Polled,
        attempt: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        polled.go_on(self.timeout(direction));
        ready!(self.poll_allowed(context, socket, direction, &mut polled.pace));
        match socket.poll_operate(context, direction, attempt) {
            Poll::Pending if self.timeout(direction).is_some() => {
                let alarm = polled.alarm(context.waker());
                let mut context = Context::from_waker(&alarm);
                let elapsed = self.poll_elapsed(&mut context, direction, &mut polled.pace);
                elapsed.map(Err)
            }
            done => done,
        }
    }

    /// Waits until the rate limit allows the next operation.
    #[cold]
    pub(super) fn poll_allowed(
        &self,
        context: &mut Context<'_>,
        socket: &Socket,
        direction: Direction,
        pace: &mut Option<Box<Pace>>,
    ) -> Poll<()> {
        let mut again = false;
        loop {
            match pace {
                Some(waits) if waits.limited => {
                    ready!(waits.sleep.as_mut().poll(context));
                    *pace = None;
                    // Other streams may share the limit and have read in the meantime.
                    again = true;
                }
                // While there is nothing to read, the limit does not matter and the timeout keeps
                // running.
                Some(_) if self.limit().is_none() || socket.ready(direction).is_err() => {
                    return Poll::Ready(());
                }
                _ => match self.delay(direction, again) {
                    Some(delay) => *pace = Some(Pace::new(true, delay)),
                    None => return Poll::Ready(()),
                },
            }
        }
    }

    /// Waits until the timeout of a waiting operation has elapsed.
    #[cold]
    pub(super) fn poll_elapsed(
        &self,
        context: &mut Context<'_>,
        direction: Direction,
        pace: &mut Option<Box<Pace>>,
    ) -> Poll<io::Error> {
        if pace.is_none() {
            let Some(timeout) = self.timeout(direction) else {
                return Poll::Pending;
            };
            *pace = Some(Pace::new(false, timeout));
        }
        let waits = pace.as_mut().expect("it was set above");
        ready!(waits.sleep.as_mut().poll(context));
        *pace = None;
        let text = "no progress within the timeout";
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, text))
    }
}

/// The future of repeated attempts, until one returns `Some`. `None` means progress, which restarts
/// the timeout.
pub(in crate::net) struct Transfer<'a, S, O> {
    stream: &'a S,
    pace: Option<Box<Pace>>,
    verb: Verb,
    operation: O,
}

impl<S, R, O> Future for Transfer<'_, S, O>
where
    S: Limited,
    O: Future<Output = io::Result<Option<R>>> + Unpin,
{
    type Output = io::Result<R>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let (stream, verb) = (this.stream, this.verb);
        loop {
            if let Some(extra) = stream.extra() {
                let socket = stream.socket();
                ready!(extra.poll_allowed(context, socket, verb.direction(), &mut this.pace));
            }
            return match Pin::new(&mut this.operation).poll(context) {
                Poll::Ready(Ok(Some(result))) => Poll::Ready(Ok(result)),
                Poll::Ready(Ok(None)) => {
                    this.pace = None;
                    continue;
                }
                Poll::Ready(Err(error)) => Poll::Ready(Err(stream.failed(verb, error))),
                Poll::Pending => {
                    let Some(extra) = stream.extra() else {
                        return Poll::Pending;
                    };
                    let elapsed = extra.poll_elapsed(context, verb.direction(), &mut this.pace);
                    elapsed.map(|error| Err(stream.failed(verb, error)))
                }
            };
        }
    }
}
