//! Catching panics in user code that has no caller to receive them: destructors, wakers, callbacks,
//! policies.

use std::any::Any;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `f` and catches any panic. The panic's payload is dropped; the panic hook has already run.
///
/// The payload comes from user code, so its destructor may also panic. If the destructor panics,
/// the payload of this second panic is leaked, because dropping it could cause yet another panic.
pub fn quietly(f: impl FnOnce()) {
    let _ = caught(f);
}

/// Runs `f` and returns its result, or `None` if it panics. The panic's payload is dropped as in
/// [`quietly`].
#[inline]
pub fn caught<R>(f: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => Some(result),
        Err(payload) => {
            dispose(payload);
            None
        }
    }
}

/// Runs an OS thread of the runtime, and aborts the process if it panics. The panics of user code
/// are caught before, so the panic is a defect of the runtime. Events would wait forever for a
/// worker that has ended.
pub(crate) fn abort_on_panic(work: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        eprintln!(
            "tussah: an OS thread of the runtime panicked, which is a defect of the runtime; the \
             process aborts"
        );
        std::process::abort();
    }
}

#[cold]
fn dispose(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
}

/// A value from user code that the runtime owns. Panics in the value's destructor are caught.
pub struct Guarded<T>(ManuallyDrop<T>);

impl<T> Guarded<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl<T> Deref for Guarded<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Guarded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        // SAFETY: the value is dropped once, here. Test: `each_value_is_dropped_once`.
        quietly(|| unsafe { ManuallyDrop::drop(&mut self.0) });
    }
}

impl<T> fmt::Debug for Guarded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests {
    use super::*;

    /// Set in the child process that the test below starts.
    const CHILD: &str = "TUSSAH_TEST_PANICKED_WORKER";

    #[test]
    #[cfg_attr(miri, ignore = "it starts a process")]
    fn a_worker_that_panics_ends_the_process() {
        if std::env::var_os(CHILD).is_some() {
            let worker = || abort_on_panic(|| panic!("a defect"));
            let worker = std::thread::Builder::new()
                .spawn(worker)
                .expect("it starts");
            return drop(worker.join());
        }
        let test = "quietly::tests::a_worker_that_panics_ends_the_process";
        aborts_with(test, CHILD, "an OS thread of the runtime panicked");
    }

    /// Runs a test in a child process that has this variable, and checks that the child says this
    /// and fails.
    pub(crate) fn aborts_with(test: &str, variable: &str, message: &str) {
        let this = std::env::current_exe().expect("a test is a program");
        let child = std::process::Command::new(this)
            .args(["--exact", test, "--nocapture"])
            .env(variable, "1")
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&child.stderr);
        assert!(said.contains(message), "{said}");
        assert!(!child.status.success());
    }

    #[test]
    #[cfg_attr(miri, ignore = "it leaks on purpose")]
    fn a_payload_that_panics_when_dropped_is_contained() {
        struct Again;
        impl Drop for Again {
            fn drop(&mut self) {
                panic!("in the destructor of what was thrown");
            }
        }
        let mut ran = false;
        quietly(|| {
            ran = true;
            std::panic::panic_any(Again)
        });
        assert!(ran);
    }

    #[test]
    fn each_value_is_dropped_once() {
        struct Counts<'a>(&'a std::cell::Cell<u32>);
        impl Drop for Counts<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
                std::panic::panic_any(());
            }
        }
        let dropped = std::cell::Cell::new(0);
        // A vector would drop the second value while it unwinds because of the first, and that
        // would abort the process.
        drop(vec![
            Guarded::new(Counts(&dropped)),
            Guarded::new(Counts(&dropped)),
        ]);
        assert_eq!(dropped.get(), 2);
    }
}
