//! The order and timing of connection attempts (Happy Eyeballs version 2, RFC 8305), without clocks
//! and sockets.
//!
//! - *Resolution* (section 3): both families are looked up in parallel. The first attempt starts as
//!   soon as the preferred family has addresses. If the other family arrives first, it waits for
//!   the resolution delay, or until the preferred family's lookup has ended, even without
//!   addresses. Addresses that arrive later join the waiting ones.
//! - *Sorting* (section 4): families alternate, starting with the preferred one (a "First Address
//!   Family Count" of one). Within a family the server's order is kept, since routes (RFC 6724) and
//!   earlier round-trip times are unknown here.
//! - *Attempts* (section 5): each attempt starts one connection attempt delay after the previous
//!   one, or when any attempt has failed. All attempts continue until one succeeds.
//!
//! NAT64 and DNS64 (section 7) are left to the network.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::time::add;

/// The time that the other family waits for the preferred one (RFC 8305, sections 3 and 8).
pub(super) const RESOLUTION_DELAY: Duration = Duration::from_millis(50);

/// The time between the starts of two parallel attempts (RFC 8305, sections 5 and 8).
pub(super) const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Bound, in addresses of each family: the most that are tried. With the usual delay, starting
/// twice that many takes eight seconds.
const ADDRESSES_MAX: usize = 16;

/// An address family, by its place in the order.
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

/// The next step of connecting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Start to connect to this address.
    Connect(SocketAddr),
    /// Step again when something happens, and at this time at the latest.
    Wait(Instant),
    /// Nothing is left to try or to wait for.
    Exhausted,
    /// The total time is up.
    TimedOut,
}

/// The state of connecting to a host.
#[derive(Debug)]
pub(super) struct Eyeballs {
    attempt_delay: Duration,
    deadline: Instant,
    /// By family: addresses that have not been tried yet.
    waiting: [VecDeque<SocketAddr>; 2],
    /// By family: whether the lookup has ended.
    answered: [bool; 2],
    /// The family whose address is tried next, if it has one.
    turn: Family,
    /// The number of attempts in progress.
    running: usize,
    begun: bool,
    /// No attempt starts before this time, unless an attempt fails or addresses arrive.
    not_before: Option<Instant>,
}

impl Eyeballs {
    /// Creates the initial state. Everything ends at `deadline`.
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

    /// Records the addresses of a family; an empty list if its lookup failed or was not made.
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

    /// Records a failed attempt. The next attempt need not wait.
    pub(super) fn failed(&mut self) {
        self.running -= 1;
        self.not_before = None;
    }

    /// Returns the next step. Call it again after each `Connect`, and whenever something has
    /// happened.
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
