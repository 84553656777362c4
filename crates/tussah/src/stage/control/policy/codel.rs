//! Controlled delay with adaptive LIFO: a limit on the wait in a queue that has not been empty for
//! a long time.
//!
//! Maurer, "Fail at Scale" (ACM Queue 13(8), 2015), "Controlled Delay" and "Adaptive LIFO", after
//! Nichols and Jacobson's CoDel ("Controlling queue delay", ACM Queue 10(5), 2012; RFC 8289). A
//! request may wait for N if the queue was empty within the last N, and otherwise only for M. N is
//! 100 ms and M is 5 ms; according to the article, these values work for a wide range of services.
//! While the queue does not become empty regularly, the newest request is served first, because the
//! oldest has the least time left.
//!
//! This implementation differs in one point. In the article, the limit on the wait is fixed when
//! the request is queued. Here the limit in force when an event leaves the queue applies, so a
//! standing queue is cut as soon as it is detected. If newer events overtake an event, it is shed
//! when the queue reaches it.
//!
//! Two related algorithms differ more. Folly's `Codel` (once wangle's), from the same company,
//! detects a standing queue by the minimum wait in an interval, and then lets a request wait for
//! two targets. CoDel itself drops one packet at a time, at intervals divided by the square root of
//! the number of drops, because senders in a network then slow down.

use std::time::Duration;

use crate::stage::control::{
    Admission, Arrival, Cadence, Controller, Departure, Order, Owns, Sample, Settings, Verdict,
};

/// Parameters of [`Codel`]; the defaults are those of the article.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodelConfig {
    /// M: the maximum wait of an event in a standing queue, in nanoseconds; at most `interval_ns`
    /// (higher values are lowered to it).
    pub target_ns: u64,
    /// N: the time, in nanoseconds, for which a queue must stay non-empty to count as a standing
    /// queue; at least 1. While there is no standing queue, N is also the maximum wait of an event.
    pub interval_ns: u64,
}

impl Default for CodelConfig {
    fn default() -> Self {
        Self::new(Duration::from_millis(5), Duration::from_millis(100))
    }
}

impl CodelConfig {
    /// Creates parameters from the maximum wait in a standing queue (M), and from the time for
    /// which a queue must stay non-empty to count as a standing queue (N).
    #[must_use]
    pub fn new(target: Duration, interval: Duration) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self {
            target_ns: ns(target),
            interval_ns: ns(interval),
        }
    }
}

/// A controller that sheds events that have waited too long. While there is a standing queue, the
/// stage serves the newest event first.
#[derive(Debug)]
pub struct Codel {
    config: CodelConfig,
    emptied_ns: u64,
    order: Order,
}

impl Default for Codel {
    fn default() -> Self {
        Self::new(CodelConfig::default())
    }
}

impl Codel {
    /// Creates a controller, and corrects parameters that are out of range.
    #[must_use]
    pub fn new(mut config: CodelConfig) -> Self {
        config.interval_ns = config.interval_ns.max(1);
        config.target_ns = config.target_ns.min(config.interval_ns);
        Self {
            config,
            emptied_ns: 0,
            order: Order::Fifo,
        }
    }

    fn stands(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.emptied_ns) > self.config.interval_ns
    }
}

impl Controller for Codel {
    fn name(&self) -> &'static str {
        "codel"
    }

    fn owns(&self) -> Owns {
        Owns::ADMISSION
    }

    fn cadence(&self) -> Cadence {
        Cadence::every_ns(self.config.interval_ns / 16)
    }

    fn sample(&mut self, sample: &Sample<'_>, now_ns: u64) -> Settings {
        if sample.queue_len == 0 {
            self.emptied_ns = now_ns;
        }
        let order = if self.stands(now_ns) {
            Order::Lifo
        } else {
            Order::Fifo
        };
        let changed = order != self.order;
        self.order = order;
        Settings {
            order: changed.then_some(order),
            ..Settings::default()
        }
    }

    fn on_enqueue(&mut self, arrival: &Arrival) -> Admission {
        if arrival.queue_len == 0 {
            self.emptied_ns = arrival.now_ns;
        }
        Admission::Admit
    }

    fn on_dequeue(&mut self, departure: &Departure) -> Verdict {
        let limit_ns = if self.stands(departure.now_ns) {
            self.config.target_ns
        } else {
            self.config.interval_ns
        };
        if departure.queue_len == 0 {
            self.emptied_ns = departure.now_ns;
        }
        if departure.sojourn_ns > limit_ns {
            Verdict::Shed
        } else {
            Verdict::Serve
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::control::testing::{MS, arrival, quiet};
    use crate::stage::event::Class;

    fn leave(codel: &mut Codel, now_ms: u64, sojourn_ms: u64, queue_len: u64) -> Verdict {
        codel.on_dequeue(&Departure {
            class: Class(0),
            sojourn_ns: sojourn_ms * MS,
            queue_len,
            key: None,
            now_ns: now_ms * MS,
        })
    }

    fn arrive(codel: &mut Codel, now_ms: u64, queue_len: u64) {
        let mut arrival = arrival(0, queue_len, 1);
        arrival.now_ns = now_ms * MS;
        assert_eq!(codel.on_enqueue(&arrival), Admission::Admit);
    }

    fn look(codel: &mut Codel, now_ms: u64, queue_len: u64) -> Option<Order> {
        let sample = Sample {
            queue_len,
            ..quiet()
        };
        codel.sample(&sample, now_ms * MS).order
    }

    #[test]
    fn a_wait_may_be_long_until_the_queue_stands() {
        let mut codel = Codel::default();
        arrive(&mut codel, 1000, 0);
        arrive(&mut codel, 1050, 1);
        assert_eq!(leave(&mut codel, 1100, 100, 10), Verdict::Serve);
        assert_eq!(leave(&mut codel, 1100, 101, 10), Verdict::Shed);
        assert_eq!(leave(&mut codel, 1101, 5, 10), Verdict::Serve);
        assert_eq!(leave(&mut codel, 1101, 6, 10), Verdict::Shed);
        // The last event leaves, so later events may wait again.
        assert_eq!(leave(&mut codel, 1102, 6, 0), Verdict::Shed);
        assert_eq!(leave(&mut codel, 1103, 6, 10), Verdict::Serve);
    }

    #[test]
    fn the_newest_are_first_while_the_queue_stands() {
        let mut codel = Codel::default();
        arrive(&mut codel, 1000, 0);
        assert_eq!(look(&mut codel, 1100, 5), None);
        assert_eq!(look(&mut codel, 1101, 5), Some(Order::Lifo));
        assert_eq!(look(&mut codel, 1110, 5), None);
        assert_eq!(look(&mut codel, 1120, 0), Some(Order::Fifo));
        assert_eq!(look(&mut codel, 1200, 5), None);
    }

    #[test]
    fn a_stage_that_slept_does_not_shed_the_event_that_wakes_it() {
        let mut codel = Codel::default();
        arrive(&mut codel, 3_600_000, 0);
        arrive(&mut codel, 3_600_001, 1);
        assert_eq!(leave(&mut codel, 3_600_050, 50, 1), Verdict::Serve);
    }

    #[test]
    fn parameters_are_brought_into_their_range() {
        let codel = Codel::new(CodelConfig::new(Duration::MAX, Duration::ZERO));
        assert_eq!((codel.config.target_ns, codel.config.interval_ns), (1, 1));
    }
}
