//! The FastCGI applications of a site.

use std::time::Duration;

use super::error::{Problem, did_you_mean};
use super::settings::Config;
use super::show;
use super::value::{Raw, Read, Value};
use crate::fastcgi::{Address, Options};
use crate::web::site::{Site, SiteError};

/// A FastCGI application that handles some paths of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastCgi {
    /// The address of the application.
    pub address: Address,
    /// The paths that the application handles.
    pub paths: FastCgiPaths,
    /// The limits on connections to the application, on requests that wait for a connection, and on
    /// waiting times.
    pub options: Options,
    /// True to split a path such as `/a.php/b` into the script `/a.php` and the path info `/b`. If
    /// false, the whole path is the name of the script.
    pub path_info: bool,
    /// True to buffer bodies in temporary files, so that a slow client does not occupy a connection
    /// to the application. The server stores a long request body in a file, and sends the request
    /// to the application once the body is complete. The server stores up to 1 GiB of a response in
    /// another file.
    pub buffering: bool,
    /// Additional variables for the application. Each one overrides the server's variable of the
    /// same name.
    pub params: Vec<(String, String)>,
}

/// The paths that a FastCGI application handles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FastCgiPaths {
    /// The scripts whose names end with this suffix, such as `.php`. Each script must be a file of
    /// the site.
    Suffix(String),
    /// All paths that begin with this prefix, such as `/app/`. `SCRIPT_NAME` is the prefix without
    /// its final slash, and `PATH_INFO` is the rest of the path. The site needs no files at these
    /// paths.
    Prefix(String),
}

impl FastCgi {
    /// Creates an application for the scripts whose names end in `.php`, with default limits.
    #[must_use]
    pub fn new(address: Address) -> Self {
        Self {
            address,
            paths: FastCgiPaths::Suffix(".php".into()),
            options: Options::default(),
            path_info: true,
            buffering: true,
            params: Vec::new(),
        }
    }
}

impl FastCgiPaths {
    /// Returns the path of the route.
    pub(crate) fn route(&self) -> String {
        match self {
            Self::Suffix(suffix) => format!("*{suffix}"),
            Self::Prefix(prefix) => format!("{prefix}*"),
        }
    }
}

impl Config {
    /// Returns all applications; [`php`](Self::php) stands for one of them.
    pub(crate) fn applications(&self) -> impl Iterator<Item = FastCgi> {
        let php = self.php.clone().map(FastCgi::new);
        php.into_iter().chain(self.fastcgi.iter().cloned())
    }

    /// Opens the site. The scripts of its applications are not files to serve.
    ///
    /// # Errors
    /// Returns the errors of [`Site::open`].
    pub(crate) fn open_site(&self) -> Result<Site, SiteError> {
        let mut options = self.site.clone();
        options
            .scripts
            .extend(self.applications().filter_map(|app| match app.paths {
                FastCgiPaths::Suffix(suffix) => Some(suffix),
                FastCgiPaths::Prefix(_) => None,
            }));
        Site::open(&self.root, options)
    }

    /// Returns the paths of the first route that two applications claim.
    pub(super) fn claimed_twice(&self) -> Option<String> {
        let mut routes: Vec<_> = self.applications().map(|one| one.paths.route()).collect();
        routes.sort();
        let twice = routes.windows(2).find(|two| two[0] == two[1])?;
        Some(twice[0].clone())
    }
}

/// Reads a list of tables; outside of files, `PATHS=ADDRESS`.
pub(super) fn read(value: &Value) -> Read<Vec<FastCgi>> {
    value.list(|value| match &value.raw {
        Raw::Table(entries) => read_table(value, entries),
        Raw::Word(word) => {
            let pair = word.split_once('=');
            let (paths, address) = value.or(pair, "PATHS=ADDRESS, as in .php=127.0.0.1:9000")?;
            let paths = value.with(paths);
            let paths = if paths.as_text().is_some_and(|text| text.starts_with('/')) {
                prefix(&paths)
            } else {
                suffix(&paths)
            };
            Ok(FastCgi {
                paths: paths?,
                ..FastCgi::new(value.with(address).application()?)
            })
        }
        _ => value.unexpected("a table with \"address\""),
    })
}

const NAMES: [&str; 12] = [
    "address",
    "suffix",
    "prefix",
    "connections",
    "queue",
    "timeout-queue",
    "timeout-connect",
    "timeout",
    "timeout-idle",
    "path-info",
    "buffering",
    "params",
];

