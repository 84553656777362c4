//! Sending: senders and edges, the events that they collect, and waiting for room.

mod ask;
mod call;
mod direct;
mod edges;
pub(crate) mod here;
pub(crate) mod outgoing;
mod proxy;
mod room;
mod sender;

pub use self::ask::{Ask, AskError, ReplySender};
pub use self::call::{AnyCall, Call, CallError};
pub use self::direct::{Direct, DirectHandler, DirectHost, Directly};
pub use self::edges::{EdgeBuilder, Edges};
pub use self::proxy::Between;
pub use self::sender::{SendError, Sender, Sending, TrySender, shed};

pub(crate) use self::call::Counted;
pub(crate) use self::here::{
    begin, begin_source, blocking, collecting, hand_over, is_quick, note_permit, note_wait, path,
    set_path, set_trace, take_noted_permit, take_noted_wait, trace, wait_for, waiting,
};
pub(crate) use self::outgoing::Outgoing;
pub(crate) use self::proxy::Route;
