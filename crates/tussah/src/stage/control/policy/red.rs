//! Random early detection: the longer the average queue, the more arrivals are rejected.
//!
//! Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance" (IEEE/ACM
//! Transactions on Networking 1(4), 1993), §4 and figure 2; SEDA, §5.2.3, suggests it for the
//! queues of stages. The average queue length is a moving average, updated at each arrival. If the
//! average is below `queue_min`, every event is admitted; from `queue_max` on, every event is
//! rejected. In between, p_b = p_max (avg - min) / (max - min). The probability of a rejection is
//! p_a = p_b / (1 - count p_b), where count is the number of arrivals since the last rejection.
//! This formula spreads rejections evenly.
//!
//! This implementation differs in one point. While the queue is empty, the average in the paper
//! decays as if m small packets had arrived in the meantime. Here m is the time for which the queue
//! was empty, divided by the mean service time in the samples.

use crate::stage::control::{
    Admission, Arrival, Cadence, Controller, Departure, Owns, Sample, Settings, Verdict,
};

/// Parameters of [`Red`]; the defaults keep the proportions given in the paper (§5: min 5 packets,
/// max three times min, p_max 1/50, w_q 0.002).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RedConfig {
    /// The average queue length up to which every event is admitted, in credits; from 0 to 10^18
    /// (other values count as 50).
    pub queue_min: f64,
    /// The average queue length at or above which every event is rejected, in credits; at least one
    /// more than `queue_min`.
    pub queue_max: f64,
    /// p_max: the probability of a rejection just below `queue_max`; above 0 and at most 1 (other
    /// values count as 0.02).
    pub reject_max: f64,
    /// w_q: the weight of the current queue length in the average, at each arrival; above 0 and at
    /// most 1 (other values count as 0.002).
    pub weight: f64,
}

impl Default for RedConfig {
    fn default() -> Self {
        Self {
            queue_min: 50.0,
            queue_max: 150.0,
            reject_max: 0.02,
            weight: 0.002,
        }
    }
}

/// A controller that rejects arriving events at random, with a probability that grows with the
/// average queue length.
#[derive(Debug)]
pub struct Red {
    config: RedConfig,
    average: f64,
    /// Arrivals since the last rejection; -1 while the average is below `queue_min`.
    count: f64,
    service_ns: f64,
    /// The time at which the queue became empty, or at which an arrival last found it empty.
    emptied_ns: u64,
}

impl Default for Red {
    fn default() -> Self {
        Self::new(RedConfig::default())
    }
}

impl Red {
    /// Creates a controller, and corrects parameters that are out of range.
    #[must_use]
    pub fn new(mut config: RedConfig) -> Self {
        let default = RedConfig::default();
        let share = |value: f64, or| {
            if value > 0.0 && value <= 1.0 {
                value
            } else {
                or
            }
        };
        config.reject_max = share(config.reject_max, default.reject_max);
        config.weight = share(config.weight, default.weight);
        let good = (0.0..1e18).contains(&config.queue_min);
        config.queue_min = if good {
            config.queue_min
        } else {
            default.queue_min
        };
        // `f64::max` of a number and NaN is the number.
        config.queue_max = config.queue_max.max(config.queue_min + 1.0);
        Self {
            config,
            average: 0.0,
            count: -1.0,
            service_ns: 0.0,
            emptied_ns: 0,
        }
    }

    fn observe(&mut self, arrival: &Arrival) {
        if arrival.queue_len == 0 {
            let empty_ns = arrival.now_ns.saturating_sub(self.emptied_ns) as f64;
            self.emptied_ns = arrival.now_ns;
            if self.service_ns > 0.0 {
                let missed = (empty_ns / self.service_ns).min(1e6);
                self.average *= (1.0 - self.config.weight).powf(missed);
            }
        }
        self.average += self.config.weight * (arrival.queue_len as f64 - self.average);
    }
}

