//! How batches are filled, parted and passed on.

use std::collections::VecDeque;

use super::{Batch, Chunk};
use crate::stage::event::Event;
use crate::stage::expiry::Watch;

impl<E> Batch<E> {
    /// Adds a chunk behind the others; gives back an empty one if it has one to spare.
    pub(crate) fn put(&mut self, chunk: Chunk<E>) -> Option<Chunk<E>> {
        self.left += chunk.len();
        if self.head.is_empty() && self.more.is_empty() {
            let empty = std::mem::replace(&mut self.head, chunk);
            (empty.capacity() > 0).then_some(empty)
        } else {
            self.more.push_back(chunk);
            None
        }
    }

    /// Adds one event behind the others.
    #[inline]
    pub(crate) fn put_one(&mut self, event: Event<E>) {
        self.left += 1;
        self.traces.any |= event.is_watched();
        match self.more.back_mut() {
            Some(last) => last.push_back(event),
            None => self.head.push_back(event),
        }
    }

    /// Moves the next event to `to`, and with it all that `same` finds like it. If `same` panics, all are left.
    pub(crate) fn part(&mut self, to: &mut Batch<E>, same: impl Fn(&Event<E>, &Event<E>) -> bool) {
        let [first, rest @ ..] = self.events_mut() else {
            return;
        };
        let same = |event: &Event<E>| same(first, event);
        let like: Vec<bool> = rest.iter().map(same).collect();
        let mut others = VecDeque::with_capacity(self.left);
        let mut alike: VecDeque<_> = self.give_back().into_iter().collect();
        for like in like {
            let to = if like { &mut alike } else { &mut others };
            to.extend(self.give_back());
        }
        to.traces.any |= self.traces.any;
        to.at.clone_from(&self.at);
        to.put(alike);
        self.put(others);
    }

    /// Takes over what is left of a part of this batch, at its end, and what has been taken of it.
    pub(crate) fn absorb(&mut self, part: &mut Batch<E>) {
        self.taken += std::mem::take(&mut part.taken);
        self.settled += std::mem::take(&mut part.settled);
        self.failed += std::mem::take(&mut part.failed);
        self.expired += std::mem::take(&mut part.expired);
        self.waves.append(&mut part.waves);
        self.kept.append(&mut part.kept);
        self.traces.taken.append(&mut part.traces.taken);
        while let Some(event) = part.give_back() {
            self.put_one(event);
        }
    }

    /// Puts back the event that was taken last.
    pub(crate) fn put_back(&mut self, event: Event<E>) {
        if event.trace() != 0 {
            self.traces.taken.pop();
        }
        self.unnote(event.stamp());
        self.taken -= 1;
        self.settled = self.settled.min(self.taken);
        self.left += 1;
        self.head.push_front(event);
    }

    /// Takes out what is left, the oldest first, without its counting as taken.
    #[inline]
    pub(crate) fn give_back(&mut self) -> Option<Event<E>> {
        let event = match self.head.pop_front() {
            Some(event) => event,
            None => self.next_chunk()?,
        };
        self.left -= 1;
        Some(event)
    }

    /// Moves up to `limit` events of `from` here, whole chunks where they fit.
    #[inline]
    pub(crate) fn fill(&mut self, from: &mut Batch<E>, limit: usize) {
        self.traces.any = from.traces.any || self.traces.any && self.left > 0;
        while self.left < limit && from.left > 0 {
            let room = limit - self.left;
            if from.head.is_empty() {
                from.head = from.more.pop_front().unwrap_or_default();
            }
            if from.head.len() <= room {
                from.left -= from.head.len();
                let chunk = std::mem::take(&mut from.head);
                if let Some(empty) = self.put(chunk) {
                    from.head = empty;
                }
            } else if let Some(event) = from.give_back() {
                self.put_one(event);
            }
        }
        // What comes there next is looked at anew.
        from.traces.any &= from.left > 0;
    }

    /// Whether an event of the next chunk costs more than one credit, is of a cohort, or may be traced.
    pub(crate) fn carries(&self) -> bool {
        if self.traces.any {
            return true;
        }
        let next = self.front();
        next.is_some_and(|chunk| !chunk.iter().all(Event::is_plain))
    }

    /// The chunk that comes next.
    pub(crate) fn front(&self) -> Option<&Chunk<E>> {
        if self.head.is_empty() {
            self.more.front()
        } else {
            Some(&self.head)
        }
    }

    /// Takes the next chunk, or as much of it as `limit` allows, with its events queued anew at `now_ns`; returns how many of them carry more than
    /// their value, and notes their deadlines.
    pub(crate) fn pass(&mut self, limit: usize, now_ns: u64, watch: &mut Watch) -> (Chunk<E>, u64) {
        while self.head.is_empty() {
            match self.more.pop_front() {
                Some(chunk) => self.head = chunk,
                None => return (Chunk::new(), 0),
            }
        }
        let mut chunk = if self.head.len() <= limit {
            std::mem::take(&mut self.head)
        } else {
            self.head.drain(..limit).collect()
        };
        self.left -= chunk.len();
        let mut extras = 0;
        for event in &mut chunk {
            self.note(event.stamp());
            event.queued(now_ns);
            extras += u64::from(event.more.is_some());
            watch.queued(event.deadline_ns());
        }
        (chunk, extras)
    }
}
