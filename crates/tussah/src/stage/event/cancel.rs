//! Cancellation of events: a queued event ends immediately, and a handler is notified.
//!
//! # Design
//! 1. A cancellable event shares a [cell](Cell) with its [handle](CancelHandle). The cell records
//!    the event's location and whether it was cancelled. Other events have no cell and pay nothing.
//! 2. A cell only changes under its lock, which is held for a few instructions and comes last in
//!    the lock order. A stage takes it while holding its own lock. The canceller releases it before
//!    it takes a stage's lock.
//! 3. `cancelled` is set under that lock, at most once, and never after the event has ended. Every
//!    change of the event's location reads `cancelled` under the same lock. Thus either the
//!    canceller finds the event in a queue, or the next owner sees that it is cancelled.
//! 4. A stage changes its counters only under its own lock, together with the cell. The canceller
//!    passes the visit during which it found the event. If the event has left the queue since then,
//!    the visit or the location differs, and the canceller leaves the rest to the servlet that took
//!    it. Each event is therefore counted exactly once.
//! 5. A cancelled event in a queue is *buried*: the stage immediately counts it as cancelled and
//!    frees its credits. The next sweep removes its value.
//! 6. A sweep covers one part of the queue, a class or a key, as soon as one in [`BURIED_PART`] of
//!    the part's events is buried. In a part of up to eight events, a cancelled event is therefore
//!    removed immediately. Cancelling n of n events costs at most 8 n checks, and cancelled values
//!    occupy at most an eighth of the queue.
//! 7. If an event is cancelled while its sender has it, it ends when it is queued. If a servlet has
//!    taken it, it ends when the handler reaches it.
//! 8. If a handler has only this event, cancelling it wakes the servlet, which drops the handler's
//!    future. Other handlers must check for cancellation themselves. At the end of a batch, the
//!    stage checks the cells of its events. An event counts as cancelled if it was cancelled and
//!    has not been sent on (its visit is unchanged).
//!
//! `loom_tests.rs` models the sender, the servlet, the canceller and the end of the stage. The
//! diagram shows the states of a cell, and who makes each transition:
//!
//! ```text
//!          stage, as it is queued            canceller, under the stage's lock
//!   Out ───────────────────────────► Queued ─────────────────────────────────► Buried
//!    ▲ │ └─ if it is cancelled ─────────────────────────────────────────────────►│
//!    │ │                               │                                         │
//!    │ │                               ▼ stage, as it leaves the queue            ▼
//!    │ │                              Out                                       Out, and it ends
//!    │ └─ whoever drops it ─► Ended
//! ```

mod cell;
#[cfg(test)]
mod loom_tests;
mod sync;
#[cfg(test)]
mod tests;

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Weak};

use tussah_core::{Notify, quietly};

pub(crate) use cell::Left;

use super::Event;

/// The cancelled values of a class or key are removed if there are this many events or fewer for
/// each of them. A sweep costs at most this many checks for each of them.
pub(crate) const BURIED_PART: usize = 8;

/// A stage, for callers that cancel an event in its queue.
pub(crate) trait Recall: Send + Sync {
    /// Ends an event that was in the queue at this visit, if it is still there.
    fn recall(self: Arc<Self>, cell: &Cell, visit: u32);
}

/// A stage that has the event in its queue.
pub(crate) type Home = Weak<dyn Recall>;
pub(crate) type Cell = cell::Cell<Home>;
pub(crate) type Spot = cell::Spot<Home>;

/// The state that an event shares with its handles and tokens.
pub(crate) struct Cancel {
    pub(crate) cell: Cell,
    /// Notified when the event is cancelled.
    told: Notify,
}

impl Cancel {
    fn cancel(&self) -> bool {
        let Some(home) = self.cell.cancel() else {
            return false;
        };
        quietly(|| self.told.notify_waiters());
        if let Some((home, visit)) = home
            && let Some(stage) = home.upgrade()
        {
            stage.recall(&self.cell, visit);
        }
        true
    }

    /// Waits until the event is cancelled.
    async fn cancelled(&self) {
        let mut told = pin!(self.told.notified());
        told.as_mut().enable();
        // From here on, no cancellation is missed.
        if !self.cell.is_cancelled() {
            told.await;
        }
    }

    /// Completes when the event is cancelled while a handler has it and no other event. The caller
    /// then drops the handler's future.
    pub(crate) async fn drops_handler(self: Arc<Self>, visit: u32) {
        self.cancelled().await;
        if !self.cell.begin_drop(visit) {
            std::future::pending().await
        }
    }
}

