//! The handlers of instances: each kind of module behind its stage.

mod batches;
mod flows;
mod handlers;
pub(super) mod maker;
mod ordered;
mod shared;
mod source;
mod tick;

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tussah_core::Handle;
use tussah_weave::Body;

pub(super) use self::flows::Flows;
pub(super) use self::handlers::blocks;
use self::handlers::end_flow;
pub(super) use self::handlers::{Elements, Serials};
use self::maker::{Maker, make};
use self::ordered::with_tickets;
use self::shared::Shared;
use self::source::begun;
use self::tick::{period, tick_every};
use super::args::Args;
use super::call::{Place, PlainElement, PlainSerial};
use super::edge::{Ends, Entry, InPort};
use super::flows::{Flow, Parcel};
use super::keepers::Keepers;
use super::module::{Element, Module, PerFlow, Serial};
use super::open_flows::FlowBounds;
use super::outlet::{AnyOutlet, Outs as _};
use super::tap::Ports;
use super::way::{Along, Way};
use crate::stage::{BuildError, Declared, Network, OS_THREADS_MAX, Reason};
use crate::sync::Limit;

/// Bound, in items: the maximum number that an ordered module handles at a time. The output of all
/// but one of these items waits for its turn.
const ORDERED_MAX: usize = 100;

/// An instance whose stage has no handler yet.
pub struct Node<M: Module, W = Along> {
    declared: Declared<Parcel<M::Item>>,
    args: Args,
    outs: M::Outs,
    shared: Arc<Shared<M>>,
    place: Place<M::Item>,
    runtime: Handle,
    /// The instances with state for each flow, and the number of this one among them.
    keepers: Arc<Keepers>,
    slot: usize,
    limit: Option<Limit>,
    way: PhantomData<fn() -> W>,
}

/// The computation of a thread that begins when the whole graph is installed.
pub(crate) type Run = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The computation of the method `start`.
pub(crate) type Produce = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// The threads that an instance needs in addition to the threads of its stage.
#[derive(Default)]
pub struct Installed {
    pub(crate) source: Option<Produce>,
    pub(crate) tickers: Vec<Run>,
}

