//! An event for a stage: a value with its metadata.

mod batch;
mod cancel;
mod class;
mod path;
mod reason;
mod time;
mod watch;

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tussah_core::quietly;

pub use self::batch::Batch;
pub(crate) use self::batch::{Begun, Chunk, Expires};
pub(crate) use self::cancel::{BURIED_PART, Cancel, Cell, Home, Left, Recall, Spot};
pub use self::cancel::{CancelHandle, CancellationToken};
pub(crate) use self::class::Classes;
pub use self::class::{CLASSES_MAX, Class};
pub(crate) use self::path::{Hold, Path};
pub(crate) use self::reason::NotTaken;
pub use self::reason::{Reason, Refusal};
pub(crate) use self::time::Time;
pub(crate) use self::watch::{NEVER, Watch, Watcher};

/// A value for a stage, with a class, a cost, and optionally a deadline and a drop callback.
///
/// Senders also accept plain values. [`map`](Self::map) replaces the value and keeps everything
/// else, so a deadline or a drop callback can apply to a whole pipeline.
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
    /// The time at which the event was queued, in nanoseconds, in the upper 56 bits; its class in
    /// the lower 8.
    stamp: u64,
    /// Metadata that few events have.
    pub(crate) more: Option<Box<More>>,
}

/// A drop callback.
type Told = Box<dyn FnOnce(Reason) + Send>;

/// Metadata that few events have.
pub(crate) struct More {
    pub(crate) credits: u32,
    /// The credits that the event's current queue charges, which may be less than `credits`.
    pub(crate) charged: u32,
    pub(crate) cohort: Option<u16>,
    pub(crate) within: Option<Duration>,
    /// The deadline, set when the event is first queued; 0 means none.
    pub(crate) deadline_ns: u64,
    /// Never locked. The mutex only makes the event [`Sync`] if its value is, even if the callback
    /// is not.
    on_drop: Mutex<Option<Told>>,
    /// The number of the event's trace; 0 means none.
    pub(crate) trace: u64,
    /// The state shared with its cancel handles.
    pub(crate) cancel: Option<Arc<Cancel>>,
    /// The hold on the path to which the event belongs.
    pub(crate) hold: Option<Hold>,
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
            cancel: None,
            hold: None,
        }
    }
}

impl<E> Event<E> {
    /// Creates an event of class 0 with a cost of one credit, no deadline and no drop callback.
    #[inline(always)]
    #[must_use]
    pub fn new(value: E) -> Self {
        Self {
            value,
            stamp: 0,
            more: None,
        }
    }

    /// Creates an event that was queued at this time.
    #[inline(always)]
    pub(crate) fn queued_at(value: E, now_ns: u64) -> Self {
        Self {
            value,
            stamp: now_ns << 8,
            more: None,
        }
    }

    /// Sets the class.
    #[inline(always)]
    #[must_use]
    pub fn class(mut self, class: Class) -> Self {
        self.stamp = self.stamp & !0xff | u64::from(class.0);
        self
    }

    /// Sets the cost: the number of credits that the event uses in the queue. Zero counts as 1,
    /// and a cost above the queue's maximum counts as that maximum.
    #[must_use]
    pub fn credits(mut self, credits: u32) -> Self {
        self.more().credits = credits.max(1);
        self
    }

