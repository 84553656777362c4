//! Who is called when a stage has changed: found out under its lock, and called when that has been released.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use parking_lot::MutexGuard;

use super::batch::Batch;
use super::event::{Event, Reason};
use super::shared::{Inner, OnDrop, Shared, Start};
use super::state::{Gate, Summon};

/// What is to be done after the lock is released.
struct Calls<E> {
    unpark: Option<Waker>,
    spawn: Option<(Start<E>, u32)>,
    room: Option<bool>,
    /// Nothing is queued and in service any more.
    settled: bool,
    /// Others who are to look at the stage again.
    wakers: Vec<Waker>,
    /// The stage has been closed.
    closed: bool,
    /// It has been, and its last batch has ended.
    gone: bool,
    /// What ended with it.
    ended: Vec<Event<E>>,
    reason: Reason,
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
            settled: false,
            wakers: Vec::new(),
            closed: false,
            gone: false,
            ended: Vec::new(),
            reason: inner.state.ends,
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
            // It is a servlet of the present handler, however late it starts.
            Summon::Spawn => {
                let start = self.start.read().clone();
                calls.spawn = start.map(|start| (start, inner.generation));
            }
        }
        // Once for all room that there is: a sender that finds none though it was called must not call itself.
        if !inner.senders.is_empty() && inner.state.freed {
            let half = inner.state.credits() <= inner.state.threshold / 2;
            // If nobody computes there may be no more room before the sender goes on.
            if inner.choosy || half || inner.state.computing() == 0 {
                inner.state.freed = false;
                calls.room = Some(inner.choosy);
                any = true;
            }
        }
        if inner.swap.is_some() && inner.state.in_service() == 0 {
            calls.wakers.extend(inner.swap.take());
            any = true;
        }
        if inner.state.is_left_alone() || inner.state.gate == Gate::Closed {
            any |= Self::ending(inner, &mut calls);
        }
        if inner.settling && inner.state.is_empty() {
            inner.settling = false;
            calls.settled = true;
            any = true;
        }
        let rests = inner.state.rests();
        if rests != self.rests() {
            self.rests.0.store(rests, Ordering::Relaxed);
        }
        any.then_some(calls)
    }

    /// Nothing is let in or out any more: what is queued ends, also what is given back later. True if there is something to do.
    #[cold]
    fn ending(inner: &mut Inner<E>, calls: &mut Calls<E>) -> bool {
        inner.state.close(Reason::ShutDown);
        calls.closed = std::mem::take(&mut inner.state.closing);
        calls.reason = inner.state.ends;
        while let Some(event) = inner.state.take_out() {
            calls.ended.push(event);
        }
        if calls.closed {
            // They end.
            calls.wakers.extend(inner.call_parked());
        }
        calls.gone = inner.state.in_service() == 0 && !std::mem::replace(&mut inner.gone, true);
        calls.closed || calls.gone || !calls.ended.is_empty()
    }

    /// Tells who sends and calls that the stage is closed, and lets the handler go: it ends with its last servlet, and so does a cycle of
    /// stages that refer to each other.
    #[cold]
    fn closed(&self) {
        self.look_again();
        self.room.notify_waiters();
        self.keys.notify_waiters();
        super::quietly(|| drop(self.take_handler()));
    }

    /// Tells the network's stages that nothing comes from this one any more, nor through it: what they are sent takes the short way again.
    #[cold]
    fn gone(&self) {
        let Some(network) = self.network.upgrade() else {
            return;
        };
        for known in network.known().0 {
            known.stage.forget_routes(self.id);
        }
    }

    fn make(self: &Arc<Self>, calls: Calls<E>) {
        if let Some(waker) = calls.unpark {
            waker.wake();
        }
        if let Some((start, generation)) = calls.spawn {
            start(self, generation);
        }
        match calls.room {
            None => {}
            Some(true) => self.room.notify_waiters(),
            Some(false) => self.room.notify_one(),
        }
        for waker in calls.wakers {
            waker.wake();
        }
        if calls.closed {
            self.closed();
        }
        for event in calls.ended {
            self.dropped(event, calls.reason);
        }
        if calls.gone {
            self.gone();
        }
        if calls.settled {
            self.settled.notify_waiters();
        }
        if let Some(threads) = &self.threads {
            threads.leave(calls.left);
        }
    }

    /// Tells of the events of a batch whose handler panicked.
    pub(crate) fn panicked(&self, batch: &mut Batch<E>) {
        self.lock().state.counts.panicked += batch.taken();
        batch.dropped(Reason::Panicked);
    }

    /// Tells of an event that ended in the queue.
    pub(crate) fn dropped(&self, event: Event<E>, reason: Reason) {
        self.trace_dropped(&event, reason);
        tell(self.on_drop.as_ref(), event, reason);
    }
}

impl<E> Drop for Shared<E> {
    fn drop(&mut self) {
        let inner = self.inner.0.get_mut();
        inner.state.close(Reason::ShutDown);
        let (ends, mut left) = (inner.state.ends, Vec::new());
        while let Some(event) = inner.state.take_out() {
            left.push(event);
        }
        for event in left {
            self.trace_dropped(&event, ends);
            tell(self.on_drop.as_ref(), event, ends);
        }
    }
}

/// Tells the stage's drop callback of an event, and then the event's own.
fn tell<E>(on_drop: Option<&OnDrop<E>>, event: Event<E>, reason: Reason) {
    let (value, more, _) = event.split();
    if let Some(on_drop) = on_drop {
        super::quietly(|| on_drop(value, reason));
    } else {
        super::quietly(|| drop(value));
    }
    if let Some(mut more) = more {
        more.end(reason);
    }
}
