//! The load of a stage: tests of whether more events are offered than the stage can handle.
//!
//! Each test is a sequential test of two hypotheses about the arrival rate, based on the sum of
//! log-likelihood ratios: Page, "Continuous inspection schemes" (Biometrika 1954). One test detects
//! a load that is far too high. Another one detects a load that the stage can just handle while
//! waits are long, as in a closed loop.
//!
//! Arrivals in clumps are weaker evidence than the same number of single arrivals, so the threshold
//! grows with their dispersion. The dispersion is measured over short periods and over longer ones,
//! in which regular clumps average out; the smaller value counts. If the queue is empty and a
//! servlet is idle, there is no overload, whatever the sums are. An underestimated capacity
//! therefore does no harm.

mod dispersion;

use self::dispersion::Dispersion;
use super::super::Sample;
use super::capacity::Capacity;

/// The loads between which the test for a rise distinguishes. It finds a load of 1.4 after about
/// 160 services.
const RISE: (f64, f64) = (0.8, 1.4);

/// The sum at which the load is considered to have risen: by chance, this happens less than once in
/// 10^9 arrivals at a load of 0.8.
const RISE_SUM: f64 = 22.0;

/// The loads between which the test for a standing queue distinguishes: a queue that neither grows
/// nor shrinks, as in a closed loop. The events queued when waits become long count as if they had
/// just arrived, up to this number, because a burst of any length may still drain. A burst that
/// precedes a load of 0.8 is mistaken for a standing queue less than once in 40 times.
const STAND: (f64, f64) = (0.8, 1.0);
const STAND_QUEUE_MAX: f64 = 64.0;

/// The sum at which the queue is considered to stand: by chance, this happens less than once in
/// 10^7 arrivals at a load of 0.8. With 64 clients, it is reached after about 250 services.
const STAND_SUM: f64 = 18.0;

/// A queue is steady if its length stays within a band of `w` events while n events finish. By
/// chance, at a load of 0.8, the length is a random walk that changes by a variance of 1.8 for each
/// finished event. It stays within the band with a probability of about exp(-1.8 π² n / (2 (w +
/// 2)^2)) (Feller, "An introduction to probability theory and its applications", vol. 1, chapter
/// XIV). With n at least twice (w + 2)^2, this is once in 10^7. Arrivals at regular intervals leave
/// the band, since they are fewer by a fifth of n. Of the events between two samples, at most a few
/// count, since the length may leave the band unseen.
const STEADY_BAND_MAX: f64 = 10.0;
const STEADY_PER_SQUARE: f64 = 2.0;
const STEADY_MIN: f64 = 64.0;
const STEADY_STEP_MAX: f64 = 4.0;

/// After an overload, a smaller part of each sum is enough for another overload, because rejected
/// clients come back. The part grows from this share to the whole sum within this number of
/// services.
const MEMORY: f64 = 2000.0;
const MEMORY_SHARE: f64 = 0.2;

/// The loads between which the test for a fall distinguishes. They are high, because at a load of
/// 0.95 most responses would be late if the stage were not in the overload state.
const FALL: (f64, f64) = (1.0, 0.85);

/// The sum at which the load is considered to have fallen: this takes about 500 services at a load
/// of 0.8.
const FALL_SUM: f64 = 10.0;

/// A queue of this many events, or of this many targets if that is more, occurs by chance once in
/// 10^12 arrivals at a load of 0.8. If it stays for `QUEUE_STAYS` targets, it counts as an
/// overload, whatever the arrivals show. This detects a stage that has become slower.
const QUEUE_LONG: f64 = 128.0;
const QUEUE_LONG_TARGETS: f64 = 2.0;
const QUEUE_STAYS: f64 = 4.0;

/// A queue that is long and exceeds this many targets is an overload immediately: even if it drains
/// by itself, its responses come too late.
const QUEUE_FAR_TARGETS: f64 = 4.0;

