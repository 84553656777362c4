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
pub trait Handler: Send + Sync + 'static {
    /// What it is sent.
    type Event: Send + 'static;

    /// Handles one batch. The servlet takes its next batch when the future has ended.
    fn handle(&self, batch: &mut Batch<Self::Event>) -> impl Future<Output = ()> + Send;
}

/// Handles events, one batch after the other: the next is taken when the future has ended, awaits included.
pub trait SerialHandler: Send + 'static {
    /// What it is sent.
    type Event: Send + 'static;

    /// Handles one batch.
    fn handle(&mut self, batch: &mut Batch<Self::Event>) -> impl Future<Output = ()> + Send;
}
