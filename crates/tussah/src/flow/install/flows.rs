//! The handler of modules that keep state for each flow, and the alarms of flows.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tussah_core::{Handle, quietly};

use super::handlers::{insist, plain, settle};
use crate::JoinHandle;
use crate::flow::flows::{Flow, Keepers, Parcel, Slot};
use crate::flow::module::{Module, PerFlow};
use crate::flow::wake::Wake;
use crate::stage::{Batch, Handler, Sender};
use crate::sync::Limit;
use crate::time::sleep;

pub(super) struct Flows<M: Module> {
    pub(super) module: M,
    pub(super) outs: Arc<M::Outs>,
    pub(super) slot: usize,
    /// The state of items without a flow.
    pub(super) common: Slot,
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

impl<S: Send + 'static> Kept<S> {
    /// Returns what a slot holds, or else a place for a new state.
    #[inline]
    fn of(kept: Option<Box<dyn Any + Send>>) -> Box<Self> {
        match kept.map(|kept| kept.downcast()) {
            Some(Ok(kept)) => kept,
            _ => Box::default(),
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
        if M::IS_PLAIN {
            let call = |item, flow: &Flow, held: &_| {
                self.with_state(flow, |state, wake| {
                    self.module
                        .call_now(state, item, flow, wake, &self.outs, held)
                })
            };
            return plain(batch, call).await;
        }
        while let Some(Parcel { item, flow }) = batch.next() {
            let slot = flow.slot(self.slot).unwrap_or(&self.common);
            let mut kept = Kept::of(slot.lock().take());
            let wake = Wake::new(kept.alarm());
            let state = &mut kept.state;
            let call = self.module.call(state, item, &flow, &wake, &self.outs);
            let is_handled = self.keepers.unless_halted(call).await.unwrap_or(false);
            if let Some(kept) = self.keep(kept, &flow, &wake) {
                *slot.lock() = Some(kept);
            }
            settle(batch, is_handled);
        }
    }
}

impl<M: PerFlow> Flows<M> {
    /// Calls `f` with the state of a flow. No other servlet handles items of the flow meanwhile.
    /// The state is taken out while it is used, so that a panic ends it.
    #[inline]
    fn with_state(
        &self,
        flow: &Flow,
        f: impl FnOnce(&mut Option<M::State>, &Wake) -> bool,
    ) -> bool {
        let mut place = flow.slot(self.slot).unwrap_or(&self.common).lock();
        let mut kept = Kept::of(place.take());
        let wake = Wake::new(kept.alarm());
        let is_handled = f(&mut kept.state, &wake);
        *place = self.keep(kept, flow, &wake);
        is_handled
    }

    /// Sets the alarm that the module has asked for, and returns the state to put back, unless it
    /// has ended.
    #[inline]
    fn keep(
        &self,
        mut kept: Box<Kept<M::State>>,
        flow: &Flow,
        wake: &Wake,
    ) -> Option<Box<dyn Any + Send>> {
        if let (Some(after), Some(item)) = (wake.take(), M::WAKE) {
            self.set_alarm(flow, &mut kept, after, item);
        }
        match kept.state {
            Some(_) => Some(kept),
            None => None,
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
