//! A running graph.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tussah_core::quietly;

use super::edge::{InPort, Inlet, Push};
use super::error::GraphError;
use super::flows::Flow;
use super::keepers::Keepers;
use super::tap::{NamedEdge, Ports, Shows, Tap};
use crate::stage::observe::StageStats;
use crate::stage::{Network, Reason};
use crate::time::timeout;
use crate::{AbortHandle, JoinHandle};

/// The name of a source, and the thread that produces its items.
type Source = (String, JoinHandle<Result<(), String>>);

/// Bound, in time: the maximum time for which [`Running::stop`] waits for items in transit.
const STOP: Duration = Duration::from_secs(1);

/// A running graph. Dropping this value does not stop the graph; [`drain`](Self::drain),
/// [`stop`](Self::stop) and the end of the runtime do.
pub struct Running {
    pub(super) network: Network,
    pub(super) ports: Vec<(String, Vec<InPort>)>,
    pub(super) edges: Vec<NamedEdge>,
    /// The output ports of each instance.
    pub(super) outputs: Vec<Option<Arc<dyn Ports>>>,
    /// The threads that produce items or ticks, until they are stopped.
    pub(super) sources: crate::sync::Mutex<Vec<Source>>,
    pub(super) aborts: Vec<AbortHandle>,
    /// The sources that have failed.
    pub(super) failures: Mutex<Vec<GraphError>>,
    pub(super) tickers: Mutex<Vec<JoinHandle<()>>>,
    pub(super) keepers: Arc<Keepers>,
    /// The names of the instances that block their OS threads.
    pub(super) blocking: Vec<String>,
}

impl Running {
    /// Returns the network that contains the stages of the graph's instances.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Returns the statistics of an instance. Each shard has its own statistics, under a name such
    /// as `pages#0`.
    ///
    /// # Errors
    /// Returns an error if the instance does not exist, or if it has shards.
    pub fn stats(&self, instance: &str) -> Result<StageStats, GraphError> {
        let all = self.network.stats();
        let is_shard = |name: &str| {
            let shard = name.strip_prefix(instance);
            shard.is_some_and(|number| number.starts_with('#'))
        };
        let shards = all.iter().map(|stats| &*stats.name);
        let shards: Vec<_> = shards.filter(|name| is_shard(name)).collect();
        if !shards.is_empty() {
            return Err(GraphError::Shards {
                instance: instance.to_owned(),
                shards: shards.into_iter().map(str::to_owned).collect(),
            });
        }
        let found = all.into_iter().find(|stats| &*stats.name == instance);
        found.ok_or_else(|| self.no_instance(instance))
    }

