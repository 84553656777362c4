//! A stage as senders and servlets share it: its state behind a lock, and who is called when it changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard, RwLock};
use tussah_core::time::Clock;
use tussah_core::{Guarded, Handle, Notify, PerWorker, quietly};

use super::batch::Batch;
use super::error::BuildError;
use super::event::{Class, Event, Reason};
use super::governing::{Governing, Rank};
use super::host::Present;
use super::network::{Network, Weak};
use super::outgoing::Outgoing;
use super::proxy::Route;
use super::queue::Queue;
use super::restarts::Restarts;
use super::sender::Why;
use super::senders::Senders;
use super::state::{Gate, How, Kind, State};
use super::tally::Tally;
use super::threads::Threads;
use super::trace::Tracer;

/// A stage, without the type of its handler.
pub(crate) struct Shared<E> {
    /// True while no servlet computes: an event that is sent then is handed over at once. Read at each send, and so apart from what
    /// changes often.
    pub(super) rests: Apart<AtomicBool>,
    pub(super) inner: Apart<Mutex<Inner<E>>>,
    /// Those who wait for nothing to be queued and in service.
    pub(crate) settled: Notify,
    /// Calls the watcher of the events' deadlines.
    pub(crate) watching: Arc<Notify>,
    /// What each worker has collected for the stage.
    pub(crate) outgoing: PerWorker<Outgoing<E>>,
    pub(crate) name: Arc<str>,
    /// Its number in the network.
    pub(crate) id: u32,
    pub(crate) time: Time,
    pub(crate) runtime: Handle,
    pub(crate) tracer: Arc<Tracer>,
    pub(crate) network: Weak,
    pub(crate) governing: Arc<Governing>,
    pub(crate) rank: Rank,
    /// Who is asked whether another servlet may go to work, if anybody is.
    pub(crate) threads: Option<Threads>,
    /// Starts a servlet of the present handler.
    pub(super) start: RwLock<Option<Start<E>>>,
    /// The present handler, for calls; none in a stage that blocks.
    present: RwLock<Present<E>>,
    /// Calls have to look at more than the handler that they were made for: it has been swapped, calls are by key, or a proxy is in between.
    pub(crate) special: AtomicBool,
    /// Events that came by calls.
    pub(crate) calls: Tally,
    /// One swap goes on at a time.
    pub(crate) swaps: async_lock::Mutex<()>,
    /// Calls that wait for a key, or for a swap.
    pub(crate) keys: Notify,
    pub(crate) on_drop: Option<OnDrop<E>>,
    pub(crate) on_close: Option<OnClose>,
    pub(crate) degrade: Option<Degrade<E>>,
    /// How often a serial handler may be made anew: what each that the stage gets begins with.
    pub(crate) restarts: Restarts,
}

/// What a stage is built with, and keeps.
pub(crate) struct Built<E> {
    pub(crate) id: u32,
    pub(crate) rank: Rank,
    pub(crate) threads: Option<Threads>,
    pub(crate) on_drop: Option<OnDrop<E>>,
    pub(crate) on_close: Option<OnClose>,
    pub(crate) degrade: Option<Degrade<E>>,
    pub(crate) restarts: Restarts,
}

/// Starts a servlet of the handler with this number.
pub(crate) type Start<E> = Arc<dyn Fn(&Arc<Shared<E>>, u32) + Send + Sync>;
pub(crate) type Degrade<E> = Guarded<Box<dyn Fn(&mut E) + Send + Sync>>;
pub(crate) type OnClose = Guarded<Box<dyn Fn(&str) + Send + Sync>>;
pub(crate) type OnDrop<E> = Guarded<Box<dyn Fn(E, Reason) + Send + Sync>>;

/// On cache lines of its own: two, as processors fetch them in pairs.
#[repr(align(128))]
pub(super) struct Apart<T>(pub(super) T);

/// The time of a network of stages.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Time {
    pub(crate) clock: Clock,
    pub(crate) start: Instant,
    start_ns: u64,
}

impl Time {
    /// Begins now.
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            start: clock.now(),
            start_ns: clock.now_ns(),
            clock,
        }
    }

    /// Nanoseconds since the start.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now_ns().saturating_sub(self.start_ns)
    }
}

pub(crate) struct Inner<E> {
    pub(crate) state: State<E>,
    /// Servlets that wait to be called, the last one first.
    pub(crate) parked: Vec<(u64, Waker)>,
    /// Senders that wait for room.
    pub(crate) senders: Senders,
    pub(crate) next_servlet: u64,
    /// Counts the handlers: a servlet ends when it is not one of the present handler's.
    pub(crate) generation: u32,
    /// Somebody wants to know when nothing is queued and in service.
    pub(crate) settling: bool,
    /// Who waits for nothing to be in service, to change the handler.
    pub(crate) swap: Option<Waker>,
    /// Servlets at work that the manager of servlets has let in.
    pub(crate) permits: usize,
    /// What is sent from these stages goes to a proxy.
    pub(crate) proxies: Vec<Route<E>>,
    /// It is closed, its last batch has ended, and the others have been told.
    pub(crate) gone: bool,
}

