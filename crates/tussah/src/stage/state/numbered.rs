//! Numbered events, for a handler whose output is in the order of the queue.
//!
//! Each event gets its number when a servlet takes it, under the queue's lock. An event that goes
//! back keeps its number. A handler may wait until all events with lower numbers than those of its
//! batch have ended. It waits for no event in the queue forever:
//!
//! 1. The queue is first in, first out, whatever the controllers say, and an event goes back [in
//!    front of](State::put_in_line) all events with higher numbers or none.
//! 2. A servlet takes one batch at a time. Its numbers follow each other [without a
//!    gap](State::number), so no handler waits for a handler that waits for it.
//! 3. While [the next event has been returned](State::has_returned), all handlers may wait for it.
//!    A servlet may then begin even if as many as allowed are busy, or if the stage is held. In a
//!    stage that is held, it takes only events that were returned.

use super::State;
use crate::stage::control::Order;
use crate::stage::event::{Batch, Event};

/// The numbers of the events that have left the queue at least once.
pub(crate) struct Numbers<E> {
    /// Gives an event the next number, unless it has one.
    pub(crate) give: Box<dyn Fn(&mut E) + Send>,
    /// Returns the number of an event, if it has one.
    pub(crate) of: fn(&E) -> Option<u64>,
}

impl<E> State<E> {
    /// Returns whether the next event has a number, because a servlet has returned it.
    pub(super) fn has_returned(&self) -> bool {
        let next = self.numbers.as_ref().zip(self.queue.first());
        next.is_some_and(|(numbers, next)| (numbers.of)(next).is_some())
    }

    /// Numbers the events that a servlet takes, and puts back those behind a gap: other servlets
    /// have the events between.
    pub(super) fn number(&mut self, batch: &mut Batch<E>) {
        let Some(numbers) = &self.numbers else {
            return;
        };
        let events = batch.contiguous();
        if self.held == 0 {
            events.iter_mut().for_each(|event| (numbers.give)(event));
        }
        let number = |event: &Event<E>| (numbers.of)(event);
        let mut pairs = events.windows(2);
        let gap = pairs.position(|pair| number(&pair[0]).map(|it| it + 1) != number(&pair[1]));
        if let Some(last) = gap {
            for event in batch.split_off(last + 1).into_iter().rev() {
                self.put_back(event, Order::Fifo, None);
            }
        }
    }

    /// Puts back an event behind those with lower numbers, if the stage numbers its events. Returns
    /// the part of the queue in which the event is.
    ///
    /// # Errors
    /// Returns the event if the stage does not number its events.
    pub(crate) fn put_in_line(&mut self, event: Event<E>) -> Result<usize, Event<E>> {
        let Some(numbers) = &self.numbers else {
            return Err(event);
        };
        let number = (numbers.of)(&event);
        let is_before = |other: &Event<E>| (numbers.of)(other).is_some_and(|it| Some(it) < number);
        Ok(self.queue.insert(event, is_before))
    }
}
