//! Collecting sent events, so that many events need only one lock and one wake-up.
//!
//! During a poll of a servlet, events that its handler sends to a busy stage are collected, up to a
//! chunk. The chunk is handed over when it is full, when the handler sends to the stage while that
//! stage is idle, after each run of batches, and when the poll ends. All events are therefore in
//! their queues before the handler waits for anything. An event with metadata, such as a deadline
//! to watch, is handed over immediately. Room is reserved before an event is collected, so a
//! collected event has already been admitted.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::sender::Sender;
use crate::stage::event::{Chunk, Class, Event, Refusal};
use crate::stage::run::Shared;
use crate::stage::state::How;

/// Bound, in stages: one poll of a servlet collects events for this many stages at a time. Events
/// for other stages are handed over immediately.
const OPEN_MAX: usize = 8;

thread_local! {
    static HERE: Here = const {
        Here {
            inside: Cell::new(false),
            exact: Cell::new(false),
            now_ns: Cell::new(0),
            trace: Cell::new(0),
            held_up: Cell::new(false),
            is_source: Cell::new(false),
            open: RefCell::new(Vec::new()),
        }
    };
}

/// The state of an OS thread while it polls a servlet.
struct Here {
    inside: Cell<bool>,
    /// True if handlers take so long that each send reads the time.
    exact: Cell<bool>,
    /// The time at which the run began or its handler continued.
    now_ns: Cell<u64>,
    /// The trace of the event that the handler took last; 0 means none. While a trace is set, the
    /// servlet collects no events, because each event that the handler sends belongs to the trace.
    trace: Cell<u64>,
    /// True if the polled handler waits for room in another stage.
    held_up: Cell<bool>,
    /// True if a source of events is polled, which begins traces.
    is_source: Cell<bool>,
    /// The stages for which events may be collected.
    open: RefCell<Vec<Arc<dyn Collects>>>,
}

/// A stage with collected events of any type.
pub(crate) trait Collects {
    /// Hands over the events that this worker has collected.
    fn hand_over(self: Arc<Self>);
}

/// The events that a worker has collected for a stage.
pub(crate) struct Outgoing<E> {
    pub(crate) chunk: Chunk<E>,
    /// Reserved room that has not been used yet.
    pub(crate) granted: u64,
    pub(crate) class: Class,
    /// The controller's decision about the next event.
    pub(crate) then: Option<Refusal>,
    /// The time stamp of the events; 0 makes each event read the clock.
    pub(crate) now_ns: u64,
}

impl<E> Default for Outgoing<E> {
    fn default() -> Self {
        Self {
            chunk: Chunk::new(),
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

/// Polls a servlet, and collects the events that it sends. They are handed over when `poll` returns
/// or unwinds.
#[inline]
pub(crate) fn collecting<R>(poll: impl FnOnce() -> R) -> R {
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            HERE.with(|here| {
                here.inside.set(false);
                here.is_source.set(false);
                here.trace.set(0);
                hand_over_all(here);
            });
        }
    }
    HERE.with(|here| here.inside.set(true));
    let _end = End;
    poll()
}

/// Notes that a source of events is polled: an event that it sends comes from outside.
pub(crate) fn begin_source() {
    HERE.with(|here| here.is_source.set(true));
}

/// Sets the time at which a run begins or continues. With `exact`, each send reads the time.
#[inline]
pub(crate) fn begin(now_ns: u64, exact: bool) {
    HERE.with(|here| {
        here.now_ns.set(now_ns);
        here.exact.set(exact);
    });
}

/// Notes that a handler is about to wait for room in another stage.
pub(crate) fn hold_up() {
    HERE.with(|here| here.held_up.set(here.inside.get()));
}

/// Returns whether a handler has noted such a wait since the last call.
pub(crate) fn take_held_up() -> bool {
    HERE.with(|here| here.held_up.take())
}

/// Returns the trace of events that are sent here; 0 means none.
#[inline]
pub(crate) fn trace() -> u64 {
    HERE.with(|here| here.trace.get())
}

/// Sets the trace of events that are sent from here on; 0 means none. Use it only during a
/// servlet's poll, at whose end the trace is reset.
#[cold]
pub(crate) fn set_trace(trace: u64) {
    HERE.with(|here| {
        if here.inside.get() {
            if trace != 0 {
                hand_over_all(here);
            }
            here.trace.set(trace);
        }
    });
}

/// Hands over all collected events.
#[inline]
pub(crate) fn hand_over() {
    HERE.with(hand_over_all);
}

/// Hands over the events collected for this stage.
#[inline]
pub(crate) fn hand_over_for<E: Send + 'static>(stage: &Arc<Shared<E>>) {
    Arc::clone(stage).hand_over();
}

