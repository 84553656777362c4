//! Edges by a call. A call of a plain module is a function call. It makes a future only if there is
//! no room for the items that the module sends.

use std::any::Any;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use futures_util::future::FutureExt as _;
use tussah_core::{caught, quietly};

use super::edge::{Ends, Push, To, Wait, Wrap};
use super::flows::{Flow, Parcel};
use super::install::{Elements, Serials};
use super::limit::Waiting;
use super::module::{Element, Module, Serial};
use super::outbox::Held;
use super::way::{Along, Way};
use crate::stage::host::{ConcurrentHost, SerialHost, Using};
use crate::stage::{AnyCall, Batch, Event, Reason, Sender, Shared, Stage, trace};

/// The number of attempts to enter a serial module that another caller is using, before a future
/// waits for it. A plain module never waits itself, so it is often free again soon.
const TRIES: u32 = 20;

/// A call.
pub(super) struct Calls<I> {
    call: AnyCall<Parcel<I>>,
    /// The queue of the same stage.
    queue: Sender<Parcel<I>>,
    place: Place<I>,
    /// The instance, if it is plain. It is looked up when all instances are installed.
    plain: OnceLock<Option<Installed<I>>>,
    /// The number of items that have been sent and have not arrived.
    waiting: Arc<AtomicUsize>,
}

impl<I: Send + 'static> Calls<I> {
    pub(super) fn new(
        call: AnyCall<Parcel<I>>,
        queue: Sender<Parcel<I>>,
        place: &Place<I>,
    ) -> Self {
        Self {
            call,
            queue,
            place: Arc::clone(place),
            plain: OnceLock::new(),
            waiting: Arc::default(),
        }
    }

    /// Returns the instance, if it is plain.
    #[inline]
    fn plain(&self) -> Option<&(dyn Plain<I> + Send + Sync)> {
        let find = || self.place.get().and_then(|find| find());
        self.plain.get_or_init(find).as_deref()
    }

    /// Returns the instance, if it is plain and has this type.
    pub(super) fn instance<C: Plain<I>>(&self) -> Option<&C> {
        (self.plain()? as &dyn Any).downcast_ref()
    }

    /// Returns whether a plain instance can be called without a future: nothing about its stage or
    /// the item is special, and no earlier item waits.
    #[inline]
    fn is_usual(&self) -> bool {
        self.is_free() && trace() == 0
    }

    /// Returns the same for items that belong to no trace.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        // Relaxed: only the sender itself has to see what it has sent before.
        self.waiting.load(Ordering::Relaxed) == 0 && !self.call.stage.is_special()
    }

    /// Counts calls in the statistics of the instance.
    pub(super) fn count(&self, calls: u64) {
        self.call.stage.calls.add(calls);
    }

    /// Returns the wait for the room of what the instance has sent. Until it ends, no other item is
    /// handled in a plain call.
    pub(super) fn waiting<'a>(&self, wait: Wait<'a>) -> Wait<'a> {
        let waiting = Waiting::new(&self.waiting);
        Box::pin(async move {
            wait.await;
            drop(waiting);
        })
    }

    /// Handles an item in a future. A trace of 0 means none.
    async fn wait(&self, parcel: Parcel<I>, trace: u64, ends: &Ends<I>) {
        let event = Event::from(parcel);
        let mut batch = Batch::of([match trace {
            0 => event,
            trace => event.traced(trace),
        }]);
        let call = AssertUnwindSafe(self.call.call(&mut batch)).catch_unwind();
        match call.await {
            Ok(Ok(())) => {}
            // A stage that is closed has left the item in the batch.
            Ok(Err(_)) => {
                for parcel in batch.drain() {
                    if let Some(wait) = ends(parcel, Reason::ShutDown) {
                        wait.await;
                    }
                }
            }
            // The sender's item and all else that it sends go on.
            Err(payload) => {
                self.call.stage.panicked(&mut batch);
                quietly(|| drop(payload));
            }
        }
    }
}

impl<T: Send + 'static, I: Send + 'static, W: Wrap<T, I>> Push<T> for To<Calls<I>, I, W> {
    fn push(&self, flow: Flow, item: T) -> Option<Wait<'_>> {
        let Self { to, ends, .. } = self;
        let mut parcel = self.parcel(flow, item);
        if let Some(plain) = to.plain().filter(|_| to.is_usual()) {
            match plain.call(parcel) {
                Ok(wait) => {
                    to.count(1);
                    return wait.map(|wait| to.waiting(wait));
                }
                Err(back) => parcel = back,
            }
        }
        let (waiting, trace) = (Waiting::new(&to.waiting), trace());
        Some(Box::pin(async move {
            to.wait(parcel, trace, ends).await;
            drop(waiting);
        }))
    }

    fn offer(&self, flow: Flow, item: T) -> bool {
        // A call cannot be made without waiting; the queue of the stage takes the item.
        self.to.queue.try_send(self.parcel(flow, item)).is_ok()
    }

    fn end(&self, flow: Flow, item: T, why: Reason) -> Option<Wait<'static>> {
        (self.ends)(self.parcel(flow, item), why)
    }

    fn callee(&self) -> Option<&dyn Any> {
        Some(&self.to)
    }
}

