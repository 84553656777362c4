//! How a stage is described before it is made.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tussah_core::{BlockingPool, Guarded};

use super::Batch;
use super::account::Council;
use super::blocking::Pool;
use super::control::{Controller, Settings};
use super::defaults::controllers;
use super::direct::{DirectHandler, DirectHost, Directly};
use super::edges::Edges;
use super::error::BuildError;
use super::event::{CLASSES_MAX, Class, Reason};
use super::governing::Rank;
use super::handle::{Any, Stage};
use super::handler::{Handler, SerialHandler};
use super::host::{Many, One};
use super::install::{Declared, New};
use super::network::Network;
use super::queue::{ByKey, Keyed, Lanes, Queue};
use super::restarts::Restarts;
use super::shared::{Built, Degrade, OnClose, OnDrop, Shared};
use super::state::{Bounds, Kind, Parts, State};
use super::threads::{ThreadManager, Threads};

/// Bound, in credits: what a queue holds unless it is built otherwise. Room for a few batches, and little enough that what waits in it is not old.
const QUEUE_MAX: u64 = 1024;
/// Bound, in events: the largest batch unless the stage is built otherwise. What a batch costs beside its events is nothing
/// for each of so many.
const BATCH_MAX: usize = 100;
/// Bound, in servlets: how many a stage has at work at most unless it is built otherwise. They cost some hundred bytes each; so many wait for others.
const SERVLETS_MAX: usize = 1000;
/// Bound, in servlets: the same of a stage that blocks, whose servlets are OS threads. SEDA's bound (§4.2).
const OS_THREADS_MAX: usize = 20;
/// Bound, in events: how many of one key wait unless the stage is built otherwise.
const KEY_DEPTH_MAX: usize = 128;

/// A stage to be: [`Network::stage`] begins one, and [`handler`](Self::handler), [`serial`](Self::serial), [`blocking`](Self::blocking) or
/// [`declare`](Self::declare) ends it.
#[must_use = "a stage is made by giving it a handler"]
pub struct Builder<E> {
    network: Network,
    name: String,
    queue_max: u64,
    class_max: [u64; CLASSES_MAX],
    classes: usize,
    batch_max: usize,
    servlets_max: Option<usize>,
    key_depth_max: usize,
    settings: Settings,
    controllers: Vec<Box<dyn Controller>>,
    target: Option<Duration>,
    manual: bool,
    keyed: Option<MakeKeyed<E>>,
    on_drop: Option<OnDrop<E>>,
    on_close: Option<OnClose>,
    degrade: Option<Degrade<E>>,
    restarts: Restarts,
    rank: Rank,
    threads: Option<Arc<dyn ThreadManager>>,
}

type MakeKeyed<E> = Box<dyn FnOnce(usize, usize) -> Box<dyn Keyed<E>> + Send>;