/// Waits of over half a target that last for this many services are an overload, too. At a load r,
/// a queue of exponential services lasts for n of them with a probability of about exp(-n (1 - sqrt
/// r)^2); at 0.8 that is once in 10^10. This detects a load that is just above 1.
const SERVICES_LATE: f64 = 2000.0;

/// The dispersion is measured in intervals in which this many events could be served. In shorter
/// intervals, the dispersion would be biased, because samples are taken when an event arrives. In
/// longer intervals, regular clumps average out.
const PART: f64 = 8.0;
const PART_LONG: f64 = 64.0;

/// The number of targets without a rejection after which an overload ends.
const CALM_TARGETS: f64 = 64.0;

#[derive(Debug)]
pub(super) struct Load {
    rise: f64,
    /// Since the sum of the rise was last 0: the arrivals, the events that the capacity could
    /// serve, and the events that servlets took.
    arrived: f64,
    able: f64,
    taken: f64,
    fall: f64,
    /// The evidence for a standing queue since waits were last short.
    stand: Stand,
    steady: Steady,
    /// The number of services for which the last overload is still remembered.
    remembered: f64,
    threshold_scale: f64,
    /// The dispersion of the arrivals, in short intervals and in long ones.
    clumps: Dispersion,
    surges: Dispersion,
    /// The variance of the services divided by the square of their mean; 1 for exponential
    /// services.
    service_dispersion: f64,
    /// The number of services completed since waits were last short.
    late: f64,
    /// The time for which waits have been long, in nanoseconds, and the number of events that the
    /// queue's bound refused in that time.
    slow_ns: f64,
    refused: u64,
    /// The time for which the queue has been long, and the time for which no event has been
    /// rejected, in nanoseconds.
    long_ns: f64,
    calm_ns: f64,
}

/// A test of whether a queue stands, while waits are long.
#[derive(Debug, Default)]
struct Stand {
    /// The part of the sum for the queue's length when waits became long; `None` before that.
    since: Option<f64>,
    arrived: f64,
    ns: f64,
}

impl Stand {
    /// Returns the sum. Time is weighted by the current estimate of the capacity, which is better
    /// than the estimate at the time. Arrivals beyond the capacity are left to the test for a rise.
    fn sum(&self, per_ns: f64) -> f64 {
        let able = per_ns * self.ns;
        let queue = self.since.unwrap_or(0.0);
        let arrived = self.arrived.min(able);
        queue + arrived * (STAND.1 / STAND.0).ln() - able * (STAND.1 - STAND.0)
    }
}

/// A test of whether the length of a queue stays the same while waits exceed the target, as in a
/// closed loop: then each response is followed by the client's next request.
#[derive(Debug, Default)]
struct Steady {
    /// The shortest and the longest queue; `None` while waits are within the target.
    band: Option<(f64, f64)>,
    finished: f64,
}

impl Steady {
    fn observe(&mut self, queued: f64, finished: f64) {
        let (low, high) = self.band.unwrap_or((queued, queued));
        let (low, high) = (low.min(queued), high.max(queued));
        if high - low > STEADY_BAND_MAX {
            (self.band, self.finished) = (Some((queued, queued)), 0.0);
        } else {
            if self.band.is_some() {
                self.finished += finished.min(STEADY_STEP_MAX);
            }
            self.band = Some((low, high));
        }
    }

    fn is_steady(&self) -> bool {
        let width = self.band.map_or(0.0, |(low, high)| high - low);
        let enough = STEADY_PER_SQUARE * (width + 2.0).powi(2);
        self.finished > enough.max(STEADY_MIN)
    }
}

