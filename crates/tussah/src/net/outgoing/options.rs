//! How a queue of what is to be written is made.

use std::future::Future;
use std::time::Duration;

use tussah_core::AsColor;

use super::{BreakOff, Outgoing, OutgoingStats, writer};

/// Bound, in bytes: what a queue holds unless it is set otherwise; as much as the system itself keeps for a slow peer.
const BYTES_MAX: usize = 256 * 1024;

/// Bound, in buffers: how many a queue holds unless it is set otherwise; with small ones their own memory counts.
const BUFFERS_MAX: usize = 1024;

/// What is done with a buffer for which there is no room. Default: [`Wait`](Self::Wait).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// Who pushes waits: the peer's pace becomes that of the whole path before it.
    #[default]
    Wait,
    /// It is given back, and counted: the peer misses it.
    Drop,
    /// The peer is too slow to be served, so the connection is broken off, and what is queued dropped. SEDA's packet router had
    /// to learn this (SOSP 2001, section 5.2.2).
    Close,
}

/// How an [`Outgoing`] is to be made.
///
/// # Examples
/// See [`Outgoing`].
#[derive(Clone, Copy, Debug)]
#[must_use = "it does nothing before `start`"]
pub struct OutgoingOptions {
    pub(super) bytes_max: usize,
    pub(crate) buffers_max: usize,
    pub(super) when_full: WhenFull,
    pub(super) finish_max: Option<Duration>,
}

impl Default for OutgoingOptions {
    fn default() -> Self {
        Self {
            bytes_max: BYTES_MAX,
            buffers_max: BUFFERS_MAX,
            when_full: WhenFull::default(),
            finish_max: None,
        }
    }
}

impl OutgoingOptions {
    /// Bound, in bytes: what the queue holds, 256 KiB by default. One that is longer than this fits only into an empty queue.
    pub fn bytes_max(self, bytes: usize) -> Self {
        Self {
            bytes_max: bytes,
            ..self
        }
    }

    /// Bound, in buffers: how many the queue holds, 1024 by default; 0 counts as 1.
    pub fn buffers_max(self, buffers: usize) -> Self {
        Self {
            buffers_max: buffers.max(1),
            ..self
        }
    }

    /// What is done with a buffer for which there is no room. Default: [`WhenFull::Wait`].
    pub fn when_full(self, when_full: WhenFull) -> Self {
        Self { when_full, ..self }
    }

    /// How long it may take to write the rest once nothing more is pushed, also when that is because the last handle was dropped. The
    /// connection is broken off then, and what is queued dropped. Without it, a peer that does not read keeps the rest for as long as its
    /// connection lasts.
    pub fn finish_max(self, time: Duration) -> Self {
        let finish_max = Some(time);
        Self { finish_max, ..self }
    }

    /// Whether a queue that holds so much has room for a buffer of a length, with another bound besides.
    pub(super) fn fits(&self, held: &OutgoingStats, len: usize, bytes_max: usize) -> bool {
        let few = held.buffers < self.buffers_max;
        held.buffers == 0 || few && held.bytes.saturating_add(len) <= self.bytes_max.min(bytes_max)
    }

    /// Starts a thread that writes what is pushed.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn start<B, W>(self, writer: W) -> Outgoing<B>
    where
        B: AsRef<[u8]> + Send + 'static,
        W: BreakOff,
    {
        let (outgoing, writing) = self.prepare(writer);
        // The thread goes on by itself, and tells how it ends by the state.
        drop(crate::spawn(writing));
        outgoing
    }

    /// The same with a thread in a color.
    ///
    /// # Panics
    /// As [`spawn_in`](crate::spawn_in).
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

    /// The queue, and what its thread does.
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
    fn what_fits() {
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
