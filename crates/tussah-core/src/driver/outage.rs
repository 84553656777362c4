//! Kernel failures: transient errors are retried, and any other error ends the process.
//!
//! A worker that can neither wait nor be woken receives no events, yet a process of such workers
//! looks alive. So there are exactly two outcomes. Transient errors (no memory, a busy kernel) are
//! logged once and retried. An error which means that the descriptor no longer exists, or that a
//! filter forbids the call, ends the process with a message.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::io::Errno;

use crate::quietly::quietly;

/// The time that a worker pauses after a failed wait before it asks the kernel again.
pub(crate) const RETRY: Duration = Duration::from_millis(10);

/// Returns whether an error is transient.
pub(crate) fn passes(error: Errno) -> bool {
    matches!(
        error,
        Errno::INTR | Errno::AGAIN | Errno::BUSY | Errno::NOMEM | Errno::NOBUFS
    )
}

/// Aborts the process, because the runtime cannot continue without this call.
#[cold]
pub(crate) fn fatal(call: &str, error: Errno) -> ! {
    let error = io::Error::from(error);
    eprintln!(
        "tussah: {call} failed: {error}; the runtime can't go on without it, so the process aborts \
         (has other code closed a descriptor of the runtime, or does a filter forbid the call?)"
    );
    std::process::abort()
}

/// The state of a call that may fail temporarily. The beginning and the end of each outage are
/// logged.
#[derive(Debug, Default)]
pub(crate) struct Outage(AtomicBool);

impl Outage {
    pub(crate) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Records that the call has failed with a transient error. Any other error aborts the process.
    #[cold]
    pub(crate) fn failed(&self, call: &str, error: Errno) {
        if !passes(error) {
            fatal(call, error);
        }
        self.begin(call, error);
    }

    /// Records that the call has failed on this OS thread, although another OS thread may succeed.
    #[cold]
    pub(crate) fn begin(&self, call: &str, error: Errno) {
        if self.0.swap(true, Ordering::Relaxed) {
            return;
        }
        let error = io::Error::from(error);
        if tracing::dispatcher::has_been_set() {
            // A subscriber is user code.
            quietly(|| {
                tracing::warn!(target: "tussah", %error, "{call} failed; it is tried again until it succeeds");
            });
        } else {
            eprintln!("tussah: {call} failed: {error}; it is tried again until it succeeds");
        }
    }

    /// Records that the call has succeeded.
    #[inline]
    pub(crate) fn is_over(&self, call: &str) {
        if self.0.load(Ordering::Relaxed) {
            self.end(call);
        }
    }

    #[cold]
    fn end(&self, call: &str) {
        self.0.store(false, Ordering::Relaxed);
        quietly(|| tracing::info!(target: "tussah", "{call} succeeds again"));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn transient_errors_table() {
        let check = |error: Errno, expected| assert_eq!(passes(error), expected, "{error}");
        check(Errno::INTR, true);
        check(Errno::AGAIN, true);
        check(Errno::BUSY, true);
        check(Errno::NOMEM, true);
        check(Errno::NOBUFS, true);
        check(Errno::BADF, false);
        check(Errno::INVAL, false);
        check(Errno::PERM, false);
        check(Errno::NOSYS, false);
        check(Errno::FAULT, false);
    }

    #[test]
    fn an_outage_begins_and_ends() {
        let outage = Outage::new();
        for _ in 0..2 {
            outage.failed("a call", Errno::NOMEM);
            outage.failed("a call", Errno::AGAIN);
            assert!(outage.0.load(Ordering::Relaxed));
            outage.is_over("a call");
            outage.is_over("a call");
            assert!(!outage.0.load(Ordering::Relaxed));
        }
    }
}

/// Logs that a descriptor stays registered with a driver. Called without a lock: a subscriber is
/// foreign code.
pub(super) fn log_removal(removed: Result<(), Errno>) {
    if let Err(error) = removed {
        quietly(|| {
            tracing::warn!(target: "tussah", %error, "a descriptor stays registered with epoll");
        });
    }
}
