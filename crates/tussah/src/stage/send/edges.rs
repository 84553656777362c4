//! The edges of a handler, created together with the handler.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::call::{AnyCall, Call};
use super::sender::{Sender, TrySender};
use crate::stage::error::BuildError;
use crate::stage::network::{EdgeKind, ErasedHost, Network, Stage};
use crate::stage::run::{Host, Shared};

/// A factory for edges that start at one stage. The function that creates the stage's handler
/// receives this factory. The network's graph shows the edges.
#[derive(Debug)]
pub struct Edges<'a> {
    pub(crate) network: &'a Network,
    pub(crate) from: Arc<str>,
    pub(crate) id: u32,
    /// The number that holds the edges in the network's graph.
    pub(crate) making: u32,
}

/// A builder for an edge to a stage. [`Edges::to`] returns a builder, and [`queue`](Self::queue),
/// [`offer`](Self::offer), [`call`](EdgeBuilder::call) or [`direct`](EdgeBuilder::direct) creates
/// an edge of that kind: `edges.to(&next).queue(100)` creates a queue edge.
#[must_use = "an edge is made by `queue`, `offer`, `call` or `direct`"]
pub struct EdgeBuilder<'a, E, C = ErasedHost> {
    pub(crate) edges: &'a Edges<'a>,
    /// The network of the stage.
    network: Network,
    pub(crate) stage: Arc<Shared<E>>,
    pub(crate) host: C,
    event: PhantomData<E>,
}

impl Edges<'_> {
    /// Returns the name of the stage at which the edges start.
    #[must_use]
    pub fn from(&self) -> &str {
        &self.from
    }

    /// Keeps the edges of the stage's present handler for the new handler, which uses them, too.
    pub(crate) fn inherit(&self) {
        self.network.inherit(self.id, self.making);
    }

    /// Starts building an edge to a stage of the same network. A method of [`EdgeBuilder`] then
    /// chooses the kind of the edge and creates it.
    pub fn to<'a, E: Send + 'static, C: Clone>(
        &'a self,
        stage: &Stage<E, C>,
    ) -> EdgeBuilder<'a, E, C> {
        EdgeBuilder {
            edges: self,
            network: stage.network.clone(),
            stage: Arc::clone(&stage.shared),
            host: stage.host.clone(),
            event: PhantomData,
        }
    }

    /// Returns a [`BuildError::Handler`] with this reason and the stage's name. The function that
    /// creates the handler can return this error.
    ///
    /// # Examples
    /// ```
    /// use std::fs::File;
    /// use tussah::stage::{Batch, Network};
    ///
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # let network = Network::on(runtime.handle(), "server");
    /// let log = network.stage("log").blocking(|edges| {
    ///     let file = File::open("/no/such/file").map_err(|error| edges.failed(error))?;
    ///     Ok(move |batch: &mut Batch<String>| {
    ///         batch.drain().for_each(|line| println!("{line} to {file:?}"));
    ///     })
    /// });
    /// let error = log.expect_err("there is no such file").to_string();
    /// assert!(error.starts_with("the handler of `log` could not be made: No such file"));
    /// # std::io::Result::Ok(())
    /// ```
    pub fn failed(&self, why: impl fmt::Display) -> BuildError {
        BuildError::Handler {
            stage: self.from.to_string(),
            why: why.to_string(),
        }
    }

    /// Starts building an edge to the stage with this name.
    ///
    /// # Errors
    /// Returns an error if there is no such stage, or if the stage takes events of another type.
    pub fn named<E: Send + 'static>(&self, name: &str) -> Result<EdgeBuilder<'_, E>, BuildError> {
        Ok(self.to(&self.network.find::<E>(name)?))
    }
}

impl<E: Send + 'static, C> EdgeBuilder<'_, E, C> {
    /// Creates an edge through the stage's queue, whose capacity becomes at least `room` credits.
    /// Senders can wait while the queue is full.
    ///
    /// All senders to the stage share the queue.
    ///
    /// # Errors
    /// Returns an error if the edge would close a cycle of awaited sends and calls, or if the stage
    /// is closed or belongs to another network.
    pub fn queue(self, room: u64) -> Result<Sender<E>, BuildError> {
        self.connect(EdgeKind::Queue)?;
        self.stage.make_room(room);
        Ok(Sender {
            from: self.edges.id,
            stage: self.stage,
            offers: false,
        })
    }

    /// Creates an edge through the stage's queue. The edge's sender never waits, so the edge can be
    /// part of a cycle. As with [`queue`](Self::queue), the capacity of the queue becomes at least
    /// `room` credits.
    ///
    /// An edge in a cycle gets `room` credits of its own, in addition to the capacity that all
    /// senders share. Without these additional credits, new events would refill the queue as fast
    /// as it drains, and starve the events in the cycle. Make `room` large enough for all events
    /// that can return at the same time: those in service in this stage and in the other stages of
    /// the cycle. If `room` is too small, the edge's sender takes capacity from other senders.
    ///
    /// Events of an `offer` edge in a cycle enter the queue before events of waiting senders. For
    /// events of such an edge, the [per-class bound](crate::stage::StageBuilder::class_queue) is
    /// raised by the credits reserved for all `offer` edges in cycles to this stage. Controllers
    /// never reject events of an `offer` edge in a cycle, but can shed them from the queue.
    ///
    /// # Errors
    /// Returns an error if the stage is closed or belongs to another network.
    pub fn offer(self, room: u64) -> Result<TrySender<E>, BuildError> {
        self.connect_with(EdgeKind::Offer, room)?;
        self.stage.make_room(room);
        Ok(TrySender(Sender {
            from: self.edges.id,
            stage: self.stage,
            offers: true,
        }))
    }

    pub(crate) fn connect(&self, kind: EdgeKind) -> Result<(), BuildError> {
        self.connect_with(kind, 0)
    }

    fn connect_with(&self, kind: EdgeKind, room: u64) -> Result<(), BuildError> {
        let own = self.edges.network;
        own.check_own(&self.stage.name, &self.network)?;
        self.stage.check_open()?;
        if kind == EdgeKind::Call && self.stage.blocks() {
            return Err(own.inner.table.lock().blocks(&self.stage.name));
        }
        own.connect(
            &self.edges.from,
            &self.stage.name,
            (kind, room),
            self.edges.making,
        )
    }
}

impl<E: Send + 'static, H: Host<Event = E>> EdgeBuilder<'_, E, Arc<H>> {
    /// Creates a call edge: the stage's handler runs in the caller's servlet, on the caller's
    /// batch.
    ///
    /// # Errors
    /// Returns an error if the edge would close a cycle of awaited sends and calls. Also returns an
    /// error if the stage is closed, belongs to another network, or has a handler that blocks.
    pub fn call(self) -> Result<Call<E, H>, BuildError> {
        self.connect(EdgeKind::Call)?;
        Ok(Call {
            stage: self.stage,
            host: self.host,
            from: self.edges.id,
        })
    }
}

impl<E: Send + 'static> EdgeBuilder<'_, E, ErasedHost> {
    /// Creates a call edge: the stage's handler runs in the caller's servlet, on the caller's
    /// batch.
    ///
    /// # Errors
    /// Returns an error if the edge would close a cycle of awaited sends and calls. Also returns an
    /// error if the stage is closed, belongs to another network, or has a handler that blocks.
    pub fn call(self) -> Result<AnyCall<E>, BuildError> {
        self.connect(EdgeKind::Call)?;
        Ok(AnyCall {
            host: self.stage.present(),
            stage: self.stage,
            from: self.edges.id,
        })
    }
}
