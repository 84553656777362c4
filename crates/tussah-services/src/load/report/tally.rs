//! The counts of a run: each worker counts for itself, and the end of the run merges the counts.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::load::run::fault::Fault;

/// Bound, in seconds: longer times are recorded as this value.
const LATENCY_S_MAX: u64 = 3600;

/// Bound, in seconds: the maximum length of the part of a run with a number for each second. Later
/// seconds count only for the whole run.
const SECONDS_MAX: usize = 24 * 3600;

/// The number of statuses from 100 to 999.
const STATUSES: usize = 900;

/// Returns a histogram of times in nanoseconds, exact to three digits.
pub(in crate::load) fn histogram() -> Histogram<u64> {
    let max = Duration::from_secs(LATENCY_S_MAX).as_nanos() as u64;
    Histogram::new_with_bounds(1, max, 3).expect("the bounds are in order")
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::load) enum Outcome {
    /// The request received a complete and correct response.
    Served,
    /// The request was answered with 503.
    Rejected,
    /// The request received no response, or a wrong one.
    Failed(Fault),
}

/// A request that has ended, with times in nanoseconds of the run's clock.
#[derive(Clone, Copy, Debug)]
pub(in crate::load) struct Ended {
    pub(in crate::load) outcome: Outcome,
    /// The status of the answer, if there was one.
    pub(in crate::load) status: Option<u16>,
    pub(in crate::load) bytes: u64,
    /// The due time.
    pub(in crate::load) due_ns: u64,
    /// The start of its latency: the time of sending, or the due time.
    pub(in crate::load) from_ns: u64,
    pub(in crate::load) ended_ns: u64,
    /// True if the request was the first on its connection.
    pub(in crate::load) first: bool,
}

/// The counts of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::load) struct Second {
    pub(in crate::load) served: u64,
    pub(in crate::load) rejected: u64,
    pub(in crate::load) failed: u64,
}

/// The counts.
#[derive(Debug)]
pub(in crate::load) struct Tally {
    /// Latencies of requests on existing connections.
    later: Histogram<u64>,
    /// Latencies of the first requests on their connections, with and without connecting.
    first: Histogram<u64>,
    first_with_connect: Histogram<u64>,
    pub(in crate::load) rejected: Histogram<u64>,
    pub(in crate::load) connect: Histogram<u64>,
    /// Durations of connecting before the measurement.
    pub(in crate::load) connect_before: Histogram<u64>,
    /// Delays of requests whose client was free.
    pub(in crate::load) lag: Histogram<u64>,
    pub(in crate::load) faults: [u64; Fault::ALL.len()],
    pub(in crate::load) statuses: Box<[u64]>,
    pub(in crate::load) bytes: u64,
    pub(in crate::load) seconds: Vec<Second>,
}

impl Tally {
    pub(in crate::load) fn new() -> Self {
        Self {
            later: histogram(),
            first: histogram(),
            first_with_connect: histogram(),
            rejected: histogram(),
            connect: histogram(),
            connect_before: histogram(),
            lag: histogram(),
            faults: [0; Fault::ALL.len()],
            statuses: vec![0; STATUSES].into(),
            bytes: 0,
            seconds: Vec::new(),
        }
    }

    /// Counts a request that ended `since_ns` after the start of the measurement.
    pub(in crate::load) fn count(&mut self, ended: &Ended, since_ns: u64) {
        self.bytes += ended.bytes;
        if let Some(at) = ended.status.and_then(|status| status.checked_sub(100))
            && let Some(count) = self.statuses.get_mut(usize::from(at))
        {
            *count += 1;
        }
        let second = (since_ns / 1_000_000_000) as usize;
        if second >= self.seconds.len() && second < SECONDS_MAX {
            self.seconds.resize(second + 1, Second::default());
        }
        let mut beyond = Second::default();
        let second = self.seconds.get_mut(second).unwrap_or(&mut beyond);
        let latency_ns = ended.ended_ns.saturating_sub(ended.from_ns);
        match ended.outcome {
            Outcome::Served if ended.first => {
                second.served += 1;
                self.first.saturating_record(latency_ns);
                let response_ns = ended.ended_ns.saturating_sub(ended.due_ns);
                self.first_with_connect.saturating_record(response_ns);
            }
            Outcome::Served => {
                second.served += 1;
                self.later.saturating_record(latency_ns);
            }
            Outcome::Rejected => {
                second.rejected += 1;
                self.rejected.saturating_record(latency_ns);
            }
            Outcome::Failed(fault) => {
                second.failed += 1;
                self.faults[fault as usize] += 1;
            }
        }
    }

