//! Asking a stage: an event with a reply.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{AnyCall, Call, CallError, SendError, Sender};
use crate::stage::event::{Event, Reason, Refusal};
use crate::stage::run::Host;
use crate::sync::oneshot;

/// An event whose sender waits for a reply. A stage whose events have the type `Ask<T, R>` takes
/// values of type `T` and replies with values of type `R`.
///
/// # Examples
/// ```
/// use tussah::stage::{Ask, Batch, BuildError, Handler, Network};
///
/// struct Double;
///
/// impl Handler for Double {
///     type Event = Ask<u64, u64>;
///     async fn handle(&self, batch: &mut Batch<Ask<u64, u64>>) {
///         for Ask { value, reply } in batch.drain() {
///             reply.send(2 * value);
///         }
///     }
/// }
///
/// # let runtime = tussah::Runtime::builder().workers(1).build().expect("a runtime");
/// # runtime.block_on(async {
/// let network = Network::new("numbers");
/// let double = network.stage("double").handler(|_| Ok(Double))?;
/// assert_eq!(double.sender().ask(4).await, Ok(8));
///
/// // A caller that stops waiting cancels its request.
/// double.pause();
/// let sender = double.sender();
/// let limit = std::time::Duration::from_millis(1);
/// assert!(tussah::time::timeout(limit, sender.ask(5)).await.is_err());
/// assert_eq!((double.stats().queued, double.stats().cancelled), (0, 1));
/// # Ok::<(), BuildError>(())
/// # }).expect("the network can be made");
/// ```
pub struct Ask<T, R> {
    /// The value from the sender.
    pub value: T,
    /// The handle with which the handler sends its reply.
    pub reply: ReplySender<R>,
}

/// The handler's end of an [`Ask`]. A reply sender remains usable after the handler has returned.
///
/// If the reply sender is dropped without sending a value, [`ask`](Sender::ask) returns
/// [`AskError::Unanswered`] once the handler's batch has ended or been
/// [settled](crate::stage::Batch::settle).
pub struct ReplySender<R>(Arc<Slot<R>>);

/// The sender that the reply and the event's drop callback share. The first of the two with an
/// outcome takes the sender. If neither has an outcome, the last one drops the sender.
type Slot<R> = Mutex<Option<oneshot::Sender<Result<R, Reason>>>>;

impl<R> ReplySender<R> {
    /// Sends a value to the caller. If the caller no longer waits, the value is dropped.
    pub fn send(self, value: R) {
        complete(&self.0, Ok(value));
    }

    /// Returns whether the caller no longer waits, either because it has dropped the future of
    /// [`ask`](Sender::ask) or because the event has [ended](Reason).
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0
            .lock()
            .as_ref()
            .is_none_or(oneshot::Sender::is_closed)
    }
}

fn complete<R>(slot: &Slot<R>, outcome: Result<R, Reason>) {
    let sender = slot.lock().take();
    if let Some(sender) = sender {
        // This fails if the caller no longer waits.
        drop(sender.send(outcome));
    }
}

/// The error returned when an [`Ask`] ends without a value.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AskError {
    /// The stage refused the event.
    Refused {
        /// The name of the stage.
        stage: Arc<str>,
        /// The reason for the refusal.
        why: Refusal,
    },
    /// The event ended without being handled, or its handler panicked.
    Ended {
        /// The name of the stage.
        stage: Arc<str>,
        /// The reason why the event ended.
        reason: Reason,
    },
    /// The handler dropped the [`ReplySender`].
    Unanswered {
        /// The name of the stage.
        stage: Arc<str>,
    },
}

impl AskError {
    /// Returns whether the stage has too much to do: it refused or shed the event, but is open. The
    /// caller may try again later.
    ///
    /// ```
    /// use tussah::stage::{AskError, Reason, Refusal};
    ///
    /// let refused = |why| AskError::Refused { stage: "database".into(), why };
    /// assert!(refused(Refusal::Full).is_overload());
    /// assert!(!refused(Refusal::Closed).is_overload());
    /// let panicked = AskError::Ended { stage: "database".into(), reason: Reason::Panicked };
    /// assert!(!panicked.is_overload());
    /// ```
    #[must_use]
    pub fn is_overload(&self) -> bool {
        match self {
            Self::Refused { why, .. } => *why != Refusal::Closed,
            Self::Ended { reason, .. } => *reason == Reason::Shed,
            Self::Unanswered { .. } => false,
        }
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { stage, why } => {
                write!(f, "the stage `{stage}` did not take the event: {why}")
            }
            Self::Ended { stage, reason } => {
                write!(f, "the stage `{stage}` did not answer: {reason}")
            }
            Self::Unanswered { stage } => {
                write!(
                    f,
                    "the stage `{stage}` did not answer: it dropped the reply"
                )
            }
        }
    }
}

