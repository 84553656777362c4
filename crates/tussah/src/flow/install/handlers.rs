//! The handlers of stages that are instances.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tussah_core::{Handle, quietly};
use tussah_weave::Body;

use super::batches::Calls;
use super::ordered::in_turn;
use crate::flow::flows::{Flow, Parcel};
use crate::flow::keepers::Keepers;
use crate::flow::module::{Element, Module, Serial};
use crate::flow::ordered::handed_over;
use crate::flow::outbox::Held;
use crate::flow::outlet::Outs;
use crate::flow::way::{Along, Way};
use crate::stage::{Batch, Event, Handler, Refusal, Sender, SerialHandler, trace};
use crate::sync::Limit;
use crate::time::sleep;

/// The time after which an item that may not be lost, but was rejected, is sent again.
const AGAIN: Duration = Duration::from_millis(10);

pub struct Elements<M: Module, W = Along> {
    pub(crate) module: M,
    pub(crate) outs: Arc<M::Outs>,
    pub(crate) keepers: Arc<Keepers>,
    /// Held by the servlet or the caller that uses a serial module.
    pub(crate) turn: async_lock::Mutex<()>,
    pub(crate) way: PhantomData<fn() -> W>,
}

#[diagnostic::do_not_recommend]
impl<M: Element, W: Way> Handler for Elements<M, W> {
    type Event = Parcel<M::Item>;

    async fn handle(&self, batch: &mut Batch<Self::Event>) {
        let Self {
            module,
            outs,
            keepers,
            turn,
            ..
        } = self;
        let _turn = match M::IS_SERIAL {
            true => Some(turn.lock().await),
            false => None,
        };
        if M::TAKES_MANY {
            let mut calls = Calls::new(M::BODY == Body::Async);
            while calls.go_on::<M>(batch, keepers, outs) {
                module.call_many(batch, outs).await;
            }
            return;
        }
        if M::IS_PLAIN && M::IS_ORDERED {
            let call =
                |item, flow: &_, held: &_| module.call_now::<Along>(item, flow, outs, (held, None));
            return in_turn(batch, call).await;
        }
        if M::IS_PLAIN {
            let call = |item, flow: &_, held: &_, way: Option<&mut _>| {
                module.call_now::<W>(item, flow, outs, (held, way))
            };
            return plain::<W, _, _>(batch, &**outs, call).await;
        }
        while let Some(Parcel { flow, item }) = batch.next() {
            let call = module.call(item, &flow, outs);
            let is_handled = match M::IS_ORDERED {
                true => handed_over(call).await,
                false => call.await,
            };
            settle(batch, is_handled);
        }
    }
}

/// Handles a batch with a plain function. While there is room for everything that the module sends,
/// this is one function call with one guard against panics.
pub(super) async fn plain<'a, W: Way, O: Outs, I: Send>(
    batch: &mut Batch<Parcel<I>>,
    outs: &'a O,
    mut call: impl FnMut(I, &Flow, &Held<'a>, Option<&mut W::Open<'a>>) -> bool + Send,
) {
    let mut held = Held::default();
    loop {
        let handled = caught_run::<W, _, _>(batch, &held, outs, &mut call);
        // Also after a panic: what the module has sent before it arrives.
        if !held.is_empty() {
            held.flush().await;
        }
        match handled {
            Ok(true) => return,
            Ok(false) => {}
            Err(payload) => resume_unwind(payload),
        }
    }
}