impl<E: Send + 'static> Shared<E> {
    pub(crate) fn new(name: Arc<str>, network: &Network, state: State<E>, built: Built<E>) -> Self {
        let weak = network.downgrade();
        let network = &network.inner;
        let runtime = network.runtime.clone();
        let calls = Tally::new(&runtime);
        let special = matches!(state.queue, Queue::Keyed(_));
        Self {
            rests: Apart(AtomicBool::new(true)),
            inner: Apart(Mutex::new(Inner {
                state,
                parked: Vec::new(),
                senders: Senders::default(),
                next_servlet: 0,
                generation: 0,
                settling: false,
                swap: None,
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
            special: AtomicBool::new(special),
            calls,
            swaps: async_lock::Mutex::new(()),
            keys: Notify::new(),
            on_drop: built.on_drop,
            on_close: built.on_close,
            degrade: built.degrade,
            restarts: built.restarts,
        }
    }

    #[inline]
    pub(crate) fn rests(&self) -> bool {
        self.rests.0.load(Ordering::Relaxed)
    }

    /// The lock, if nobody has it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Inner<E>>> {
        self.inner.0.try_lock()
    }

    /// Gives the stage its first handler, or another one.
    ///
    /// # Errors
    /// If it is closed.
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
        (inner.state.manned, inner.state.kind) = (true, kind);
        let parked = inner.call_parked();
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

    /// The present handler.
    pub(crate) fn present(&self) -> Present<E> {
        self.present.read().clone()
    }

    /// Finds out anew whether calls have to look at more than the handler that they were made for.
    pub(crate) fn look_again(&self) {
        let inner = self.lock();
        let special = inner.generation > 1
            || inner.state.gate == Gate::Closed
            || !inner.proxies.is_empty()
            || matches!(inner.state.queue, Queue::Keyed(_));
        // Release: with the Acquire in `is_special`. Under the lock, so that the last one to look is right.
        self.special.store(special, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_special(&self) -> bool {
        // Acquire: with the Release where it is set, so that the present handler is seen.
        self.special.load(Ordering::Acquire)
    }

    /// Queues one event.
    pub(crate) fn offer(
        self: &Arc<Self>,
        from: u32,
        event: Event<E>,
        how: How,
    ) -> Result<(), (Event<E>, Why)> {
        let mut inner = self.lock();
        if inner.is_proxied(from) {
            drop(inner);
            return self.offer_by_proxy(from, event, how);
        }
        // If this panics, the event ends with the sender, when the lock has been released.
        inner.state.queue.look_at(&event);
        let now_ns = self.time.now_ns();
        let offered = if !inner.senders.is_quiet() && inner.goes_behind(&event, how) {
            Err((event, Why::Full))
        } else {
            inner.state.offer(event, how, now_ns)
        };
        self.offered(inner, now_ns);
        match offered {
            Err((event, Why::Degrade)) => self.offer_degraded(from, event, how),
            offered => offered,
        }
    }

    /// Sees to what an event that was offered changes.
    #[inline]
    pub(super) fn offered(self: &Arc<Self>, mut inner: MutexGuard<'_, Inner<E>>, now_ns: u64) {
        inner.state.decide(now_ns);
        self.release(inner);
        if self.governing.is_due(now_ns) {
            self.plan(now_ns);
        }
    }

    fn offer_degraded(
        self: &Arc<Self>,
        from: u32,
        mut event: Event<E>,
        how: How,
    ) -> Result<(), (Event<E>, Why)> {
        self.make_smaller(&mut event);
        self.offer(from, event, How { asked: true, ..how })
    }

    pub(super) fn make_smaller(&self, event: &mut Event<E>) {
        if let Some(degrade) = &self.degrade {
            degrade(event);
        }
    }

    /// Does with an event what the controller has said of it before.
    pub(crate) fn obey(
        self: &Arc<Self>,
        from: u32,
        event: Event<E>,
        how: How,
        said: Why,
    ) -> Result<(), (Event<E>, Why)> {
        if said == Why::Degrade {
            return self.offer_degraded(from, event, how);
        }
        self.lock().state.refuse(event.class_of());
        Err((event, said))
    }

    /// Reserves room for as many events of a class as make a chunk, and the chunk. What the controller says of the one that would be next is in it too.
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
            outgoing.chunk = inner.state.spare();
        }
        outgoing
    }

    /// Queues the next chunk of a batch, or as much of it as there is room for; if senders wait for room, the share of one whose `turn` it is. False if there is no room, or
    /// events have to be looked at one by one.
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

    /// Queues what a sender has collected; with `more` it reserves room for the next chunk.
    pub(crate) fn push(self: &Arc<Self>, outgoing: &mut Outgoing<E>, more: bool) {
        let mut inner = self.lock();
        let now_ns = outgoing
            .chunk
            .back()
            .map_or(0, |event| super::event::queued_ns(event.stamp()));
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
    /// Whether room may be reserved ahead of time: nobody waits for it, and events need not be looked at one by one.
    #[inline]
    fn reserves(&self) -> bool {
        self.proxies.is_empty() && self.senders.is_empty()
    }

    /// Has all parked servlets look at the stage again; they count as busy then.
    pub(crate) fn call_parked(&mut self) -> Vec<Waker> {
        let wakers: Vec<_> = self.parked.drain(..).map(|(_, waker)| waker).collect();
        self.state.servlets.busy += wakers.len();
        self.state.servlets.parked -= wakers.len();
        wakers
    }
}
