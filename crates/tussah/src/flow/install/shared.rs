//! The part of an instance that its stage and its handler share: the way of items that were not
//! handled.

use std::any::Any;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tussah_core::Handle;
use tussah_weave::Signature;

use super::handlers::send_later;
use crate::flow::dropped::Unhandled;
use crate::flow::edge::Wait;
use crate::flow::flows::Parcel;
use crate::flow::keepers::Keepers;
use crate::flow::kept::Kept;
use crate::flow::module::Module;
use crate::flow::outlet::{AnyOutlet, Outs as _};
use crate::flow::swap::Rest;
use crate::flow::tap::{Ports, Shows};
use crate::stage::{Reason, Sender};
use crate::sync::Limit;
use crate::time::{now, sleep_until};

/// The references of an instance's stage to parts of its handler, which owns them.
pub(super) struct Shared<M: Module> {
    outs: OnceLock<Weak<M::Outs>>,
    /// The sender of alarms.
    alarms: OnceLock<Weak<Sender<Parcel<M::Item>>>>,
    keepers: OnceLock<Arc<Keepers>>,
    /// The number of the instance among those with state for each flow, and the limit around it.
    place: OnceLock<(usize, Option<Limit>)>,
    /// The state of items without a flow.
    common: Arc<Mutex<Kept>>,
    /// The number of the last alarm of all flows.
    alarm: Arc<AtomicU64>,
}

impl<M: Module> Default for Shared<M> {
    fn default() -> Self {
        Self {
            outs: OnceLock::new(),
            alarms: OnceLock::new(),
            keepers: OnceLock::new(),
            place: OnceLock::new(),
            common: Arc::default(),
            alarm: Arc::default(),
        }
    }
}

impl<M: Module> Shared<M> {
    /// Sets the ports, when the handler is installed.
    pub(super) fn set(&self, outs: &Arc<M::Outs>, keepers: Arc<Keepers>) {
        let first = self.outs.set(Arc::downgrade(outs));
        first.expect("the handler of an instance is installed once");
        self.keepers.get_or_init(|| keepers);
    }

    /// Returns the ports, unless the handler is gone.
    pub(super) fn outs(&self) -> Option<Arc<M::Outs>> {
        self.outs.get().and_then(Weak::upgrade)
    }

    /// Sets the place of the instance in its graph.
    pub(super) fn set_place(&self, slot: usize, limit: Option<Limit>) {
        self.place.get_or_init(|| (slot, limit));
    }

    /// Returns the state of items without a flow, and the number of the last alarm.
    pub(super) fn states(&self) -> (Arc<Mutex<Kept>>, Arc<AtomicU64>) {
        (Arc::clone(&self.common), Arc::clone(&self.alarm))
    }

    /// Sets the sender of alarms.
    pub(super) fn set_alarms(&self, alarms: &Arc<Sender<Parcel<M::Item>>>) {
        self.alarms.get_or_init(|| Arc::downgrade(alarms));
    }

    /// Ends an item that was not handled. Returns a wait if its receiver has no room.
    pub(super) fn dropped(
        &self,
        Parcel { item, flow }: Parcel<M::Item>,
        why: Reason,
        runtime: &Handle,
    ) -> Option<Wait<'static>> {
        // An instance that is gone has no ports any more; its stage has counted the item.
        let outs = self.outs()?;
        let flow = match M::IS_ORDERED {
            true => flow.without_ticket(),
            false => flow,
        };
        let item = match M::dropped(item, &flow, why, &outs) {
            Unhandled::Whole => return None,
            Unhandled::Waits(wait) => return Some(wait),
            Unhandled::Alarm(item) => item,
        };
        let sender = self.alarms.get().and_then(Weak::upgrade);
        // An alarm may not be lost because its queue is full.
        if let (Some(sender), Reason::Shed) = (sender, why) {
            drop(runtime.try_spawn(send_later(sender, Parcel { item, flow })));
        }
        None
    }

    /// Ends flows that the instance has opened, each when it was idle for this time.
    pub(super) async fn end_idle(self: Arc<Self>, idle: Duration) {
        while let Some(outs) = self.outs() {
            let next = outs.end_idle();
            drop(outs);
            sleep_until(next.unwrap_or_else(|| now() + idle)).await;
        }
    }

    /// Keeps the ports of a closed instance until the graph ends, for items that arrive later.
    pub(super) fn keep_ports(&self, runtime: &Handle) {
        if let (Some(outs), Some(keepers)) = (self.outs(), self.keepers.get().cloned()) {
            let kept = async move {
                keepers.halted().await;
                drop(outs);
            };
            drop(runtime.try_spawn(kept));
        }
    }
}

impl<M: Module> Ports for Shared<M> {
    fn each(&self, f: &mut dyn FnMut(&'static str, &dyn AnyOutlet)) {
        if let Some(outs) = self.outs() {
            outs.look(f);
        }
    }

    fn shows(&self) -> Shows {
        M::describe().shows
    }

    fn signature(&self) -> Signature {
        M::describe().signature
    }

    fn rest(&self) -> Option<Box<dyn Any>> {
        let (slot, limit) = self.place.get().cloned()?;
        let (common, alarms) = self.states();
        Some(Box::new(Rest::<M::Item, M::Outs> {
            starts: M::START.is_some(),
            outs: self.outs()?,
            keepers: Arc::clone(self.keepers.get()?),
            slot,
            limit,
            common,
            alarms,
            sender: self.alarms.get().and_then(Weak::upgrade),
        }))
    }
}
