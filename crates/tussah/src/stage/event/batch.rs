//! A batch: the events that a handler receives at once.

mod left_out;
mod parts;
mod watched;

use self::left_out::Marked;
pub(crate) use self::watched::{Begun, Expires};

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

use super::cancel::{Cancel, CancellationToken};
use super::{Class, Event, More, Reason};
use crate::stage::observe::Marks;
use crate::stage::send::here;

/// A run of events in the order in which they were queued, which queues hand over as a whole.
pub(crate) type Chunk<E> = VecDeque<Event<E>>;

/// The events that a handler receives in one call; their number is at most the stage's batch size.
///
/// A handler takes events one by one: [`next`](Self::next) returns only an event's value, and
/// [`next_event`](Self::next_event) returns the event with its metadata. A handler can also reorder
/// the remaining events ([`events_mut`](Self::events_mut)), drop some of them
/// ([`retain`](Self::retain)), or combine several into one.
///
/// Events that the handler does not take return to the head of the queue. A handler can leave more
/// events in the batch than it received. The queue accepts additional events up to its capacity,
/// and [sheds](Reason::Shed) the rest. If the handler created an event or set its deadline, the
/// deadline is relative to the event's arrival in the queue. A batch skips events that are
/// [cancelled](crate::stage::CancelHandle) or whose deadline has passed.
///
/// If the handler panics, the events that it has not taken return to the head of the queue. The
/// batch calls the drop callbacks of taken events, except those that were [settled](Self::settle).
pub struct Batch<E> {
    /// The chunk from which events are taken; the later chunks are in `more`.
    head: Chunk<E>,
    more: VecDeque<Chunk<E>>,
    /// The number of events in `head` and `more`.
    left: usize,
    taken: usize,
    /// The number of the taken events that are settled.
    settled: usize,
    failed: u64,
    /// Events whose times do not count.
    left_out: u64,
    /// Those of `failed` and `left_out` that are not settled.
    marked: Marked,
    /// The taken events, as runs with the same stamp.
    waves: Vec<Wave>,
    /// The metadata of events that were taken without it, each with the number of events that had
    /// been taken then.
    kept: Vec<(usize, Box<More>)>,
    traces: Marks,
    /// True if the handler has had access to the events, so that their metadata must be checked.
    touched: bool,
    /// The stage to which late and cancelled events are reported.
    at: Option<Weak<dyn Expires<E>>>,
    /// True if `at` is a stage that was called with a batch that no servlet has filled.
    called: bool,
    /// Events that were late when the handler was about to receive them.
    expired: u64,
    /// Events that were cancelled when the handler was about to receive them.
    passed_over: u64,
    /// The classes of the events that were late or cancelled then.
    withheld: Vec<Class>,
    /// Events that were cancelled after they were taken.
    cancelled: u64,
    /// The cancellable events that have been taken and not settled.
    served: Vec<Served>,
    /// The cancellation of the event that was taken last, if it has one.
    cancel: Option<Arc<Cancel>>,
}

/// A cancellable event that has been taken.
struct Served {
    cancel: Arc<Cancel>,
    visit: u32,
    stamp: u64,
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
            left_out: 0,
            marked: Marked::default(),
            waves: Vec::new(),
            kept: Vec::new(),
            traces: Marks::default(),
            touched: false,
            at: None,
            called: false,
            expired: 0,
            passed_over: 0,
            withheld: Vec::new(),
            cancelled: 0,
            served: Vec::new(),
            cancel: None,
        }
    }
}

impl<E> Batch<E> {
    /// Creates a batch from the given events, for example to pass it in a call.
    pub fn of(events: impl IntoIterator<Item = impl Into<Event<E>>>) -> Self {
        let head: Chunk<E> = events.into_iter().map(Into::into).collect();
        Self {
            left: head.len(),
            traces: Marks::of(&head),
            head,
            ..Self::default()
        }
    }

