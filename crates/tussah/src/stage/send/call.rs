//! A call edge: the callee's handler runs in the caller's servlet, on the caller's batch.

use std::fmt;
use std::sync::Arc;

use crate::stage::event::{Batch, Event};
use crate::stage::run::{Gone, Guard, Host, Present, Shared};

/// A call edge to a stage. `C` is the type of the host that owns the stage's handler. Calls need no
/// queue, no admission and no separate servlet. A panic in the callee also counts as a panic in the
/// caller. [`EdgeBuilder::call`](crate::stage::EdgeBuilder::call) creates the edge.
///
/// A call to a serial stage waits while another caller or the stage's own servlet uses the handler.
/// A call to a keyed stage waits while an event with the same key is in service.
pub struct Call<E, C> {
    pub(crate) stage: Arc<Shared<E>>,
    pub(crate) host: Arc<C>,
    pub(crate) from: u32,
}

/// A call edge to a stage that was found by name. It works like [`Call`].
pub struct AnyCall<E> {
    pub(crate) stage: Arc<Shared<E>>,
    /// The handler that the stage had when the edge was made.
    pub(crate) host: Present<E>,
    pub(crate) from: u32,
}

/// The error returned when the called stage is closed, for example because it was destroyed or its
/// handler panicked too often. Events that the stage did not take are still in the batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallError;

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the stage that was called is closed")
    }
}

impl std::error::Error for CallError {}

impl From<Gone> for CallError {
    fn from(_: Gone) -> Self {
        CallError
    }
}

impl<E: Send + 'static, C: Host<Event = E>> Call<E, C> {
    /// Calls the callee with the batch. Events that the callee does not take stay in the batch.
    ///
    /// # Errors
    /// Returns an error if the stage is closed.
    #[inline]
    pub async fn call(&self, batch: &mut Batch<E>) -> Result<(), CallError> {
        if !self.stage.is_special()
            && !batch.is_watched()
            && let Some(mut guard) = self.host.enter(&self.stage).await
        {
            let counted = Counted::of(&self.stage, batch);
            guard.handle(counted.batch).await;
            return Ok(());
        }
        Ok(self.stage.call_any(batch, self.from).await?)
    }

    /// Calls the callee with one event.
    ///
    /// # Errors
    /// Returns an error if the stage is closed.
    pub async fn send(&self, event: impl Into<Event<E>>) -> Result<(), CallError> {
        self.call(&mut Batch::of([event])).await
    }
}

impl<E: Send + 'static> AnyCall<E> {
    /// Calls the callee with the batch. Events that the callee does not take stay in the batch.
    ///
    /// # Errors
    /// Returns an error if the stage is closed.
    #[inline]
    pub async fn call(&self, batch: &mut Batch<E>) -> Result<(), CallError> {
        if let Some(host) = &self.host
            && !self.stage.is_special()
            && !batch.is_watched()
        {
            let counted = Counted::of(&self.stage, batch);
            if host.call(counted.batch, &self.stage).await.is_ok() {
                return Ok(());
            }
        }
        Ok(self.stage.call_any(batch, self.from).await?)
    }

    /// Calls the callee with one event.
    ///
    /// # Errors
    /// Returns an error if the stage is closed.
    pub async fn send(&self, event: impl Into<Event<E>>) -> Result<(), CallError> {
        self.call(&mut Batch::of([event])).await
    }
}

/// Counts the events that a callee has taken when this is dropped, even if the call is abandoned or
/// the callee panics.
pub(crate) struct Counted<'a, E> {
    stage: &'a Shared<E>,
    pub(crate) batch: &'a mut Batch<E>,
    /// The number of events in the batch, and of events that it had withheld.
    before: (u64, u64),
}

impl<'a, E> Counted<'a, E> {
    #[inline]
    pub(crate) fn of(stage: &'a Shared<E>, batch: &'a mut Batch<E>) -> Self {
        let before = (batch.len() as u64, batch.withheld());
        Self {
            stage,
            batch,
            before,
        }
    }
}

impl<E> Drop for Counted<'_, E> {
    #[inline]
    fn drop(&mut self) {
        let (len, withheld) = self.before;
        let gone = len.saturating_sub(self.batch.len() as u64);
        let ended = self.batch.withheld().saturating_sub(withheld);
        self.stage.calls.add(gone.saturating_sub(ended));
    }
}

impl<E, C> Clone for Call<E, C> {
    fn clone(&self) -> Self {
        Self {
            stage: Arc::clone(&self.stage),
            host: Arc::clone(&self.host),
            from: self.from,
        }
    }
}

impl<E> Clone for AnyCall<E> {
    fn clone(&self) -> Self {
        Self {
            stage: Arc::clone(&self.stage),
            host: self.host.clone(),
            from: self.from,
        }
    }
}
