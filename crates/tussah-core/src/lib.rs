//! The mechanisms of tussah: events, colors, workers, stealing, parking, threads and timers.
//!
//! Applications should depend on the `tussah` crate instead of this one. This crate contains all of
//! tussah's `unsafe` code.

pub mod blocking;
mod color;
pub mod colored;
#[cfg_attr(loom, path = "driver/model.rs")]
mod driver;
mod event;
pub mod heap;
mod join_error;
mod loom;
mod named;
mod per_worker;
mod policy;
mod prefetch;
mod queue;
mod quietly;
mod runtime;
mod slab;
mod stats;
mod thread;
pub mod time;
mod tiny_waker;
mod wait;
mod watchdog;
mod worker;
mod world;

pub use blocking::{
    BlockingHandle, BlockingPool, BlockingStats, PoolPolicy, ShutdownOutcome, SubmitError,
};
pub use color::{Color, ColorName, ColorRef};
pub use colored::{Colored, with_all};
/// I/O on file descriptors: readiness and the operations built on it.
#[cfg(not(loom))]
pub mod io {
    pub use crate::driver::{Direction, Hangup, Io, Marker, Source, spend_bytes};
}

#[cfg(not(loom))]
pub use driver::DriverReport;
#[cfg(not(loom))]
pub use driver::file;
pub use driver::file::FileDriver;
pub use event::DropReason;
pub use join_error::JoinError;
pub use per_worker::{PerWorker, PerWorkerGuard};
pub use policy::{CANDIDATES_MAX, Candidate, PASSED_OVER_MAX, Policy, Priorities};
#[doc(hidden)]
pub use quietly::{Guarded, caught, quietly};
pub use runtime::{
    AsColor, Builder, Handle, NoRuntime, PostError, Runtime, ShutdownReport, post, post_in, spawn,
    spawn_in,
};
pub use stats::{ColorStats, Stats, WorkerStats};
#[doc(hidden)]
pub use thread::has_yielded;
pub use thread::{AbortHandle, JoinHandle, YieldNow, consume_budget, yield_now};
pub use wait::{Notified, Notify};
pub use watchdog::Stuck;
#[doc(hidden)]
pub use world::Network;