impl std::error::Error for AskError {}

impl<T: Send + 'static, R: Send + 'static> Sender<Ask<T, R>> {
    /// Sends a value, and waits for the value that the handler returns. While the queue is full,
    /// this method waits before it sends, like [`send`](Self::send).
    ///
    /// `value` is a plain value or an [`Event`], which can have a class, a deadline or a cost. This
    /// method reports every failure in its result, and never calls the drop callback of the event.
    ///
    /// # Errors
    /// Returns an error if the stage refuses the event, if the event ends without being handled, or
    /// if the handler returns no value.
    ///
    /// # Cancellation
    /// Dropping the future [cancels](crate::stage::CancelHandle) the event.
    pub async fn ask(&self, value: impl Into<Event<T>>) -> Result<R, AskError> {
        let (event, answer) = question(value.into());
        let (event, cancel) = event.cancellable();
        self.send(event).await.map_err(refused)?;
        let answer = answered(&self.stage.name, answer).await;
        // The batch may not have ended yet, but the event already counts as handled.
        cancel.detach();
        answer
    }

    /// Sends a value and waits for the result, as [`ask`](Self::ask) does. Like
    /// [`try_send`](Self::try_send), this method never waits for space in the queue.
    ///
    /// # Errors
    /// Returns the same errors as [`ask`](Self::ask). Also returns an error if the queue is full.
    ///
    /// # Cancellation
    /// Dropping the future [cancels](crate::stage::CancelHandle) the event.
    pub async fn try_ask(&self, value: impl Into<Event<T>>) -> Result<R, AskError> {
        let (event, answer) = question(value.into());
        let (event, cancel) = event.cancellable();
        self.try_send(event).map_err(refused)?;
        let answer = answered(&self.stage.name, answer).await;
        cancel.detach();
        answer
    }
}

impl<T, R, C> Call<Ask<T, R>, C>
where
    T: Send + 'static,
    R: Send + 'static,
    C: Host<Event = Ask<T, R>>,
{
    /// Calls the callee with a value, and returns the callee's result.
    ///
    /// # Errors
    /// Returns an error if the stage is closed, if the value's deadline has passed, or if the
    /// callee returns no value.
    pub async fn ask(&self, value: impl Into<Event<T>>) -> Result<R, AskError> {
        let (event, answer) = question(value.into());
        let called = self.send(event).await;
        called.map_err(|error| closed(&self.stage.name, error))?;
        answered(&self.stage.name, answer).await
    }
}

impl<T: Send + 'static, R: Send + 'static> AnyCall<Ask<T, R>> {
    /// Calls the callee with a value, and returns the callee's result.
    ///
    /// # Errors
    /// Returns an error if the stage is closed, if the value's deadline has passed, or if the
    /// callee returns no value.
    pub async fn ask(&self, value: impl Into<Event<T>>) -> Result<R, AskError> {
        let (event, answer) = question(value.into());
        let called = self.send(event).await;
        called.map_err(|error| closed(&self.stage.name, error))?;
        answered(&self.stage.name, answer).await
    }
}

type Answer<R> = oneshot::Receiver<Result<R, Reason>>;

fn question<T, R: Send + 'static>(value: Event<T>) -> (Event<Ask<T, R>>, Answer<R>) {
    let (sender, answer) = oneshot::channel();
    let slot: Arc<Slot<R>> = Arc::new(Mutex::new(Some(sender)));
    let reply = ReplySender(Arc::clone(&slot));
    let event = value
        .map(|value| Ask { value, reply })
        .on_drop(move |reason| complete(&slot, Err(reason)));
    (event, answer)
}

async fn answered<R>(stage: &Arc<str>, answer: Answer<R>) -> Result<R, AskError> {
    let stage = || Arc::clone(stage);
    match answer.await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(reason)) => Err(AskError::Ended {
            stage: stage(),
            reason,
        }),
        Err(_) => Err(AskError::Unanswered { stage: stage() }),
    }
}

fn refused<E>(error: SendError<E>) -> AskError {
    AskError::Refused {
        stage: error.stage,
        why: error.why,
    }
}

fn closed(stage: &Arc<str>, _: CallError) -> AskError {
    AskError::Refused {
        stage: Arc::clone(stage),
        why: Refusal::Closed,
    }
}

impl<T: fmt::Debug, R> fmt::Debug for Ask<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask")
            .field("value", &self.value)
            .finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for ReplySender<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplySender")
            .field("is_closed", &self.is_closed())
            .finish()
    }
}