impl<E: Send + 'static> Builder<E> {
    pub(crate) fn new(network: Network, name: String) -> Self {
        Self {
            network,
            name,
            queue_max: QUEUE_MAX,
            class_max: [u64::MAX; CLASSES_MAX],
            classes: 1,
            batch_max: BATCH_MAX,
            servlets_max: None,
            key_depth_max: KEY_DEPTH_MAX,
            settings: Settings::default(),
            controllers: Vec::new(),
            target: None,
            manual: false,
            keyed: None,
            on_drop: None,
            on_close: None,
            degrade: None,
            restarts: Restarts::default(),
            rank: Rank::default(),
            threads: None,
        }
    }

    /// Which stages come first where they share servlets: 0, the default, before 1.
    pub fn priority(mut self, priority: u8) -> Self {
        self.rank.priority = priority;
        self
    }

    /// Says that the stage's events free what others take: it writes answers, closes connections or returns buffers. Of stages of one priority, those get servlets
    /// before others where the network has a governor ([`Network::govern`]).
    pub fn frees_resources(mut self) -> Self {
        self.rank.frees_resources = true;
        self
    }

    /// Has a manager asked whether another servlet may go to work, which stages can share. By default that of the network is
    /// ([`Network::set_threads`]), and if it has none, nobody.
    pub fn threads(mut self, manager: Arc<dyn ThreadManager>) -> Self {
        self.threads = Some(manager);
        self
    }

    /// How many credits the queue holds at most; 1024 by default, at least 1. Each event costs one credit, unless it says otherwise.
    pub fn queue(mut self, credits: u64) -> Self {
        self.queue_max = credits.max(1);
        self
    }

    /// The most events in a batch; 100 by default, at least 1.
    pub fn batch(mut self, events: usize) -> Self {
        self.batch_max = events.max(1);
        self
    }

    /// The most servlets at work at once, at least 1. By default 1000, and 20 in a stage that blocks; a serial stage has one.
    /// While two for each worker only take turns by `yield_now`, no other one begins with an event; so a handler should not yield until another event of its stage is handled.
    pub fn servlets(mut self, servlets: usize) -> Self {
        self.servlets_max = Some(servlets.max(1));
        self
    }

    /// Gives the stage so many classes, 1 to 8; of these 0 is served first. A class is slowed down by those before it, not stopped: after 64 events
    /// of others, one is taken of a class that waits.
    ///
    /// # Panics
    /// If `classes` is 0 or above 8.
    #[track_caller]
    pub fn classes(mut self, classes: usize) -> Self {
        assert!(
            (1..=CLASSES_MAX).contains(&classes),
            "a stage has 1 to {CLASSES_MAX} classes; asked were {classes}"
        );
        self.classes = classes;
        self
    }

    /// The most events of one class in the queue; by default only the queue's bound counts. Of a class that the stage does not have, it bounds nothing.
    pub fn class_queue(mut self, class: Class, events: u64) -> Self {
        if let Some(max) = self.class_max.get_mut(usize::from(class.0)) {
            *max = events.max(1);
        }
        self
    }

    /// The time within which an event should be handled, from its arrival to the end of its batch: the default controllers then turn away what would take
    /// longer, and keep batches short enough for it. Without one, only the queue's bounds turn anything away. It says nothing to a [controller](Self::controller) that was
    /// added, which takes the default's place for what it owns, nor in a stage that is [manual](Self::manual).
    pub fn target(mut self, target: Duration) -> Self {
        self.target = Some(target);
        self
    }

    /// Adds a controller, which decides the settings that it owns in place of the default's.
    pub fn controller(mut self, controller: impl Controller) -> Self {
        self.controllers.push(Box::new(controller));
        self
    }

    /// Has settings that no controller of mine owns stay as they are, instead of giving them to the default's.
    pub fn manual(mut self) -> Self {
        self.manual = true;
        self
    }

    /// What the settings are at first.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Has events of one key handled one batch after the other, each batch of one key, and keys in parallel. Keys without events cost nothing.
    ///
    /// `key_of` is called under the stage's lock: it must be short, and must not use the stage. If it panics, the panic reaches who sends or calls, and the event
    /// ends with it; what a handler leaves is of the key that it had.
    pub fn keyed_by<K>(mut self, key_of: impl Fn(&E) -> K + Send + 'static) -> Self
    where
        K: Hash + Eq + Clone + Send + 'static,
    {
        self.keyed = Some(Box::new(move |depth_max, classes| {
            Box::new(ByKey::new(key_of, depth_max, classes))
        }));
        self
    }

    /// How many events of one key are queued at most; 128 by default, at least 1.
    pub fn key_queue(mut self, events: usize) -> Self {
        self.key_depth_max = events.max(1);
        self
    }

    /// Has `f` called with each event that ends in the queue, and the reason; before the event's own drop callback. It runs under no lock.
    pub fn on_drop(mut self, f: impl Fn(E, Reason) + Send + Sync + 'static) -> Self {
        self.on_drop = Some(Guarded::new(Box::new(f)));
        self
    }

    /// Has `f` called, with the reason, when the stage is closed since its serial handler panicked too often ([`restarts`](Self::restarts)) or could not be made anew: the program
    /// can make another stage, or end. It runs under no lock, on a worker; a panic in it is contained.
    pub fn on_close(mut self, f: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_close = Some(Guarded::new(Box::new(f)));
        self
    }

    /// Makes an event smaller that a controller wants degraded.
    pub fn degrade(mut self, f: impl Fn(&mut E) + Send + Sync + 'static) -> Self {
        self.degrade = Some(Guarded::new(Box::new(f)));
        self
    }

    /// How often a serial handler is made anew after a panic, also one that is [swapped](Stage::swap_serial) in; five times a minute by default. The next panic closes the stage
    /// ([`on_close`](Self::on_close)), and with it what it does for the others: a stage that has to live through any number of them
    /// has handlers that catch panics themselves, or more restarts.
    pub fn restarts(mut self, restarts: Restarts) -> Self {
        self.restarts = restarts;
        self
    }

    /// Makes the stage with a handler that several servlets use at the same time. `make` gets what to make its edges with.
    ///
    /// # Errors
    /// If the name is taken, two controllers own one setting, an edge would close a cycle, or `make` fails; nothing is left of the stage then. With an error of
    /// its own `make` fails by [`Edges::failed`]: `map_err(|error| edges.failed(error))`.
    pub fn handler<H: Handler<Event = E>>(
        self,
        make: impl FnOnce(&Edges<'_>) -> Result<H, BuildError>,
    ) -> Result<Stage<E, Arc<Many<H>>>, BuildError> {
        let servlets = self.servlets_max.unwrap_or(SERVLETS_MAX);
        self.create(Kind::Async, servlets)?.with_handler(make)
    }

    /// Makes the stage with a handler that never waits, and so can be called directly.
    ///
    /// # Errors
    /// As [`handler`](Self::handler).
    pub fn direct<H: DirectHandler<Event = E>>(
        self,
        make: impl FnOnce(&Edges<'_>) -> Result<H, BuildError>,
    ) -> Result<Stage<E, DirectHost<H>>, BuildError> {
        self.handler(|edges| Ok(Directly(make(edges)?)))
    }

    /// Makes the stage with a handler that handles one batch after the other. After a panic `make` is called again.
    ///
    /// # Errors
    /// As [`handler`](Self::handler).
    pub fn serial<H: SerialHandler<Event = E>>(
        self,
        make: impl FnMut(&Edges<'_>) -> Result<H, BuildError> + Send + 'static,
    ) -> Result<Stage<E, Arc<One<H>>>, BuildError> {
        self.create(Kind::Async, 1)?.with_serial(make)
    }

    /// Makes the stage with a handler that blocks its OS thread, in the runtime's pool of these. It can't await: it sends by [`Sender::try_send`](super::Sender::try_send) or
    /// [`send_or`](super::Sender::send_or), and waits for room by [`Handle::block_on`](crate::Handle::block_on).
    ///
    /// # Examples
    /// ```
    /// use tussah::stage::{Batch, Network};
    ///
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// let handle = runtime.handle().clone();
    /// let network = Network::on(&handle, "files");
    /// let sum = network.stage("sum").blocking(|_| Ok(|batch: &mut Batch<usize>| drop(batch.drain().sum::<usize>())))?;
    /// let read = network.stage("read").blocking(|edges| {
    ///     let sum = edges.to(&sum).queue(10)?;
    ///     Ok(move |batch: &mut Batch<&str>| {
    ///         while let Some(path) = batch.next() {
    ///             let len = std::fs::read(path).map_or(0, |bytes| bytes.len());
    ///             handle.block_on(sum.send(len)).expect("`sum` is open");
    ///         }
    ///     })
    /// })?;
    /// # runtime.block_on(read.sender().send("/etc/hostname"))?;
    /// # runtime.block_on(read.drain());
    /// # runtime.block_on(sum.drain());
    /// # assert_eq!(sum.stats().finished, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`handler`](Self::handler).
    pub fn blocking<F: Fn(&mut Batch<E>) + Send + Sync + 'static>(
        self,
        make: impl FnOnce(&Edges<'_>) -> Result<F, BuildError>,
    ) -> Result<Stage<E>, BuildError> {
        self.blocking_in(Pool::Runtime, make)
    }

    /// As [`blocking`](Self::blocking), in a pool that stages may share.
    ///
    /// # Errors
    /// As [`handler`](Self::handler).
    pub fn blocking_on<F: Fn(&mut Batch<E>) + Send + Sync + 'static>(
        self,
        pool: &Arc<BlockingPool>,
        make: impl FnOnce(&Edges<'_>) -> Result<F, BuildError>,
    ) -> Result<Stage<E>, BuildError> {
        self.blocking_in(Pool::Shared(Arc::clone(pool)), make)
    }

    fn blocking_in<F: Fn(&mut Batch<E>) + Send + Sync + 'static>(
        self,
        pool: Pool,
        make: impl FnOnce(&Edges<'_>) -> Result<F, BuildError>,
    ) -> Result<Stage<E>, BuildError> {
        let servlets = self.servlets_max.unwrap_or(OS_THREADS_MAX);
        self.create(Kind::Blocking, servlets)?
            .with_blocking(pool, make)
    }

    /// Makes the stage without a handler: it can be sent to, and is given one later. So stages can be made that send to each other.
    ///
    /// # Errors
    /// If the name is taken, or two controllers own one setting.
    pub fn declare(self) -> Result<Declared<E>, BuildError> {
        let servlets = self.servlets_max.unwrap_or(SERVLETS_MAX);
        Ok(Declared(self.create(Kind::Async, servlets)?.0))
    }

    fn create(self, kind: Kind, servlets_max: usize) -> Result<New<E>, BuildError> {
        let controllers = controllers(&self.name, self.controllers, self.target, self.manual)?;
        let Network { inner: network } = &self.network;
        let workers = network.runtime.workers();
        let queue = match self.keyed {
            None => Queue::Lanes(Lanes::new(self.classes)),
            Some(make) => Queue::Keyed(make(self.key_depth_max, self.classes)),
        };
        let mut state = State::new(Parts {
            queue,
            council: Council::new(controllers, self.classes, network.time.now_ns()),
            bounds: Bounds {
                queue_max: self.queue_max,
                class_max: self.class_max,
                batch_max: self.batch_max,
                servlets_max,
            },
            classes: self.classes,
            kind,
            workers,
            // To begin with; where nobody decides it, all that there may be.
            servlets: if self.manual || kind == Kind::Blocking {
                servlets_max
            } else {
                workers
            },
            batch: self.batch_max,
            seed: network.runtime.seed(),
            process: Arc::clone(&network.process),
        });
        state.retune(self.settings);
        if network.governing.governs() {
            // Until it is in the governor's plan.
            state.cap = 0;
        }
        let name: Arc<str> = self.name.into();
        let manager = self.threads.or_else(|| network.threads.lock().clone());
        let id = self.network.number();
        let shared = Arc::new_cyclic(|stage| {
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
            };
            Shared::new(name, &self.network, state, built)
        });
        self.network.add(
            id,
            &shared.name,
            std::any::type_name::<E>(),
            Arc::clone(&shared) as _,
        )?;
        self.network.replan();
        Ok(New(Stage {
            shared,
            host: Any,
            network: self.network,
            id,
        }))
    }
}
