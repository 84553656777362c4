//! Stages: handlers behind finite queues, with controllers that keep each in its operating range under any load.

mod account;
mod batch;
mod builder;
pub mod control;
mod digest;
mod event;
mod handler;
mod host;
mod outgoing;
mod process;
mod queue;
mod sender;
mod servlet;
mod shared;
pub mod sim;
mod state;

pub use batch::Batch;
#[doc(hidden)]
pub use builder::Proto;
pub use event::{CLASSES_MAX, Class, Event, Reason};
pub use handler::{Handler, SerialHandler};
pub use sender::{SendError, Sender, Why, shed};

/// Calls foreign code that must not take anybody along: a panic in it ends here.
pub(crate) fn quietly(f: impl FnOnce()) {
    // The panic hook has told of it; there is nobody else to tell.
    drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)));
}
