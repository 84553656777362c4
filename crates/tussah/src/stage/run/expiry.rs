//! The watcher of a stage, which ends queued events that can no longer be answered in time.
//!
//! A stage has a watcher if its queue contains deadlines or if it is overloaded. The watcher is a
//! thread that sleeps until the state has to check the queue. It does not cover events that a
//! servlet has taken or that arrive by a call: their batch checks the deadline when the handler
//! takes them.

use std::sync::{Arc, Weak};

use tussah_core::Notify;

use super::shared::Shared;
use crate::stage::event::{Event, Expires, Reason, Watcher};

impl<E: Send + 'static> Expires<E> for Shared<E> {
    fn is_late(&self, deadline_ns: u64) -> bool {
        deadline_ns <= self.time.now_ns()
    }

    fn end(&self, event: Event<E>, why: Reason) {
        self.dropped(event, why);
    }

    fn count_called(&self, why: Reason) {
        let counts = &mut self.lock().state.counts;
        counts.arrived += 1;
        match why {
            Reason::Cancelled => counts.cancelled += 1,
            _ => counts.expired += 1,
        }
    }
}

impl<E: Send + 'static> Shared<E> {
    /// Starts the watcher, or makes it check its schedule.
    #[cold]
    pub(crate) fn call_watcher(self: &Arc<Self>, watcher: Watcher) {
        match watcher {
            Watcher::Sleeps => {}
            Watcher::IsCalled => self.watching.notify_one(),
            Watcher::Begins => {
                let watching = watch(Arc::downgrade(self), Arc::clone(&self.watching));
                // A runtime that has ended has no timers: late events end when their turn comes, or
                // with the stage.
                if let Err(refused) = self.runtime.try_spawn(watching) {
                    self.lock().state.watch.looks_ns = 0;
                    drop(refused);
                }
            }
        }
    }

    /// Sheds the oldest queued event: passes its value to `end`, in place of the stage's drop
    /// callback. Returns false if none is queued.
    pub(crate) fn shed_oldest(self: &Arc<Self>, end: impl FnOnce(E)) -> bool {
        let mut inner = self.lock();
        let shed = inner.state.shed_oldest(self.time.now_ns());
        inner.state.undelivered += u64::from(shed.is_some());
        self.release(inner);
        let Some(event) = shed else {
            return false;
        };
        self.dropped_to(event, Reason::Shed, end);
        let mut inner = self.lock();
        inner.state.undelivered -= 1;
        self.release(inner);
        true
    }

    /// Ends the events that are late or overdue. Returns the time of the next check, or `None` if
    /// there is nothing left to check.
    fn look(self: &Arc<Self>) -> Option<u64> {
        let mut inner = self.lock();
        let ended = inner.state.check_queue(self.time.now_ns());
        let watch = inner.state.watch;
        let count = ended.len() as u64;
        inner.state.undelivered += count;
        self.release(inner);
        if count > 0 {
            for (event, why) in ended {
                self.dropped(event, why);
            }
            let mut inner = self.lock();
            inner.state.undelivered -= count;
            self.release(inner);
        }
        watch.there.then_some(watch.looks_ns)
    }
}

/// Checks a stage's queue on its schedule, as long as there is one.
async fn watch<E: Send + 'static>(stage: Weak<Shared<E>>, called: Arc<Notify>) {
    loop {
        let called = called.notified();
        let until = {
            let Some(stage) = stage.upgrade() else { return };
            let Some(looks_ns) = stage.look() else { return };
            stage.time.clock.at_ns(looks_ns)
        };
        // Both outcomes lead to a check.
        let _ = crate::time::timeout_at(until, called).await;
    }
}
