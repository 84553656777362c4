//! Which OS threads must not wait, because they have a color, or a worker.
//!
//! "No user code waits while it holds a color": a call that blocks its OS thread is refused there. An event holds its color and its worker. Outside
//! of the workers an OS thread holds a color inside of a closure that entered inline, be it with one color, with several, or for reading,
//! and where the end of a runtime drops what is queued.

use std::cell::Cell;

use crate::worker::Worker;

crate::loom::thread_local! {
    /// The entries that this OS thread is inside of, where it is no worker.
    static ENTRIES: Cell<usize> = const { Cell::new(0) };
}

/// An OS thread that is no worker has a color, until this is dropped.
pub(crate) struct Outside(());

impl Outside {
    /// Notes the entry of whoever is no worker; those of workers need no note.
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
    // It has no destructor, so it is there while the OS thread is torn down too.
    let _ = ENTRIES.try_with(|held| held.set(held.get().wrapping_add_signed(entries)));
}

/// Whether this OS thread has a color, and no worker.
fn is_held() -> bool {
    ENTRIES.try_with(Cell::get).is_ok_and(|entries| entries > 0)
}

/// Whether this OS thread may wait for others: it has neither a worker nor a color.
pub(crate) fn may_wait() -> bool {
    !Worker::is_here() && !is_held()
}

/// # Panics
/// If this OS thread must not wait. `what` names what it was about to do.
#[track_caller]
pub(crate) fn assert_may_wait(what: &str) {
    assert!(
        !Worker::is_here(),
        "{what} inside an event: it would hold the worker; await instead"
    );
    assert!(
        !is_held(),
        "{what} inside a closure that has entered a color: whoever is waited for may need that color; \
         wait before the closure, or after it"
    );
}
