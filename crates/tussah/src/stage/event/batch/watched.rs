//! The events of a batch that are traced, or that may be late or cancelled.

use std::sync::{Arc, Weak};

use super::{Batch, Served};
use crate::stage::event::{Class, Event, Reason, queued_ns};
use crate::stage::send::here;
use crate::stage::state::Waits;
use crate::sync::oneshot;

/// A receiver of events that a handler does not receive, because their deadline has passed or they
/// were cancelled.
pub(crate) trait Expires<E>: Send + Sync {
    /// Returns whether a deadline has passed.
    fn is_late(&self, deadline_ns: u64) -> bool;

    /// Ends an event that the handler does not receive.
    fn end(&self, event: Event<E>, why: Reason);

    /// Counts an event that the handler does not receive, if the event arrived by a call, so that
    /// no stage has counted it.
    fn count_called(&self, why: Reason);
}

/// A path that has begun with the event of a batch.
pub(crate) struct Begun {
    /// Gets whether the path has failed when it ends.
    pub(crate) ended: oneshot::Receiver<bool>,
    /// The number of earlier events of the run whose times count.
    pub(crate) timed: u64,
}

impl<E> Batch<E> {
    /// Makes late and cancelled events end instead of going to the handler. These events are
    /// counted by the stage whose servlet holds the batch.
    #[inline]
    pub(crate) fn check_events<S: Expires<E> + 'static>(&mut self, at: &Arc<S>)
    where
        E: 'static,
    {
        let known = self.at.as_ref().map(|it| it.as_ptr().cast());
        if known != Some(Arc::as_ptr(at)) {
            self.at = Some(Arc::downgrade(at) as _);
        }
        self.called = false;
    }

    /// Checks again whether an event is traced, has a deadline or can be cancelled, because a
    /// handler may have changed that.
    #[inline]
    pub(super) fn look_again(&mut self) -> bool {
        if std::mem::take(&mut self.touched) {
            let any = self.contiguous().iter().any(|event| event.more.is_some());
            self.traces.any = any;
        }
        self.traces.any
    }

    /// Returns whether a stage that is called with this batch has to check its events, or to note
    /// those that have been taken.
    #[inline]
    pub(crate) fn is_watched(&mut self) -> bool {
        self.look_again();
        self.traces.has_any()
    }

    /// Returns whether each event has to be settled as soon as it is handled: something is kept
    /// for it until then, or it may be traced, late or cancelled.
    #[inline]
    pub(crate) fn settles_each(&self) -> bool {
        self.traces.any || !self.kept.is_empty()
    }

    /// Settles all taken events but the last one, after a panic. Those that have to be settled one
    /// by one have been.
    pub(crate) fn settle_earlier(&mut self) {
        self.settled = self.settled.max(self.taken.saturating_sub(1));
    }

    /// Does the same as [`check_events`](Self::check_events) for a batch that a stage is called
    /// with, unless a servlet has filled the batch. The clock of an event starts now, unless the
    /// event has been queued, or has arrived by a call, since it received its deadline.
    pub(crate) fn check_called<S: Expires<E> + 'static>(&mut self, at: &Arc<S>, now_ns: u64)
    where
        E: 'static,
    {
        if !self.traces.any {
            return;
        }
        if self.called || self.at.is_none() {
            self.called = true;
            self.at = Some(Arc::downgrade(at) as _);
        }
        self.begin(now_ns);
    }

