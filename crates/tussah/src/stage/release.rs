//! Who is called because a stage has changed: servlets, senders, and who waits for it to be empty.

use std::sync::Arc;
use std::task::Waker;

use parking_lot::MutexGuard;

use super::queue::Queue;
use super::shared::{Inner, Shared, Start};
use super::state::Summon;

/// What is to be done after the lock is released.
struct Calls<E> {
    unpark: Option<Waker>,
    spawn: Option<Start<E>>,
    room: Option<bool>,
    settled: Vec<Waker>,
    /// Servlets that no longer work, which the manager of servlets is to be told.
    left: usize,
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
            left: 0,
        };
        let mut any = true;
        let summon = match &self.threads {
            None => inner.state.summon(),
            Some(threads) => {
                let (summon, left) = threads.summon(inner);
                calls.left = left;
                summon
            }
        };
        match summon {
            Summon::Nobody => any = calls.left > 0,
            Summon::Unpark => calls.unpark = inner.parked.pop().map(|(_, waker)| waker),
            // There is a handler: the gate is open.
            Summon::Spawn => calls.spawn = self.start(),
        }
        if inner.senders > 0 && inner.state.credits() <= inner.state.threshold / 2 {
            calls.room = Some(matches!(inner.state.queue, Queue::Keyed(_)));
            any = true;
        }
        if !inner.settled.is_empty() && inner.state.is_empty() {
            calls.settled = std::mem::take(&mut inner.settled);
            any = true;
        }
        if inner.swap.is_some() && inner.state.in_service() == 0 {
            calls.settled.extend(inner.swap.take());
            any = true;
        }
        self.set_rests(inner.state.rests());
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
        if let Some(threads) = &self.threads {
            threads.leave(calls.left);
        }
    }
}
