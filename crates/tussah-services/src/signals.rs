//! Waiting for a signal for as long as a program runs.

use std::time::Duration;

use tussah::signal::Signals;

/// How long to wait before the system is asked again that had no room to wait for a signal.
const RETRY: Duration = Duration::from_millis(100);

/// Waits for a signal. A system without the memory to wait for it is asked again: it is no reason to stop.
pub(crate) async fn wait(signals: &Signals) {
    while let Err(error) = signals.recv().await {
        tracing::warn!(%error, "a signal can't be waited for now; this is tried again");
        tussah::time::sleep(RETRY).await;
    }
}
