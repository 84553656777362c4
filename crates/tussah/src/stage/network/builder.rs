//! The builder of a stage.

mod classes;
mod create;
mod path;

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tussah_core::{BlockingPool, Guarded};

use super::Network;
use super::governing::Rank;
use super::handle::Stage;
use super::install::Declared;
use crate::stage::control::{Controller, Mode, Settings};
use crate::stage::error::BuildError;
use crate::stage::event::{Batch, CLASSES_MAX, Classes, Reason};
use crate::stage::queue::{ByKey, Keyed};
use crate::stage::run::{
    ConcurrentHost, Degrade, Handler, OnClose, OnDrop, Pool, Restarts, SerialHandler, SerialHost,
    ThreadManager,
};
use crate::stage::send::{DirectHandler, DirectHost, Directly, Edges};
use crate::stage::state::{Kind, Numbers};

/// Bound, in credits: the default capacity of a queue. It is large enough for a few batches, and
/// small enough that events do not wait for long.
const QUEUE_MAX: u64 = 1024;
/// Bound, in events: the default maximum of a batch. For a hundred events, the cost of the batch
/// itself is hardly noticeable.
const BATCH_MAX: usize = 100;
/// Bound, in servlets: the default maximum of a stage. A servlet costs a few hundred bytes, so this
/// many can wait.
const SERVLETS_MAX: usize = 1000;
/// Bound, in servlets: the default maximum of a stage that blocks, whose servlets are OS threads.
/// It is SEDA's bound (§4.2).
pub(crate) const OS_THREADS_MAX: usize = 20;
/// Bound, in events: the default maximum of one key's queue.
const KEY_DEPTH_MAX: usize = 128;

/// A builder for a stage. [`Network::stage`] returns a builder, and [`handler`](Self::handler),
/// [`direct`](Self::direct), [`serial`](Self::serial), [`blocking`](Self::blocking) or
/// [`declare`](Self::declare) creates the stage.
#[must_use = "a stage is made by giving it a handler"]
pub struct StageBuilder<E> {
    network: Network,
    name: String,
    position: Arc<str>,
    queue_max: u64,
    class_max: [u64; CLASSES_MAX],
    classes: Classes,
    batch_max: usize,
    servlets_max: Option<usize>,
    key_depth_max: usize,
    settings: Settings,
    controllers: Vec<Box<dyn Controller>>,
    target: Option<Duration>,
    mode: Mode,
    manual: bool,
    keyed: Option<MakeKeyed<E>>,
    on_drop: Option<OnDrop<E>>,
    on_close: Option<OnClose>,
    degrade: Option<Degrade<E>>,
    restarts: Restarts,
    rank: Rank,
    threads: Option<Arc<dyn ThreadManager>>,
    numbers: Option<Numbers<E>>,
    whole_path: bool,
}

type MakeKeyed<E> = Box<dyn FnOnce(usize, Classes) -> Box<dyn Keyed<E>> + Send>;

