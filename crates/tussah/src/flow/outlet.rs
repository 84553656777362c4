//! Output ports: the edges that begin at one, and async calls that send there.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::edge::{Edge, Inlet, Wait};
use super::flows::{Flow, Key};
use super::keepers::{Keepers, Sends};
use super::open_flows::{FlowBounds, OpenFlows};
use super::out::AsyncOut;
use super::tap::{Shows, TapEnd, show_of};
use super::via::Via;
use super::way::port_number;
use crate::stage::{BuildError, Edges};

/// The output ports of a module: a nested tuple.
pub trait Outs: Send + Sync + 'static {
    /// Calls `f` with each port and its name.
    fn each(&mut self, f: &mut dyn FnMut(&'static str, &mut dyn AnyOutlet));

    /// Calls `f` with each port and its name, even while the ports are in use.
    fn look(&self, f: &mut dyn FnMut(&'static str, &dyn AnyOutlet));

    /// Returns the callee of the port with this number, if the port has exactly one edge, and this
    /// edge is a call without a tap.
    fn callee(&self, _port: u64) -> Option<&dyn Any> {
        None
    }

    /// Ends the flows that have been idle for too long. Returns the earliest time at which the
    /// ports may have to end another flow.
    fn end_idle(&self) -> Option<Instant>;
}

impl Outs for () {
    fn each(&mut self, _f: &mut dyn FnMut(&'static str, &mut dyn AnyOutlet)) {}

    fn look(&self, _f: &mut dyn FnMut(&'static str, &dyn AnyOutlet)) {}

    fn end_idle(&self) -> Option<Instant> {
        None
    }
}

impl<T: Send + 'static, R: Outs> Outs for (Outlet<T>, R) {
    fn each(&mut self, f: &mut dyn FnMut(&'static str, &mut dyn AnyOutlet)) {
        f(self.0.name, &mut self.0);
        self.1.each(f);
    }

    fn look(&self, f: &mut dyn FnMut(&'static str, &dyn AnyOutlet)) {
        f(self.0.name, &self.0);
        self.1.look(f);
    }

    fn callee(&self, port: u64) -> Option<&dyn Any> {
        if self.0.number != port {
            return self.1.callee(port);
        }
        let edge = self.0.edge().filter(|edge| !edge.taps.are_any());
        edge?.callee()
    }

    fn end_idle(&self) -> Option<Instant> {
        let (ended, next) = self.0.flows.lock().take_idle();
        ended.into_iter().for_each(Flow::close);
        next.into_iter().chain(self.1.end_idle()).min()
    }
}

/// An output port whose item type is erased.
pub trait AnyOutlet {
    /// Returns the name of the item type.
    fn item(&self) -> &'static str;

    /// Adds an edge to the input port `inlet`, an `Arc<dyn Inlet<T>>`. Returns false if the input
    /// port takes items of a different type.
    fn connect(&mut self, inlet: &dyn Any, via: &Via) -> bool;

    /// Returns the number of edges.
    fn edges(&self) -> usize;

    /// Returns whether the items can be cloned, as a port with more than one edge requires.
    fn clones(&self) -> bool;

    /// Returns whether the port must have an edge.
    fn is_required(&self) -> bool;

    /// Adds a tap to the edge with this number. `shows` may contain a function that renders the
    /// items.
    #[doc(hidden)]
    fn tap(&self, edge: usize, end: &TapEnd, shows: &Shows);

    /// Sets the name of the instance, for messages, and its bounds on the flows that this port
    /// opens.
    #[doc(hidden)]
    fn set_owner(&mut self, owner: &str, bounds: FlowBounds);

    /// Lets unhandled items wait for room at the receivers of this port. No cycle of waits may
    /// arise.
    #[doc(hidden)]
    fn set_waits(&mut self);

    /// Creates the edges. Each flow that this port opens has a place for the state of each instance
    /// in `keepers`.
    ///
    /// # Errors
    /// Returns an error if an edge cannot be created.
    #[doc(hidden)]
    fn open(&mut self, edges: &Edges<'_>, keepers: &Arc<Keepers>) -> Result<(), BuildError>;
}

/// An output port.
pub struct Outlet<T> {
    pub(super) name: &'static str,
    /// The number of the name in the types of fused chains.
    number: u64,
    pub(super) planned: Vec<(Arc<dyn Inlet<T>>, Via)>,
    pub(super) edges: Arc<[Edge<T>]>,
    /// The instance, for messages.
    pub(super) owner: Arc<str>,
    /// True if an unhandled item waits for room at the receivers of this port.
    pub(super) waits: bool,
    pub(super) clone: Option<fn(&T) -> T>,
    required: bool,
    pub(super) keepers: Arc<Keepers>,
    flows: Mutex<OpenFlows>,
}

impl<T: Send + 'static> Outlet<T> {
    /// Creates a port. A port with more than one edge needs `clone`.
    #[must_use]
    pub fn new(name: &'static str, required: bool, clone: Option<fn(&T) -> T>) -> Self {
        Self {
            name,
            number: port_number(name),
            planned: Vec::new(),
            edges: Arc::default(),
            owner: Arc::default(),
            waits: false,
            clone,
            required,
            keepers: Arc::default(),
            flows: Mutex::default(),
        }
    }

    /// Returns whether the port has an edge.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        !self.edges.is_empty()
    }

    /// Returns the edge, if there is exactly one.
    #[inline(always)]
    pub(super) fn edge(&self) -> Option<&Edge<T>> {
        match &*self.edges {
            [edge] => Some(edge),
            _ => None,
        }
    }

    /// Returns this port for use in one call to an `async fn` that handles an item of this flow.
    #[inline]
    pub fn port<'a>(&'a self, flow: &'a Flow, sends: &'a Sends) -> Port<'a, T> {
        Port {
            outlet: self,
            flow,
            sends,
        }
    }

    /// Polls the future of an async call to completion. Drops the future if the graph halts, but
    /// not while the call is waiting for a receiver to accept an item.
    #[inline]
    pub async fn unless_cancelled<F: Future>(&self, sends: &Sends, call: F) -> Option<F::Output> {
        self.keepers.unless_cancelled(sends, call).await
    }

    /// Sends an item, and passes the waits for room to `held`.
    #[inline(always)]
    pub(super) fn put<'a>(&'a self, flow: &Flow, item: T, mut held: impl FnMut(Wait<'a>)) {
        let Some(edge) = self.edge() else {
            return self.put_all(flow, item, &mut held);
        };
        if let Some(wait) = edge.push(flow, item) {
            held(wait);
        }
    }

    #[inline(never)]
    fn put_all<'a>(&'a self, flow: &Flow, item: T, held: &mut dyn FnMut(Wait<'a>)) {
        let Some((last, others)) = self.edges.split_last() else {
            return;
        };
        for edge in others {
            let clone = self.clone.expect("items of several edges can be cloned");
            edge.push(flow, clone(&item)).map(&mut *held);
        }
        last.push(flow, item).map(held);
    }

    /// Sends an item. If there is no room for it, returns a future that waits for room.
    #[inline(always)]
    pub(super) fn push(&self, flow: &Flow, item: T) -> Option<Wait<'_>> {
        match self.edge() {
            Some(edge) => edge.push(flow, item),
            None => self.push_all(flow, item),
        }
    }

    #[inline(never)]
    fn push_all(&self, flow: &Flow, item: T) -> Option<Wait<'_>> {
        let mut waits = Vec::new();
        self.put_all(flow, item, &mut |wait| waits.push(wait));
        let all = |waits| -> Wait<'_> {
            Box::pin(async move {
                for wait in waits {
                    wait.await;
                }
            })
        };
        (!waits.is_empty()).then(|| all(waits))
    }

    /// Sends an item, and waits until there is room for it.
    pub(super) async fn deliver(&self, flow: &Flow, item: T) {
        if let Some(wait) = self.push(flow, item) {
            wait.await;
        }
    }

    /// Returns the flow of this name, which begins here if it has not begun, for an item that is
    /// sent for an item of the flow `of`.
    pub(super) fn flow(&self, key: Key, of: &Flow) -> Flow {
        let (flow, ended) = self.flows.lock().begin(key, &self.keepers);
        // Under no lock, because the state of the flow may be dropped with it.
        ended.into_iter().for_each(Flow::close);
        flow.inside(of)
    }

    pub(super) fn close(&self, key: &Key) {
        let flow = self.flows.lock().take(key);
        flow.into_iter().for_each(Flow::close);
    }

    /// Returns all open flows, for items that are sent for an item of the flow `of`.
    pub(super) fn flows(&self, of: &Flow) -> Vec<Flow> {
        let all = self.flows.lock().all();
        all.into_iter().map(|flow| flow.inside(of)).collect()
    }
}

impl<T: Send + 'static> AnyOutlet for Outlet<T> {
    fn item(&self) -> &'static str {
        std::any::type_name::<T>()
    }

    fn connect(&mut self, inlet: &dyn Any, via: &Via) -> bool {
        let Some(inlet) = inlet.downcast_ref::<Arc<dyn Inlet<T>>>() else {
            return false;
        };
        self.planned.push((Arc::clone(inlet), via.clone()));
        true
    }

    fn edges(&self) -> usize {
        self.planned.len()
    }

    fn clones(&self) -> bool {
        self.clone.is_some()
    }

    fn is_required(&self) -> bool {
        self.required
    }

    fn tap(&self, edge: usize, end: &TapEnd, shows: &Shows) {
        if let Some(edge) = self.edges.get(edge) {
            edge.taps.add(end.clone(), show_of(shows));
        }
    }

    fn set_owner(&mut self, owner: &str, bounds: FlowBounds) {
        self.owner = owner.into();
        self.flows.get_mut().set_bounds(bounds);
    }

    fn set_waits(&mut self) {
        self.waits = true;
    }

    fn open(&mut self, edges: &Edges<'_>, keepers: &Arc<Keepers>) -> Result<(), BuildError> {
        self.keepers = Arc::clone(keepers);
        let planned = self.planned.iter();
        let all = planned.map(|(inlet, via)| inlet.connect(edges, via, keepers));
        self.edges = all.collect::<Result<_, _>>()?;
        Ok(())
    }
}

