//! The traits of handlers.

use std::future::Future;

use crate::stage::event::Batch;

/// An event handler that processes several batches concurrently, one per servlet.
///
/// # Cancellation
/// In a stage with [`batch(1)`](crate::stage::StageBuilder::batch) and without keys, the future is
/// dropped when its event is [cancelled](crate::stage::CancelHandle).
///
/// # Examples
/// ```
/// use tussah::stage::{Batch, Handler};
///
/// struct Print;
///
/// impl Handler for Print {
///     type Event = String;
///     async fn handle(&self, batch: &mut Batch<String>) {
///         while let Some(line) = batch.next() {
///             println!("{line}");
///         }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a `Handler`, which handles several batches at the same time",
    label = "not a `Handler`",
    note = "a `SerialHandler` is given to a stage by `serial`, and a function that blocks by `blocking`; a closure that takes one event becomes a handler by `each`"
)]
pub trait Handler: Send + Sync + 'static {
    /// The type of the events.
    type Event: Send + 'static;

    /// Handles one batch. The servlet takes its next batch when the returned future has completed
    /// or been dropped.
    fn handle(&self, batch: &mut Batch<Self::Event>) -> impl Future<Output = ()> + Send;
}

/// An event handler that processes one batch at a time. The next batch starts only when the future
/// of the current batch has completed, even if that future waits.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a `SerialHandler`, which handles one batch after the other",
    label = "not a `SerialHandler`",
    note = "a `Handler` is given to a stage by `handler`, and a function that blocks by `blocking`; a closure that takes one event becomes a handler by `each`"
)]
pub trait SerialHandler: Send + 'static {
    /// The type of the events.
    type Event: Send + 'static;

    /// Handles one batch.
    fn handle(&mut self, batch: &mut Batch<Self::Event>) -> impl Future<Output = ()> + Send;
}
