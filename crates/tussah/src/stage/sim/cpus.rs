//! The CPUs of a simulation, and who computes on them.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// Who computes, or wants to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Who {
    /// A rejection is told.
    Rejection,
    Servlet(usize),
}

/// CPUs with those who compute on them and those who are ready to.
///
/// Progress is counted on a clock of its own that runs as fast as each CPU gets on with what it computes; so what has begun does not have to be looked
/// at when the speed changes, or when more share the CPUs.
#[derive(Debug)]
pub(super) struct Cpus {
    count: usize,
    /// Whether all who are ready share the CPUs, instead of taking turns.
    shared: bool,
    speed: f64,
    progress: f64,
    at_ns: u64,
    begun: u64,
    running: BinaryHeap<Reverse<Running>>,
    urgent: usize,
    ready: VecDeque<usize>,
}

#[derive(Debug)]
struct Running {
    /// The progress at which it is done.
    ends: f64,
    /// Of those that end at once, who began first.
    order: u64,
    who: Who,
}

impl Cpus {
    pub(super) fn new(count: usize, shared: bool) -> Self {
        Self {
            count: count.max(1),
            shared,
            speed: 1.0,
            progress: 0.0,
            at_ns: 0,
            begun: 0,
            running: BinaryHeap::new(),
            urgent: 0,
            ready: VecDeque::new(),
        }
    }

    fn rate(&self) -> f64 {
        let running = self.running.len();
        if self.shared && running > self.count {
            self.speed * self.count as f64 / running as f64
        } else {
            self.speed
        }
    }

    fn advance(&mut self, now_ns: u64) {
        self.progress += (now_ns - self.at_ns) as f64 * self.rate();
        self.at_ns = now_ns;
    }

    pub(super) fn set_speed(&mut self, speed: f64, now_ns: u64) {
        self.advance(now_ns);
        self.speed = speed.max(0.0);
    }

    /// Someone who has a CPU computes for so long.
    pub(super) fn begin(&mut self, who: Who, work_ns: f64, now_ns: u64) {
        self.advance(now_ns);
        self.begun += 1;
        self.running.push(Reverse(Running {
            ends: self.progress + work_ns,
            order: self.begun,
            who,
        }));
    }

    /// When the next one is done; never, if nobody computes.
    pub(super) fn next_ns(&self) -> u64 {
        let Some(Reverse(next)) = self.running.peek() else {
            return u64::MAX;
        };
        let left = (next.ends - self.progress).max(0.0);
        // Conversions of what is too large end at the largest.
        self.at_ns
            .saturating_add((left / self.rate()).ceil() as u64)
    }

    /// Takes off its CPU who is done now.
    pub(super) fn end(&mut self, now_ns: u64) -> Who {
        self.advance(now_ns);
        let Reverse(done) = self.running.pop().expect("someone computes");
        done.who
    }

    /// A servlet wants a CPU.
    pub(super) fn want(&mut self, servlet: usize) {
        self.ready.push_back(servlet);
    }

    /// A servlet had a CPU, and wants it back as soon as what is urgent is done.
    pub(super) fn want_back(&mut self, servlet: usize) {
        self.ready.push_front(servlet);
    }

    pub(super) fn want_urgently(&mut self) {
        self.urgent += 1;
    }

    pub(super) fn is_urgent(&self) -> bool {
        self.urgent > 0
    }

    /// Who gets a CPU now, if one is free and somebody wants it.
    pub(super) fn dispatch(&mut self) -> Option<Who> {
        if !self.shared && self.running.len() >= self.count {
            return None;
        }
        if self.urgent > 0 {
            self.urgent -= 1;
            return Some(Who::Rejection);
        }
        self.ready.pop_front().map(Who::Servlet)
    }
}

impl Ord for Running {
    fn cmp(&self, other: &Self) -> Ordering {
        let ends = self.ends.total_cmp(&other.ends);
        ends.then(self.order.cmp(&other.order))
    }
}

impl PartialOrd for Running {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Running {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Running {}
