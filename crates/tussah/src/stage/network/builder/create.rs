//! The last step of a builder, which creates the stage without a handler.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::{MakeKeyed, StageBuilder};
use crate::stage::control::{AutoTarget, Mode, Owns, controllers, owned};
use crate::stage::error::BuildError;
use crate::stage::event::Classes;
use crate::stage::network::handle::{ErasedHost, Stage};
use crate::stage::network::install::New;
use crate::stage::network::roster::Roster;
use crate::stage::network::{ALWAYS, Known, Network};
use crate::stage::queue::{ByFlow, Lanes, Queue};
use crate::stage::run::{Built, Shared, Threads};
use crate::stage::state::{Bounds, ControllerSet, Kind, Numbers, Parts, State};

impl<E: Send + 'static> StageBuilder<E> {
    /// Applies the options that change others: a target that does not decide has a controller or is
    /// dropped, and whole paths have batches of one.
    fn apply_options(&mut self) {
        if self.whole_path {
            // Otherwise the first event of a batch would wait for the paths of the others.
            self.batch_max = 1;
        }
        let taken = owned(&self.controllers).both(Owns::SERVLETS | Owns::ADMISSION);
        match self.target {
            Some(target) if self.mode != Mode::On && taken == Owns::NOTHING && !self.manual => {
                let auto = AutoTarget::new(target);
                auto.switch().set(self.mode);
                self.controllers.push(Box::new(auto));
            }
            _ if self.mode != Mode::On => self.target = None,
            _ => {}
        }
    }

    /// Handles the events of each flow one at a time and in order, and those of different flows in
    /// parallel. `flow_of` does not panic. A batch may hold events of many flows, or only those
    /// `of_one`.
    pub(crate) fn by_flow<F>(mut self, of_one: bool, flow_of: F) -> Self
    where
        F: Fn(&E) -> (u64, Option<&AtomicU32>) + Send + 'static,
    {
        let make = move |_, _| Box::new(ByFlow::new(of_one, flow_of)) as _;
        self.keyed = Some(Box::new(make));
        self
    }

    /// Numbers each event when a servlet takes it out of the queue. `give` gives an event the next
    /// number, unless it has one; `of` returns its number.
    pub(crate) fn numbered(
        mut self,
        give: impl Fn(&mut E) + Send + 'static,
        of: fn(&E) -> Option<u64>,
    ) -> Self {
        let give = Box::new(give);
        self.numbers = Some(Numbers { give, of });
        self
    }

    /// Creates the stage and adds it to its network.
    ///
    /// # Errors
    /// Returns an error if the name is taken, or if two controllers own one setting.
    pub(super) fn create(mut self, kind: Kind, servlets_max: usize) -> Result<New<E>, BuildError> {
        let controlled = owned(&self.controllers).has(Owns::SERVLETS) && !self.manual;
        self.apply_options();
        let controllers = controllers(&self.name, self.controllers, self.target, self.manual)?;
        let Network { inner: network } = &self.network;
        let workers = network.runtime.workers();
        let queue = queue(self.keyed, self.key_depth_max, self.classes);
        let mut state = State::new(Parts {
            queue,
            controllers: ControllerSet::new(controllers, self.classes, network.time.now_ns()),
            bounds: Bounds {
                queue_max: self.queue_max,
                class_max: self.class_max,
                batch_max: self.batch_max,
                servlets_max,
            },
            classes: self.classes,
            kind,
            workers,
            // No event is held back without measurements; added controllers begin with few.
            servlets: match kind {
                Kind::Async if controlled => workers,
                _ => servlets_max,
            },
            batch: self.batch_max,
            seed: network.runtime.seed(),
            process: Arc::clone(&network.process),
        });
        state.numbers = self.numbers;
        state.retune(self.settings);
        // Until the stage is in the governor's plan.
        if network.governing.governs() {
            state.cap = 1;
        }
        let (id, name): (_, Arc<str>) = (self.network.number(), self.name.into());
        let manager = self.threads.or_else(|| self.network.manager());
        let shared = Arc::new_cyclic(|stage| {
            state.home = Some(stage.clone() as _);
            state.named = Some(Arc::clone(&name));
            let threads = manager
                .map(|manager| Threads::new(manager, Arc::clone(&name), self.rank.priority, stage));
            let built = Built {
                id,
                rank: self.rank,
                threads,
                on_drop: self.on_drop,
                on_close: self.on_close,
                degrade: self.degrade,
                restarts: self.restarts,
                whole_path: self.whole_path,
            };
            Shared::new(name, &self.network, state, built)
        });
        self.network.add(Known {
            id,
            name: Arc::clone(&shared.name),
            position: self.position,
            event: std::any::type_name::<E>(),
            stage: Arc::clone(&shared) as _,
            making: ALWAYS,
        })?;
        Roster::add(&network.runtime, &shared);
        self.network.replan();
        Ok(New(Stage {
            shared,
            host: ErasedHost,
            network: self.network,
            id,
        }))
    }
}

fn queue<E>(keyed: Option<MakeKeyed<E>>, key_depth_max: usize, classes: Classes) -> Queue<E> {
    match keyed {
        None => Queue::Lanes(Lanes::new(classes)),
        Some(make) => Queue::Keyed(make(key_depth_max, classes)),
    }
}