/// An output port during a call to an `async fn`.
pub struct Port<'a, T> {
    outlet: &'a Outlet<T>,
    flow: &'a Flow,
    sends: &'a Sends,
}

impl<'a, T: Send + 'static> Port<'a, T> {
    /// Sends an item, and returns a future that waits for room if there is none.
    #[inline(always)]
    fn put(&self, flow: &Flow, item: T) -> impl Future<Output = ()> + Send + use<'a, T> {
        let (wait, sends) = (self.outlet.push(flow, item), self.sends);
        async move {
            if let Some(wait) = wait {
                let _waits = sends.wait();
                wait.await;
            }
        }
    }
}

impl<T: Send + 'static> AsyncOut<T> for Port<'_, T> {
    #[inline(always)]
    fn send(&self, item: T) -> impl Future<Output = ()> + Send {
        self.put(self.flow, item)
    }

    fn to(&self, flow: impl Into<Key> + Send, item: T) -> impl Future<Output = ()> + Send {
        self.put(&self.outlet.flow(flow.into(), self.flow), item)
    }

    fn close(&self, flow: impl Into<Key>) {
        self.outlet.close(&flow.into());
    }

    async fn each_flow(&self, item: T)
    where
        T: Clone,
    {
        for flow in self.outlet.flows(self.flow) {
            self.put(&flow, item.clone()).await;
        }
    }
}
