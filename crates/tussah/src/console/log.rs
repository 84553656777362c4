//! The log of a graph's command line on standard error.

use std::io;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{fmt, registry};

use super::STDERR;

/// The target of what the standard modules log.
const MODULES: &str = "tussah::modules";

/// Sends `tracing` events of the process to standard error, unless the program has set a
/// subscriber. The level is INFO for events of the standard modules, and WARN for all others.
pub fn install_log() {
    // Rustls warns about single clients, as often as they cause the warning.
    let filter = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("rustls", LevelFilter::ERROR)
        .with_target(MODULES, LevelFilter::INFO);
    // A failure of standard error cannot be reported anywhere.
    let lines = fmt::layer()
        .with_writer(|| Line)
        .with_ansi(false)
        .log_internal_errors(false)
        .with_target(false);
    // This fails if the program has a subscriber, which then gets the events.
    let _ = registry().with(filter).with(lines).try_init();
}

/// The writer of a line of the log, which receives it in one piece.
#[derive(Debug)]
pub struct Line;

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        STDERR.say(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
