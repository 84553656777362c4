//! The handler of modules that keep state for each flow, and the alarms of flows.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tussah_core::Handle;

use super::batches::Calls;
use super::handlers::{insist, plain, settle};
use crate::flow::flows::{Flow, Parcel};
use crate::flow::keepers::Keepers;
use crate::flow::kept::{Alarm, Kept, State};
use crate::flow::module::{Module, PerFlow};
use crate::flow::wake::Wake;
use crate::flow::way::Way;
use crate::stage::{Batch, Handler, Sender};
use crate::sync::Limit;
use crate::time::{add, now, sleep_until};

pub(crate) struct Flows<M: Module, W> {
    pub(crate) module: M,
    pub(crate) outs: Arc<M::Outs>,
    pub(crate) slot: usize,
    /// The state of items without a flow.
    pub(crate) common: Arc<Mutex<Kept>>,
    pub(crate) runtime: Handle,
    pub(crate) keepers: Arc<Keepers>,
    /// The limit around the instance.
    pub(crate) limit: Option<Limit>,
    pub(crate) sender: Arc<Sender<Parcel<M::Item>>>,
    /// The number of the last alarm of all flows.
    pub(crate) alarms: Arc<AtomicU64>,
    pub(crate) way: PhantomData<fn() -> W>,
}

impl<M: PerFlow, W: Way> Handler for Flows<M, W> {
    type Event = Parcel<M::Item>;

    async fn handle(&self, batch: &mut Batch<Self::Event>) {
        if M::IS_PLAIN {
            let call = |item, flow: &_, held: &_, way: Option<&mut _>| {
                self.with_state(flow, |state, wake| {
                    self.module
                        .call_now::<W>(state, item, flow, wake, &self.outs, (held, way))
                })
            };
            return plain::<W, _, _>(batch, &*self.outs, call).await;
        }
        if M::TAKES_MANY {
            return self.handle_many(batch).await;
        }
        while let Some(Parcel { item, flow }) = batch.next() {
            let place = flow.kept(self.slot).unwrap_or(&self.common);
            let mut kept = std::mem::take(&mut *place.lock());
            let mut state = kept.take();
            let wake = Wake::new(kept.alarm());
            let call = self
                .module
                .call(&mut state.0, item, &flow, &wake, &self.outs);
            let is_handled = call.await;
            let kept = self.keep(kept, state, &flow, &wake);
            *place.lock() = kept;
            settle(batch, is_handled);
        }
    }
}

impl<M: PerFlow, W: Way> Flows<M, W> {
    /// Calls a module that takes batches. All items of a batch are of one flow.
    async fn handle_many(&self, batch: &mut Batch<Parcel<M::Item>>) {
        let Some(next) = batch.iter().next() else {
            return;
        };
        // Only the items are inside of a limit.
        let flow = next.flow.clone().without_permit();
        let place = flow.kept(self.slot).unwrap_or(&self.common);
        let mut calls = Calls::new(false);
        while calls.go_on::<M>(batch, &self.keepers, &self.outs) {
            let mut kept = std::mem::take(&mut *place.lock());
            let mut state = kept.take();
            let wake = Wake::new(kept.alarm());
            let call = (self.module).call_many(&mut state.0, batch, &flow, &wake, &self.outs);
            call.await;
            let kept = self.keep(kept, state, &flow, &wake);
            *place.lock() = kept;
        }
    }

    /// Calls `f` with the state of a flow. No other servlet handles items of the flow meanwhile.
    /// The state is taken out while it is used, so that a panic ends it.
    #[inline]
    fn with_state(
        &self,
        flow: &Flow,
        f: impl FnOnce(&mut Option<M::State>, &Wake) -> bool,
    ) -> bool {
        let mut place = flow.kept(self.slot).unwrap_or(&self.common).lock();
        let mut kept = std::mem::take(&mut *place);
        let mut state = kept.take();
        let wake = Wake::new(kept.alarm());
        let is_handled = f(&mut state.0, &wake);
        *place = self.keep(kept, state, flow, &wake);
        is_handled
    }

    /// Sets the alarm that the module has asked for, and returns what to put back: nothing if the
    /// state has ended.
    #[inline]
    fn keep(&self, mut kept: Kept, state: Box<State<M::State>>, flow: &Flow, wake: &Wake) -> Kept {
        if let (Some(after), Some(item)) = (wake.take(), M::WAKE) {
            self.set_alarm(flow, &mut kept, after, item);
        }
        match state.0 {
            Some(_) => kept.state = Some(state),
            None => kept.alarm = None,
        }
        kept
    }

    fn set_alarm(&self, flow: &Flow, kept: &mut Kept, after: Duration, item: fn(u64) -> M::Item) {
        // No other alarm has this number, not even one of a state that a panic has ended.
        // Relaxed: the counter protects nothing else.
        let number = self.alarms.fetch_add(1, Ordering::Relaxed) + 1;
        // An alarm is not inside of a limit before it goes off.
        let flow = flow.clone().without_permit();
        let (sender, limit) = (Arc::clone(&self.sender), self.limit.clone());
        let keepers = Arc::clone(&self.keepers);
        // Counted from now, however long the thread waits for a worker.
        let at = add(now(), after);
        let later = async move {
            let goes_off = async {
                sleep_until(at).await;
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
