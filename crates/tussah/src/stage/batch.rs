//! The events that a handler is given at once.

use std::collections::VecDeque;
use std::fmt;

use super::event::{Event, More, Reason};
use super::trace::Marks;

/// A run of events in the order in which they were queued; what queues pass on whole.
pub(crate) type Chunk<E> = VecDeque<Event<E>>;

/// The events that a handler is given at once, at most as many as the stage's batch allows.
///
/// A handler takes them one by one ([`next`](Self::next), or [`next_event`](Self::next_event) with all that an event carries), in whatever order it
/// puts them ([`events_mut`](Self::events_mut)), may drop some ([`retain`](Self::retain)), and may make one of many. What it leaves
/// goes back to the head of the queue.
///
/// If the handler panics, the events that it has not taken go back to the head of the queue, and the drop callbacks of those that it took
/// are told so, but for what it has called [`settled`](Self::settle).
pub struct Batch<E> {
    /// The chunk that is being taken from; those behind it are in `more`.
    head: Chunk<E>,
    more: VecDeque<Chunk<E>>,
    /// Events in `head` and `more`.
    left: usize,
    taken: usize,
    failed: u64,
    /// What has been taken, as runs of one stamp.
    waves: Vec<Wave>,
    /// What to tell of events that were taken without what they carried.
    #[expect(clippy::vec_box, reason = "they come in boxes, and are rare")]
    kept: Vec<Box<More>>,
    traces: Marks,
}

/// Events of one class that were queued at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wave {
    pub(crate) stamp: u64,
    pub(crate) count: u64,
}

impl<E> Default for Batch<E> {
    fn default() -> Self {
        Self {
            head: VecDeque::new(),
            more: VecDeque::new(),
            left: 0,
            taken: 0,
            failed: 0,
            waves: Vec::new(),
            kept: Vec::new(),
            traces: Marks::default(),
        }
    }
}

impl<E> Batch<E> {
    /// A batch of these events, for a call.
    pub fn of(events: impl IntoIterator<Item = impl Into<Event<E>>>) -> Self {
        let head: Chunk<E> = events.into_iter().map(Into::into).collect();
        Self {
            left: head.len(),
            traces: Marks::of(&head),
            head,
            ..Self::default()
        }
    }

    /// How many events can still be taken.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.left
    }

    /// True if no event can be taken any more.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Takes the next event's value; what it carried stays here, and its drop callback is told if the handler panics before
    /// the event is [settled](Self::settle).
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would have no `retain` between two events"
    )]
    #[inline(always)]
    pub fn next(&mut self) -> Option<E> {
        let (value, more, _) = self.next_event()?.split();
        if let Some(more) = more {
            self.kept.push(more);
        }
        Some(value)
    }

    /// Takes the next event with all that it carries, to be sent on: deadline, drop callback, trace.
    #[inline(always)]
    pub fn next_event(&mut self) -> Option<Event<E>> {
        let event = match self.head.pop_front() {
            Some(event) => event,
            None => self.next_chunk()?,
        };
        self.left -= 1;
        self.note(event.stamp());
        if self.traces.any {
            self.traces.take(&event);
        }
        Some(event)
    }

    /// Takes the values of all that is left, one by one.
    pub fn drain(&mut self) -> impl Iterator<Item = E> {
        std::iter::from_fn(|| self.next())
    }

    /// Takes all that is left with what it carries, one by one.
    pub fn drain_events(&mut self) -> impl Iterator<Item = Event<E>> {
        std::iter::from_fn(|| self.next_event())
    }

    /// What is left, in the order in which it will be taken, to be looked at or put into another order.
    ///
    /// # Examples
    /// Short jobs first:
    /// ```
    /// use tussah::stage::Batch;
    ///
    /// let mut batch = Batch::of(["long job", "job"]);
    /// batch.events_mut().sort_by_key(|job| job.len());
    /// assert_eq!(batch.next(), Some("job"));
    /// ```
    pub fn events_mut(&mut self) -> &mut [Event<E>] {
        for mut next in self.more.drain(..) {
            self.head.append(&mut next);
        }
        self.head.make_contiguous()
    }

    /// Drops the events for which `keep` says no. They count as finished. If `keep` panics, all are left.
    pub fn retain(&mut self, mut keep: impl FnMut(&mut Event<E>) -> bool) {
        // Nothing is taken before all has been looked at.
        let keeps: Vec<bool> = self.events_mut().iter_mut().map(&mut keep).collect();
        let mut kept = VecDeque::with_capacity(keeps.len());
        let mut dropped = Vec::new();
        for keeps in keeps {
            if keeps {
                kept.extend(self.give_back());
            } else {
                dropped.extend(self.next_event());
            }
        }
        self.traces.pause();
        self.left = kept.len();
        self.head = kept;
        // When all else is in its place, since an event may panic as it is dropped.
        drop(dropped);
    }

    /// Says that what was taken so far is done with: its drop callbacks are not told if the handler panics later.
    #[inline]
    pub fn settle(&mut self) {
        self.kept.clear();
        self.traces.settle();
    }

    /// Says that so many of the events taken have failed for want of somebody else's answer, such as by a time limit. Controllers that
    /// learn from responses must not take these for a sign of how fast the stage can be.
    #[inline]
    pub fn fail(&mut self, events: u64) {
        self.failed += events;
    }

    #[cold]
    #[inline(never)]
    fn next_chunk(&mut self) -> Option<Event<E>> {
        while let Some(chunk) = self.more.pop_front() {
            self.head = chunk;
            if let Some(event) = self.head.pop_front() {
                return Some(event);
            }
        }
        None
    }

    #[inline(always)]
    fn note(&mut self, stamp: u64) {
        self.taken += 1;
        match self.waves.last_mut() {
            Some(wave) if wave.stamp == stamp => wave.count += 1,
            _ => self.waves.push(Wave { stamp, count: 1 }),
        }
    }

    fn unnote(&mut self, stamp: u64) {
        let wave = self
            .waves
            .iter_mut()
            .rev()
            .find(|wave| wave.stamp == stamp && wave.count > 0);
        wave.expect("a stamp is noted before it is taken back")
            .count -= 1;
    }

    /// Ends the batch.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.kept.clear();
        self.traces.pause();
        self.taken = 0;
    }

    /// Tells of the events that were taken by a handler that did not come to its end.
    pub(crate) fn dropped(&mut self, reason: Reason) {
        for mut more in self.kept.drain(..) {
            more.end(reason);
        }
        self.traces.panicked();
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken as u64
    }

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
        self.traces.any |= event.trace() != 0;
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
        to.put(alike);
        self.put(others);
    }

    /// Takes over what is left of a part of this batch, at its end, and what has been taken of it.
    pub(crate) fn absorb(&mut self, part: &mut Batch<E>) {
        self.taken += std::mem::take(&mut part.taken);
        self.failed += std::mem::take(&mut part.failed);
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
    /// their value.
    pub(crate) fn pass(&mut self, limit: usize, now_ns: u64) -> (Chunk<E>, u64) {
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
        }
        (chunk, extras)
    }

    /// What is traced of it.
    #[inline]
    pub(crate) fn traces(&mut self) -> &mut Marks {
        &mut self.traces
    }

    pub(crate) fn waves(&mut self) -> &mut Vec<Wave> {
        &mut self.waves
    }

    pub(crate) fn take_failed(&mut self) -> u64 {
        std::mem::take(&mut self.failed)
    }
}

impl<E> fmt::Debug for Batch<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("len", &self.left)
            .finish_non_exhaustive()
    }
}
