//! The recorded results of Loom and Miri.
//!
//! Both check `tussah-core` alone, and the same sources give the same result. `record/` therefore
//! holds a fingerprint of the sources that passed, and CI repeats a check only after a change.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, ensure};
use sha2::{Digest as _, Sha256};
use toml::Table;

use super::steps::cargo;
use crate::record;
use crate::tidy::read_all;

/// The package that the checks depend on.
const PACKAGE: &str = "tussah-core";

/// The file with the options of the checks.
const OPTIONS: &str = "xtask/src/ci/steps.rs";

/// Variables that change how thorough the checks are. A result with one of them is not recorded.
const DEPTHS: [&str; 2] = ["LOOM_MAX_PREEMPTIONS", "MIRIFLAGS"];

/// Returns the fingerprint of all that the checks depend on, except for the toolchains.
///
/// # Errors
///
/// Returns an error if a file cannot be read, or cargo does not list the dependencies.
pub(super) fn fingerprint(root: &Path) -> anyhow::Result<String> {
    Ok(digest(&inputs(root)?))
}

/// Returns the sources, the options, the profiles, and the versions of the dependencies, each with
/// its name.
fn inputs(root: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut inputs = read_all(&root.join("crates").join(PACKAGE), "")?;
    let mut add = |name: &str, text: String| inputs.push((name.to_owned(), text));
    add(OPTIONS, read(root, OPTIONS)?);
    let manifest: Table = read(root, "Cargo.toml")?.parse()?;
    add("profiles", format!("{:?}", manifest.get("profile")));
    let mut tree = cargo();
    tree.current_dir(root)
        .args(["tree", "--locked", "--package", PACKAGE])
        .args(["--target=all", "--edges=normal,build,dev", "--prefix=none"]);
    let tree = tree.output().context("cannot start cargo")?;
    let errors = String::from_utf8_lossy(&tree.stderr);
    ensure!(tree.status.success(), "cargo tree failed: {errors}");
    add("packages", packages(&String::from_utf8_lossy(&tree.stdout)));
    Ok(inputs)
}

fn digest(inputs: &[(String, String)]) -> String {
    let mut all = Sha256::new();
    for part in inputs.iter().flat_map(|(name, text)| [name, text]) {
        all.update((part.len() as u64).to_le_bytes());
        all.update(part);
    }
    let mut text = String::new();
    for byte in all.finalize() {
        write!(text, "{byte:02x}").expect("a string takes everything");
    }
    text
}

fn read(root: &Path, file: &str) -> anyhow::Result<String> {
    std::fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))
}

/// Returns the names and versions in the output of `cargo tree`, without the paths of this machine.
fn packages(tree: &str) -> String {
    let package = |line: &str| {
        let words: Vec<_> = line.split(' ').take(2).collect();
        words.join(" ")
    };
    let mut packages: Vec<_> = tree.lines().map(package).collect();
    packages.sort();
    packages.dedup();
    packages.join("\n")
}

/// Returns the date on which a step passed with this fingerprint, if that is recorded.
pub(super) fn date(root: &Path, step: &str, fingerprint: &str) -> Option<String> {
    let text = read(root, &format!("record/{step}.txt")).ok()?;
    let mut lines = text.lines();
    let date = lines.nth(1)?.to_owned();
    lines.any(|line| line == found(fingerprint)).then_some(date)
}

/// Records that a step has passed.
///
/// # Errors
///
/// Returns an error if a variable has changed the depth of the check, or if the file cannot be
/// written.
pub(super) fn write(root: &Path, step: &str, fingerprint: &str) -> anyhow::Result<()> {
    for variable in DEPTHS {
        let is_set = std::env::var_os(variable).is_some();
        ensure!(!is_set, "{step} is not recorded, because {variable} is set");
    }
    let command = format!("cargo xtask ci --only {step} --record");
    record::write(root, step, &command, &found(fingerprint))
}

fn found(fingerprint: &str) -> String {
    format!("passed with the sources {fingerprint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_without_paths_and_repetitions() {
        let tree = "tussah-core v0.1.0 (/home/you/tussah)\nlibc v0.2.1\n\
                    derive v1.0.0 (proc-macro)\nlibc v0.2.1 (*)";
        assert_eq!(
            packages(tree),
            "derive v1.0.0\nlibc v0.2.1\ntussah-core v0.1.0"
        );
    }

    #[test]
    fn a_fingerprint_depends_on_all_inputs() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut inputs = inputs(&root).unwrap();
        for name in ["src/lib.rs", "Cargo.toml", OPTIONS, "profiles", "packages"] {
            let before = digest(&inputs);
            let input = inputs.iter_mut().find(|(other, _)| other == name);
            let (_, text) = input.expect(name);
            assert!(!text.is_empty(), "{name}");
            text.push(' ');
            assert_ne!(digest(&inputs), before, "{name}");
        }
        let (_, packages) = inputs.last().unwrap();
        assert!(packages.contains("loom v"), "{packages}");
        let of = |name: &str, text: &str| digest(&[(name.to_owned(), text.to_owned())]);
        assert_ne!(of("ab", "c"), of("a", "bc"));
    }

    #[test]
    fn a_result_counts_only_for_its_sources() {
        let root = std::env::temp_dir().join(format!("tussah-recorded-{}", std::process::id()));
        std::fs::create_dir_all(root.join("record")).unwrap();
        assert_eq!(date(&root, "loom", "abc"), None);
        write(&root, "loom", "abc").unwrap();
        assert_eq!(date(&root, "loom", "abc"), Some(record::today()));
        assert_eq!(date(&root, "loom", "ab"), None);
        assert_eq!(date(&root, "miri", "abc"), None);
        std::fs::remove_dir_all(root).unwrap();
    }
}
