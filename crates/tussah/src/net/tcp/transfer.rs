//! The future of an operation on a stream: of small size, with time limits that cost nothing as long as none is set.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::extra::Extra;
use super::stream::TcpStream;
use crate::net::socket::{Direction, Socket};
use crate::time::{Sleep, sleep};

/// What is done with a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verb {
    Read,
    Peek,
    Write,
    SendFile,
    Shutdown,
    Set,
    Ask,
}

impl Verb {
    pub(super) fn direction(self) -> Direction {
        match self {
            Self::Read | Self::Peek => Direction::Read,
            _ => Direction::Write,
        }
    }

    /// As it stands in errors, before the peer.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Read => "read from",
            Self::Peek => "peek at what came from",
            Self::Write => "write to",
            Self::SendFile => "send a file to",
            Self::Shutdown => "shut down the connection with",
            Self::Set => "set an option of the connection with",
            Self::Ask => "ask about the connection with",
        }
    }
}

/// A timer that an operation waits for.
pub(super) struct Pace {
    /// Until the operation may be tried at all; else until it has taken too long.
    limited: bool,
    /// Boxed once more so that an operation may be moved.
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
    /// Waits until a rate limit lets the next operation begin.
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
                    // Others may share the limit, and have read meanwhile.
                    again = true;
                }
                // As long as there is nothing to read, the limit does not matter, and the time runs.
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

    /// Waits until an operation that has to wait has done so for too long.
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
        let text = "nothing moved for as long as the limit allows";
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, text))
    }
}

/// Has attempts made until one says `Some`; `None` is progress, after which the time limit begins anew.
pub(super) struct Transfer<'a, O> {
    stream: &'a TcpStream,
    pace: Option<Box<Pace>>,
    verb: Verb,
    operation: O,
}

impl<'a, O> Transfer<'a, O> {
    pub(super) fn new(stream: &'a TcpStream, verb: Verb, operation: O) -> Self {
        Self {
            stream,
            pace: None,
            verb,
            operation,
        }
    }
}

impl<R, O> Future for Transfer<'_, O>
where
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