/// Handles items until the batch is empty, or something that was sent has no room. Returns whether
/// the batch is empty.
fn caught_run<'a, W: Way, O: Outs, I>(
    batch: &mut Batch<Parcel<I>>,
    held: &Held<'a>,
    outs: &'a O,
    call: &mut impl FnMut(I, &Flow, &Held<'a>, Option<&mut W::Open<'a>>) -> bool,
) -> std::thread::Result<bool> {
    // Callees are free again before anything waits.
    let mut way = W::open(outs);
    let run = catch_unwind(AssertUnwindSafe(|| {
        while let Some(Parcel { item, flow }) = batch.next() {
            // Each edge notes the items of a trace.
            let is_traced = W::IS_FUSED && batch.may_be_watched() && trace() != 0;
            let way = (!is_traced).then_some(&mut way);
            let is_handled = call(item, &flow, held, way);
            // The others are settled at once, at the end of the run.
            if !is_handled || batch.settles_each() {
                settle(batch, is_handled);
            }
            if !held.is_empty() {
                return false;
            }
        }
        true
    }));
    match run {
        Ok(_) => batch.settle(),
        Err(_) => batch.settle_earlier(),
    }
    run
}

/// Ends the item that was taken last.
#[inline]
pub(super) fn settle<I>(batch: &mut Batch<Parcel<I>>, is_handled: bool) {
    if !is_handled {
        batch.fail(1);
    }
    batch.settle();
}

pub struct Serials<M: Module, W = Along> {
    pub(crate) module: M,
    pub(crate) outs: Arc<M::Outs>,
    pub(crate) keepers: Arc<Keepers>,
    pub(crate) way: PhantomData<fn() -> W>,
}

#[diagnostic::do_not_recommend]
impl<M: Serial, W: Way> SerialHandler for Serials<M, W> {
    type Event = Parcel<M::Item>;

    async fn handle(&mut self, batch: &mut Batch<Self::Event>) {
        let Self {
            module,
            outs,
            keepers,
            ..
        } = self;
        if M::TAKES_MANY {
            let mut calls = Calls::new(false);
            while calls.go_on::<M>(batch, keepers, outs) {
                module.call_many(batch, outs).await;
            }
            return;
        }
        if M::IS_PLAIN {
            let call = |item, flow: &_, held: &_, way: Option<&mut _>| {
                module.call_now::<W>(item, flow, outs, (held, way))
            };
            return plain::<W, _, _>(batch, &**outs, call).await;
        }
        while let Some(Parcel { flow, item }) = batch.next() {
            let is_handled = module.call(item, &flow, outs).await;
            settle(batch, is_handled);
        }
    }
}

/// Returns the handler of a module that blocks its OS thread.
pub(crate) fn blocks<M: Element>(
    module: M,
    outs: Arc<M::Outs>,
    keepers: Arc<Keepers>,
    runtime: Handle,
) -> impl Fn(&mut Batch<Parcel<M::Item>>) + Send + Sync + 'static {
    move |batch: &mut Batch<Parcel<M::Item>>| {
        if M::TAKES_MANY {
            let mut calls = Calls::new(false);
            while calls.go_on::<M>(batch, &keepers, &outs) {
                runtime.block_on(module.call_many(batch, &outs));
            }
            return;
        }
        let call =
            |item, flow: &Flow, held: &_| module.call_now::<Along>(item, flow, &outs, (held, None));
        if M::IS_ORDERED {
            return runtime.block_on(in_turn(batch, call));
        }
        let call = |item, flow: &_, held: &_, _: Option<&mut ()>| call(item, flow, held);
        runtime.block_on(plain::<Along, _, _>(batch, &*outs, call));
    }
}

/// Sends an item that may not be lost, past the controllers. A proxy that does not take it is asked
/// again.
///
/// # Errors
/// Returns the item if the stage is closed.
pub(super) async fn insist<I: Send + 'static>(
    sender: &Sender<Parcel<I>>,
    mut parcel: Parcel<I>,
) -> Result<(), Parcel<I>> {
    loop {
        let Err(error) = sender.insist(parcel).await else {
            return Ok(());
        };
        parcel = error.event.into_inner();
        if error.why == Refusal::Closed {
            return Err(parcel);
        }
        sleep(AGAIN).await;
    }
}

/// Sends an item that may not be lost, but was shed, again.
pub(super) async fn send_later<I: Send + 'static>(
    sender: Arc<Sender<Parcel<I>>>,
    parcel: Parcel<I>,
) {
    sleep(AGAIN).await;
    // A stage that is closed handles no flow any more.
    drop(insist(&sender, parcel).await);
}

