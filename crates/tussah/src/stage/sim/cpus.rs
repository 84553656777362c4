//! The CPUs of a simulation and the work that they do.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// The source of work on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Who {
    /// A rejection.
    Rejection,
    Servlet(usize),
}

/// The CPUs, with the work in progress and the servlets that are ready.
///
/// Progress is measured on a separate clock, which runs at the speed of each CPU's progress. If the
/// speed changes or more servlets share the CPUs, the work in progress therefore needs no update.
#[derive(Debug)]
pub(super) struct Cpus {
    count: usize,
    /// True if all ready servlets share the CPUs, instead of taking turns.
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
    /// The progress at which the work will be done.
    ends: f64,
    /// The start order, which decides between pieces of work that end at the same time.
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

    /// Starts work on a CPU; its length is `work_ns` at speed 1.
    pub(super) fn begin(&mut self, who: Who, work_ns: f64, now_ns: u64) {
        self.advance(now_ns);
        self.begun += 1;
        self.running.push(Reverse(Running {
            ends: self.progress + work_ns,
            order: self.begun,
            who,
        }));
    }

    /// Returns the time at which the next piece of work is done; `u64::MAX` if there is none.
    pub(super) fn next_ns(&self) -> u64 {
        let Some(Reverse(next)) = self.running.peek() else {
            return u64::MAX;
        };
        let left = (next.ends - self.progress).max(0.0);
        // A float that is too large converts to `u64::MAX`.
        self.at_ns
            .saturating_add((left / self.rate()).ceil() as u64)
    }

    /// Ends the piece of work that is done now and frees its CPU.
    pub(super) fn end(&mut self, now_ns: u64) -> Who {
        self.advance(now_ns);
        let Reverse(done) = self.running.pop().expect("someone computes");
        done.who
    }

    /// Queues a servlet for a CPU.
    pub(super) fn want(&mut self, servlet: usize) {
        self.ready.push_back(servlet);
    }

    /// Puts a servlet that lost its CPU at the head of the queue, so that it continues as soon as
    /// the urgent work is done.
    pub(super) fn want_back(&mut self, servlet: usize) {
        self.ready.push_front(servlet);
    }

    pub(super) fn want_urgently(&mut self) {
        self.urgent += 1;
    }

    pub(super) fn is_urgent(&self) -> bool {
        self.urgent > 0
    }

    /// Returns the next piece of work if a CPU is free for it.
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
