//! Detection of OS threads that must not block because they hold a color or are workers.
//!
//! No user code waits while it holds a color, so calls that would block the OS thread panic in
//! these places. An event holds both its color and its worker. An OS thread that is not a worker
//! holds a color inside a closure that entered inline (for one color, for several, or for reading).
//! It also holds a color while a runtime's shutdown drops queued events.

use std::cell::Cell;

use crate::worker::Worker;

crate::loom::thread_local! {
    /// Number of entries that this OS thread is currently in. Not counted on workers.
    static ENTRIES: Cell<usize> = const { Cell::new(0) };
}

/// Marks an OS thread that is not a worker as holding a color, until dropped.
pub(crate) struct Outside(());

impl Outside {
    /// Records the entry unless it is made by a worker, which needs no record.
    #[inline]
    pub(crate) fn enter(worker: Option<&Worker>) -> Option<Self> {
        worker.is_none().then(|| {
            add(1);
            Self(())
        })
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        add(-1);
    }
}

fn add(entries: isize) {
    // The local has no destructor, so it remains accessible while the OS thread is torn down.
    let _ = ENTRIES.try_with(|held| held.set(held.get().wrapping_add_signed(entries)));
}

/// Returns whether this OS thread holds a color without being a worker.
fn is_held() -> bool {
    ENTRIES.try_with(Cell::get).is_ok_and(|entries| entries > 0)
}

/// Returns whether this OS thread may block: it is not a worker and holds no color.
pub(crate) fn may_wait() -> bool {
    !Worker::is_here() && !is_held()
}

/// Panics if this OS thread must not block. `what` names the call it was about to make.
///
/// # Panics
/// If this OS thread is a worker or holds a color.
#[track_caller]
pub(crate) fn assert_may_wait(what: &str) {
    assert!(
        !Worker::is_here(),
        "{what} inside an event: it would hold the worker; await instead"
    );
    assert!(
        !is_held(),
        "{what} inside a closure that has entered a color can deadlock: what it waits for may need that color; \
         wait before the closure or after it"
    );
}
