//! Clients in a closed loop: each client sends a request, waits for the response, thinks, and
//! repeats.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Random, SECOND};

/// When a rejected client retries.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Back {
    /// After this many nanoseconds.
    After(u64),
    /// After the time in a `Retry-After` header like that of a web server. Once per second, this is
    /// the number of events queued and in service, divided by the events finished in that second,
    /// in whole seconds, at least one. Each client gets between one and two times that time.
    WhenTold,
}

/// A set of equal clients.
pub(crate) struct Clients {
    think_mean_ns: f64,
    back: Back,
    /// The send times of the clients that are not waiting for a response.
    next: BinaryHeap<Reverse<u64>>,
    /// The events answered in the current second, and the announced retry time.
    answered: u64,
    second: u64,
    told_s: u64,
}

impl Clients {
    /// Creates clients that all send within 1 ms; their think times are exponential.
    pub(crate) fn new(count: u64, think_mean_ns: f64, back: Back) -> Self {
        Self {
            think_mean_ns,
            back,
            next: (0..count).map(|i| Reverse(1_000_000 * i / count)).collect(),
            answered: 0,
            second: 0,
            told_s: 1,
        }
    }

    pub(super) fn next_ns(&self) -> u64 {
        self.next.peek().map_or(u64::MAX, |next| next.0)
    }

    pub(super) fn sends(&mut self) {
        self.next.pop();
    }

    pub(super) fn answered(&mut self, now_ns: u64, random: &mut Random) {
        self.answered += 1;
        let think_ns = (self.think_mean_ns * random.exponential()) as u64;
        self.next.push(Reverse(now_ns + think_ns));
    }

    /// Handles the rejection of an event that found `inside` events queued or in service.
    pub(super) fn turned_away(&mut self, now_ns: u64, inside: u64, random: &mut Random) {
        if now_ns / SECOND > self.second {
            let seconds = now_ns / SECOND - self.second;
            self.second += seconds;
            let a_second = (std::mem::take(&mut self.answered) / seconds).max(1);
            self.told_s = inside.div_ceil(a_second).clamp(1, 60);
        }
        let after_ns = match self.back {
            Back::After(after_ns) => after_ns,
            Back::WhenTold => (self.told_s + random.next() % (self.told_s + 1)) * SECOND,
        };
        self.next.push(Reverse(now_ns + after_ns));
    }
}
