//! A direct edge: a function call of a handler that never waits, with one event.

use std::fmt;
use std::sync::Arc;

use super::edges::EdgeBuilder;
use super::here;
use super::sender::{SendError, Sender};
use crate::stage::error::BuildError;
use crate::stage::event::Batch;
use crate::stage::network::EdgeKind;
use crate::stage::run::{ConcurrentHost, Handler, Shared};

/// A handler that takes one event at a time and never waits: it neither awaits nor blocks. Other
/// stages can [call](EdgeBuilder::direct) the handler directly. The handler also processes the
/// events in its stage's queue, as any other handler does.
///
/// # Examples
/// ```
/// use tussah::stage::{Direct, DirectHandler, Network, Sender};
///
/// struct Parse(Sender<u64>);
///
/// impl DirectHandler for Parse {
///     type Event = String;
///     fn handle(&self, text: String) {
///         if let Ok(number) = text.parse::<u64>() {
///             drop(self.0.try_send(number));
///         }
///     }
/// }
///
/// struct Trim(Direct<String, Parse>);
///
/// impl DirectHandler for Trim {
///     type Event = String;
///     fn handle(&self, text: String) {
///         drop(self.0.send(text.trim().to_owned()));
///     }
/// }
///
/// # use tussah::stage::{Batch, BuildError, SerialHandler};
/// # struct Sum(u64);
/// # impl SerialHandler for Sum {
/// #     type Event = u64;
/// #     async fn handle(&mut self, batch: &mut Batch<u64>) {
/// #         self.0 += batch.drain().sum::<u64>();
/// #     }
/// # }
/// # let runtime = tussah::Runtime::builder().workers(1).build().expect("a runtime");
/// # runtime.block_on(async {
/// let network = Network::new("sums");
/// let sum = network.stage("sum").serial(|_| Ok(Sum(0)))?;
/// let parse = network.stage("parse").direct(|edges| Ok(Parse(edges.to(&sum).queue(100)?)))?;
/// let trim = network.stage("trim").direct(|edges| Ok(Trim(edges.to(&parse).direct(100)?)))?;
/// trim.sender().send(" 1 ".to_owned()).await.expect("`trim` is open");
/// network.drain().await;
/// assert_eq!((parse.stats().called, sum.stats().finished), (1, 1));
/// # Ok::<(), BuildError>(())
/// # }).expect("the network can be made");
/// ```
pub trait DirectHandler: Send + Sync + 'static {
    /// The type of events.
    type Event: Send + 'static;

    /// Handles an event.
    fn handle(&self, event: Self::Event);
}

/// An adapter that turns a [`DirectHandler`] into a [`Handler`].
pub struct Directly<H>(pub(crate) H);

#[diagnostic::do_not_recommend]
impl<H: DirectHandler> Handler for Directly<H> {
    type Event = H::Event;

    async fn handle(&self, batch: &mut Batch<H::Event>) {
        while let Some(event) = batch.next() {
            self.0.handle(event);
        }
    }
}

/// The host of a [`DirectHandler`].
pub type DirectHost<H> = Arc<ConcurrentHost<Directly<H>>>;

/// An edge that calls a [`DirectHandler`] at the cost of a function call, with no queue and no
/// admission. [`EdgeBuilder::direct`] creates such an edge. Direct edges are cheap to clone.
///
/// If the handler cannot be called directly, the event goes to the stage's queue instead. The event
/// is queued if the handler was replaced, if the event is traced, if the stage is keyed, or if
/// there is a proxy in front of the stage. Calls can overtake queued events: the handler can
/// process a call before events that the caller sent earlier.
///
/// As with any call, the caller's stage counts the event and any panic, and is not drained until
/// the call has ended. The called stage counts the event as
/// [`called`](crate::stage::observe::StageStats::called). The called stage still accepts calls
/// while it is paused or draining, and can finish draining while calls are running.
/// [`Network::drain`](crate::stage::Network::drain) drains the callers first. Once the called stage
/// has been [destroyed](crate::stage::Stage::destroy), no new call starts.
pub struct Direct<E, H> {
    stage: Arc<Shared<E>>,
    host: DirectHost<H>,
    from: u32,
}

impl<E: Send + 'static, H: DirectHandler<Event = E>> Direct<E, H> {
    /// Calls the handler with an event, or queues the event if a call is not possible.
    ///
    /// # Errors
    /// Returns an error with the event if the stage is closed, or if the event had to be queued and
    /// was refused.
    ///
    /// # Panics
    /// Panics if the handler panics.
    #[inline]
    pub fn send(&self, event: E) -> Result<(), SendError<E>> {
        if self.stage.is_special() || here::trace() != 0 {
            return self.queue(event);
        }
        self.stage.calls.add(1);
        let Directly(handler) = &*self.host.0;
        handler.handle(event);
        Ok(())
    }

    #[cold]
    fn queue(&self, event: E) -> Result<(), SendError<E>> {
        let sender = Sender {
            stage: Arc::clone(&self.stage),
            from: self.from,
            offers: false,
        };
        sender.try_send(event)
    }
}

impl<E: Send + 'static, H: DirectHandler<Event = E>> EdgeBuilder<'_, E, DirectHost<H>> {
    /// Creates an edge that sends an event by calling the handler as a function. If such a call is
    /// not possible, the event goes to the stage's queue, whose capacity becomes at least `room`
    /// credits.
    ///
    /// # Errors
    /// Returns an error if the edge would close a cycle of awaited sends and calls, or if the stage
    /// is closed or belongs to another network. Because such cycles are rejected, a handler can
    /// never call itself.
    pub fn direct(self, room: u64) -> Result<Direct<E, H>, BuildError> {
        self.connect(EdgeKind::Call)?;
        self.stage.make_room(room);
        Ok(Direct {
            stage: self.stage,
            host: self.host,
            from: self.edges.id,
        })
    }
}

impl<E, H> Clone for Direct<E, H> {
    fn clone(&self) -> Self {
        Self {
            stage: Arc::clone(&self.stage),
            host: Arc::clone(&self.host),
            from: self.from,
        }
    }
}

impl<E, H> fmt::Debug for Direct<E, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = &self.stage.name;
        f.debug_struct("Direct")
            .field("stage", stage)
            .finish_non_exhaustive()
    }
}
