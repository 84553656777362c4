//! The events that a handler is given at once.

mod parts;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

use super::event::{Event, More, Reason};
use super::expiry::Expires;
use super::trace::Marks;

/// A run of events in the order in which they were queued; what queues pass on whole.
pub(crate) type Chunk<E> = VecDeque<Event<E>>;

/// The events that a handler is given at once, at most as many as the stage's batch allows.
///
/// A handler takes them one by one ([`next`](Self::next), or [`next_event`](Self::next_event) with all that an event carries), in whatever order it
/// puts them ([`events_mut`](Self::events_mut)), may drop some ([`retain`](Self::retain)), and may make one of many. What it leaves
/// goes back to the head of the queue. An event whose deadline has passed by then is not given to it.
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
    /// Of these, how many are done with whatever happens next.
    settled: usize,
    failed: u64,
    /// What has been taken, as runs of one stamp.
    waves: Vec<Wave>,
    /// What to tell of events that were taken without what they carried.
    #[expect(clippy::vec_box, reason = "they come in boxes, and are rare")]
    kept: Vec<Box<More>>,
    traces: Marks,
    /// Where it is told that events are late, if any may be.
    at: Option<Weak<dyn Expires<E>>>,
    /// Events that were late when the handler was to get them.
    expired: u64,
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
            settled: 0,
            failed: 0,
            waves: Vec::new(),
            kept: Vec::new(),
            traces: Marks::default(),
            at: None,
            expired: 0,
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

    /// How many events can still be taken, those included whose deadline passes before that.
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
        loop {
            let mut event = match self.head.pop_front() {
                Some(event) => event,
                None => self.next_chunk()?,
            };
            self.left -= 1;
            if self.traces.any {
                match self.in_time(event) {
                    Some(watched) => event = watched,
                    None => continue,
                }
                self.traces.take(&event);
            }
            self.note(event.stamp());
            return Some(event);
        }
    }

    /// Ends an event that is late.
    #[cold]
    fn in_time(&mut self, event: Event<E>) -> Option<Event<E>> {
        let deadline_ns = event.deadline_ns();
        let at = self.at.as_ref().filter(|_| deadline_ns != 0);
        match at.and_then(Weak::upgrade) {
            Some(at) if at.is_late(deadline_ns) => {
                self.expired += 1;
                at.expire(event);
                None
            }
            _ => Some(event),
        }
    }

    /// Has events that are late end, instead of going to the handler.
    #[inline]
    pub(crate) fn check_deadlines<S: Expires<E> + 'static>(&mut self, at: &Arc<S>)
    where
        E: 'static,
    {
        if self.traces.any {
            self.at = Some(Arc::downgrade(at) as _);
        }
    }

    /// Takes the values of all that is left, one by one.
    pub fn drain(&mut self) -> impl Iterator<Item = E> {
        std::iter::from_fn(|| self.next())
    }

    /// Takes all that is left with what it carries, one by one.
    pub fn drain_events(&mut self) -> impl Iterator<Item = Event<E>> {
        std::iter::from_fn(|| self.next_event())
    }

    /// What is left and not late, in the order in which it will be taken, to be looked at or put into another order.
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
        if self.traces.any {
            self.contiguous();
            for event in std::mem::take(&mut self.head) {
                self.left -= 1;
                if let Some(event) = self.in_time(event) {
                    self.left += 1;
                    self.head.push_back(event);
                }
            }
        }
        self.contiguous()
    }

    /// What is left, whether it is late or not.
    pub(crate) fn contiguous(&mut self) -> &mut [Event<E>] {
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
        self.settled = self.taken;
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
        (self.taken, self.settled) = (0, 0);
    }

    /// Tells of the events that were taken by a handler that did not come to its end.
    pub(crate) fn dropped(&mut self, reason: Reason) {
        for mut more in self.kept.drain(..) {
            more.end(reason);
        }
        self.traces.panicked();
    }

    /// How many events have been taken and not settled.
    pub(crate) fn unsettled(&self) -> u64 {
        (self.taken - self.settled) as u64
    }

    /// What is traced of it.
    #[inline]
    pub(crate) fn traces(&mut self) -> &mut Marks {
        &mut self.traces
    }

    pub(crate) fn waves(&mut self) -> &mut Vec<Wave> {
        &mut self.waves
    }

    pub(crate) fn take_expired(&mut self) -> u64 {
        std::mem::take(&mut self.expired)
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
