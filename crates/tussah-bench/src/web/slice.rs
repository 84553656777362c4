//! What the clients have seen in a slice.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::metric::Metric;

/// What happened in a slice.
#[derive(Debug)]
pub struct Slice {
    /// Answers, all of them right.
    pub requests: u64,
    /// From its begin to the last answer.
    pub elapsed: Duration,
    /// Connections that were opened.
    pub connects: u64,
    /// Requests whose connection the server ended instead of an answer; their clients connect again.
    pub failed: u64,
    /// From the send, or from the connect, to the end of the answer, in nanoseconds.
    pub latency_ns: Histogram<u64>,
}

impl Slice {
    /// One in which nothing has happened.
    pub fn new() -> Slice {
        // Room for a microsecond to two minutes, at three digits.
        let latency_ns = Histogram::new_with_bounds(1000, 120_000_000_000, 3);
        Slice {
            requests: 0,
            elapsed: Duration::ZERO,
            connects: 0,
            failed: 0,
            latency_ns: latency_ns.expect("the bounds are in order"),
        }
    }

    /// What mostly does not happen, and is told when it does.
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
