//! A pipe for the body of a request, from the thread of its connection to a handler.

use std::io;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// Bound, in bytes: the server reads no more of a streamed body while this much of it waits for the
/// handler.
const BYTES: usize = 64 * 1024;

/// A pipe. The thread writes, and the handler reads.
#[derive(Debug, Default)]
pub(crate) struct Pipe(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The bytes in the pipe, after those that the handler has taken.
    bytes: Vec<u8>,
    taken: usize,
    /// True once the handler has tried to read. Until then, the client may have been asked for
    /// nothing.
    is_wanted: bool,
    /// True once there is no reader any more.
    is_abandoned: bool,
    /// The end of the body, or the reason why the rest is missing.
    end: Option<Result<(), io::ErrorKind>>,
    /// The waker of the handler, or of the thread, if it waits.
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Pipe {
    /// Waits until the handler wants more. Returns false if it never will.
    pub(crate) fn poll_wanted(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut state = self.0.lock();
        if state.is_abandoned {
            return Poll::Ready(false);
        }
        if state.is_wanted && state.bytes.len() - state.taken < BYTES {
            return Poll::Ready(true);
        }
        state.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Adds a part of the body.
    pub(crate) fn push(&self, bytes: &[u8]) {
        self.change(|state| {
            state.bytes.drain(..mem::take(&mut state.taken));
            state.bytes.extend_from_slice(bytes);
            state.reader.take()
        });
    }

    /// Ends the body, unless it has ended.
    pub(crate) fn end(&self, end: Result<(), io::ErrorKind>) {
        self.change(|state| {
            state.end.get_or_insert(end);
            state.reader.take()
        });
    }

    /// Returns whether the whole body has been read from the connection.
    pub(crate) fn is_complete(&self) -> bool {
        self.0.lock().end == Some(Ok(()))
    }

    /// Changes the state, and calls the waker outside of the lock.
    fn change(&self, change: impl FnOnce(&mut State) -> Option<Waker>) {
        let waker = change(&mut self.0.lock());
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The only reading end of a pipe. Dropping it abandons the rest of the body.
#[derive(Debug)]
pub(crate) struct Reader(Arc<Pipe>);

impl Reader {
    pub(crate) fn new(pipe: &Arc<Pipe>) -> Self {
        Self(Arc::clone(pipe))
    }

    /// Reads the available bytes; 0 means the end of the body.
    pub(crate) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut polled = Poll::Pending;
        self.0.change(|state| {
            let rest = &state.bytes[state.taken..];
            let len = rest.len().min(buffer.len());
            buffer[..len].copy_from_slice(&rest[..len]);
            state.taken += len;
            state.is_wanted = true;
            polled = match state.end {
                _ if len > 0 || buffer.is_empty() => Poll::Ready(Ok(len)),
                Some(Ok(())) => Poll::Ready(Ok(0)),
                Some(Err(kind)) => Poll::Ready(Err(kind.into())),
                None => {
                    state.reader = Some(cx.waker().clone());
                    Poll::Pending
                }
            };
            state.writer.take()
        });
        polled
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.is_abandoned = true;
            (state.bytes, state.taken) = (Vec::new(), 0);
            state.writer.take()
        });
    }
}