impl Controller for Red {
    fn name(&self) -> &'static str {
        "red"
    }

    fn owns(&self) -> Owns {
        Owns::ADMISSION
    }

    fn cadence(&self) -> Cadence {
        Cadence::every_ns(10_000_000)
    }

    fn sample(&mut self, sample: &Sample<'_>, _now_ns: u64) -> Settings {
        if sample.finished > 0 {
            self.service_ns = sample.service_ns as f64 / sample.finished as f64;
        }
        Settings::default()
    }

    fn on_enqueue(&mut self, arrival: &Arrival) -> Admission {
        self.observe(arrival);
        let config = &self.config;
        if self.average < config.queue_min {
            self.count = -1.0;
            return Admission::Admit;
        }
        if self.average >= config.queue_max {
            self.count = 0.0;
            return Admission::Reject;
        }
        self.count += 1.0;
        let place = (self.average - config.queue_min) / (config.queue_max - config.queue_min);
        let base = config.reject_max * place;
        let left = 1.0 - self.count * base;
        let random = (arrival.random >> 11) as f64 / (1u64 << 53) as f64;
        if left <= 0.0 || random < base / left {
            self.count = 0.0;
            Admission::Reject
        } else {
            Admission::Admit
        }
    }

    fn on_dequeue(&mut self, departure: &Departure) -> Verdict {
        if departure.queue_len == 0 {
            self.emptied_ns = departure.now_ns;
        }
        Verdict::Serve
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::control::testing::{MS, Random, arrival, quiet};
    use crate::stage::event::Class;

    /// Returns the number of rejected arrivals at a queue of this length, after the average has
    /// settled.
    fn rejected(queue_len: u64, arrivals: u64, gaps: &mut Vec<u64>) -> u64 {
        let mut red = Red::default();
        let mut random = Random::new(1);
        let (mut rejected, mut last) = (0, 0);
        for i in 0..10_000 + arrivals {
            let mut arrival = arrival(0, queue_len, 1);
            arrival.random = random.next();
            if red.on_enqueue(&arrival) == Admission::Reject && i >= 10_000 {
                rejected += 1;
                gaps.push(i - last);
                last = i;
            }
        }
        rejected
    }

    #[test]
    fn the_average_decides_how_many_are_rejected() {
        let check = |queue_len, expected: std::ops::RangeInclusive<u64>| {
            let rejected = rejected(queue_len, 100_000, &mut Vec::new());
            assert!(expected.contains(&rejected), "at {queue_len}: {rejected}");
        };
        check(0, 0..=0);
        check(49, 0..=0);
        // Half of p_max, and nearly all of it. Spreading the rejections evenly doubles the rate
        // (§4: the gap is uniform up to 1 / p_b).
        check(100, 1900..=2100);
        check(149, 3800..=4100);
        check(151, 100_000..=100_000);
    }

    #[test]
    fn rejections_are_spread() {
        let mut gaps = Vec::new();
        rejected(100, 100_000, &mut gaps);
        // p_b is 1 / 100: with independent rejections, one gap in seven would exceed 200.
        assert!(gaps[1..].iter().all(|gap| *gap <= 101));
    }

    #[test]
    fn a_burst_is_let_in() {
        let mut red = Red::default();
        for i in 0..200 {
            assert_eq!(red.on_enqueue(&arrival(0, i, 1)), Admission::Admit);
        }
    }

    #[test]
    fn an_empty_queue_makes_the_average_fade() {
        let mut red = Red::default();
        for _ in 0..10_000 {
            red.on_enqueue(&arrival(0, 1000, 1));
        }
        let sample = Sample {
            finished: 10,
            service_ns: 10 * MS,
            ..quiet()
        };
        red.sample(&sample, 0);
        let mut later = arrival(0, 0, 0);
        later.now_ns = 10_000 * MS;
        assert_eq!(red.on_enqueue(&later), Admission::Admit);
        assert!(red.average < 1.0);
    }

    #[test]
    fn the_time_in_which_a_long_queue_is_worked_off_is_not_empty() {
        let mut red = Red::default();
        for _ in 0..10_000 {
            red.on_enqueue(&arrival(0, 1000, 1));
        }
        let sample = Sample {
            finished: 10,
            service_ns: 10 * MS,
            ..quiet()
        };
        red.sample(&sample, 0);
        for left in (0..1000).rev() {
            red.on_dequeue(&Departure {
                class: Class(0),
                sojourn_ns: 0,
                queue_len: left,
                key: None,
                now_ns: (1000 - left) * MS,
            });
        }
        let mut later = arrival(0, 0, 0);
        later.now_ns = 1001 * MS;
        assert_eq!(red.on_enqueue(&later), Admission::Reject);
        assert!(red.average > 990.0, "{}", red.average);
    }

    #[test]
    fn parameters_are_brought_into_their_range() {
        let red = Red::new(RedConfig {
            queue_min: f64::NAN,
            queue_max: -1.0,
            reject_max: 2.0,
            weight: 0.0,
        });
        let config = red.config;
        assert_eq!((config.queue_min, config.queue_max), (50.0, 51.0));
        assert_eq!((config.reject_max, config.weight), (0.02, 0.002));
    }
}
