//! What the kernel refuses although it should not: what passes is tried again, anything else ends the process.
//!
//! A worker that can neither wait nor be woken is deaf, and a process of deaf workers looks alive. So there are two outcomes
//! and no third: errors that pass by themselves (no memory, a busy kernel) are logged once and retried, and errors that mean that
//! the descriptor is gone, or that a filter forbids the call, end the process with a message.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::io::Errno;

/// How long a worker waits before it asks a kernel again that could not wait for it.
pub(crate) const RETRY: Duration = Duration::from_millis(10);

/// Whether an error passes by itself.
pub(crate) fn passes(error: Errno) -> bool {
    matches!(
        error,
        Errno::INTR | Errno::AGAIN | Errno::BUSY | Errno::NOMEM | Errno::NOBUFS
    )
}

/// Ends the process, since the runtime can't go on without this call.
#[cold]
pub(crate) fn fatal(call: &str, error: Errno) -> ! {
    let error = std::io::Error::from(error);
    eprintln!(
        "tussah: {call} failed: {error}; the runtime can't go on without it, so the process aborts \
         (has other code closed a descriptor of the runtime, or does a filter forbid the call?)"
    );
    std::process::abort()
}

/// A call that fails for the moment; logged when that begins and when it ends.
#[derive(Debug, Default)]
pub(crate) struct Outage(AtomicBool);

impl Outage {
    pub(crate) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// The call has failed, with an error that passes. Ends the process if it does not.
    #[cold]
    pub(crate) fn failed(&self, call: &str, error: Errno) {
        if !passes(error) {
            fatal(call, error);
        }
        self.begin(call, error);
    }

    /// The call has failed, and another OS thread may succeed.
    #[cold]
    pub(crate) fn begin(&self, call: &str, error: Errno) {
        if self.0.swap(true, Ordering::Relaxed) {
            return;
        }
        let error = std::io::Error::from(error);
        if tracing::dispatcher::has_been_set() {
            tracing::warn!(target: "tussah", %error, "{call} failed; it is tried again until it succeeds");
        } else {
            eprintln!("tussah: {call} failed: {error}; it is tried again until it succeeds");
        }
    }

    /// The call has succeeded.
    #[inline]
    pub(crate) fn is_over(&self, call: &str) {
        if self.0.load(Ordering::Relaxed) {
            self.end(call);
        }
    }

    #[cold]
    fn end(&self, call: &str) {
        self.0.store(false, Ordering::Relaxed);
        tracing::info!(target: "tussah", "{call} succeeds again");
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_passes_table() {
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
