//! An event on its way to a stage: a value, with what the stage has to know of it.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use parking_lot::Mutex;
use tussah_core::quietly;

/// Bound, in classes of a stage: one byte of each event names its class, and samples carry an array of so many.
pub const CLASSES_MAX: usize = 8;

/// Which class of its stage an event belongs to: 0 is served first.
///
/// A stage has one class unless it is built with more (`Builder::classes`). An event of a class that
/// its stage does not have counts as one of the last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Class(pub u8);

impl Class {
    /// Its place among so many classes, of which there is one at least.
    #[inline(always)]
    pub(crate) fn among(self, classes: usize) -> usize {
        usize::from(self.0).min(classes - 1)
    }
}

/// Why an event ended without having been handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// A controller took it out of the queue, or the sender's policy gave it up.
    Shed,
    /// Its deadline passed before a handler took it.
    Expired,
    /// It was taken by a handler that panicked.
    Panicked,
    /// Its stage was destroyed, or its runtime shut down.
    ShutDown,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Shed => "shed",
            Reason::Expired => "expired: its deadline passed before a handler took it",
            Reason::Panicked => "its handler panicked",
            Reason::ShutDown => "its stage was shut down",
        })
    }
}

/// A value for a stage, with its class, what it costs, its deadline, and who is told if it is dropped.
///
/// Senders take plain values too. What an event carries goes along when it is made into another with [`map`](Self::map), so that a
/// deadline or a drop callback holds through a whole pipeline.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tussah::stage::{Class, Event};
///
/// let event = Event::new("GET /")
///     .class(Class(1))
///     .credits(3)
///     .within(Duration::from_millis(100))
///     .on_drop(|why| eprintln!("503: {why}"));
/// assert_eq!(event.map(|line| line.len()).into_inner(), 5);
/// ```
pub struct Event<E> {
    value: E,
    /// When it was queued, in nanoseconds, in the upper 56 bits; its class in the lower 8.
    stamp: u64,
    /// What few events have.
    pub(crate) more: Option<Box<More>>,
}

/// Who is told when an event is dropped.
type Told = Box<dyn FnOnce(Reason) + Send>;

/// What few events have.
pub(crate) struct More {
    pub(crate) credits: u32,
    /// What the queue that it is in counts for it, which may be less.
    pub(crate) charged: u32,
    pub(crate) cohort: Option<u16>,
    pub(crate) within: Option<Duration>,
    /// Set when the event is first queued; 0 is none.
    pub(crate) deadline_ns: u64,
    /// Never locked: it makes an event as [`Sync`] as its value, though a callback need not be.
    on_drop: Mutex<Option<Told>>,
    /// The number of the trace that it belongs to; 0 is none.
    pub(crate) trace: u64,
}

impl Default for More {
    fn default() -> Self {
        Self {
            credits: 1,
            charged: 1,
            cohort: None,
            within: None,
            deadline_ns: 0,
            on_drop: Mutex::new(None),
            trace: 0,
        }
    }
}

impl<E> Event<E> {
    /// An event of class 0, which costs one credit, has no deadline, and whose drop nobody is told of.
    #[inline(always)]
    #[must_use]
    pub fn new(value: E) -> Self {
        Self {
            value,
            stamp: 0,
            more: None,
        }
    }

    /// Puts it into a class.
    #[inline(always)]
    #[must_use]
    pub fn class(mut self, class: Class) -> Self {
        self.stamp = self.stamp & !0xff | u64::from(class.0);
        self
    }

    /// Has it cost so much of the queue's room; 0 counts as 1, and more than the whole queue as the whole.
    #[must_use]
    pub fn credits(mut self, credits: u32) -> Self {
        self.more().credits = credits.max(1);
        self
    }