    /// Starts the clock of the events that have not been queued, or not since they received their
    /// deadline.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        for event in self.contiguous() {
            if queued_ns(event.stamp()) == 0 {
                event.queued(now_ns);
            } else if let Some(more) = &mut event.more {
                more.begin(now_ns);
            }
        }
    }

    #[cold]
    pub(super) fn take_watched(&mut self, event: &mut Event<E>) {
        self.traces.take(event);
        if let Some(hold) = event.hold() {
            // A stage may have refused the event before this one was called with it.
            hold.taken();
        }
        // What a handler makes itself, for a call or not, belongs to the path of its own event.
        let is_of_servlet = self.at.is_some() && !self.called;
        if is_of_servlet || event.path().is_some() {
            here::set_path(event.path().cloned());
        }
        self.cancel = event.cancel().cloned();
        if let Some(cancel) = &self.cancel {
            self.served.push(Served {
                cancel: Arc::clone(cancel),
                visit: cancel.cell.visit(),
                stamp: event.stamp(),
            });
        }
    }

    /// Returns the event, unless it is late or cancelled; in that case, the event ends.
    #[cold]
    pub(super) fn wanted(&mut self, event: Event<E>) -> Option<Event<E>> {
        let deadline_ns = event.deadline_ns();
        let looks = deadline_ns != 0 || event.cancel().is_some();
        let at = self.at.as_ref().filter(|_| looks);
        let Some(at) = at.and_then(Weak::upgrade) else {
            return Some(event);
        };
        let why = if event.is_cancelled() {
            Reason::Cancelled
        } else if deadline_ns != 0 && at.is_late(deadline_ns) {
            Reason::Expired
        } else {
            return Some(event);
        };
        if !self.called {
            self.withheld.push(event.class_of());
        }
        match why {
            _ if self.called => at.count_called(why),
            Reason::Cancelled => self.passed_over += 1,
            _ => self.expired += 1,
        }
        at.end(event, why);
        None
    }

    /// Takes out the classes of the events that the handler did not receive.
    pub(crate) fn take_withheld(&mut self) -> Vec<Class> {
        std::mem::take(&mut self.withheld)
    }

    /// Returns a future that completes when the batch's only event is cancelled and the handler is
    /// to be dropped. Returns `None` if the batch has other events or the event cannot be
    /// cancelled.
    pub(crate) fn drops_handler(&self) -> Option<impl Future<Output = ()> + Send + use<E>> {
        if !self.traces.any || self.left != 1 {
            return None;
        }
        let cancel = self.front()?.front()?.cancel()?;
        Some(Arc::clone(cancel).drops_handler(cancel.cell.visit()))
    }

    /// Notes the failure of the last taken events in their paths.
    pub(super) fn fail_paths(&self, events: u64) {
        let events = usize::try_from(events).unwrap_or(usize::MAX);
        let before = self.taken.saturating_sub(events);
        for (_, more) in self.kept.iter().rev().take_while(|(at, _)| *at > before) {
            more.fail();
        }
        // The handler may have the last event itself.
        if events > 0
            && let Some(path) = here::path()
        {
            path.fail();
        }
    }

    /// Begins a path with the next event, which is the batch's only one.
    #[cold]
    pub(crate) fn begin_path(&mut self, waits: &Arc<Waits>) -> Option<Begun> {
        let timed = self.timed();
        let [event] = self.contiguous() else {
            return None;
        };
        let ended = event.begin_path(Arc::clone(waits));
        self.traces.any = true;
        Some(Begun { ended, timed })
    }

    /// Marks the event with which a path began as failed, unless it has failed already, or has
    /// ended without being taken.
    #[cold]
    pub(crate) fn fail_path(&mut self, timed: u64) {
        match self.timed().saturating_sub(timed) {
            // The handler has failed its event or left it out.
            0 => self.failed += self.keep_left_out(1),
            events => self.fail(events),
        }
    }

    /// Makes the remaining events leave the path that began at this stage. They return to its
    /// queue, and its servlets wait for the others.
    #[cold]
    pub(crate) fn leave_path(&mut self, entry: &Arc<Waits>) {
        for event in self.contiguous() {
            event.goes_to(entry);
        }
    }

    /// Counts the taken events that have been cancelled; later cancellations do not count.
    #[cold]
    pub(super) fn settle_served(&mut self) {
        for served in std::mem::take(&mut self.served) {
            if served.cancel.cell.is_cancelled_at(served.visit) {
                self.unnote(served.stamp);
                self.cancelled += 1;
            }
        }
    }
}
