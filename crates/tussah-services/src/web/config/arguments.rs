//! The command line of a web server.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, ValueHint};

use super::error::Origin;
use super::keys::{Given, KEYS, Key, Kind};
use super::settings::Config;
use super::value::{Raw, Value};

/// The parsed command line, which [`Config::load`] interprets.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// True to print and check the configuration instead of starting the server.
    pub check_config: bool,
    pub(super) values: Vec<Given>,
}

impl FromArgMatches for Arguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut arguments = Self::default();
        arguments.update_from_arg_matches(matches)?;
        Ok(arguments)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.config = matches.get_one::<PathBuf>("config").cloned();
        self.check_config = matches.get_flag("check-config");
        for key in KEYS {
            let Some(words) = matches.get_many::<String>(key.name) else {
                continue;
            };
            let origin = Origin::CommandLine(key.flag);
            let word = |word: &String| Value {
                raw: Raw::Word(word.clone()),
                origin: origin.clone(),
            };
            let mut words: Vec<_> = words.map(word).collect();
            let value = match key.kind {
                Kind::Many => Value {
                    raw: Raw::List(words),
                    origin: origin.clone(),
                },
                Kind::One | Kind::Switch => {
                    words.pop().expect("an option that is there has a value")
                }
            };
            self.values.push((key, value));
        }
        Ok(())
    }
}

impl Args for Arguments {
    fn augment_args(command: Command) -> Command {
        let defaults = Config::default();
        let config = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .value_hint(ValueHint::FilePath)
            .help("Read settings from this TOML file; the command line and the environment override it");
        let check = Arg::new("check-config")
            .long("check-config")
            .action(ArgAction::SetTrue)
            .help("Print the effective configuration with its sources and errors, then exit");
        command
            .about("Serve a directory over HTTP")
            .long_about(ABOUT)
            .after_long_help(AFTER)
            .args([config, check])
            .args(KEYS.iter().map(|key| argument(key, &defaults)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn argument(key: &'static Key, defaults: &Config) -> Arg {
    let mut short = key.about.to_owned();
    let default = (key.show)(defaults).replace(['"', '[', ']', '{', '}'], "");
    if key.name == "root" {
        short.push_str(" [default: .]");
    } else if !default.is_empty() {
        short.push_str(&format!(" [default: {default}]"));
    }
    let long = format!("{short}\n[file: {}] [env: {}]", key.name, key.variable());
    let argument = Arg::new(key.name)
        .value_name(key.value)
        .value_parser(Words(key))
        .hide_possible_values(true)
        .help(short)
        .long_help(long)
        .value_hint(match key.value {
            "DIR" => ValueHint::DirPath,
            "FILE" => ValueHint::FilePath,
            _ => ValueHint::Other,
        });
    if key.name == "root" {
        return argument;
    }
    let argument = argument.long(key.flag).help_heading(key.heading);
    match key.kind {
        Kind::One => argument,
        Kind::Many => argument.action(ArgAction::Append),
        Kind::Switch => argument
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
    }
}

/// Offers a key's words to shell completion but accepts any text, since [`Config::load`] checks it,
/// as it checks other sources.
#[derive(Clone)]
struct Words(&'static Key);

impl TypedValueParser for Words {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let mut words = self.0.words().peekable();
        words.peek()?;
        Some(Box::new(words.map(PossibleValue::new)))
    }
}

const ABOUT: &str = "\
Serve a directory over HTTP.

The server serves only files beneath the directory, hides names that begin with a dot, and limits everything that \
a client can do. By default it listens on http://127.0.0.1:8080/, which only this machine can reach.";

const AFTER: &str = "\
Examples:
  tussah web examples/site
      Serve a directory to this machine only.
  tussah web --listen 0.0.0.0:80 --listen '[::]:80' --log-file access.log /srv/www
      Serve it on all interfaces and write an access log.
  tussah web --listen 8443 --tls-cert chain.pem --tls-key key.pem /srv/www
      Serve it over TLS.
  tussah web --fallback index.html --header '/assets/* Cache-Control: max-age=86400' dist
      Serve a single-page application whose assets clients cache for a day.
  tussah web --config site.toml --check-config
      Check a configuration file without serving anything.

Values:
  SIZE     64KiB, 200MB, 1.5GiB; kB is 1000 bytes, KiB 1024; a bare number is in bytes
  TIME     250ms, 1s, 1.5min, 2h; the units are us, ms, s, min (or m), h and d
  NETWORK  a network such as 10.0.0.0/8, an address such as ::1, or unix
  BOOL     true or false; --listing alone means --listing=true
  List options may be repeated or take several values separated by commas. --header must be
  repeated; TUSSAH_WEB_HEADER holds one rule per line.

Precedence:
  The command line overrides the environment, which overrides the file (--config or
  TUSSAH_WEB_CONFIG), which overrides the defaults. A list always comes from one source.
  A key with a dot belongs to a section of the file: cache.size is `size` in [cache].
  Relative paths in a file start from its directory. --check-config prints a complete file.

Signals:
  HUP          reload the configuration and certificates, and reopen the access log
  TERM, INT    shut down and finish requests in flight, within --drain; a second one quits now

Exit status:
  0  the server was stopped by a signal
  1  the server could not start, or every listener failed
  2  the command line or the configuration is invalid";