/// An instance that handles an item within one function call.
///
/// The trait does not require `Sync`. A `Sync` bound would cause an additional error at the `type
/// Call` of a module that is not `Sync`, with type names that users do not know.
pub trait Plain<I>: Any {
    /// Handles an item. If receivers cannot yet accept all items that the module sent, returns a
    /// future that completes once they have.
    ///
    /// # Errors
    /// Returns the item if another caller is using the module.
    fn call(&self, parcel: Parcel<I>) -> Result<Option<Wait<'_>>, Parcel<I>>;
}

/// An instance of the module `M`; the compiler can inline calls to it.
pub trait Called<M: Module>: Plain<M::Item> {
    /// A guard that grants the right to use the instance.
    type Guard<'a>: Send;

    /// Returns a guard, or `None` if another caller is using the instance or the instance no longer
    /// exists.
    fn enter(&self) -> Option<Self::Guard<'_>>;

    /// Returns the output ports.
    fn outs(&self) -> &M::Outs;

    /// Handles an item. If a receiver cannot accept an item that the module sends, the item goes
    /// into `held`.
    ///
    /// # Panics
    /// Panics if the module panics.
    fn handle<'a, W: Way>(
        guard: &mut Self::Guard<'a>,
        item: M::Item,
        flow: &Flow,
        held: &Held<'a>,
        way: Option<&mut W::Open<'a>>,
    );

    /// Counts a panic, and creates the module again if it is serial.
    fn broke(&self, guard: &mut Self::Guard<'_>);

    /// Handles an item that arrived along an edge. If receivers cannot yet accept all items that
    /// the module sent, returns a future that completes once they have.
    #[inline(always)]
    fn run<'a>(
        &'a self,
        guard: &mut Self::Guard<'a>,
        Parcel { item, flow }: Parcel<M::Item>,
    ) -> Option<Wait<'a>> {
        let held = Held::default();
        if caught(|| Self::handle::<Along>(guard, item, &flow, &held, None)).is_none() {
            self.broke(guard);
        }
        held.into_wait()
    }
}

/// An instance that workers share.
type Installed<I> = Arc<dyn Plain<I> + Send + Sync>;

/// A function that returns an installed instance, if it can be called this way and still exists.
type Find<I> = Box<dyn Fn() -> Option<Installed<I>> + Send + Sync>;

/// The place of an instance's [`Find`], which is empty before the instance is installed. It does
/// not keep the instance alive: the output ports of the instance may lead to this place.
pub(crate) type Place<I> = Arc<OnceLock<Find<I>>>;

/// The stage of a module that handles any number of items at a time.
type ElementStage<M, W> = Stage<Parcel<<M as Module>::Item>, Arc<ConcurrentHost<Elements<M, W>>>>;

/// The stage of a module that handles one item at a time.
type SerialStage<M, W> = Stage<Parcel<<M as Module>::Item>, Arc<SerialHost<Serials<M, W>>>>;

/// A plain instance that handles any number of items at a time.
pub struct PlainElement<M: Module, W: Way = Along> {
    host: Arc<ConcurrentHost<Elements<M, W>>>,
    stage: Arc<Shared<Parcel<M::Item>>>,
}

impl<M: Element, W: Way> PlainElement<M, W> {
    /// Fills the place of an instance, if it is plain and handles several items at a time.
    pub(super) fn fill(place: &Place<M::Item>, stage: &ElementStage<M, W>) {
        let (host, stage) = (Arc::downgrade(&stage.host), Arc::downgrade(&stage.shared));
        let find: Find<M::Item> = Box::new(move || {
            let (host, stage) = (host.upgrade()?, stage.upgrade()?);
            Some(Arc::new(Self { host, stage }))
        });
        if M::IS_PLAIN && !M::IS_SERIAL {
            drop(place.set(find));
        }
    }
}

impl<M: Element, W: Way> Plain<M::Item> for PlainElement<M, W> {
    fn call(&self, parcel: Parcel<M::Item>) -> Result<Option<Wait<'_>>, Parcel<M::Item>> {
        Ok(self.run(&mut &*self.host.0, parcel))
    }
}

