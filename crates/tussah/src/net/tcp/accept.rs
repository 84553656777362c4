//! What to do when accepting fails: go on, wait until the system has room again, or give up.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use tussah_core::Notify;

use crate::time::{now, timeout};

/// How long the first wait is when the system has no descriptor or no memory left; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// Bound, in milliseconds: how long a wait gets, so that room that others have made is soon noticed.
const PAUSE_MS_MAX: u64 = 1000;

/// What an error of accepting means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Something was wrong with that connection, which is gone; the next one may be well.
    Again,
    /// The process or the system has no descriptor or no memory left; the connection waits.
    Pause,
    /// The listener can't accept.
    Fail,
}

impl Verdict {
    pub(crate) fn of(error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Self::Pause,
            // On Linux, `accept` passes on what the network said of the new connection, and wants to be called again: accept(2),
            // "Error handling". `PERM`: a firewall's rules forbid it.
            Some(
                Errno::CONNABORTED
                | Errno::NETDOWN
                | Errno::PROTO
                | Errno::NOPROTOOPT
                | Errno::HOSTDOWN
                | Errno::NONET
                | Errno::HOSTUNREACH
                | Errno::NETUNREACH
                | Errno::TIMEDOUT
                | Errno::PERM,
            ) => Self::Again,
            _ => Self::Fail,
        }
    }
}

/// The waits of one `accept`.
pub(crate) struct Pauses {
    next: Duration,
}

impl Pauses {
    pub(crate) fn new() -> Self {
        Self { next: PAUSE_MIN }
    }

    /// Waits as [`wait`](Self::wait) does for what this error says is missing.
    pub(crate) async fn wait_for_room(&mut self, error: &io::Error) {
        if self.next == PAUSE_MIN {
            tell(error);
        }
        self.wait().await;
    }

    /// Waits for a while, or until a stream of this process is closed.
    pub(crate) async fn wait(&mut self) {
        let freed = FREED.notified();
        let _waiting = Waiting::new();
        // Either may be first: both mean that it may be tried again.
        let _ = timeout(self.next, freed).await;
        self.next = (self.next * 2).min(Duration::from_millis(PAUSE_MS_MAX));
    }
}

/// Bound, in seconds: how long it is not said again that there is no room.
const TELL_S: u64 = 10;

/// When it was said.
static TOLD: Mutex<Option<Instant>> = Mutex::new(None);

/// Says that there is no room for connections, which wait. A process that has just enough descriptors would say it for
/// each connection.
#[cold]
fn tell(error: &io::Error) {
    let now = now();
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    let is_known = told.is_some_and(|told| now.saturating_duration_since(told).as_secs() < TELL_S);
    if !is_known {
        *told = Some(now);
        tracing::warn!(target: "tussah", "connections wait to be accepted, since there is no descriptor or no memory for them: {error}");
    }
}

/// Told when a stream is closed, if anybody waits for it. Descriptors are the process's, so this is as well.
static FREED: Notify = Notify::new();

/// How many wait.
static WAITING: AtomicUsize = AtomicUsize::new(0);

struct Waiting;

impl Waiting {
    fn new() -> Self {
        WAITING.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Dropped behind a descriptor: who waits for one tries again. Missing somebody who is just beginning to wait costs that one
/// no more than its pause.
pub(crate) struct Freed;

impl Drop for Freed {
    #[inline]
    fn drop(&mut self) {
        if WAITING.load(Ordering::Relaxed) > 0 {
            FREED.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts() {
        let check = |errno: Errno, expected: Verdict| {
            assert_eq!(Verdict::of(&errno.into()), expected, "{errno:?}");
        };
        check(Errno::MFILE, Verdict::Pause);
        check(Errno::NFILE, Verdict::Pause);
        check(Errno::NOBUFS, Verdict::Pause);
        check(Errno::NOMEM, Verdict::Pause);
        check(Errno::CONNABORTED, Verdict::Again);
        check(Errno::HOSTUNREACH, Verdict::Again);
        check(Errno::PERM, Verdict::Again);
        check(Errno::INVAL, Verdict::Fail);
        check(Errno::BADF, Verdict::Fail);
        assert_eq!(Verdict::of(&io::Error::other("")), Verdict::Fail);
    }

    #[test]
    fn pauses_grow_and_end_early() {
        let manual = crate::Clock::manual();
        let builder = crate::Runtime::builder().workers(1).clock(manual.clock());
        let runtime = builder.build().expect("the workers start");
        runtime.block_on(async {
            let mut pauses = Pauses::new();
            for ms in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000] {
                assert_eq!(pauses.next, Duration::from_millis(ms));
                let closed = async { drop(Freed) };
                // The clock stands still, so only the closing ends the wait.
                futures_util::future::join(pauses.wait(), closed).await;
            }
        });
    }
}
