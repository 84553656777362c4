//! Queueing of runnable colors with workers.

use std::cell::Cell;
use std::ptr::NonNull;

use super::shared::{STOPPED, Shared};
use crate::event::{self, DropReason, Node};
use crate::loom::atomic::{Ordering, fence};
use crate::worker::Worker;

impl Shared {
    /// Queues a runnable color: with this worker if the caller is one, otherwise with some worker.
    #[inline]
    pub(crate) fn schedule(&self, node: NonNull<Node>) {
        Worker::with(|worker| match worker {
            Some(worker) if worker.is_of(self) => worker.push(node),
            _ => self.inject(node),
        });
    }

    /// Follows a push of a worker's own event. Wakes another worker if that pays off, or if no
    /// worker keeps watch.
    #[inline]
    pub(crate) fn work_pushed(&self, worker: &Worker) {
        // The common case: all workers are busy, or one keeps watch and the queue is short.
        if self.idle.any_parked() && self.stealing {
            self.call_for_help(worker);
        }
    }

    #[cold]
    fn call_for_help(&self, worker: &Worker) {
        if self.idle.unwatched() {
            return self.call_watch();
        }
        let queue_len = worker.remote.queue_len();
        let turn_ns = worker.remote.turn_ns.load(Ordering::Relaxed);
        if crate::worker::worth_a_call(queue_len, turn_ns, self.steal_delay)
            && let Some(sleeper) = self.idle.wake_one()
        {
            self.unpark(sleeper);
        }
    }

    /// Queues a node from an OS thread that is not one of this runtime's workers.
    #[cold]
    pub(crate) fn inject(&self, node: NonNull<Node>) {
        let sleeper = if self.idle.any_parked() {
            self.idle.wake_one()
        } else {
            None
        };
        let place = sleeper.unwrap_or_else(|| self.any_place());
        // SAFETY: the caller may queue the node, which is in no other list.
        unsafe { self.place(place).injector.push(node) };
        // Pairs with the fences in `Idle::park`, `Idle::found` and `worker_ended`, and with that of
        // the shutdown. Either the worker sees the node, or we see what the worker did. It has
        // parked, runs something else while no worker keeps watch, is ending, or has ended.
        fence(Ordering::SeqCst);
        if sleeper.is_none() && self.idle.any_parked() && self.idle.wake(place) {
            self.unpark(place);
        } else {
            if self.idle.unwatched()
                && self.stealing
                && let Some(watch) = self.idle.wake_one()
            {
                self.unpark(watch);
            }
            if sleeper.is_some() {
                self.unpark(place);
            }
        }
        if self.phase.load(Ordering::Relaxed) == STOPPED {
            self.drop_queued();
        } else if self.place(place).stop.load(Ordering::Relaxed) {
            self.rescue(place);
        }
    }

    /// Takes back the nodes that were queued with an ending worker.
    #[cold]
    pub(super) fn rescue(&self, place: usize) {
        // This counts as a search: while work is being moved, the workers must not all seem to be
        // parked (`is_at_rest`).
        self.idle.add();
        for node in self.place(place).injector.take_all() {
            self.inject(node);
        }
        if let Some(successor) = self.idle.remove() {
            self.unpark(successor);
        }
    }

    /// Drops everything queued anywhere, after the workers have ended.
    pub(crate) fn drop_queued(&self) {
        // Dropping a node may queue more nodes: for example, a dropped future wakes another thread.
        // The outermost call drops these too, so that a chain of drops does not nest.
        let Some(_dropping) = Dropping::begin(self) else {
            return;
        };
        while !self.queues_are_empty() {
            self.drop_queued_once();
        }
    }

    /// Runs `f`, which holds a lock and may post, and afterwards drops the nodes that could not be
    /// queued: users' destructors must not run under our locks.
    pub(crate) fn drop_later<R>(&self, f: impl FnOnce() -> R) -> R {
        let dropping = Dropping::begin(self);
        let result = f();
        drop(dropping);
        if self.phase.load(Ordering::Relaxed) == STOPPED {
            self.drop_queued();
        }
        result
    }

    fn drop_queued_once(&self) {
        for place in 0..self.places() {
            let remote = self.place(place);
            for node in remote.injector.take_all() {
                // SAFETY: the node came out of the queue.
                unsafe { event::drop_unrun(node, DropReason::ShutDown) };
            }
            while remote.steal(1, |node| {
                // SAFETY: the node came out of the queue.
                unsafe { event::drop_unrun(node, DropReason::ShutDown) };
            }) > 0
            {}
        }
    }

    /// Returns whether nothing is running, queued, or moving from one queue to another.
    pub(crate) fn is_at_rest(&self) -> bool {
        // The queues are read one after the other, so no worker may have been awake in between.
        let parked = self.idle.all_parked();
        parked.is_some() && self.queues_are_empty() && self.idle.all_parked() == parked
    }

    /// Returns whether nothing is queued anywhere.
    pub(crate) fn queues_are_empty(&self) -> bool {
        (0..self.places()).all(|place| {
            let remote = self.place(place);
            remote.queue_len() == 0 && remote.injector.is_empty()
        })
    }
}

crate::loom::thread_local! {
    /// The runtime whose queues this OS thread is dropping, or will drop.
    static DROPPING: Cell<*const Shared> = const { Cell::new(std::ptr::null()) };
}

/// Keeps calls of `drop_queued` for one runtime from nesting.
struct Dropping(*const Shared);

impl Dropping {
    /// Returns `None` if this OS thread is already dropping the queues of this runtime.
    fn begin(shared: &Shared) -> Option<Self> {
        DROPPING.with(|dropping| {
            let before = dropping.get();
            if std::ptr::eq(before, shared) {
                return None;
            }
            dropping.set(shared);
            Some(Self(before))
        })
    }
}

impl Drop for Dropping {
    fn drop(&mut self) {
        DROPPING.with(|dropping| dropping.set(self.0));
    }
}