impl<M: Element, W: Way> Called<M> for PlainElement<M, W> {
    type Guard<'a> = &'a Elements<M, W>;

    #[inline(always)]
    fn enter(&self) -> Option<&Elements<M, W>> {
        Some(&self.host.0)
    }

    fn outs(&self) -> &M::Outs {
        &self.host.0.outs
    }

    #[inline(always)]
    fn handle<'a, V: Way>(
        guard: &mut &'a Elements<M, W>,
        item: M::Item,
        flow: &Flow,
        held: &Held<'a>,
        way: Option<&mut V::Open<'a>>,
    ) {
        let Elements { module, outs, .. } = *guard;
        module.call_now::<V>(item, flow, outs, (held, way));
    }

    fn broke(&self, _guard: &mut &Elements<M, W>) {
        self.stage.lost(1);
    }
}

/// A plain instance that handles one item at a time.
pub struct PlainSerial<M: Module, W: Way = Along> {
    host: Arc<SerialHost<Serials<M, W>>>,
    outs: Arc<M::Outs>,
    stage: Arc<Shared<Parcel<M::Item>>>,
}

impl<M: Serial, W: Way> PlainSerial<M, W> {
    /// Fills the place of an instance, if it is plain. `outs` returns its ports.
    pub(super) fn fill(
        place: &Place<M::Item>,
        stage: &SerialStage<M, W>,
        outs: impl Fn() -> Option<Arc<M::Outs>> + Send + Sync + 'static,
    ) {
        let (host, stage) = (Arc::downgrade(&stage.host), Arc::downgrade(&stage.shared));
        let find: Find<M::Item> = Box::new(move || {
            let (host, outs, stage) = (host.upgrade()?, outs()?, stage.upgrade()?);
            Some(Arc::new(Self { host, outs, stage }))
        });
        if M::IS_PLAIN {
            drop(place.set(find));
        }
    }
}

impl<M: Serial, W: Way> Plain<M::Item> for PlainSerial<M, W> {
    fn call(&self, parcel: Parcel<M::Item>) -> Result<Option<Wait<'_>>, Parcel<M::Item>> {
        let entered = (0..TRIES).find_map(|attempt| {
            if attempt > 0 {
                std::hint::spin_loop();
            }
            self.enter()
        });
        let Some(mut guard) = entered else {
            return Err(parcel);
        };
        let wait = self.run(&mut guard, parcel);
        // The module handles nothing else before what it sent has arrived.
        Ok(wait.map(|wait| -> Wait<'_> {
            Box::pin(async move {
                wait.await;
                drop(guard);
            })
        }))
    }
}

impl<M: Serial, W: Way> Called<M> for PlainSerial<M, W> {
    type Guard<'a> = (Using<'a, Serials<M, W>>, &'a M::Outs);

    #[inline(always)]
    fn enter(&self) -> Option<Self::Guard<'_>> {
        Some((self.host.try_use()?, &self.outs))
    }

    fn outs(&self) -> &M::Outs {
        &self.outs
    }

    #[inline(always)]
    fn handle<'a, V: Way>(
        (place, outs): &mut Self::Guard<'a>,
        item: M::Item,
        flow: &Flow,
        held: &Held<'a>,
        way: Option<&mut V::Open<'a>>,
    ) {
        let module = &mut place.handler().module;
        module.call_now::<V>(item, flow, outs, (held, way));
    }

    fn broke(&self, (place, _): &mut Self::Guard<'_>) {
        self.stage.lost(1);
        place.broke(&self.stage);
    }
}

/// An instance of a module that is not plain.
pub struct NotPlain<M>(PhantomData<fn() -> M>, Infallible);

impl<M: Module> Plain<M::Item> for NotPlain<M> {
    fn call(&self, _parcel: Parcel<M::Item>) -> Result<Option<Wait<'_>>, Parcel<M::Item>> {
        match self.1 {}
    }
}

impl<M: Module> Called<M> for NotPlain<M> {
    type Guard<'a> = Infallible;

    fn enter(&self) -> Option<Infallible> {
        match self.1 {}
    }

    fn outs(&self) -> &M::Outs {
        match self.1 {}
    }

    fn handle<'a, W: Way>(
        guard: &mut Infallible,
        _item: M::Item,
        _flow: &Flow,
        _held: &Held<'a>,
        _way: Option<&mut W::Open<'a>>,
    ) {
        match *guard {}
    }

    fn broke(&self, guard: &mut Infallible) {
        match *guard {}
    }
}