    /// Returns the number of remaining events. The batch may still skip some of these events if
    /// their deadlines pass or they are cancelled.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.left
    }

    /// Returns whether no events remain.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Takes the value of the next event. The batch keeps the event's metadata. If the handler
    /// panics before the event is [settled](Self::settle), the batch calls the event's drop
    /// callback.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would have no `retain` between two events"
    )]
    #[inline(always)]
    pub fn next(&mut self) -> Option<E> {
        // The usual event is moved once, after everything that may need a place for it in memory.
        if let Some(event) = self.head.front()
            && event.more.is_none()
            && !self.traces.any
        {
            let stamp = event.stamp();
            self.left -= 1;
            self.note(stamp);
            return self.head.pop_front().map(Event::into_inner);
        }
        self.next_slowly()
    }

    #[inline(never)]
    fn next_slowly(&mut self) -> Option<E> {
        let (value, more, _) = self.next_event()?.split();
        if let Some(more) = more {
            self.kept.push((self.taken, more));
        }
        Some(value)
    }

    /// Takes the next event with its metadata (deadline, drop callback, trace), for example to send
    /// it to another stage.
    #[inline(always)]
    pub fn next_event(&mut self) -> Option<Event<E>> {
        loop {
            let mut event = match self.head.pop_front() {
                Some(event) => event,
                None => self.next_chunk()?,
            };
            self.left -= 1;
            if self.traces.any {
                match self.wanted(event) {
                    Some(watched) => event = watched,
                    None => continue,
                }
                self.take_watched(&mut event);
            }
            self.note(event.stamp());
            return Some(event);
        }
    }

    /// Returns a token that shows whether the most recently taken event has been cancelled.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        CancellationToken::of(self.cancel.as_ref())
    }

    /// Returns an iterator that takes the values of the remaining events.
    pub fn drain(&mut self) -> impl Iterator<Item = E> {
        std::iter::from_fn(|| self.next())
    }

    /// Returns an iterator that takes the remaining events with their metadata.
    pub fn drain_events(&mut self) -> impl Iterator<Item = Event<E>> {
        std::iter::from_fn(|| self.next_event())
    }

    /// Returns the remaining events that are neither late nor cancelled, in the order in which they
    /// will be taken. The returned slice can be used to inspect or reorder the events.
    ///
    /// # Examples
    /// Sort short jobs to the front:
    /// ```
    /// use tussah::stage::Batch;
    ///
    /// let mut batch = Batch::of(["long job", "job"]);
    /// batch.events_mut().sort_by_key(|job| job.len());
    /// assert_eq!(batch.next(), Some("job"));
    /// ```
    pub fn events_mut(&mut self) -> &mut [Event<E>] {
        if self.look_again() {
            self.contiguous();
            for event in std::mem::take(&mut self.head) {
                self.left -= 1;
                if let Some(event) = self.wanted(event) {
                    self.left += 1;
                    self.head.push_back(event);
                }
            }
        } else {
            // Each event is checked when it is taken, because the handler may have changed it.
            (self.traces.any, self.touched) = (true, true);
        }
        self.contiguous()
    }

    /// Drops the remaining events for which `keep` returns false. The dropped events count as
    /// finished. If `keep` panics, no event is dropped.
    pub fn retain(&mut self, mut keep: impl FnMut(&mut Event<E>) -> bool) {
        // The handler goes on with the event that it took last.
        let before = self.traces.any.then(|| (here::trace(), here::path()));
        // No event is removed before all have been checked.
        let keeps: Vec<bool> = self.events_mut().iter_mut().map(&mut keep).collect();
        let mut kept = VecDeque::with_capacity(keeps.len());
        let mut dropped = Vec::new();
        for keeps in keeps {
            if keeps {
                kept.extend(self.give_back());
            } else if let Some(mut event) = self.give_back() {
                self.note(event.stamp());
                if self.traces.any {
                    self.take_watched(&mut event);
                }
                dropped.push(event);
            }
        }
        if let Some((trace, path)) = before {
            here::set_trace(trace);
            here::set_path(path);
        }
        self.left = kept.len();
        self.head = kept;
        // The dropped events come last, after everything else is in its place, because an event may
        // panic when it is dropped.
        drop(dropped);
    }

    /// Marks all events taken so far as handled. If the handler panics later, the drop callbacks of
    /// these events are not called.
    #[inline(always)]
    pub fn settle(&mut self) {
        self.settled = self.taken;
        self.marked = Marked::default();
        let is_plain = self.kept.is_empty() && self.served.is_empty();
        if !is_plain || !self.traces.taken.is_empty() {
            self.settle_watched();
        }
    }

    #[cold]
    #[inline(never)]
    fn settle_watched(&mut self) {
        // These events have ended, and can no longer be cancelled.
        self.kept.clear();
        if !self.served.is_empty() {
            self.settle_served();
        }
        self.traces.settle();
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
        self.cancel = None;
        self.traces.pause();
        (self.taken, self.settled) = (0, 0);
        self.marked = Marked::default();
    }

    /// Calls the drop callbacks of the events that were taken by a handler that did not finish.
    pub(crate) fn dropped(&mut self, reason: Reason) {
        for (_, mut more) in self.kept.drain(..) {
            more.end(reason);
        }
        self.traces.dropped(reason);
    }

    /// Returns the number of events that have been taken and not settled.
    pub(crate) fn unsettled(&self) -> u64 {
        (self.taken - self.settled) as u64
    }

    /// Returns whether the event taken last may be traced, have a deadline or be cancellable.
    #[inline]
    pub(crate) fn may_be_watched(&self) -> bool {
        self.traces.any
    }

    /// Returns the batch's trace marks.
    #[inline]
    pub(crate) fn traces(&mut self) -> &mut Marks {
        &mut self.traces
    }

    pub(crate) fn waves(&mut self) -> &mut Vec<Wave> {
        &mut self.waves
    }

    /// Returns the number of events that ended without being given to the handler.
    pub(crate) fn withheld(&self) -> u64 {
        self.expired + self.passed_over
    }

    pub(crate) fn take_expired(&mut self) -> u64 {
        std::mem::take(&mut self.expired)
    }

    /// Returns the number of events that the handler did not receive because they were cancelled,
    /// and the number that were cancelled later.
    #[inline]
    pub(crate) fn take_cancelled(&mut self) -> (u64, u64) {
        if !self.served.is_empty() {
            self.settle_served();
        }
        let passed_over = std::mem::take(&mut self.passed_over);
        (passed_over, std::mem::take(&mut self.cancelled))
    }
}

impl<E> fmt::Debug for Batch<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("len", &self.left)
            .finish_non_exhaustive()
    }
}
