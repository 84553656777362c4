//! The signals of a server.

use std::io;
use std::time::Duration;

use tussah::signal::{Signal, Signals, signal};

/// The pause before another attempt if the system lacked the resources to wait for a signal.
const RETRY: Duration = Duration::from_millis(100);

/// Makes a write beyond the limit on file sizes (RLIMIT_FSIZE) fail instead of ending the process.
///
/// # Errors
/// Returns an error if the signal cannot be handled.
pub(crate) fn fail_writes_at_the_limit() -> io::Result<()> {
    // The handler stays when nothing waits for the signal any longer.
    signal(Signal::XFSZ).map(drop)
}

/// Waits for a signal. If the system lacks the memory for this, the function retries, because that
/// is no reason to stop the program.
pub(crate) async fn wait(signals: &Signals) {
    while let Err(error) = signals.recv().await {
        tracing::warn!(%error, "cannot wait for a signal; retrying every 100 ms");
        tussah::time::sleep(RETRY).await;
    }
}
