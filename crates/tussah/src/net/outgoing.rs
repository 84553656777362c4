//! A bounded queue of what is to be written to a peer.

mod options;
mod writer;

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tussah_core::Notify;

use crate::io_error;

pub use options::{OutgoingOptions, WhenFull};
pub use writer::BreakOff;

/// A bounded queue of buffers for one peer, written in order, many at a time, by a thread of its own.
///
/// Clones are of the same queue. When the last one is dropped, what is queued is still written, and the writing is ended then.
///
/// # Examples
/// ```
/// use tussah::net::{Outgoing, OutgoingOptions, TcpListener, TcpStream, WhenFull};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// # let listener = TcpListener::bind("127.0.0.1:0")?;
/// # let client = TcpStream::connect(listener.local_addr()?).await?;
/// # let (server, _) = listener.accept().await?;
/// let (read, write) = server.into_split();
/// let outgoing: Outgoing<&str> = OutgoingOptions::default()
///     .bytes_max(64 * 1024)
///     .when_full(WhenFull::Close)
///     .start(write);
/// outgoing.push("hello, ").await.expect("there is room");
/// outgoing.try_push("peer").expect("there is room");
/// outgoing.finish().await?;
/// let mut buffer = [0; 11];
/// client.read_exact(&mut buffer).await?;
/// assert_eq!(&buffer, b"hello, peer");
/// # drop(read);
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
pub struct Outgoing<B> {
    shared: Arc<Shared<B>>,
    /// Its drop tells that nobody pushes any more.
    _last: Arc<Last<B>>,
}

/// A buffer that was not taken.
pub struct PushError<B> {
    /// The buffer.
    pub buffer: B,
    /// Why not: `None` because the queue is full, else because of what has ended the writing.
    pub closed: Option<io::Error>,
}

/// What an [`Outgoing`] holds, and has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutgoingStats {
    /// Bytes that are queued, as far as they have not been written.
    pub bytes: usize,
    /// Buffers that are queued, or are being written.
    pub buffers: usize,
    /// Buffers that were taken.
    pub pushed: u64,
    /// Buffers for which there was no room, and that were given back or met with the end of the connection.
    pub refused: u64,
    /// Buffers that were taken, but dropped when the connection ended.
    pub lost: u64,
    /// Bytes that were written.
    pub bytes_written: u64,
}

/// How far the writing has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Progress {
    /// Buffers that were written whole.
    pub(crate) written: u64,
    /// Buffers are taken.
    pub(crate) open: bool,
    /// Nothing more is written.
    pub(crate) over: bool,
}

pub(super) struct Shared<B> {
    state: Mutex<State<B>>,
    options: OutgoingOptions,
    /// Something to write, or the end.
    work: Notify,
    /// Room, or the end.
    room: Notify,
    /// The connection is to be broken off.
    broken_off: Notify,
    /// Nothing more is pushed.
    finishing: Notify,
    /// The thread has ended.
    ended: Notify,
}

struct State<B> {
    queue: VecDeque<B>,
    stats: OutgoingStats,
    phase: Phase,
}

enum Phase {
    Open,
    /// Nothing more is pushed; the rest is written.
    Finishing,
    /// Nothing more is written.
    Closed(io::Error),
    /// All was written.
    Finished,
}

struct Last<B>(Arc<Shared<B>>);

impl<B> Drop for Last<B> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

