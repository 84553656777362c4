//! The command line of a web server.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, ValueHint};

use super::error::Origin;
use super::keys::{Given, KEYS, Key, Kind};
use super::settings::Config;
use super::value::{Raw, Value};

/// What the command line says. clap reads it, and [`Config::load`] gives it its meaning.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// Whether the configuration is only to be checked and shown.
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
            .help("Take from this file, in TOML, what the command line and the environment do not say");
        let check = Arg::new("check-config")
            .long("check-config")
            .action(ArgAction::SetTrue)
            .help("Show what holds and where it comes from, say what is wrong with it, and end");
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

/// Tells shells the words that a key can have; whether it has one of them is found out with the other sources.
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

It serves files beneath the directory and nothing else, hides names that begin with a dot, and has \
limits on everything a client can do. Without any options it is at http://127.0.0.1:8080/ for this machine alone.";

const AFTER: &str = "\
Examples:
  tussah web examples/site
      Serve a directory to this machine.
  tussah web --listen 0.0.0.0:80 --listen '[::]:80' --log-file access.log /srv/www
      Serve it to everybody, and write down who asked for what.
  tussah web --listen 8443 --tls-cert chain.pem --tls-key key.pem /srv/www
      Serve it over TLS.
  tussah web --fallback index.html --header '/assets/* Cache-Control: max-age=86400' dist
      Serve an application that does its own routing, with assets that are kept for a day.
  tussah web --config site.toml --check-config
      Show what a file means, without serving anything.

Values:
  SIZE     64KiB, 200MB, 1.5GiB; KB is 1000 bytes, KiB 1024; a number alone is in bytes
  TIME     250ms, 1s, 1.5m, 2h; the units are us, ms, s, m, h and d
  NETWORK  10.0.0.0/8 or ::1, a network or an address
  BOOL     true or false; --listing alone is --listing=true
  What may be given several times may also be given once, with commas between, but for
  --header, of which the environment has one a line.

Where values come from:
  The command line goes before the environment, that before the file (--config, or
  TUSSAH_WEB_CONFIG), and that before the defaults; a list is taken whole from one of them.
  Keys with a dot stand in a section of the file, so that cache.size is `size` in [cache].
  Paths in a file are relative to the directory it is in. --check-config prints a complete file.

Signals:
  HUP          read the configuration and certificates again, and reopen the access log
  TERM, INT    finish what is in flight, for --drain at most; a second one ends it at once

Exit status:
  0  it was told to stop, and has
  1  it could not start, or every listener has failed
  2  the command line or the configuration is wrong";
