//! Stages: handlers behind finite queues, with controllers that keep each in its operating range under any load.

pub mod control;
mod event;

pub use event::{CLASSES_MAX, Class, Event, Reason};

/// Calls foreign code that must not take anybody along: a panic in it ends here.
pub(crate) fn quietly(f: impl FnOnce()) {
    // The panic hook has told of it; there is nobody else to tell.
    drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)));
}