fn read_table(table: &Value, entries: &[(String, Value)]) -> Read<FastCgi> {
    let (mut address, mut paths, mut problems) = (None, Vec::new(), Vec::new());
    let mut app = FastCgi::new(Address::Unix("/".into())); // replaced below
    let day = Duration::from_secs(86_400);
    for (name, value) in entries {
        let (options, time) = (&mut app.options, Duration::from_millis(1)..=day);
        let read = match &**name {
            "address" => value.application().map(|read| address = Some(read)),
            "suffix" => suffix(value).map(|read| paths.push(read)),
            "prefix" => prefix(value).map(|read| paths.push(read)),
            "connections" => value.count(1..=65_535).map(|n| options.connections = n),
            "queue" => value.count(0..=1_000_000).map(|n| options.waiting = n),
            "timeout-queue" => value.duration(time).map(|read| options.queue = read),
            "timeout-connect" => value.duration(time).map(|read| options.connect = read),
            "timeout" => value.duration(time).map(|read| options.silence = read),
            "timeout-idle" => value.duration(time).map(|read| options.idle = read),
            "path-info" => value.switch().map(|read| app.path_info = read),
            "buffering" => value.switch().map(|read| app.buffering = read),
            "params" => params(value).map(|read| app.params = read),
            _ => Err(vec![problem(
                value,
                format!(
                    "unknown key `{name}`{}",
                    did_you_mean(name, NAMES.into_iter())
                ),
            )]),
        };
        problems.extend(read.err().into_iter().flatten());
    }
    let names = |name| entries.iter().any(|(other, _)| other == name);
    if !names("address") {
        let what = "missing `address`, as in address = \"unix:/run/php/php-fpm.sock\"";
        problems.push(problem(table, what.into()));
    }
    if names("suffix") && names("prefix") {
        problems.push(problem(
            table,
            "expected `suffix` or `prefix`, found both".into(),
        ));
    }
    match address {
        Some(address) if problems.is_empty() => Ok(FastCgi {
            address,
            paths: paths.pop().unwrap_or(app.paths),
            ..app
        }),
        _ => Err(problems),
    }
}

fn problem(value: &Value, what: String) -> Problem {
    Problem {
        origin: value.origin.clone(),
        key: None,
        what,
    }
}

fn suffix(value: &Value) -> Read<FastCgiPaths> {
    let is_suffix = |text: &&str| {
        let rest = text.strip_prefix('.');
        rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['/', '*']))
    };
    let suffix = value.as_text().filter(is_suffix);
    let suffix = value.or(suffix, "the end of file names, such as \".php\"")?;
    Ok(FastCgiPaths::Suffix(suffix.into()))
}

fn prefix(value: &Value) -> Read<FastCgiPaths> {
    let is_prefix = |text: &&str| {
        let is_path = text.len() > 1 && text.starts_with('/') && text.ends_with('/');
        is_path && !text.contains(['*', '?', '#', '%', '\\']) && !text.contains("//")
    };
    let prefix = value.as_text().filter(is_prefix);
    let prefix = value.or(prefix, "the beginning of paths, such as \"/app/\"")?;
    Ok(FastCgiPaths::Prefix(prefix.into()))
}

fn params(value: &Value) -> Read<Vec<(String, String)>> {
    let params = value.fields()?;
    match params.iter().find(|(name, _)| name.is_empty()) {
        Some(_) => value.unexpected("a name for each variable"),
        None => Ok(params),
    }
}

/// Formats the applications as a list of inline tables.
pub(super) fn show_all(config: &Config) -> String {
    show::list(config.fastcgi.iter().map(|app| {
        let (paths, text) = match &app.paths {
            FastCgiPaths::Suffix(text) => ("suffix", text),
            FastCgiPaths::Prefix(text) => ("prefix", text),
        };
        let options = &app.options;
        let params = app.params.iter();
        let params = params.map(|(name, value)| (name.clone(), show::text(value)));
        format!(
            "{{ address = {}, {paths} = {}, connections = {}, queue = {}, timeout-queue = {}, \
             timeout-connect = {}, timeout = {}, timeout-idle = {}, path-info = {}, buffering = {}, \
             params = {} }}",
            show::text(&app.address.to_string()),
            show::text(text),
            options.connections,
            options.waiting,
            show::duration(&options.queue),
            show::duration(&options.connect),
            show::duration(&options.silence),
            show::duration(&options.idle),
            app.path_info,
            app.buffering,
            show::inline(params),
        )
    }))
}
