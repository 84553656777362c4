//! A network of stages: their names, the edges between them, and what they share.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tussah_core::Handle;

use super::builder::Builder;
use super::error::BuildError;
use super::governing::Governing;
use super::handle::{Any, Stage};
use super::inspect::Inspect;
use super::process::Process;
use super::shared::{Shared, Time};
use super::table::{Edge, EdgeKind, Known, Table};
use super::threads::ThreadManager;
use super::trace::Tracer;

/// A network of stages. Cheap to clone: all clones are the same network.
///
/// It keeps its stages until they are [destroyed](Stage::destroy).
#[derive(Clone)]
pub struct Network {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) runtime: Handle,
    pub(crate) time: Time,
    pub(crate) process: Arc<Process>,
    pub(crate) tracer: Arc<Tracer>,
    pub(crate) governing: Arc<Governing>,
    /// The manager of servlets of stages that are built without one.
    pub(crate) threads: Mutex<Option<Arc<dyn ThreadManager>>>,
    pub(crate) table: Mutex<Table>,
}

impl Network {
    /// A network of the runtime that the caller runs in.
    ///
    /// # Panics
    /// Outside of a runtime; there is [`on`](Self::on) for callers elsewhere.
    #[track_caller]
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self::on(&Handle::current(), name)
    }

    /// A network whose servlets run in the given runtime.
    #[must_use]
    pub fn on(runtime: &Handle, name: impl Into<String>) -> Self {
        let clock = runtime.clock();
        let inner = Inner {
            name: name.into(),
            runtime: runtime.clone(),
            time: Time {
                start: clock.now(),
                clock,
            },
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

    /// The name that it was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Begins a stage of this name.
    pub fn stage<E: Send + 'static>(&self, name: impl Into<String>) -> Builder<E> {
        Builder::new(self.clone(), name.into())
    }

    /// The stage of this name.
    ///
    /// # Errors
    /// If there is none, with the names that there are; if it takes other events, with both types.
    pub fn find<E: Send + 'static>(&self, name: &str) -> Result<Stage<E>, BuildError> {
        let table = self.inner.table.lock();
        let known = table.find(name)?;
        let stage: Arc<dyn std::any::Any + Send + Sync> = known.stage.clone();
        match stage.downcast::<Shared<E>>() {
            Ok(shared) => Ok(Stage {
                shared,
                host: Any,
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

    /// The names of all stages, in the order in which they were made.
    #[must_use]
    pub fn names(&self) -> Vec<Arc<str>> {
        let table = self.inner.table.lock();
        let names = table.stages.iter().map(|known| known.name.clone());
        names.collect()
    }

    /// All edges, in the order in which they were made.
    #[must_use]
    pub fn edges(&self) -> Vec<Edge> {
        self.inner.table.lock().edges.clone()
    }

    /// The stages and edges that there are now. What is asked of the stages is asked under no lock of the network.
    pub(crate) fn known(&self) -> (Vec<Known>, Vec<Edge>) {
        let table = self.inner.table.lock();
        (table.stages.clone(), table.edges.clone())
    }

    /// A number for a stage to be.
    pub(crate) fn number(&self) -> u32 {
        let mut table = self.inner.table.lock();
        table.next += 1;
        table.next
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
        });
        Ok(())
    }

    /// Forgets a stage and its edges.
    pub(crate) fn remove(&self, id: u32) {
        let mut table = self.inner.table.lock();
        let place = table.stages.iter().position(|known| known.id == id);
        let removed = place.map(|place| table.stages.remove(place));
        if let Some(removed) = &removed {
            table
                .edges
                .retain(|edge| edge.from != removed.name && edge.to != removed.name);
            for edge in &mut table.edges {
                edge.proxy.take_if(|proxy| *proxy == removed.name);
            }
        }
        drop(table);
        // Under no lock: it may be the last reference to a handler.
        drop(removed);
    }

    /// # Errors
    /// If a stage is of another network: that one's names, numbers and edges are not known here.
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

    /// Adds an edge; refuses one that closes a cycle in which all could wait.
    pub(crate) fn connect(
        &self,
        from: &Arc<str>,
        to: &Arc<str>,
        kind: EdgeKind,
    ) -> Result<(), BuildError> {
        let mut table = self.inner.table.lock();
        let (proxy, before) = (table.proxy(from, to), table.edges.len());
        table.connect(from, to, kind)?;
        if let Some(proxy) = proxy {
            if let Err(error) = table.connect(from, &proxy, kind) {
                table.edges.truncate(before);
                return Err(error);
            }
            table.set_proxy(from, to, Some(&proxy));
        }
        Ok(())
    }

    /// Makes a handler for a stage in the place of another; if that fails, its edges are forgotten.
    pub(crate) fn remake<T>(
        &self,
        from: &Arc<str>,
        make: impl FnOnce() -> Result<T, BuildError>,
    ) -> Result<T, BuildError> {
        let before = self.edges();
        let made = make();
        if made.is_err() {
            let same = |one: &Edge, it: &Edge| one.to == it.to && one.kind == it.kind;
            let was = |it: &Edge| before.iter().any(|one| one.from == *from && same(one, it));
            let mut table = self.inner.table.lock();
            table.edges.retain(|edge| edge.from != *from || was(edge));
        }
        made
    }

    /// Puts a proxy in the edges from one stage to another; gives the first one's name and number, and the edges that there were not before.
    pub(crate) fn interpose(
        &self,
        from: &str,
        to: &Arc<str>,
        proxy: &Arc<str>,
        blocks: bool,
    ) -> Result<(Arc<str>, u32, Vec<Edge>), BuildError> {
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
        // What goes to the proxy must not come back to where it was to go.
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
        let edges = table.edges.iter();
        let there = edges.filter(|edge| edge.from == from && edge.to == *to);
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
        let before = table.edges.len();
        for kind in kinds {
            if let Err(error) = table.connect(&from, proxy, kind) {
                table.edges.truncate(before);
                return Err(error);
            }
        }
        let added = table.edges[before..].to_vec();
        table.set_proxy(&from, to, Some(proxy));
        Ok((from, id, added))
    }

    /// Takes a proxy out of the edges from one stage to another, and the edges that were made for it.
    pub(crate) fn withdraw(
        &self,
        from: &Arc<str>,
        to: &Arc<str>,
        proxy: &Arc<str>,
        added: &[Edge],
    ) {
        let mut table = self.inner.table.lock();
        if table.proxy(from, to).as_ref() == Some(proxy) {
            table.set_proxy(from, to, None);
        }
        table.edges.retain(|edge| !added.contains(edge));
    }

    pub(crate) fn downgrade(&self) -> Weak {
        Weak(Arc::downgrade(&self.inner))
    }
}

/// A network that may be gone.
pub(crate) struct Weak(std::sync::Weak<Inner>);

impl Weak {
    /// Whether both are the same network.
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
