//! Collecting sent events, so that many events need only one lock and one wake-up.
//!
//! During a poll of a servlet, events that its handler sends to a busy stage are collected, up to a
//! chunk. The chunk is handed over when it is full, when the handler sends to the stage while that
//! stage is idle, after each run of batches, and when the poll ends. All events are therefore in
//! their queues before the handler waits for anything. An event with metadata, such as a deadline
//! to watch, is handed over immediately. Room is reserved before an event is collected, so a
//! collected event has already been admitted.

use std::iter;
use std::ops::DerefMut;
use std::sync::Arc;

use super::here::{self, Collects, HERE, Here};
use super::sender::Sender;
use crate::stage::event::{Class, Event, NotTaken, queued_ns};
use crate::stage::run::Shared;
use crate::stage::state::{EXACT_NS, How};

/// After a chunk of at least this many events, the events of a source may share a time stamp.
const PACED_MIN: usize = 16;

/// The events that a worker has collected for a stage.
pub(crate) struct Outgoing<E> {
    /// The events in their order. An event is made in its place in a `Vec`, but not in a deque.
    pub(crate) chunk: Vec<Event<E>>,
    /// Reserved room that has not been used yet.
    pub(crate) granted: u64,
    pub(crate) class: Class,
    /// The controller's decision about the next event.
    pub(crate) then: Option<NotTaken>,
    /// The time stamp of the events; 0 makes each event read the clock.
    pub(crate) now_ns: u64,
}

impl<E> Default for Outgoing<E> {
    fn default() -> Self {
        Self {
            chunk: Vec::new(),
            granted: 0,
            class: Class::default(),
            then: None,
            now_ns: 0,
        }
    }
}

impl<E: Send + 'static> Collects for Shared<E> {
    fn hand_over(self: Arc<Self>) {
        let mut taken = match self.outgoing.get() {
            Some(mut place) if place.granted > 0 || !place.chunk.is_empty() => {
                std::mem::take(&mut *place)
            }
            Some(mut place) => {
                place.then = None;
                return;
            }
            None => return,
        };
        self.push(&mut taken, false);
    }
}

impl<E: Send + 'static> Shared<E> {
    /// Applies the controller's earlier decision about an event.
    fn apply_decision(
        self: &Arc<Self>,
        from: u32,
        event: Event<E>,
        how: How,
        said: NotTaken,
    ) -> Result<(), (Event<E>, NotTaken)> {
        if said == NotTaken::Degrade {
            return self.offer_degraded(from, event, how);
        }
        let mut inner = self.lock();
        if inner.state.rejects(event.class_of(), how) {
            return Err((event.refused(), said));
        }
        self.offer_locked(from, event, How { asked: true, ..how }, inner)
    }
}

/// Hands over the events collected for this stage.
#[inline]
pub(crate) fn hand_over_for<E: Send + 'static>(stage: &Arc<Shared<E>>) {
    Arc::clone(stage).hand_over();
}

/// Sends an event, by collecting it where that is possible.
#[inline(always)]
pub(crate) fn send<E: Send + 'static>(
    sender: &Sender<E>,
    event: Event<E>,
    waits: bool,
) -> Result<(), (Event<E>, NotTaken)> {
    let stage = &sender.stage;
    if let Some(outgoing) = stage.outgoing.get()
        && outgoing.granted > 0
        && event.class_of() == outgoing.class
        && event.more.is_none()
    {
        let (value, ..) = event.split();
        collect(sender, outgoing, || value);
        return Ok(());
    }
    if sender.from != 0 && event.more.is_none() && HERE.with(Here::is_outside) {
        return stage.offer(sender.from, event, sender.how(waits));
    }
    send_now(sender, event, waits)
}

/// Sends a value, as [`send`] does, and makes it in its place where that is possible.
#[inline(always)]
pub(crate) fn send_made<E: Send + 'static>(
    sender: &Sender<E>,
    make: impl FnOnce() -> E,
) -> Result<(), (Event<E>, NotTaken)> {
    if let Some(outgoing) = sender.stage.outgoing.get()
        && outgoing.granted > 0
        && outgoing.class == Class::default()
    {
        collect(sender, outgoing, make);
        return Ok(());
    }
    send_event(sender, Event::new(make()))
}

/// Adds an event to a collection. Hands the collection over if it is complete or the stage is idle.
#[inline(always)]
fn collect<E: Send + 'static>(
    sender: &Sender<E>,
    mut outgoing: impl DerefMut<Target = Outgoing<E>>,
    make: impl FnOnce() -> E,
) {
    let stage = &sender.stage;
    let is_full = outgoing.collect(make, stage);
    drop(outgoing);
    if is_full || stage.is_idle() {
        go_on(stage);
    }
}

#[inline(never)]
fn send_event<E: Send + 'static>(
    sender: &Sender<E>,
    event: Event<E>,
) -> Result<(), (Event<E>, NotTaken)> {
    send(sender, event, true)
}

