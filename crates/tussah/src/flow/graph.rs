//! Graphs: instances and edges, before and while they run.

mod dropped;
mod fuse;
mod limits;
mod start;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::args::Args;
use super::error::GraphError;
use super::install::{Instance, Planned};
use super::module::Module;
use super::shards::Group;
use super::via::Via;
use crate::stage::here;
use crate::sync::Limit;

/// A graph that has not been started: instances of modules, and edges between their ports.
pub struct Graph {
    name: String,
    instances: Vec<Named>,
    groups: Vec<Group>,
    /// The numbers of the instances of each name. A graph may have thousands of shards.
    places: HashMap<String, Range<usize>>,
    /// Sets of instances with a limit for each.
    limits: Vec<(Limit, BTreeSet<usize>)>,
    /// The number of the limit around each instance that has one.
    limited: HashMap<usize, usize>,
    edges: Vec<(End, End, Via)>,
    /// Output ports that need no edge.
    open: Vec<End>,
    /// The position in a Weave text of the instance that is being added.
    position: Option<Arc<str>>,
}

struct Named {
    name: String,
    /// The source position of the instance.
    position: Arc<str>,
    instance: Box<dyn Instance>,
}

/// A port of an instance, or of all shards of a group.
#[derive(Clone)]
struct End {
    name: String,
    instances: Range<usize>,
    port: String,
}

