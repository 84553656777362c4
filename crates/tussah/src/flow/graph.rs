//! Graphs: instances and edges, before and while they run.

mod fuse;
mod limits;

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::args::Args;
use super::edge::InPort;
use super::error::GraphError;
use super::install::{Installed, Instance, Planned};
use super::keepers::Keepers;
use super::module::Module;
use super::order::{slots, upstream_first};
use super::running::Running;
use super::shards::Group;
use super::tap::NamedEdge;
use super::via::Via;
use crate::stage::{Network, collected};
use crate::sync::Limit;

/// A graph that has not been started: instances of modules, and edges between their ports.
pub struct Graph {
    name: String,
    instances: Vec<Named>,
    groups: Vec<Group>,
    /// Sets of instances with a limit for each.
    limits: Vec<(Limit, Vec<usize>)>,
    edges: Vec<(End, End, Via)>,
}

struct Named {
    name: String,
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
            limits: Vec::new(),
            edges: Vec::new(),
        }
    }

    /// Adds an instance of a module. The instance is created when the graph starts.
    ///
    /// # Errors
    /// Returns an error if the name is taken, or if the module has no parameter for an argument.
    pub fn add<M: Module>(&mut self, name: &str, args: Args) -> Result<(), GraphError> {
        self.check_name(name)?;
        args.check(M::PARAMS).map_err(|why| GraphError::Instance {
            instance: name.to_owned(),
            why,
        })?;
        self.instances.push(Named {
            name: name.to_owned(),
            instance: Box::new(Planned::<M>::new(args.of(name))),
        });
        Ok(())
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
    pub fn add_shards<M: Module>(
        &mut self,
        name: &str,
        shards: usize,
        by: Option<&str>,
        args: Args,
    ) -> Result<(), GraphError> {
        let add = |graph: &mut Self, name: &str| graph.add::<M>(name, args.clone());
        self.add_group(name, shards, by, add)
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
            return Err(GraphError::Instance {
                instance: name.to_owned(),
                why: "it has 0 shards: expected at least 1".to_owned(),
            });
        }
        let first = self.instances.len();
        for shard in 0..shards {
            add(self, &format!("{name}#{shard}"))?;
        }
        let shards = first..first + shards;
        self.groups.push(Group::new(name, shards, by));
        Ok(())
    }

    fn check_name(&self, name: &str) -> Result<(), GraphError> {
        match self.place(name) {
            Err(_) => Ok(()),
            Ok(_) => Err(GraphError::NameTaken {
                name: name.to_owned(),
            }),
        }
    }

    /// Adds an instance without a module. Its name must be new.
    #[cfg(feature = "cli")]
    pub(crate) fn add_instance(&mut self, name: &str, instance: Box<dyn Instance>) {
        let name = name.to_owned();
        self.instances.push(Named { name, instance });
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

    /// Creates all instances on the current runtime, and starts the graph. If the graph cannot
    /// start, everything that this call has created is removed.
    ///
    /// # Errors
    /// Returns an error if a port is unknown, if a required port has no edge, or if the two ends of
    /// an edge have different types. Also returns an error if a port with several edges sends items
    /// that are not `Clone`, if a cycle of edges could deadlock, or if an instance cannot be
    /// created.
    ///
    /// # Panics
    /// Panics if called outside a runtime, or if creating an instance panics. If this method
    /// panics, everything that it has created is removed.
    #[track_caller]
    pub fn start(self) -> Result<Running, GraphError> {
        let mut running = Running {
            network: Network::new(self.name.clone()),
            ports: Vec::new(),
            edges: Vec::new(),
            outputs: Vec::new(),
            sources: crate::sync::Mutex::default(),
            aborts: Vec::new(),
            failures: Mutex::default(),
            tickers: Mutex::default(),
            keepers: Arc::default(),
        };
        let started = catch_unwind(AssertUnwindSafe(|| self.start_in(&mut running)));
        if !matches!(started, Ok(Ok(()))) {
            // Nothing of it remains.
            running.network.close();
        }
        let started = started.unwrap_or_else(|payload| resume_unwind(payload));
        started.map(|()| running)
    }

    fn start_in(mut self, running: &mut Running) -> Result<(), GraphError> {
        let edges = std::mem::take(&mut self.edges);
        let ends = edges.iter();
        let ends = ends.map(|(from, to, _)| (&from.instances, &to.instances));
        let order = upstream_first(self.instances.len(), ends);
        let (slots, keepers) = slots(&order, |place| self.instances[place].instance.has_state());
        let is_bounded = |place| {
            let mut queues = edges.iter().filter(|(_, _, via)| !via.is_call);
            queues.any(|(_, to, _)| to.instances.contains(&place))
        };
        let instances = self.instances.iter_mut().zip(slots).enumerate();
        for (place, (Named { name, instance }, slot)) in instances {
            instance.set_slot(slot);
            let ports = instance.declare(&running.network, name, is_bounded(place))?;
            running.ports.push((name.clone(), ports));
        }
        for group in &self.groups {
            let ports = group.join(&running.ports[group.shards.clone()])?;
            running.ports.push((group.name.clone(), ports));
        }
        for (from, to, via) in edges {
            let places = self.plan(&running.ports, &from, &to, &via)?;
            running.edges.push(NamedEdge {
                from: (from.name, from.port),
                to: (to.name, to.port),
                places,
            });
        }
        let instances = self.instances.iter();
        running.outputs = instances.map(|it| it.instance.ports()).collect();
        for (name, ports) in &mut running.ports {
            let limit = self.place(name).ok().and_then(|it| self.limit_of(it.start));
            if limit.is_some() {
                for port in ports {
                    port.entry = Some((port.cross)(&*port.inlet, limit));
                }
            }
        }
        for named in &mut self.instances {
            named.check()?;
        }
        let keepers = Arc::new(Keepers::new(keepers));
        running.keepers = Arc::clone(&keepers);
        let (mut sources, mut tickers) = (Vec::new(), Vec::new());
        for Named { name, instance } in self.instances {
            let Installed {
                source,
                tickers: more,
            } = instance.install(&keepers)?;
            sources.extend(source.map(|source| (name, source)));
            tickers.extend(more);
        }
        // No item is sent before all instances exist.
        let runtime = running.network.handle();
        let sources = sources.into_iter().map(|(name, source)| {
            let network = running.network.clone();
            (name, runtime.spawn(collected(network, source)))
        });
        *running.sources.get_mut() = sources.collect();
        let handles = running.sources.get_mut().iter();
        running.aborts = handles.map(|(_, source)| source.abort_handle()).collect();
        let tickers = tickers.into_iter().map(|ticker| runtime.spawn(ticker));
        *running.tickers.get_mut() = tickers.collect();
        Ok(())
    }

    /// Connects an output port to an input port. Returns the sending instances, each with the
    /// number of the edge at its port.
    fn plan(
        &mut self,
        ports: &[(String, Vec<InPort>)],
        from: &End,
        to: &End,
        via: &Via,
    ) -> Result<Vec<(usize, usize)>, GraphError> {
        let mut all = ports.iter();
        let (to_name, inputs) = all
            .find(|(name, _)| *name == to.name)
            .expect("the end was found");
        let find = inputs.iter().find(|input| input.name == to.port);
        let inlet = find.ok_or_else(|| GraphError::NoPort {
            instance: to_name.clone(),
            port: to.port.clone(),
            known: inputs.iter().map(|input| input.name.to_owned()).collect(),
        })?;
        let limit = self.limit_of(to.instances.start).cloned();
        let name_of = |limit: &Limit| limit.name().to_owned();
        let mut places = Vec::new();
        for place in from.instances.clone() {
            let crosses = self.limit_of(place).map(name_of) != limit.as_ref().map(name_of);
            let crossed = crosses.then(|| (inlet.cross)(&*inlet.inlet, limit.as_ref()));
            let to_port = crossed.as_deref().unwrap_or(&*inlet.inlet);
            let Named { name, instance } = &mut self.instances[place];
            let (mut known, mut result) = (Vec::new(), None);
            instance.outs(&mut |port, outlet| {
                known.push(port.to_owned());
                if port == from.port {
                    let number = outlet.edges();
                    let fits = outlet.connect(to_port, via);
                    result = Some(if fits {
                        Ok(number)
                    } else {
                        Err(GraphError::WrongType {
                            from: format!("{name}.{port}"),
                            sends: outlet.item(),
                            to: format!("{to_name}.{}", to.port),
                            takes: inlet.item,
                        })
                    });
                }
            });
            let number = result.unwrap_or_else(|| {
                Err(GraphError::NoPort {
                    instance: name.clone(),
                    port: from.port.clone(),
                    known,
                })
            })?;
            places.push((place, number));
        }
        Ok(places)
    }

    /// Returns the numbers of the instances of this name.
    fn place(&self, name: &str) -> Result<Range<usize>, GraphError> {
        let group = self.groups.iter().find(|group| group.name == name);
        let place = match group {
            Some(group) => Some(group.shards.clone()),
            None => {
                let place = self.instances.iter().position(|it| it.name == name);
                place.map(|place| place..place + 1)
            }
        };
        place.ok_or_else(|| GraphError::NoInstance {
            name: name.to_owned(),
            known: self.instances.iter().map(|it| it.name.clone()).collect(),
        })
    }

    fn end(&self, end: &str, default: &str) -> Result<End, GraphError> {
        // The name of an instance may itself contain a dot.
        let (name, port) = match self.place(end) {
            Ok(_) => (end, default),
            Err(_) => end.rsplit_once('.').unwrap_or((end, default)),
        };
        Ok(End {
            name: name.to_owned(),
            instances: self.place(name)?,
            port: port.to_owned(),
        })
    }
}

impl Named {
    /// Checks that each port has its required edges.
    fn check(&mut self) -> Result<(), GraphError> {
        let (name, mut result) = (&self.name, Ok(()));
        self.instance.outs(&mut |port, outlet| {
            let from = || format!("{name}.{port}");
            if result.is_err() {
            } else if outlet.edges() == 0 && outlet.is_required() {
                result = Err(GraphError::Unconnected { from: from() });
            } else if outlet.edges() > 1 && !outlet.clones() {
                result = Err(GraphError::NotClone {
                    from: from(),
                    item: outlet.item(),
                });
            }
        });
        result
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
