//! The due times of a client's requests.

use fastrand::Rng;

/// The due times of requests, in nanoseconds of the run's clock.
#[derive(Clone, Debug)]
pub(in crate::load) enum Pace {
    /// Closed loop: a pause after the last response.
    Closed { think_ns: u64 },
    /// Open loop: even intervals, whatever happened to earlier requests.
    Open {
        next_ns: u64,
        every_ns: f64,
        /// The remainder from rounding the times.
        rest_ns: f64,
    },
}

impl Pace {
    /// Returns the pace of client `number` of `clients` that begin at `start_ns` and together send
    /// `rate` requests per second.
    pub(in crate::load) fn open(rate: f64, number: usize, clients: usize, start_ns: u64) -> Self {
        let first_ns = number as f64 / rate * 1e9;
        Self::Open {
            next_ns: start_ns + first_ns as u64,
            every_ns: clients as f64 / rate * 1e9,
            rest_ns: 0.0,
        }
    }

    /// Returns the due time of the first request. Clients that pause begin at a random time within
    /// a pause, so that they do not all begin at the same time.
    pub(in crate::load) fn first(&mut self, start_ns: u64, random: &mut Rng) -> u64 {
        match self {
            Self::Closed { think_ns } => start_ns + (*think_ns as f64 * random.f64()) as u64,
            Self::Open { .. } => self.after(start_ns),
        }
    }

    /// Returns the due time of the request after a response.
    pub(in crate::load) fn after(&mut self, answered_ns: u64) -> u64 {
        match self {
            Self::Closed { think_ns } => answered_ns + *think_ns,
            Self::Open {
                next_ns,
                every_ns,
                rest_ns,
            } => {
                let due_ns = *next_ns;
                let step = *every_ns + *rest_ns;
                *next_ns += step as u64;
                *rest_ns = step.fract();
                due_ns
            }
        }
    }

    /// Returns the due time of another request to send together with the current one: in an open
    /// loop a request that is also due, in a closed loop any request.
    pub(in crate::load) fn another(&mut self, due_ns: u64, now_ns: u64) -> Option<u64> {
        match self {
            Self::Closed { .. } => Some(due_ns),
            Self::Open { next_ns, .. } if *next_ns <= now_ns => Some(self.after(now_ns)),
            Self::Open { .. } => None,
        }
    }

    /// Returns the number of requests that were due by a given time but not taken, and the due time
    /// of the oldest one.
    pub(in crate::load) fn missed(&self, by_ns: u64) -> (u64, Option<u64>) {
        match self {
            Self::Open {
                next_ns, every_ns, ..
            } if *next_ns < by_ns => {
                let count = ((by_ns - next_ns) as f64 / every_ns) as u64 + 1;
                (count, Some(*next_ns))
            }
            _ => (0, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_loops_are_even() {
        // 300 per second by 3 clients: each every 10 ms, 3.3 ms apart.
        let mut due = Vec::new();
        for number in 0..3 {
            let mut pace = Pace::open(300.0, number, 3, 1_000);
            due.extend((0..100).map(|_| pace.after(0)));
        }
        due.sort_unstable();
        for (at, due_ns) in due.into_iter().enumerate() {
            let expected = 1_000.0 + at as f64 / 300.0 * 1e9;
            assert!((due_ns as f64 - expected).abs() <= 2.0, "{at}: {due_ns}");
        }
    }

    #[test]
    fn overdue_requests_are_sent_together() {
        let mut pace = Pace::open(100.0, 0, 1, 0);
        let due = pace.after(0);
        let now = 25_000_000;
        assert_eq!(due, 0);
        assert_eq!(pace.missed(now), (2, Some(10_000_000)));
        assert_eq!(pace.another(due, now), Some(10_000_000));
        assert_eq!(pace.another(due, now), Some(20_000_000));
        assert_eq!(pace.another(due, now), None);
        assert_eq!(pace.missed(now), (0, None));
    }

    #[test]
    fn closed_loops_think() {
        let mut pace = Pace::Closed { think_ns: 20 };
        assert_eq!(pace.after(100), 120);
        assert_eq!(pace.another(120, 130), Some(120));
        assert_eq!(pace.missed(u64::MAX), (0, None));
        let first = pace.first(100, &mut Rng::with_seed(3));
        assert!((100..120).contains(&first));
    }
}
