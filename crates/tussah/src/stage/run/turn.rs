//! The step of a servlet between two runs: it ends a run, and takes the next run or parks.

use std::sync::Arc;
use std::task::Waker;

use super::shared::Shared;
use crate::stage::event::{Batch, Begun, Reason};
use crate::stage::state::{Run, State, Waits};

/// A servlet as its stage knows it.
pub(crate) struct Servlet {
    id: u64,
    generation: u32,
    parked: bool,
    /// True if the servlet takes no further events.
    pub(super) gives_way: bool,
}

/// The next step of a servlet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    Work,
    Wait,
    End,
}

impl<E: Send + 'static> Shared<E> {
    /// Registers a servlet that was started for the handler with this number.
    pub(crate) fn add_servlet(&self, generation: u32) -> Servlet {
        let mut inner = self.lock();
        inner.next_servlet += 1;
        Servlet {
            id: inner.next_servlet,
            generation,
            parked: false,
            gives_way: false,
        }
    }

    /// Returns the limits that the stage's handlers wait for.
    pub(crate) fn waits_for(&self) -> Arc<Waits> {
        Arc::clone(&self.lock().state.scarcity.waits)
    }

    /// Ends a servlet's run, and gives it the next events or parks it.
    pub(crate) fn turn(
        self: &Arc<Self>,
        servlet: &mut Servlet,
        run: &mut Run<E>,
        batch: &mut Batch<E>,
        (ended_ns, now_ns): (u64, u64),
        waker: Option<&Waker>,
    ) -> Next {
        let has_keys = !run.keys.is_empty();
        let mut inner = self.lock();
        if servlet.parked {
            let place = inner.parked.iter_mut().find(|(id, _)| *id == servlet.id);
            if let (Some(place), Some(waker)) = (place, waker) {
                // The servlet has not been woken.
                place.1.clone_from(waker);
                return Next::Wait;
            }
            servlet.parked = false;
            inner.came();
        }
        if run.is_open() {
            self.finish(&mut inner.state, run, batch, ended_ns);
            inner.state.decide(now_ns);
        }
        inner.state.undelivered -= std::mem::take(&mut run.undelivered);
        let current = servlet.generation == inner.generation && !servlet.gives_way;
        let present = current && !inner.state.has_too_many();
        let goes_on = match &self.threads {
            Some(threads) if present => threads.goes_on(&mut inner),
            _ => present,
        };
        let next = if goes_on && inner.state.begins() && inner.state.take(run, now_ns) {
            Next::Work
        } else if !run.dropped.is_empty() {
            // The servlet checks again after it has called the drop callbacks.
            Next::Wait
        } else {
            match waker {
                Some(waker) if present && inner.state.park() => {
                    inner.parked.push((servlet.id, waker.clone()));
                    servlet.parked = true;
                    Next::Wait
                }
                Some(_) if present => Next::End,
                _ => {
                    inner.state.ended();
                    Next::End
                }
            }
        };
        run.undelivered = run.dropped.len() as u64;
        inner.state.undelivered += run.undelivered;
        self.release(inner);
        if self.governing.is_due(now_ns) || next == Next::End && self.governing.owes() {
            self.plan(now_ns);
        }
        if has_keys {
            self.keys.notify_waiters();
        }
        next
    }

    /// Ends a run of a servlet. The events that the handler leaves may be new ones, which are then
    /// queued for the first time.
    fn finish(&self, state: &mut State<E>, run: &mut Run<E>, batch: &mut Batch<E>, ended_ns: u64) {
        if batch.traces().has_any() {
            self.traced(batch, run.begun_ns, ended_ns);
        }
        if !batch.is_empty() {
            batch.begin(ended_ns);
        }
        state.finish(run, batch, ended_ns);
    }

    /// Begins the path of the batch's event, if the batch lasts until that path ends.
    #[inline]
    pub(crate) fn begin_path(&self, batch: &mut Batch<E>) -> Option<Begun> {
        batch.begin_path(self.paths.as_ref()?)
    }

    /// Notes that a handler waits, and returns the events that its servlet has taken beyond the
    /// batch, and their keys.
    pub(crate) fn waits(self: &Arc<Self>, run: &mut Run<E>) {
        let keys = run.keys.len();
        let mut inner = self.lock();
        if run.waits {
            inner.state.waits_after_all(run);
        } else {
            inner.state.waits(run);
        }
        self.release(inner);
        if run.keys.len() < keys {
            self.keys.notify_waiters();
        }
    }

    /// Ends a servlet that is dropped early, in any state, because its runtime has ended or a panic
    /// was not caught.
    pub(crate) fn remove_servlet(
        self: &Arc<Self>,
        servlet: &Servlet,
        run: &mut Run<E>,
        batch: &mut Batch<E>,
    ) {
        let has_keys = !run.keys.is_empty();
        let mut inner = self.lock();
        let now_ns = self.time.now_ns();
        let place = inner.parked.iter().position(|(id, _)| *id == servlet.id);
        if let Some(place) = place {
            inner.parked.swap_remove(place);
            inner.state.ended_parked();
        } else {
            if servlet.parked {
                inner.came();
            }
            inner.state.undelivered -= std::mem::take(&mut run.undelivered);
            if run.is_open() {
                run.ended();
                self.finish(&mut inner.state, run, batch, now_ns);
            }
            inner.state.ended();
        }
        self.release(inner);
        if self.governing.owes() {
            self.plan(now_ns);
        }
        if has_keys {
            self.keys.notify_waiters();
        }
        // The servlet's handler did not finish either.
        batch.dropped(if std::thread::panicking() {
            Reason::Panicked
        } else {
            Reason::ShutDown
        });
    }
}
