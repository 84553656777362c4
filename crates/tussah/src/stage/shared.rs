//! A stage as senders and servlets share it: its state behind a lock, and who is called when it changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard, RwLock};
use tussah_core::time::Clock;
use tussah_core::{Handle, Notify, PerWorker};

use super::batch::{Batch, Chunk};
use super::event::{Class, Event, Reason};
use super::outgoing::Outgoing;
use super::queue::Queue;
use super::sender::Why;
use super::state::{Gate, Run, State, Summon};

/// A stage, without the type of its handler.
pub(crate) struct Shared<E> {
    /// True while no servlet computes: an event that is sent then is handed over at once. Read at each send, and so apart from what
    /// changes often.
    rests: Apart<AtomicBool>,
    inner: Apart<Mutex<Inner<E>>>,
    /// Senders that wait for room.
    pub(crate) room: Notify,
    /// What each worker has collected for the stage.
    pub(crate) outgoing: PerWorker<Outgoing<E>>,
    pub(crate) name: Arc<str>,
    pub(crate) time: Time,
    pub(crate) runtime: Handle,
    /// Starts a servlet of the present handler.
    start: RwLock<Option<Start<E>>>,
    pub(crate) on_drop: Option<OnDrop<E>>,
    pub(crate) degrade: Option<Box<dyn Fn(&mut E) + Send + Sync>>,
}

pub(crate) type Start<E> = Arc<dyn Fn(&Arc<Shared<E>>) + Send + Sync>;
pub(crate) type OnDrop<E> = Box<dyn Fn(E, Reason) + Send + Sync>;

/// What comes of asking for room ahead of time.
pub(crate) enum Reserved<E> {
    /// Room for so many events, and a chunk to collect them in.
    Room(Chunk<E>, u64),
    /// A controller turned the event away.
    Rejected(Why),
    /// The event has to be offered by itself.
    Nothing,
}

/// On cache lines of its own: two, as processors fetch them in pairs.
#[repr(align(128))]
struct Apart<T>(T);

/// The time of a network of stages.
#[derive(Clone, Debug)]
pub(crate) struct Time {
    pub(crate) clock: Clock,
    pub(crate) start: Instant,
}

impl Time {
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now().duration_since(self.start).as_nanos() as u64
    }
}

pub(crate) struct Inner<E> {
    pub(crate) state: State<E>,
    /// Servlets that wait to be called, the last one first.
    parked: Vec<(u64, Waker)>,
    /// Senders that wait for room.
    pub(crate) senders: usize,
    next_servlet: u64,
    /// Counts the handlers: a servlet ends when it is not one of the present handler's.
    pub(crate) generation: u32,
    /// Who wants to know when nothing is queued and in service.
    pub(crate) settled: Vec<Waker>,
}

/// A servlet as its stage knows it.
pub(crate) struct Servlet {
    id: u64,
    generation: u32,
    parked: bool,
}

impl Servlet {
    /// Whether it waited to be called when it looked last.
    pub(crate) fn is_parked(&self) -> bool {
        self.parked
    }
}

/// What a servlet does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    Work,
    Wait,
    End,
}

/// What is to be done after the lock is released.
struct Calls<E> {
    unpark: Option<Waker>,
    spawn: Option<Start<E>>,
    room: Option<bool>,
    settled: Vec<Waker>,
}

