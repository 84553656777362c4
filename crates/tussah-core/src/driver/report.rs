//! What a runtime's drivers are.

use std::fmt;

use super::file::Files;

/// What a runtime waits on, and which way its files go, with why: made to be printed or logged.
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
}

impl DriverReport {
    pub(crate) fn new(files: &Files) -> Self {
        let files = files.clone();
        Self { files }
    }

    /// Whether files go through io_uring, and not through the blocking pool.
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
