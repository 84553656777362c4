//! Statistics of a runtime.

mod profile;
mod report;
mod running;

pub use report::{ColorStats, Stats, WorkerStats};

pub(crate) use profile::Profile;
pub(crate) use running::{Running, Site};
