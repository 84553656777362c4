//! The state of an OS thread while it polls a servlet or a source.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Instant;

use super::sender::Sender;
use crate::stage::event::Path;
use crate::stage::state::{Awaited, Waiting, Waits, WaitsFor};
use crate::sync::Limit;
use crate::time::now;

/// The maximum number of stages for which one poll of a servlet collects events at a time. Events
/// for other stages are handed over immediately.
const OPEN_MAX: usize = 8;

thread_local! {
    pub(super) static HERE: Here = const {
        Here {
            inside: Cell::new(false),
            exact: Cell::new(false),
            now_ns: Cell::new(0),
            trace: Cell::new(0),
            path: RefCell::new(None),
            waits_for: Cell::new(WaitsFor::Other),
            has_permit: Cell::new(false),
            is_source: Cell::new(false),
            is_quick: Cell::new(false),
            waits: Cell::new(None),
            is_blocking: Cell::new(false),
            blocked: RefCell::new(None),
            blocked_ns: Cell::new(0),
            open: RefCell::new(Vec::new()),
        }
    };
}

/// The state of an OS thread while it polls a servlet.
pub(super) struct Here {
    pub(super) inside: Cell<bool>,
    /// True if handlers take so long that each send reads the time.
    pub(super) exact: Cell<bool>,
    /// The time at which the run began or its handler continued.
    pub(super) now_ns: Cell<u64>,
    /// The trace of the event that the handler took last; 0 means none. While a trace is set, the
    /// servlet collects no events, because each event that the handler sends belongs to the trace.
    pub(super) trace: Cell<u64>,
    /// The path of the event that the handler took last. While there is one, the servlet collects
    /// no events, because each event that the handler sends belongs to the path.
    pub(super) path: RefCell<Option<Arc<Path>>>,
    /// The cause of the polled handler's wait, if it has noted one.
    pub(super) waits_for: Cell<WaitsFor>,
    /// True if the polled handler has acquired a permit of a scarce limit.
    pub(super) has_permit: Cell<bool>,
    /// True if a source of events is polled, which begins traces.
    pub(super) is_source: Cell<bool>,
    /// True if the polled source has just sent a whole chunk quickly.
    pub(super) is_quick: Cell<bool>,
    /// The limits that the handlers of the polled servlet's stage wait for.
    pub(super) waits: Cell<Option<Arc<Waits>>>,
    /// True if a blocking handler runs.
    pub(super) is_blocking: Cell<bool>,
    /// The present wait of the blocking handler for a permit.
    pub(super) blocked: RefCell<Option<Blocked>>,
    /// The time for which the blocking handler has waited for permits before.
    pub(super) blocked_ns: Cell<u64>,
    /// The stages for which events may be collected.
    pub(super) open: RefCell<Vec<Arc<dyn Collects>>>,
}

/// A wait of a blocking handler for a permit, which its stage counts until this is dropped.
pub(super) struct Blocked {
    waits: Arc<Waits>,
    since: Instant,
}

impl Drop for Blocked {
    fn drop(&mut self) {
        self.waits.unblock();
    }
}

/// A stage with collected events of any type.
pub(crate) trait Collects {
    /// Hands over the events that this worker has collected.
    fn hand_over(self: Arc<Self>);
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
                drop(here.path.replace(None));
                here.waits.set(None);
                hand_over_all(here);
            });
        }
    }
    HERE.with(|here| here.inside.set(true));
    let _end = End;
    poll()
}

/// Notes that a source of events is polled: an event that it sends comes from outside. `is_quick`
/// is what [`is_quick`] returned after its last poll.
pub(crate) fn begin_source(is_quick: bool) {
    HERE.with(|here| {
        here.is_source.set(true);
        here.is_quick.set(is_quick);
    });
}

/// Returns whether the source that is polled has just sent a whole chunk quickly.
pub(crate) fn is_quick() -> bool {
    HERE.with(|here| here.is_quick.get())
}

/// Calls `poll`, in which `waits` are those of the polled servlet's stage, and then returns them to
/// their place. Use it within [`collecting`], which drops them if `poll` unwinds.
#[inline]
pub(crate) fn waiting<R>(waits: &mut Option<Arc<Waits>>, poll: impl FnOnce() -> R) -> R {
    HERE.with(|here| here.waits.set(waits.take()));
    let polled = poll();
    *waits = HERE.with(|here| here.waits.take());
    polled
}

