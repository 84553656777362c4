//! Proxies: instances that a program inserts into the edges of a running graph, and can remove
//! again.

mod ends_at;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub(crate) use self::ends_at::ends_at;
use super::args::Args;
use super::edge::{Edge, Ends, Erased, Inlet};
use super::error::GraphError;
use super::flows::Parcel;
use super::install::{Instance as _, Planned, Run};
use super::keepers::Keepers;
use super::module::Module;
use super::running::Running;
use super::tap::NamedEdge;
use super::via::Via;
use crate::AbortHandle;
use crate::stage::{Batch, Between, BuildError, Handler, Network, Reason, Stage};

impl Running {
    /// Inserts a proxy, which is a new instance of the module `M`, into an edge while the graph
    /// runs. The proxy receives all items that the sending instance sends to the receiving port.
    /// Items that the proxy sends to its `out` port go to the receiving port. A proxy can show,
    /// change, delay, duplicate or drop items.
    ///
    /// The module must have one input port, `run`, which takes the edge's items, and an output port
    /// `out` for the same type of items. The module must not have `start`, keep state for each
    /// flow, or block its OS thread. Items that the proxy fails to handle go to the `dropped` port
    /// of the receiver. Other output ports of the proxy have no edges. `edge` names the edge in the
    /// same form as for [`tap`](Self::tap), and `name` becomes the name of the proxy.
    ///
    /// The items of a sender keep their order. Where the sender calls the receiver, it calls the
    /// proxy instead, and the proxy calls the receiver. The proxy handles one item at a time. While
    /// the proxy waits, the sender waits too, as it does when a queue is full. If the proxy panics,
    /// or if the graph stops while the proxy waits, the proxy's current item goes to the receiver's
    /// `dropped` port, provided that the item's type is `Clone`. A proxy whose method takes `&mut
    /// self` closes if it panics more than five times within a minute. All items of the edge then
    /// go to the receiver's `dropped` port until the proxy is removed.
    ///
    /// This method first waits until all instances that call the receiver directly, as in a fused
    /// chain, are idle.
    ///
    /// # Errors
    /// Returns an error if there is no such edge, if several edges have this name, or if the sender
    /// or the receiver has shards. Also returns an error if the edge already has a proxy, if the
    /// sender reaches the receiver both by calls and by a queue, if the name is taken, if the
    /// module does not meet the conditions above, or if the proxy cannot be created.
    ///
    /// # Cancellation
    /// If the future is dropped, no proxy is inserted.
    ///
    /// # Examples
    /// ```
    /// use tussah::flow::{Args, Graph, Out, module};
    /// use tussah::modules::Logger;
    ///
    /// /// Passes even numbers only.
    /// #[derive(Default)]
    /// struct Even;
    ///
    /// #[module]
    /// impl Even {
    ///     fn run(&self, number: u64, out: &impl Out<u64>) {
    ///         if number % 2 == 0 {
    ///             out.send(number);
    ///         }
    ///     }
    /// }
    ///
    /// # let runtime = tussah::Runtime::builder().workers(1).build().expect("a runtime");
    /// # runtime.block_on(async {
    /// let mut graph = Graph::new("proxied");
    /// graph.add::<Logger<u64>>("first", Args::new())?;
    /// graph.add::<Logger<u64>>("second", Args::new())?;
    /// graph.connect("first", "second")?;
    /// let running = graph.start()?;
    /// let proxy = running.proxy::<Even>("first -> second", "even", Args::new()).await?;
    /// running.input("first")?.send(7_u64).await;
    /// proxy.remove().await;
    /// # running.drain().await;
    /// # Ok::<(), tussah::flow::GraphError>(())
    /// # }).expect("the graph can be made");
    /// ```
    pub async fn proxy<M: Module>(
        &self,
        edge: &str,
        name: &str,
        args: Args,
    ) -> Result<Proxy, GraphError> {
        let found = self.edge(edge)?;
        let refused = |why| GraphError::Proxy {
            edge: found.to_string(),
            module: M::NAME,
            why,
        };
        let (from, to) = (&found.from.0, &found.to.0);
        self.single(from)?;
        let to_place = self.single(to)?;
        args.check(M::PARAMS).map_err(&refused)?;
        can_be_proxy::<M>().map_err(|why| refused(why.to_owned()))?;
        let via = self.as_between(found).map_err(&refused)?;
        let mut inputs = self.ports[to_place].1.iter();
        let port = inputs.find(|port| port.name == found.to.1);
        let port = port.expect("the edge ends at it");
        let mut planned = Planned::<M>::new(args.of(name));
        planned.read_args().map_err(&refused)?;
        let (mut fits, mut sends) = (false, None);
        // A proxy has the position of the instance in front of which it is.
        let position = self.network.position(to);
        let ports = planned.declare(&self.network, (name, &position), false)?;
        let mut made = Made::new(&self.network, name);
        planned.outs(&mut |name, outlet| {
            if name == "out" {
                sends = Some(outlet.item());
                fits = outlet.connect(&*port.inlet, &via);
            } else if name == "dropped" {
                outlet.connect(&*(port.ends)(&*port.inlet), &Via::default());
            }
        });
        let wanted = || {
            let item = port.item;
            refused(format!(
                "expected one input port `run` and an output port `out`, both of `{item}`"
            ))
        };
        let [own] = &ports[..] else {
            return Err(wanted());
        };
        if !fits || own.name != "run" {
            return Err(wanted());
        }
        let _held = self.network.hold_callers(to).await;
        let installed = Box::new(planned).install(&self.keepers)?;
        let detour = Detour {
            network: &self.network,
            from,
            name: &format!("{found} by {name}"),
            keepers: &self.keepers,
            via: via.clone(),
        };
        let interposed = (port.interpose)(&*port.inlet, &detour, &*own.inlet);
        let interposed = interposed.ok_or_else(wanted)??;
        made.is_kept = true;
        Ok(Proxy {
            interposed,
            made,
            aborts: self.tick(installed.tickers),
        })
    }

