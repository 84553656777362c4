//! Waits for a signal as long as the program runs.

use std::time::Duration;

use tussah::signal::Signals;

/// The pause before another attempt, when the system had no resources to wait for a signal.
const RETRY: Duration = Duration::from_millis(100);

/// Waits for a signal. If the system lacks the memory to wait for it, this function retries, since
/// that is no reason to stop.
pub(crate) async fn wait(signals: &Signals) {
    while let Err(error) = signals.recv().await {
        tracing::warn!(%error, "cannot wait for a signal; retrying every 100 ms");
        tussah::time::sleep(RETRY).await;
    }
}
