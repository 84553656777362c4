//! The wake-ups after a change to a stage: determined under its lock, performed after the lock is
//! released.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use parking_lot::MutexGuard;
use tussah_core::quietly;

use super::shared::{Inner, OnDrop, Shared, Start};
use crate::stage::event::{Batch, Event, Reason, Watcher};
use crate::stage::state::{Gate, Wake};

/// A servlet that is about to become busy.
enum Woken<E> {
    Nobody,
    Parked(Waker),
    New(Start<E>, u32),
}

impl<E: Send + 'static> Woken<E> {
    #[inline]
    fn call(self, stage: &Arc<Shared<E>>) {
        match self {
            Self::Nobody => {}
            Self::Parked(waker) => quietly(|| waker.wake()),
            Self::New(start, generation) => start(stage, generation),
        }
    }
}

/// The other work after the lock is released, which is rare.
struct Calls<E> {
    /// True if nothing is queued or in service any longer.
    settled: bool,
    /// The wakers of other code that has to check the stage again.
    wakers: Vec<Waker>,
    /// True if the stage was closed.
    closed: bool,
    /// True if the stage was closed and its last batch has ended.
    gone: bool,
    /// The events that ended with the stage.
    ended: Vec<Event<E>>,
    reason: Reason,
    /// Cancelled events that have left the queue.
    cancelled: Vec<Event<E>>,
    /// The number of servlets that stopped working, for the manager of servlets.
    left: usize,
    watcher: Watcher,
}

