//! Edges by a call. The call of a plain module is a function call, which makes a future only if
//! what the module sends has no room.

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
use crate::stage::host::{Many, One};
use crate::stage::{AnyCall, Batch, Reason, Sender, Shared, Stage, trace};

/// A call.
pub(super) struct Calls<I> {
    call: AnyCall<Parcel<I>>,
    /// The queue of the same stage.
    queue: Sender<Parcel<I>>,
    place: Place<I>,
    /// The instance, if it is plain. It is looked up when all instances are installed.
    plain: OnceLock<Option<Arc<dyn Plain<I>>>>,
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

    /// Returns the instance if it can be called without a future: nothing about its stage or the
    /// item is special, and no earlier item waits.
    #[inline]
    fn plain(&self) -> Option<&dyn Plain<I>> {
        let find = || self.place.get().and_then(|find| find());
        let plain = self.plain.get_or_init(find).as_deref()?;
        // Relaxed: only the sender itself has to see what it has sent before.
        let is_usual = self.waiting.load(Ordering::Relaxed) == 0
            && !self.call.stage.is_special()
            && trace() == 0;
        is_usual.then_some(plain)
    }

    /// Handles an item in a future.
    async fn wait(&self, parcel: Parcel<I>, ends: &Ends<I>) {
        let mut batch = Batch::of([parcel]);
        let call = AssertUnwindSafe(self.call.call(&mut batch)).catch_unwind();
        match call.await {
            Ok(Ok(())) => {}
            // A stage that is closed has left the item in the batch.
            Ok(Err(_)) => {
                for parcel in batch.drain() {
                    ends(parcel, Reason::ShutDown);
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
        if let Some(plain) = to.plain() {
            match plain.call(parcel) {
                Ok(wait) => {
                    to.call.stage.calls.add(1);
                    let wait = wait?;
                    let waiting = Waiting::new(&to.waiting);
                    return Some(Box::pin(async move {
                        wait.await;
                        drop(waiting);
                    }));
                }
                Err(back) => parcel = back,
            }
        }
        let waiting = Waiting::new(&to.waiting);
        Some(Box::pin(async move {
            to.wait(parcel, ends).await;
            drop(waiting);
        }))
    }

    fn offer(&self, flow: Flow, item: T) {
        // A call cannot be made without waiting; the queue of the stage takes the item.
        self.to
            .queue
            .send_or(self.parcel(flow, item), |event, _| drop(event));
    }

    fn end(&self, flow: Flow, item: T, why: Reason) {
        (self.ends)(self.parcel(flow, item), why);
    }
}

/// An instance that handles an item within one function call.
pub(crate) trait Plain<I>: Send + Sync {
    /// Handles an item. Returns the wait for the room of what the module sent, if there is one.
    ///
    /// # Errors
    /// Returns the item if another caller uses the module.
    fn call(&self, parcel: Parcel<I>) -> Result<Option<Wait<'_>>, Parcel<I>>;
}

/// A function that returns an installed instance, if it can be called this way and still exists.
type Find<I> = Box<dyn Fn() -> Option<Arc<dyn Plain<I>>> + Send + Sync>;

/// The place of an instance's [`Find`], which is empty before the instance is installed. It does
/// not keep the instance alive: the output ports of the instance may lead to this place.
pub(crate) type Place<I> = Arc<OnceLock<Find<I>>>;

/// A module that handles any number of items at a time.
pub(super) struct PlainElement<M: Module> {
    host: Arc<Many<Elements<M>>>,
    stage: Arc<Shared<Parcel<M::Item>>>,
}

impl<M: Element> PlainElement<M> {
    /// Fills the place of an instance, if it is plain.
    pub(super) fn fill(
        place: &Place<M::Item>,
        stage: &Stage<Parcel<M::Item>, Arc<Many<Elements<M>>>>,
    ) {
        let (host, stage) = (Arc::downgrade(&stage.host), Arc::downgrade(&stage.shared));
        let find: Find<M::Item> = Box::new(move || {
            let (host, stage) = (host.upgrade()?, stage.upgrade()?);
            Some(Arc::new(Self { host, stage }))
        });
        if M::IS_PLAIN {
            drop(place.set(find));
        }
    }
}

impl<M: Element> Plain<M::Item> for PlainElement<M> {
    fn call(&self, parcel: Parcel<M::Item>) -> Result<Option<Wait<'_>>, Parcel<M::Item>> {
        let Elements { module, outs, .. } = &*self.host.0;
        let held = Held::default();
        if caught(|| module.call_now(parcel.item, &parcel.flow, outs, &held)).is_none() {
            self.stage.lost(1);
        }
        Ok(held.into_wait())
    }
}

/// A module that handles one item at a time.
pub(super) struct PlainSerial<M: Module> {
    host: Arc<One<Serials<M>>>,
    outs: Arc<M::Outs>,
    stage: Arc<Shared<Parcel<M::Item>>>,
}

impl<M: Serial> PlainSerial<M> {
    /// Fills the place of an instance, if it is plain. `outs` returns its ports.
    pub(super) fn fill(
        place: &Place<M::Item>,
        stage: &Stage<Parcel<M::Item>, Arc<One<Serials<M>>>>,
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

impl<M: Serial> Plain<M::Item> for PlainSerial<M> {
    fn call(&self, parcel: Parcel<M::Item>) -> Result<Option<Wait<'_>>, Parcel<M::Item>> {
        let Some(mut place) = self.host.try_use() else {
            return Err(parcel);
        };
        let held = Held::default();
        let module = &mut place.handler().module;
        if caught(|| module.call_now(parcel.item, &parcel.flow, &self.outs, &held)).is_none() {
            self.stage.lost(1);
            place.broke(&self.stage);
        }
        // The module handles nothing else before what it sent has arrived.
        Ok(held.into_wait().map(|wait| -> Wait<'_> {
            Box::pin(async move {
                wait.await;
                drop(place);
            })
        }))
    }
}