impl Default for Load {
    fn default() -> Self {
        Self {
            rise: 0.0,
            arrived: 0.0,
            able: 0.0,
            taken: 0.0,
            fall: 0.0,
            stand: Stand::default(),
            steady: Steady::default(),
            remembered: 0.0,
            threshold_scale: 1.0,
            clumps: Dispersion::default(),
            surges: Dispersion::default(),
            service_dispersion: 1.0,
            late: 0.0,
            slow_ns: 0.0,
            refused: 0,
            long_ns: 0.0,
            calm_ns: 0.0,
        }
    }
}

impl Load {
    /// Adds the arrivals of a sample, against the capacity; `idle` is true if a servlet had nothing
    /// to do.
    pub(super) fn observe(
        &mut self,
        sample: &Sample<'_>,
        capacity: &Capacity,
        idle: bool,
        taken: f64,
    ) {
        let Some(per_ns) = capacity.per_ns() else {
            return;
        };
        let (service_ns, doubt) = (capacity.service_ns(), capacity.doubt());
        let arrived = sample.arrived as f64;
        let interval_ns = sample.interval_ns as f64;
        let able = per_ns * interval_ns;
        // One burst is not a load: simultaneous arrivals count as at most twice the capacity,
        // unless they always arrive like that.
        let counted = arrived.min(2.0 * able + 4.0 * self.clumps.value);
        self.clumps.observe(arrived, interval_ns, PART / per_ns);
        self.surges
            .observe(arrived, interval_ns, PART_LONG / per_ns);
        self.disperse_services(sample, service_ns);
        self.threshold_scale = self.dispersion() * doubt;
        self.arrived += counted;
        self.able += able;
        self.taken += taken;
        // If a batch has a cost of its own, large batches can achieve more than was observed.
        let able_run = self.able.max(self.taken);
        self.rise = Self::rise(self.arrived, able_run);
        if idle || self.rise <= 0.0 {
            self.rise = 0.0;
            (self.arrived, self.able, self.taken) = (0.0, 0.0, 0.0);
        }
        if idle {
            self.stand = Stand::default();
            self.steady = Steady::default();
        } else if self.stand.since.is_some() {
            self.stand.arrived += arrived;
            self.stand.ns += interval_ns;
            if self.stand.sum(per_ns) < 0.0 {
                self.stand = Stand {
                    since: Some(0.0),
                    ..Stand::default()
                };
            }
        }
        let ratio = arrived * (FALL.1 / FALL.0).ln() - able * (FALL.1 - FALL.0);
        self.fall = (self.fall + ratio).max(0.0);
    }

    /// Returns the dispersion of the arrivals, as far as it is relevant for a load.
    fn dispersion(&self) -> f64 {
        self.clumps.value.min(self.surges.value)
    }

    /// Returns the dispersion of queue lengths: the mean of the dispersions of arrivals and
    /// services (Kingman's approximation).
    fn dispersion_of_queues(&self) -> f64 {
        ((self.dispersion() + self.service_dispersion) / 2.0).max(1.0)
    }

    /// Returns the larger one of two sums, for a queue that was empty at first: the sum of the test
    /// for a rise, and that for a standing queue. `able` events could be served since then.
    pub(super) fn sum_since_empty(arrived: f64, able: f64) -> f64 {
        // A burst of any length counts as only a few events at first.
        let counted = arrived.min(4.0 * able + 8.0);
        let rise = Self::rise(counted, able);
        let counted = counted.min(able + STAND_QUEUE_MAX);
        let stand = counted * (STAND.1 / STAND.0).ln() - able * (STAND.1 - STAND.0);
        rise.max(stand)
    }

    /// Returns the log-likelihood ratio of the test for a rise.
    pub(super) fn rise(arrived: f64, able: f64) -> f64 {
        arrived * (RISE.1 / RISE.0).ln() - able * (RISE.1 - RISE.0)
    }

    /// Returns whether a sum of these ratios is enough.
    pub(super) fn is_risen(sum: f64) -> bool {
        sum > RISE_SUM
    }

