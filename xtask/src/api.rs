//! `cargo xtask api`: the public interface of the libraries, one text file per crate in `api/`.
//!
//! A change of the interface then shows in the diff of a commit. The `public-api` crate makes the
//! listing from rustdoc's JSON, whose format belongs to one nightly.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;

use crate::ci::Rustup;

#[derive(Args)]
pub(crate) struct Options {
    /// Write the listings in api/ instead of comparing them with the code
    #[arg(long)]
    bless: bool,
}

/// The nightly whose JSON format the locked version of `public-api` understands. Update both
/// together.
pub(crate) const NIGHTLY: &str = "nightly-2026-05-20";
/// The libraries that users depend on. What `tussah` re-exports is listed in the crate that defines
/// it.
const CRATES: &[&str] = &[
    "tussah",
    "tussah-core",
    "tussah-wire",
    "tussah-services",
    "tussah-weave",
];

/// Compares the listings with the code, or writes them.
///
/// # Errors
///
/// Returns an error if the nightly is missing, a crate does not build, or a file cannot be read or
/// written.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<bool> {
    let rustup = Rustup { may_install: true };
    let cargo = rustup.cargo(NIGHTLY, &[]).map_err(anyhow::Error::msg)?;
    compare(root, &root.join("target"), cargo, options.bless)
}

/// Compares the listings with the code; `cargo` is the cargo of [`NIGHTLY`].
///
/// # Errors
///
/// Returns an error if a crate does not build, or a file cannot be read or written.
pub(crate) fn compare(
    root: &Path,
    target_dir: &Path,
    mut cargo: std::process::Command,
    bless: bool,
) -> anyhow::Result<bool> {
    let target_dir = target_dir.join("api");
    cargo
        .args(["doc", "--quiet", "--lib", "--no-deps", "--target-dir"])
        .arg(&target_dir)
        .args(CRATES.iter().flat_map(|name| ["--package", name]))
        .env(
            "RUSTDOCFLAGS",
            "-Zunstable-options --output-format=json --cap-lints=allow",
        )
        .current_dir(root);
    if !cargo.status().context("cannot start cargo")?.success() {
        bail!("the documentation does not build");
    }
    let mut is_same = true;
    for name in CRATES {
        let json = target_dir.join(format!("doc/{}.json", name.replace('-', "_")));
        let actual = listing(&json)?;
        let path = root.join("api").join(name).with_extension("txt");
        if bless {
            std::fs::create_dir_all(root.join("api"))?;
            std::fs::write(&path, actual)
                .with_context(|| format!("cannot write {}", path.display()))?;
            continue;
        }
        let expected = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let changes = changes(&expected, &actual);
        if !changes.is_empty() {
            is_same = false;
            println!("api/{name}.txt differs from the code:\n{changes}");
        }
    }
    if !is_same {
        println!("`cargo xtask api --bless` writes the listings");
    }
    Ok(is_same)
}

/// Returns the public items of a crate, one per line, sorted.
fn listing(json: &PathBuf) -> anyhow::Result<String> {
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .with_context(|| format!("cannot read {}", json.display()))?;
    let lines = api.items().map(|item| format!("{item}\n"));
    Ok(lines.collect())
}

/// Returns the lines that are only in one of the listings, each with `-` or `+` before it.
fn changes(expected: &str, actual: &str) -> String {
    let only = |lines: &str, others: &str, sign: char| -> String {
        let others: std::collections::HashSet<_> = others.lines().collect();
        let missing = lines.lines().filter(|line| !others.contains(line));
        missing.map(|line| format!("{sign}{line}\n")).collect()
    };
    only(expected, actual, '-') + &only(actual, expected, '+')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_their_direction() {
        assert_eq!(changes("a\nb\n", "b\na\n"), "");
        assert_eq!(changes("a\nb\n", "a\nc\n"), "-b\n+c\n");
    }
}
