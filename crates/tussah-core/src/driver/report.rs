//! A description of a runtime's drivers.

use std::fmt;

use super::file::Files;
use crate::runtime::Shared;

/// A printable report on a runtime's drivers. The report also states whether file operations use
/// io_uring or the blocking pool, and why.
///
/// # Examples
/// ```
/// # let runtime = tussah_core::Runtime::builder().workers(1).build()?;
/// let report = runtime.driver();
/// println!("{report}"); // "sockets: epoll; files: io_uring"
/// assert!(report.to_string().contains("files: "));
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug)]
pub struct DriverReport {
    files: Files,
    in_flight: usize,
}

impl DriverReport {
    pub(crate) fn new(shared: &Shared) -> Self {
        let rings = (0..shared.places()).filter_map(|place| shared.place(place).files.get());
        Self {
            files: shared.world.files.clone(),
            in_flight: rings.map(|ring| ring.in_flight()).sum(),
        }
    }

    /// Returns the number of io_uring file operations that are in flight in the kernel.
    #[must_use]
    pub fn files_in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns whether file operations use io_uring instead of the blocking pool.
    #[must_use]
    pub fn files_by_io_uring(&self) -> bool {
        matches!(self.files, Files::IoUring(_))
    }
}

impl fmt::Display for DriverReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sockets: epoll; files: {}", self.files)
    }
}
