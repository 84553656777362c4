//! The options of a video server.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::units;

/// The options of a video server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The directory that contains the videos.
    pub root: PathBuf,
    /// The address to listen on; port 0 selects a free port.
    pub listen: SocketAddr,
    /// The disks that hold parts of the directory. Files outside the directories of the listed
    /// disks belong to the disk that contains `root`.
    pub disks: Vec<DiskOptions>,
    /// The rate of videos whose files do not state one, in bytes per second; at least 1,000.
    pub rate: u64,
    /// The length of the part of a video that is sent immediately.
    pub ahead: Duration,
    /// The playing time of each chunk that the server sends after the first part of a video, and
    /// also the time between two chunks. The value of `chunk` must be greater than zero, and at
    /// most `ahead`.
    pub chunk: Duration,
    /// Bound, in streams: the maximum number of simultaneous streams per client address; a further
    /// request gets status 429.
    pub each: usize,
    /// Bound, in connections: the maximum number of connections that are open at the same time. The
    /// value must be between 1 and 1,000,000.
    pub connections: usize,
    /// The time after which the server disconnects a client that reads nothing.
    pub patience: Duration,
    /// The time for which streams may continue when the server shuts down.
    pub drain: Duration,
    /// The number of workers; `None` means one per CPU.
    pub workers: Option<usize>,
    /// True to limit each disk to its rate, so that a measurement can use a single fast disk in
    /// place of several.
    pub simulate_disks: bool,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// A directory on the disk, inside [`Options::root`]. A relative path is relative to `root`.
    pub path: PathBuf,
    /// The rate at which the disk reads chunks, in bytes per second; `None` means that the server
    /// measures the rate when it starts.
    pub rate: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            root: ".".into(),
            listen: ([127, 0, 0, 1], 8080).into(),
            disks: Vec::new(),
            rate: 1_000_000,
            ahead: Duration::from_secs(60),
            chunk: Duration::from_secs(5),
            each: 16,
            connections: 10_000,
            patience: Duration::from_secs(30),
            drain: Duration::from_secs(30),
            workers: None,
            simulate_disks: false,
        }
    }
}

/// The error for a string that is not a valid rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateError(String);

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "expected a rate such as 800kbit/s, 1.5Mbit/s or 80MB/s, not `{}`",
            self.0.trim().escape_debug()
        )
    }
}

impl std::error::Error for RateError {}

/// Parses a rate, and returns it in bytes per second. The result is at least 1,000. The unit is
/// `bit`, `kbit`, `Mbit`, `Gbit` or a unit of size such as `MB`, each followed by `/s`.
///
/// # Errors
/// Returns an error if the string is not a valid rate, or if the rate is less than 8 kbit/s.
///
/// ```
/// use tussah_services::video::read_rate;
///
/// assert_eq!(read_rate("1Mbit/s"), Ok(125_000));
/// assert_eq!(read_rate("80 MB/s"), Ok(80_000_000));
/// assert!(read_rate("80 Mb/s").is_err());
/// ```
pub fn read_rate(text: &str) -> Result<u64, RateError> {
    let size = || {
        let text = text.trim().strip_suffix("/s")?;
        match text.strip_suffix("bit") {
            // `1.5M` of 1.5Mbit is read as 1.5MB, and is eight times as much.
            Some(bits) => {
                let bytes = units::read_size(&format!("{bits}B"))?;
                Some(bytes / 8)
            }
            // `Mb` could mean either.
            None if text.ends_with('b') => None,
            None => units::read_size(text),
        }
    };
    let rate = size().filter(|rate| *rate >= RATE_MIN);
    rate.ok_or_else(|| RateError(text.to_owned()))
}

/// The smallest rate of a video, in bytes per second.
pub(super) const RATE_MIN: u64 = 1_000;

/// Formats a rate in bits per second, with three digits.
pub(super) fn show_rate(bytes_per_second: u64) -> String {
    let bits = 8.0 * bytes_per_second as f64;
    let (value, unit) = match bits {
        0.0 => return "0 bit/s".to_owned(),
        bits if bits < 1e6 => (bits / 1e3, "kbit/s"),
        bits if bits < 1e9 => (bits / 1e6, "Mbit/s"),
        bits => (bits / 1e9, "Gbit/s"),
    };
    let digits = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_shown() {
        let check = |text: &str, rate: Option<u64>, shown: &str| {
            assert_eq!(read_rate(text).ok(), rate, "{text}");
            assert_eq!(rate.map(show_rate).unwrap_or_default(), shown);
        };
        check("1Mbit/s", Some(125_000), "1.00 Mbit/s");
        check(" 1.5 Mbit/s ", Some(187_500), "1.50 Mbit/s");
        check("800kbit/s", Some(100_000), "800 kbit/s");
        check("8000bit/s", Some(1_000), "8.00 kbit/s");
        check("1Gbit/s", Some(125_000_000), "1.00 Gbit/s");
        check("80MB/s", Some(80_000_000), "640 Mbit/s");
        assert_eq!(show_rate(0), "0 bit/s");
        check("1MiB/s", Some(1 << 20), "8.39 Mbit/s");
        for text in [
            "",
            "1",
            "1/s",
            "1Mbit",
            "1Mb/s",
            "1Mbps",
            "-1MB/s",
            "7999bit/s",
            "0MB/s",
        ] {
            check(text, None, "");
        }
    }
}