impl<B: AsRef<[u8]> + Send + 'static> Outgoing<B> {
    fn new(options: OutgoingOptions) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                queue: VecDeque::new(),
                stats: OutgoingStats::default(),
                phase: Phase::Open,
            }),
            options,
            work: Notify::new(),
            room: Notify::new(),
            broken_off: Notify::new(),
            finishing: Notify::new(),
            ended: Notify::new(),
        });
        let _last = Arc::new(Last(shared.clone()));
        Self { shared, _last }
    }

    /// Puts a buffer into the queue; if there is no room, what was chosen by [`OutgoingOptions::when_full`] happens.
    ///
    /// # Cancellation
    /// Dropping the future while it waits for room drops the buffer. Among those who wait there is no order.
    ///
    /// # Errors
    /// Gives the buffer back if the queue is full and does not wait, and after the end of the writing.
    pub async fn push(&self, buffer: B) -> Result<(), PushError<B>> {
        let unbounded = || usize::MAX;
        self.push_numbered(buffer, unbounded).await.map(drop)
    }

    /// The same with another bound besides, in bytes; says the number of the buffer, which is how many were taken until then.
    pub(crate) async fn push_numbered(
        &self,
        buffer: B,
        bytes_max: impl Fn() -> usize,
    ) -> Result<u64, PushError<B>> {
        if self.shared.options.when_full != WhenFull::Wait {
            return self.try_push_numbered(buffer, bytes_max());
        }
        let mut buffer = buffer;
        loop {
            let room = self.shared.room.notified();
            match self.shared.take(buffer, bytes_max()) {
                Err(error) if error.closed.is_none() => buffer = error.buffer,
                result => return result,
            }
            room.await;
        }
    }

    /// Puts a buffer into the queue without waiting; with [`WhenFull::Wait`] one for which there is no room is given back.
    ///
    /// # Errors
    /// Gives the buffer back if there is no room, and after the end of the writing.
    pub fn try_push(&self, buffer: B) -> Result<(), PushError<B>> {
        self.try_push_numbered(buffer, usize::MAX).map(drop)
    }

    /// The same with another bound besides, in bytes; says the number of the buffer, which is how many were taken until then.
    pub(crate) fn try_push_numbered(
        &self,
        buffer: B,
        bytes_max: usize,
    ) -> Result<u64, PushError<B>> {
        let mut error = match self.shared.take(buffer, bytes_max) {
            Err(error) if error.closed.is_none() => error,
            result => return result,
        };
        self.shared.lock().stats.refused += 1;
        if self.shared.options.when_full == WhenFull::Close {
            let slow = "the peer was too slow, the queue is full";
            let slow = io::Error::new(io::ErrorKind::TimedOut, slow);
            error.closed = Some(io_error::again(&slow));
            self.shared.close(slow);
        }
        Err(error)
    }

    /// Pushes nothing more, and waits until all has been written and the writing is ended.
    ///
    /// # Cancellation
    /// Dropping the future leaves the rest to be written by the thread.
    ///
    /// # Errors
    /// What ended the writing before that: `TimedOut` if the peer was [too slow](WhenFull::Close), also to take
    /// [the rest](OutgoingOptions::finish_max); `ConnectionAborted` after [`break_off`](Self::break_off).
    pub async fn finish(&self) -> io::Result<()> {
        self.shared.finish();
        loop {
            let ended = self.shared.ended.notified();
            match &self.shared.lock().phase {
                Phase::Finished => return Ok(()),
                Phase::Closed(error) => return Err(io_error::again(error)),
                Phase::Open | Phase::Finishing => {}
            }
            ended.await;
        }
    }

    /// Breaks the connection off at once: what is queued is dropped, and nothing more is taken. Nothing happens when the writing has
    /// ended.
    pub fn break_off(&self) {
        let kind = io::ErrorKind::ConnectionAborted;
        self.shared.close(io::Error::new(kind, "broken off here"));
    }

    /// Pushes nothing more; what is queued is written, and the writing is ended then.
    pub(crate) fn end(&self) {
        self.shared.finish();
    }

    /// How far the writing has come.
    pub(crate) fn progress(&self) -> Progress {
        let state = self.shared.lock();
        let OutgoingStats {
            pushed,
            lost,
            buffers,
            ..
        } = state.stats;
        Progress {
            written: pushed - lost - buffers as u64,
            open: matches!(state.phase, Phase::Open),
            over: matches!(state.phase, Phase::Closed(_) | Phase::Finished),
        }
    }

    /// What is queued, and what was done.
    #[must_use]
    pub fn stats(&self) -> OutgoingStats {
        self.shared.lock().stats
    }
}