impl<E: Send + 'static> Outgoing<E> {
    /// Sets the time stamp of the events to the beginning of the run, unless each send reads the
    /// time. For a quick source, it is the current time.
    fn set_time(&mut self, begun_ns: u64, stage: &Shared<E>) {
        let (exact, quick) = HERE.with(|here| {
            let quick = here.is_source.get() && here.is_quick.get();
            (here.exact.get(), quick)
        });
        self.now_ns = match exact {
            false => begun_ns,
            true if quick => stage.time.now_ns(),
            true => 0,
        };
    }

    /// Sets the time stamp of a source's next events, after the collected ones. If these followed
    /// each other quickly, the next share a stamp, as events of a short handler do.
    fn pace(&mut self, now_ns: u64) {
        let events = self.chunk.len();
        let first_ns = self
            .chunk
            .first()
            .map_or(0, |event| queued_ns(event.stamp()));
        let each_ns = now_ns.saturating_sub(first_ns) / events.max(1) as u64;
        let is_quick = events >= PACED_MIN && each_ns < EXACT_NS;
        HERE.with(|here| here.is_quick.set(is_quick));
        self.now_ns = if is_quick { now_ns } else { 0 };
    }

    /// Returns the time stamp of the next event.
    #[inline(always)]
    fn time(&self, stage: &Shared<E>) -> u64 {
        match self.now_ns {
            0 => stage.time.now_ns(),
            now_ns => now_ns,
        }
    }

    /// Adds an event without metadata. The event is made in its place, because a large event is
    /// expensive to move. Returns whether the reserved room is used up.
    #[inline(always)]
    fn collect(&mut self, make: impl FnOnce() -> E, stage: &Shared<E>) -> bool {
        let (class, now_ns) = (self.class, self.time(stage));
        // Unlike `push`, this makes the event when there is room. Nothing can unwind before the
        // event is in its place, so it needs no other one.
        let event = || Event::queued_at(make(), now_ns).class(class);
        self.chunk.extend(iter::once_with(event));
        self.granted -= 1;
        self.granted == 0
    }
}

/// Hands over the events collected for the stage, and reserves room for more of their class.
#[cold]
#[inline(never)]
fn go_on<E: Send + 'static>(stage: &Arc<Shared<E>>) {
    let Some(taken) = stage
        .outgoing
        .get()
        .map(|mut place| std::mem::take(&mut *place))
    else {
        return;
    };
    // Nothing is borrowed here, because this wakes other threads.
    let mut outgoing = taken;
    if HERE.with(|here| here.is_source.get()) {
        outgoing.pace(stage.time.now_ns());
    }
    stage.push(&mut outgoing, true);
    if let Some(mut place) = stage.outgoing.get()
        && place.granted == 0
        && place.chunk.is_empty()
    {
        *place = outgoing;
        return;
    }
    stage.push(&mut outgoing, false);
}

/// Hands over the events collected for the stage, and then sends this event: as the first event of
/// a new collection, or immediately.
#[cold]
#[inline(never)]
fn send_now<E: Send + 'static>(
    sender: &Sender<E>,
    mut event: Event<E>,
    waits: bool,
) -> Result<(), (Event<E>, NotTaken)> {
    let stage = &sender.stage;
    let mut said = None;
    if !HERE.with(Here::is_outside) {
        said = self::said(stage, &event);
        Arc::clone(stage).hand_over();
    }
    if let Some(trace) = HERE.with(|here| here.trace_of(sender)) {
        event.trace_on(trace);
    }
    if let Some(path) = here::path() {
        event.join(path);
    }
    if let Some(entry) = &stage.paths {
        event.goes_to(entry);
    }
    let may_collect = said.is_none() && event.more.is_none() && collects_for(stage);
    if may_collect && stage.outgoing.get().is_some() {
        let begun_ns = HERE.with(|here| here.now_ns.get());
        let mut outgoing = stage.reserve(event.class_of(), begun_ns);
        if outgoing.granted > 0 {
            outgoing.set_time(begun_ns, stage);
            let (value, ..) = event.split();
            outgoing.collect(|| value, stage);
            open(stage, outgoing);
            return Ok(());
        }
        said = outgoing.then;
    }
    match said {
        Some(said) => stage.apply_decision(sender.from, event, sender.how(waits), said),
        None => stage.offer(sender.from, event, sender.how(waits)),
    }
}

/// Begins a collection for a stage whose queue was full, with the sender's share of the room.
pub(crate) fn take_share<E: Send + 'static>(stage: &Arc<Shared<E>>, class: Class) {
    if !collects_for(stage) {
        return;
    }
    if !stage
        .outgoing
        .get()
        .is_some_and(|place| place.granted == 0 && place.chunk.is_empty())
    {
        return;
    }
    let begun_ns = HERE.with(|here| here.now_ns.get());
    let mut outgoing = stage.reserve_share(class, begun_ns);
    if outgoing.granted > 0 || outgoing.then.is_some() {
        outgoing.set_time(begun_ns, stage);
        open(stage, outgoing);
    }
}

/// Returns whether events for the stage may be collected: a servlet is being polled, and the stage
/// is busy and needs no checks of each event.
fn collects_for<E: Send + 'static>(stage: &Shared<E>) -> bool {
    let begins_traces = HERE.with(|here| here.is_source.get()) && stage.tracer.is_on();
    stage.reserves && HERE.with(Here::collects) && !begins_traces && !stage.is_idle()
}

/// Opens a collection for the stage.
fn open<E: Send + 'static>(stage: &Arc<Shared<E>>, outgoing: Outgoing<E>) {
    let stage = Arc::clone(stage);
    if let Some(mut place) = stage.outgoing.get() {
        *place = outgoing;
    }
    HERE.with(|here| here.open.borrow_mut().push(stage));
}

impl<E> Sender<E> {
    #[inline]
    fn how(&self, waits: bool) -> How {
        How {
            asked: false,
            waits,
            offerer: if self.offers { self.from } else { 0 },
        }
    }
}

/// Returns the controller's decision about this event, if it was made ahead of time.
fn said<E: Send + 'static>(stage: &Shared<E>, event: &Event<E>) -> Option<NotTaken> {
    let mut place = stage.outgoing.get()?;
    let is_next = place.granted == 0 && event.class_of() == place.class && event.is_plain();
    place.then.take().filter(|_| is_next)
}
