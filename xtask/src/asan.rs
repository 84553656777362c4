//! `cargo xtask asan`: the tests of `tussah-core` and `tussah` under AddressSanitizer and LeakSanitizer.

use std::path::Path;
use std::process::Command;

use clap::Args;

use crate::ci::{NIGHTLY, Rustup};
use crate::process::{self, End, Interrupt};
use crate::record;

#[derive(Args)]
pub(crate) struct Options {
    /// Run the tests that match, and record nothing
    filters: Vec<String>,
}

/// The only target whose sanitizer is set up here.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Leaks that tests make on purpose, with their reasons.
const SUPPRESSIONS: &str = "xtask/asan-leaks.txt";

/// Runs the tests; the result says whether nothing was found.
///
/// # Errors
///
/// Nightly is missing, or the record cannot be written.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<bool> {
    let interrupt = Interrupt::install()?;
    let rustup = Rustup { may_install: true };
    let mut cargo = rustup.cargo(NIGHTLY, &[]).map_err(anyhow::Error::msg)?;
    set_up(&mut cargo, root);
    cargo.args(&options.filters);
    let log = root.join("target/asan.log");
    let (end, text) =
        process::run_logged(&mut cargo, &log, None, &interrupt, |news| print!("{news}"))?;
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
    // The documentation's examples are programs of their own, and there is no unsafe code in them.
    cargo.args([
        "--package",
        "tussah-core",
        "--package",
        "tussah",
        "--lib",
        "--tests",
    ]);
    cargo.arg("--target-dir").arg(root.join("target/asan"));
    cargo.arg("--").arg("--skip").arg("examples::");
    // The slab maps its spans itself: a use of one that was given back is seen only with the guard.
    cargo.env(
        "RUSTFLAGS",
        "-Zsanitizer=address -Cforce-frame-pointers=yes --cfg slab_guard",
    );
    cargo.env(
        "ASAN_OPTIONS",
        "detect_leaks=1:detect_stack_use_after_return=1:abort_on_error=0",
    );
    let suppressions = root.join(SUPPRESSIONS);
    cargo.env(
        "LSAN_OPTIONS",
        format!(
            "suppressions={}:print_suppressions=0",
            suppressions.display()
        ),
    );
}

/// What every test program said at its end, and each report of a sanitizer.
fn summary(text: &str, passed: bool) -> String {
    let kept = |line: &&str| {
        line.starts_with("test result: ")
            || line.starts_with("SUMMARY: ")
            || (line.starts_with("test ") && line.ends_with("FAILED"))
    };
    let mut lines: Vec<_> = text.lines().filter(kept).map(without_time).collect();
    lines.push(if passed {
        "nothing was found"
    } else {
        "something was found"
    });
    lines.join("\n")
}

/// A line without how long the tests took, which says nothing.
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
                        test result: FAILED. 1 passed; 1 failed\nsomething was found";
        assert_eq!(summary(text, false), expected);
    }
}
