//! A network of stages: their names, the edges between them, and their common state.

mod builder;
mod drain;
mod governing;
mod handle;
mod inspect;
mod install;
mod making;
mod roster;
mod table;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tussah_core::{Guarded, Handle};

use self::table::Table;
use super::error::BuildError;
use super::event::Time;
use super::observe::Tracer;
use super::run::{Shared, ThreadManager};
use super::state::Process;

pub use self::builder::StageBuilder;
pub use self::handle::{ErasedHost, Stage};
pub use self::install::Declared;
pub use self::table::{Edge, EdgeKind};

pub(crate) use self::builder::OS_THREADS_MAX;
pub(crate) use self::governing::{Governing, Rank};
pub(crate) use self::inspect::Inspect;
pub(crate) use self::table::{ALWAYS, Known};

/// A network of stages. Clones of a `Network` are cheap, and refer to the same network.
///
/// A network keeps its stages until they are [destroyed](Stage::destroy), the network is
/// [closed](Self::close), or its runtime ends. The [documentation of the module
/// `stage`](super#when-a-handler-is-dropped) describes what happens when the last handle is
/// dropped.
#[derive(Clone)]
pub struct Network {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) runtime: Handle,
    pub(crate) time: Time,
    pub(crate) start: Instant,
    pub(crate) process: Arc<Process>,
    pub(crate) tracer: Arc<Tracer>,
    pub(crate) governing: Arc<Governing>,
    /// The manager of servlets for stages that are built without their own manager.
    pub(crate) threads: Mutex<Option<Guarded<Arc<dyn ThreadManager>>>>,
    pub(crate) table: Mutex<Table>,
}

