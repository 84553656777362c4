//! Stages: handlers behind finite queues, with controllers that keep each in its operating range under any load.

mod account;
mod batch;
mod blocking;
mod builder;
mod call;
pub mod control;
mod digest;
mod edges;
mod error;
mod event;
mod handle;
mod handler;
mod host;
mod install;
mod lifecycle;
mod network;
mod outgoing;
mod process;
mod queue;
mod restarts;
mod sender;
mod servlet;
mod shared;
pub mod sim;
mod state;
mod stats;
mod turn;

pub use batch::Batch;
pub use builder::Builder;
pub use call::{AnyCall, Call, CallError};
pub use edges::{Edges, To};
pub use error::BuildError;
pub use event::{CLASSES_MAX, Class, Event, Reason};
pub use handle::{Any, Stage};
pub use handler::{Handler, SerialHandler};
pub use host::{Host, Many, One};
pub use install::Declared;
pub use network::{Edge, EdgeKind, Network};
pub use restarts::Restarts;
pub use sender::{Offerer, SendError, Sender, Sending, Why, shed};
pub use stats::{Responses, StageStats};

/// Calls foreign code that must not take anybody along: a panic in it ends here.
pub(crate) fn quietly(f: impl FnOnce()) {
    // The panic hook has told of it; there is nobody else to tell.
    drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)));
}
