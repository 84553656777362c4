//! Values from the sources of the configuration, and the functions to read them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::{Origin, Problem};
use super::peers::Peers;
use super::settings::{ListenAddress, LogFile};
use crate::address::read_address;
use crate::fastcgi::Address;
use crate::units::{read_duration, read_size, show_duration, show_size};
use crate::web::site::{Codings, FieldRule};

/// A value with its origin.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) raw: Raw,
    pub(super) origin: Origin,
}

#[derive(Clone, Debug)]
pub(super) enum Raw {
    /// A word from the command line or the environment, which may stand for any type.
    Word(String),
    Text(String),
    Integer(i64),
    Boolean(bool),
    List(Vec<Value>),
    Table(Vec<(String, Value)>),
    /// A type that no key accepts, with its name.
    Other(&'static str),
}

pub(super) type Read<T> = Result<T, Vec<Problem>>;

/// A setting that is one of a few words.
pub(super) trait Choice: Copy + PartialEq + 'static {
    const WORDS: &'static [(&'static str, Self)];
}

impl Value {
    fn found(&self) -> String {
        match &self.raw {
            Raw::Word(text) | Raw::Text(text) => format!("{text:?}"),
            Raw::Integer(number) => number.to_string(),
            Raw::Boolean(value) => value.to_string(),
            Raw::List(_) => "a list".into(),
            Raw::Table(_) => "a table".into(),
            Raw::Other(name) => (*name).into(),
        }
    }

    pub(super) fn unexpected<T>(&self, expected: &str) -> Read<T> {
        Err(vec![Problem::unexpected(
            &self.origin,
            expected,
            &self.found(),
        )])
    }

