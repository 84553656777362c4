//! Reads a configuration file: TOML, with the position of every value.

use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Origin, Problem, did_you_mean};
use super::keys::{Given, KEYS, key};
use super::value::{Raw, Value};

/// Reads the values for keys, and returns every error in the rest.
pub(super) fn read_text(path: &Path, text: &str) -> (Vec<Given>, Vec<Problem>) {
    let mut reader = Reader {
        path: path.into(),
        text,
        values: Vec::new(),
        problems: Vec::new(),
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let at = error.span().map_or(0, |span| span.start);
        reader.problem(at, error.message().to_owned());
    }
    reader.read(table.get_ref(), "");
    (reader.values, reader.problems)
}

struct Reader<'a> {
    path: Arc<Path>,
    text: &'a str,
    values: Vec<Given>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn read(&mut self, table: &DeTable<'_>, section: &str) {
        for (name, value) in table {
            let full = format!("{section}{}", name.get_ref());
            let at = name.span().start;
            if let Some(key) = key(&full) {
                let value = self.value(value);
                self.values.push((key, value));
                continue;
            }
            let inner = format!("{full}.");
            let is_section = KEYS.iter().any(|key| key.name.starts_with(&inner));
            match value.get_ref() {
                DeValue::Table(table) if is_section => self.read(table, &inner),
                other if is_section => {
                    let what = format!("expected a section [{full}], found {}", other.type_str());
                    self.problem(at, what);
                }
                DeValue::Table(_) => {
                    let sections = KEYS
                        .iter()
                        .filter_map(|key| Some(key.name.split_once('.')?.0));
                    let tables = sections.chain(["headers", "errors", "types"]);
                    let hint = did_you_mean(&full, tables);
                    self.problem(at, format!("unknown section `{full}`{hint}"));
                }
                _ => {
                    let hint = did_you_mean(&full, KEYS.iter().map(|key| key.name));
                    self.problem(at, format!("unknown key `{full}`{hint}"));
                }
            }
        }
    }

    fn value(&self, value: &Spanned<DeValue<'_>>) -> Value {
        let raw = match value.get_ref() {
            DeValue::String(text) => Raw::Text(text.to_string()),
            DeValue::Boolean(value) => Raw::Boolean(*value),
            DeValue::Integer(number) => {
                let parsed = i64::from_str_radix(number.as_str(), number.radix());
                parsed.map_or(Raw::Other("a number that is too large"), Raw::Integer)
            }
            DeValue::Float(_) => Raw::Other("a number with a fraction"),
            DeValue::Datetime(_) => Raw::Other("a date"),
            DeValue::Array(values) => Raw::List(values.iter().map(|v| self.value(v)).collect()),
            DeValue::Table(table) => {
                let entries = table.iter();
                let entry = |(name, value): (&Spanned<_>, _)| {
                    let name: &std::borrow::Cow<'_, str> = name.get_ref();
                    (name.to_string(), self.value(value))
                };
                Raw::Table(entries.map(entry).collect())
            }
        };
        Value {
            raw,
            origin: self.origin(value.span().start),
        }
    }

    fn problem(&mut self, at: usize, what: String) {
        self.problems.push(Problem {
            origin: self.origin(at),
            key: None,
            what,
        });
    }

    fn origin(&self, at: usize) -> Origin {
        let (mut line, mut column) = (1, 1);
        for (_, c) in self
            .text
            .char_indices()
            .take_while(|(offset, _)| *offset < at)
        {
            (line, column) = if c == '\n' {
                (line + 1, 1)
            } else {
                (line, column + 1)
            };
        }
        Origin::File {
            path: Arc::clone(&self.path),
            line,
            column,
        }
    }
}
