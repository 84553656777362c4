//! A network of stages: their names, the edges between them, and their common state.

mod builder;
mod drain;
mod edges;
mod governing;
mod handle;
mod inspect;
mod install;
mod links;
mod making;
mod order;
mod roster;
mod table;

use std::fmt;
use std::panic::Location;
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

    /// Starts building a stage with this name. The stage keeps the source position of this call:
    /// the log shows the position if the stage closes because of its handler, and so do the errors
    /// of later calls that the stage does not fit or whose name it has.
    #[track_caller]
    pub fn stage<E: Send + 'static>(&self, name: impl Into<String>) -> StageBuilder<E> {
        self.stage_at(name, here())
    }

    /// Starts building a stage with this name and source position.
    pub(crate) fn stage_at<E: Send + 'static>(
        &self,
        name: impl Into<String>,
        position: Arc<str>,
    ) -> StageBuilder<E> {
        StageBuilder::new(self.clone(), name.into(), position)
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
                position: known.position.to_string(),
                expected: std::any::type_name::<E>(),
                found: known.event,
            }),
        }
    }

    /// Returns the names of all stages, in the order in which they were created.
    #[must_use]
    pub fn names(&self) -> Vec<Arc<str>> {
        let table = self.inner.table.lock();
        let names = table.stages().map(|known| known.name.clone());
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
        (
            table.stages().cloned().collect(),
            table.edges().cloned().collect(),
        )
    }

    /// Returns a number for a new stage.
    pub(crate) fn number(&self) -> u32 {
        self.inner.table.lock().number()
    }

    /// Adds a stage, whose number must be new.
    pub(crate) fn add(&self, stage: Known) -> Result<(), BuildError> {
        self.inner.table.lock().add(stage)
    }

    /// Returns the source position of the stage with this name; empty if there is none.
    pub(crate) fn position(&self, name: &str) -> Arc<str> {
        self.inner.table.lock().position(name)
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

    pub(crate) fn downgrade(&self) -> Weak {
        Weak(Arc::downgrade(&self.inner))
    }
}

/// Returns the source position of the caller, such as `src/main.rs:12:5`.
#[track_caller]
pub(crate) fn here() -> Arc<str> {
    Location::caller().to_string().into()
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Each handle of a stage holds the network, so no handle exists any longer.
        for known in self.table.get_mut().take_stages().into_values() {
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