    /// Returns the way from a proxy on this edge to the receiver. Where the sender calls the
    /// receiver, so does the proxy: items that waited in a queue would be overtaken when the proxy
    /// is removed.
    ///
    /// # Errors
    /// Returns the reason if no way keeps the order.
    fn as_between(&self, edge: &NamedEdge) -> Result<Via, String> {
        let (from, to) = (&edge.from.0, &edge.to.0);
        let mut all = self.edges.iter();
        match all.any(|it| (&it.from.0, &it.to.0) == (from, to) && it.is_call != edge.is_call) {
            true => Err(format!(
                "`{from}` reaches `{to}` both by a call and by a queue"
            )),
            false if edge.is_call => Ok(Via::call()),
            false => Ok(Via::default()),
        }
    }

    /// Starts the ticks of a proxy, which end with the graph or through the returned handles.
    fn tick(&self, tickers: Vec<Run>) -> Vec<AbortHandle> {
        let runtime = self.network.handle();
        let tickers = tickers.into_iter().map(|ticker| runtime.spawn(ticker));
        let tickers: Vec<_> = tickers.collect();
        let aborts = tickers.iter().map(|ticker| ticker.abort_handle());
        let aborts = aborts.collect();
        let mut all = self.tickers.lock();
        // Those of removed proxies have ended.
        all.retain(|ticker| !ticker.is_finished());
        all.extend(tickers);
        aborts
    }
}

/// Checks what the ports do not tell.
///
/// # Errors
/// Returns the reason if the module cannot be a proxy.
fn can_be_proxy<M: Module>() -> Result<(), &'static str> {
    if M::HAS_STATE {
        return Err("it keeps state for each flow");
    }
    if M::START.is_some() {
        return Err("it has the method `start`");
    }
    Ok(())
}

/// A proxy that [`Running::proxy`] has inserted into an edge. Dropping this value does not remove
/// the proxy.
#[must_use = "the proxy is taken away by `remove`"]
pub struct Proxy {
    interposed: Interposed,
    made: Made,
    aborts: Vec<AbortHandle>,
}

impl Proxy {
    /// Removes the proxy once it holds no items. The senders wait until the proxy has been removed,
    /// which keeps the items in order. On an edge `via call`, this method first waits until the
    /// sender, and the instances that call it directly, are idle.
    ///
    /// # Cancellation
    /// If the future is dropped, the proxy remains.
    pub async fn remove(mut self) {
        self.interposed.remove().await;
        self.aborts.iter().for_each(AbortHandle::abort);
        self.made.is_kept = false;
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("name", &self.made.name)
            .finish_non_exhaustive()
    }
}

