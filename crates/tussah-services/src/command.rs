//! The life of a command that serves until a signal: its runtime, its messages, and its end.

use std::fmt;
use std::io;

use futures_lite::future;
use tussah::console::{STDERR, STDOUT, install_log};
use tussah::signal::{Signal, Signals, signal};

use crate::signals;
use crate::web::config;
use crate::web::diagnostics::Diagnostics;

/// A command, with its messages at the end.
pub(crate) struct Command {
    /// The name, such as `tussah video`.
    pub(crate) name: &'static str,
    pub(crate) diagnostics: config::Diagnostics,
    pub(crate) workers: Option<usize>,
    /// The message after the first signal.
    pub(crate) leaving: &'static str,
    /// The name of what the second signal cuts.
    pub(crate) cut: &'static str,
}

impl Command {
    /// Starts a server in a runtime of its own, and stops it after SIGTERM or Ctrl-C. A second
    /// signal quits immediately.
    ///
    /// # Errors
    /// Returns the error of `start`, or that of the runtime and its signals.
    pub(crate) fn run<R: fmt::Display, E>(
        self,
        start: impl AsyncFnOnce() -> Result<R, E>,
        stop: impl AsyncFnOnce(R),
        no_runtime: fn(io::Error) -> E,
    ) -> Result<(), E> {
        let _said = Said;
        let _diagnostics = Diagnostics::install(&self.diagnostics);
        if let Err(error) = crate::descriptors::raise() {
            tracing::warn!(%error, "cannot raise the limit of open files (RLIMIT_NOFILE); it stays as it is");
        }
        let mut builder = tussah::Runtime::builder();
        if let Some(workers) = self.workers {
            builder = builder.workers(workers);
        }
        let runtime = builder.build().map_err(no_runtime)?;
        runtime.block_on(async {
            signals::fail_writes_at_the_limit().map_err(no_runtime)?;
            let signals = signal(Signal::INT).and_then(|int| Ok([int, signal(Signal::TERM)?]));
            let signals = signals.map_err(no_runtime)?;
            let running = start().await?;
            self.say(&running);
            any(&signals).await;
            let leaving = self.leaving;
            self.say(&format_args!(
                "shutting down: {leaving} (signal again to quit now)"
            ));
            let stopped = async {
                stop(running).await;
                "stopped".to_owned()
            };
            let at_once = async {
                any(&signals).await;
                format!("stopped now; {} were cut", self.cut)
            };
            self.say(&future::or(stopped, at_once).await);
            Ok(())
        })
    }

    /// Prints a message for the operator.
    fn say(&self, text: &dyn fmt::Display) {
        STDOUT.say(format!("{}: {text}\n", self.name).into_bytes());
    }
}

async fn any([int, term]: &[Signals; 2]) {
    future::or(signals::wait(int), signals::wait(term)).await;
}

/// A guard for the messages that a program writes to standard error. Dropping the guard waits until
/// all messages have been written, but at most one second for each output stream.
#[must_use]
#[derive(Debug)]
pub struct Messages(Said);

impl Messages {
    /// Prints the program's `tracing` messages to standard error, unless the program has its own
    /// subscriber. The level is INFO for messages of the standard modules, and WARN for all others.
    pub fn to_stderr() -> Self {
        install_log();
        Self(Said)
    }
}

/// A guard whose drop waits for the output, as described for [`Messages`].
#[derive(Debug)]
struct Said;

impl Drop for Said {
    fn drop(&mut self) {
        STDOUT.flush();
        STDERR.flush();
    }
}
