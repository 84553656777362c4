//! Options of outgoing queues.

use std::future::Future;
use std::time::Duration;

use tussah_core::AsColor;

use super::{BreakOff, Outgoing, OutgoingStats, writer};

/// Bound, in bytes: the default capacity of a queue, about as much as the system itself buffers for
/// a slow peer.
const BYTES_MAX: usize = 256 * 1024;

/// Bound, in buffers: the default capacity of a queue. Small buffers need memory beyond their
/// bytes.
const BUFFERS_MAX: usize = 1024;

/// The action to take when a buffer does not fit into an outgoing queue. Default:
/// [`Wait`](Self::Wait).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OverflowPolicy {
    /// Wait until the buffer fits. A slow peer then slows down everything that feeds the queue.
    #[default]
    Wait,
    /// Return the buffer to the caller, and count it as rejected.
    Drop,
    /// Abort the connection because the peer is too slow, and drop the queued buffers. SEDA's
    /// packet router also needed this action (SOSP 2001, section 5.2.2).
    Close,
}

/// Options for creating an [`Outgoing`].
///
/// # Examples
/// See [`Outgoing`].
#[derive(Clone, Copy, Debug)]
#[must_use = "options do nothing until `start` is called"]
pub struct OutgoingOptions {
    pub(super) bytes_max: usize,
    pub(crate) buffers_max: usize,
    pub(super) when_full: OverflowPolicy,
    pub(super) finish_max: Option<Duration>,
}

impl Default for OutgoingOptions {
    fn default() -> Self {
        Self {
            bytes_max: BYTES_MAX,
            buffers_max: BUFFERS_MAX,
            when_full: OverflowPolicy::default(),
            finish_max: None,
        }
    }
}

impl OutgoingOptions {
    /// Bound, in bytes: sets the capacity of the queue. Default: 256 KiB. A buffer that is larger
    /// than the capacity is accepted only if the queue is empty.
    pub fn bytes_max(self, bytes: usize) -> Self {
        Self {
            bytes_max: bytes,
            ..self
        }
    }

    /// Bound, in buffers: sets the capacity of the queue. Default: 1024; 0 counts as 1.
    pub fn buffers_max(self, buffers: usize) -> Self {
        Self {
            buffers_max: buffers.max(1),
            ..self
        }
    }

    /// Sets the action to take when a buffer does not fit. Default: [`OverflowPolicy::Wait`].
    pub fn when_full(self, when_full: OverflowPolicy) -> Self {
        Self { when_full, ..self }
    }

    /// Sets the maximum time for writing the remaining buffers after [`Outgoing::finish`] is called
    /// or the last handle is dropped. When this time has elapsed, the connection is aborted, and
    /// the remaining buffers are dropped. By default, the time is unlimited: if a peer does not
    /// read, the remaining buffers stay in memory for as long as the connection lasts.
    pub fn finish_max(self, time: Duration) -> Self {
        let finish_max = Some(time);
        Self { finish_max, ..self }
    }

    /// Returns whether a queue with these contents has room for a buffer of `len` bytes, with a
    /// further bound in bytes.
    pub(super) fn fits(&self, held: &OutgoingStats, len: usize, bytes_max: usize) -> bool {
        let few = held.buffers < self.buffers_max;
        held.buffers == 0 || few && held.bytes.saturating_add(len) <= self.bytes_max.min(bytes_max)
    }

    /// Creates the queue, and starts a thread that writes its buffers to `writer`.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub fn start<B, W>(self, writer: W) -> Outgoing<B>
    where
        B: AsRef<[u8]> + Send + 'static,
        W: BreakOff,
    {
        let (outgoing, writing) = self.prepare(writer);
        // The thread continues on its own and reports its end in the shared state.
        drop(crate::spawn(writing));
        outgoing
    }

    /// Creates the queue, and starts its writing thread in the given color. Otherwise works like
    /// [`start`](Self::start).
    ///
    /// # Panics
    /// Same as [`spawn_in`](crate::spawn_in).
    #[track_caller]
    pub fn start_in<B, W>(self, color: impl AsColor, writer: W) -> Outgoing<B>
    where
        B: AsRef<[u8]> + Send + 'static,
        W: BreakOff,
    {
        let (outgoing, writing) = self.prepare(writer);
        drop(crate::spawn_in(color, writing));
        outgoing
    }

    /// Returns the queue and the future of its thread.
    pub(crate) fn prepare<B, W>(
        self,
        writer: W,
    ) -> (Outgoing<B>, impl Future<Output = ()> + Send + 'static)
    where
        B: AsRef<[u8]> + Send + 'static,
        W: BreakOff,
    {
        let outgoing = Outgoing::new(self);
        let writing = writer::run(writer::Ended(outgoing.shared.clone()), writer);
        (outgoing, writing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_much_of_a_message_fits() {
        let options = OutgoingOptions::default().bytes_max(100).buffers_max(3);
        let check = |bytes, buffers, len, expected| {
            let held = OutgoingStats {
                bytes,
                buffers,
                ..OutgoingStats::default()
            };
            let fits = options.fits(&held, len, usize::MAX);
            assert_eq!(fits, expected, "{held:?} and {len}");
        };
        check(0, 0, 100, true);
        check(0, 0, 1000, true); // alone, however long it is
        check(40, 1, 60, true);
        check(40, 1, 61, false);
        check(2, 2, 1, true);
        check(3, 3, 1, false);
        check(3, 3, 0, false);
        check(100, 1, usize::MAX, false);
        let held = OutgoingStats {
            bytes: 40,
            buffers: 1,
            ..OutgoingStats::default()
        };
        assert!(options.fits(&held, 10, 50) && !options.fits(&held, 11, 50));
    }
}
