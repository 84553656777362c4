//! Combines a configuration from its sources.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::arguments::Arguments;
use super::error::{ConfigErrors, Origin, Problem, did_you_mean};
use super::file;
use super::keys::{Given, KEYS, Key, PREFIX};
use super::settings::Config;
use super::value::{Raw, Value};

/// Bound, in bytes: the largest configuration file. A larger file is rejected, since it cannot be a
/// configuration.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The origins of all non-default values, by key. An origin is a line of a file, a command-line
/// option or an environment variable.
#[derive(Clone, Debug, Default)]
pub struct Origins(BTreeMap<&'static str, Origin>);

impl Origins {
    pub(super) fn of(&self, key: &str) -> &Origin {
        self.0.get(key).unwrap_or(&Origin::Default)
    }
}

impl Config {
    /// Loads a configuration from all of its sources. The command line overrides the environment
    /// (`TUSSAH_WEB_*`), which overrides the file, which overrides the defaults. Lists and tables
    /// are not merged: each one comes entirely from one source.
    ///
    /// # Errors
    /// Returns the errors in all sources, even in values that another source overrides.
    pub fn load(arguments: &Arguments) -> Result<Self, ConfigErrors> {
        Self::load_from(arguments, std::env::vars_os())
    }

    /// Loads a configuration, as [`load`](Self::load) does, but takes the environment as a
    /// parameter.
    ///
    /// # Errors
    /// Returns the same errors as [`load`](Self::load).
    pub fn load_from(
        arguments: &Arguments,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigErrors> {
        let mut draft = Draft::default();
        let (variables, named) = read_environment(environment, &mut draft.problems);
        let given = arguments
            .config
            .clone()
            .map(|file| (Origin::CommandLine("config"), file));
        if let Some((origin, file)) = given.or(named) {
            draft.read_file(origin, &file);
        }
        for (key, value) in variables.iter().chain(&arguments.values) {
            draft.set(key, value);
        }
        draft.finish()
    }
}

#[derive(Default)]
struct Draft {
    config: Config,
    problems: Vec<Problem>,
}

impl Draft {
    fn read_file(&mut self, origin: Origin, path: &Path) {
        let read = std::fs::metadata(path).and_then(|meta| match meta.len() {
            FILE_BYTES_MAX.. => Err(std::io::Error::other("the file is larger than 1 MiB")),
            _ => std::fs::read_to_string(path),
        });
        match read {
            Ok(text) => {
                let (values, problems) = file::read_text(path, &text);
                self.problems.extend(problems);
                for (key, value) in &values {
                    self.set(key, value);
                }
            }
            Err(error) => {
                let what = format!(
                    "cannot read the configuration file {}: {error}",
                    path.display()
                );
                self.problems.push(Problem {
                    origin,
                    key: None,
                    what,
                });
            }
        }
    }

    fn set(&mut self, key: &'static Key, value: &Value) {
        match (key.set)(&mut self.config, value) {
            Ok(()) => {
                self.config.origins.0.insert(key.name, value.origin.clone());
            }
            Err(problems) => {
                let named = |problem| Problem {
                    key: Some(key.name),
                    ..problem
                };
                self.problems.extend(problems.into_iter().map(named));
            }
        }
    }

    /// Checks conditions that involve several keys.
    fn finish(mut self) -> Result<Config, ConfigErrors> {
        let config = &mut self.config;
        let tls = [("tls.cert", &config.tls.cert), ("tls.key", &config.tls.key)];
        for ((name, file), (other, its_file)) in [(tls[0], tls[1]), (tls[1], tls[0])] {
            let named = self
                .problems
                .iter()
                .any(|problem| problem.key == Some(name));
            if file.is_none() && its_file.is_some() && !named {
                let what = format!("missing, but {other} is set; set both or neither");
                let origin = config.origins.of(other).clone();
                self.problems.push(Problem {
                    origin,
                    key: Some(name),
                    what,
                });
            }
        }
        if let Some(paths) = config.claimed_twice() {
            let what = format!("two applications claim the paths {paths}; keep one of them");
            let origin = config.origins.of("fastcgi").clone();
            self.problems.push(Problem {
                origin,
                key: Some("fastcgi"),
                what,
            });
        }
        if config.listen.is_empty() {
            let what = "expected at least one address, found none".into();
            let origin = config.origins.of("listen").clone();
            self.problems.push(Problem {
                origin,
                key: Some("listen"),
                what,
            });
        }
        if !self.problems.is_empty() {
            // The sort is stable: a file's problems are ordered by their place, and others keep
            // their order.
            self.problems.sort_by_key(|problem| match &problem.origin {
                Origin::File { line, column, .. } => (*line, *column),
                _ => (usize::MAX, 0),
            });
            return Err(ConfigErrors(self.problems));
        }
        Ok(self.config)
    }
}

/// Reads the values in the environment, and the file that it names.
fn read_environment(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    problems: &mut Vec<Problem>,
) -> (Vec<Given>, Option<(Origin, PathBuf)>) {
    let known: BTreeMap<String, &Key> = KEYS.iter().map(|key| (key.variable(), key)).collect();
    let config = format!("{PREFIX}CONFIG");
    let (mut values, mut file) = (Vec::new(), None);
    for (name, text) in environment {
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else {
            continue;
        };
        let origin = Origin::Environment(name.to_owned());
        if name == config {
            file = Some((origin, text.into()));
        } else if let Some(key) = known.get(name) {
            let word = text.into_string();
            let raw = word.map_or(Raw::Other("bytes that are not UTF-8"), Raw::Word);
            values.push((*key, Value { raw, origin }));
        } else {
            let names = known.keys().chain([&config]).map(String::as_str);
            let what = format!("unknown environment variable{}", did_you_mean(name, names));
            problems.push(Problem {
                origin,
                key: None,
                what,
            });
        }
    }
    values.sort_by_key(|(key, _)| key.name);
    (values, file)
}
