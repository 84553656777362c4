//! What a handler sends, collected: one lock and one wake-up for many events.
//!
//! While a servlet is polled, what its handler sends to a stage whose servlets are at work is collected, up to a chunk, and handed over when
//! the chunk is full, when the stage has nothing more to do, after each run of batches, and when the poll ends; so what a handler sent is in the
//! queues before it waits for anything. Room is reserved before an event is collected: it has been let in.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::batch::Chunk;
use super::event::{Class, Event};
use super::sender::{Sender, Why};
use super::shared::Shared;
use super::state::How;

/// Bound, in stages: for how many one poll of a servlet collects at the same time; what it sends to others is handed over at once.
const OPEN_MAX: usize = 8;

thread_local! {
    static HERE: Here = const {
        Here {
            inside: Cell::new(false),
            exact: Cell::new(false),
            now_ns: Cell::new(0),
            trace: Cell::new(0),
            held_up: Cell::new(false),
            open: RefCell::new(Vec::new()),
        }
    };
}

/// What an OS thread knows while it polls a servlet.
struct Here {
    inside: Cell<bool>,
    /// Handlers take so long that the time is read at each send.
    exact: Cell<bool>,
    /// When the run began, or its handler went on.
    now_ns: Cell<u64>,
    /// The trace of the event that the handler took last; 0 is none. While there is one, nothing is collected, since what is sent belongs to it.
    trace: Cell<u64>,
    /// The handler that is polled waits for room in another stage.
    held_up: Cell<bool>,
    /// Stages that something may be collected for.
    open: RefCell<Vec<Arc<dyn Collects>>>,
}

/// A stage that events are collected for, whatever they are.
pub(crate) trait Collects {
    /// Hands over what this worker has collected.
    fn hand_over(self: Arc<Self>);
}

/// What a worker has collected for a stage.
pub(crate) struct Outgoing<E> {
    pub(crate) chunk: Chunk<E>,
    /// Room that is reserved and not used.
    pub(crate) granted: u64,
    pub(crate) class: Class,
    /// Events of the chunk that carry more than their value.
    pub(crate) extras: u64,
    /// The earliest deadline of these; 0 is none.
    pub(crate) due_ns: u64,
    /// What the controller has said of the event after these.
    pub(crate) then: Option<Why>,
    /// The time that events bear; 0 has each read the clock.
    pub(crate) now_ns: u64,
}

impl<E> Default for Outgoing<E> {
    fn default() -> Self {
        Self {
            chunk: Chunk::new(),
            granted: 0,
            class: Class::default(),
            extras: 0,
            due_ns: 0,
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

/// Polls a servlet: what it sends is collected, and handed over when `poll` returns or unwinds.
#[inline]
pub(crate) fn collecting<R>(poll: impl FnOnce() -> R) -> R {
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            HERE.with(|here| {
                here.inside.set(false);
                here.trace.set(0);
                hand_over_all(here);
            });
        }
    }
    HERE.with(|here| here.inside.set(true));
    let _end = End;
    poll()
}

/// Tells the time at which a run begins or goes on; with `exact` the time is read again at each send.
#[inline]
pub(crate) fn begin(now_ns: u64, exact: bool) {
    HERE.with(|here| {
        here.now_ns.set(now_ns);
        here.exact.set(exact);
    });
}

/// Says that a handler is about to wait for room in another stage.
pub(crate) fn hold_up() {
    HERE.with(|here| here.held_up.set(here.inside.get()));
}

/// Whether a handler that waits has said so since this was last asked.
pub(crate) fn take_held_up() -> bool {
    HERE.with(|here| here.held_up.take())
}

/// The trace that what is sent here belongs to; 0 is none.
#[inline]
pub(crate) fn trace() -> u64 {
    HERE.with(|here| here.trace.get())
}

/// Has what is sent from here on belong to a trace; 0 is none. Only for a handler, which ends.
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

/// Hands over what has been collected.
#[inline]
pub(crate) fn hand_over() {
    HERE.with(hand_over_all);
}

/// Hands over what has been collected for this stage, if anything has been.
#[inline]
pub(crate) fn hand_over_for<E: Send + 'static>(stage: &Arc<Shared<E>>) {
    Arc::clone(stage).hand_over();
}

#[inline]
fn hand_over_all(here: &Here) {
    loop {
        // Taken out one by one: as it is handed over wakers and drop callbacks run, and what these send may be collected too.
        let Some(stage) = here.open.borrow_mut().pop() else {
            return;
        };
        stage.hand_over();
    }
}

