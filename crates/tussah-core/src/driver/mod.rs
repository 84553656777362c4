//! Drivers: what a worker waits on, and how descriptors and threads come together.
//!
//! Sockets and pipes work by readiness. An operation is first tried; if it would block, its thread waits in the **slot** of
//! the descriptor (`slot.rs`) until the **driver** of some worker (`epoll.rs`) says that trying again may help. Descriptors
//! are registered when somebody waits for the first time, edge-triggered and for both directions, with the worker that runs
//! the thread then, and stay registered. What a driver reports is posted where the thread's color lives.
//!
//! # The contract of a driver
//!
//! - `wait` is where a worker sleeps once it has a driver. It returns when something was reported, when the time is up, and
//!   after `wake`; also for no reason. What it reports is dispatched by the caller, when it counts as awake again.
//! - Whoever waits gives its own buffer, so there is no lock: a peer may serve the driver of a worker that is held.
//! - An edge is reported once, to one of those who wait.
//! - It fails only for the moment, as `outage.rs` has it: then it reports nothing, and what there is to report stays with the kernel.
//!
//! # Why no edge is lost
//!
//! All changes of a slot are made under its lock. An operation reads the slot's state word, is tried, and says
//! `EAGAIN`; only then does its thread take the lock to wait. If the word has changed since it was read, something was
//! reported meanwhile, and the operation is tried again. Else the direction is marked as not ready, and the waker
//! stored, under the same hold of the lock; a report that comes later finds it there. What happened before the descriptor was
//! registered is reported by the registration itself, which tells what is ready at that moment (epoll_ctl(2),
//! `EPOLL_CTL_ADD`); this also holds for a descriptor that moves to another worker, since it is registered there before it is
//! removed here. A reading that came short says that nothing more is there now, which marks the direction as not ready by the same
//! rule: not if the word has changed, and not once the peer has closed, which is reported only once.

mod epoll;
pub mod file;
pub(crate) mod outage;
mod report;
mod slot;
mod source;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use epoll::{Driver, Events, Report};
pub use report::DriverReport;
pub use slot::Direction;
pub(crate) use slot::Late;
pub use source::{Io, Marker, Source, spend_bytes};
pub(crate) use table::Sources;