#[inline]
fn hand_over_all(here: &Here) {
    loop {
        // They are taken out one by one: handing over runs wakers and drop callbacks, which may
        // send events that are also collected.
        let Some(stage) = here.open.borrow_mut().pop() else {
            return;
        };
        stage.hand_over();
    }
}

/// Sends an event, by collecting it where that is possible.
#[inline(always)]
pub(crate) fn send<E: Send + 'static>(
    sender: &Sender<E>,
    event: Event<E>,
    waits: bool,
) -> Result<(), (Event<E>, Refusal)> {
    let stage = &sender.stage;
    if let Some(mut outgoing) = stage.outgoing.get()
        && outgoing.granted > 0
        && event.class_of() == outgoing.class
        && event.more.is_none()
    {
        let full = outgoing.collect(event, stage);
        drop(outgoing);
        if full || stage.is_idle() {
            go_on(stage);
        }
        return Ok(());
    }
    if sender.from != 0 && HERE.with(Here::is_outside) {
        return stage.offer(sender.from, event, sender.how(waits));
    }
    send_now(sender, event, waits)
}

impl<E: Send + 'static> Outgoing<E> {
    /// Sets the time stamp of the events to the beginning of the run, unless each send reads the
    /// time.
    fn set_time(&mut self, begun_ns: u64) {
        if !HERE.with(|here| here.exact.get()) {
            self.now_ns = begun_ns;
        }
    }

    /// Adds an event. Returns whether the reserved room is used up.
    #[inline(always)]
    fn collect(&mut self, mut event: Event<E>, stage: &Shared<E>) -> bool {
        let now_ns = if self.now_ns == 0 {
            stage.time.now_ns()
        } else {
            self.now_ns
        };
        event.queued(now_ns);
        self.chunk.push_back(event);
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
) -> Result<(), (Event<E>, Refusal)> {
    let stage = &sender.stage;
    let mut said = None;
    if !HERE.with(Here::is_outside) {
        said = self::said(stage, &event);
        Arc::clone(stage).hand_over();
    }
    if let Some(trace) = HERE.with(|here| here.trace_of(sender)) {
        event.trace_on(trace);
    }
    let may_collect = said.is_none() && event.more.is_none() && collects_for(stage);
    if may_collect && stage.outgoing.get().is_some() {
        let begun_ns = HERE.with(|here| here.now_ns.get());
        let mut outgoing = stage.reserve(event.class_of(), begun_ns);
        if outgoing.granted > 0 {
            outgoing.set_time(begun_ns);
            outgoing.collect(event, stage);
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
        outgoing.set_time(begun_ns);
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
fn said<E: Send + 'static>(stage: &Shared<E>, event: &Event<E>) -> Option<Refusal> {
    let mut place = stage.outgoing.get()?;
    let is_next = place.granted == 0 && event.class_of() == place.class && event.is_plain();
    place.then.take().filter(|_| is_next)
}

impl Here {
    /// Returns the trace of an event that is sent now.
    #[inline]
    fn trace_of<E>(&self, sender: &Sender<E>) -> Option<u64> {
        match self.trace.get() {
            0 if self.is_source.get() => sender.stage.tracer.choose(),
            0 if sender.from == 0 && !self.inside.get() => sender.stage.tracer.choose(),
            0 => None,
            trace => Some(trace),
        }
    }

    /// Returns whether this OS thread collects nothing for any stage, now and until the next poll
    /// of a servlet, and has no trace. Each collection has its stage in `open`, which is empty
    /// after a servlet's poll, except during the hand-over.
    #[inline]
    fn is_outside(&self) -> bool {
        !self.inside.get() && self.open.borrow().is_empty()
    }

    /// Returns whether a servlet is being polled that may collect for one more stage.
    fn collects(&self) -> bool {
        self.inside.get() && self.trace.get() == 0 && self.open.borrow().len() < OPEN_MAX
    }
}
