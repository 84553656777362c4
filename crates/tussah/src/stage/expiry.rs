//! Events whose deadline passes while they wait: they end then, and not when their turn comes.
//!
//! A stage that has events with a deadline in its queue has a watcher, a thread that sleeps until the earliest of these deadlines and then takes out what is late, wherever it
//! is in the queue. To look at a whole queue costs some nanoseconds an event, so it is done at most every [`PAUSE_NS`], and every [`PAUSE_EVENT_NS`] for each event that
//! is queued. Once an event has been taken by a servlet, its batch checks it when the handler takes it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tussah_core::Notify;

use super::event::{Event, Reason};
use super::shared::Shared;
use super::state::State;

/// Bound, in nanoseconds: the shortest time between two looks at a queue. Nobody who waits for an answer notices it.
const PAUSE_NS: u64 = 1_000_000;
/// Bound, in nanoseconds for each queued event: the same for long queues. A look takes a few, so that a worker spends few parts of a hundred on it.
const PAUSE_EVENT_NS: u64 = 100;

/// Where a batch tells of events whose deadline has passed.
pub(crate) trait Expires<E>: Send + Sync {
    /// Whether a deadline has passed.
    fn is_late(&self, deadline_ns: u64) -> bool;

    /// Tells of an event that is late.
    fn expire(&self, event: Event<E>);
}

impl<E: Send + 'static> Expires<E> for Shared<E> {
    fn is_late(&self, deadline_ns: u64) -> bool {
        deadline_ns <= self.time.now_ns()
    }

    fn expire(&self, event: Event<E>) {
        self.dropped(event, Reason::Expired);
    }
}

/// When the deadlines of a queue are looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    /// The earliest deadline of what has been queued since the last look, or was left by it.
    pub(crate) due_ns: u64,
    /// When the watcher looks next; never if there is none.
    pub(crate) looks_ns: u64,
    /// There is a watcher.
    there: bool,
    /// It does not look before.
    not_before_ns: u64,
}

const NEVER: u64 = u64::MAX;

impl Default for Watch {
    fn default() -> Self {
        Self {
            due_ns: NEVER,
            looks_ns: NEVER,
            there: false,
            not_before_ns: 0,
        }
    }
}

/// What has to be done so that the watcher looks in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Watcher {
    Sleeps,
    IsCalled,
    Begins,
}

impl Watch {
    /// An event with this deadline is queued; 0 is none.
    pub(crate) fn queued(&mut self, deadline_ns: u64) {
        if deadline_ns != 0 {
            self.due_ns = self.due_ns.min(deadline_ns);
        }
    }

    /// Whether a deadline comes before the watcher looks.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.due_ns < self.looks_ns
    }

    /// Has the watcher look in time.
    pub(crate) fn set(&mut self) -> Watcher {
        let looks_ns = self.due_ns.max(self.not_before_ns);
        if looks_ns >= self.looks_ns {
            return Watcher::Sleeps;
        }
        self.looks_ns = looks_ns;
        if std::mem::replace(&mut self.there, true) {
            Watcher::IsCalled
        } else {
            Watcher::Begins
        }
    }
}

impl<E> State<E> {
    /// Takes out what is late, and sets when to look again.
    fn take_late(&mut self, now_ns: u64) -> Vec<Event<E>> {
        let mut due_ns = NEVER;
        let late = self.queue.take_late(&mut |event| {
            let deadline_ns = event.deadline_ns();
            if deadline_ns > now_ns {
                due_ns = due_ns.min(deadline_ns);
            }
            (1..=now_ns).contains(&deadline_ns)
        });
        let looked_at = self.len();
        for event in &late {
            self.is_late(event);
        }
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
    /// Starts the watcher, or has it look at when it looks.
    #[cold]
    pub(crate) fn call_watcher(self: &Arc<Self>, watcher: Watcher) {
        match watcher {
            Watcher::Sleeps => {}
            Watcher::IsCalled => self.watching.notify_one(),
            Watcher::Begins => {
                let watching = watch(Arc::downgrade(self), Arc::clone(&self.watching));
                // A runtime that has ended has no timers: what is late ends when it is its turn, or with the stage.
                if let Err(refused) = self.runtime.try_spawn(watching) {
                    self.lock().state.watch.looks_ns = 0;
                    drop(refused);
                }
            }
        }
    }

    /// Ends what is late, and returns when to look again; `None` if there is nothing to look at any more.
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
        inner.state.untold += count;
        self.release(inner);
        if count > 0 {
            for event in late {
                self.dropped(event, Reason::Expired);
            }
            let mut inner = self.lock();
            inner.state.untold -= count;
            self.release(inner);
        }
        again.then_some(looks_ns)
    }
}

/// Looks at a stage's queue whenever a deadline has passed, as long as there are any.
async fn watch<E: Send + 'static>(stage: Weak<Shared<E>>, called: Arc<Notify>) {
    loop {
        let called = called.notified();
        let until = {
            let Some(stage) = stage.upgrade() else { return };
            let Some(looks_ns) = stage.look() else { return };
            crate::time::add(stage.time.start, Duration::from_nanos(looks_ns))
        };
        // Either way it looks.
        let _ = crate::time::timeout_at(until, called).await;
    }
}