/// Sends an event, by way of what is collected where that is possible.
#[inline(always)]
pub(crate) fn send<E: Send + 'static>(
    sender: &Sender<E>,
    event: Event<E>,
    waits: bool,
) -> Result<(), (Event<E>, Why)> {
    let stage = &sender.stage;
    if let Some(mut outgoing) = stage.outgoing.get()
        && outgoing.granted > 0
        && event.class_of() == outgoing.class
        && event.is_plain()
    {
        let full = outgoing.collect(event, stage);
        drop(outgoing);
        if full || stage.rests() {
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
    /// Adds an event; returns true if there is no room for another.
    #[inline(always)]
    fn collect(&mut self, mut event: Event<E>, stage: &Shared<E>) -> bool {
        // A deadline counts from the send, however long the run is by now.
        let now_ns = if self.now_ns == 0 || event.more.is_some() {
            stage.time.now_ns()
        } else {
            self.now_ns
        };
        event.queued(now_ns);
        if event.more.is_some() {
            self.extras += 1;
            // The earliest that there is, 0 being none.
            let deadline_ns = event.deadline_ns().wrapping_sub(1);
            self.due_ns = deadline_ns.min(self.due_ns.wrapping_sub(1)).wrapping_add(1);
        }
        self.chunk.push_back(event);
        self.granted -= 1;
        self.granted == 0
    }
}

/// Hands over what is collected for the stage, and reserves room for more of the kind.
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
    // Nothing is borrowed here, since others are woken.
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

/// Hands over what is collected for the stage, and then sends this event: as the first that is collected, or at once.
#[cold]
#[inline(never)]
fn send_now<E: Send + 'static>(
    sender: &Sender<E>,
    mut event: Event<E>,
    waits: bool,
) -> Result<(), (Event<E>, Why)> {
    let stage = &sender.stage;
    let said = if HERE.with(Here::is_outside) {
        None
    } else {
        let said = said(stage, &event);
        Arc::clone(stage).hand_over();
        said
    };
    if let Some(trace) = HERE.with(|here| here.trace_of(sender)) {
        event.trace_on(trace);
    }
    if let Some(said) = said {
        return stage.obey(sender.from, event, sender.how(waits), said);
    }
    let collects = HERE.with(Here::collects) && event.is_plain() && !stage.rests();
    if collects && stage.outgoing.get().is_some() {
        let class = event.class_of();
        let begun_ns = HERE.with(|here| here.now_ns.get());
        let mut outgoing = stage.reserve(class, begun_ns);
        if outgoing.granted > 0 {
            if !HERE.with(|here| here.exact.get()) {
                outgoing.now_ns = begun_ns;
            }
            outgoing.collect(event, stage);
            let stage = Arc::clone(stage);
            if let Some(mut place) = stage.outgoing.get() {
                *place = outgoing;
            }
            HERE.with(|here| here.open.borrow_mut().push(stage));
            return Ok(());
        }
        if let Some(said) = outgoing.then {
            return stage.obey(sender.from, event, sender.how(waits), said);
        }
    }
    stage.offer(sender.from, event, sender.how(waits))
}

/// Has what a handler sends next to the stage, whose queue was full, collected: as many events as are its share of the room.
pub(crate) fn take_share<E: Send + 'static>(stage: &Arc<Shared<E>>, class: Class) {
    if !HERE.with(Here::collects) || stage.rests() {
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
    if outgoing.granted == 0 && outgoing.then.is_none() {
        return;
    }
    if !HERE.with(|here| here.exact.get()) {
        outgoing.now_ns = begun_ns;
    }
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

/// What the controller has said of this event, if it has been asked ahead of time.
fn said<E: Send + 'static>(stage: &Shared<E>, event: &Event<E>) -> Option<Why> {
    let mut place = stage.outgoing.get()?;
    let is_next = place.granted == 0 && event.class_of() == place.class && event.is_plain();
    place.then.take().filter(|_| is_next)
}

impl Here {
    /// The trace that an event belongs to which is sent now.
    #[inline]
    fn trace_of<E>(&self, sender: &Sender<E>) -> Option<u64> {
        match self.trace.get() {
            0 if sender.from == 0 && !self.inside.get() => sender.stage.tracer.choose(),
            0 => None,
            trace => Some(trace),
        }
    }

    /// Whether nothing is collected on this OS thread for any stage, and nothing will be. What is collected is so for one in `open`, and that is empty when a servlet's
    /// poll has ended, but for what is just being handed over. There is no trace either.
    #[inline]
    fn is_outside(&self) -> bool {
        !self.inside.get() && self.open.borrow().is_empty()
    }

    /// Whether a servlet is being polled that may collect for one more stage.
    fn collects(&self) -> bool {
        self.inside.get() && self.trace.get() == 0 && self.open.borrow().len() < OPEN_MAX
    }
}
