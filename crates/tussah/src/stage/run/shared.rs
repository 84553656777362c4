//! The part of a stage that senders and servlets share: its state behind a lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use parking_lot::{Mutex, MutexGuard, RwLock};
use tussah_core::{Guarded, Handle, Notify, PerWorker, quietly};

use super::host::Present;
use super::restarts::Restarts;
use super::threads::Threads;
use crate::stage::error::BuildError;
use crate::stage::event::{Batch, Class, Event, NotTaken, Reason, Time, queued_ns};
use crate::stage::network::{Governing, Network, Rank, Weak};
use crate::stage::observe::Tracer;
use crate::stage::queue::{Queue, Senders};
use crate::stage::send::{Outgoing, Route};
use crate::stage::state::{Gate, How, Kind, State, Tally, Waits};

/// A stage, without the type of its handler.
pub(crate) struct Shared<E> {
    /// True if no servlet computes: a sent event is then handed over immediately. Each send reads
    /// this flag, so it does not share a cache line with data that changes often.
    pub(crate) is_idle: Apart<AtomicBool>,
    pub(crate) inner: Apart<Mutex<Inner<E>>>,
    /// Notified when nothing is queued or in service.
    pub(crate) settled: Notify,
    /// Wakes the watcher of the events' deadlines.
    pub(crate) watching: Arc<Notify>,
    /// The events that each worker has collected for the stage.
    pub(crate) outgoing: PerWorker<Outgoing<E>>,
    pub(crate) reserves: bool,
    pub(crate) name: Arc<str>,
    /// The stage's number in the network.
    pub(crate) id: u32,
    pub(crate) time: Time,
    pub(crate) runtime: Handle,
    pub(crate) tracer: Arc<Tracer>,
    pub(crate) network: Weak,
    pub(crate) governing: Arc<Governing>,
    pub(crate) rank: Rank,
    /// The manager that decides whether another servlet may start working, if there is one.
    pub(crate) threads: Option<Threads>,
    /// Starts a servlet of the current handler.
    pub(crate) start: RwLock<Option<Start<E>>>,
    /// The current handler, for calls; `None` in a stage that blocks.
    present: RwLock<Present<E>>,
    /// True if calls have to check more than the handler for which they were made: the handler was
    /// swapped, calls are by key, or there is a proxy.
    pub(crate) special: AtomicBool,
    /// The number of events that were taken in calls.
    pub(crate) calls: Tally,
    /// Held during a swap, so that only one runs at a time.
    pub(crate) swaps: async_lock::Mutex<()>,
    /// Notifies calls that wait for a key or for a swap.
    pub(crate) keys: Notify,
    pub(crate) on_drop: Option<OnDrop<E>>,
    pub(crate) on_close: Option<OnClose>,
    pub(crate) degrade: Option<Degrade<E>>,
    /// The limit on restarts, with which each serial handler of the stage begins.
    pub(crate) restarts: Restarts,
    /// The waits of the stage, if its batches last until the paths of their events end.
    pub(crate) paths: Option<Arc<Waits>>,
}

/// The parts of a stage that the builder sets.
pub(crate) struct Built<E> {
    pub(crate) id: u32,
    pub(crate) rank: Rank,
    pub(crate) threads: Option<Threads>,
    pub(crate) on_drop: Option<OnDrop<E>>,
    pub(crate) on_close: Option<OnClose>,
    pub(crate) degrade: Option<Degrade<E>>,
    pub(crate) restarts: Restarts,
    pub(crate) whole_path: bool,
}

/// Starts a servlet of the handler with this number.
pub(crate) type Start<E> = Arc<dyn Fn(&Arc<Shared<E>>, u32) + Send + Sync>;
pub(crate) type Degrade<E> = Guarded<Box<dyn Fn(&mut E) + Send + Sync>>;
pub(crate) type OnClose = Guarded<Box<dyn Fn(&str) + Send + Sync>>;
pub(crate) type OnDrop<E> = Guarded<Box<dyn Fn(E, Reason) + Send + Sync>>;

/// A value on its own two cache lines, because processors fetch them in pairs.
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

pub(crate) struct Inner<E> {
    pub(crate) state: State<E>,
    /// Parked servlets; the last one is woken first.
    pub(crate) parked: Vec<(u64, Waker)>,
    /// The number of parked servlets that were woken but have not started yet.
    pub(crate) called: usize,
    /// The stage itself, from the time a servlet is woken until it starts, because parked servlets
    /// do not keep the stage alive.
    pub(crate) own: Option<Arc<Shared<E>>>,
    /// Senders that wait for room.
    pub(crate) senders: Senders,
    pub(crate) next_servlet: u64,
    /// The number of the current handler: a servlet of another handler ends.
    pub(crate) generation: u32,
    /// True if a caller waits until nothing is queued or in service.
    pub(crate) settling: bool,
    /// The wakers of swaps that wait until nothing is in service.
    pub(crate) resting: Vec<Waker>,
    /// Servlets at work that the manager of servlets has admitted.
    pub(crate) permits: usize,
    /// The proxies, with the stages whose events go to them.
    pub(crate) proxies: Vec<Route<E>>,
    /// True if the stage was closed, its last batch has ended, and the other stages have been
    /// notified.
    pub(crate) gone: bool,
}

