//! What handles the events of a stage.

use std::future::Future;

use super::batch::Batch;

/// Handles events, several batches at the same time: one for each servlet.
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
    note = "a `SerialHandler` is given to a stage by `serial`, and a function that blocks by `blocking`; other functions stand in `handle` of a type of your own"
)]
pub trait Handler: Send + Sync + 'static {
    /// What it is sent.
    type Event: Send + 'static;

    /// Handles one batch. The servlet takes its next batch when the future has ended.
    fn handle(&self, batch: &mut Batch<Self::Event>) -> impl Future<Output = ()> + Send;
}

/// Handles events, one batch after the other: the next is taken when the future has ended, awaits included.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a `SerialHandler`, which handles one batch after the other",
    label = "not a `SerialHandler`",
    note = "a `Handler` is given to a stage by `handler`, and a function that blocks by `blocking`; other functions stand in `handle` of a type of your own"
)]
pub trait SerialHandler: Send + 'static {
    /// What it is sent.
    type Event: Send + 'static;

    /// Handles one batch.
    fn handle(&mut self, batch: &mut Batch<Self::Event>) -> impl Future<Output = ()> + Send;
}
