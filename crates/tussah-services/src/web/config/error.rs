//! The errors of a configuration.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Default,
    /// A position in a file; lines and columns count from 1, columns in characters.
    File {
        path: Arc<Path>,
        line: usize,
        column: usize,
    },
    /// The name of the variable.
    Environment(String),
    /// The option without its dashes, or `DIR`.
    CommandLine(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Environment(name) => f.write_str(name),
            Self::CommandLine("DIR") => f.write_str("DIR"),
            Self::CommandLine(flag) => write!(f, "--{flag}"),
        }
    }
}

/// An error in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) origin: Origin,
    /// The key, if it is known.
    pub(super) key: Option<&'static str>,
    pub(super) what: String,
}

impl Problem {
    /// Returns the error of a value that differs from what was expected.
    pub(super) fn unexpected(origin: &Origin, expected: &str, found: &str) -> Self {
        let what = format!("expected {expected}, found {found}");
        Self {
            origin: origin.clone(),
            key: None,
            what,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        // An option that stands for the key already names it.
        let is_said = |name: &&str| {
            let key = super::keys::key(name);
            key.is_some_and(|key| self.origin == Origin::CommandLine(key.flag))
        };
        if let Some(key) = self.key.filter(|name| !is_said(name)) {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.what)
    }
}

/// All errors in a configuration. Each error is one line that states the source of the value, the
/// key, what was expected, and what was found. Errors in a file come first, sorted by position. The
/// `Debug` form is the same as the `Display` form, for programs that return this error from `main`.
pub struct ConfigErrors(pub(super) Vec<Problem>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.0.iter().enumerate() {
            let line = if n == 0 { "" } else { "\n" };
            write!(f, "{line}{problem}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ConfigErrors {}

/// Suggests a known name that resembles an unknown one, as the end of a sentence.
pub(super) fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    // Up to a third of the letters may be wrong, and the last part of a name may be in the wrong
    // section.
    let far = (name.chars().count() / 3).clamp(1, 4);
    let near = known.filter_map(|known| {
        let same_end = known.rsplit('.').next() == name.rsplit('.').next();
        let distance = strsim::damerau_levenshtein(name, known);
        (distance <= far || same_end).then_some((distance, known))
    });
    near.min().map_or(String::new(), |(_, known)| {
        format!("; did you mean `{known}`?")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn main_shows_sentences() {
        let problem = |flag| {
            let origin = Origin::CommandLine(flag);
            Problem::unexpected(&origin, "a file", "\"x\"")
        };
        let errors = ConfigErrors(vec![problem("a"), problem("b")]);
        let expected = "--a: expected a file, found \"x\"\n--b: expected a file, found \"x\"";
        assert_eq!(format!("{errors:?}"), expected);
    }

    #[test]
    fn near_names_are_suggested() {
        let table = [
            ("limits.haed", "; did you mean `limits.head`?"),
            ("limit.head", "; did you mean `limits.head`?"),
            ("head", "; did you mean `limits.head`?"),
            ("lisen", "; did you mean `listen`?"),
            ("colour", ""),
        ];
        for (name, expected) in table {
            let known = ["listen", "limits.head", "limits.body"];
            assert_eq!(did_you_mean(name, known.into_iter()), expected, "{name}");
        }
    }
}