    /// Adds the counts of another tally.
    pub(in crate::load) fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.later, &other.later),
            (&mut self.first, &other.first),
            (&mut self.first_with_connect, &other.first_with_connect),
            (&mut self.rejected, &other.rejected),
            (&mut self.connect, &other.connect),
            (&mut self.connect_before, &other.connect_before),
            (&mut self.lag, &other.lag),
        ];
        for (to, from) in pairs {
            to.add(from).expect("both have the same bounds");
        }
        let faults = self.faults.iter_mut().zip(&other.faults);
        let statuses = self.statuses.iter_mut().zip(&*other.statuses);
        for (to, from) in faults.chain(statuses) {
            *to += from;
        }
        self.bytes += other.bytes;
        let len = self.seconds.len().max(other.seconds.len());
        self.seconds.resize(len, Second::default());
        for (to, from) in self.seconds.iter_mut().zip(&other.seconds) {
            to.served += from.served;
            to.rejected += from.rejected;
            to.failed += from.failed;
        }
    }

    /// Returns the latencies of all responses, measured from sending.
    pub(in crate::load) fn latency(&self) -> Histogram<u64> {
        sum(&self.later, &self.first)
    }

    /// Returns the latencies of all responses, including connecting: the first request on a
    /// connection is measured from its due time.
    pub(in crate::load) fn response(&self) -> Histogram<u64> {
        sum(&self.later, &self.first_with_connect)
    }

    pub(in crate::load) fn served(&self) -> u64 {
        self.later.len() + self.first.len()
    }

    pub(in crate::load) fn failed(&self) -> u64 {
        self.faults.iter().sum()
    }
}

fn sum(one: &Histogram<u64>, other: &Histogram<u64>) -> Histogram<u64> {
    let mut sum = one.clone();
    sum.add(other).expect("both have the same bounds");
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(outcome: Outcome, first: bool) -> Ended {
        Ended {
            outcome,
            status: Some(200),
            bytes: 10,
            due_ns: 1_000,
            from_ns: 3_000,
            ended_ns: 8_000,
            first,
        }
    }

    #[test]
    fn counts_and_adds() {
        let mut one = Tally::new();
        one.count(&ended(Outcome::Served, true), 0);
        one.count(&ended(Outcome::Served, false), 2_500_000_000);
        let mut other = Tally::new();
        other.count(&ended(Outcome::Rejected, false), 1_000_000_000);
        other.count(&ended(Outcome::Failed(Fault::Reset), false), 0);
        one.add(&other);
        assert_eq!((one.served(), one.rejected.len(), one.failed()), (2, 1, 1));
        assert_eq!(one.faults[Fault::Reset as usize], 1);
        assert_eq!((one.bytes, one.statuses[100]), (40, 4));
        let seconds = one.seconds.iter();
        let seconds = seconds.map(|s| (s.served, s.rejected, s.failed));
        assert_eq!(
            seconds.collect::<Vec<_>>(),
            [(1, 0, 1), (0, 1, 0), (1, 0, 0)]
        );
        // The first request on a connection is measured from its sending in one, and from its due
        // time in the other.
        let (latency, response) = (one.latency(), one.response());
        assert!(latency.equivalent(latency.max(), 5_000));
        assert!(response.equivalent(response.max(), 7_000));
        assert!(response.equivalent(response.min(), 5_000));
    }

    #[test]
    fn times_above_the_maximum_count_as_the_maximum() {
        let mut tally = Tally::new();
        let late = Ended {
            ended_ns: u64::MAX,
            ..ended(Outcome::Served, false)
        };
        tally.count(&late, u64::MAX);
        assert_eq!(tally.served(), 1);
        assert!(tally.seconds.is_empty());
    }
}
