//! The queue by class: first in, first out within each class.

use std::collections::VecDeque;

use super::turns::Turns;
use super::{is_due, pick};
use crate::stage::control::Order;
use crate::stage::event::{Batch, Chunk, Classes, Event};

/// The maximum length of a chunk, in events. A chunk is long enough that a lock or an allocation
/// per chunk costs almost nothing, and short enough that a chunk of small events stays in the
/// first-level cache.
pub(crate) const CHUNK_MAX: usize = 128;
/// The maximum number of empty chunks that a queue keeps for the next senders.
const SPARE_MAX: usize = 4;

pub(crate) struct Lanes<E> {
    lanes: Vec<Lane<E>>,
    turns: Turns,
    spare: Vec<Chunk<E>>,
    len: usize,
}

struct Lane<E> {
    chunks: VecDeque<Chunk<E>>,
    len: usize,
    /// The number of cancelled events among `len`.
    buried: usize,
}

impl<E> Lane<E> {
    /// Takes out the events that `picks` selects.
    fn pick(&mut self, picks: &mut dyn FnMut(&Event<E>) -> bool, picked: &mut Vec<Event<E>>) {
        let before = picked.len();
        for chunk in &mut self.chunks {
            pick(chunk, picks, picked);
        }
        self.chunks.retain(|chunk| !chunk.is_empty());
        self.len -= picked.len() - before;
    }
}

