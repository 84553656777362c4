//! Where a stage's handler lives: shared by its servlets, or one at a time.

use std::future::Future;
use std::sync::Arc;

use super::batch::Batch;
use super::handler::{Handler, SerialHandler};
use super::shared::Shared;

/// Where a handler lives.
pub(crate) trait Host<E>: Send + Sync + 'static {
    type Guard<'a>: Guard<E>;

    /// Waits until the handler may be used.
    fn enter(&self) -> impl Future<Output = Self::Guard<'_>> + Send;
}

/// The right to use a handler.
pub(crate) trait Guard<E>: Send {
    fn handle(&mut self, batch: &mut Batch<E>) -> impl Future<Output = ()> + Send;

    /// The handler panicked.
    fn rebuild(&mut self, stage: &Arc<Shared<E>>);
}

/// A handler that several may use.
pub(crate) struct Many<H>(pub(crate) H);

impl<H: Handler> Host<H::Event> for Many<H> {
    type Guard<'a> = &'a H;

    #[inline]
    async fn enter(&self) -> &H {
        &self.0
    }
}

impl<H: Handler> Guard<H::Event> for &H {
    #[inline]
    fn handle(&mut self, batch: &mut Batch<H::Event>) -> impl Future<Output = ()> + Send {
        H::handle(self, batch)
    }

    fn rebuild(&mut self, _: &Arc<Shared<H::Event>>) {}
}

/// A handler that one may use at a time.
pub(crate) struct One<H> {
    pub(crate) handler: async_lock::Mutex<H>,
}

impl<H: SerialHandler> Host<H::Event> for One<H> {
    type Guard<'a> = async_lock::MutexGuard<'a, H>;

    #[inline]
    async fn enter(&self) -> async_lock::MutexGuard<'_, H> {
        self.handler.lock().await
    }
}

impl<H: SerialHandler> Guard<H::Event> for async_lock::MutexGuard<'_, H> {
    #[inline]
    fn handle(&mut self, batch: &mut Batch<H::Event>) -> impl Future<Output = ()> + Send {
        H::handle(self, batch)
    }

    fn rebuild(&mut self, _: &Arc<Shared<H::Event>>) {}
}
