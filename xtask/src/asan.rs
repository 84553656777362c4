//! `cargo xtask asan`: the tests of `tussah-core` and `tussah` under AddressSanitizer.
//!
//! Leaks are errors, except those that `xtask/leaks.supp` lists with their reasons.

use std::path::Path;
use std::process::Command;

use clap::Args;

use crate::ci::{NIGHTLY, Rustup};
use crate::process::{self, End, Interrupt};
use crate::record;

#[derive(Args)]
pub(crate) struct Options {
    /// Run only tests that match this filter, and record nothing
    filters: Vec<String>,
}

/// The only target that this command configures.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Runs the tests and returns whether all of them passed.
///
/// # Errors
///
/// Returns an error if nightly is missing, or the record cannot be written.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<bool> {
    let interrupt = Interrupt::install()?;
    let rustup = Rustup { may_install: true };
    let mut cargo = rustup.cargo(NIGHTLY, &[]).map_err(anyhow::Error::msg)?;
    set_up(&mut cargo, root);
    cargo.args(&options.filters);
    let log = root.join("target/asan.log");
    let (end, text) = process::run_logged(&mut cargo, &log, None, &interrupt, process::print)?;
    if end == End::Interrupted {
        println!("interrupted; nothing is recorded");
        return Ok(true);
    }
    let passed = end.is_success();
    if options.filters.is_empty() {
        record::write(root, "asan", "cargo xtask asan", &summary(&text, passed))?;
    }
    Ok(passed)
}

fn set_up(cargo: &mut Command, root: &Path) {
    cargo
        .current_dir(root)
        .args(["test", "--no-fail-fast", "--target", TARGET]);
    // Doc tests are left out: they are separate programs without unsafe code. The test `alone` of
    // `tussah-core` is left out too: it configures the C library's allocator, which the sanitizer
    // replaces.
    cargo.args([
        "--package",
        "tussah-core",
        "--package",
        "tussah",
        "--lib",
        "--test",
        "it",
        "--test",
        "flow",
        "--features",
        "tussah/cli",
    ]);
    cargo.arg("--target-dir").arg(root.join("target/asan"));
    // These tests run the examples of tussah as programs.
    cargo.args(["--", "--skip", "examples::"]);
    // The slab maps its own spans. Only this guard detects a use of a span that was returned.
    cargo.env(
        "RUSTFLAGS",
        "-Zsanitizer=address -Cforce-frame-pointers=yes --cfg slab_guard",
    );
    cargo.env(
        "ASAN_OPTIONS",
        "detect_leaks=1:detect_stack_use_after_return=1",
    );
    let suppressions = root.join("xtask/leaks.supp");
    let options = format!(
        "suppressions={}:print_suppressions=0",
        suppressions.display()
    );
    cargo.env("LSAN_OPTIONS", options);
}

/// Returns the last line of each test program, and each report of the sanitizer.
fn summary(text: &str, passed: bool) -> String {
    let kept = |line: &&str| {
        line.starts_with("test result: ")
            || line.starts_with("SUMMARY: ")
            || (line.starts_with("test ") && line.ends_with("FAILED"))
    };
    let mut lines: Vec<_> = text.lines().filter(kept).map(without_time).collect();
    lines.push(if passed {
        "no errors"
    } else {
        "errors were found"
    });
    lines.join("\n")
}

/// Returns the line without its duration, which differs in each run.
fn without_time(line: &str) -> &str {
    line.split_once("; finished in")
        .map_or(line, |(line, _)| line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_has_the_results_and_the_findings() {
        let text = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\
                    SUMMARY: AddressSanitizer: heap-use-after-free\n\
                    test result: FAILED. 1 passed; 1 failed; finished in 0.1s\n";
        let expected = "test b ... FAILED\nSUMMARY: AddressSanitizer: heap-use-after-free\n\
                        test result: FAILED. 1 passed; 1 failed\nerrors were found";
        assert_eq!(summary(text, false), expected);
    }
}
