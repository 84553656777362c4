//! A direct edge: a handler that never waits is called like a function, with one event.

use std::fmt;
use std::sync::Arc;

use super::edges::To;
use super::outgoing;
use super::sender::{SendError, Sender};
use crate::stage::error::BuildError;
use crate::stage::event::Batch;
use crate::stage::network::EdgeKind;
use crate::stage::run::{Handler, Many, Shared};

/// A handler of one event at a time that never waits: it neither awaits nor blocks. Other stages
/// can [call](To::direct) such a stage directly. Events in its queue are handled as in any other
/// stage.
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

/// A [`DirectHandler`] as a [`Handler`].
pub struct Directly<H>(pub(crate) H);

impl<H: DirectHandler> Handler for Directly<H> {
    type Event = H::Event;

    async fn handle(&self, batch: &mut Batch<H::Event>) {
        while let Some(event) = batch.next() {
            self.0.handle(event);
        }
    }
}

/// The host of a [`DirectHandler`].
pub type DirectHost<H> = Arc<Many<Directly<H>>>;

/// An edge that calls a [`DirectHandler`] from the sender, with no queue and no admission, for the
/// price of a function call. [`To::direct`] creates it, and it is cheap to clone.
///
/// The event goes to the stage's queue instead if a plain call is not possible: the handler was
/// replaced, the event is traced, the stage is keyed, or there is a proxy. There is no order
/// between called and queued events: a called event may be handled before events that its sender
/// sent earlier.
///
/// As with any call, the caller's stage counts the event and its panic, and waits for the end of
/// the call when it is drained. The called stage counts the event as
/// [`called`](crate::stage::observe::StageStats::called). While the called stage is paused or
/// drained, it still accepts calls, and does not wait for them to end.
/// [`Network::drain`](crate::stage::Network::drain) drains the callers first. After the called
/// stage was [destroyed](crate::stage::Stage::destroy), no new call begins.
pub struct Direct<E, H> {
    stage: Arc<Shared<E>>,
    host: DirectHost<H>,
    from: u32,
}

impl<E: Send + 'static, H: DirectHandler<Event = E>> Direct<E, H> {
    /// Sends an event.
    ///
    /// # Errors
    /// Returns the event in the error if the stage is closed, or if the event had to be queued and
    /// was refused.
    ///
    /// # Panics
    /// Panics if the handler panics.
    #[inline]
    pub fn send(&self, event: E) -> Result<(), SendError<E>> {
        if self.stage.is_special() || outgoing::trace() != 0 {
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

impl<E: Send + 'static, H: DirectHandler<Event = E>> To<'_, E, DirectHost<H>> {
    /// Makes an edge by function calls. Where a call is not possible, the event goes to the stage's
    /// queue, which gets room for at least `room` credits.
    ///
    /// # Errors
    /// Returns an error if the edge closes a cycle of awaited sends and calls, or if the stage is
    /// closed or belongs to another network. So no handler can call itself.
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
