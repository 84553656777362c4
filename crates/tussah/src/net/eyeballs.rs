//! Which address of a host is tried when: Happy Eyeballs, version 2 (RFC 8305), without a clock and without sockets.
//!
//! - *Resolution* (section 3): both families are asked for at the same time. As soon as the preferred one has addresses the first
//!   attempt begins. If the other one is there before, it waits for the resolution delay, or until the preferred one is
//!   answered, also if by "none" or by an error. Addresses that come later join those that wait.
//! - *Sorting* (section 4): families alternate, beginning with the preferred one (a "First Address Family Count" of one). Within a
//!   family the order is the server's: nothing is known here of routes (RFC 6724) or of earlier round-trip times.
//! - *Attempts* (section 5): each begins a connection attempt delay after the one before, or when any has failed, and none is
//!   given up for another, until one succeeds.
//!
//! NAT64 and DNS64 (section 7) are left to the network.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::time::add;

/// How long the other family waits for the preferred one (RFC 8305, sections 3 and 8).
pub(super) const RESOLUTION_DELAY: Duration = Duration::from_millis(50);

/// When the next attempt begins beside those that go on (RFC 8305, sections 5 and 8).
pub(super) const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Bound, in addresses of each family: how many are tried; with the usual delay twice as many take eight seconds to begin.
const ADDRESSES_MAX: usize = 16;

/// A family of addresses, by its place in the order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Family {
    Preferred,
    Other,
}

impl Family {
    fn next(self) -> Self {
        match self {
            Self::Preferred => Self::Other,
            Self::Other => Self::Preferred,
        }
    }
}

/// What to do now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Begin to connect to this address.
    Connect(SocketAddr),
    /// Come back when something happens, at this time at the latest.
    Wait(Instant),
    /// Nothing is left to try or to wait for.
    Exhausted,
    /// The time for all of it is up.
    TimedOut,
}

/// The state of connecting to a host.
#[derive(Debug)]
pub(super) struct Eyeballs {
    attempt_delay: Duration,
    deadline: Instant,
    /// By family: addresses that were not tried yet.
    waiting: [VecDeque<SocketAddr>; 2],
    /// By family: nothing more will come.
    answered: [bool; 2],
    /// Whose address is tried next if it has any.
    turn: Family,
    /// Attempts that go on.
    running: usize,
    begun: bool,
    /// Before this, unless something changes, no attempt begins.
    not_before: Option<Instant>,
}

impl Eyeballs {
    /// Nothing is known yet. All of it ends at `deadline`.
    pub(super) fn new(attempt_delay: Duration, deadline: Instant) -> Self {
        Self {
            attempt_delay,
            deadline,
            waiting: [VecDeque::new(), VecDeque::new()],
            answered: [false; 2],
            turn: Family::Preferred,
            running: 0,
            begun: false,
            not_before: None,
        }
    }

    /// The addresses of a family are known; none, if asking for them has failed or if nobody asks.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        family: Family,
        addresses: impl IntoIterator<Item = SocketAddr>,
    ) {
        self.answered[family as usize] = true;
        let waiting = &mut self.waiting[family as usize];
        waiting.extend(addresses.into_iter().take(ADDRESSES_MAX));
        if self.begun {
            return;
        }
        let preferred = Family::Preferred as usize;
        self.not_before = match self.answered[preferred] {
            true => None,
            false => Some(add(now, RESOLUTION_DELAY)),
        };
    }

    /// An attempt has failed: the next one need not wait.
    pub(super) fn failed(&mut self) {
        self.running -= 1;
        self.not_before = None;
    }

    /// What to do now; to be asked again after each `Connect`, and whenever something happened.
    pub(super) fn step(&mut self, now: Instant) -> Step {
        if now >= self.deadline {
            return Step::TimedOut;
        }
        if self.waiting.iter().all(VecDeque::is_empty) {
            return match self.running {
                0 if self.answered == [true; 2] => Step::Exhausted,
                _ => Step::Wait(self.deadline),
            };
        }
        match self.not_before {
            Some(time) if now < time => Step::Wait(time.min(self.deadline)),
            _ => Step::Connect(self.begin(now)),
        }
    }

    fn begin(&mut self, now: Instant) -> SocketAddr {
        if self.waiting[self.turn as usize].is_empty() {
            self.turn = self.turn.next();
        }
        let address = self.waiting[self.turn as usize].pop_front();
        self.turn = self.turn.next();
        self.begun = true;
        self.running += 1;
        self.not_before = Some(add(now, self.attempt_delay));
        address.expect("one of the families has an address")
    }
}

#[cfg(test)]
mod tests;
