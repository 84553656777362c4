//! The table of mutants: what is broken, where, and which tests have to notice.

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

/// One break.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mutant {
    /// The promise, and what breaks it.
    pub(super) name: String,
    /// From the root of the workspace on.
    pub(super) file: String,
    /// A text that is in the file exactly once.
    pub(super) from: String,
    /// What takes its place.
    pub(super) to: String,
    pub(super) suite: Suite,
    /// Names of tests, whole or from some part on; one that fails is enough.
    pub(super) tests: Vec<String>,
    /// Why no test notices.
    pub(super) survives: Option<String>,
}

impl Mutant {
    /// The file with the break in it.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be made.
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
    /// The loom models of tussah-core.
    Loom,
}

impl Suite {
    pub(super) const ALL: [Self; 3] = [Self::Unit, Self::It, Self::Loom];

    /// `cargo test` of this suite, without filters.
    pub(super) fn cargo(self, target: &Path) -> Command {
        let mut cargo = cargo();
        cargo.args(["test", "--package", "tussah-core"]);
        match self {
            Self::Unit => cargo.arg("--lib"),
            Self::It => cargo.args(["--test", "it"]),
            Self::Loom => cargo
                .args(["--lib", "--profile", "loom"])
                .env("RUSTFLAGS", "--cfg loom"),
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
            Self::Loom => "loom",
        })
    }
}

/// # Errors
///
/// Where the table is not what it should be.
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
