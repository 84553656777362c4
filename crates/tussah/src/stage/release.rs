//! Who is called when a stage has changed: found out under its lock, and called when that has been released.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use parking_lot::MutexGuard;

use super::shared::{Inner, Shared, Start};
use super::state::Summon;

/// What is to be done after the lock is released.
struct Calls<E> {
    unpark: Option<Waker>,
    spawn: Option<Start<E>>,
    room: Option<bool>,
    settled: Vec<Waker>,
}

impl<E: Send + 'static> Shared<E> {
    /// Releases the lock, having seen to who must be called because of what changed.
    #[inline]
    pub(crate) fn release(self: &Arc<Self>, mut inner: MutexGuard<'_, Inner<E>>) {
        let calls = self.calls(&mut inner);
        drop(inner);
        if let Some(calls) = calls {
            self.make(calls);
        }
    }

    #[inline]
    fn calls(&self, inner: &mut Inner<E>) -> Option<Calls<E>> {
        let mut calls = Calls {
            unpark: None,
            spawn: None,
            room: None,
            settled: Vec::new(),
        };
        let mut any = true;
        match inner.state.summon() {
            Summon::Nobody => any = false,
            Summon::Unpark => calls.unpark = inner.parked.pop().map(|(_, waker)| waker),
            // There is a handler: the gate is open.
            Summon::Spawn => calls.spawn = self.start.read().clone(),
        }
        // Once for all room that there is: a sender that finds none though it was called must not call itself.
        if inner.senders > 0 && inner.state.freed {
            let half = inner.state.credits() <= inner.state.threshold / 2;
            if inner.choosy || half {
                inner.state.freed = false;
                calls.room = Some(inner.choosy);
                any = true;
            }
        }
        if !inner.settled.is_empty() && inner.state.is_empty() {
            calls.settled = std::mem::take(&mut inner.settled);
            any = true;
        }
        if inner.swap.is_some() && inner.state.in_service() == 0 {
            calls.settled.extend(inner.swap.take());
            any = true;
        }
        let rests = inner.state.rests();
        if rests != self.rests() {
            self.rests.0.store(rests, Ordering::Relaxed);
        }
        any.then_some(calls)
    }

    fn make(self: &Arc<Self>, calls: Calls<E>) {
        if let Some(waker) = calls.unpark {
            waker.wake();
        }
        if let Some(start) = calls.spawn {
            start(self);
        }
        match calls.room {
            None => {}
            Some(true) => self.room.notify_waiters(),
            Some(false) => self.room.notify_one(),
        }
        for waker in calls.settled {
            waker.wake();
        }
    }
}
