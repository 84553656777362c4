//! Writes a configuration as a file with the same meaning.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::path::Path;
use std::time::Duration;

use super::keys::KEYS;
use super::settings::{Config, LogFile};
use super::value::Choice;
use crate::units;
use crate::web::site::{Codings, FieldRule};

impl Config {
    /// Returns the whole configuration as TOML, with the origin of each value. A configuration file
    /// with this content yields the same configuration.
    #[must_use]
    pub fn show(&self) -> String {
        let mut page = String::new();
        let mut section = "";
        for key in KEYS {
            let (in_section, name) = key.name.rsplit_once('.').unwrap_or(("", key.name));
            if in_section != section {
                section = in_section;
                write!(page, "\n[{section}]\n").expect("a string takes everything");
            }
            let line = format!("{name} = {}", (key.show)(self));
            let origin = self.origins.of(key.name);
            writeln!(page, "{line:<39} # {origin}").expect("a string takes everything");
        }
        page
    }
}

pub(super) fn plain<T: Display>(value: &T) -> String {
    value.to_string()
}

pub(super) fn text(text: &str) -> String {
    quoted(text)
}

pub(super) fn path(path: &Path) -> String {
    // A relative path depends on the location of its file, so it is shown as an absolute path.
    let whole = if path.is_absolute() {
        None
    } else {
        std::path::absolute(path).ok()
    };
    quoted(
        &whole
            .as_deref()
            .unwrap_or(Path::new(path))
            .to_string_lossy(),
    )
}

pub(super) fn log_file(file: &LogFile) -> String {
    match file {
        LogFile::Stdout => quoted("-"),
        LogFile::Path(file) => path(file),
    }
}

pub(super) fn size(bytes: &u64) -> String {
    quoted(&units::show_size(*bytes))
}

pub(super) fn duration(duration: &Duration) -> String {
    quoted(&units::show_duration(*duration))
}

pub(super) fn choice<T: Choice>(choice: &T) -> String {
    let word = T::WORDS.iter().find(|(_, value)| value == choice);
    quoted(word.expect("every choice has a word").0)
}

/// Formats a value, or a word for its absence.
pub(super) fn or<T>(word: &str, value: &Option<T>, show: fn(&T) -> String) -> String {
    value.as_ref().map_or_else(|| quoted(word), show)
}

pub(super) fn texts(texts: &[String]) -> String {
    list(texts.iter().map(|text| quoted(text)))
}

pub(super) fn words<T: Display>(words: &[T]) -> String {
    list(words.iter().map(|word| quoted(&word.to_string())))
}

pub(super) fn codings(codings: Codings) -> String {
    list(codings.iter().map(|coding| quoted(coding.name())))
}

pub(super) fn table<K: Display>(entries: &BTreeMap<K, String>) -> String {
    inline(
        entries
            .iter()
            .map(|(name, value)| (name.to_string(), quoted(value))),
    )
}

pub(super) fn rules(rules: &[FieldRule]) -> String {
    list(rules.iter().map(|rule| {
        let fields = rule
            .fields()
            .iter()
            .map(|(name, value)| (name.clone(), quoted(value)));
        let set = inline(fields);
        format!("{{ match = {}, set = {set} }}", quoted(rule.pattern()))
    }))
}

pub(super) fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

pub(super) fn inline(entries: impl Iterator<Item = (String, String)>) -> String {
    let entries: Vec<_> = entries
        .map(|(name, value)| format!("{} = {value}", quoted(&name)))
        .collect();
    if entries.is_empty() {
        "{}".into()
    } else {
        format!("{{ {} }}", entries.join(", "))
    }
}

/// Formats a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                write!(quoted, "\\u{:04X}", u32::from(c)).expect("a string takes everything");
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
