//! What only some streams have: time limits, a rate limit, a place among the connections of a listener.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use async_lock::SemaphoreGuardArc;

use super::polled::Polled;
use crate::net::RateLimit;
use crate::net::socket::Direction;
use crate::time::now;

/// Made when it is needed for the first time, so that a stream without it stays small.
#[derive(Debug, Default)]
pub(in crate::net) struct Extra {
    /// In nanoseconds, 0: none; of reading and of writing.
    timeout_ns: [AtomicU64; 2],
    /// Of the `poll_` functions of each direction, which have no future to keep it in.
    polled: [Mutex<Polled>; 2],
    /// Of reading.
    limit: RwLock<Option<Arc<RateLimit>>>,
    /// Held as long as the stream lives.
    _permit: Option<SemaphoreGuardArc>,
}

impl Extra {
    pub(super) fn with_permit(permit: SemaphoreGuardArc) -> Self {
        Self {
            _permit: Some(permit),
            ..Self::default()
        }
    }

    pub(in crate::net) fn timeout(&self, direction: Direction) -> Option<Duration> {
        let ns = self.timeout_ns[direction as usize].load(Ordering::Relaxed);
        (ns > 0).then(|| Duration::from_nanos(ns))
    }

    pub(in crate::net) fn set_timeout(&self, direction: Direction, timeout: Option<Duration>) {
        // 584 years are no limit.
        let ns = timeout.map_or(0, |timeout| timeout.as_nanos().try_into().unwrap_or(0));
        self.timeout_ns[direction as usize].store(ns, Ordering::Relaxed);
    }

    /// Puts what `poll_` functions of a direction go on with in the place of what is there, which is given back: it owns wakers of
    /// users, which are dropped under no lock.
    #[must_use]
    pub(super) fn replace_polled(&self, direction: Direction, polled: Polled) -> Polled {
        let place = self.polled[direction as usize].lock();
        std::mem::replace(&mut *place.unwrap_or_else(PoisonError::into_inner), polled)
    }

    pub(super) fn limit(&self) -> Option<Arc<RateLimit>> {
        let limit = self.limit.read().unwrap_or_else(PoisonError::into_inner);
        limit.clone()
    }

    pub(super) fn set_limit(&self, limit: Option<Arc<RateLimit>>) {
        *self.limit.write().unwrap_or_else(PoisonError::into_inner) = limit;
    }

    /// How long to wait before the next operation; `again` if it has waited already.
    pub(super) fn delay(&self, direction: Direction, again: bool) -> Option<Duration> {
        match direction {
            Direction::Read => self.limit()?.delay(now(), again),
            Direction::Write => None,
        }
    }

    /// How much of so many bytes may be read at once.
    pub(super) fn allowed(&self, len: usize) -> usize {
        self.limit()
            .map_or(len, |limit| len.min(limit.piece_bytes()))
    }

    /// Counts what was read.
    pub(super) fn count(&self, received: &io::Result<usize>) {
        if let (Ok(bytes), Some(limit)) = (received, self.limit()) {
            limit.count(now(), *bytes);
        }
    }
}
