//! The edges that a handler sends by, made as the handler is made.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::call::{AnyCall, Call};
use super::error::BuildError;
use super::handle::{Any, Stage};
use super::host::Host;
use super::network::Network;
use super::sender::{Offerer, Sender};
use super::shared::Shared;
use super::table::EdgeKind;

/// What a handler's maker makes its edges with: each is one from this stage, and is in the network's graph.
#[derive(Debug)]
pub struct Edges<'a> {
    pub(crate) network: &'a Network,
    pub(crate) from: Arc<str>,
    pub(crate) id: u32,
    /// Holds them in the network's graph.
    pub(crate) making: u32,
}

/// An edge to a stage, of which is still to be said how it sends.
///
/// The choice between a queue and a call is one word: `edges.to(&next).queue(100)` or `edges.to(&next).call()`.
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
    /// The name of the stage that the edges come from.
    #[must_use]
    pub fn from(&self) -> &str {
        &self.from
    }

    /// An edge to a stage of the same network.
    pub fn to<'a, E: Send + 'static, C: Clone>(&'a self, stage: &Stage<E, C>) -> To<'a, E, C> {
        To {
            edges: self,
            network: stage.network.clone(),
            stage: Arc::clone(&stage.shared),
            host: stage.host.clone(),
            event: PhantomData,
        }
    }

    /// What a maker fails with, for a reason of its own: [`BuildError::Handler`] with the stage's name.
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
    ///     Ok(move |batch: &mut Batch<String>| batch.drain().for_each(|line| println!("{line} to {file:?}")))
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

    /// An edge to the stage of this name.
    ///
    /// # Errors
    /// If there is none, or it takes other events.
    pub fn named<E: Send + 'static>(&self, name: &str) -> Result<To<'_, E>, BuildError> {
        Ok(self.to(&self.network.find::<E>(name)?))
    }
}

impl<E: Send + 'static, C> To<'_, E, C> {
    /// By the stage's queue, which has room for at least so many credits from here on; a sender may wait for room.
    ///
    /// The queue is one for all who send to the stage.
    ///
    /// # Errors
    /// If the edge closes a cycle of awaited sends and calls, or the stage is closed or of another network.
    pub fn queue(self, room: u64) -> Result<Sender<E>, BuildError> {
        self.connect(EdgeKind::Queue)?;
        self.stage.make_room(room);
        Ok(Sender {
            from: self.edges.id,
            stage: self.stage,
            offers: false,
        })
    }

    /// By the stage's queue, as [`queue`](Self::queue), if there is room: nobody ever waits, and so it may be part of a cycle.
    ///
    /// If it is, it has so much room of its own besides what all share, so that newcomers, who fill the queue as fast as it is worked off, do not starve what goes round. That has to
    /// be enough for all that can be on its way back at once: what is in service there and in the stages between. What goes round comes before those who wait for room.
    ///
    /// # Errors
    /// If the stage is closed or of another network.
    pub fn offer(self, room: u64) -> Result<Offerer<E>, BuildError> {
        self.connect_with(EdgeKind::Offer, room)?;
        self.stage.make_room(room);
        Ok(Offerer(Sender {
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
    /// By a call: the stage's handler runs in the servlet that sends, on its batch.
    ///
    /// # Errors
    /// If the edge closes a cycle of awaited sends and calls, or the stage is closed or of another network, or its handler blocks.
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
    /// By a call: the stage's handler runs in the servlet that sends, on its batch.
    ///
    /// # Errors
    /// If the edge closes a cycle of awaited sends and calls, or the stage is closed or of another network, or its handler blocks.
    pub fn call(self) -> Result<AnyCall<E>, BuildError> {
        self.connect(EdgeKind::Call)?;
        Ok(AnyCall {
            host: self.stage.present(),
            stage: self.stage,
            from: self.edges.id,
        })
    }
}
