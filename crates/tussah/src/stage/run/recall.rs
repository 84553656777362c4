//! Cancelled events in a stage's queue: they are counted immediately, and removed when they make up
//! an eighth of their class or key.

use std::sync::Arc;

use super::shared::Shared;
use crate::stage::control::Order;
use crate::stage::event::{Cancel, Cell, Event, Left, Reason, Recall, Spot};
use crate::stage::queue::Queue;
use crate::stage::state::State;

impl<E: Send + 'static> Recall for Shared<E> {
    fn recall(self: Arc<Self>, cell: &Cell, visit: u32) {
        let mut inner = self.lock();
        // Otherwise the event has been taken, and ends where it is.
        if let Some(spot) = cell.bury(visit) {
            inner.state.bury(&spot);
            inner.state.end_busy(self.time.now_ns());
            self.release(inner);
        }
    }
}

impl<E: Send + 'static> Shared<E> {
    /// Runs the drop callbacks of events that were cancelled in the queue. The stage counts them as
    /// undelivered until then.
    #[cold]
    pub(crate) fn tell_cancelled(self: &Arc<Self>, events: Vec<Event<E>>) {
        let count = events.len() as u64;
        for event in events {
            self.dropped(event, Reason::Cancelled);
        }
        let mut inner = self.lock();
        inner.state.undelivered -= count;
        self.release(inner);
    }
}

impl<E> State<E> {
    /// Registers a cancellable event that has been queued in this part of the queue.
    #[cold]
    pub(crate) fn can_be_cancelled(
        &mut self,
        cancel: &Cancel,
        part: usize,
        (class, credits): (usize, u64),
    ) {
        // The events of a simulator are never cancelled.
        let Some(home) = self.home.clone() else {
            return;
        };
        let spot = Spot {
            home,
            part,
            class,
            credits,
        };
        if let Some(spot) = cancel.cell.queued(spot) {
            self.bury(&spot);
        }
    }

    /// Counts an event as cancelled while it is still in the queue.
    fn bury(&mut self, spot: &Spot) {
        self.counts.cancelled += 1;
        self.uncount(spot.class, spot.credits);
        self.buried += 1;
        self.queue.bury(spot.part);
        self.sweep_part(spot.part);
    }

    /// Removes an event that has left the queue from the counts, and returns it. A cancelled event
    /// goes to `swept` instead.
    #[inline]
    pub(crate) fn count_out(&mut self, mut event: Event<E>) -> Option<Event<E>> {
        let mut left = Left::Live;
        if let Some(more) = &mut event.more {
            self.extras -= 1;
            if let Some(hold) = &mut more.hold {
                hold.taken();
            }
            if let Some(cancel) = &more.cancel {
                left = cancel.cell.leave();
            }
        }
        if let Left::Buried(part) = left {
            self.buried -= 1;
            self.queue.removed_buried(part);
            self.swept.push(event);
            return None;
        }
        self.uncount(self.class(&event), event.charged());
        if left == Left::Cancelled {
            self.counts.cancelled += 1;
            self.swept.push(event);
            return None;
        }
        Some(event)
    }

    #[inline]
    fn uncount(&mut self, class: usize, credits: u64) {
        self.len -= 1;
        self.queued[class] -= 1;
        self.credits -= credits;
        self.freed = true;
    }

    /// Sweeps the parts of the queue from which a servlet has taken events, where buried events
    /// make up too large a share of the rest.
    #[cold]
    pub(crate) fn sweep(&mut self) {
        if let Queue::Lanes(_) = self.queue {
            (0..self.classes).for_each(|lane| self.sweep_part(lane));
        }
    }

    fn sweep_part(&mut self, part: usize) {
        for event in self.queue.sweep(part) {
            self.count_out(event);
        }
    }

    /// Ends a key's busy time.
    pub(crate) fn release_key(&mut self, key: usize) {
        if self.buried > 0 {
            self.sweep_part(key);
        }
        if let Queue::Keyed(keyed) = &mut self.queue {
            keyed.release(key);
        }
    }

    /// Ends the busy time of a key that was opened in this order, and of which nothing was handled:
    /// it is the next to be opened.
    pub(crate) fn unopen_key(&mut self, key: usize, order: Order) {
        if self.buried > 0 {
            self.sweep_part(key);
        }
        if let Queue::Keyed(keyed) = &mut self.queue {
            keyed.unopen(key, order);
        }
    }

    /// Puts back an event that a servlet took in this order from this key.
    pub(crate) fn put_back(&mut self, mut event: Event<E>, order: Order, key: Option<usize>) {
        let class = self.class(&event);
        let credits = event.charged();
        let cancel = event.cancel().cloned();
        self.len += 1;
        self.queued[class] += 1;
        self.credits += credits;
        self.extras += u64::from(event.more.is_some());
        self.watch.queued(event.deadline_ns());
        self.waits_here(&mut event);
        let put = self.put_in_line(event);
        let part = put.unwrap_or_else(|event| self.queue.put_back(event, order, key));
        if let Some(cancel) = cancel {
            self.can_be_cancelled(&cancel, part, (class, credits));
        }
    }
}
