//! How many blocking jobs lie on this OS thread's stack.

use std::cell::Cell;

use crate::color::held::may_wait;

/// Bound, in jobs on one stack: leaves each of them 32 KiB of the 2 MiB that an OS thread has by default.
pub(super) const INLINE_DEPTH_MAX: usize = 64;

/// Bound, in OS threads per pool: carries 4,096 nested joins; deeper ones are taken for a runaway recursion.
pub(super) const EXTRA_STACKS_MAX: usize = 64;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// The number of blocking jobs, of whichever pools, that this OS thread is inside of.
pub(super) fn depth() -> usize {
    DEPTH.get()
}

/// Whether the caller runs inside of a job, where it may block, unless it has a color.
pub(crate) fn in_job() -> bool {
    depth() > 0 && may_wait()
}

/// Runs `f` as one job more on this stack.
pub(super) fn deeper(f: impl FnOnce()) {
    struct Restore(usize);
    impl Drop for Restore {
        fn drop(&mut self) {
            DEPTH.set(self.0);
        }
    }
    let restore = Restore(DEPTH.get());
    DEPTH.set(restore.0 + 1);
    f();
}
