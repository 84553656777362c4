//! Filling, splitting and forwarding batches.

use std::collections::VecDeque;

use super::{Batch, Chunk};
use crate::stage::event::Event;
use crate::stage::event::Watch;

impl<E> Batch<E> {
    /// Adds a chunk behind the others, and returns a spare empty chunk if there is one.
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

    /// Returns all remaining events, even late or cancelled ones.
    pub(crate) fn contiguous(&mut self) -> &mut [Event<E>] {
        for mut next in self.more.drain(..) {
            self.head.append(&mut next);
        }
        self.head.make_contiguous()
    }

    /// Takes out all events but the first `len`, without counting them as taken.
    pub(crate) fn split_off(&mut self, len: usize) -> Chunk<E> {
        self.contiguous();
        let rest = self.head.split_off(len);
        self.left = len;
        rest
    }

    /// Moves the next event to `to`, together with all events that `same` considers equal to it. If
    /// `same` panics, all events stay.
    pub(crate) fn part(&mut self, to: &mut Batch<E>, same: impl Fn(&Event<E>, &Event<E>) -> bool) {
        // Late events are detected when they are taken: the queue's lock may be held here.
        let [first, rest @ ..] = self.contiguous() else {
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
        to.traces.any |= self.look_again();
        to.at.clone_from(&self.at);
        to.called = self.called;
        to.put(alike);
        self.put(others);
    }

    /// Takes over the rest of a part of this batch, at its end, and the counts of its taken events.
    pub(crate) fn absorb(&mut self, part: &mut Batch<E>) {
        let before = self.taken;
        let kept = part.kept.drain(..);
        self.kept.extend(kept.map(|(at, more)| (before + at, more)));
        self.taken += std::mem::take(&mut part.taken);
        self.settled += std::mem::take(&mut part.settled);
        self.failed += std::mem::take(&mut part.failed);
        self.left_out += std::mem::take(&mut part.left_out);
        self.expired += std::mem::take(&mut part.expired);
        self.passed_over += std::mem::take(&mut part.passed_over);
        self.cancelled += std::mem::take(&mut part.cancelled);
        self.withheld.append(&mut part.withheld);
        self.served.append(&mut part.served);
        self.waves.append(&mut part.waves);
        self.traces.taken.append(&mut part.traces.taken);
        self.traces.any |= part.traces.any;
        self.touched |= part.touched;
        while let Some(event) = part.give_back() {
            self.put_one(event);
        }
    }

    /// Puts back the event that was taken last.
    pub(crate) fn put_back(&mut self, event: Event<E>) {
        if event.trace() != 0 {
            self.traces.taken.pop();
        }
        if event.cancel().is_some() {
            self.served.pop();
        }
        self.unnote(event.stamp());
        self.taken -= 1;
        self.settled = self.settled.min(self.taken);
        self.left += 1;
        self.head.push_front(event);
    }

    /// Returns the remaining events, which may be late.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Event<E>> {
        self.head.iter().chain(self.more.iter().flatten())
    }

    /// Takes the value of the next event if `wanted` returns true for it.
    pub(crate) fn next_if(&mut self, wanted: impl FnOnce(&E) -> bool) -> Option<E> {
        let event = self.next_event()?;
        if !wanted(&event) {
            self.put_back(event);
            return None;
        }
        let (value, more, _) = event.split();
        self.kept.extend(more.map(|more| (self.taken, more)));
        Some(value)
    }

    /// Takes out the oldest remaining event without counting it as taken.
    #[inline]
    pub(crate) fn give_back(&mut self) -> Option<Event<E>> {
        let event = match self.head.pop_front() {
            Some(event) => event,
            None => self.next_chunk()?,
        };
        self.left -= 1;
        Some(event)
    }

    /// Moves up to `limit` events from `from` to this batch, in whole chunks where they fit.
    #[inline]
    pub(crate) fn fill(&mut self, from: &mut Batch<E>, limit: usize) {
        self.traces.any = from.traces.any || self.traces.any && self.left > 0;
        self.touched &= self.left > 0;
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
        // The next events in `from` are checked again.
        from.traces.any &= from.left > 0;
    }

    /// Returns whether an event of the next chunk costs more than one credit, has a cohort, or may
    /// be traced or cancelled.
    pub(crate) fn carries(&mut self) -> bool {
        if self.look_again() {
            return true;
        }
        let next = self.front();
        next.is_some_and(|chunk| !chunk.iter().all(Event::is_plain))
    }

    /// Returns the next chunk.
    pub(crate) fn front(&self) -> Option<&Chunk<E>> {
        if self.head.is_empty() {
            self.more.front()
        } else {
            Some(&self.head)
        }
    }

    /// Takes the next chunk, or up to `limit` of its events, and stamps its events with `now_ns`.
    /// Notes their deadlines, and returns the number of events that have metadata.
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
