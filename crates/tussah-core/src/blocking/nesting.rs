//! The number of blocking jobs on this OS thread's stack.

use std::cell::Cell;

use crate::color::held::may_wait;

/// Bound, in jobs: the maximum number nested on one stack, so that each of them can use 32 KiB of
/// the 2 MiB that an OS thread has by default. Further ones run on a separate OS thread.
pub(super) const INLINE_DEPTH_MAX: usize = 64;

/// Bound, in OS threads per pool: the most that run jobs nested too deeply for one stack, enough
/// for 4,096 nested joins. Deeper nesting counts as runaway recursion, and its join returns an
/// error.
pub(super) const EXTRA_STACKS_MAX: usize = 64;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Returns the number of blocking jobs, of any pools, on this OS thread's stack.
pub(super) fn depth() -> usize {
    DEPTH.get()
}

/// Returns whether the caller runs inside a job, where it may block if it has no color.
pub(crate) fn in_job() -> bool {
    depth() > 0 && may_wait()
}

/// Runs `f` as one more job on this stack.
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