/// Calls a blocking handler, in which `waits` are those of its stage, within [`collecting`].
/// Also returns the time for which the handler has waited for permits.
pub(crate) fn blocking<R>(waits: &mut Option<Arc<Waits>>, handle: impl FnOnce() -> R) -> (R, u64) {
    HERE.with(|here| here.is_blocking.set(true));
    let handled = waiting(waits, handle);
    HERE.with(|here| here.is_blocking.set(false));
    unblock();
    (handled, HERE.with(|here| here.blocked_ns.take()))
}

/// Ends the wait of a blocking handler for a permit.
fn unblock() {
    // There is no handler while the OS thread ends.
    let _ = HERE.try_with(|here| {
        if let Some(blocked) = here.blocked.take() {
            let ns = now().saturating_duration_since(blocked.since).as_nanos();
            let ns = u64::try_from(ns).unwrap_or(u64::MAX);
            here.blocked_ns
                .set(here.blocked_ns.get().saturating_add(ns));
        }
    });
}

/// A wait for a limit, which ends when this is dropped.
pub(crate) struct LimitWait {
    _waiting: Vec<Waiting>,
}

impl Drop for LimitWait {
    fn drop(&mut self) {
        unblock();
    }
}

/// Notes that the handler that runs here begins to wait for a limit, in its stage and in the stages
/// at which the paths of its event begin.
pub(crate) fn wait_for(limit: &Limit) -> LimitWait {
    let stage = HERE.with(|here| {
        let stage = here.waits.take();
        here.waits.set(stage.clone());
        if let Some(waits) = stage.clone().filter(|_| here.is_blocking.get()) {
            // A handler that waits for several permits at a time counts once.
            here.blocked.borrow_mut().get_or_insert_with(|| {
                waits.block();
                let since = now();
                Blocked { waits, since }
            });
        }
        stage
    });
    let path = path();
    let entries = path.iter().flat_map(|path| path.waits());
    let others = entries.filter(|entry| !stage.as_ref().is_some_and(|it| Arc::ptr_eq(entry, it)));
    let all = stage.iter().chain(others);
    let all = all.filter_map(|waits| Arc::clone(waits).begin(Awaited::Limit(limit.clone())));
    LimitWait {
        _waiting: all.collect(),
    }
}

/// Sets the time at which a run begins or continues. With `exact`, each send reads the time.
#[inline]
pub(crate) fn begin(now_ns: u64, exact: bool) {
    HERE.with(|here| {
        here.now_ns.set(now_ns);
        here.exact.set(exact);
    });
}

/// Notes the cause of a handler's wait that is about to begin or go on.
pub(crate) fn note_wait(waits_for: WaitsFor) {
    HERE.with(|here| {
        if here.inside.get() {
            here.waits_for.set(waits_for);
        }
    });
}

/// Notes that a handler acquires a permit of a scarce limit.
pub(crate) fn note_permit() {
    HERE.with(|here| {
        if here.inside.get() {
            here.has_permit.set(true);
        }
    });
}

/// Returns whether a handler has noted such a permit since the last call.
pub(crate) fn take_noted_permit() -> bool {
    HERE.with(|here| here.has_permit.take())
}

/// Returns the cause of a wait that a handler has noted since the last call.
pub(crate) fn take_noted_wait() -> WaitsFor {
    HERE.with(|here| here.waits_for.take())
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

/// Returns the path of events that are sent here, if there is one.
#[inline]
pub(crate) fn path() -> Option<Arc<Path>> {
    HERE.with(|here| here.path.borrow().clone())
}

/// Sets the path of events that are sent from here on, as [`set_trace`] does for the trace.
#[cold]
pub(crate) fn set_path(path: Option<Arc<Path>>) {
    let before = HERE.with(|here| {
        if !here.inside.get() {
            return path;
        }
        if path.is_some() {
            hand_over_all(here);
        }
        here.path.replace(path)
    });
    // This may end the path.
    drop(before);
}

/// Returns whether events that are sent here join neither a trace nor a path.
#[inline]
pub(super) fn is_alone() -> bool {
    HERE.with(Here::is_alone)
}

/// Hands over all collected events.
#[inline]
pub(crate) fn hand_over() {
    HERE.with(hand_over_all);
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

impl Here {
    /// Returns the trace of an event that is sent now.
    #[inline]
    pub(super) fn trace_of<E>(&self, sender: &Sender<E>) -> Option<u64> {
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
    pub(super) fn is_outside(&self) -> bool {
        !self.inside.get() && self.open.borrow().is_empty()
    }

    /// Returns whether a servlet is being polled that may collect for one more stage.
    pub(super) fn collects(&self) -> bool {
        self.inside.get() && self.is_alone() && self.open.borrow().len() < OPEN_MAX
    }

    fn is_alone(&self) -> bool {
        self.trace.get() == 0 && self.path.borrow().is_none()
    }
}
