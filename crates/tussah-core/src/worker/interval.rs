//! The interval between two looks at the clock, in events.

/// The intended length of an interval. The worker looks at the clock, the timers and the
/// completions of files about this often.
const INTERVAL_NS: u64 = 50_000;

/// The maximum length of an interval, in events. With the shortest events, of 12 ns, an interval
/// lasts 12 µs, and a look of 0.1 µs costs 1 %.
const EVENTS_MAX: u64 = 1024;

/// Chooses how many events may begin until the next look. This is an estimate, because the lengths
/// of the next events are unknown. The watchdog ends the interval in any case: see "No starvation"
/// in `README.md`.
pub(super) struct Interval {
    /// In events.
    length: u64,
    /// The beginning of the interval: the number of events by then, and the time in nanoseconds.
    from_events: u64,
    from_ns: u64,
}

impl Interval {
    pub(super) fn new() -> Self {
        Self {
            length: 1,
            from_events: 0,
            from_ns: 0,
        }
    }

    /// Returns the length, in events.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Discards the current interval, during which the worker has slept: it does not show how long
    /// events are.
    pub(super) fn restart(&mut self, events: u64) {
        self.from_events = events;
    }

    /// Ends an interval, given the total number of events, and returns the length of the next
    /// interval. That is the number of events that would have fitted into this one. It is at most
    /// twice the previous number, so that a few short events between long ones have little effect.
    pub(super) fn next(&mut self, events: u64, now_ns: u64) -> u64 {
        let ran = events - self.from_events;
        if ran > 0 {
            let took_ns = now_ns.saturating_sub(self.from_ns).max(1);
            let most = EVENTS_MAX.min(2 * self.length);
            self.length = (ran * INTERVAL_NS / took_ns).clamp(1, most);
        }
        self.from_events = events;
        self.from_ns = now_ns;
        self.length
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_interval_follows_the_length_of_events_down_at_once_and_up_by_doubling() {
        let mut interval = Interval::new();
        let (mut events, mut now_ns) = (0, 1_000_000);
        assert_eq!(interval.next(events, now_ns), 1);
        let mut check = |ran: u64, event_ns: u64, expected: u64| {
            events += ran;
            now_ns += ran * event_ns;
            assert_eq!(
                interval.next(events, now_ns),
                expected,
                "{ran} of {event_ns} ns"
            );
        };
        check(1, 50, 2);
        check(2, 50, 4);
        check(0, 50, 4); // interrupted at once
        for expected in [8, 16, 32, 64, 128, 256, 512, 1000, 1000] {
            check(expected / 2, 50, expected);
        }
        check(1000, 12, EVENTS_MAX);
        check(3, 4_000_000, 1); // interrupted
        check(1, 4_000_000, 1);
        check(1, 50, 2);
        check(2, 20_000, 2);
    }

    #[test]
    fn a_sleep_says_nothing_of_events() {
        let mut interval = Interval::new();
        interval.next(0, 1);
        assert_eq!(interval.next(1, 100), 2);
        interval.restart(2);
        assert_eq!(interval.next(2, 1_000_000_000), 2);
        assert_eq!(interval.next(4, 1_000_000_100), 4);
    }
}