impl<E: Send + 'static> Shared<E> {
    /// Releases the lock, and performs the wake-ups that the change requires.
    #[inline]
    pub(crate) fn release(self: &Arc<Self>, mut inner: MutexGuard<'_, Inner<E>>) {
        let (wake_servlet, left) = match &self.threads {
            None => (inner.state.wake_servlet(), 0),
            Some(threads) => {
                let woken = threads.wake_servlet(&mut inner);
                let waits = inner.state.wants();
                inner.hold(self, waits);
                woken
            }
        };
        let woken = match wake_servlet {
            Wake::Nobody => Woken::Nobody,
            Wake::Unpark => self.unparked(&mut inner),
            Wake::Spawn => self.spawned(&inner),
        };
        inner.state.watch_stall(|| self.time.now_ns());
        if left > 0 || inner.concerns_others() {
            return self.release_with(inner, woken, left);
        }
        self.show_rest(&inner);
        drop(inner);
        woken.call(self);
    }

    #[inline]
    fn unparked(self: &Arc<Self>, inner: &mut Inner<E>) -> Woken<E> {
        let Some((_, waker)) = inner.parked.pop() else {
            return Woken::Nobody;
        };
        inner.called += 1;
        inner.hold(self, false);
        Woken::Parked(waker)
    }

    /// Returns a servlet to start, which belongs to the current handler, however late it starts.
    #[cold]
    fn spawned(&self, inner: &Inner<E>) -> Woken<E> {
        let start = self.start.read().clone();
        start.map_or(Woken::Nobody, |start| Woken::New(start, inner.generation))
    }

    #[inline]
    fn show_rest(&self, inner: &Inner<E>) {
        let is_idle = inner.state.is_idle();
        if is_idle != self.is_idle() {
            self.is_idle.0.store(is_idle, Ordering::Relaxed);
        }
    }

    /// Releases the lock when code other than servlets may have to be woken.
    #[cold]
    #[inline(never)]
    fn release_with(
        self: &Arc<Self>,
        mut inner: MutexGuard<'_, Inner<E>>,
        woken: Woken<E>,
        left: usize,
    ) {
        let calls = self.calls(&mut inner, left);
        self.show_rest(&inner);
        drop(inner);
        woken.call(self);
        self.make(calls);
    }

    fn calls(self: &Arc<Self>, inner: &mut Inner<E>, left: usize) -> Calls<E> {
        let mut calls = Calls {
            settled: false,
            wakers: Vec::new(),
            closed: false,
            gone: false,
            ended: Vec::new(),
            reason: inner.state.ends,
            cancelled: Vec::new(),
            left,
            watcher: Watcher::Sleeps,
        };
        if inner.state.watch.is_short() {
            calls.watcher = inner.state.watch.set();
        }
        if inner.state.in_service() == 0 {
            calls.wakers.append(&mut inner.resting);
        }
        if inner.state.is_left_alone() || inner.state.gate == Gate::Closed {
            self.ending(inner, &mut calls);
        }
        calls.cancelled = std::mem::take(&mut inner.state.swept);
        inner.state.undelivered += calls.cancelled.len() as u64;
        if inner.settling && inner.state.is_empty() {
            inner.settling = false;
            calls.settled = true;
        }
        if inner.senders.any_waits() {
            inner.hand_room(&mut calls.wakers);
        }
        calls
    }

    /// Ends all queued events of a closed stage, and the events that are returned later.
    #[cold]
    fn ending(self: &Arc<Self>, inner: &mut Inner<E>, calls: &mut Calls<E>) {
        inner.state.close(Reason::ShutDown);
        calls.closed = std::mem::take(&mut inner.state.closing);
        calls.reason = inner.state.ends;
        while let Some(event) = inner.state.take_out() {
            calls.ended.push(event);
        }
        if calls.closed {
            inner.take_back_room();
            // The servlets end.
            calls.wakers.extend(inner.call_parked(self));
        }
        calls.gone = inner.state.in_service() == 0 && !std::mem::replace(&mut inner.gone, true);
    }

    /// Wakes senders and calls of a closed stage, and drops its handler. The last servlet keeps the
    /// handler until it ends. This also breaks cycles of stages that refer to each other.
    #[cold]
    fn closed(&self) {
        self.look_again();
        self.watching.notify_one();
        self.keys.notify_waiters();
        let (start, present) = self.take_handler();
        quietly(|| drop(start));
        quietly(|| drop(present));
    }

    /// Notifies the stages that keep a room or a route for this stage that no further event will
    /// come from or through it.
    #[cold]
    fn gone(&self) {
        let Some(network) = self.network.upgrade() else {
            return;
        };
        for stage in network.take_keepers(self.id) {
            stage.forget_routes(self.id);
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
        if !calls.cancelled.is_empty() {
            self.tell_cancelled(calls.cancelled);
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

    /// Counts the events of a batch whose handler panicked, and calls their drop callbacks.
    pub(crate) fn panicked(&self, batch: &mut Batch<E>) {
        self.lost(batch.unsettled());
        batch.fail_unsettled();
        batch.dropped(Reason::Panicked);
    }

    /// Counts a panic of the handler and the events that it ended.
    pub(crate) fn lost(&self, events: u64) {
        let counts = &mut self.lock().state.counts;
        counts.panicked += 1;
        counts.lost += events;
    }

    /// Reports an event that ended in the queue.
    pub(crate) fn dropped(&self, event: Event<E>, reason: Reason) {
        self.trace_dropped(&event, reason);
        tell(self.on_drop.as_ref(), event, reason);
    }

    /// Reports an event that ended in the queue, and passes its value to `end`.
    pub(crate) fn dropped_to(&self, event: Event<E>, reason: Reason, end: impl FnOnce(E)) {
        self.trace_dropped(&event, reason);
        tell_to(end, event, reason);
    }
}

impl<E> Inner<E> {
    /// Returns whether code other than servlets may have to be woken; usually there is none.
    #[inline]
    fn concerns_others(&self) -> bool {
        self.senders.any_waits()
            || self.state.watch.is_short()
            || self.settling
            || !self.resting.is_empty()
            || self.state.orphaned
            || self.state.gate == Gate::Closed
            || !self.state.swept.is_empty()
    }
}

impl<E> Drop for Shared<E> {
    fn drop(&mut self) {
        let inner = self.inner.0.get_mut();
        // The parked servlets end, and so does the watcher.
        for (_, waker) in inner.parked.drain(..) {
            inner.state.ended_parked();
            quietly(|| waker.wake());
        }
        self.watching.notify_one();
        inner.state.close(Reason::ShutDown);
        let (ends, mut left) = (inner.state.ends, Vec::new());
        while let Some(event) = inner.state.take_out() {
            left.push((event, ends));
        }
        let swept = std::mem::take(&mut inner.state.swept).into_iter();
        left.extend(swept.map(|event| (event, Reason::Cancelled)));
        for (event, reason) in left {
            self.trace_dropped(&event, reason);
            tell(self.on_drop.as_ref(), event, reason);
        }
    }
}

/// Calls the stage's drop callback for an event, and then the event's own callback.
fn tell<E>(on_drop: Option<&OnDrop<E>>, event: Event<E>, reason: Reason) {
    match on_drop {
        Some(on_drop) => tell_to(|value| on_drop(value, reason), event, reason),
        None => tell_to(drop, event, reason),
    }
}

/// Passes the value of an event to `end`, and then calls the event's own callback.
fn tell_to<E>(end: impl FnOnce(E), event: Event<E>, reason: Reason) {
    let (value, more, _) = event.split();
    quietly(|| end(value));
    if let Some(mut more) = more {
        more.end(reason);
    }
}
