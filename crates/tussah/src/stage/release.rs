//! Who is called when a stage has changed: found out under its lock, and called when that has been released.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use parking_lot::MutexGuard;
use tussah_core::quietly;

use super::batch::Batch;
use super::event::{Event, Reason};
use super::expiry::Watcher;
use super::shared::{Inner, OnDrop, Shared, Start};
use super::state::{Gate, Summon};

/// A servlet that is to go to work.
enum Summoned<E> {
    Nobody,
    Parked(Waker),
    New(Start<E>, u32),
}

impl<E: Send + 'static> Summoned<E> {
    #[inline]
    fn call(self, stage: &Arc<Shared<E>>) {
        match self {
            Self::Nobody => {}
            Self::Parked(waker) => quietly(|| waker.wake()),
            Self::New(start, generation) => start(stage, generation),
        }
    }
}

/// What else is to be done after the lock is released, which is rare.
struct Calls<E> {
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
    watcher: Watcher,
}

impl<E: Send + 'static> Shared<E> {
    /// Releases the lock, having seen to who must be called because of what changed.
    #[inline]
    pub(crate) fn release(self: &Arc<Self>, mut inner: MutexGuard<'_, Inner<E>>) {
        let (summon, left) = match &self.threads {
            None => (inner.state.summon(), 0),
            Some(threads) => threads.summon(&mut inner),
        };
        let summoned = match summon {
            Summon::Nobody => Summoned::Nobody,
            Summon::Unpark => self.unparked(&mut inner),
            Summon::Spawn => self.spawned(&inner),
        };
        if left > 0 || inner.concerns_others() {
            return self.release_with(inner, summoned, left);
        }
        self.show_rest(&inner);
        drop(inner);
        summoned.call(self);
    }

    #[inline]
    fn unparked(&self, inner: &mut Inner<E>) -> Summoned<E> {
        let parked = inner.parked.pop();
        parked.map_or(Summoned::Nobody, |(_, waker)| Summoned::Parked(waker))
    }

    /// It is a servlet of the present handler, however late it starts.
    #[cold]
    fn spawned(&self, inner: &Inner<E>) -> Summoned<E> {
        let start = self.start.read().clone();
        start.map_or(Summoned::Nobody, |start| {
            Summoned::New(start, inner.generation)
        })
    }

    #[inline]
    fn show_rest(&self, inner: &Inner<E>) {
        let rests = inner.state.rests();
        if rests != self.rests() {
            self.rests.0.store(rests, Ordering::Relaxed);
        }
    }

    /// The same where not only servlets may be concerned.
    #[cold]
    #[inline(never)]
    fn release_with(
        self: &Arc<Self>,
        mut inner: MutexGuard<'_, Inner<E>>,
        summoned: Summoned<E>,
        left: usize,
    ) {
        let calls = Self::calls(&mut inner, left);
        self.show_rest(&inner);
        drop(inner);
        summoned.call(self);
        self.make(calls);
    }

    fn calls(inner: &mut Inner<E>, left: usize) -> Calls<E> {
        let mut calls = Calls {
            settled: false,
            wakers: Vec::new(),
            closed: false,
            gone: false,
            ended: Vec::new(),
            reason: inner.state.ends,
            left,
            watcher: Watcher::Sleeps,
        };
        if inner.state.watch.is_short() {
            calls.watcher = inner.state.watch.set();
        }
        if inner.swap.is_some() && inner.state.in_service() == 0 {
            calls.wakers.extend(inner.swap.take());
        }
        if inner.state.is_left_alone() || inner.state.gate == Gate::Closed {
            Self::ending(inner, &mut calls);
        }
        if inner.settling && inner.state.is_empty() {
            inner.settling = false;
            calls.settled = true;
        }
        if inner.senders.any_waits() {
            inner.hand_room(&mut calls.wakers);
        }
        calls
    }

    /// Nothing is let in or out any more: what is queued ends, also what is given back later.
    #[cold]
    fn ending(inner: &mut Inner<E>, calls: &mut Calls<E>) {
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
    }

    /// Tells who sends and calls that the stage is closed, and lets the handler go: it ends with its last servlet, and so does a cycle of
    /// stages that refer to each other.
    #[cold]
    fn closed(&self) {
        self.look_again();
        self.watching.notify_one();
        self.keys.notify_waiters();
        let (start, present) = self.take_handler();
        quietly(|| drop(start));
        quietly(|| drop(present));
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
        for waker in calls.wakers {
            quietly(|| waker.wake());
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
        self.call_watcher(calls.watcher);
        if let Some(threads) = &self.threads {
            threads.leave(calls.left);
        }
    }

    /// Tells of the events of a batch whose handler panicked.
    pub(crate) fn panicked(&self, batch: &mut Batch<E>) {
        let counts = &mut self.lock().state.counts;
        counts.panicked += 1;
        counts.lost += batch.unsettled();
        batch.dropped(Reason::Panicked);
    }

    /// Tells of an event that ended in the queue.
    pub(crate) fn dropped(&self, event: Event<E>, reason: Reason) {
        self.trace_dropped(&event, reason);
        tell(self.on_drop.as_ref(), event, reason);
    }
}

impl<E> Inner<E> {
    /// Whether others than servlets may have to be called: most of the time there are none.
    #[inline]
    fn concerns_others(&self) -> bool {
        self.senders.any_waits()
            || self.state.watch.is_short()
            || self.settling
            || self.swap.is_some()
            || self.state.orphaned
            || self.state.gate == Gate::Closed
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
        quietly(|| on_drop(value, reason));
    } else {
        quietly(|| drop(value));
    }
    if let Some(mut more) = more {
        more.end(reason);
    }
}
