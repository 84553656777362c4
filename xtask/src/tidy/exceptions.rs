//! The list of exceptions to the rules, which may only shrink.

use serde::Deserialize;
use toml::Spanned;

use super::Finding;

/// The path of the list.
pub(super) const PATH: &str = "xtask/tidy-exceptions.toml";

/// The list, each entry with its reason.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exceptions {
    #[serde(default)]
    pub(super) file: Vec<LongFile>,
    #[serde(default)]
    pub(super) function: Vec<LongFunction>,
    #[serde(default)]
    pub(super) unsafe_code: Vec<UnsafeFile>,
    /// The text of the list, to find line numbers in.
    #[serde(skip)]
    text: String,
}

/// A file that may be longer than the bound.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LongFile {
    pub(super) path: Spanned<String>,
    /// The limit in lines, without tests.
    pub(super) limit: usize,
    reason: String,
}

/// A function that may be longer than the bound.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LongFunction {
    pub(super) path: Spanned<String>,
    /// `function`, or `Type::function` for a function in an `impl` or a trait.
    pub(super) name: String,
    /// The limit in lines.
    pub(super) limit: usize,
    reason: String,
}

/// A file outside of the core that may contain `unsafe` code.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnsafeFile {
    pub(super) path: Spanned<String>,
    reason: String,
}

impl Exceptions {
    /// # Errors
    ///
    /// Returns a finding that says what is wrong with the list, and where.
    pub(super) fn parse(text: &str) -> Result<Self, Finding> {
        let parsed: Result<Self, toml::de::Error> = toml::from_str(text);
        let mut list = parsed.map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            Finding::new(PATH, line, format!("does not parse: {}", error.message()))
        })?;
        list.text = text.to_owned();
        list.check()?;
        Ok(list)
    }

    /// Checks that every entry has a reason and occurs only once.
    fn check(&self) -> Result<(), Finding> {
        let files = self
            .file
            .iter()
            .map(|entry| ("file", &entry.path, "", &entry.reason));
        let functions = self
            .function
            .iter()
            .map(|entry| ("function", &entry.path, entry.name.as_str(), &entry.reason));
        let unsafe_files = self
            .unsafe_code
            .iter()
            .map(|entry| ("unsafe_code", &entry.path, "", &entry.reason));
        let mut seen = std::collections::BTreeSet::new();
        for (rule, path, name, reason) in files.chain(functions).chain(unsafe_files) {
            if reason.trim().is_empty() {
                let what = "the exception has an empty reason, expected one";
                return Err(Finding::new(PATH, self.line(path), what));
            }
            if !seen.insert((rule, path.get_ref(), name)) {
                let what = "the exception is there twice, expected it once";
                return Err(Finding::new(PATH, self.line(path), what));
            }
        }
        Ok(())
    }

    /// Returns the line, from 1, of an entry's path.
    pub(super) fn line(&self, path: &Spanned<String>) -> usize {
        line_of(&self.text, path.span().start)
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text
        .bytes()
        .take(offset)
        .filter(|&byte| byte == b'\n')
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_with_the_lines_of_its_entries() {
        let text = "# Exceptions.\n\n[[file]]\npath = \"a.rs\"\nlimit = 450\nreason = \"whole\"\n";
        let list = Exceptions::parse(text).unwrap();
        assert_eq!(list.file[0].path.get_ref(), "a.rs");
        assert_eq!(list.line(&list.file[0].path), 4);
        assert_eq!(list.file[0].limit, 450);
    }

    #[test]
    fn an_entry_needs_every_field_a_reason_and_to_be_the_only_one() {
        let check = |text: &str, expected: &str| {
            let finding = Exceptions::parse(text).unwrap_err();
            assert!(finding.to_string().contains(expected), "{finding}");
        };
        check("[[file]]\npath = \"a.rs\"\n", "missing field");
        check("[[files]]\n", "unknown field");
        check(
            "[[unsafe_code]]\npath = \"a.rs\"\nreason = \" \"\n",
            ":2: the exception has an empty",
        );
        let twice = "[[unsafe_code]]\npath = \"a.rs\"\nreason = \"x\"\n".repeat(2);
        check(&twice, ":5: the exception is there twice");
    }
}