/// A stage that is removed when this is dropped, unless it is kept.
struct Made {
    network: Network,
    name: String,
    is_kept: bool,
}

impl Made {
    fn new(network: &Network, name: &str) -> Self {
        Self {
            network: network.clone(),
            name: name.to_owned(),
            is_kept: false,
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if !self.is_kept {
            self.network.discard(&self.name);
        }
    }
}

/// The stage to put between the stage `from` and another.
pub(crate) struct Detour<'a> {
    network: &'a Network,
    from: &'a str,
    name: &'a str,
    keepers: &'a Arc<Keepers>,
    /// The way from the stage to the receiver.
    via: Via,
}

/// A stage between two others.
pub(crate) type Interposed = Box<dyn Remove>;

pub(crate) trait Remove: Send + Sync {
    /// Removes the stage once it holds no events.
    fn remove(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// The result of an attempt to interpose a stage; `None` if the types differ.
pub(crate) type Interpose = Option<Result<Interposed, BuildError>>;

/// Returns the item that the receiver takes, or what is for another of its ports.
type Unwrap<T, I> = fn(I) -> Result<T, I>;

/// Calls [`Inlet::interpose`] if the other port takes the same items.
pub(crate) fn interpose<T: Send + 'static>(
    inlet: &Erased,
    detour: &Detour<'_>,
    to: &Erased,
) -> Interpose {
    let inlet: Option<&Arc<dyn Inlet<T>>> = inlet.downcast_ref();
    let to: &Arc<dyn Inlet<T>> = to.downcast_ref()?;
    Some(
        inlet
            .expect("it is the port's own")
            .interpose(detour, &**to),
    )
}

impl Detour<'_> {
    /// Puts the stage before `stage`. It passes the items that `unwrap` returns to `to`, and all
    /// others to `rest`.
    pub(crate) fn interpose<T: Send + 'static, I: Send + 'static>(
        &self,
        (stage, ends): (&Stage<Parcel<I>>, &Ends<I>),
        (to, unwrap): (&dyn Inlet<T>, Unwrap<T, I>),
        rest: &dyn Inlet<I>,
    ) -> Result<Interposed, BuildError> {
        let on_drop = Arc::clone(ends);
        let position = self.network.position(stage.name());
        let own = self.network.stage_at(self.name, position).servlets(1);
        let own = own.on_drop(move |parcel, why: Reason| drop(on_drop(parcel, why)));
        let own = own.handler(|edges| {
            Ok(Pass {
                to: to.connect(edges, &Via::call(), self.keepers)?,
                rest: rest.connect(edges, &self.via, self.keepers)?,
                unwrap,
            })
        })?;
        let mut made = Made::new(self.network, self.name);
        let between = own.between(self.from, stage)?;
        made.is_kept = true;
        Ok(Box::new(Removable { between, made }))
    }
}

struct Removable<I> {
    between: Between<Parcel<I>>,
    made: Made,
}

impl<I: Send + 'static> Remove for Removable<I> {
    fn remove(mut self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            // Overlapping calls would keep the proxy busy for as long as they come.
            let _held = self.made.network.hold_callers(&self.made.name).await;
            self.between.remove().await;
            self.made.is_kept = false;
        })
    }
}

/// Passes the items of one port to the proxy, and those of the other ports to the receiver.
struct Pass<T, I> {
    to: Edge<T>,
    rest: Edge<I>,
    unwrap: Unwrap<T, I>,
}

impl<T: Send + 'static, I: Send + 'static> Handler for Pass<T, I> {
    type Event = Parcel<I>;

    async fn handle(&self, batch: &mut Batch<Parcel<I>>) {
        while let Some(Parcel { item, flow }) = batch.next() {
            let wait = match (self.unwrap)(item) {
                Ok(item) => self.to.push(&flow, item),
                Err(item) => self.rest.push(&flow, item),
            };
            if let Some(wait) = wait {
                wait.await;
            }
            batch.settle();
        }
    }
}

#[cfg(test)]
mod tests;
