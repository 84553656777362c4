//! The edges of a handler, made together with the handler.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::call::{AnyCall, Call};
use super::sender::{Sender, TrySender};
use crate::stage::error::BuildError;
use crate::stage::network::{Any, EdgeKind, Network, Stage};
use crate::stage::run::{Host, Shared};

/// A factory for the edges that start at one stage, passed to the function that makes the stage's
/// handler. The network's graph shows the edges.
#[derive(Debug)]
pub struct Edges<'a> {
    pub(crate) network: &'a Network,
    pub(crate) from: Arc<str>,
    pub(crate) id: u32,
    /// The number that holds the edges in the network's graph.
    pub(crate) making: u32,
}

/// An edge to a stage, whose kind has not been chosen yet.
///
/// The choice between a queue and a call is one word: `edges.to(&next).queue(100)` or
/// `edges.to(&next).call()`.
#[must_use = "an edge is made by `queue`, `offer`, `call` or `direct`"]
pub struct To<'a, E, C = Any> {
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

    /// Begins an edge to a stage of the same network.
    pub fn to<'a, E: Send + 'static, C: Clone>(&'a self, stage: &Stage<E, C>) -> To<'a, E, C> {
        To {
            edges: self,
            network: stage.network.clone(),
            stage: Arc::clone(&stage.shared),
            host: stage.host.clone(),
            event: PhantomData,
        }
    }

    /// Returns an error for a failure of the function that makes the handler:
    /// [`BuildError::Handler`] with the stage's name.
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

    /// Begins an edge to the stage of this name.
    ///
    /// # Errors
    /// Returns an error if there is no such stage, or if the stage takes events of another type.
    pub fn named<E: Send + 'static>(&self, name: &str) -> Result<To<'_, E>, BuildError> {
        Ok(self.to(&self.network.find::<E>(name)?))
    }
}

impl<E: Send + 'static, C> To<'_, E, C> {
    /// Makes an edge through the stage's queue, which gets room for at least `room` credits. A
    /// sender may wait for room.
    ///
    /// All senders to the stage share the queue.
    ///
    /// # Errors
    /// Returns an error if the edge closes a cycle of awaited sends and calls, or if the stage is
    /// closed or belongs to another network.
    pub fn queue(self, room: u64) -> Result<Sender<E>, BuildError> {
        self.connect(EdgeKind::Queue)?;
        self.stage.make_room(room);
        Ok(Sender {
            from: self.edges.id,
            stage: self.stage,
            offers: false,
        })
    }

    /// Makes an edge through the stage's queue that never waits, and may therefore be part of a
    /// cycle. Like [`queue`](Self::queue), this edge adds room for at least `room` credits.
    ///
    /// An edge in a cycle gets its own `room` credits in addition to the shared room. Otherwise new
    /// events, which fill the queue as fast as it drains, would starve the events in the cycle.
    /// `room` must be enough for all events that can be on their way back at once: those in service
    /// in this stage and in the stages of the cycle. A sender that needs more takes room from the
    /// other senders.
    ///
    /// Events of such an edge precede senders that wait for room. They also have the additional
    /// room above the [bound of their class](crate::stage::StageBuilder::class_queue), and
    /// controllers do not reject them. Controllers may still shed them from the queue.
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
            return Err(BuildError::Blocks {
                stage: self.stage.name.to_string(),
            });
        }
        own.connect(
            &self.edges.from,
            &self.stage.name,
            (kind, room),
            self.edges.making,
        )
    }
}

impl<E: Send + 'static, H: Host<Event = E>> To<'_, E, Arc<H>> {
    /// Makes a call edge: the stage's handler runs in the sending servlet, on its batch.
    ///
    /// # Errors
    /// Returns an error if the edge closes a cycle of awaited sends and calls, if the stage is
    /// closed or belongs to another network, or if its handler blocks.
    pub fn call(self) -> Result<Call<E, H>, BuildError> {
        self.connect(EdgeKind::Call)?;
        Ok(Call {
            stage: self.stage,
            host: self.host,
            from: self.edges.id,
        })
    }
}

impl<E: Send + 'static> To<'_, E, Any> {
    /// Makes a call edge: the stage's handler runs in the sending servlet, on its batch.
    ///
    /// # Errors
    /// Returns an error if the edge closes a cycle of awaited sends and calls, if the stage is
    /// closed or belongs to another network, or if its handler blocks.
    pub fn call(self) -> Result<AnyCall<E>, BuildError> {
        self.connect(EdgeKind::Call)?;
        Ok(AnyCall {
            host: self.stage.present(),
            stage: self.stage,
            from: self.edges.id,
        })
    }
}
