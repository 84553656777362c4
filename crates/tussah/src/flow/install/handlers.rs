//! The handlers of stages that are instances.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tussah_core::{Handle, quietly};

use super::ordered::{handed_over, in_turn};
use crate::JoinHandle;
use crate::flow::flows::{Flow, Keepers, Parcel};
use crate::flow::module::{Element, Module, PerFlow, Serial};
use crate::flow::outlet::Held;
use crate::flow::wake::Wake;
use crate::stage::{Batch, Event, Handler, Refusal, Sender, SerialHandler};
use crate::sync::Limit;
use crate::time::sleep;

/// The time after which an item that may not be lost, but was rejected, is sent again.
const AGAIN: Duration = Duration::from_millis(10);

pub(crate) struct Elements<M: Module> {
    pub(crate) module: M,
    pub(crate) outs: Arc<M::Outs>,
    pub(crate) keepers: Arc<Keepers>,
}

impl<M: Element> Handler for Elements<M> {
    type Event = Parcel<M::Item>;

    async fn handle(&self, batch: &mut Batch<Self::Event>) {
        let Self {
            module,
            outs,
            keepers,
        } = self;
        if M::TAKES_MANY {
            let call = keepers.unless_halted(module.call_many(batch, outs));
            return call.await.unwrap_or_default();
        }
        if M::IS_PLAIN {
            let call = |item, flow: &Flow, held: &_| module.call_now(item, flow, outs, held);
            return match M::IS_ORDERED {
                true => in_turn(batch, call).await,
                false => plain(batch, call).await,
            };
        }
        while let Some(Parcel { flow, item }) = batch.next() {
            let call = keepers.unless_halted(module.call(item, &flow, outs));
            let is_handled = match M::IS_ORDERED {
                true => handed_over(call).await,
                false => call.await,
            };
            settle(batch, is_handled.unwrap_or(false));
        }
    }
}

