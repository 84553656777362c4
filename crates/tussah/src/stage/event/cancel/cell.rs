//! The cell: the location of a cancellable event, and whether it was cancelled. [`cancel`](super)
//! documents the rules.

use super::sync::{AtomicBool, Mutex, Ordering};

/// The place of an event, and whether it was cancelled. `H` leads to the stage that has it in its
/// queue.
pub(crate) struct Cell<H> {
    /// Set under the lock, and never reset.
    cancelled: AtomicBool,
    inside: Mutex<Inside<H>>,
}

struct Inside<H> {
    place: Place<H>,
    /// The number of queues in which the event has been. The number shows a stage whether the event
    /// has been sent on since an earlier visit.
    visit: u32,
}

/// The place of an event.
enum Place<H> {
    /// In no queue: a sender, a servlet or a handler has it.
    Out,
    /// In a queue, counted as queued.
    Queued(Spot<H>),
    /// In this part of a queue, but counted as cancelled.
    Buried(usize),
    /// With a handler whose future is being dropped because the event was cancelled.
    Dropped,
    /// Ended.
    Ended,
}

/// The data that a stage needs to remove an event from its counts.
pub(crate) struct Spot<H> {
    pub(crate) home: H,
    /// The part of the queue: a lane or a key.
    pub(crate) part: usize,
    pub(crate) class: usize,
    pub(crate) credits: u64,
}

/// The state of an event that leaves a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Left {
    Live,
    /// The event was cancelled, and is still counted as queued.
    Cancelled,
    /// The event was counted as cancelled while it was in this part of the queue.
    Buried(usize),
}

impl<H: Clone> Cell<H> {
    pub(crate) fn new() -> Self {
        Self {
            cancelled: AtomicBool::new(false),
            inside: Mutex::new(Inside {
                place: Place::Out,
                visit: 0,
            }),
        }
    }

    /// Returns whether the event was cancelled before its end.
    pub(crate) fn is_cancelled(&self) -> bool {
        // Acquire pairs with the Release in `cancel`, so that the canceller's earlier writes are
        // seen.
        self.cancelled.load(Ordering::Acquire)
    }

    /// Cancels the event. Returns `None` if the event has ended or was cancelled earlier. Otherwise
    /// returns the stage in whose queue it is, if any, and the visit there.
    pub(crate) fn cancel(&self) -> Option<Option<(H, u32)>> {
        let inside = self.inside.lock();
        let home = match &inside.place {
            Place::Ended => return None,
            Place::Queued(spot) => Some((spot.home.clone(), inside.visit)),
            Place::Out | Place::Buried(_) | Place::Dropped => None,
        };
        // Release pairs with the Acquire in `is_cancelled`.
        let before = self.cancelled.swap(true, Ordering::Release);
        (!before).then_some(home)
    }

    /// Notes that the event is queued. If it was cancelled, it is buried, and the stage gets the
    /// spot back to count it accordingly.
    pub(crate) fn queued(&self, spot: Spot<H>) -> Option<Spot<H>> {
        let mut inside = self.inside.lock();
        inside.visit = inside.visit.wrapping_add(1);
        if self.is_cancelled() {
            inside.place = Place::Buried(spot.part);
            return Some(spot);
        }
        inside.place = Place::Queued(spot);
        None
    }

    /// Buries the event, unless it has left the queue in which it was at this visit.
    pub(crate) fn bury(&self, visit: u32) -> Option<Spot<H>> {
        let mut inside = self.inside.lock();
        if inside.visit != visit {
            return None;
        }
        let Place::Queued(spot) = &inside.place else {
            return None;
        };
        let buried = Place::Buried(spot.part);
        match std::mem::replace(&mut inside.place, buried) {
            Place::Queued(spot) => Some(spot),
            _ => unreachable!("it was just seen"),
        }
    }

    pub(crate) fn is_buried(&self) -> bool {
        matches!(self.inside.lock().place, Place::Buried(_))
    }

    /// Notes that the event leaves its queue.
    pub(crate) fn leave(&self) -> Left {
        let mut inside = self.inside.lock();
        match std::mem::replace(&mut inside.place, Place::Out) {
            Place::Buried(part) => Left::Buried(part),
            _ if self.is_cancelled() => Left::Cancelled,
            _ => Left::Live,
        }
    }

    /// Returns the number of queues in which the event has been.
    pub(crate) fn visit(&self) -> u32 {
        self.inside.lock().visit
    }

    /// Returns whether the event was cancelled and has not been sent on since this visit. If so, it
    /// counts as cancelled by that stage.
    pub(crate) fn is_cancelled_at(&self, visit: u32) -> bool {
        let inside = self.inside.lock();
        inside.visit == visit && self.is_cancelled()
    }

    /// Decides whether the future of a handler that has only this event is to be dropped: the event
    /// is cancelled, and the handler or its batch still has it.
    pub(crate) fn begin_drop(&self, visit: u32) -> bool {
        let mut inside = self.inside.lock();
        let drops =
            inside.visit == visit && matches!(inside.place, Place::Out) && self.is_cancelled();
        if drops {
            inside.place = Place::Dropped;
        }
        drops
    }

    /// Notes that the event has ended, after which it cannot be cancelled. Returns whether it ended
    /// with the future of its handler.
    pub(crate) fn end(&self) -> bool {
        let place = std::mem::replace(&mut self.inside.lock().place, Place::Ended);
        matches!(place, Place::Dropped)
    }
}