impl<E> Lanes<E> {
    pub(crate) fn new(classes: Classes) -> Self {
        let lane = || Lane {
            chunks: VecDeque::new(),
            len: 0,
            buried: 0,
        };
        Self {
            lanes: (0..classes.count()).map(|_| lane()).collect(),
            turns: Turns::new(classes),
            spare: Vec::new(),
            len: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn lane(&self, event: &Event<E>) -> usize {
        event.class_of().among(self.lanes.len())
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, event: Event<E>) -> usize {
        let at = self.lane(&event);
        let lane = &mut self.lanes[at];
        if lane.len == 0 {
            self.turns.came(at);
        }
        lane.len += 1;
        self.len += 1;
        match lane.chunks.back_mut() {
            Some(chunk) if chunk.len() < CHUNK_MAX => chunk.push_back(event),
            _ => {
                let mut chunk = self.spare.pop().unwrap_or_default();
                chunk.push_back(event);
                lane.chunks.push_back(chunk);
            }
        }
        at
    }

    pub(crate) fn push_front(&mut self, event: Event<E>) -> usize {
        let at = self.lane(&event);
        let lane = &mut self.lanes[at];
        if lane.len == 0 {
            self.turns.came(at);
        }
        lane.len += 1;
        self.len += 1;
        match lane.chunks.front_mut() {
            Some(chunk) => chunk.push_front(event),
            None => lane.chunks.push_back(Chunk::from([event])),
        }
        at
    }

    /// Queues the events of a chunk in its order, and replaces it with an empty chunk.
    pub(crate) fn push_chunk(&mut self, chunk: &mut Chunk<E>) {
        // Room may have been reserved for nothing.
        if chunk.is_empty() {
            return;
        }
        let fits = match &self.lanes[..] {
            // Small chunks are joined; otherwise a slow sender would fill the queue with chunks of
            // one event.
            [lane] => {
                let joins = |last: &Chunk<E>| last.len() + chunk.len() <= CHUNK_MAX / 4;
                !lane.chunks.back().is_some_and(joins)
            }
            _ => false,
        };
        if fits {
            let spare = self.spare.pop().unwrap_or_default();
            let chunk = std::mem::replace(chunk, spare);
            self.len += chunk.len();
            self.lanes[0].len += chunk.len();
            self.lanes[0].chunks.push_back(chunk);
        } else {
            for event in chunk.drain(..) {
                self.push(event);
            }
        }
    }

    /// Returns an empty chunk, which may have capacity.
    pub(crate) fn spare(&mut self) -> Chunk<E> {
        self.spare.pop().unwrap_or_default()
    }

    pub(crate) fn keep(&mut self, chunk: Chunk<E>) {
        if self.spare.len() < SPARE_MAX && chunk.capacity() > 0 && chunk.capacity() <= 2 * CHUNK_MAX
        {
            self.spare.push(chunk);
        }
    }

    /// Notes that an event of a class was taken and not served.
    pub(crate) fn refund(&mut self, class: usize) {
        self.turns.refund(class);
    }

    /// Returns the class to take from next.
    fn next_lane(&self) -> Option<usize> {
        self.turns.next(|class| self.lanes[class].len > 0)
    }

    /// Returns the oldest event of a class.
    pub(crate) fn oldest(&self, class: usize) -> Option<&Event<E>> {
        self.lanes[class].chunks.front().and_then(VecDeque::front)
    }

    /// Takes the oldest event of a class, whatever the other classes hold.
    pub(crate) fn take_oldest(&mut self, class: usize) -> Option<Event<E>> {
        let chunks = &mut self.lanes[class].chunks;
        let event = chunks.front_mut()?.pop_front()?;
        if chunks.front().is_some_and(VecDeque::is_empty) {
            let emptied = chunks.pop_front();
            self.keep(emptied.expect("it was just seen"));
        }
        self.len -= 1;
        self.lanes[class].len -= 1;
        Some(event)
    }

    /// Takes the oldest event of a queue with one class.
    #[inline]
    pub(crate) fn take_first(&mut self) -> Option<Event<E>> {
        let chunks = &mut self.lanes[0].chunks;
        let first = chunks.front_mut()?;
        if first.len() == 1 {
            return self.take_oldest(0);
        }
        self.len -= 1;
        self.lanes[0].len -= 1;
        self.lanes[0].chunks.front_mut()?.pop_front()
    }

    /// Takes out all late events, wherever they are.
    pub(crate) fn take_late(
        &mut self,
        is_late: &mut dyn FnMut(&Event<E>) -> bool,
    ) -> Vec<Event<E>> {
        let mut late = Vec::new();
        for lane in &mut self.lanes {
            lane.pick(is_late, &mut late);
        }
        self.len -= late.len();
        late
    }

    pub(crate) fn buried(&mut self, at: usize) -> &mut usize {
        &mut self.lanes[at].buried
    }

    pub(crate) fn sweep(&mut self, at: usize) -> Vec<Event<E>> {
        let lane = &mut self.lanes[at];
        let mut swept = Vec::new();
        if is_due(lane.buried, lane.len) {
            lane.pick(&mut Event::is_buried, &mut swept);
        }
        self.len -= swept.len();
        swept
    }

    fn took(&mut self, at: usize, count: usize) {
        self.len -= count;
        self.lanes[at].len -= count;
        let lanes = &self.lanes;
        self.turns.took(at, count, |class| lanes[class].len > 0);
    }

    pub(crate) fn take_one(&mut self, order: Order) -> Option<Event<E>> {
        let at = self.next_lane()?;
        let chunks = &mut self.lanes[at].chunks;
        let event = match order {
            Order::Fifo => chunks.front_mut().and_then(VecDeque::pop_front),
            Order::Lifo => chunks.back_mut().and_then(VecDeque::pop_back),
        };
        let event = event.expect("no chunk in a lane is empty");
        let end = match order {
            Order::Fifo => chunks.front(),
            Order::Lifo => chunks.back(),
        };
        if end.is_some_and(VecDeque::is_empty) {
            let emptied = match order {
                Order::Fifo => chunks.pop_front(),
                Order::Lifo => chunks.pop_back(),
            };
            self.keep(emptied.expect("it was just seen"));
        }
        self.took(at, 1);
        Some(event)
    }

    /// Moves events to `batch` until it holds `limit`: the highest class first, the oldest first,
    /// whole chunks where they fit. A chunk is not split merely to fill a batch.
    pub(crate) fn take(&mut self, batch: &mut Batch<E>, limit: usize) {
        let mut has_whole = false;
        while batch.len() < limit {
            let Some(at) = self.next_lane() else { return };
            let room = limit - batch.len();
            let one_class = self.lanes.len() == 1;
            let chunks = &mut self.lanes[at].chunks;
            let whole = chunks.front().is_some_and(|chunk| chunk.len() <= room);
            // With several classes, a class gets no more than its turn allows.
            if whole && one_class {
                let chunk = chunks.pop_front().expect("it was just seen");
                has_whole = true;
                self.took(at, chunk.len());
                if let Some(empty) = batch.put(chunk) {
                    self.keep(empty);
                }
            } else if one_class && has_whole {
                return;
            } else {
                let event = self.take_one(Order::Fifo).expect("the lane is not empty");
                batch.put_one(event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_chunk_is_not_queued() {
        let mut lanes = Lanes::new(Classes::by_priority(1));
        lanes.push_chunk(&mut Chunk::new());
        let whole = (0..CHUNK_MAX).map(Event::new);
        lanes.push_chunk(&mut whole.collect());
        for number in 0..CHUNK_MAX {
            let event = lanes.take_one(Order::Fifo).expect("it was queued");
            assert_eq!(*event, number);
        }
        assert!(lanes.is_empty());
    }
}