impl<E: Send + 'static> Shared<E> {
    pub(crate) fn new(name: Arc<str>, network: &Network, state: State<E>, built: Built<E>) -> Self {
        let weak = network.downgrade();
        let network = &network.inner;
        let runtime = network.runtime.clone();
        let waits = Arc::clone(&state.scarcity.waits);
        Self {
            paths: built.whole_path.then_some(waits),
            special: AtomicBool::new(matches!(state.queue, Queue::Keyed(_))),
            reserves: state.queue.is_plain(),
            calls: Tally::new(&runtime),
            is_idle: Apart(AtomicBool::new(true)),
            inner: Apart(Mutex::new(Inner {
                state,
                parked: Vec::new(),
                called: 0,
                own: None,
                senders: Senders::default(),
                next_servlet: 0,
                generation: 0,
                settling: false,
                resting: Vec::new(),
                permits: 0,
                proxies: Vec::new(),
                gone: false,
            })),
            settled: Notify::new(),
            watching: Arc::default(),
            outgoing: PerWorker::new(&runtime, Outgoing::default),
            name,
            id: built.id,
            time: network.time.clone(),
            runtime,
            tracer: Arc::clone(&network.tracer),
            network: weak,
            governing: Arc::clone(&network.governing),
            rank: built.rank,
            threads: built.threads,
            start: RwLock::new(None),
            present: RwLock::new(None),
            swaps: async_lock::Mutex::new(()),
            keys: Notify::new(),
            on_drop: built.on_drop,
            on_close: built.on_close,
            degrade: built.degrade,
            restarts: built.restarts,
        }
    }

    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.is_idle.0.load(Ordering::Relaxed)
    }

    /// Returns the lock, if it is free.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Inner<E>>> {
        self.inner.0.try_lock()
    }

    /// Sets the stage's first handler, or replaces it.
    ///
    /// # Errors
    /// Returns an error if the stage is closed.
    pub(crate) fn set_handler(
        self: &Arc<Self>,
        kind: Kind,
        start: Start<E>,
        present: Present<E>,
    ) -> Result<(), BuildError> {
        let mut inner = self.lock();
        if inner.state.gate == Gate::Closed {
            drop(inner);
            return Err(self.is_closed());
        }
        let earlier = (
            self.start.write().replace(start),
            std::mem::replace(&mut *self.present.write(), present),
        );
        inner.generation += 1;
        (inner.state.has_handler, inner.state.kind) = (true, kind);
        let parked = inner.call_parked(self);
        self.release(inner);
        self.look_again();
        // Servlets of the earlier handler end.
        for waker in parked {
            quietly(|| waker.wake());
        }
        let (start, present) = earlier;
        quietly(|| drop(start));
        quietly(|| drop(present));
        Ok(())
    }

    /// Takes the handler out.
    pub(crate) fn take_handler(&self) -> (Option<Start<E>>, Present<E>) {
        (self.start.write().take(), self.present.write().take())
    }

    /// Returns the current handler.
    pub(crate) fn present(&self) -> Present<E> {
        self.present.read().clone()
    }

    /// Determines again whether calls have to check more than the handler for which they were made.
    pub(crate) fn look_again(&self) {
        let inner = self.lock();
        let special = inner.generation > 1
            || inner.state.gate == Gate::Closed
            || !inner.proxies.is_empty()
            || matches!(inner.state.queue, Queue::Keyed(_));
        // Release pairs with the Acquire in `is_special`. The store is made under the lock, so the
        // last thread to determine the value stores the correct one.
        self.special.store(special, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_special(&self) -> bool {
        // Acquire pairs with the Release where it is set, so that the current handler is seen.
        self.special.load(Ordering::Acquire)
    }

    /// Queues one event.
    pub(crate) fn offer(
        self: &Arc<Self>,
        from: u32,
        event: Event<E>,
        how: How,
    ) -> Result<(), (Event<E>, NotTaken)> {
        self.offer_locked(from, event, how, self.lock())
    }

    // The lock comes last, so that a panic releases it before the event ends.
    #[inline(always)]
    pub(crate) fn offer_locked(
        self: &Arc<Self>,
        from: u32,
        event: Event<E>,
        how: How,
        mut inner: MutexGuard<'_, Inner<E>>,
    ) -> Result<(), (Event<E>, NotTaken)> {
        if inner.is_proxied(from) {
            drop(inner);
            return self.offer_by_proxy(from, event, how);
        }
        inner.state.queue.look_at(&event);
        let now_ns = self.time.now_ns();
        let quiet = inner.senders.is_quiet();
        let behind = (!quiet).then(|| inner.goes_behind(&event, how)).flatten();
        let offered = match behind {
            Some(why) => Err((event, why.into())),
            None => inner.state.offer(event, how, now_ns),
        };
        self.offered(inner, now_ns);
        match offered {
            Err((event, NotTaken::Degrade)) => self.offer_degraded(from, event, how),
            offered => offered.map_err(|(event, why)| (event.refused(), why)),
        }
    }

    /// Handles the effects of an offered event.
    #[inline]
    pub(crate) fn offered(self: &Arc<Self>, mut inner: MutexGuard<'_, Inner<E>>, now_ns: u64) {
        inner.state.decide(now_ns);
        self.release(inner);
        if self.governing.is_due(now_ns) {
            self.plan(now_ns);
        }
    }

    pub(crate) fn offer_degraded(
        self: &Arc<Self>,
        from: u32,
        mut event: Event<E>,
        how: How,
    ) -> Result<(), (Event<E>, NotTaken)> {
        self.make_smaller(&mut event);
        self.offer(from, event, How { asked: true, ..how })
    }

    pub(crate) fn make_smaller(&self, event: &mut Event<E>) {
        if let Some(degrade) = &self.degrade {
            degrade(event);
        }
    }

    /// Reserves room for up to a chunk of events of a class, together with the chunk. The result
    /// also contains the controller's decision about the next event.
    pub(crate) fn reserve(&self, class: Class, begun_ns: u64) -> Outgoing<E> {
        let mut inner = self.lock();
        let mut outgoing = Outgoing {
            class,
            ..Outgoing::default()
        };
        if inner.reserves() {
            (outgoing.granted, outgoing.then) = inner.state.reserve(class, 1, begun_ns);
        }
        if outgoing.granted > 0 {
            outgoing.chunk = inner.state.queue.spare().into();
        }
        outgoing
    }

    /// Queues the next chunk of a batch, or as much of it as there is room for. While senders wait
    /// for room, only a sender whose `turn` it is may do so, for its share. Returns false if there
    /// is no room, or if events need individual checks.
    pub(crate) fn push_batch(
        self: &Arc<Self>,
        from: u32,
        batch: &mut Batch<E>,
        turn: bool,
    ) -> bool {
        let now_ns = self.time.now_ns();
        let mut inner = self.lock();
        let sharing = inner.senders.sharing();
        let may = inner.senders.is_empty() || turn && !inner.senders.any_waits();
        let pushed =
            may && !inner.is_proxied(from) && inner.state.push_batch(batch, sharing, now_ns);
        inner.state.decide(now_ns);
        self.release(inner);
        pushed
    }

    /// Queues the events that a sender has collected. With `more`, reserves room for the next
    /// chunk.
    pub(crate) fn push(self: &Arc<Self>, outgoing: &mut Outgoing<E>, more: bool) {
        let mut inner = self.lock();
        let now_ns = outgoing
            .chunk
            .last()
            .map_or(0, |event| queued_ns(event.stamp()));
        inner.state.push_chunk(outgoing);
        if more && inner.reserves() && outgoing.then.is_none() {
            (outgoing.granted, outgoing.then) = inner.state.reserve(outgoing.class, 1, now_ns);
        }
        inner.state.decide(now_ns);
        self.release(inner);
    }
}

impl<E> Shared<E> {
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner<E>> {
        self.inner.0.lock()
    }
}

impl<E> Inner<E> {
    /// Returns whether room may be reserved ahead of time: no sender waits for it, and there is no
    /// proxy.
    #[inline]
    fn reserves(&self) -> bool {
        self.proxies.is_empty() && self.senders.is_empty()
    }

    /// Wakes all parked servlets to check the stage again; they count as busy from then on.
    pub(crate) fn call_parked(&mut self, own: &Arc<Shared<E>>) -> Vec<Waker> {
        let wakers: Vec<_> = self.parked.drain(..).map(|(_, waker)| waker).collect();
        self.state.servlets.busy += wakers.len();
        self.state.servlets.parked -= wakers.len();
        self.called += wakers.len();
        self.hold(own, false);
        wakers
    }

    /// Notes that a woken servlet starts or ends.
    pub(crate) fn came(&mut self) {
        self.called -= 1;
        if self.called == 0 {
            // The caller has locked the stage, and keeps it alive.
            self.own = None;
        }
    }

    /// Makes the stage keep itself alive while a woken servlet has yet to start, or while it waits
    /// for a permit.
    #[inline]
    pub(crate) fn hold(&mut self, own: &Arc<Shared<E>>, waits: bool) {
        let holds = self.called > 0 || waits;
        if holds != self.own.is_some() {
            self.own = holds.then(|| Arc::clone(own));
        }
    }
}