    pub(super) fn or<T>(&self, value: Option<T>, expected: &str) -> Read<T> {
        value.map_or_else(|| self.unexpected(expected), Ok)
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match &self.raw {
            Raw::Word(text) | Raw::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Read<String> {
        self.or(self.as_text().map(Into::into), "text")
    }

    pub(super) fn switch(&self) -> Read<bool> {
        let value = match &self.raw {
            Raw::Boolean(value) => Some(*value),
            Raw::Word(word) => match &**word {
                "true" | "on" | "yes" | "1" => Some(true),
                "false" | "off" | "no" | "0" => Some(false),
                _ => None,
            },
            _ => None,
        };
        self.or(value, "true or false")
    }

    pub(super) fn count(&self, range: RangeInclusive<usize>) -> Read<usize> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        let count = match &self.raw {
            Raw::Integer(number) => usize::try_from(*number).ok(),
            Raw::Word(word) => word.parse().ok(),
            _ => None,
        };
        self.or(count.filter(|count| range.contains(count)), &expected)
    }

    pub(super) fn size(&self, range: RangeInclusive<u64>) -> Read<u64> {
        let (least, most) = (show_size(*range.start()), show_size(*range.end()));
        let expected = format!("a size such as \"64KiB\" or \"200MB\", from {least} to {most}");
        let size = match &self.raw {
            Raw::Integer(number) => u64::try_from(*number).ok(),
            _ => self.as_text().and_then(read_size),
        };
        self.or(size.filter(|size| range.contains(size)), &expected)
    }

    pub(super) fn duration(&self, range: RangeInclusive<Duration>) -> Read<Duration> {
        let (least, most) = (show_duration(*range.start()), show_duration(*range.end()));
        let expected = format!("a duration such as \"250ms\" or \"1.5s\", from {least} to {most}");
        let duration = self.as_text().and_then(read_duration);
        self.or(
            duration.filter(|duration| range.contains(duration)),
            &expected,
        )
    }

    /// Reads an optional value; the word `none` means that it is absent.
    pub(super) fn or_none<T>(
        &self,
        word: &str,
        read: impl FnOnce(&Self) -> Read<T>,
    ) -> Read<Option<T>> {
        if self.as_text() == Some(word) {
            return Ok(None);
        }
        let mut result = read(self).map(Some);
        if let Err(problems) = &mut result {
            for problem in problems {
                problem
                    .what
                    .insert_str("expected ".len(), &format!("{word:?} or "));
            }
        }
        result
    }

    pub(super) fn choice<T: Choice>(&self) -> Read<T> {
        let chosen = T::WORDS
            .iter()
            .find(|(word, _)| Some(*word) == self.as_text());
        let words: Vec<_> = T::WORDS
            .iter()
            .map(|(word, _)| format!("{word:?}"))
            .collect();
        self.or(chosen.map(|(_, choice)| *choice), &words.join(" or "))
    }

    /// Reads a path. A relative path is relative to the directory of the file that names it.
    pub(super) fn path(&self) -> Read<PathBuf> {
        let text = self.or(self.as_text().filter(|text| !text.is_empty()), "a path")?;
        Ok(match &self.origin {
            Origin::File { path, .. } => path.parent().unwrap_or(Path::new("")).join(text),
            _ => text.into(),
        })
    }

    /// Reads the path of a file in the site.
    pub(super) fn file_name(&self) -> Read<String> {
        let up = |text: &str| text.split('/').any(|segment| segment == "..");
        let name = self.as_text().filter(|text| !text.is_empty() && !up(text));
        self.or(
            name.map(Into::into),
            "the path of a file in the directory that is served",
        )
    }

    pub(super) fn url_path(&self) -> Read<String> {
        let path = |text: &&str| text.starts_with('/') && !text.contains(['?', '#']);
        let path = self.as_text().filter(path);
        self.or(path.map(Into::into), "a path that begins with \"/\"")
    }

    /// Reads the value of a header field.
    pub(super) fn field_value(&self) -> Read<String> {
        let text = self.text()?;
        match FieldRule::new("*", vec![("x".into(), text.clone())]) {
            Ok(_) if !text.is_empty() => Ok(text),
            _ => self.unexpected("text without control characters and spaces around it"),
        }
    }

    /// Reads the path of a Unix socket after `unix:`, if the value is one.
    fn unix_path(&self) -> Read<Option<PathBuf>> {
        let path = self.as_text().and_then(|text| text.strip_prefix("unix:"));
        match path {
            Some(path) if !path.is_empty() => self.with(path).path().map(Some),
            _ => Ok(None),
        }
    }

    /// Reads the address of a FastCGI application.
    pub(super) fn application(&self) -> Read<Address> {
        if let Some(path) = self.unix_path()? {
            return Ok(Address::Unix(path));
        }
        let address = self.as_text().and_then(|text| text.parse().ok());
        self.or(
            address.map(Address::Tcp),
            "an address such as \"unix:/run/php/php-fpm.sock\" or \"127.0.0.1:9000\"",
        )
    }

    pub(super) fn listen_address(&self) -> Read<ListenAddress> {
        if let Some(path) = self.unix_path()? {
            return Ok(ListenAddress::Unix(path));
        }
        let address = match &self.raw {
            Raw::Integer(number) => read_address(&number.to_string()),
            _ => read_address(self.as_text().unwrap_or_default()),
        };
        let expected =
            "an address such as \"127.0.0.1:8080\", \"[::]:8080\", \"8080\" or \"unix:/run/web\"";
        self.or(address.map(ListenAddress::Tcp), expected)
    }

    pub(super) fn peers(&self) -> Read<Peers> {
        let peers = self.as_text().and_then(|text| text.parse().ok());
        self.or(
            peers,
            "an address or a network such as \"10.0.0.0/8\" or \"::1\", or \"unix\"",
        )
    }

    pub(super) fn log_file(&self) -> Read<LogFile> {
        if self.as_text() == Some("-") {
            Ok(LogFile::Stdout)
        } else {
            self.path().map(LogFile::Path)
        }
    }

    /// Reads a list. Outside of files, its elements may also be separated by commas.
    pub(super) fn list<T>(&self, read: impl Fn(&Self) -> Read<T>) -> Read<Vec<T>> {
        let values = match &self.raw {
            Raw::List(values) => values,
            Raw::Word(_) => std::slice::from_ref(self),
            Raw::Text(text) => return self.unexpected(&format!("a list such as [{text:?}]")),
            _ => return self.unexpected("a list"),
        };
        let parts = values.iter().flat_map(|value| match &value.raw {
            Raw::Word(words) => {
                let words = words
                    .split(',')
                    .map(str::trim)
                    .filter(|word| !word.is_empty());
                words.map(|word| value.with(word)).collect()
            }
            _ => vec![value.clone()],
        });
        all(parts.map(|value| read(&value)))
    }

    pub(super) fn codings(&self) -> Read<Codings> {
        let one = |value: &Self| {
            let named = Codings::ALL
                .iter()
                .find(|coding| Some(coding.name()) == value.as_text());
            value.or(named, "\"br\", \"zstd\" or \"gzip\"")
        };
        Ok(self.list(one)?.into_iter().collect())
    }

    /// Reads a table; outside of files it is a list of `NAME=VALUE`.
    fn table(&self, expected: &str) -> Read<Vec<(String, Self)>> {
        if let Raw::Table(entries) = &self.raw {
            return Ok(entries.clone());
        }
        if let Raw::Text(_) | Raw::Integer(_) | Raw::Boolean(_) | Raw::Other(_) = &self.raw {
            return self.unexpected(expected);
        }
        self.list(|value| {
            let pair = value.as_text().and_then(|text| text.split_once('='));
            let (name, text) = value.or(pair, &format!("{expected}, as NAME=VALUE"))?;
            Ok((name.trim().to_owned(), value.with(text.trim())))
        })
    }

    pub(super) fn error_pages(&self) -> Read<BTreeMap<u16, String>> {
        let table = self.table("a table of status codes and files")?;
        let pages = all(table.into_iter().map(|(name, value)| {
            let status = name
                .parse()
                .ok()
                .filter(|status| (400..600).contains(status));
            let Some(status) = status else {
                let expected = "a status code from 400 to 599";
                let found = format!("{name:?}");
                return Err(vec![Problem::unexpected(&value.origin, expected, &found)]);
            };
            Ok((status, value.file_name()?))
        }))?;
        Ok(pages.into_iter().collect())
    }

    pub(super) fn types(&self) -> Read<BTreeMap<String, String>> {
        let table = self.table("a table of extensions and media types")?;
        let types = all(table.into_iter().map(|(name, value)| {
            let media_type = value.field_value()?;
            let whole = media_type
                .split_once('/')
                .is_some_and(|(a, b)| !a.is_empty() && !b.is_empty());
            Ok((
                name,
                value.or(
                    whole.then_some(media_type),
                    "a media type such as \"text/plain\"",
                )?,
            ))
        }))?;
        Ok(types.into_iter().collect())
    }

    /// Reads tables with `match` and `set`. Outside of files they are lines of `NAME: VALUE`, which
    /// apply to all paths, or `PATTERN NAME: VALUE`.
    pub(super) fn rules(&self) -> Read<Vec<FieldRule>> {
        match &self.raw {
            Raw::List(values) => all(values.iter().map(Self::rule)),
            Raw::Word(lines) => all(lines.lines().map(|line| self.with(line).rule())),
            _ => self.unexpected("a list of tables with \"match\" and \"set\""),
        }
    }

    fn rule(&self) -> Read<FieldRule> {
        const EXPECTED: &str = "a table with \"match\" and \"set\"";
        let (mut pattern, mut fields) = (None, None);
        match &self.raw {
            Raw::Table(entries) => {
                for (name, value) in entries {
                    match &**name {
                        "match" => pattern = Some(value.text()?),
                        "set" => fields = Some(value.fields()?),
                        _ => return value.or(None, &format!("{EXPECTED} and not {name:?}")),
                    }
                }
            }
            Raw::Word(line) => {
                let (name, value) = self.or(line.split_once(':'), "\"[PATTERN] NAME: VALUE\"")?;
                let (matched, name) = name.trim().rsplit_once(' ').unwrap_or(("*", name.trim()));
                pattern = Some(matched.trim().to_owned());
                fields = Some(vec![(name.to_owned(), value.trim().to_owned())]);
            }
            _ => {}
        }
        let (pattern, fields) = self.or(pattern.zip(fields), EXPECTED)?;
        FieldRule::new(&pattern, fields).map_err(|error| {
            let what = error.to_string();
            vec![Problem {
                origin: self.origin.clone(),
                key: None,
                what,
            }]
        })
    }

    pub(super) fn fields(&self) -> Read<Vec<(String, String)>> {
        match &self.raw {
            Raw::Table(fields) => all(fields
                .iter()
                .map(|(name, value)| Ok((name.clone(), value.text()?)))),
            _ => self.unexpected("a table of names and texts"),
        }
    }

    /// Returns a part of this value with the same origin.
    pub(super) fn with(&self, word: &str) -> Self {
        Self {
            raw: Raw::Word(word.into()),
            origin: self.origin.clone(),
        }
    }
}

/// Returns all values, or all problems.
fn all<T>(results: impl Iterator<Item = Read<T>>) -> Read<Vec<T>> {
    let (mut values, mut problems) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(more) => problems.extend(more),
        }
    }
    if problems.is_empty() {
        Ok(values)
    } else {
        Err(problems)
    }
}
