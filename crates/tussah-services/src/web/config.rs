//! The configuration of a web server: its settings and their sources.
//!
//! A single table lists every key. The command-line options, the environment variables, the keys of
//! configuration files, the help, and the output of `--check-config` all derive from this table.
//!
//! ```
//! use clap::{Args, Command, FromArgMatches};
//! use tussah_services::web::config::{Arguments, Config};
//!
//! let command = Arguments::augment_args(Command::new("web"));
//! let matches = command.get_matches_from(["web", "--cache-size", "1.5GiB", "/srv/www"]);
//! let config = Config::load_from(&Arguments::from_arg_matches(&matches)?, [])?;
//! assert_eq!(config.root.to_str(), Some("/srv/www"));
//! assert_eq!(config.cache.bytes, 1_610_612_736);
//!
//! let command = Arguments::augment_args(Command::new("web"));
//! let matches = command.get_matches_from(["web", "--drain=soon", "--limit-headers=1"]);
//! let errors = Config::load_from(&Arguments::from_arg_matches(&matches)?, []).unwrap_err();
//! assert_eq!(errors.to_string(), "\
//! --drain: expected a duration such as \"250ms\" or \"1.5s\", from 0s to 1d, found \"soon\"
//! --limit-headers: expected a whole number from 8 to 1000, found \"1\"");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arguments;
mod check;
mod choices;
mod error;
mod fastcgi;
mod file;
mod keys;
mod load;
mod peers;
mod settings;
mod show;
#[cfg(test)]
mod tests;
mod value;

pub use arguments::Arguments;
pub use error::ConfigErrors;
pub use fastcgi::{FastCgi, FastCgiPaths};
pub use load::Origins;
pub use peers::Peers;
pub use settings::{
    Cache, CacheKind, Colors, Config, Diagnostics, DiagnosticsFormat, DiagnosticsLevel, HalfClose,
    Limits, ListenAddress, Log, LogFile, LogFormat, StatusPageOptions, Timeouts, Tls,
};
