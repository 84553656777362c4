//! State that only some streams have: timeouts, a rate limit, and a place in a listener's
//! connection limit.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use async_lock::SemaphoreGuardArc;

use super::polled::Polled;
use crate::net::RateLimit;
use crate::net::socket::Direction;
use crate::time::now;

/// Created on first use, to keep streams without it small.
#[derive(Debug, Default)]
pub(in crate::net) struct Extra {
    /// Timeouts of reading and writing, in nanoseconds; 0 means none.
    timeout_ns: [AtomicU64; 2],
    /// The timers of each direction's `poll_` functions, which have no future that could hold them.
    polled: [Mutex<Polled>; 2],
    /// The rate limit of reads.
    limit: RwLock<Option<Arc<RateLimit>>>,
    /// Held while the stream lives.
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
        // More than 584 years counts as no limit.
        let ns = timeout.map_or(0, |timeout| timeout.as_nanos().try_into().unwrap_or(0));
        self.timeout_ns[direction as usize].store(ns, Ordering::Relaxed);
    }

    /// Replaces the state of a direction's `poll_` functions, and returns the old state. That state
    /// owns user wakers, which must be dropped without holding a lock.
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

    /// Returns how long to wait before the next operation. `again` is set if the operation has
    /// already waited.
    pub(super) fn delay(&self, direction: Direction, again: bool) -> Option<Duration> {
        match direction {
            Direction::Read => self.limit()?.delay(now(), again),
            Direction::Write => None,
        }
    }

    /// Returns how many of `len` bytes may be read immediately.
    pub(super) fn allowed(&self, len: usize) -> usize {
        self.limit()
            .map_or(len, |limit| len.min(limit.piece_bytes()))
    }

    /// Counts the bytes read.
    pub(super) fn count(&self, received: &io::Result<usize>) {
        if let (Ok(bytes), Some(limit)) = (received, self.limit()) {
            limit.count(now(), *bytes);
        }
    }
}
