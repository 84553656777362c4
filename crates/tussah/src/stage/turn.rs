//! What a servlet does at its stage between two runs: it ends one, takes the next, or parks.

use std::sync::Arc;
use std::task::Waker;

use super::batch::Batch;
use super::event::Reason;
use super::shared::Shared;
use super::state::Run;

/// A servlet as its stage knows it.
pub(crate) struct Servlet {
    id: u64,
    generation: u32,
    parked: bool,
}

/// What a servlet does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    Work,
    Wait,
    End,
}

impl<E: Send + 'static> Shared<E> {
    /// Makes a servlet known that was summoned for the handler with this number, and starts.
    pub(crate) fn enlist(&self, generation: u32) -> Servlet {
        let mut inner = self.lock();
        inner.next_servlet += 1;
        Servlet {
            id: inner.next_servlet,
            generation,
            parked: false,
        }
    }

    /// Ends what a servlet has done, and gives it the next events, or parks it.
    pub(crate) fn turn(
        self: &Arc<Self>,
        servlet: &mut Servlet,
        run: &mut Run<E>,
        batch: &mut Batch<E>,
        (ended_ns, now_ns): (u64, u64),
        waker: Option<&Waker>,
    ) -> Next {
        let key = run.key.is_some();
        let mut inner = self.lock();
        if servlet.parked {
            let place = inner.parked.iter_mut().find(|(id, _)| *id == servlet.id);
            if let (Some(place), Some(waker)) = (place, waker) {
                // Nobody has called it.
                place.1.clone_from(waker);
                return Next::Wait;
            }
            servlet.parked = false;
        }
        if run.is_open() {
            if batch.traces().has_any() {
                self.traced(batch, run.begun_ns, ended_ns);
            }
            inner.state.finish(run, batch, ended_ns);
            inner.state.decide(now_ns);
        }
        inner.state.untold -= std::mem::take(&mut run.untold);
        let present = servlet.generation == inner.generation && !inner.state.has_too_many();
        let goes_on = match &self.threads {
            Some(threads) if present => threads.goes_on(&mut inner),
            _ => present,
        };
        let next = if goes_on && inner.state.begins() && inner.state.take(run, now_ns) {
            Next::Work
        } else if !run.dropped.is_empty() {
            // It looks again when it has told of what was dropped.
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
        run.untold = run.dropped.len() as u64;
        inner.state.untold += run.untold;
        self.release(inner);
        if self.governing.is_due(now_ns) || next == Next::End && self.governing.owes() {
            self.plan(now_ns);
        }
        if key {
            self.keys.notify_waiters();
        }
        next
    }

    /// Says that a handler waits, and gives back what its servlet has taken beyond the batch.
    pub(crate) fn waits(self: &Arc<Self>, run: &mut Run<E>) {
        let mut inner = self.lock();
        if run.waits {
            inner.state.waits_after_all(run);
        } else {
            inner.state.waits(run);
        }
        self.release(inner);
    }

    /// A servlet is dropped before its end, whatever it was doing: by the end of its runtime, or by a panic that nobody caught.
    pub(crate) fn dismiss(
        self: &Arc<Self>,
        servlet: &Servlet,
        run: &mut Run<E>,
        batch: &mut Batch<E>,
    ) {
        let key = run.key.is_some();
        let mut inner = self.lock();
        let now_ns = self.time.now_ns();
        let place = inner.parked.iter().position(|(id, _)| *id == servlet.id);
        if let Some(place) = place {
            inner.parked.swap_remove(place);
            inner.state.ended_parked();
        } else {
            inner.state.untold -= std::mem::take(&mut run.untold);
            if run.is_open() {
                if batch.traces().has_any() {
                    self.traced(batch, run.begun_ns, now_ns);
                }
                run.ended();
                inner.state.finish(run, batch, now_ns);
            }
            inner.state.ended();
        }
        self.release(inner);
        if self.governing.owes() {
            self.plan(now_ns);
        }
        if key {
            self.keys.notify_waiters();
        }
        // Its handler has not come to its end either.
        batch.dropped(if std::thread::panicking() {
            Reason::Panicked
        } else {
            Reason::ShutDown
        });
    }
}
