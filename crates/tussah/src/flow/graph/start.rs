//! The start of a graph: its instances become stages.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{End, Graph, Named};
use crate::flow::edge::InPort;
use crate::flow::error::GraphError;
use crate::flow::install::Installed;
use crate::flow::keepers::Keepers;
use crate::flow::order::{cycle, slots, upstream_first};
use crate::flow::running::Running;
use crate::flow::tap::NamedEdge;
use crate::flow::via::Via;
use crate::stage::{BuildError, Network, collected};
use crate::sync::Limit;

impl Graph {
    /// Creates all instances on the current runtime, and starts the graph. If the graph cannot
    /// start, everything that this call has created is removed.
    ///
    /// # Errors
    /// Returns an error if an argument is missing, or does not fit its parameter; if a port is
    /// unknown, or a required port has no edge; or if the two ends of an edge have different types.
    /// Also returns an error if a port with several edges sends items that are not `Clone`, if a
    /// call leads to a module that blocks, or if a cycle of edges could deadlock. All of these
    /// errors are found before an instance is created. Finally, returns an error if an instance
    /// cannot be created.
    ///
    /// # Panics
    /// Panics if called outside a runtime, or if the conversion of an argument panics. If this
    /// method panics, everything that it has created is removed. A panic of a module's `init` is an
    /// error.
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
            blocking: Vec::new(),
        };
        let started = catch_unwind(AssertUnwindSafe(|| self.start_in(&mut running)));
        if !matches!(started, Ok(Ok(()))) {
            // Nothing of it remains.
            running.network.close();
        }
        let started = started.unwrap_or_else(|payload| resume_unwind(payload));
        started.map(|()| running)
    }

    /// Returns the errors of the arguments of all instances.
    #[cfg(feature = "cli")]
    pub(in crate::flow) fn wrong_args(&mut self) -> Vec<GraphError> {
        let instances = self.instances.iter_mut();
        instances
            .filter_map(|named| named.read_args().err())
            .collect()
    }

    fn start_in(mut self, running: &mut Running) -> Result<(), GraphError> {
        let edges = std::mem::take(&mut self.edges);
        let ends = (edges.iter()).map(|(from, to, _)| (&from.instances, &to.instances));
        let order = upstream_first(self.instances.len(), ends);
        let (slots, keepers) = slots(&order, |place| self.instances[place].instance.has_state());
        let queues = edges.iter().filter(|(_, _, via)| !via.is_call);
        let bounded: HashSet<usize> = queues.flat_map(|(_, to, _)| to.instances.clone()).collect();
        let instances = self.instances.iter_mut().zip(slots).enumerate();
        for (place, (named, slot)) in instances {
            named.instance.set_slot(slot);
            let at = (&*named.name, &named.position);
            let ports = named
                .instance
                .declare(&running.network, at, bounded.contains(&place))?;
            running.ports.push((named.name.clone(), ports));
        }
        for group in &self.groups {
            let ports = group.join(&running.ports[group.shards.clone()]);
            let position = &self.instances[group.shards.start].position;
            let ports = ports.map_err(|error| error.at(position))?;
            running.ports.push((group.name.clone(), ports));
        }
        let ports = running
            .ports
            .iter()
            .map(|(name, ports)| (&**name, &**ports));
        let ports: HashMap<&str, &[InPort]> = ports.collect();
        for (from, to, via) in &edges {
            let places = self.plan(ports[&*to.name], from, to, via)?;
            running.edges.push(NamedEdge {
                from: (from.name.clone(), from.port.clone()),
                to: (to.name.clone(), to.port.clone()),
                is_call: via.is_call,
                places,
            });
        }
        let instances = self.instances.iter();
        running.outputs = instances.map(|it| it.instance.ports()).collect();
        running.blocking = self.blocking();
        for (name, ports) in &mut running.ports {
            let limit = self.place(name).ok().and_then(|it| self.limit_of(it.start));
            if limit.is_some() {
                for port in ports {
                    port.entry = Some((port.cross)(&*port.inlet, limit));
                }
            }
        }
        self.check(&edges)?;
        running.keepers = Arc::new(Keepers::new(keepers));
        self.install(running)
    }

    /// Makes all instances, and then starts those that send items by themselves.
    fn install(self, running: &mut Running) -> Result<(), GraphError> {
        // No item is sent before all instances exist, so the edges of all of them can be treated
        // together. A graph may have thousands of shards.
        running.network.defer_back_rooms();
        let (mut sources, mut tickers) = (Vec::new(), Vec::new());
        for named in self.instances {
            let installed = named.instance.install(&running.keepers);
            let Installed {
                source,
                tickers: more,
            } = installed.map_err(|error| GraphError::from(error).at(&named.position))?;
            sources.extend(source.map(|source| (named.name, source)));
            tickers.extend(more);
        }
        running.network.set_back_rooms();
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

    /// Returns the names of the instances that block their OS threads.
    fn blocking(&self) -> Vec<String> {
        let blocking = self.instances.iter().filter(|it| it.instance.blocks());
        blocking.map(|it| it.name.clone()).collect()
    }

    /// Reads the arguments, and checks that each port has its required edges, that no call leads to
    /// an instance that blocks, and that no cycle of edges can deadlock. The network checks calls
    /// and cycles, too, but only after it has made some of the instances. If all is well, decides
    /// which items wait for room at ports `dropped`.
    fn check(&mut self, edges: &[(End, End, Via)]) -> Result<(), GraphError> {
        for (place, named) in self.instances.iter_mut().enumerate() {
            let open = self.open.iter();
            let open = open.filter(|end| end.instances.contains(&place));
            let open: Vec<&str> = open.map(|end| &*end.port).collect();
            named.check(&open)?;
        }
        for (_, to, _) in edges.iter().filter(|(_, _, via)| via.is_call) {
            let mut called = self.instances[to.instances.clone()].iter();
            if let Some(blocks) = called.find(|named| named.instance.blocks()) {
                return Err(GraphError::Stage(BuildError::Blocks {
                    stage: blocks.name.clone(),
                    position: blocks.position.to_string(),
                }));
            }
        }
        let waiting = edges.iter().filter(|(_, _, via)| via.waits());
        let ends = waiting.map(|(from, to, _)| (&from.instances, &to.instances));
        match cycle(self.instances.len(), ends) {
            None => {
                self.let_dropped_wait(edges);
                Ok(())
            }
            Some(path) => {
                let names = path.iter().map(|&place| self.instances[place].name.clone());
                let path = names.collect();
                Err(GraphError::Stage(BuildError::Cycle { path }))
            }
        }
    }

    /// Connects an output port to an input port. Returns the sending instances, each with the
    /// number of the edge at its port.
    fn plan(
        &mut self,
        inputs: &[InPort],
        from: &End,
        to: &End,
        via: &Via,
    ) -> Result<Vec<(usize, usize)>, GraphError> {
        let find = inputs.iter().find(|input| input.name == to.port);
        let inlet = find.ok_or_else(|| GraphError::NoPort {
            instance: to.name.clone(),
            port: to.port.clone(),
            known: inputs.iter().map(|input| input.name.to_owned()).collect(),
        })?;
        let limit = self.limit_of(to.instances.start).cloned();
        let limit_name = limit.as_ref().map(Limit::name);
        let mut places = Vec::new();
        for place in from.instances.clone() {
            let crosses = self.limit_of(place).map(Limit::name) != limit_name;
            let crossed = crosses.then(|| (inlet.cross)(&*inlet.inlet, limit.as_ref()));
            let to_port = crossed.as_deref().unwrap_or(&*inlet.inlet);
            let Named { name, instance, .. } = &mut self.instances[place];
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
                            to: format!("{}.{}", to.name, to.port),
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
}

impl Named {
    /// Reads the arguments, and checks that each port has its required edges. The ports in `open`
    /// need none.
    fn check(&mut self, open: &[&str]) -> Result<(), GraphError> {
        self.read_args()?;
        let (name, mut result) = (&self.name, Ok(()));
        self.instance.outs(&mut |port, outlet| {
            let from = || format!("{name}.{port}");
            if result.is_err() {
            } else if outlet.edges() == 0 && outlet.is_required() && !open.contains(&port) {
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

    fn read_args(&mut self) -> Result<(), GraphError> {
        let read = self.instance.read_args();
        read.map_err(|why| GraphError::instance(&self.name, why).at(&self.position))
    }
}
