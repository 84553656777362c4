//! The state of a limit, which decides who gets the next permit.

use std::collections::BTreeMap;
use std::task::Waker;
use std::time::{Duration, Instant};

use super::{LimitClassStats, ns_between};
use crate::stage::CLASSES_MAX;
use crate::stage::observe::Digest;

/// Bound, in parts of the permits: with several classes, one part is only for class 0. Its first
/// callers then need not wait until a lower class returns a permit.
const FIRST_PART: usize = 16;
/// The weight of each returned permit in the mean time for which a class holds permits.
const MEAN_PART: f64 = 0.125;

/// The time for which a limit counts as scarce after its last free permit was taken.
const RECENT: Duration = Duration::from_secs(1);

/// While any future waits, no permit is free for its class.
pub(super) struct State {
    pub(super) permits: usize,
    /// Permits that are held, or have been handed to a future that has not been polled since. This
    /// exceeds `permits` after `permits` was lowered.
    pub(super) in_use: usize,
    /// At least one.
    pub(super) classes: Vec<Line>,
    /// The `charged` of the class that took the latest permit, before it took it.
    charged: f64,
    /// The most recent time at which no permit was free.
    exhausted: Option<Instant>,
    pub(super) next_ticket: u64,
    pub(super) hold: Digest,
}

/// The callers of one class.
pub(super) struct Line {
    share: f64,
    pub(super) in_use: usize,
    /// The wakers of waiting futures, one for each, by tickets in order of arrival. A future whose
    /// ticket is missing has been handed a permit.
    pub(super) queue: BTreeMap<u64, Waker>,
    /// The expected time of the permits that the class has taken, divided by its share, in
    /// nanoseconds. The waiting class with the lowest value is next.
    charged: f64,
    /// The moving mean of the time for which the class holds a permit, in nanoseconds; 0 before the
    /// first permit is returned.
    hold_mean_ns: f64,
    pub(super) acquired: u64,
    pub(super) wait: Digest,
}

impl Line {
    pub(super) fn stats(&self) -> LimitClassStats {
        LimitClassStats {
            in_use: self.in_use,
            waiting: self.queue.len(),
            acquired: self.acquired,
            wait: self.wait.clone(),
        }
    }
}

impl State {
    pub(super) fn new(permits: usize, shares: &[u32]) -> Self {
        let shares = if shares.is_empty() { &[1] } else { shares };
        let line = |share: &u32| Line {
            share: f64::from((*share).max(1)),
            in_use: 0,
            queue: BTreeMap::new(),
            charged: 0.0,
            hold_mean_ns: 0.0,
            acquired: 0,
            wait: Digest::default(),
        };
        Self {
            permits,
            in_use: 0,
            classes: shares.iter().take(CLASSES_MAX).map(line).collect(),
            charged: 0.0,
            exhausted: None,
            next_ticket: 0,
            hold: Digest::default(),
        }
    }

    /// Takes a permit for a waiter that arrived at `begun`, if one is free for its class.
    pub(super) fn acquire(&mut self, class: usize, begun: Instant, now: Instant) -> bool {
        let is_taken = self.is_free_for(class);
        if is_taken {
            self.take(class);
            self.count(class, begun, now);
        }
        if self.in_use >= self.permits || !is_taken {
            self.exhausted = Some(now);
        }
        is_taken
    }

    /// Returns whether no permit was free a short time ago.
    pub(super) fn is_scarce(&self, now: Instant) -> bool {
        let recent = |at| now.saturating_duration_since(at) < RECENT;
        self.exhausted.is_some_and(recent)
    }

    /// Counts a permit for a waiter that arrived at `begun`.
    pub(super) fn count(&mut self, class: usize, begun: Instant, now: Instant) {
        let line = &mut self.classes[class];
        line.acquired += 1;
        line.wait.add(ns_between(begun, now), 1);
    }

    fn is_free_for(&self, class: usize) -> bool {
        let in_use_by_others = self.in_use - self.classes[0].in_use;
        let is_open = class == 0 || in_use_by_others < self.permits - self.permits / FIRST_PART;
        self.in_use < self.permits && is_open
    }

    /// Takes a permit that is free.
    fn take(&mut self, class: usize) {
        let means = self.classes.iter().map(|line| line.hold_mean_ns);
        let longest_ns = means.fold(1.0, f64::max);
        let line = &mut self.classes[class];
        let expected_ns = match line.hold_mean_ns {
            0.0 => longest_ns,
            mean_ns => mean_ns,
        };
        // A class that needed less than its share saves nothing for later.
        self.charged = self.charged.max(line.charged);
        line.charged = self.charged + expected_ns / line.share;
        line.in_use += 1;
        self.in_use += 1;
    }

    /// Hands a free permit to the longest waiter of the class that is next.
    pub(super) fn hand_over(&mut self) -> Option<Waker> {
        let waits = |class: &usize| !self.classes[*class].queue.is_empty();
        let able = (0..self.classes.len()).filter(|class| waits(class) && self.is_free_for(*class));
        let charged = |class: &usize| self.classes[*class].charged;
        let next = able.min_by(|a, b| charged(a).total_cmp(&charged(b)))?;
        self.take(next);
        self.classes[next].queue.pop_first().map(|(_, waker)| waker)
    }

    /// Takes back a permit of a class that was held for `held_ns`, or `None` if it was never taken.
    pub(super) fn give_back(&mut self, class: usize, held_ns: Option<u64>) {
        self.in_use -= 1;
        let line = &mut self.classes[class];
        line.in_use -= 1;
        let Some(ns) = held_ns else { return };
        let held_ns = ns.max(1) as f64;
        if line.hold_mean_ns == 0.0 {
            line.hold_mean_ns = held_ns;
        }
        line.hold_mean_ns += (held_ns - line.hold_mean_ns) * MEAN_PART;
        self.hold.add(ns, 1);
    }

    pub(super) fn waiting(&self) -> usize {
        self.classes.iter().map(|line| line.queue.len()).sum()
    }
}