impl<B> Shared<B> {
    fn lock(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self) {
        let mut state = self.lock();
        if matches!(state.phase, Phase::Open) {
            state.phase = Phase::Finishing;
        }
        drop(state);
        self.finishing.notify_one();
        self.work.notify_one();
        self.room.notify_waiters();
    }
}

impl<B: AsRef<[u8]>> Shared<B> {
    /// Nothing more is written; what is queued is dropped.
    fn close(&self, error: io::Error) {
        let mut state = self.lock();
        if matches!(state.phase, Phase::Open | Phase::Finishing) {
            state.phase = Phase::Closed(error);
        }
        let queue = std::mem::take(&mut state.queue);
        // What is being written is counted by who writes it.
        state.stats.lost += queue.len() as u64;
        state.stats.buffers -= queue.len();
        let bytes = queue.iter().map(|buffer| buffer.as_ref().len()).sum();
        state.stats.bytes = state.stats.bytes.saturating_sub(bytes);
        drop(state);
        self.broken_off.notify_waiters();
        self.work.notify_one();
        self.room.notify_waiters();
        drop(queue);
    }

    /// Takes a buffer if there is room; says its number.
    fn take(&self, buffer: B, bytes_max: usize) -> Result<u64, PushError<B>> {
        let len = buffer.as_ref().len();
        let mut state = self.lock();
        let closed = match &state.phase {
            Phase::Open => None,
            Phase::Closed(error) => Some(io_error::again(error)),
            Phase::Finishing | Phase::Finished => {
                let kind = io::ErrorKind::BrokenPipe;
                Some(io::Error::new(kind, "it was finished before"))
            }
        };
        if closed.is_some() || !self.options.fits(&state.stats, len, bytes_max) {
            drop(state);
            return Err(PushError { buffer, closed });
        }
        state.stats.bytes += len;
        state.stats.buffers += 1;
        state.stats.pushed += 1;
        let number = state.stats.pushed;
        state.queue.push_back(buffer);
        drop(state);
        self.work.notify_one();
        Ok(number)
    }
}

impl<B> Clone for Outgoing<B> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            _last: self._last.clone(),
        }
    }
}

impl<B> fmt::Debug for Outgoing<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Outgoing")
            .field(&self.shared.lock().stats)
            .finish()
    }
}

impl<B> fmt::Display for PushError<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.closed {
            None => f.write_str("the queue of what is to be written is full"),
            Some(error) => write!(f, "nothing more is written: {error}"),
        }
    }
}

impl<B> fmt::Debug for PushError<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PushError({self})")
    }
}

impl<B> Error for PushError<B> {}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    impl BreakOff for Vec<u8> {
        fn break_off(&self) {}
    }

    #[test]
    fn a_thread_that_never_ran_has_ended() {
        let options = OutgoingOptions::default().buffers_max(1);
        let (outgoing, writing) = options.prepare::<&[u8], _>(Vec::new());
        outgoing.try_push(b"lost").expect("it fits");
        let mut context = Context::from_waker(Waker::noop());
        let mut push = pin!(outgoing.push(b"waits"));
        assert!(push.as_mut().poll(&mut context).is_pending());
        drop(writing);
        let Poll::Ready(Err(error)) = push.poll(&mut context) else {
            panic!("nobody would write it");
        };
        let closed = error.closed.map(|error| error.kind());
        assert_eq!(closed, Some(io::ErrorKind::BrokenPipe));
        let Poll::Ready(Err(error)) = pin!(outgoing.finish()).poll(&mut context) else {
            panic!("nobody would end it");
        };
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        let stats = outgoing.stats();
        assert_eq!((stats.bytes, stats.buffers, stats.lost), (0, 0, 1));
    }
}