    /// Returns the length at which a queue is an overload.
    pub(super) fn far(&self, capacity: &Capacity, target_ns: f64) -> f64 {
        let long = QUEUE_LONG * self.dispersion_of_queues() * capacity.doubt();
        let per_ns = capacity.per_ns().unwrap_or(f64::INFINITY);
        long.max(QUEUE_FAR_TARGETS * target_ns * per_ns)
    }

    /// Returns whether a stage that was not overloaded is overloaded now.
    pub(super) fn risen(
        &mut self,
        queued: f64,
        wait_ns: f64,
        sample: &Sample<'_>,
        target_ns: f64,
    ) -> bool {
        let dispersion = self.dispersion_of_queues();
        let slow = wait_ns > QUEUE_LONG_TARGETS * target_ns;
        let long = slow && queued > QUEUE_LONG * dispersion;
        let late = wait_ns > target_ns / 2.0;
        if wait_ns > target_ns {
            self.steady.observe(queued, sample.finished as f64);
        } else {
            self.steady = Steady::default();
        }
        self.late = if late {
            self.late + sample.finished as f64
        } else {
            0.0
        };
        let interval_ns = sample.interval_ns as f64;
        self.long_ns = if long {
            self.long_ns + interval_ns
        } else {
            0.0
        };
        (self.slow_ns, self.refused) = if slow {
            (
                self.slow_ns + interval_ns,
                self.refused.saturating_add(sample.refused),
            )
        } else {
            (0.0, 0)
        };
        if !late {
            self.stand = Stand::default();
        } else if self.stand.since.is_none() {
            let worth = queued.min(STAND_QUEUE_MAX) * (STAND.1 / STAND.0).ln();
            self.stand.since = Some(worth);
        }
        self.remembered = (self.remembered - sample.finished as f64).max(0.0);
        let part = 1.0 - (1.0 - MEMORY_SHARE) * self.remembered / MEMORY;
        let scale = part * self.threshold_scale;
        // Events that the queue's bound refuses may just as well be rejected early.
        let bounded = self.refused > 0 && self.slow_ns > QUEUE_STAYS * target_ns;
        bounded
            || self.steady.is_steady()
            || late && self.rise > RISE_SUM * scale
            || late && self.stand.sum(queued / wait_ns) > STAND_SUM * scale
            || self.long_ns > QUEUE_STAYS * target_ns
            || self.late > SERVICES_LATE * dispersion
    }

    /// Returns whether a stage that was overloaded no longer is.
    pub(super) fn fallen(&mut self, sample: &Sample<'_>, target_ns: f64) -> bool {
        let calm = sample.refused == 0 && sample.shed == 0;
        let interval_ns = sample.interval_ns as f64;
        self.calm_ns = if calm {
            self.calm_ns + interval_ns
        } else {
            0.0
        };
        self.fall > FALL_SUM * self.dispersion() || self.calm_ns > CALM_TARGETS * target_ns
    }

    /// Forgets the evidence for the change that has been made, but not the overload itself.
    pub(super) fn turned(&mut self) {
        self.stand = Stand::default();
        self.steady = Steady::default();
        self.remembered = MEMORY;
        (self.rise, self.fall) = (0.0, 0.0);
        (self.arrived, self.able, self.taken) = (0.0, 0.0, 0.0);
        (self.long_ns, self.calm_ns, self.late) = (0.0, 0.0, 0.0);
        (self.slow_ns, self.refused) = (0.0, 0);
    }

    /// Adds a measurement from the difference between an interval's service times and their mean.
    fn disperse_services(&mut self, sample: &Sample<'_>, service_ns: f64) {
        if sample.finished > 0 && service_ns > 0.0 {
            let finished = sample.finished as f64;
            let difference = sample.service_ns as f64 / service_ns - finished;
            let seen = difference * difference / finished;
            self.service_dispersion += (seen.min(1e6) - self.service_dispersion) / 512.0;
        }
    }
}

#[cfg(test)]
mod tests;
