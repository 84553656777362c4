//! Bodies that a graph makes while they are sent.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_lite::Stream;
use parking_lot::Mutex;

use super::Body;
use crate::web::answer::reply::{Chunk, ReplyStream};

/// The sending end of a body that consists of parts of files. A graph adds the parts while the
/// response is sent, so the graph determines how fast the client receives them.
///
/// The connection holds no part in memory. The connection sends a part only after the client has
/// accepted the previous parts, so a slow client delays only its own body.
///
/// If this value is dropped before the parts reach the announced length, the connection closes, so
/// that the client notices that the body is incomplete.
///
/// ```
/// use std::fs::File;
/// use std::sync::Arc;
/// use tussah_services::modules::BodySender;
///
/// let file = Arc::new(File::open("Cargo.toml")?);
/// let (sender, body) = BodySender::new(20, ());
/// sender.send(&file, 0..10);
/// sender.send(&file, 10..20);
/// assert_eq!((body.len(), sender.waiting()), (20, 20));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct BodySender(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    parts: VecDeque<(Arc<File>, Range<u64>)>,
    /// The bytes of `parts`.
    waiting: u64,
    /// True once the sender is gone.
    is_complete: bool,
    /// True once the receiver is gone.
    is_over: bool,
    /// The waker of the connection, if it waits.
    waker: Option<Waker>,
}

impl BodySender {
    /// Creates a body of `len` bytes.
    ///
    /// The connection drops `guard` as soon as it no longer needs the body: the client has received
    /// the whole body or has disconnected, or the response is dropped without being sent.
    pub fn new(len: u64, guard: impl Send + 'static) -> (Self, Body) {
        let state = Arc::<Mutex<State>>::default();
        let receiver = Receiver {
            state: Arc::clone(&state),
            _guard: guard,
        };
        let body = Mutex::new(Some(ReplyStream::of_chunks(len, receiver)));
        let parts = Parts {
            len,
            body: Arc::new(body),
        };
        (Self(state), Body::Parts(parts))
    }

    /// Adds the next part: the bytes of `file` at the offsets in `range`. If the file is too short
    /// by the time the part is sent, the connection closes.
    pub fn send(&self, file: &Arc<File>, range: Range<u64>) {
        let mut state = self.0.lock();
        if state.is_over || range.is_empty() {
            return;
        }
        state.waiting += range.end - range.start;
        state.parts.push_back((Arc::clone(file), range));
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns the total length, in bytes, of the parts that the connection has not begun to send.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.0.lock().waiting
    }

    /// Returns whether the connection no longer needs the body.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.lock().is_over
    }
}

impl Drop for BodySender {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_complete = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl fmt::Debug for BodySender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodySender")
            .field("waiting", &self.waiting())
            .field("is_over", &self.is_over())
            .finish()
    }
}

/// The body that belongs to a [`BodySender`]. Clones share the body, and the first response that is
/// sent consumes it.
#[derive(Clone)]
pub struct Parts {
    len: u64,
    body: Arc<Mutex<Option<ReplyStream>>>,
}

impl Parts {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Takes the body. A second response gets a body that is incomplete.
    pub(super) fn take(&self) -> ReplyStream {
        let body = self.body.lock().take();
        body.unwrap_or_else(|| ReplyStream::of_chunks(self.len, futures_lite::stream::empty()))
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// The receiving end, which the connection owns.
struct Receiver<G> {
    state: Arc<Mutex<State>>,
    _guard: G,
}

// No field is pinned.
impl<G> Unpin for Receiver<G> {}

impl<G> Stream for Receiver<G> {
    type Item = io::Result<Chunk>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut state = self.state.lock();
        if let Some((file, range)) = state.parts.pop_front() {
            state.waiting -= range.end - range.start;
            return Poll::Ready(Some(Ok(Chunk::File(file, range))));
        }
        if state.is_complete {
            return Poll::Ready(None);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl<G> Drop for Receiver<G> {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        state.is_over = true;
        state.waiting = 0;
        // A file may be closed here, which must not happen under the lock.
        let parts = std::mem::take(&mut state.parts);
        drop(state);
        drop(parts);
    }
}