impl<E: Send + 'static> Shared<E> {
    pub(crate) fn new(
        name: Arc<str>,
        runtime: Handle,
        time: Time,
        state: State<E>,
        on_drop: Option<OnDrop<E>>,
        degrade: Option<Box<dyn Fn(&mut E) + Send + Sync>>,
    ) -> Self {
        Self {
            rests: Apart(AtomicBool::new(true)),
            inner: Apart(Mutex::new(Inner {
                state,
                parked: Vec::new(),
                senders: 0,
                next_servlet: 0,
                generation: 0,
                settled: Vec::new(),
            })),
            room: Notify::new(),
            outgoing: PerWorker::new(&runtime, Outgoing::default),
            name,
            time,
            runtime,
            start: RwLock::new(None),
            on_drop,
            degrade,
        }
    }

    #[inline]
    pub(crate) fn rests(&self) -> bool {
        self.rests.0.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner<E>> {
        self.inner.0.lock()
    }

    pub(crate) fn set_start(&self, start: Start<E>) {
        *self.start.write() = Some(start);
    }

    /// Releases the lock, having seen to who must be called because of what changed.
    #[inline]
    pub(crate) fn release(self: &Arc<Self>, mut inner: MutexGuard<'_, Inner<E>>) {
        let calls = self.calls(&mut inner);
        drop(inner);
        if let Some(calls) = calls {
            self.make(calls);
        }
    }

    #[inline]
    fn calls(&self, inner: &mut Inner<E>) -> Option<Calls<E>> {
        let mut calls = Calls {
            unpark: None,
            spawn: None,
            room: None,
            settled: Vec::new(),
        };
        let mut any = true;
        match inner.state.summon() {
            Summon::Nobody => any = false,
            Summon::Unpark => calls.unpark = inner.parked.pop().map(|(_, waker)| waker),
            Summon::Spawn => calls.spawn = self.start.read().clone(),
        }
        if inner.senders > 0 && inner.state.credits() <= inner.state.threshold / 2 {
            calls.room = Some(matches!(inner.state.queue, Queue::Keyed(_)));
            any = true;
        }
        if !inner.settled.is_empty() && inner.state.is_empty() {
            calls.settled = std::mem::take(&mut inner.settled);
            any = true;
        }
        let rests = inner.state.rests();
        if rests != self.rests() {
            self.rests.0.store(rests, Ordering::Relaxed);
        }
        any.then_some(calls)
    }

    fn make(self: &Arc<Self>, calls: Calls<E>) {
        if let Some(waker) = calls.unpark {
            waker.wake();
        }
        if let Some(start) = calls.spawn {
            start(self);
        }
        match calls.room {
            None => {}
            Some(true) => self.room.notify_waiters(),
            Some(false) => self.room.notify_one(),
        }
        for waker in calls.settled {
            waker.wake();
        }
    }

    /// Queues one event. `asked` is true if a controller has seen it already; a refusal counts the sender as one of those that wait for room, if it `waits`.
    pub(crate) fn offer(
        self: &Arc<Self>,
        event: Event<E>,
        asked: bool,
        waits: bool,
    ) -> Result<(), (Event<E>, Why)> {
        let mut inner = self.lock();
        let now_ns = self.time.now_ns();
        let offered = inner.state.offer(event, asked, waits, now_ns);
        if let Err((_, why)) = &offered {
            inner.senders += usize::from(waits && why.is_full());
        }
        inner.state.decide(now_ns);
        self.release(inner);
        match offered {
            Err((mut event, Why::Degrade)) => {
                if let Some(degrade) = &self.degrade {
                    degrade(&mut event);
                }
                self.offer(event, true, waits)
            }
            other => other,
        }
    }

    /// Reserves room for as many events of a class as make a chunk.
    pub(crate) fn reserve(&self, class: Class, now_ns: u64) -> Reserved<E> {
        let mut inner = self.lock();
        let granted = inner.state.reserve(class, now_ns);
        if granted == 0 {
            return Reserved::Nothing;
        }
        Reserved::Room(inner.state.spare(), granted)
    }

    /// Queues what a sender has collected; with `more` it reserves room for the next chunk.
    pub(crate) fn push(self: &Arc<Self>, outgoing: &mut Outgoing<E>, more: bool) {
        let mut inner = self.lock();
        let now_ns = outgoing
            .chunk
            .back()
            .map_or(0, |event| super::event::queued_ns(event.stamp()));
        inner.state.push_chunk(outgoing);
        if more {
            outgoing.granted = inner.state.reserve(outgoing.class, now_ns);
        }
        inner.state.decide(now_ns);
        self.release(inner);
    }

    /// Makes a servlet known that was summoned and starts.
    pub(crate) fn enlist(&self) -> Servlet {
        let mut inner = self.lock();
        inner.next_servlet += 1;
        Servlet {
            id: inner.next_servlet,
            generation: inner.generation,
            parked: false,
        }
    }

    /// Ends what a servlet has done, and gives it the next events, or parks it.
    pub(crate) fn turn(
        self: &Arc<Self>,
        servlet: &mut Servlet,
        run: &mut Run<E>,
        batch: &mut Batch<E>,
        (ended_ns, now_ns): (u64, u64),
        waker: &Waker,
    ) -> Next {
        let mut inner = self.lock();
        if servlet.parked {
            if let Some(place) = inner.parked.iter_mut().find(|(id, _)| *id == servlet.id) {
                // Nobody has called it.
                place.1.clone_from(waker);
                return Next::Wait;
            }
            servlet.parked = false;
        }
        if run.is_open() {
            inner.state.finish(run, batch, ended_ns);
            inner.state.decide(now_ns);
        }
        let present = servlet.generation == inner.generation;
        let next = if present && inner.state.take(run, now_ns) {
            Next::Work
        } else if present && inner.state.park() {
            inner.parked.push((servlet.id, waker.clone()));
            servlet.parked = true;
            Next::Wait
        } else {
            if !present {
                inner.state.ended();
            }
            Next::End
        };
        self.release(inner);
        next
    }

    /// Says that a handler waits, and gives back what its servlet has taken beyond the batch.
    pub(crate) fn waits(self: &Arc<Self>, run: &mut Run<E>) {
        let mut inner = self.lock();
        inner.state.waits(run);
        self.release(inner);
    }

    /// A servlet is gone, whatever it was doing.
    pub(crate) fn dismiss(
        self: &Arc<Self>,
        servlet: &Servlet,
        run: &mut Run<E>,
        batch: &mut Batch<E>,
    ) {
        let mut inner = self.lock();
        let now_ns = self.time.now_ns();
        let place = inner.parked.iter().position(|(id, _)| *id == servlet.id);
        if let Some(place) = place {
            inner.parked.swap_remove(place);
            inner.state.ended_parked();
        } else {
            if run.is_open() {
                inner.state.finish(run, batch, now_ns);
            }
            inner.state.ended();
        }
        self.release(inner);
    }

    /// Tells of the events of a batch whose handler panicked.
    pub(crate) fn panicked(&self, batch: &mut Batch<E>) {
        self.lock().state.counts.panicked += batch.taken();
        batch.panicked();
    }

    /// Tells of an event that ended in the queue.
    pub(crate) fn dropped(&self, event: Event<E>, reason: Reason) {
        match &self.on_drop {
            None => event.end(reason),
            Some(on_drop) => {
                let (value, more, _) = event.split();
                super::quietly(|| on_drop(value, reason));
                if let Some(more) = more {
                    more.end(reason);
                }
            }
        }
    }
}

impl<E> Shared<E> {
    /// The lock, for who must not need to know what an event is.
    pub(crate) fn lock_plain(&self) -> MutexGuard<'_, Inner<E>> {
        self.inner.0.lock()
    }
}

impl<E> Inner<E> {
    /// Has all parked servlets look at the stage again; they count as busy then.
    pub(crate) fn call_parked(&mut self) -> Vec<Waker> {
        let wakers: Vec<_> = self.parked.drain(..).map(|(_, waker)| waker).collect();
        self.state.servlets.busy += wakers.len();
        self.state.servlets.parked -= wakers.len();
        wakers
    }
}

impl<E> Drop for Shared<E> {
    fn drop(&mut self) {
        let inner = self.inner.0.get_mut();
        inner.state.gate = Gate::Closed;
        while let Some(event) = inner.state.take_out() {
            let (value, more, _) = event.split();
            if let Some(on_drop) = &self.on_drop {
                super::quietly(|| on_drop(value, Reason::ShutDown));
            }
            if let Some(more) = more {
                more.end(Reason::ShutDown);
            }
        }
    }
}