impl Graph {
    /// Creates an empty graph.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            instances: Vec::new(),
            groups: Vec::new(),
            places: HashMap::new(),
            limits: Vec::new(),
            limited: HashMap::new(),
            edges: Vec::new(),
            open: Vec::new(),
            position: None,
        }
    }

    /// Adds an instance of a module. The instance is created when the graph starts. It keeps the
    /// source position of this call. Errors show the position if the instance cannot be created, or
    /// if another one gets its name. The log shows it if the instance closes because of its module.
    ///
    /// # Errors
    /// Returns an error if the name is taken, or if the module has no parameter for an argument.
    #[track_caller]
    pub fn add<M: Module>(&mut self, name: &str, args: Args) -> Result<(), GraphError> {
        let position = self.position();
        self.check_name(name)?;
        args.check(M::PARAMS)
            .map_err(|why| GraphError::instance(name, why))?;
        self.push(Named {
            name: name.to_owned(),
            position,
            instance: Box::new(Planned::<M>::new(args.of(name))),
        });
        Ok(())
    }

    /// Sets the position in a Weave text of the instances that are added next.
    pub(super) fn set_position(&mut self, position: Option<Arc<str>>) {
        self.position = position;
    }

    /// Returns the source position of the instance that is being added: in a Weave text, or that of
    /// the caller.
    #[track_caller]
    fn position(&self) -> Arc<str> {
        // A closure would hide the caller.
        match &self.position {
            Some(position) => Arc::clone(position),
            None => here(),
        }
    }

    /// Adds several instances of a module. These instances, called shards, share the items of each
    /// input port. An edge connects to all shards together, as if they were one instance.
    /// Statistics and errors refer to individual shards, such as `name#0`.
    ///
    /// If `by` names a field, items with the same value of this field go to the same shard, even if
    /// they arrive at different input ports. The type of these items must derive
    /// [`Fields`](super::Fields). If `by` is `None`, the items of a port go to the shards in turn.
    ///
    /// # Errors
    /// Returns an error if the name is taken, if the module has no parameter for an argument, or if
    /// the number of shards is 0. The field is checked when the graph starts.
    #[track_caller]
    pub fn add_shards<M: Module>(
        &mut self,
        name: &str,
        shards: usize,
        by: Option<&str>,
        args: Args,
    ) -> Result<(), GraphError> {
        let position = Some(self.position());
        let before = std::mem::replace(&mut self.position, position);
        let add = |graph: &mut Self, name: &str| graph.add::<M>(name, args.clone());
        let added = self.add_group(name, shards, by, add);
        self.position = before;
        added
    }

    /// Adds shards with the function that adds an instance of a given name.
    pub(super) fn add_group(
        &mut self,
        name: &str,
        shards: usize,
        by: Option<&str>,
        add: impl Fn(&mut Self, &str) -> Result<(), GraphError>,
    ) -> Result<(), GraphError> {
        self.check_name(name)?;
        if shards == 0 {
            let why = "it has 0 shards: expected at least 1".to_owned();
            return Err(GraphError::instance(name, why));
        }
        let first = self.instances.len();
        for shard in 0..shards {
            add(self, &format!("{name}#{shard}"))?;
        }
        let shards = first..first + shards;
        self.places.insert(name.to_owned(), shards.clone());
        self.groups.push(Group::new(name, shards, by));
        Ok(())
    }

    fn check_name(&self, name: &str) -> Result<(), GraphError> {
        match self.places.get(name) {
            None => Ok(()),
            Some(place) => Err(GraphError::NameTaken {
                name: name.to_owned(),
                position: self.instances[place.start].position.to_string(),
            }),
        }
    }

    /// Adds an instance without a module. Its name must be new.
    #[cfg(feature = "cli")]
    pub(crate) fn add_instance(&mut self, name: &str, instance: Box<dyn Instance>) {
        let position = self.position();
        self.push(Named {
            name: name.to_owned(),
            position,
            instance,
        });
    }

    fn push(&mut self, named: Named) {
        let place = self.instances.len();
        self.places.insert(named.name.clone(), place..place + 1);
        self.instances.push(named);
    }

    /// Adds an edge that uses a queue. Each end consists of the name of an instance, a dot, and the
    /// name of a port. Without the name of a port, the edge starts at the `out` port, or ends at
    /// the `run` port.
    ///
    /// # Errors
    /// Returns an error if an instance does not exist. Ports and types are checked when the graph
    /// starts.
    pub fn connect(&mut self, from: &str, to: &str) -> Result<(), GraphError> {
        self.connect_via(from, to, Via::default())
    }

    /// Adds an edge, as [`connect`](Self::connect) does, with options such as a capacity or a
    /// delay.
    ///
    /// # Errors
    /// Returns the same errors as [`connect`](Self::connect).
    pub fn connect_via(&mut self, from: &str, to: &str, via: Via) -> Result<(), GraphError> {
        let edge = (self.end(from, "out")?, self.end(to, "run")?, via);
        self.edges.push(edge);
        Ok(())
    }

    /// Lets an output port end its items if it has no edge.
    ///
    /// # Errors
    /// Returns an error if the instance does not exist.
    #[cfg(feature = "cli")]
    pub(crate) fn leave_open(&mut self, from: &str) -> Result<(), GraphError> {
        let end = self.end(from, "out")?;
        self.open.push(end);
        Ok(())
    }

    /// Sets the latency target of an instance. The latency is the time from the arrival of an item
    /// until it has been handled. The instance rejects items that would miss the target, and sends
    /// them to its `dropped` port; see
    /// [`StageBuilder::target`](crate::stage::StageBuilder::target).
    ///
    /// # Errors
    /// Returns an error if the instance does not exist.
    pub fn target(&mut self, instance: &str, target: Duration) -> Result<(), GraphError> {
        for place in self.place(instance)? {
            self.instances[place].instance.set_target(target);
        }
        Ok(())
    }

    /// Returns the numbers of the instances of this name.
    fn place(&self, name: &str) -> Result<Range<usize>, GraphError> {
        let place = self.places.get(name).cloned();
        place.ok_or_else(|| GraphError::NoInstance {
            name: name.to_owned(),
            known: self.instances.iter().map(|it| it.name.clone()).collect(),
        })
    }

    fn end(&self, end: &str, default: &str) -> Result<End, GraphError> {
        // The name of an instance may itself contain a dot.
        let (name, port) = match self.places.contains_key(end) {
            true => (end, default),
            false => end.rsplit_once('.').unwrap_or((end, default)),
        };
        Ok(End {
            name: name.to_owned(),
            instances: self.place(name)?,
            port: port.to_owned(),
        })
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("name", &self.name)
            .field("instances", &self.instances.len())
            .field("edges", &self.edges.len())
            .finish_non_exhaustive()
    }
}