impl Network {
    /// Creates a network on the current runtime.
    ///
    /// # Panics
    /// Panics if called outside a runtime; use [`on`](Self::on) there.
    #[track_caller]
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self::on(&Handle::current(), name)
    }

    /// Creates a network whose servlets run on the given runtime.
    #[must_use]
    pub fn on(runtime: &Handle, name: impl Into<String>) -> Self {
        let inner = Inner {
            name: name.into(),
            runtime: runtime.clone(),
            time: Time::new(runtime.clock()),
            start: runtime.clock().now(),
            process: Arc::default(),
            tracer: Arc::default(),
            governing: Arc::default(),
            threads: Mutex::default(),
            table: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns the runtime of the network's servlets.
    pub(crate) fn handle(&self) -> &Handle {
        &self.inner.runtime
    }

    /// Returns the network's time, in nanoseconds.
    pub(crate) fn now_ns(&self) -> u64 {
        self.inner.time.now_ns()
    }

    /// Returns the network's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Starts building a stage with this name.
    pub fn stage<E: Send + 'static>(&self, name: impl Into<String>) -> StageBuilder<E> {
        StageBuilder::new(self.clone(), name.into())
    }

    /// Finds a stage by its name.
    ///
    /// # Errors
    /// Returns [`BuildError::NotFound`] if the network has no stage with this name, and
    /// [`BuildError::WrongType`] if the stage takes events of another type.
    pub fn find<E: Send + 'static>(&self, name: &str) -> Result<Stage<E>, BuildError> {
        let table = self.inner.table.lock();
        let known = table.find(name)?;
        let stage: Arc<dyn std::any::Any + Send + Sync> = known.stage.clone();
        match stage.downcast::<Shared<E>>() {
            Ok(shared) => Ok(Stage {
                shared,
                host: ErasedHost,
                network: self.clone(),
                id: known.id,
            }),
            Err(_) => Err(BuildError::WrongType {
                name: name.to_owned(),
                expected: std::any::type_name::<E>(),
                found: known.event,
            }),
        }
    }

    /// Returns the names of all stages, in the order in which they were created.
    #[must_use]
    pub fn names(&self) -> Vec<Arc<str>> {
        let table = self.inner.table.lock();
        let names = table.stages.iter().map(|known| known.name.clone());
        names.collect()
    }

    /// Returns all edges, in the order in which they were created.
    #[must_use]
    pub fn edges(&self) -> Vec<Edge> {
        self.inner.table.lock().edges().cloned().collect()
    }

    /// Returns the current stages and edges. The caller then asks the stages without holding a lock
    /// of the network.
    pub(crate) fn known(&self) -> (Vec<Known>, Vec<Edge>) {
        let table = self.inner.table.lock();
        (table.stages.clone(), table.edges().cloned().collect())
    }

    /// Returns a number for a new stage.
    pub(crate) fn number(&self) -> u32 {
        self.inner.table.lock().number()
    }

    /// Adds a stage under its number.
    pub(crate) fn add(
        &self,
        id: u32,
        name: &Arc<str>,
        event: &'static str,
        stage: Arc<dyn Inspect>,
    ) -> Result<(), BuildError> {
        let mut table = self.inner.table.lock();
        if table.find(name).is_ok() {
            let name = name.to_string();
            return Err(BuildError::NameTaken { name });
        }
        let name = Arc::clone(name);
        table.stages.push(Known {
            id,
            name,
            event,
            stage,
            making: ALWAYS,
        });
        Ok(())
    }

    /// Forgets a stage and its edges.
    pub(crate) fn remove(&self, id: u32) {
        let removed = self.inner.table.lock().remove(id);
        // The stage is dropped while no lock is held, because it may be the last reference to a
        // handler.
        drop(removed);
        self.replan();
    }

    /// Closes a stage, and forgets it.
    pub(crate) fn discard(&self, name: &str) {
        let known = self.inner.table.lock().find(name).cloned();
        if let Ok(known) = known {
            known.stage.close();
            self.remove(known.id);
        }
    }

    /// Checks that a stage belongs to this network.
    ///
    /// # Errors
    /// Returns an error if the stage belongs to another network, whose names, numbers and edges are
    /// unknown here.
    pub(crate) fn check_own(&self, stage: &str, of: &Network) -> Result<(), BuildError> {
        if Arc::ptr_eq(&self.inner, &of.inner) {
            return Ok(());
        }
        Err(BuildError::OtherNetwork {
            stage: stage.to_owned(),
            network: of.name().to_owned(),
            expected: self.name().to_owned(),
        })
    }

    /// Adds an edge, which exists until it is [released](Table::release). Rejects an edge that
    /// would close a cycle that can deadlock.
    pub(crate) fn connect(
        &self,
        from: &Arc<str>,
        to: &Arc<str>,
        (kind, room): (EdgeKind, u64),
        by: u32,
    ) -> Result<(), BuildError> {
        let mut table = self.inner.table.lock();
        let proxy = table.proxy(from, to);
        table.connect(from, to, (kind, room), by)?;
        let back = table.edges_back(from, to);
        self.connect_proxy(&mut table, [from, to], proxy, (kind, by))?;
        drop(table);
        for (from, room, stage) in back {
            stage.set_back_room(from, room);
        }
        Ok(())
    }

    /// Makes `by` a holder of the edges of a stage's handler.
    pub(crate) fn inherit(&self, stage: u32, by: u32) {
        self.inner.table.lock().inherit(stage, by);
    }

    /// Stops new batches of all stages that call a stage, directly or through others, until the
    /// returned values are dropped. Waits until their running batches have ended.
    pub(crate) async fn hold_callers(&self, name: &str) -> Vec<Box<dyn std::any::Any + Send>> {
        let (stages, edges) = self.known();
        let is_call = |edge: &&Edge| edge.kind == EdgeKind::Call;
        let (mut to_do, mut callers) = (vec![name], Vec::new());
        while let Some(callee) = to_do.pop() {
            for edge in edges.iter().filter(is_call).filter(|it| &*it.to == callee) {
                if !callers.contains(&&*edge.from) {
                    callers.push(&*edge.from);
                    to_do.push(&*edge.from);
                }
            }
        }
        let mut held = Vec::new();
        for known in stages.iter().filter(|it| callers.contains(&&*it.name)) {
            held.push(Arc::clone(&known.stage).hold().await);
        }
        held
    }

    fn connect_proxy(
        &self,
        table: &mut Table,
        [from, to]: [&Arc<str>; 2],
        proxy: Option<Arc<str>>,
        (kind, by): (EdgeKind, u32),
    ) -> Result<(), BuildError> {
        if let Some(proxy) = proxy {
            if let Err(error) = table.connect(from, &proxy, (kind, 0), by) {
                table.disconnect(from, to, kind, by);
                return Err(error);
            }
            table.set_proxy(from, to, Some(&proxy));
        }
        Ok(())
    }

    /// Checks that no other stage calls the stage of this name, whose handler blocks.
    pub(crate) fn check_not_called(&self, name: &Arc<str>) -> Result<(), BuildError> {
        let table = self.inner.table.lock();
        let is_call = |edge: &Edge| edge.kind == EdgeKind::Call && edge.to == *name;
        match table.edges().any(is_call) {
            true => Err(BuildError::Blocks {
                stage: name.to_string(),
            }),
            false => Ok(()),
        }
    }

    /// Puts a proxy into the edges from one stage to another. Returns the first stage's name and
    /// number, and the number that holds the edges to the proxy.
    pub(crate) fn interpose(
        &self,
        from: &str,
        to: &Arc<str>,
        proxy: &Arc<str>,
        blocks: bool,
    ) -> Result<(Arc<str>, u32, u32), BuildError> {
        let mut table = self.inner.table.lock();
        let known = table.find(from)?;
        let (from, id) = (Arc::clone(&known.name), known.id);
        let names = || (from.to_string(), to.to_string());
        if let Some(by) = table.proxy(&from, to) {
            let (from, to) = names();
            return Err(BuildError::Proxied {
                from,
                to,
                by: by.to_string(),
            });
        }
        // Events sent to the proxy must not return to their original target through another proxy.
        let mut way = vec![from.to_string(), to.to_string(), proxy.to_string()];
        let mut next = Arc::clone(proxy);
        while let Some(proxy) = table.proxy(&from, &next) {
            way.push(proxy.to_string());
            next = proxy;
            if next == *to {
                return Err(BuildError::Cycle { path: way });
            }
        }
        if from == *proxy {
            return Err(BuildError::Cycle { path: way });
        }
        let there = table
            .edges()
            .filter(|edge| edge.from == from && edge.to == *to);
        let kinds: Vec<_> = there.map(|edge| edge.kind).collect();
        if kinds.is_empty() {
            let (from, to) = names();
            return Err(BuildError::NoEdge { from, to });
        }
        if blocks && kinds.contains(&EdgeKind::Call) {
            return Err(BuildError::Blocks {
                stage: proxy.to_string(),
            });
        }
        let by = table.number();
        for kind in kinds {
            if let Err(error) = table.connect(&from, proxy, (kind, 0), by) {
                table.release(by);
                return Err(error);
            }
        }
        table.set_proxy(&from, to, Some(proxy));
        Ok((from, id, by))
    }

    /// Removes a proxy from the edges between two stages, and releases its own edges.
    pub(crate) fn withdraw(&self, from: &Arc<str>, to: &Arc<str>, proxy: &Arc<str>, by: u32) {
        let mut table = self.inner.table.lock();
        if table.proxy(from, to).as_ref() == Some(proxy) {
            table.set_proxy(from, to, None);
        }
        table.release(by);
    }

    pub(crate) fn downgrade(&self) -> Weak {
        Weak(Arc::downgrade(&self.inner))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Each handle of a stage holds the network, so no handle exists any longer.
        for known in self.table.get_mut().stages.drain(..) {
            known.stage.abandon();
        }
    }
}

/// A reference to a network that may no longer exist.
pub(crate) struct Weak(std::sync::Weak<Inner>);

impl Weak {
    /// Returns whether both refer to the same network.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }

    pub(crate) fn upgrade(&self) -> Option<Network> {
        Some(Network {
            inner: self.0.upgrade()?,
        })
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("name", &self.inner.name)
            .field("stages", &self.names())
            .finish_non_exhaustive()
    }
}