/// An instance of any module, before the graph runs.
pub(crate) trait Instance: Any + Send {
    fn has_state(&self) -> bool;
    /// Returns whether the module has the method `start`.
    fn starts(&self) -> bool;
    /// Returns whether the module blocks its OS thread.
    fn blocks(&self) -> bool;
    /// Reads what the graph needs of the arguments. Returns an error that lists the arguments that
    /// are missing, or do not fit their parameters.
    fn read_args(&mut self) -> Result<(), String>;
    fn set_target(&mut self, target: Duration);
    /// Sets the limit around the instance.
    fn set_limit(&mut self, limit: Limit);
    /// Sets the number of this instance among those with state for each flow.
    fn set_slot(&mut self, slot: usize);
    /// Adds the stage to the network under its name, with its source position. Returns the input
    /// ports. If the stage is `bounded`, its edges determine the room of its queue.
    fn declare(
        &mut self,
        network: &Network,
        named: (&str, &Arc<str>),
        bounded: bool,
    ) -> Result<Vec<InPort>, BuildError>;
    fn outs(&mut self, f: &mut dyn FnMut(&'static str, &mut dyn AnyOutlet));
    fn ports(&self) -> Option<Arc<dyn Ports>>;
    fn install(self: Box<Self>, keepers: &Arc<Keepers>) -> Result<Installed, BuildError>;
}

/// An instance of a known module, and the way of what its plain calls send.
pub(crate) struct Planned<M: Module, W = Along> {
    args: Args,
    outs: M::Outs,
    shared: Arc<Shared<M>>,
    place: Place<M::Item>,
    slot: usize,
    declared: Option<(Declared<Parcel<M::Item>>, Handle)>,
    target: Option<Duration>,
    limit: Option<Limit>,
    /// The time between two ticks.
    every: Option<Duration>,
    bounds: FlowBounds,
    way: PhantomData<fn() -> W>,
}

impl<M: Module, W> Planned<M, W> {
    pub(crate) fn new(args: Args) -> Self {
        Self {
            args,
            outs: M::outs(),
            shared: Arc::default(),
            place: Place::default(),
            slot: 0,
            declared: None,
            target: None,
            limit: None,
            every: None,
            bounds: FlowBounds::default(),
            way: PhantomData,
        }
    }

    /// Returns the instance with another way. It is not declared yet.
    pub(crate) fn by<V>(self) -> Planned<M, V> {
        Planned {
            target: self.target,
            limit: self.limit,
            ..Planned::new(self.args)
        }
    }
}

impl<M: Module, W: Way> Instance for Planned<M, W> {
    fn has_state(&self) -> bool {
        M::HAS_STATE
    }

    fn starts(&self) -> bool {
        M::START.is_some()
    }

    fn blocks(&self) -> bool {
        M::BODY == Body::Blocking
    }

    fn read_args(&mut self) -> Result<(), String> {
        let params = M::PARAMS.iter();
        let wrong = params.filter_map(|param| (param.check)(&self.args).err());
        let wrong: Vec<String> = wrong.collect();
        if !wrong.is_empty() {
            return Err(wrong.join("; "));
        }
        if M::TICK.is_some() {
            self.every = Some(period(&self.args)?);
        }
        if M::BOUNDS_FLOWS {
            self.bounds = FlowBounds::read(&self.args)?;
        }
        Ok(())
    }

    fn set_target(&mut self, target: Duration) {
        self.target = Some(target);
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = Some(limit);
    }

    fn set_slot(&mut self, slot: usize) {
        self.slot = slot;
    }

    fn declare(
        &mut self,
        network: &Network,
        (name, position): (&str, &Arc<str>),
        bounded: bool,
    ) -> Result<Vec<InPort>, BuildError> {
        let (shared, runtime) = (Arc::clone(&self.shared), network.handle().clone());
        let ends: Ends<M::Item> =
            Arc::new(move |parcel: Parcel<M::Item>, why| shared.dropped(parcel, why, &runtime));
        let on_drop = Arc::clone(&ends);
        let (shared, runtime) = (Arc::clone(&self.shared), network.handle().clone());
        let mut stage = network
            .stage_at(name, Arc::clone(position))
            .on_drop(move |parcel, why: Reason| drop(on_drop(parcel, why)))
            .on_close(move |_| shared.keep_ports(&runtime));
        if let Some(target) = self.target {
            stage = stage.target(target);
        }
        if bounded {
            // Each edge makes the room that it needs.
            stage = stage.queue(1);
        }
        if (M::BODY != Body::Plain || M::IS_ORDERED) && !M::TAKES_MANY {
            // Items of one batch would wait for each other.
            stage = stage.batch(1);
        }
        if M::BODY == Body::Blocking {
            stage = stage.servlets(OS_THREADS_MAX);
        }
        if M::IS_SERIAL {
            stage = stage.servlets(1);
        }
        if M::IS_ORDERED {
            stage = with_tickets(stage);
            if M::BODY != Body::Blocking {
                stage = stage.servlets(ORDERED_MAX);
            }
        }
        if M::HAS_STATE {
            let slot = self.slot;
            stage = stage.by_flow(M::TAKES_MANY, move |parcel: &Parcel<M::Item>| {
                parcel.flow.entry(slot)
            });
        }
        let declared = stage.declare()?;
        let mut entry = Entry::new(declared.stage(), ends, Arc::clone(&self.place));
        M::ports(&mut entry);
        self.declared = Some((declared, network.handle().clone()));
        Ok(entry.ports)
    }

    fn outs(&mut self, f: &mut dyn FnMut(&'static str, &mut dyn AnyOutlet)) {
        self.outs.each(f);
    }

    fn ports(&self) -> Option<Arc<dyn Ports>> {
        Some(self.shared.clone())
    }

    fn install(self: Box<Self>, keepers: &Arc<Keepers>) -> Result<Installed, BuildError> {
        let (declared, runtime) = self.declared.expect("it was declared");
        let stage = declared.stage();
        let (mut outs, shared, bounds) = (self.outs, Arc::clone(&self.shared), self.bounds);
        outs.each(&mut |_, outlet| outlet.set_owner(stage.name(), bounds));
        shared.set_place(self.slot, self.limit.clone());
        let mut installed = M::install(Node {
            declared,
            args: self.args,
            outs,
            shared: self.shared,
            place: self.place,
            runtime: runtime.clone(),
            keepers: Arc::clone(keepers),
            slot: self.slot,
            limit: self.limit.clone(),
            way: self.way,
        })?;
        let limit = self.limit;
        let ticker = M::TICK.zip(self.every);
        installed.tickers.extend(ticker.map(|(tick, every)| {
            let sender = stage.sender();
            Box::pin(async move { tick_every(every, tick, &sender, limit.as_ref()).await }) as Run
        }));
        let idle = |idle| Box::pin(shared.end_idle(idle)) as Run;
        installed.tickers.extend(bounds.idle.map(idle));
        Ok(installed)
    }
}

impl<M: Module, W: Way> Node<M, W> {
    fn split(self) -> (Declared<Parcel<M::Item>>, Maker<M>) {
        let maker = Maker {
            args: self.args,
            outs: self.outs,
            shared: self.shared,
            keepers: self.keepers,
        };
        (self.declared, maker)
    }

    /// Installs a module that handles any number of items at a time.
    ///
    /// # Errors
    /// Returns an error if the module or an edge cannot be created.
    pub fn element(self) -> Result<Installed, BuildError>
    where
        M: Element,
    {
        let (place, keepers) = (Arc::clone(&self.place), Arc::clone(&self.keepers));
        let (declared, maker) = self.split();
        let stage = declared.handler(|edges| {
            let (module, outs) = maker.make(edges)?;
            Ok(Elements::<M, W> {
                module,
                outs,
                keepers,
                turn: async_lock::Mutex::new(()),
                way: PhantomData,
            })
        })?;
        PlainElement::fill(&place, &stage);
        Ok(begun(stage.host, |host| (&host.0.module, &host.0.outs)))
    }

    /// Installs a module that blocks its OS thread.
    ///
    /// # Errors
    /// Returns an error if the module or an edge cannot be created.
    pub fn blocking(self) -> Result<Installed, BuildError>
    where
        M: Element,
    {
        let (runtime, keepers) = (self.runtime.clone(), Arc::clone(&self.keepers));
        let (declared, maker) = self.split();
        declared.blocking(|edges| {
            let (module, outs) = maker.make(edges)?;
            Ok(blocks(module, outs, keepers, runtime))
        })?;
        Ok(Installed::default())
    }

    /// Installs a module that handles one item at a time.
    ///
    /// # Errors
    /// Returns an error if the module or an edge cannot be created.
    pub fn serial(self) -> Result<Installed, BuildError>
    where
        M: Serial,
    {
        let (args, keepers) = (self.args.clone(), Arc::clone(&self.keepers));
        let (place, shared) = (Arc::clone(&self.place), Arc::clone(&self.shared));
        let (declared, maker) = self.split();
        let (mut maker, mut kept) = (Some(maker), None);
        let stage = declared.serial(move |edges| {
            let (module, outs) = match (maker.take(), &kept) {
                (Some(maker), _) => maker.make(edges)?,
                // It is made anew after a panic; its ports stay.
                (None, Some(outs)) => (make(&args, edges)?, Arc::clone(outs)),
                (None, None) => unreachable!("the first module was made with its ports"),
            };
            kept = Some(Arc::clone(&outs));
            Ok(Serials::<M, W> {
                module,
                outs,
                keepers: Arc::clone(&keepers),
                way: PhantomData,
            })
        })?;
        PlainSerial::fill(&place, &stage, move || shared.outs());
        Ok(Installed::default())
    }

    /// Installs a module that handles one item of each flow at a time.
    ///
    /// # Errors
    /// Returns an error if the module or an edge cannot be created.
    pub fn per_flow(self) -> Result<Installed, BuildError>
    where
        M: PerFlow,
    {
        let (slot, runtime, limit) = (self.slot, self.runtime.clone(), self.limit.clone());
        let keepers = Arc::clone(&self.keepers);
        let alarms = Arc::new(self.declared.stage().sender());
        self.shared.set_alarms(&alarms);
        let (common, numbers) = self.shared.states();
        let (declared, maker) = self.split();
        // Before the stage handles anything, so that no flow ends unseen.
        if let Some(item) = M::END {
            // The stage refers to the keepers, so it would otherwise keep itself alive.
            let (sender, ends, limit) = (Arc::downgrade(&alarms), runtime.clone(), limit.clone());
            let end = move |flow: Flow| {
                end_flow::<M>(&sender, &ends, flow, item(), slot, limit.as_ref());
            };
            keepers.on_end(slot, end);
        }
        let stage = declared.handler(|edges| {
            let (module, outs) = maker.make(edges)?;
            Ok(Flows::<M, W> {
                module,
                outs,
                slot,
                common,
                runtime: runtime.clone(),
                keepers,
                limit,
                sender: alarms,
                alarms: numbers,
                way: PhantomData,
            })
        })?;
        Ok(begun(stage.host, |host| (&host.0.module, &host.0.outs)))
    }
}
