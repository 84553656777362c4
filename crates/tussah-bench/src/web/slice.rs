//! The observations that clients make in a slice.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::metric::Metric;

/// The observations in a slice.
#[derive(Debug)]
pub struct Slice {
    /// The number of responses, all of them correct.
    pub requests: u64,
    /// The time from the start to the last response.
    pub elapsed: Duration,
    /// The number of opened connections.
    pub connects: u64,
    /// Requests whose connection the server closed instead of responding. Their clients connect
    /// again.
    pub failed: u64,
    /// The times from the send, or from the connect, to the end of the response, in nanoseconds.
    pub latency_ns: Histogram<u64>,
}

impl Slice {
    /// Creates an empty slice.
    pub fn new() -> Slice {
        // The range is a microsecond to two minutes, with three digits.
        let latency_ns = Histogram::new_with_bounds(1000, 120_000_000_000, 3);
        Slice {
            requests: 0,
            elapsed: Duration::ZERO,
            connects: 0,
            failed: 0,
            latency_ns: latency_ns.expect("the bounds are in order"),
        }
    }

    /// Returns rare events, which the report lists only if they occur.
    pub fn unusual(&self) -> impl Iterator<Item = Metric> {
        let counts = [
            ("connects / 1000 requests", self.connects),
            ("failed / 1000 requests", self.failed),
        ];
        let requests = self.requests as f64;
        let happened = counts.into_iter().filter(|(_, count)| *count > 0);
        happened.map(move |(unit, count)| Metric::info(unit, 1e3 * count as f64 / requests))
    }
}
