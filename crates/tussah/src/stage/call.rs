//! A call edge: the callee's handler runs in the caller's servlet, on the caller's batch.

use std::fmt;
use std::sync::Arc;

use super::batch::Batch;
use super::event::Event;
use super::host::{Gone, Guard, Host, Present};
use super::shared::Shared;

/// Calls a stage whose handler has the host `C`: no queue, no admission, no servlet of its own. A panic in the callee is the caller's.
///
/// A serial or keyed callee is awaited while others use it. Made by [`To::call`](super::To::call).
pub struct Call<E, C> {
    pub(crate) stage: Arc<Shared<E>>,
    pub(crate) host: Arc<C>,
    pub(crate) from: u32,
}

/// Calls a stage that was found by its name, as [`Call`] does.
pub struct AnyCall<E> {
    pub(crate) stage: Arc<Shared<E>>,
    /// The handler that the stage had when the edge was made.
    pub(crate) host: Present<E>,
    pub(crate) from: u32,
}

/// The stage that was called has been destroyed, or its handler has panicked too often. The events that it did not take are still in the batch.
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
    /// Has the callee handle the batch. What it leaves is still there afterwards.
    ///
    /// # Errors
    /// If the stage is closed.
    #[inline]
    pub async fn call(&self, batch: &mut Batch<E>) -> Result<(), CallError> {
        if !self.stage.is_special()
            && !batch.traces().has_any()
            && let Some(mut guard) = self.host.enter(&self.stage.time).await
        {
            self.stage.calls.add(batch.len() as u64);
            guard.handle(batch).await;
            return Ok(());
        }
        Ok(self.stage.call_any(batch, self.from).await?)
    }

    /// Has the callee handle one event.
    ///
    /// # Errors
    /// If the stage is closed.
    pub async fn send(&self, event: impl Into<Event<E>>) -> Result<(), CallError> {
        self.call(&mut Batch::of([event])).await
    }
}

impl<E: Send + 'static> AnyCall<E> {
    /// Has the callee handle the batch. What it leaves is still there afterwards.
    ///
    /// # Errors
    /// If the stage is closed.
    #[inline]
    pub async fn call(&self, batch: &mut Batch<E>) -> Result<(), CallError> {
        let count = batch.len() as u64;
        match &self.host {
            Some(host)
                if !self.stage.is_special()
                    && !batch.traces().has_any()
                    && host.call(batch, &self.stage.time).await.is_ok() =>
            {
                self.stage.calls.add(count);
                Ok(())
            }
            _ => Ok(self.stage.call_any(batch, self.from).await?),
        }
    }

    /// Has the callee handle one event.
    ///
    /// # Errors
    /// If the stage is closed.
    pub async fn send(&self, event: impl Into<Event<E>>) -> Result<(), CallError> {
        self.call(&mut Batch::of([event])).await
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
