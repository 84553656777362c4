//! The table of mutants: the change, its place, and the tests that have to detect it.

use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use serde::Deserialize;

use crate::ci::cargo;

#[derive(Deserialize)]
struct Table {
    mutant: Vec<Mutant>,
}

/// A mutant.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mutant {
    /// The promise, and how it is broken.
    pub(super) name: String,
    /// The path relative to the root of the workspace.
    pub(super) file: String,
    /// A piece of text that occurs exactly once in the file.
    pub(super) from: String,
    /// The replacement.
    pub(super) to: String,
    pub(super) suite: Suite,
    /// Names of tests, or suffixes of such names; it is enough if one of them fails.
    pub(super) tests: Vec<String>,
    /// The reason why no test detects the mutant, if that is so.
    pub(super) survives: Option<String>,
}

impl Mutant {
    /// Returns the text of the file with the change.
    ///
    /// # Errors
    ///
    /// Returns an error with the reason if the mutant cannot be applied.
    pub(super) fn apply(&self, text: &str) -> Result<String, String> {
        match text.matches(&self.from).count() {
            1 => Ok(text.replacen(&self.from, &self.to, 1)),
            count => Err(format!(
                "expected `from` once in {}, found it {count} times",
                self.file
            )),
        }
    }
}

/// A way to build and run tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Suite {
    /// The unit tests of tussah-core.
    #[default]
    Unit,
    /// The integration tests of tussah-core.
    It,
    /// The integration tests of tussah.
    User,
    /// The loom models of tussah-core.
    Loom,
}

impl Suite {
    pub(super) const ALL: [Self; 4] = [Self::Unit, Self::It, Self::User, Self::Loom];

    /// Returns `cargo test` for this suite, without filters.
    pub(super) fn cargo(self, target: &Path) -> Command {
        let mut cargo = cargo();
        let user = self == Self::User;
        let package = if user { "tussah" } else { "tussah-core" };
        cargo.args(["test", "--package", package]);
        match self {
            Self::Unit => cargo.arg("--lib"),
            Self::It | Self::User => cargo.args(["--test", "it"]),
            Self::Loom => cargo
                .args(["--lib", "--profile", "loom"])
                .env("RUSTFLAGS", "--cfg loom")
                // A backtrace overflows the stack of a model's thread, and the program then hangs.
                .env("RUST_BACKTRACE", "0"),
        };
        let folder = if self == Self::Loom { "loom" } else { "debug" };
        cargo.arg("--target-dir").arg(target.join(folder));
        cargo.env("CARGO_INCREMENTAL", "1");
        cargo
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unit => "unit",
            Self::It => "it",
            Self::User => "user",
            Self::Loom => "loom",
        })
    }
}

/// Parses the table.
///
/// # Errors
///
/// Returns an error with the position and the kind of the mistake if the table is malformed.
pub(super) fn parse(text: &str) -> anyhow::Result<Vec<Mutant>> {
    let table: Table = toml::from_str(text).context("xtask/mutants.toml does not parse")?;
    Ok(table.mutant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_not_there_once_is_refused() {
        let mutant = Mutant {
            from: "a".to_owned(),
            to: "c".to_owned(),
            ..Mutant::default()
        };
        assert_eq!(mutant.apply("ab").as_deref(), Ok("cb"));
        assert!(mutant.apply("aa").is_err());
        assert!(mutant.apply("b").is_err());
    }
}