    /// Has it dropped, if no handler has taken it out of a batch so long after it was queued for the first time.
    ///
    /// In a queue it ends within a millisecond of its deadline, or within 100 ns for each event that is queued there if that is more; also in a stage that is paused or busy. Once a
    /// servlet has taken it, it ends when the handler comes to it: the [batch](super::Batch) passes over what is late. To the time it takes for its callback to run
    /// the lateness of the runtime's timers is added, and of a runtime that has ended there are none: what is queued then ends with the stage.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.more().within = Some(time);
        self
    }

    /// Says whose it is, for controllers that turn away some users wholly instead of all users a little.
    #[must_use]
    pub fn cohort(mut self, cohort: u16) -> Self {
        self.more().cohort = Some(cohort);
        self
    }

    /// Has `f` called if the event ends in a queue, or with a handler that panics, be it that the event is dropped by the panic, or with one that has taken it by
    /// [`next`](super::Batch::next) and is dropped with the runtime before the batch has ended. It runs in place of the event, under no lock; a panic in it is
    /// contained. Replaces an earlier one. Not called for an event that its owner drops, or that a handler took and dropped.
    #[must_use]
    pub fn on_drop(mut self, f: impl FnOnce(Reason) + Send + 'static) -> Self {
        *self.more().on_drop.get_mut() = Some(Box::new(f));
        self
    }

    /// Has it traced through all stages that it comes to, under this number; 0 is none. What a handler sends after it has taken this event, and before it takes the
    /// next, belongs to the trace. [`Network::traces`](super::Network::traces) has what was seen.
    #[must_use]
    pub fn traced(mut self, number: u64) -> Self {
        self.more().trace = number;
        self
    }

    /// The event of another value that keeps all else.
    #[inline(always)]
    #[must_use]
    pub fn map<F>(self, f: impl FnOnce(E) -> F) -> Event<F> {
        Event {
            value: f(self.value),
            stamp: self.stamp,
            more: self.more,
        }
    }

    /// The value alone.
    #[inline(always)]
    #[must_use]
    pub fn into_inner(self) -> E {
        self.value
    }

    /// The class that it is in.
    #[inline(always)]
    #[must_use]
    pub fn class_of(&self) -> Class {
        class_of(self.stamp)
    }

    #[inline(always)]
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Notes when it was queued, and its deadline if it is its first queue.
    #[inline(always)]
    pub(crate) fn queued(&mut self, now_ns: u64) {
        self.stamp = now_ns << 8 | self.stamp & 0xff;
        if let Some(more) = &mut self.more {
            more.charged = 1;
            if let Some(within) = more.within.take() {
                let within_ns = u64::try_from(within.as_nanos()).unwrap_or(u64::MAX);
                more.deadline_ns = now_ns.saturating_add(within_ns).max(1);
            }
        }
    }

    /// Undoes [`queued`](Self::queued), for an event that was so before.
    pub(crate) fn not_queued(&mut self, stamp: u64, within: Option<Duration>) {
        self.stamp = stamp;
        if let (Some(more), Some(_)) = (&mut self.more, within) {
            (more.within, more.deadline_ns) = (within, 0);
        }
    }

    /// Notes what its queue counts for it.
    #[inline(always)]
    pub(crate) fn charge(&mut self, credits: u64) {
        if let Some(more) = &mut self.more {
            more.charged = u32::try_from(credits).expect("no event is charged more than it costs");
        }
    }

    /// What its queue counts for it.
    #[inline(always)]
    pub(crate) fn charged(&self) -> u64 {
        match &self.more {
            None => 1,
            Some(more) => u64::from(more.charged),
        }
    }

    #[inline(always)]
    pub(crate) fn cost(&self) -> u64 {
        match &self.more {
            None => 1,
            Some(more) => u64::from(more.credits),
        }
    }

    /// The number of its trace; 0 is none.
    #[inline(always)]
    pub(crate) fn trace(&self) -> u64 {
        match &self.more {
            None => 0,
            Some(more) => more.trace,
        }
    }

    /// Until when a handler has to begin with it; 0 is none, or not yet known.
    #[inline(always)]
    pub(crate) fn deadline_ns(&self) -> u64 {
        match &self.more {
            None => 0,
            Some(more) => more.deadline_ns,
        }
    }

    /// Whether its batch has to look at it: it is traced, or has a deadline.
    #[inline(always)]
    pub(crate) fn is_watched(&self) -> bool {
        match &self.more {
            None => false,
            Some(more) => more.trace != 0 || more.deadline_ns != 0,
        }
    }

    /// Makes it part of a trace, if it is not of one already.
    #[cold]
    pub(crate) fn trace_on(&mut self, trace: u64) {
        let more = self.more();
        if more.trace == 0 {
            more.trace = trace;
        }
    }

    /// Whether it costs one credit, and is of no cohort: then it may be let in ahead of time.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        match &self.more {
            None => true,
            Some(more) => more.credits == 1 && more.cohort.is_none(),
        }
    }

    #[inline(always)]
    pub(crate) fn split(self) -> (E, Option<Box<More>>, u64) {
        (self.value, self.more, self.stamp)
    }

    /// Ends it: tells who wanted to know.
    pub(crate) fn end(self, reason: Reason) {
        quietly(|| drop(self.value));
        if let Some(mut more) = self.more {
            more.end(reason);
        }
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }
}

impl More {
    /// Tells who wanted to know that the event ended; a panic in what they do stays there.
    pub(crate) fn end(&mut self, reason: Reason) {
        if let Some(on_drop) = self.on_drop.get_mut().take() {
            quietly(move || on_drop(reason));
        }
    }
}

impl Drop for More {
    /// An event that a handler has taken whole ends with the handler that panics.
    fn drop(&mut self) {
        if self.on_drop.get_mut().is_none() {
            return;
        }
        if std::thread::panicking() {
            return self.end(Reason::Panicked);
        }
        // It is not told, but may own what panics.
        let on_drop = self.on_drop.get_mut().take();
        quietly(|| drop(on_drop));
    }
}

/// When an event with this stamp was queued, in nanoseconds since the network's start.
#[inline]
pub(crate) fn queued_ns(stamp: u64) -> u64 {
    stamp >> 8
}

/// The class of an event with this stamp.
#[inline(always)]
pub(crate) fn class_of(stamp: u64) -> Class {
    Class((stamp & 0xff) as u8)
}

impl<E> From<E> for Event<E> {
    #[inline(always)]
    fn from(value: E) -> Self {
        Self::new(value)
    }
}

impl<E> Deref for Event<E> {
    type Target = E;

    #[inline(always)]
    fn deref(&self) -> &E {
        &self.value
    }
}

impl<E> DerefMut for Event<E> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut E {
        &mut self.value
    }
}

impl<E: fmt::Debug> fmt::Debug for Event<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("value", &self.value)
            .field("class", &self.class_of())
            .field("credits", &self.cost())
            .finish_non_exhaustive()
    }
}
