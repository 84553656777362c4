//! The thread that writes the queued buffers.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_io::AsyncWrite;
use futures_util::future::{Either, select};
use tussah_core::Notified;

use super::{Phase, Shared};
use crate::io_error;
use crate::net::{OwnedWriteHalf, TcpStream, UnixStream};
use crate::time::sleep;

/// The maximum number of buffers that one call writes. A larger batch saves hardly anything.
const BATCH: usize = 64;

/// A writer whose connection can be aborted when the peer is too slow.
pub trait BreakOff: AsyncWrite + Unpin + Send + 'static {
    /// Ends the connection immediately, in both directions, and discards unsent data.
    fn break_off(&self);
}

impl BreakOff for TcpStream {
    fn break_off(&self) {
        // If either call fails, the connection no longer exists.
        let _ = self.reset();
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// Data in transit is still delivered, since a Unix socket cannot discard it.
impl BreakOff for UnixStream {
    fn break_off(&self) {
        // If this fails, the connection no longer exists.
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl BreakOff for OwnedWriteHalf {
    fn break_off(&self) {
        AsRef::<TcpStream>::as_ref(self).break_off();
    }
}

/// Writes until the end, and records in the shared state how it ended.
pub(super) async fn run<B, W>(guard: Ended<B>, mut writer: W)
where
    B: AsRef<[u8]> + Send + 'static,
    W: BreakOff,
{
    let shared = &*guard.0;
    let result = match shared.options.finish_max {
        None => write_all(shared, &mut writer).await,
        Some(time) => {
            let late = Box::pin(close_late(shared, time));
            let written = pin!(write_all(shared, &mut writer));
            // The write ends in any case, because `close_late` notifies it.
            match select(late, written).await {
                Either::Left(((), written)) => written.await,
                Either::Right((result, _)) => result,
            }
        }
    };
    match result {
        Ok(()) => shared.lock().phase = Phase::Finished,
        Err(error) => {
            shared.close(error);
            writer.break_off();
        }
    }
    // The guard is the first parameter, so that it is dropped last, after the writer.
}

/// Writes all queued buffers until the pushing has ended.
async fn write_all<B, W>(shared: &Shared<B>, writer: &mut W) -> io::Result<()>
where
    B: AsRef<[u8]> + Send + 'static,
    W: BreakOff,
{
    let mut broken_off = pin!(shared.broken_off.notified());
    loop {
        let Some(batch) = shared.next_batch().await? else {
            return finish(writer, broken_off).await;
        };
        let mut written = Written {
            shared,
            batch,
            first: 0,
            offset: 0,
        };
        written.write(writer, broken_off.as_mut()).await?;
    }
}

/// Aborts the connection if finishing takes too long.
async fn close_late<B: AsRef<[u8]>>(shared: &Shared<B>, time: Duration) {
    shared.finishing.notified().await;
    sleep(time).await;
    let late = format!("the rest was not written within {time:?}");
    shared.close(io::Error::new(io::ErrorKind::TimedOut, late));
}

/// Guard that reports the end of the thread, even if the thread was aborted or dropped before it
/// ran.
pub(super) struct Ended<B: AsRef<[u8]>>(pub(super) Arc<Shared<B>>);

impl<B: AsRef<[u8]>> Drop for Ended<B> {
    fn drop(&mut self) {
        // Does nothing after a regular end.
        let kind = io::ErrorKind::BrokenPipe;
        self.0.close(io::Error::new(kind, "the writing has ended"));
        self.0.ended.notify_waiters();
    }
}

/// Closes the stream for writing.
async fn finish<W: BreakOff>(writer: &mut W, broken_off: Pin<&mut Notified<'_>>) -> io::Result<()> {
    unless(
        broken_off,
        poll_fn(|context| Pin::new(&mut *writer).poll_close(context)),
    )
    .await
}

/// Waits for an operation, at most until the connection is aborted.
async fn unless<R>(
    mut broken_off: Pin<&mut Notified<'_>>,
    operation: impl Future<Output = io::Result<R>>,
) -> io::Result<R> {
    let mut operation = pin!(operation);
    poll_fn(|context| {
        if broken_off.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        operation.as_mut().poll(context)
    })
    .await
}

impl<B: AsRef<[u8]>> Shared<B> {
    /// Returns the next buffers to write, `None` at the end, or an error if the queue was closed.
    async fn next_batch(&self) -> io::Result<Option<Vec<B>>> {
        loop {
            {
                let mut state = self.lock();
                if let Phase::Closed(error) = &state.phase {
                    return Err(io_error::again(error));
                }
                if !state.queue.is_empty() {
                    let count = state.queue.len().min(BATCH);
                    return Ok(Some(state.queue.drain(..count).collect()));
                }
                if matches!(state.phase, Phase::Finishing) {
                    return Ok(None);
                }
            }
            self.work.notified().await;
        }
    }
}

/// Buffers taken out of the queue. If this is dropped early, the unwritten ones are counted as
/// lost.
struct Written<'a, B: AsRef<[u8]>> {
    shared: &'a Shared<B>,
    batch: Vec<B>,
    /// The index of the first buffer that is not written completely.
    first: usize,
    /// The number of bytes written of that buffer.
    offset: usize,
}

impl<B: AsRef<[u8]>> Written<'_, B> {
    async fn write<W: BreakOff>(
        &mut self,
        writer: &mut W,
        mut broken_off: Pin<&mut Notified<'_>>,
    ) -> io::Result<()> {
        self.advance(0); // skips empty buffers
        while self.first < self.batch.len() {
            let rest = self.batch[self.first..].iter().map(AsRef::as_ref);
            let mut slices: Vec<_> = rest.map(IoSlice::new).collect();
            slices[0].advance(self.offset);
            let write =
                poll_fn(|context| Pin::new(&mut *writer).poll_write_vectored(context, &slices));
            let len = unless(broken_off.as_mut(), write).await?;
            if len == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.advance(len);
        }
        Ok(())
    }

    fn advance(&mut self, len: usize) {
        let before = self.first;
        let mut rest = self.offset + len;
        while let Some(buffer) = self.batch.get(self.first) {
            let buffer_len = buffer.as_ref().len();
            if rest < buffer_len {
                break;
            }
            rest -= buffer_len;
            self.first += 1;
        }
        self.offset = rest;
        let mut state = self.shared.lock();
        state.stats.bytes = state.stats.bytes.saturating_sub(len);
        state.stats.bytes_written += len as u64;
        state.stats.buffers -= self.first - before;
        drop(state);
        self.shared.room.notify_waiters();
    }
}

impl<B: AsRef<[u8]>> Drop for Written<'_, B> {
    fn drop(&mut self) {
        let lost = self.batch.len() - self.first;
        if lost > 0 {
            let mut state = self.shared.lock();
            state.stats.lost += lost as u64;
            state.stats.buffers -= lost;
            let rest = self.batch[self.first..].iter();
            let bytes: usize = rest.map(|buffer| buffer.as_ref().len()).sum();
            state.stats.bytes = state.stats.bytes.saturating_sub(bytes - self.offset);
        }
    }
}