    /// Sets a deadline: the event is dropped if no handler takes it within `time`. `time` counts
    /// from the moment when the event is first queued or first passed in a [call](super::Call).
    ///
    /// With up to 10,000 events in the queue, an event ends at most 1 ms after its deadline, even
    /// if its stage is paused or busy. With n > 10,000 events, this delay is at most n × 100 ns. A
    /// late timer increases the delay. If a servlet has already taken the event, the event ends
    /// when the handler reaches it, because the [batch](super::Batch) skips late events. Once the
    /// runtime has ended, timers no longer fire, and a queued event ends with its stage.
    ///
    /// The deadline still applies if the event is sent to another network. If the runtimes of both
    /// networks have manual clocks, these runtimes must share one clock.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.more().within = Some(time);
        self
    }

    /// Sets the cohort. Some controllers reject whole cohorts: a few users then get no service, and
    /// all other users get full service.
    #[must_use]
    pub fn cohort(mut self, cohort: u16) -> Self {
        self.more().cohort = Some(cohort);
        self
    }

    /// Sets or replaces the callback that is called if the event ends without being handled.
    ///
    /// `f` is called if the event ends in a queue, if its handler panics, or if cancelling the
    /// event drops the handler's future. `f` is also called if the runtime ends while a handler
    /// that took the event with [`next`](super::Batch::next) is still running. `f` is not called if
    /// an owner of the event, such as a handler that has taken it, drops the event. No lock is held
    /// during the call, and a panic in `f` is caught.
    #[must_use]
    pub fn on_drop(mut self, f: impl FnOnce(Reason) + Send + 'static) -> Self {
        *self.more().on_drop.get_mut() = Some(Box::new(f));
        self
    }

    /// Traces the event through all stages as trace `number`; 0 means no trace. The trace also
    /// includes events that a handler sends after taking this event and before taking the next one.
    /// [`Network::traces`](super::Network::traces) returns the recorded spans.
    #[must_use]
    pub fn traced(mut self, number: u64) -> Self {
        self.more().trace = number;
        self
    }

    /// Replaces the value and keeps all metadata.
    #[inline(always)]
    #[must_use]
    pub fn map<F>(self, f: impl FnOnce(E) -> F) -> Event<F> {
        Event {
            value: f(self.value),
            stamp: self.stamp,
            more: self.more,
        }
    }

    /// Returns the value, and drops the metadata.
    #[inline(always)]
    #[must_use]
    pub fn into_inner(self) -> E {
        self.value
    }

    /// Returns the class.
    #[inline(always)]
    #[must_use]
    pub fn class_of(&self) -> Class {
        class_of(self.stamp)
    }

    #[inline(always)]
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Sets the queueing time and, in the first queue, the deadline.
    #[inline(always)]
    pub(crate) fn queued(&mut self, now_ns: u64) {
        self.stamp = now_ns << 8 | self.stamp & 0xff;
        if let Some(more) = &mut self.more {
            more.charged = 1;
            more.begin(now_ns);
        }
    }

    /// Restores an event after [`queued`](Self::queued).
    pub(crate) fn not_queued(&mut self, stamp: u64, within: Option<Duration>) {
        self.stamp = stamp;
        if let (Some(more), Some(_)) = (&mut self.more, within) {
            (more.within, more.deadline_ns) = (within, 0);
        }
    }

    /// Sets the credits that the event's queue charges.
    #[inline(always)]
    pub(crate) fn charge(&mut self, credits: u64) {
        if let Some(more) = &mut self.more {
            more.charged = u32::try_from(credits).expect("no event is charged more than it costs");
        }
    }

    /// Returns the credits that the event's queue charges.
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

    /// Returns the number of the event's trace; 0 means none.
    #[inline(always)]
    pub(crate) fn trace(&self) -> u64 {
        match &self.more {
            None => 0,
            Some(more) => more.trace,
        }
    }

    /// Returns the deadline by which the event's handler must begin; 0 means none, or not known
    /// yet.
    #[inline(always)]
    pub(crate) fn deadline_ns(&self) -> u64 {
        match &self.more {
            None => 0,
            Some(more) => more.deadline_ns,
        }
    }

    /// Returns whether the event's batch has to check the event: it is traced, has a deadline, can
    /// be cancelled, or belongs to a path.
    #[inline(always)]
    pub(crate) fn is_watched(&self) -> bool {
        self.more.as_ref().is_some_and(|more| {
            more.trace != 0 || more.deadline_ns != 0 || more.cancel.is_some() || more.hold.is_some()
        })
    }

    /// Adds the event to a trace, unless it already has one.
    #[cold]
    pub(crate) fn trace_on(&mut self, trace: u64) {
        let more = self.more();
        if more.trace == 0 {
            more.trace = trace;
        }
    }

    /// Returns whether the event costs one credit, has no cohort and cannot be cancelled. Such an
    /// event may be admitted ahead of time.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        match &self.more {
            None => true,
            Some(more) => more.credits == 1 && more.cohort.is_none() && more.cancel.is_none(),
        }
    }

    #[inline(always)]
    pub(crate) fn split(self) -> (E, Option<Box<More>>, u64) {
        (self.value, self.more, self.stamp)
    }

    /// Ends the event and calls its drop callback.
    pub(crate) fn end(self, reason: Reason) {
        quietly(|| drop(self.value));
        if let Some(mut more) = self.more {
            more.end(reason);
        }
    }

    pub(crate) fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }
}

impl More {
    /// Starts the time until the deadline.
    #[inline]
    pub(crate) fn begin(&mut self, now_ns: u64) {
        if let Some(within) = self.within.take() {
            let within_ns = u64::try_from(within.as_nanos()).unwrap_or(u64::MAX);
            self.deadline_ns = now_ns.saturating_add(within_ns).max(1);
        }
    }

    /// Calls the drop callback, and catches a panic in it.
    pub(crate) fn end(&mut self, reason: Reason) {
        self.fail();
        if let Some(on_drop) = self.on_drop.get_mut().take() {
            quietly(move || on_drop(reason));
        }
    }
}

impl Drop for More {
    /// Ends an event that a handler has taken with its metadata, if the handler panicked or was
    /// dropped because the event was cancelled.
    fn drop(&mut self) {
        let dropped = self.cancel.as_ref().is_some_and(|cancel| cancel.cell.end());
        if std::thread::panicking() {
            return self.end(Reason::Panicked);
        }
        if dropped {
            return self.end(Reason::Cancelled);
        }
        // The callback is not called, but its captured values may panic when dropped.
        if let Some(on_drop) = self.on_drop.get_mut().take() {
            quietly(|| drop(on_drop));
        }
    }
}

/// Returns the time at which an event with this stamp was queued, in nanoseconds since the process
/// created its first network.
#[inline]
pub(crate) fn queued_ns(stamp: u64) -> u64 {
    stamp >> 8
}

/// Returns the class of an event with this stamp.
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
