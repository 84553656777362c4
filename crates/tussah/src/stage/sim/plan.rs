//! The arrivals of a simulation and their service times.

use super::{Arrivals, Distribution, Random, Service};
use crate::stage::event::{CLASSES_MAX, Class};

/// A planned arrival of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Planned {
    /// The position of the event in arrival order, counted from 1.
    pub number: u64,
    /// The time at which the event arrives, in nanoseconds since the start of the run.
    pub at_ns: u64,
    /// The class of the event.
    pub class: Class,
    /// The number of the user who sends the event.
    pub user: u16,
    /// The CPU time of the handler for this event, in nanoseconds.
    pub compute_ns: u64,
    /// The waiting time of the handler for this event, in nanoseconds.
    pub wait_ns: u64,
    /// The time for which the handler holds a permit for this event, after the CPU time and before
    /// the waiting time, in nanoseconds.
    pub hold_ns: u64,
    /// The additional CPU time of a batch that begins with this event, in nanoseconds.
    pub batch_ns: u64,
    /// True if the event is hot: hot events are handled one at a time.
    pub hot: bool,
    /// True if the event fails.
    pub fails: bool,
    /// True if a client in a closed loop sent the event.
    pub client: bool,
}

/// An iterator over the planned arrivals of a simulation, in order of time.
#[derive(Clone, Debug)]
pub struct Schedule<'a> {
    arrivals: &'a Arrivals,
    services: &'a [(u64, Service)],
    until_ns: u64,
    random: Random,
    now_ns: f64,
    burst: usize,
    /// The number of events of the current burst that have yet to arrive.
    left: u32,
    drawn: u64,
}

/// Returns the entry in force at this time and the index of the next entry. Entries are sorted by
/// the time from which they apply.
fn at<T: Copy>(sorted: &[(u64, T)], now_ns: f64) -> (Option<T>, usize) {
    let next = sorted.partition_point(|(since_ns, _)| *since_ns as f64 <= now_ns);
    (next.checked_sub(1).map(|at| sorted[at].1), next)
}

impl<'a> Schedule<'a> {
    pub(super) fn new(
        arrivals: &'a Arrivals,
        services: &'a [(u64, Service)],
        until_ns: u64,
        seed: u64,
    ) -> Self {
        Self {
            arrivals,
            services,
            until_ns,
            random: Random::new(seed),
            now_ns: 0.0,
            burst: 0,
            left: 0,
            drawn: 0,
        }
    }

    /// Returns the time of the next arrival that is not part of a burst; infinity if there is none.
    fn alone_ns(&mut self) -> f64 {
        let rates = &self.arrivals.rates;
        let mut from_ns = self.now_ns;
        // The remainder of an exponential time is exponential, so it can be drawn again when the
        // rate changes.
        loop {
            let (per_second, next) = at(rates, from_ns);
            let per_second = per_second.unwrap_or(0.0);
            let until_ns = rates.get(next).map_or(f64::INFINITY, |r| r.0 as f64);
            let gap_ns = if per_second > 0.0 {
                self.random.exponential() * 1e9 / per_second
            } else {
                f64::INFINITY
            };
            if from_ns + gap_ns < until_ns {
                return from_ns + gap_ns;
            }
            if until_ns == f64::INFINITY {
                return f64::INFINITY;
            }
            from_ns = until_ns;
        }
    }

    fn draw(&mut self) -> Planned {
        let Self {
            arrivals, random, ..
        } = self;
        let nothing = Service::computing(Distribution::Constant(0.0));
        let service = at(self.services, self.now_ns).0.unwrap_or(nothing);
        let sum: f64 = arrivals.classes.iter().take(CLASSES_MAX).sum();
        let mut place = random.unit() * sum;
        let class = arrivals.classes.iter().position(|weight| {
            place -= weight;
            place < 0.0
        });
        let user = (random.next() % u64::from(arrivals.users.max(1))) as u16;
        let compute_ns = service.compute.draw(random);
        let fails = random.unit() < service.fail_share;
        let hot = random.unit() < service.hot_share;
        let waits = random.unit() < service.wait_share;
        let wait_ns = service.wait.draw(random);
        let hold_ns = service.hold.draw(random);
        self.drawn += 1;
        Planned {
            number: self.drawn,
            at_ns: self.now_ns as u64,
            class: Class(class.unwrap_or(0) as u8),
            user,
            compute_ns,
            wait_ns: match (fails, waits) {
                (true, _) => service.timeout_ns,
                (false, true) => wait_ns,
                (false, false) => 0,
            },
            hold_ns,
            batch_ns: service.batch_ns,
            hot,
            fails,
            client: false,
        }
    }

    /// Draws an event that a client sends at `now_ns`. `now_ns` must not decrease between calls.
    pub fn client(&mut self, now_ns: u64) -> Planned {
        self.now_ns = now_ns as f64;
        Planned {
            client: true,
            ..self.draw()
        }
    }
}

impl Iterator for Schedule<'_> {
    type Item = Planned;

    fn next(&mut self) -> Option<Planned> {
        if self.left > 0 {
            self.left -= 1;
            return Some(self.draw());
        }
        let alone_ns = self.alone_ns();
        let bursts = &self.arrivals.bursts;
        let burst_ns = bursts.get(self.burst).map_or(f64::INFINITY, |b| b.0 as f64);
        self.now_ns = alone_ns.min(burst_ns);
        if self.now_ns >= self.until_ns as f64 {
            return None;
        }
        if burst_ns <= alone_ns {
            self.left = bursts[self.burst].1;
            self.burst += 1;
            return self.next();
        }
        Some(self.draw())
    }
}