/// Handles a batch with a plain function. While there is room for everything that the module sends,
/// this is one function call with one guard against panics.
pub(super) async fn plain<'a, I: Send>(
    batch: &mut Batch<Parcel<I>>,
    mut call: impl FnMut(I, &Flow, &Held<'a>) -> bool + Send,
) {
    let mut held = Held::default();
    loop {
        let handled = caught_run(batch, &mut held, &mut call);
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
fn caught_run<'a, I>(
    batch: &mut Batch<Parcel<I>>,
    held: &mut Held<'a>,
    call: &mut impl FnMut(I, &Flow, &Held<'a>) -> bool,
) -> std::thread::Result<bool> {
    catch_unwind(AssertUnwindSafe(|| {
        while let Some(Parcel { item, flow }) = batch.next() {
            let is_handled = call(item, &flow, held);
            settle(batch, is_handled);
            if !held.is_empty() {
                return false;
            }
        }
        true
    }))
}

/// Ends the item that was taken last.
#[inline]
pub(super) fn settle<I>(batch: &mut Batch<Parcel<I>>, is_handled: bool) {
    if !is_handled {
        batch.fail(1);
    }
    batch.settle();
}

pub(crate) struct Serials<M: Module> {
    pub(crate) module: M,
    pub(crate) outs: Arc<M::Outs>,
    pub(crate) keepers: Arc<Keepers>,
}

impl<M: Serial> SerialHandler for Serials<M> {
    type Event = Parcel<M::Item>;

    async fn handle(&mut self, batch: &mut Batch<Self::Event>) {
        let Self {
            module,
            outs,
            keepers,
        } = self;
        if M::TAKES_MANY {
            let call = keepers.unless_halted(module.call_many(batch, outs));
            return call.await.unwrap_or_default();
        }
        if M::IS_PLAIN {
            let call = |item, flow: &Flow, held: &_| module.call_now(item, flow, outs, held);
            return plain(batch, call).await;
        }
        while let Some(Parcel { flow, item }) = batch.next() {
            let call = keepers.unless_halted(module.call(item, &flow, outs));
            let is_handled = call.await.unwrap_or(false);
            settle(batch, is_handled);
        }
    }
}

pub(super) struct Flows<M: Module> {
    pub(super) module: M,
    pub(super) outs: Arc<M::Outs>,
    pub(super) slot: usize,
    /// The state of items without a flow.
    pub(super) common: Mutex<Option<Box<dyn Any + Send>>>,
    pub(super) runtime: Handle,
    pub(super) keepers: Arc<Keepers>,
    /// The limit around the instance.
    pub(super) limit: Option<Limit>,
    pub(super) sender: Arc<Sender<Parcel<M::Item>>>,
    /// The number of the last alarm of all flows.
    pub(super) alarms: AtomicU64,
}

/// The state of a flow, while no item of it is handled.
struct Kept<S> {
    state: Option<S>,
    alarm: Option<Box<Alarm>>,
}

/// The alarm of a flow that has been set at least once.
struct Alarm {
    number: u64,
    /// The thread that waits for the time.
    waiting: Option<JoinHandle<()>>,
}

impl Drop for Alarm {
    /// Ends the alarm: another one was set, or the state has ended.
    fn drop(&mut self) {
        if let Some(waiting) = &self.waiting {
            waiting.abort();
        }
    }
}

impl<S> Kept<S> {
    /// Returns the number of the last alarm.
    fn alarm(&self) -> u64 {
        self.alarm.as_ref().map_or(0, |alarm| alarm.number)
    }
}

impl<S> Default for Kept<S> {
    fn default() -> Self {
        Self {
            state: None,
            alarm: None,
        }
    }
}

impl<S> Drop for Kept<S> {
    /// Ends the state. Its destructor may panic here, even after a panic of the module.
    fn drop(&mut self) {
        let state = self.state.take();
        quietly(|| drop(state));
    }
}

impl<M: PerFlow> Handler for Flows<M> {
    type Event = Parcel<M::Item>;

    async fn handle(&self, batch: &mut Batch<Self::Event>) {
        // All items of a batch have one flow, and no other batch has items of it. The state is
        // taken out while it is used, so that a panic ends it.
        let Some(Parcel { flow, item }) = batch.next() else {
            return;
        };
        let mut kept = self.take(&flow);
        let mut held = Held::default();
        let mut next = Some(item);
        while let Some(item) = next.take() {
            let wake = Wake::new(kept.alarm());
            let state = &mut kept.state;
            let is_handled = if M::IS_PLAIN {
                let call = || {
                    self.module
                        .call_now(state, item, &flow, &wake, &self.outs, &held)
                };
                let handled = catch_unwind(AssertUnwindSafe(call));
                if !held.is_empty() {
                    held.flush().await;
                }
                handled.unwrap_or_else(|payload| resume_unwind(payload))
            } else {
                let call = self.module.call(state, item, &flow, &wake, &self.outs);
                self.keepers.unless_halted(call).await.unwrap_or(false)
            };
            settle(batch, is_handled);
            if let (Some(after), Some(item)) = (wake.take(), M::WAKE) {
                self.set_alarm(&flow, &mut kept, after, item);
            }
            next = batch.next().map(|parcel| parcel.item);
        }
        if kept.state.is_some() {
            *flow.slot(self.slot).unwrap_or(&self.common).lock() = Some(kept);
        }
    }
}

impl<M: PerFlow> Flows<M> {
    fn take(&self, flow: &Flow) -> Box<Kept<M::State>> {
        let kept = flow.slot(self.slot).unwrap_or(&self.common).lock().take();
        match kept.map(|kept| kept.downcast()) {
            Some(Ok(kept)) => kept,
            _ => Box::default(),
        }
    }

    fn set_alarm(
        &self,
        flow: &Flow,
        kept: &mut Kept<M::State>,
        after: Duration,
        item: fn(u64) -> M::Item,
    ) {
        // No other alarm has this number, not even one of a state that a panic has ended.
        // Relaxed: the counter protects nothing else.
        let number = self.alarms.fetch_add(1, Ordering::Relaxed) + 1;
        // An alarm is not inside of a limit before it goes off.
        let flow = flow.clone().without_permit();
        let (sender, limit) = (Arc::clone(&self.sender), self.limit.clone());
        let keepers = Arc::clone(&self.keepers);
        let later = async move {
            let goes_off = async {
                sleep(after).await;
                let flow = flow.limited(limit.as_ref()).await;
                let item = item(number);
                // A stage that is closed handles no flow any more.
                drop(insist(&sender, Parcel { flow, item }).await);
            };
            keepers.unless_halted(goes_off).await;
        };
        kept.alarm = None;
        let waiting = self.runtime.try_spawn(later).ok();
        kept.alarm = Some(Box::new(Alarm { number, waiting }));
    }
}

/// Sends an item that may not be lost. A controller that rejects it is asked again.
///
/// # Errors
/// Returns the item if the stage is closed.
async fn insist<I: Send + 'static>(
    sender: &Sender<Parcel<I>>,
    mut parcel: Parcel<I>,
) -> Result<(), Parcel<I>> {
    loop {
        let Err(error) = sender.send(parcel).await else {
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

/// Asks an instance to handle the end of a flow.
pub(super) fn end_flow<M: Module>(
    sender: &Sender<Parcel<M::Item>>,
    runtime: &Handle,
    flow: Flow,
    item: M::Item,
    slot: usize,
    limit: Option<&Limit>,
) {
    let later = |parcel: Parcel<M::Item>, limit: Option<Limit>| {
        let ending = Ending {
            parcel: Some(parcel),
            slot,
        };
        let sender = sender.clone();
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
            let state = parcel
                .flow
                .slot(self.slot)
                .and_then(|slot| slot.lock().take());
            quietly(|| drop(state));
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