/// A handle that can cancel an event. Dropping the handle also cancels the event.
/// [`Event::cancellable`] creates the handle.
///
/// | location of the event | effect of cancelling |
/// |---|---|
/// | in a queue | The event ends. Its credits are free immediately, and its drop callbacks get [`Reason::Cancelled`](crate::stage::Reason::Cancelled). In a class or key with more than eight events, the values of up to an eighth of them may be dropped later. |
/// | with its sender | The event ends when it is queued. |
/// | in a batch | The batch skips the event. |
/// | with a [`Handler`](crate::stage::Handler) whose stage has [batches of one](crate::stage::StageBuilder::batch) and no keys | The handler's future is dropped, and the drop callback gets `Reason::Cancelled`. |
/// | with another handler | The handler continues, and can check a [`CancellationToken`]. |
/// | already ended | None. |
///
/// Cancelling an event does not stop threads or blocking jobs that its handler has started. If the
/// event is cancelled before it is [settled](crate::stage::Batch::settle) and before its batch
/// ends, it counts as [`cancelled`](crate::stage::observe::StageStats::cancelled), not as finished.
/// The time of a cancelled event is excluded from every mean and percentile and hidden from
/// controllers.
///
/// To cancel a request when the caller stops waiting for the response, use
/// [`Sender::ask`](crate::stage::Sender::ask).
///
/// # Examples
/// ```
/// use tussah::stage::{Batch, BuildError, Event, Handler, Network};
///
/// struct Print;
///
/// impl Handler for Print {
///     type Event = String;
///     async fn handle(&self, batch: &mut Batch<String>) {
///         batch.drain().for_each(|document| println!("{document}"));
///     }
/// }
///
/// # let runtime = tussah::Runtime::builder().workers(1).build().expect("a runtime");
/// # runtime.block_on(async {
/// let network = Network::new("office");
/// let print = network.stage("print").handler(|_| Ok(Print))?;
/// print.pause();
///
/// let (event, cancel) = Event::new(String::from("a page")).cancellable();
/// print.sender().send(event).await.expect("`print` is open");
/// assert!(cancel.cancel());
/// assert_eq!((print.stats().queued, print.stats().cancelled), (0, 1));
/// # Ok::<(), BuildError>(())
/// # }).expect("the network can be made");
/// ```
#[must_use = "the event is cancelled when this is dropped"]
pub struct CancelHandle(Option<Arc<Cancel>>);

impl CancelHandle {
    /// Cancels the event. Returns false if the event has already ended or been cancelled.
    pub fn cancel(&self) -> bool {
        self.0.as_ref().is_some_and(|cancel| cancel.cancel())
    }

    /// Drops the handle without cancelling the event.
    pub fn detach(mut self) {
        self.0 = None;
    }

    /// Returns whether the event was cancelled before it ended.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        is_cancelled(self.0.as_deref())
    }
}

impl Drop for CancelHandle {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl fmt::Debug for CancelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelHandle")
            .field("is_cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

/// A token that shows whether an event has been cancelled. A token is cheap to clone, and can
/// outlive the event. [`Event::cancellation`] and
/// [`Batch::cancellation`](crate::stage::Batch::cancellation) create tokens. If the event has no
/// [`CancelHandle`], its tokens never report a cancellation.
///
/// If a handler receives only values, as a [`DirectHandler`](crate::stage::DirectHandler) does, put
/// a token into the value.
///
/// # Examples
/// ```
/// use tussah::stage::Event;
///
/// let (event, cancel) = Event::new("long job").cancellable();
/// let token = event.cancellation();
/// assert!(!token.is_cancelled());
/// drop(cancel);
/// assert!(token.is_cancelled() && event.is_cancelled());
/// ```
#[derive(Clone, Default)]
pub struct CancellationToken(Option<Arc<Cancel>>);

impl CancellationToken {
    pub(crate) fn of(cancel: Option<&Arc<Cancel>>) -> Self {
        Self(cancel.cloned())
    }

    /// Returns whether the event was cancelled before it ended.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        is_cancelled(self.0.as_deref())
    }

    /// Waits until the event is cancelled. If the event ends in any other way, the future never
    /// completes.
    pub async fn cancelled(&self) {
        match &self.0 {
            Some(cancel) => cancel.cancelled().await,
            None => std::future::pending().await,
        }
    }
}

impl fmt::Debug for CancellationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancellationToken")
            .field("is_cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

fn is_cancelled(cancel: Option<&Cancel>) -> bool {
    cancel.is_some_and(|cancel| cancel.cell.is_cancelled())
}

impl<E> Event<E> {
    /// Makes the event cancellable, and returns it with a handle. Dropping the handle cancels the
    /// event, wherever it is; see [`CancelHandle`].
    ///
    /// Each further call returns an additional handle. The event is cancelled when any of its
    /// handles is dropped.
    #[must_use = "the event is cancelled when the handle is dropped"]
    pub fn cancellable(mut self) -> (Self, CancelHandle) {
        let cancel = self.more().cancel.get_or_insert_with(|| {
            Arc::new(Cancel {
                cell: Cell::new(),
                told: Notify::new(),
            })
        });
        let handle = CancelHandle(Some(Arc::clone(cancel)));
        (self, handle)
    }

    /// Returns whether the event has been cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        is_cancelled(self.cancel().map(|cancel| &**cancel))
    }

    /// Returns a token that shows whether the event has been cancelled.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        CancellationToken::of(self.cancel())
    }

    /// Returns the state shared with the event's handles and tokens.
    #[inline(always)]
    pub(crate) fn cancel(&self) -> Option<&Arc<Cancel>> {
        self.more.as_ref().and_then(|more| more.cancel.as_ref())
    }

    /// Returns whether the event is in a queue and counted as cancelled.
    pub(crate) fn is_buried(&self) -> bool {
        self.cancel().is_some_and(|cancel| cancel.cell.is_buried())
    }
}