impl<E: Send + 'static> StageBuilder<E> {
    pub(crate) fn new(network: Network, name: String, position: Arc<str>) -> Self {
        Self {
            network,
            name,
            position,
            queue_max: QUEUE_MAX,
            class_max: [u64::MAX; CLASSES_MAX],
            classes: Classes::by_priority(1),
            batch_max: BATCH_MAX,
            servlets_max: None,
            key_depth_max: KEY_DEPTH_MAX,
            settings: Settings::default(),
            controllers: Vec::new(),
            target: None,
            mode: Mode::On,
            manual: false,
            keyed: None,
            on_drop: None,
            on_close: None,
            degrade: None,
            restarts: Restarts::default(),
            rank: Rank::default(),
            threads: None,
            numbers: None,
            whole_path: false,
        }
    }

    /// Sets the stage's priority among the stages that share a thread manager or a governor; 0, the
    /// default, is the highest.
    pub fn priority(mut self, priority: u8) -> Self {
        self.rank.priority = priority;
        self
    }

    /// Declares that the stage frees resources that other stages consume, for example by writing
    /// responses, closing connections or returning buffers. If the network has a governor
    /// ([`Network::govern`]), this stage gets servlets before other stages of the same priority.
    pub fn frees_resources(mut self) -> Self {
        self.rank.frees_resources = true;
        self
    }

    /// Sets the thread manager, which decides whether another servlet may become busy. Several
    /// stages can share a manager. The default is the network's thread manager
    /// ([`Network::set_threads`]), if it has one.
    pub fn threads(mut self, manager: Arc<dyn ThreadManager>) -> Self {
        self.threads = Some(manager);
        self
    }

    /// Sets the maximum number of credits in the queue; 1024 by default, at least 1. Each event
    /// costs one credit by default.
    pub fn queue(mut self, credits: u64) -> Self {
        self.queue_max = credits.max(1);
        self
    }

    /// Sets the maximum number of events in a batch; 100 by default, at least 1. If the maximum is
    /// 1 and the stage has no keys, cancelling an event drops the future of its
    /// [`Handler`](crate::stage::Handler).
    pub fn batch(mut self, events: usize) -> Self {
        self.batch_max = events.max(1);
        self
    }

    /// Sets the maximum number of busy servlets; at least 1. The default is 1000, or 20 for a stage
    /// whose handler blocks. A serial stage has one servlet. A blocking stage has at most as many
    /// as its pool has OS threads.
    ///
    /// While two busy servlets per worker have handlers that have only yielded (`yield_now`) so far
    /// and never waited, no further event of the stage enters service. A handler must therefore not
    /// wait for another event of its stage by yielding in a loop.
    pub fn servlets(mut self, servlets: usize) -> Self {
        self.servlets_max = Some(servlets.max(1));
        self
    }

    /// Sets the latency target, which limits the time from an event's arrival to the end of its
    /// batch.
    ///
    /// With a target, the default controllers reject events that would miss it, and keep batches
    /// short enough to meet it. [`AutoTarget`](crate::stage::control::AutoTarget) describes the
    /// effect of the target if handlers wait. Without a target, the stage refuses only events that
    /// exceed a bound of its queue. If you add a [controller](Self::controller), the target does
    /// not affect that controller. The controller replaces the default controllers for the settings
    /// that it owns. The target has no effect in a [manual](Self::manual) stage.
    pub fn target(mut self, target: Duration) -> Self {
        self.target = Some(target);
        self
    }

    /// Sets the mode of the [target](Self::target): on, observing or off; [`Mode::On`] by default.
    ///
    /// [`StageStats::would_reject`](crate::stage::observe::StageStats::would_reject) counts the
    /// events that an observing stage would have rejected or shed in [`Mode::On`]. To change the
    /// mode while the stage runs, add an [`AutoTarget`](crate::stage::control::AutoTarget) instead.
    /// If you add a controller that owns servlets or admission, [`Mode::Observe`] has the same
    /// effect as [`Mode::Off`]: the stage has no target.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use tussah::stage::control::Mode;
    /// use tussah::stage::{BuildError, Handler, Network, Stage};
    ///
    /// fn observed<H: Handler>(network: &Network, handler: H) -> Result<(), BuildError> {
    ///     let stage = network.stage("lookup").target(Duration::from_millis(100));
    ///     stage.overload(Mode::Observe).handler(|_| Ok(handler))?;
    ///     Ok(())
    /// }
    /// ```
    pub fn overload(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Adds a controller. The controller replaces the default controllers for the settings that it
    /// owns.
    pub fn controller(mut self, controller: impl Controller) -> Self {
        self.controllers.push(Box::new(controller));
        self
    }

    /// Disables the default controllers. Settings that no added controller owns keep their initial
    /// values.
    pub fn manual(mut self) -> Self {
        self.manual = true;
        self
    }

    /// Sets the initial settings.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Handles events by key. Each batch contains events of a single key. Batches of the same key
    /// run one after the other, and batches of different keys run in parallel. Keys without events
    /// cost nothing.
    ///
    /// `key_of` and the key's `Hash` and `Eq` run under the stage's lock, so these functions must
    /// be fast and must not use the stage. If one of these functions panics, the event ends, and
    /// the panic propagates to the sender or caller. If one of these functions panics while a
    /// handler returns an event to the queue, the event keeps its previous key.
    pub fn keyed_by<K>(mut self, key_of: impl Fn(&E) -> K + Send + 'static) -> Self
    where
        K: Hash + Eq + Clone + Send + 'static,
    {
        let make = |depth_max, classes| Box::new(ByKey::new(key_of, Some(depth_max), classes)) as _;
        self.keyed = Some(Box::new(make));
        self
    }

    /// Sets the maximum number of queued events per key; 128 by default, at least 1.
    pub fn key_queue(mut self, events: usize) -> Self {
        self.key_depth_max = events.max(1);
        self
    }

    /// Sets a callback that receives each event that ends while it is queued, together with the
    /// reason. The callback runs before the event's own drop callback, while no lock is held.
    pub fn on_drop(mut self, f: impl Fn(E, Reason) + Send + Sync + 'static) -> Self {
        self.on_drop = Some(Guarded::new(Box::new(f)));
        self
    }

    /// Sets a callback that is called if the stage closes because its serial handler panicked too
    /// often ([`restarts`](Self::restarts)) or could not be created again. The callback receives
    /// the reason, and can, for example, create another stage or exit the program. The callback
    /// runs on the OS thread on which the handler panicked, while the stage's lock is not held. A
    /// panic in the callback is caught.
    pub fn on_close(mut self, f: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_close = Some(Guarded::new(Box::new(f)));
        self
    }

    /// Sets a function that changes an event so that it needs less work. The function is called for
    /// events that a controller [degrades](crate::stage::control::Admission::Degrade).
    pub fn degrade(mut self, f: impl Fn(&mut E) + Send + Sync + 'static) -> Self {
        self.degrade = Some(Guarded::new(Box::new(f)));
        self
    }

    /// Sets how often the stage may create its serial handler again after a panic; five times per
    /// minute by default. The limit on restarts also applies to a handler that was
    /// [swapped](Stage::swap_serial) in.
    ///
    /// A panic beyond the limit on restarts closes the stage ([`on_close`](Self::on_close)). If the
    /// stage must survive any number of panics, catch them in its handler.
    pub fn restarts(mut self, restarts: Restarts) -> Self {
        self.restarts = restarts;
        self
    }

    /// Creates the stage with a handler that several servlets use concurrently. `make` creates the
    /// handler, and uses [`Edges`] to create the handler's outgoing edges.
    ///
    /// # Errors
    /// Returns an error if the name is taken, if an edge would close a cycle, or if `make` fails.
    /// Also returns an error if a controller owns a setting that stages do not have or that another
    /// controller owns. In each case, no stage is created. `make` can return its own errors with
    /// [`Edges::failed`]: `map_err(|error| edges.failed(error))`.
    pub fn handler<H: Handler<Event = E>>(
        self,
        make: impl FnOnce(&Edges<'_>) -> Result<H, BuildError>,
    ) -> Result<Stage<E, Arc<ConcurrentHost<H>>>, BuildError> {
        let servlets = self.servlets_max.unwrap_or(SERVLETS_MAX);
        self.create(Kind::Async, servlets)?.with_handler(make)
    }

    /// Creates the stage with a handler that never waits, so other stages can call the handler
    /// directly.
    ///
    /// # Errors
    /// Returns the same errors as [`handler`](Self::handler).
    pub fn direct<H: DirectHandler<Event = E>>(
        self,
        make: impl FnOnce(&Edges<'_>) -> Result<H, BuildError>,
    ) -> Result<Stage<E, DirectHost<H>>, BuildError> {
        self.handler(|edges| Ok(Directly(make(edges)?)))
    }

    /// Creates the stage with a handler that processes one batch at a time. If the handler panics,
    /// `make` is called again immediately, within the limit of [`restarts`](Self::restarts).
    ///
    /// # Errors
    /// Returns the same errors as [`handler`](Self::handler).
    pub fn serial<H: SerialHandler<Event = E>>(
        self,
        make: impl FnMut(&Edges<'_>) -> Result<H, BuildError> + Send + 'static,
    ) -> Result<Stage<E, Arc<SerialHost<H>>>, BuildError> {
        self.create(Kind::Async, 1)?.with_serial(make)
    }

    /// Creates the stage with a blocking handler, which runs on OS threads of the runtime's
    /// blocking pool. The handler cannot await, but it can send with
    /// [`Sender::try_send`](crate::stage::Sender::try_send) or
    /// [`send_or`](crate::stage::Sender::send_or). To wait until the queue has free space, use
    /// [`Handle::block_on`](crate::Handle::block_on).
    ///
    /// # Examples
    /// ```
    /// use tussah::stage::{Batch, Network};
    ///
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// let handle = runtime.handle().clone();
    /// let network = Network::on(&handle, "files");
    /// let add = |batch: &mut Batch<usize>| drop(batch.drain().sum::<usize>());
    /// let sum = network.stage("sum").blocking(|_| Ok(add))?;
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
    /// Returns the same errors as [`handler`](Self::handler).
    pub fn blocking<F: Fn(&mut Batch<E>) + Send + Sync + 'static>(
        self,
        make: impl FnOnce(&Edges<'_>) -> Result<F, BuildError>,
    ) -> Result<Stage<E>, BuildError> {
        self.blocking_in(Pool::Runtime, make)
    }

    /// Creates the stage, as [`blocking`](Self::blocking) does, but runs the handler in `pool`,
    /// which several stages may share.
    ///
    /// # Errors
    /// Returns the same errors as [`handler`](Self::handler).
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

    /// Creates the stage without a handler; events can already be sent to it. Use this method to
    /// create stages that send to each other.
    ///
    /// # Errors
    /// Returns an error if the name is taken, or if a controller owns a setting that stages do not
    /// have or that another controller owns.
    pub fn declare(self) -> Result<Declared<E>, BuildError> {
        let servlets = self.servlets_max.unwrap_or(SERVLETS_MAX);
        Ok(Declared(self.create(Kind::Async, servlets)?.0))
    }
}