    /// Returns a handle through which code outside the graph sends items to an input port.
    ///
    /// # Errors
    /// Returns an error if the port does not exist, or if it takes items of another type.
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
        let inlet: &dyn Any = &**found.entry.as_ref().unwrap_or(&found.inlet);
        match inlet.downcast_ref::<Arc<dyn Inlet<T>>>() {
            Some(inlet) => Ok(Input {
                edge: inlet.outside(),
                keepers: Arc::clone(&self.keepers),
            }),
            None => Err(GraphError::WrongType {
                from: "the caller".to_owned(),
                sends: std::any::type_name::<T>(),
                to: format!("{instance}.{port}"),
                takes: found.item,
            }),
        }
    }

    /// Returns the names of the edges, in the form `a -> b.port`.
    #[must_use]
    pub fn edges(&self) -> Vec<String> {
        self.edges.iter().map(ToString::to_string).collect()
    }

    /// Taps an edge: the returned [`Tap`] shows the edge's items, from this call until the tap is
    /// dropped.
    ///
    /// The name of an edge has the form `a -> b.port`, as in Weave. If an output port has only one
    /// edge, the name of that port, such as `a.out`, also identifies the edge. An edge from or to
    /// several shards counts as one edge. The tap shows an item when the item is sent, even if the
    /// receiver cannot accept it at that time. The sending instance formats the items, with their
    /// `Display` or `Debug` implementation.
    ///
    /// # Errors
    /// Returns an error if there is no such edge, or if several edges have this name.
    ///
    /// # Examples
    /// ```
    /// use tussah::flow::{Args, Graph};
    /// use tussah::modules::Logger;
    ///
    /// # let runtime = tussah::Runtime::builder().workers(1).build().expect("a runtime");
    /// # runtime.block_on(async {
    /// let mut graph = Graph::new("tapped");
    /// graph.add::<Logger<u64>>("first", Args::new())?;
    /// graph.add::<Logger<u64>>("second", Args::new())?;
    /// graph.connect("first", "second")?;
    /// let running = graph.start()?;
    /// let mut tap = running.tap("first -> second")?;
    /// running.input("first")?.send(7_u64).await;
    /// assert!(tap.next().await.is_some());
    /// # Ok::<(), tussah::flow::GraphError>(())
    /// # }).expect("the graph can be made");
    /// ```
    pub fn tap(&self, edge: &str) -> Result<Tap, GraphError> {
        let found = self.edge(edge)?;
        let outputs = self.outputs.iter().flatten();
        let shows: Shows = outputs.flat_map(|ports| ports.shows()).collect();
        let (tap, end) = Tap::new(&self.keepers);
        for &(place, number) in &found.places {
            if let Some(ports) = &self.outputs[place] {
                ports.each(&mut |name, outlet| {
                    if name == found.from.1 {
                        outlet.tap(number, &end, &shows);
                    }
                });
            }
        }
        Ok(tap)
    }

    /// Waits until all sources have ended, all items have been handled, and all closed flows have
    /// ended. Then closes the graph. A source is an instance whose module has `start`.
    ///
    /// From the start of this call, items sent through an [`Input`] are dropped with the reason
    /// [`ShutDown`](crate::stage::Reason::ShutDown). The method also waits for items on edges with
    /// a delay. The flows of a source without `run` are closed when the source ends. If any other
    /// flow is still open when the graph closes, `end` is not called for that flow, and its alarm
    /// no longer goes off.
    ///
    /// The future never completes in the following cases; use [`drain_within`](Self::drain_within)
    /// or [`stop`](Self::stop) instead:
    ///
    /// - An item circulates in a cycle forever.
    /// - A module waits forever, or leaves items in its batch.
    /// - Each call to `wake` for a closed flow sets the alarm again.
    /// - An instance is paused.
    ///
    /// # Cancellation
    /// If the future is dropped, the sources continue, and another call can wait for them.
    pub async fn drain(&self) {
        self.end_sources().await;
        self.quiet().await;
        self.close().await;
    }

    /// Returns the errors of the sources that have failed or panicked. A failure appears in the
    /// list only after a [drain](Self::drain) has noticed it.
    #[must_use]
    pub fn failures(&self) -> Vec<GraphError> {
        self.failures.lock().clone()
    }

    /// Drains the graph. If draining takes longer than `time`, stops the sources, and drops the
    /// items that are listed below.
    ///
    /// After `time` has passed, these items are dropped with the reason
    /// [`ShutDown`](crate::stage::Reason::ShutDown): items that circulate in a cycle, delayed
    /// items, items that a method leaves in its batch, and items that a waiting `async fn` is
    /// handling. If the item of a waiting `async fn` is dropped, so is the future of the function.
    /// Pending alarms of flows no longer go off; such a flow may end with a call to `end`.
    ///
    /// An `async fn` that waits only for its receivers to accept its output continues, because the
    /// receivers close later. If an `async fn` waits for anything else after `time` has passed, its
    /// item is dropped with the reason `ShutDown`, even if the function has already sent part of
    /// its output.
    ///
    /// If a function that is not `async` has started, this method waits until the function has
    /// returned and the receivers have accepted all of its output. If such a function blocks its OS
    /// thread forever, or never stops sending items, the future of this method never completes.
    pub async fn drain_within(&self, time: Duration) {
        if timeout(time, self.drain()).await.is_ok() {
            return;
        }
        self.abort_sources();
        self.keepers.halt();
        self.end_sources().await;
        // Delayed items end here, while their receivers can still send them to `dropped`. One that
        // is being sent may wait for a paused receiver.
        self.network.resume();
        self.keepers.undelayed().await;
        self.close().await;
    }

    /// Stops the sources, and then drains the graph as [`drain_within`](Self::drain_within) does,
    /// with a limit of one second.
    pub async fn stop(&self) {
        self.stop_within(STOP).await;
    }

    /// Stops the sources, and then drains the graph as [`drain_within`](Self::drain_within) does.
    ///
    /// # Cancellation
    /// If the future is dropped, the sources remain stopped, and another call can drain the
    /// remaining items.
    pub async fn stop_within(&self, time: Duration) {
        self.abort_sources();
        self.drain_within(time).await;
    }

    /// Closes the graph, upstream first.
    async fn close(&self) {
        self.network.drain().await;
        self.keepers.halt();
        let graph = self.network.name();
        for (port, items) in self.keepers.take_lost() {
            tracing::warn!(
                target: "tussah", graph, port, items,
                "items were lost: the receiver of the port had no room"
            );
        }
    }

    /// Waits until all sources have ended. No more items then arrive from outside.
    async fn end_sources(&self) {
        self.keepers.drain();
        // A call that is cancelled leaves the other sources to the next call.
        let mut sources = self.sources.lock().await;
        while let Some((name, source)) = sources.last_mut() {
            let why = match source.await {
                Ok(Ok(())) => None,
                Ok(Err(why)) => Some(why),
                Err(error) => {
                    let panicked = error.is_panic();
                    // The destructor of the payload may panic.
                    quietly(|| drop(error));
                    // Otherwise it was stopped.
                    panicked.then(|| "it panicked".to_owned())
                }
            };
            let instance = std::mem::take(name);
            sources.pop();
            let failure = why.map(|why| GraphError::Source { instance, why });
            self.failures.lock().extend(failure);
        }
        for ticker in self.tickers.lock().drain(..) {
            ticker.abort();
        }
    }

    /// Waits until nothing is in transit: all stages were empty twice in a row, and nothing arrived
    /// in between.
    async fn quiet(&self) {
        let mut last = None;
        loop {
            self.keepers.settled().await;
            self.network.settled().await;
            let stats = self.network.stats();
            let arrived: u64 = stats.iter().map(|stats| stats.arrived).sum();
            if last == Some(arrived) && self.keepers.are_settled() {
                return;
            }
            last = Some(arrived);
        }
    }

    /// Stops the sources; a call of [`drain`](Self::drain) may already wait for them.
    pub(crate) fn abort_sources(&self) {
        for source in &self.aborts {
            source.abort();
        }
    }

    /// Returns the only edge of this name.
    ///
    /// # Errors
    /// Returns an error if there is no such edge, or if several edges have this name.
    pub(super) fn edge(&self, edge: &str) -> Result<&NamedEdge, GraphError> {
        let found = self.edges.iter().filter(|it| it.is_called(edge));
        match found.collect::<Vec<_>>().as_slice() {
            [found] => Ok(*found),
            [] => Err(GraphError::NoEdge {
                edge: edge.to_owned(),
                known: self.edges(),
            }),
            several => Err(GraphError::SeveralEdges {
                from: edge.to_owned(),
                edges: several.iter().map(ToString::to_string).collect(),
            }),
        }
    }

    /// Returns the number of an instance.
    ///
    /// # Errors
    /// Returns an error if the instance does not exist, or if it has shards.
    pub(super) fn single(&self, name: &str) -> Result<usize, GraphError> {
        self.stats(name)?;
        let mut instances = self.ports.iter();
        let place = instances.position(|(instance, _)| instance == name);
        place.ok_or_else(|| self.no_instance(name))
    }

    pub(super) fn no_instance(&self, name: &str) -> GraphError {
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

/// A handle that sends items to an input port of a running graph. An `Input` is cheap to clone.
pub struct Input<T> {
    edge: Arc<dyn Push<T>>,
    keepers: Arc<Keepers>,
}

impl<T> Clone for Input<T> {
    fn clone(&self) -> Self {
        Self {
            edge: Arc::clone(&self.edge),
            keepers: Arc::clone(&self.keepers),
        }
    }
}

impl<T: Send> Input<T> {
    /// Waits until the receiver can accept an item, and sends the item. The item belongs to no
    /// flow. If the graph is draining, the item is dropped with the reason
    /// [`ShutDown`](Reason::ShutDown).
    pub async fn send(&self, item: T) {
        if self.keepers.is_draining() {
            let wait = self.edge.end(Flow::default(), item, Reason::ShutDown);
            if let Some(wait) = wait {
                wait.await;
            }
            return;
        }
        if let Some(wait) = self.edge.push(Flow::default(), item) {
            wait.await;
        }
    }
}

impl<T> fmt::Debug for Input<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").finish_non_exhaustive()
    }
}
