//! The handling of accept errors: retry, wait until the system has resources again, or give up.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use tussah_core::Notify;

use crate::time::{now, timeout};

/// The first pause when the system has no descriptor or memory left. Each further pause is twice as
/// long.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// Bound, in milliseconds: the longest pause of a listener that lacks descriptors or memory, so
/// that resources freed by other processes are soon noticed.
const PAUSE_MS_MAX: u64 = 1000;

/// The meaning of an accept error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// That connection has failed; the next one may succeed.
    Again,
    /// The process or the system has no descriptor or memory left; the connection stays queued.
    Pause,
    /// The listener cannot accept.
    Fail,
}

impl Verdict {
    pub(crate) fn of(error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Self::Pause,
            // On Linux, `accept` reports pending network errors of the new connection and expects
            // to be retried: accept(2), "Error handling". `PERM` means that firewall rules forbid
            // the connection.
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

/// The pauses of one `accept`.
pub(crate) struct Pauses {
    next: Duration,
}

impl Pauses {
    pub(crate) fn new() -> Self {
        Self { next: PAUSE_MIN }
    }

    /// Pauses like [`wait`](Self::wait), and logs the error on the first pause.
    pub(crate) async fn wait_for_room(&mut self, error: &io::Error) {
        if self.next == PAUSE_MIN {
            log_exhaustion(error);
        }
        self.wait().await;
    }

    /// Waits for a while, or until a stream of this process is closed.
    pub(crate) async fn wait(&mut self) {
        let freed = FREED.notified();
        let _waiting = Waiting::new();
        // Whichever comes first, another attempt is worthwhile.
        let _ = timeout(self.next, freed).await;
        self.next = (self.next * 2).min(Duration::from_millis(PAUSE_MS_MAX));
    }
}

/// Bound, in seconds: the minimum time between two log messages about exhausted resources.
const LOG_INTERVAL_S: u64 = 10;

/// The time of the last log message.
static LAST_LOGGED: Mutex<Option<Instant>> = Mutex::new(None);

/// Logs that connections cannot be accepted, at most once in `LOG_INTERVAL_S` seconds. A process
/// that is barely out of descriptors would otherwise log this for each connection.
#[cold]
fn log_exhaustion(error: &io::Error) {
    let now = now();
    let mut last = LAST_LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_known =
        last.is_some_and(|last| now.saturating_duration_since(last).as_secs() < LOG_INTERVAL_S);
    if !is_known {
        *last = Some(now);
        tracing::warn!(target: "tussah", "cannot accept connections, waiting for a free descriptor or memory: {error}");
    }
}

/// Notified when a stream is closed, if any thread waits for that. It is process-wide, since
/// descriptors are.
static FREED: Notify = Notify::new();

/// The number of waiting threads.
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

/// Dropped after a descriptor, to wake the threads that wait for one. A thread that is just
/// starting to wait may miss this; it then waits at most for its pause.
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
