//! Waits for a signal as long as the program runs.

use std::time::Duration;

use tussah::signal::Signals;

/// The pause before another attempt if the system lacked the resources to wait for a signal.
const RETRY: Duration = Duration::from_millis(100);

/// Waits for a signal. If the system lacks the memory for this, the function retries, because that
/// is no reason to stop the program.
pub(crate) async fn wait(signals: &Signals) {
    while let Err(error) = signals.recv().await {
        tracing::warn!(%error, "cannot wait for a signal; retrying every 100 ms");
        tussah::time::sleep(RETRY).await;
    }
}
