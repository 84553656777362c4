//! Events whose deadline passes while they wait: they end at the deadline, not when their turn
//! comes.
//!
//! A stage with deadlines in its queue has a watcher: a thread that sleeps until the earliest
//! deadline, and then takes late events out of any place in the queue. Checking a whole queue costs
//! a few nanoseconds per event. So the watcher checks at most once per [`PAUSE_NS`], and at most
//! once per [`PAUSE_EVENT_NS`] for each queued event. After a servlet has taken an event, or a
//! stage was called with it, the batch checks the deadline when the handler takes the event.

use std::sync::{Arc, Weak};

use tussah_core::Notify;

use super::shared::Shared;
use crate::stage::event::{Event, Expires, NEVER, Reason, Watch, Watcher};
use crate::stage::state::State;

/// Bound, in nanoseconds: the shortest time between two checks of a queue. A caller that waits for
/// a response does not notice it.
const PAUSE_NS: u64 = 1_000_000;
/// Bound, in nanoseconds for each queued event: the shortest time between two checks of a long
/// queue. A check takes a few nanoseconds per event, so it costs a few percent of a worker's time.
const PAUSE_EVENT_NS: u64 = 100;

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

impl<E> State<E> {
    /// Takes out late events, and sets the time of the next check.
    fn take_late(&mut self, now_ns: u64) -> Vec<Event<E>> {
        let mut due_ns = NEVER;
        let buried = self.buried > 0;
        let taken = self.queue.take_late(&mut |event| {
            let deadline_ns = event.deadline_ns();
            if deadline_ns > now_ns {
                due_ns = due_ns.min(deadline_ns);
            }
            (1..=now_ns).contains(&deadline_ns) || buried && event.is_buried()
        });
        let looked_at = self.len();
        let late = taken.into_iter().filter_map(|event| self.count_out(event));
        let late: Vec<_> = late.collect();
        self.counts.expired += late.len() as u64;
        self.end_busy(now_ns);
        let pause_ns = PAUSE_NS.max(looked_at.saturating_mul(PAUSE_EVENT_NS));
        self.watch.not_before_ns = now_ns.saturating_add(pause_ns);
        self.watch.due_ns = due_ns;
        self.watch.looks_ns = if due_ns == NEVER {
            NEVER
        } else {
            due_ns.max(self.watch.not_before_ns)
        };
        self.watch.there = due_ns != NEVER;
        late
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

    /// Ends late events. Returns the time of the next check, or `None` if nothing is left to check.
    fn look(self: &Arc<Self>) -> Option<u64> {
        let mut inner = self.lock();
        let now_ns = self.time.now_ns();
        let mut late = Vec::new();
        if inner.state.watch.looks_ns <= now_ns {
            late = inner.state.take_late(now_ns);
        }
        let queued = inner.state.len();
        let again = inner.state.watch.there && queued > 0;
        if !again {
            inner.state.watch = Watch {
                not_before_ns: inner.state.watch.not_before_ns,
                ..Watch::default()
            };
        }
        let looks_ns = inner.state.watch.looks_ns;
        let count = late.len() as u64;
        inner.state.undelivered += count;
        self.release(inner);
        if count > 0 {
            for event in late {
                self.dropped(event, Reason::Expired);
            }
            let mut inner = self.lock();
            inner.state.undelivered -= count;
            self.release(inner);
        }
        again.then_some(looks_ns)
    }
}

/// Checks a stage's queue whenever a deadline has passed, as long as there are deadlines.
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
