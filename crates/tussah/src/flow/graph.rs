//! Graphs: instances and edges, before and while they run.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::args::Args;
use super::edge::{InPort, Inlet, Push};
use super::error::GraphError;
use super::flows::{Flow, Keepers};
use super::install::{Installed, Instance, Planned};
use super::module::Module;
use super::via::Via;
use crate::stage::observe::StageStats;
use crate::stage::{Network, collected};
use crate::{AbortHandle, JoinHandle};

/// A graph that does not run yet: instances of modules, and the edges between their ports.
pub struct Graph {
    name: String,
    instances: Vec<Named>,
    edges: Vec<(End, End, Via)>,
}

struct Named {
    name: String,
    instance: Box<dyn Instance>,
}

/// A port of an instance.
#[derive(Clone)]
struct End {
    instance: usize,
    port: String,
}

impl Graph {
    /// Creates a graph without instances.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            instances: Vec::new(),
            edges: Vec::new(),
        }
    }

    /// Adds an instance of a module. It is made when the graph starts.
    ///
    /// # Errors
    /// If the name is taken, or an argument has no parameter.
    pub fn add<M: Module>(&mut self, name: &str, args: Args) -> Result<(), GraphError> {
        if self.place(name).is_ok() {
            return Err(GraphError::NameTaken {
                name: name.to_owned(),
            });
        }
        args.check(M::PARAMS).map_err(|why| GraphError::Instance {
            instance: name.to_owned(),
            why,
        })?;
        self.instances.push(Named {
            name: name.to_owned(),
            instance: Box::new(Planned::<M>::new(args)),
        });
        Ok(())
    }

    /// Adds an edge by a queue. An end is the name of an instance, with a point and the name of a
    /// port if that is not the default: `out` at the beginning of the edge, `run` at its end.
    ///
    /// # Errors
    /// If there is no such instance. Ports and types are checked when the graph starts.
    pub fn connect(&mut self, from: &str, to: &str) -> Result<(), GraphError> {
        self.connect_via(from, to, Via::default())
    }

    /// Adds an edge as [`connect`](Self::connect) does, with a way of its own.
    ///
    /// # Errors
    /// The same as for [`connect`](Self::connect).
    pub fn connect_via(&mut self, from: &str, to: &str, via: Via) -> Result<(), GraphError> {
        let edge = (self.end(from, "out")?, self.end(to, "run")?, via);
        self.edges.push(edge);
        Ok(())
    }

    /// Sets the time within which an instance should handle an item, from its arrival to its end.
    /// Items that would take longer are rejected, and go to the port `dropped`; see
    /// [`StageBuilder::target`](crate::stage::StageBuilder::target).
    ///
    /// # Errors
    /// If there is no such instance.
    pub fn target(&mut self, instance: &str, target: Duration) -> Result<(), GraphError> {
        let place = self.place(instance)?;
        self.instances[place].instance.set_target(target);
        Ok(())
    }

    /// Makes all instances on the caller's runtime, and starts the graph. If it cannot, nothing of
    /// it is left.
    ///
    /// # Errors
    /// If a port is unknown or not connected, the two ends of an edge have different types, a cycle
    /// of edges could stand still, or an instance cannot be made.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn start(self) -> Result<Running, GraphError> {
        let network = Network::new(self.name.clone());
        // Closes the stages if the graph cannot start.
        let mut running = Running {
            network,
            ports: Vec::new(),
            sources: Mutex::default(),
            aborts: Vec::new(),
            tickers: Mutex::default(),
            keepers: Arc::default(),
        };
        match self.start_in(&mut running) {
            Ok(()) => Ok(running),
            Err(error) => {
                running.network.close();
                Err(error)
            }
        }
    }

    fn start_in(mut self, running: &mut Running) -> Result<(), GraphError> {
        for Named { name, instance } in &mut self.instances {
            let ports = instance.declare(&running.network, name)?;
            running.ports.push((name.clone(), ports));
        }
        for (from, to, via) in std::mem::take(&mut self.edges) {
            self.plan(&running.ports, &from, &to, &via)?;
        }
        for named in &mut self.instances {
            named.check()?;
        }
        let keepers = self.instances.iter().filter(|it| it.instance.has_state());
        let keepers = Arc::new(Keepers::new(keepers.count()));
        running.keepers = Arc::clone(&keepers);
        let (mut slot, mut sources, mut tickers) = (0, Vec::new(), Vec::new());
        for Named { instance, .. } in self.instances {
            let has_state = instance.has_state();
            let Installed { source, ticker } = instance.install(&keepers, slot)?;
            slot += usize::from(has_state);
            sources.extend(source);
            tickers.extend(ticker);
        }
        // Nothing flows before all instances are there.
        let runtime = running.network.handle();
        let sources = sources.into_iter().map(|source| {
            let network = running.network.clone();
            runtime.spawn(collected(network, source))
        });
        *running.sources.get_mut() = sources.collect();
        let handles = running.sources.get_mut().iter();
        running.aborts = handles.map(JoinHandle::abort_handle).collect();
        let tickers = tickers.into_iter().map(|ticker| runtime.spawn(ticker));
        *running.tickers.get_mut() = tickers.collect();
        Ok(())
    }

    /// Connects an output port to an input port.
    fn plan(
        &mut self,
        ports: &[(String, Vec<InPort>)],
        from: &End,
        to: &End,
        via: &Via,
    ) -> Result<(), GraphError> {
        let (to_name, inputs) = &ports[to.instance];
        let find = inputs.iter().find(|input| input.name == to.port);
        let inlet = find.ok_or_else(|| GraphError::NoPort {
            instance: to_name.clone(),
            port: to.port.clone(),
            known: inputs.iter().map(|input| input.name.to_owned()).collect(),
        })?;
        let Named { name, instance } = &mut self.instances[from.instance];
        let (mut known, mut result) = (Vec::new(), None);
        instance.outs(&mut |port, outlet| {
            known.push(port.to_owned());
            if port == from.port {
                let fits = outlet.connect(&*inlet.inlet, via);
                result = Some(if fits {
                    Ok(())
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
        result.unwrap_or_else(|| {
            Err(GraphError::NoPort {
                instance: name.clone(),
                port: from.port.clone(),
                known,
            })
        })
    }

    fn place(&self, name: &str) -> Result<usize, GraphError> {
        let place = self.instances.iter().position(|it| it.name == name);
        place.ok_or_else(|| GraphError::NoInstance {
            name: name.to_owned(),
            known: self.instances.iter().map(|it| it.name.clone()).collect(),
        })
    }

    fn end(&self, end: &str, default: &str) -> Result<End, GraphError> {
        // The name of an instance may have a point itself.
        if let Ok(instance) = self.place(end) {
            return Ok(End {
                instance,
                port: default.to_owned(),
            });
        }
        let (instance, port) = end.rsplit_once('.').unwrap_or((end, default));
        Ok(End {
            instance: self.place(instance)?,
            port: port.to_owned(),
        })
    }
}

impl Named {
    /// Checks that each port has the edges that it needs.
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

/// A graph that runs. Dropping this does not stop it; [`drain`](Self::drain) and
/// [`stop`](Self::stop) do, and so does the end of the runtime.
pub struct Running {
    network: Network,
    ports: Vec<(String, Vec<InPort>)>,
    /// The threads that produce items or ticks, until they are stopped.
    sources: Mutex<Vec<JoinHandle<()>>>,
    aborts: Vec<AbortHandle>,
    tickers: Mutex<Vec<JoinHandle<()>>>,
    keepers: Arc<Keepers>,
}

impl Running {
    /// Returns the network whose stages the instances are.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Returns the statistics of an instance.
    ///
    /// # Errors
    /// If there is no such instance.
    pub fn stats(&self, instance: &str) -> Result<StageStats, GraphError> {
        let all = self.network.stats();
        let found = all.into_iter().find(|stats| &*stats.name == instance);
        found.ok_or_else(|| self.no_instance(instance))
    }

    /// Returns the entry to an input port, for code outside of the graph.
    ///
    /// # Errors
    /// If there is no such port, or it takes items of another type.
    pub fn input<T: Send + 'static>(&self, end: &str) -> Result<Input<T>, GraphError> {
        let whole = self.ports.iter().find(|(name, _)| name == end);
        let (instance, port) = match whole {
            Some((name, _)) => (name.as_str(), "run"),
            None => end.rsplit_once('.').unwrap_or((end, "run")),
        };
        let mut all = self.ports.iter();
        let (_, ports) = all
            .find(|(name, _)| name == instance)
            .ok_or_else(|| self.no_instance(instance))?;
        let found = ports.iter().find(|it| it.name == port);
        let found = found.ok_or_else(|| GraphError::NoPort {
            instance: instance.to_owned(),
            port: port.to_owned(),
            known: ports.iter().map(|it| it.name.to_owned()).collect(),
        })?;
        let inlet: &dyn Any = &*found.inlet;
        match inlet.downcast_ref::<Arc<dyn Inlet<T>>>() {
            Some(inlet) => Ok(Input(inlet.outside())),
            None => Err(GraphError::WrongType {
                from: "the caller".to_owned(),
                sends: std::any::type_name::<T>(),
                to: format!("{instance}.{port}"),
                takes: found.item,
            }),
        }
    }

    /// Waits until all sources have ended, the flows that they have closed have ended, and all
    /// items have been handled. Then it closes the graph.
    ///
    /// Flows that are still open do not get an `end`. The same is true of flows that a module
    /// closes while the graph drains. Alarms do not go off any more, and items that an edge delays
    /// end as [shut down](crate::stage::Reason::ShutDown).
    ///
    /// If an item of a closed flow goes round in a cycle forever, this does not end.
    ///
    /// # Cancellation
    /// If the future is dropped, sources that have not ended continue, and another call does not
    /// wait for them.
    pub async fn drain(&self) {
        let sources = std::mem::take(&mut *self.sources.lock());
        for source in sources {
            // A source that panicked has ended, too; the runtime has reported the panic.
            let _ = source.await;
        }
        self.keepers.settled().await;
        for ticker in self.tickers.lock().drain(..) {
            ticker.abort();
        }
        self.network.drain().await;
    }

    /// Stops the sources, waits until all items have been handled, and closes the graph.
    pub async fn stop(&self) {
        self.abort_sources();
        self.drain().await;
    }

    /// Stops the sources; a call of [`drain`](Self::drain) may already wait for them.
    pub(crate) fn abort_sources(&self) {
        for source in &self.aborts {
            source.abort();
        }
    }

    fn no_instance(&self, name: &str) -> GraphError {
        GraphError::NoInstance {
            name: name.to_owned(),
            known: self.ports.iter().map(|(name, _)| name.clone()).collect(),
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("network", &self.network)
            .finish_non_exhaustive()
    }
}

/// The entry to an input port. It is cheap to clone.
pub struct Input<T>(Arc<dyn Push<T>>);

impl<T> Clone for Input<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Send> Input<T> {
    /// Sends an item outside of any flow, and waits until it has room.
    pub async fn send(&self, item: T) {
        if let Some(wait) = self.0.push(Flow::default(), item) {
            wait.await;
        }
    }
}

impl<T> fmt::Debug for Input<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").finish_non_exhaustive()
    }
}