/// Asks an instance to handle the end of a flow. If the instance is gone, its state is dropped.
pub(super) fn end_flow<M: Module>(
    sender: &Weak<Sender<Parcel<M::Item>>>,
    runtime: &Handle,
    flow: Flow,
    item: M::Item,
    slot: usize,
    limit: Option<&Limit>,
) {
    let Some(sender) = sender.upgrade() else {
        let parcel = Some(Parcel { item, flow });
        return drop(Ending { parcel, slot });
    };
    let later = |parcel: Parcel<M::Item>, limit: Option<Limit>| {
        let ending = Ending {
            parcel: Some(parcel),
            slot,
        };
        let sender = Arc::clone(&sender);
        drop(runtime.try_spawn(async move { ending.send(&sender, limit).await }));
    };
    let flow = match limit.map(|limit| (limit, limit.try_acquire())) {
        None => flow,
        Some((_, Some(permit))) => flow.with_permit(permit),
        Some((limit, None)) => return later(Parcel { item, flow }, Some(limit.clone())),
    };
    let refused = |event: Event<Parcel<M::Item>>, why| match why {
        Refusal::Closed => drop(Ending {
            parcel: Some(event.into_inner()),
            slot,
        }),
        _ => later(event.into_inner(), None),
    };
    sender.send_or(Parcel { item, flow }, refused);
}

/// The end of a flow that could not be sent. Dropping this drops the state: nobody handles it.
struct Ending<I> {
    parcel: Option<Parcel<I>>,
    slot: usize,
}

impl<I: Send + 'static> Ending<I> {
    async fn send(mut self, sender: &Sender<Parcel<I>>, limit: Option<Limit>) {
        if let Some(Parcel { item, flow }) = self.parcel.take() {
            let flow = flow.limited(limit.as_ref()).await;
            let parcel = Parcel { item, flow };
            self.parcel = insist(sender, parcel).await.err();
        }
    }
}

impl<I> Drop for Ending<I> {
    fn drop(&mut self) {
        if let Some(parcel) = self.parcel.take() {
            let kept = parcel.flow.kept(self.slot);
            let kept = kept.map(|kept| std::mem::take(&mut *kept.lock()));
            quietly(|| drop(kept));
        }
    }
}

/// The handler of an instance that gets no items.
pub(super) struct Nothing<M>(pub(super) std::marker::PhantomData<fn() -> M>);

impl<M: Module> Handler for Nothing<M> {
    type Event = Parcel<M::Item>;

    async fn handle(&self, batch: &mut Batch<Self::Event>) {
        drop(batch.drain().last());
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use parking_lot::Mutex;

    use super::*;
    use crate::stage::Reason;

    /// Something is kept for the second and the fourth event, and the fourth one panics.
    #[test]
    fn only_the_event_that_panics_is_dropped() {
        let dropped: Arc<Mutex<Vec<u32>>> = Arc::default();
        let event = |item: u32| {
            let event = Event::from(Parcel {
                item,
                flow: Flow::default(),
            });
            let dropped = Arc::clone(&dropped);
            match item % 2 {
                0 => event.on_drop(move |_| dropped.lock().push(item)),
                _ => event,
            }
        };
        // As a servlet takes them out of the queue.
        let mut batch = Batch::default();
        (1..=5).for_each(|item| batch.put_one(event(item)));
        let call = |item, _: &Flow, _: &Held<'_>, _: Option<&mut ()>| {
            assert_ne!(item, 4, "the fourth item");
            true
        };
        let run = AssertUnwindSafe(plain::<Along, (), _>(&mut batch, &(), call));
        run.catch_unwind()
            .now_or_never()
            .expect("nothing waits")
            .expect_err("the fourth one panics");
        assert_eq!((batch.unsettled(), batch.len()), (1, 1));
        batch.dropped(Reason::Panicked);
        assert_eq!(*dropped.lock(), [4]);
    }
}
