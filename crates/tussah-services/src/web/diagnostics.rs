//! Diagnostics: what goes wrong, on standard error.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, registry, reload};

use super::config::{self, DiagnosticsFormat, DiagnosticsLevel};
use super::console::STDERR;

/// The process's diagnostics, if a program has no others.
pub(crate) struct Diagnostics(Option<reload::Handle<LevelFilter, Registry>>);

impl Diagnostics {
    /// Sends to standard error what is said by `tracing` in the whole process, unless the program has it sent elsewhere.
    pub(crate) fn install(config: &config::Diagnostics) -> Self {
        let (level, handle) = reload::Layer::new(filter(config.level));
        // Nobody can be told that standard error fails.
        let lines = fmt::layer()
            .with_writer(|| Line)
            .with_ansi(false)
            .log_internal_errors(false);
        let registry = registry().with(level);
        let installed = match config.format {
            DiagnosticsFormat::Text => registry.with(lines.with_target(false)).try_init(),
            DiagnosticsFormat::Json => registry.with(lines.json()).try_init(),
        };
        Self(installed.is_ok().then_some(handle))
    }

    /// Says more or less from now on.
    pub(crate) fn set_level(&self, level: DiagnosticsLevel) {
        if let Some(handle) = &self.0 {
            // It fails only if the subscriber is gone, and it is the process's.
            let _ = handle.reload(filter(level));
        }
    }
}

fn filter(level: DiagnosticsLevel) -> LevelFilter {
    match level {
        DiagnosticsLevel::Off => LevelFilter::OFF,
        DiagnosticsLevel::Error => LevelFilter::ERROR,
        DiagnosticsLevel::Warn => LevelFilter::WARN,
        DiagnosticsLevel::Info => LevelFilter::INFO,
        DiagnosticsLevel::Debug => LevelFilter::DEBUG,
    }
}

/// What a line of diagnostics is written to: it comes as a whole.
struct Line;

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        STDERR.say(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Has something said once a second at most, so that clients who cause it don't fill a disk.
pub(crate) struct Seldom {
    /// The second in which it may be said again.
    next_s: AtomicU64,
    left_out: AtomicU64,
}

impl Seldom {
    pub(crate) const fn new() -> Self {
        Self {
            next_s: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
        }
    }

    /// Returns how often it was not said since the last time, if it may be said in this second.
    pub(crate) fn may_say(&self, now_s: u64) -> Option<u64> {
        // Relaxed: nothing depends on it. Of several at the same time one has the second.
        let before = self.next_s.fetch_max(now_s + 1, Ordering::Relaxed);
        if before > now_s {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(self.left_out.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_a_second_is_enough() {
        let seldom = Seldom::new();
        let said = [0, 0, 0, 1, 5, 5, 4, 6].map(|now_s| seldom.may_say(now_s));
        let expected = [Some(0), None, None, Some(2), Some(0), None, None, Some(2)];
        assert_eq!(said, expected);
    }
}
