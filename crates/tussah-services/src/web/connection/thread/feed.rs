//! Feeds the body of a request to its handler while the body arrives.

use std::future::{Future as _, poll_fn};
use std::io::{self, IoSlice};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tussah::time::{Sleep, now, sleep};
use tussah_wire::http::body::Decoder;
use tussah_wire::http::{Refusal, Status};

use crate::web::config::Timeouts;
use crate::web::connection::exchange::{Exchange, Input};
use crate::web::connection::pipe::Pipe;
use crate::web::connection::stream::Stream;

/// The maximum length of one read of a body, in bytes.
const READ_BYTES: usize = 32 * 1024;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The part of a body that has not reached its handler. The connection's thread reads it when the
/// handler wants it.
pub(super) struct Feed {
    pipe: Arc<Pipe>,
    decoder: Decoder,
    /// The bytes read, and the part of them that has not been decoded.
    input: Vec<u8>,
    unused: Range<usize>,
    ask: Ask,
    pace: Pace,
    /// True once no more is read.
    has_ended: bool,
}

/// The state of the response 100 (RFC 9110, section 10.1.1).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    /// The client waits for it.
    Send,
    Flush,
    /// The response has been sent, or is not needed.
    Done,
}

impl Feed {
    /// Takes over the body of a request, with the part that has arrived with the head.
    pub(super) fn new(exchange: &mut Exchange, decoder: Decoder) -> Self {
        let head = *exchange.head();
        let mut input = exchange.input.filled()[head.len()..].to_vec();
        exchange.input.remove(head.len(), input.len());
        let unused = 0..input.len();
        let ask = match head.expect_continue && input.is_empty() {
            true => Ask::Send,
            false => Ask::Done,
        };
        input.resize(input.len().max(READ_BYTES), 0);
        Self {
            pipe: Arc::default(),
            decoder,
            input,
            unused,
            ask,
            pace: Pace::new(),
            has_ended: false,
        }
    }

    pub(super) fn pipe(&self) -> &Arc<Pipe> {
        &self.pipe
    }

    /// Feeds what arrives. Returns `Pending` while the client is the one to wait for. The caller
    /// must not wait for the stream meanwhile.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        stream: &Stream,
        timeouts: &Timeouts,
    ) -> Poll<()> {
        while !self.has_ended {
            match self.pipe.poll_wanted(cx) {
                Poll::Pending => break,
                Poll::Ready(true) => {}
                Poll::Ready(false) => self.end(Err(io::ErrorKind::BrokenPipe)),
            }
            if let Err(kind) = ready!(self.poll_step(cx, stream, timeouts)) {
                self.end(Err(kind));
            }
        }
        Poll::Ready(())
    }

    fn poll_step(
        &mut self,
        cx: &mut Context<'_>,
        stream: &Stream,
        timeouts: &Timeouts,
    ) -> Poll<Result<(), io::ErrorKind>> {
        if self.has_ended || !self.unused.is_empty() {
            return Poll::Ready(self.decode());
        }
        ready!(self.poll_ask(cx, stream)).map_err(|error| error.kind())?;
        match stream.poll_read(cx, &mut self.input) {
            Poll::Ready(Ok(len @ 1..)) => {
                self.pace.end_wait();
                self.unused = 0..len;
                Poll::Ready(Ok(()))
            }
            Poll::Ready(_) => Poll::Ready(Err(io::ErrorKind::UnexpectedEof)),
            Poll::Pending => {
                ready!(self.pace.poll_too_slow(cx, timeouts));
                Poll::Ready(Err(io::ErrorKind::TimedOut))
            }
        }
    }

    fn decode(&mut self) -> Result<(), io::ErrorKind> {
        let bytes = &self.input[self.unused.clone()];
        let step = self.decoder.decode(bytes).map_err(|error| kind(&error))?;
        self.pace.bytes += step.body.len() as u64;
        self.pipe.push(&bytes[step.body]);
        self.unused.start += step.consumed;
        if step.done {
            self.end(Ok(()));
        }
        Ok(())
    }

    /// Asks the client for the body, of which no part has arrived.
    fn poll_ask(&mut self, cx: &mut Context<'_>, stream: &Stream) -> Poll<io::Result<()>> {
        if self.ask == Ask::Send {
            let sent = ready!(stream.poll_write(cx, &[IoSlice::new(CONTINUE)]))?;
            if sent < CONTINUE.len() {
                // A socket without room for so few bytes, at its first response, is broken.
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.ask = Ask::Flush;
        }
        if self.ask == Ask::Flush {
            ready!(stream.poll_flush(cx))?;
            self.ask = Ask::Done;
        }
        Poll::Ready(Ok(()))
    }

    fn end(&mut self, end: Result<(), io::ErrorKind>) {
        self.has_ended = true;
        self.pipe.end(end);
    }

    /// Feeds the rest while the response is sent. It never completes.
    pub(super) async fn run<T>(&mut self, stream: &Stream, timeouts: &Timeouts) -> T {
        if self.ask == Ask::Send {
            // The client that waits for 100 gets the final response, and need not send the body.
            self.end(Err(io::ErrorKind::UnexpectedEof));
        }
        poll_fn(|cx| {
            let _ = self.poll(cx, stream, timeouts);
            Poll::Pending
        })
        .await
    }

    /// Gives back the bytes after the body, which belong to the next request. There is none if the
    /// body is incomplete.
    pub(super) fn give_back(&self, input: &mut Input) {
        if self.pipe.is_complete() {
            input.append(&self.input[self.unused.clone()]);
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.pipe.end(Err(io::ErrorKind::UnexpectedEof));
    }
}

fn kind(refusal: &Refusal) -> io::ErrorKind {
    match refusal.status() {
        Status::CONTENT_TOO_LARGE => io::ErrorKind::FileTooLarge,
        _ => io::ErrorKind::InvalidData,
    }
}

/// The rate at which a client sends. Only the time that is spent waiting for the client counts, and
/// only the bytes of the body, not those between its chunks or after them.
struct Pace {
    /// Fires when the client has been waited for long enough to judge it.
    sleep: Pin<Box<Sleep>>,
    since: Option<Instant>,
    waited: Duration,
    bytes: u64,
}

impl Pace {
    fn new() -> Self {
        Self {
            sleep: Box::pin(sleep(Duration::ZERO)),
            since: None,
            waited: Duration::ZERO,
            bytes: 0,
        }
    }

    /// Records that the client has sent something.
    fn end_wait(&mut self) {
        self.waited += self.since.take().map_or(Duration::ZERO, |at| at.elapsed());
    }

    /// Completes when the client has sent too little for `timeouts.body` of waiting.
    fn poll_too_slow(&mut self, cx: &mut Context<'_>, timeouts: &Timeouts) -> Poll<()> {
        loop {
            if self.since.is_none() {
                self.since = Some(Instant::now());
                let left = timeouts.body.saturating_sub(self.waited);
                self.sleep.as_mut().reset(now() + left);
            }
            ready!(self.sleep.as_mut().poll(cx));
            let least = timeouts.rate.unwrap_or(0) as f64 * timeouts.body.as_secs_f64();
            if self.bytes == 0 || (self.bytes as f64) < least {
                return Poll::Ready(());
            }
            (self.since, self.waited, self.bytes) = (None, Duration::ZERO, 0);
        }
    }
}
