//! A bounded queue of data to be written to a peer.

mod options;
mod writer;

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tussah_core::Notify;

use crate::io_error;

pub use options::{OutgoingOptions, OverflowPolicy};
pub use writer::BreakOff;

/// A bounded queue of buffers for one peer. A separate thread writes the buffers in order, many at
/// a time.
///
/// Clones refer to the same queue. After the last clone is dropped, the writing thread still writes
/// the queued buffers, and then closes the stream for writing.
///
/// # Examples
/// ```
/// use tussah::net::{Outgoing, OutgoingOptions, OverflowPolicy, TcpListener, TcpStream};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// # let listener = TcpListener::bind("127.0.0.1:0")?;
/// # let client = TcpStream::connect(listener.local_addr()?).await?;
/// # let (server, _) = listener.accept().await?;
/// let (read, write) = server.into_split();
/// let outgoing: Outgoing<&str> = OutgoingOptions::default()
///     .bytes_max(64 * 1024)
///     .when_full(OverflowPolicy::Close)
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
    /// Dropping the last one ends the pushing.
    _last: Arc<Last<B>>,
}

/// The error returned when a buffer is rejected.
pub struct PushError<B> {
    /// The rejected buffer.
    pub buffer: B,
    /// The reason why the queue is closed: the error that ended writing, or `BrokenPipe` after
    /// [`Outgoing::finish`]. `None` if the queue is full but still open.
    pub closed: Option<io::Error>,
}

/// The queue length and the counters of an [`Outgoing`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutgoingStats {
    /// Number of queued bytes that have not been written yet.
    pub bytes: usize,
    /// Number of buffers that are queued or are being written.
    pub buffers: usize,
    /// Number of accepted buffers.
    pub pushed: u64,
    /// Number of buffers rejected because the queue was full, including any buffer whose rejection
    /// aborted the connection.
    pub refused: u64,
    /// Number of accepted buffers that were dropped when the connection ended.
    pub lost: u64,
    /// Number of bytes written.
    pub bytes_written: u64,
}

/// The progress of the writing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Progress {
    /// Number of buffers written completely.
    pub(crate) written: u64,
    /// True if buffers are accepted.
    pub(crate) open: bool,
    /// True if the writing has ended.
    pub(crate) over: bool,
}

pub(super) struct Shared<B> {
    state: Mutex<State<B>>,
    options: OutgoingOptions,
    /// Notified when there is data to write, or at the end.
    work: Notify,
    /// Notified when there is room, or at the end.
    room: Notify,
    /// Notified when the connection must be aborted.
    broken_off: Notify,
    /// Notified when the pushing has ended.
    finishing: Notify,
    /// Notified when the thread has ended.
    ended: Notify,
}

struct State<B> {
    queue: VecDeque<B>,
    stats: OutgoingStats,
    phase: Phase,
}

enum Phase {
    Open,
    /// The pushing has ended; the rest is being written.
    Finishing,
    /// The writing has ended with an error.
    Closed(io::Error),
    /// Everything was written.
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

    /// Adds a buffer to the queue. If the queue is full, [`OutgoingOptions::when_full`] applies.
    ///
    /// # Cancellation
    /// If the future is dropped while it waits, its buffer is dropped. Waiting callers are served
    /// in no particular order.
    ///
    /// # Errors
    /// Returns the buffer if [`finish`](Self::finish) was called, if writing has ended, or if the
    /// queue is full and the action for this case is not [`OverflowPolicy::Wait`].
    pub async fn push(&self, buffer: B) -> Result<(), PushError<B>> {
        let unbounded = || usize::MAX;
        self.push_numbered(buffer, unbounded).await.map(drop)
    }

    /// Does the same with a further bound, in bytes. Returns the number of buffers accepted so far,
    /// this one included.
    pub(crate) async fn push_numbered(
        &self,
        buffer: B,
        bytes_max: impl Fn() -> usize,
    ) -> Result<u64, PushError<B>> {
        if self.shared.options.when_full != OverflowPolicy::Wait {
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

    /// Adds a buffer to the queue without waiting. If the queue is full, returns the buffer even
    /// with [`OverflowPolicy::Wait`].
    ///
    /// # Errors
    /// Returns the buffer if the queue is full, if [`finish`](Self::finish) was called, or if
    /// writing has ended.
    pub fn try_push(&self, buffer: B) -> Result<(), PushError<B>> {
        self.try_push_numbered(buffer, usize::MAX).map(drop)
    }

    /// Does the same with a further bound, in bytes. Returns the number of buffers accepted so far,
    /// this one included.
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
        if self.shared.options.when_full == OverflowPolicy::Close {
            let slow = "the peer is too slow: the queue is full";
            let slow = io::Error::new(io::ErrorKind::TimedOut, slow);
            error.closed = Some(io_error::again(&slow));
            self.shared.close(slow);
        }
        Err(error)
    }

    /// Stops accepting buffers, and waits until all buffers have been written and the stream is
    /// closed for writing.
    ///
    /// # Cancellation
    /// If the future is dropped, the writing thread still writes the queued buffers.
    ///
    /// # Errors
    /// Returns the error that stopped the writing thread early. With [`OverflowPolicy::Close`], the
    /// error is `TimedOut` if a buffer did not fit into the queue. The error is also `TimedOut` if
    /// writing the remaining buffers took longer than [`finish_max`](OutgoingOptions::finish_max).
    /// After [`break_off`](Self::break_off), the error is `ConnectionAborted`.
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

    /// Aborts the connection immediately, drops the queued buffers, and rejects new ones. If
    /// writing has ended, the call has no effect.
    pub fn break_off(&self) {
        let kind = io::ErrorKind::ConnectionAborted;
        self.shared
            .close(io::Error::new(kind, "broken off by this end"));
    }

    /// Ends the pushing. The rest is written, and the stream is then closed for writing.
    pub(crate) fn end(&self) {
        self.shared.finish();
    }

    /// Returns the progress of the writing.
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

    /// Returns the length and the counters of the queue.
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
    /// Ends the writing and drops the queued buffers.
    fn close(&self, error: io::Error) {
        let mut state = self.lock();
        if matches!(state.phase, Phase::Open | Phase::Finishing) {
            state.phase = Phase::Closed(error);
        }
        let queue = std::mem::take(&mut state.queue);
        // The thread counts the buffers that it is writing.
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

    /// Accepts a buffer if there is room. Returns its number.
    fn take(&self, buffer: B, bytes_max: usize) -> Result<u64, PushError<B>> {
        let len = buffer.as_ref().len();
        let mut state = self.lock();
        let closed = match &state.phase {
            Phase::Open => None,
            Phase::Closed(error) => Some(io_error::again(error)),
            Phase::Finishing | Phase::Finished => {
                let kind = io::ErrorKind::BrokenPipe;
                Some(io::Error::new(kind, "the queue was already finished"))
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
            None => f.write_str("the outgoing queue is full"),
            Some(error) => write!(f, "the writing has ended: {error}"),
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
