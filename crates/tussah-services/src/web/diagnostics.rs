//! Diagnostics: problems that are reported on standard error.

use std::sync::atomic::{AtomicU64, Ordering};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, registry, reload};
use tussah::console::Line;

use crate::web::config::{self, DiagnosticsFormat, DiagnosticsLevel};

/// The process's diagnostics; `None` if the program has its own subscriber.
pub(crate) struct Diagnostics(Option<reload::Handle<Targets, Registry>>);

impl Diagnostics {
    /// Sends all `tracing` events of the process to standard error, unless the program has set a
    /// subscriber.
    pub(crate) fn install(config: &config::Diagnostics) -> Self {
        let (level, handle) = reload::Layer::new(filter(config.level));
        // A failure of standard error cannot be reported anywhere.
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

    /// Changes the level.
    pub(crate) fn set_level(&self, level: DiagnosticsLevel) {
        if let Some(handle) = &self.0 {
            // This fails only if the subscriber no longer exists, and the subscriber lives as long
            // as the process.
            let _ = handle.reload(filter(level));
        }
    }
}

fn filter(level: DiagnosticsLevel) -> Targets {
    let level = match level {
        DiagnosticsLevel::Off => LevelFilter::OFF,
        DiagnosticsLevel::Error => LevelFilter::ERROR,
        DiagnosticsLevel::Warn => LevelFilter::WARN,
        DiagnosticsLevel::Info => LevelFilter::INFO,
        DiagnosticsLevel::Debug => LevelFilter::DEBUG,
    };
    // Rustls warns about single clients, as often as they cause the warning.
    let of_clients = if level < LevelFilter::DEBUG {
        level.min(LevelFilter::ERROR)
    } else {
        level
    };
    Targets::new()
        .with_default(level)
        .with_target("rustls", of_clients)
}

/// A limit of one message per second, so that clients who cause the message cannot fill a disk.
pub(crate) struct Seldom {
    /// The first second in which the next message is allowed.
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

    /// Returns the number of suppressed messages since the last one, if a message is allowed in
    /// this second.
    pub(crate) fn may_say(&self, now_s: u64) -> Option<u64> {
        // Relaxed: nothing depends on it. Only one of several simultaneous calls gets the second.
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
    use tracing::Level;

    use super::*;

    #[test]
    fn clients_do_not_have_rustls_warn() {
        let warns = |of, level| filter(level).would_enable(of, &Level::WARN);
        assert!(warns("tussah_services::web", DiagnosticsLevel::Warn));
        assert!(!warns("rustls::msgs::handshake", DiagnosticsLevel::Info));
        assert!(warns("rustls::msgs::handshake", DiagnosticsLevel::Debug));
        assert!(!warns("rustls", DiagnosticsLevel::Off));
    }

    #[test]
    fn once_a_second_is_enough() {
        let seldom = Seldom::new();
        let said = [0, 0, 0, 1, 5, 5, 4, 6].map(|now_s| seldom.may_say(now_s));
        let expected = [Some(0), None, None, Some(2), Some(0), None, None, Some(2)];
        assert_eq!(said, expected);
    }
}
