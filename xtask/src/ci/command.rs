//! Runs a program as part of a step.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::Context as _;

use super::Outcome;

/// Runs a program and passes its output through.
///
/// # Errors
///
/// Returns an error if the program cannot be started.
pub(super) fn run(command: &mut Command) -> anyhow::Result<Outcome> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {command:?}"))?;
    Ok(if status.success() {
        Outcome::Passed
    } else {
        Outcome::Failed(status.to_string())
    })
}

/// The number of tests to list as the slowest.
const SLOWEST: usize = 20;

/// Runs several `cargo test` commands, and passes their output through without the lines of tests
/// that passed. Prints the slowest tests at the end. If a command fails, the outcome names the
/// failed tests, for the summary.
///
/// # Errors
///
/// Returns an error if a program cannot be started, or its output cannot be read.
pub(super) fn run_all_tests(cargos: &mut [Command]) -> anyhow::Result<Outcome> {
    let (mut times, mut failed) = (Vec::new(), Vec::new());
    let mut outcome = Outcome::Passed;
    for cargo in cargos {
        let one = run_read(cargo, |line| {
            failed.extend(failed_test(line));
            let Some((name, result)) = test_result(line) else {
                return true;
            };
            let passed = result.starts_with("ok");
            times.extend(seconds(result).map(|seconds| (seconds, name.to_owned())));
            !passed
        })?;
        if one != Outcome::Passed {
            outcome = one;
        }
    }
    if !times.is_empty() {
        println!("{}", slowest(times));
    }
    Ok(match outcome {
        Outcome::Failed(_) if !failed.is_empty() => Outcome::Failed(failed.join(", ")),
        other => other,
    })
}

/// Returns a table of the slowest tests.
fn slowest(mut times: Vec<(f64, String)>) -> String {
    times.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut text = format!("the slowest of {} timed tests, in seconds:", times.len());
    for (seconds, name) in times.iter().take(SLOWEST) {
        text.push_str(&format!("\n{seconds:>8.1}  {name}"));
    }
    text
}

/// Builds the tests, runs those that match a filter, and fails if a filter matches no test.
///
/// Without this check, the models of a renamed module would no longer run, and nobody would notice.
/// The build is a separate command because a quiet cargo also hides the names of the tests.
///
/// # Errors
///
/// Returns an error if the program cannot be started, or its output cannot be read.
pub(super) fn run_tests(cargo: &mut Command, filters: &[&str]) -> anyhow::Result<Outcome> {
    let built = run(copy(cargo).args(["--no-run", "--quiet"]))?;
    if built != Outcome::Passed {
        return Ok(built);
    }
    let (outcome, tests) = run_listed(cargo.arg("--").args(filters))?;
    let unmatched = unmatched(filters, &tests);
    Ok(match (outcome, unmatched) {
        (Outcome::Passed, Some(filter)) => {
            Outcome::Failed(format!("no test matches `{filter}`, expected at least one"))
        }
        (outcome, _) => outcome,
    })
}

/// Runs a test program, passes its output through, and returns the names of its tests.
fn run_listed(command: &mut Command) -> anyhow::Result<(Outcome, Vec<String>)> {
    let mut tests = Vec::new();
    let outcome = run_read(command, |line| {
        tests.extend(test_result(line).map(|(name, _)| name.to_owned()));
        true
    })?;
    Ok((outcome, tests))
}

/// Runs a program, and prints each line of its output for which `look` returns true.
fn run_read(command: &mut Command, mut look: impl FnMut(&str) -> bool) -> anyhow::Result<Outcome> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let stdout = child
        .stdout
        .take()
        .expect("the standard output was piped above");
    for line in BufReader::new(stdout).lines() {
        let line = line.context("cannot read the output of the tests")?;
        if look(&line) {
            println!("{line}");
        }
    }
    let status = child.wait().context("cannot wait for the tests")?;
    Ok(outcome(status))
}

fn outcome(status: ExitStatus) -> Outcome {
    if status.success() {
        Outcome::Passed
    } else {
        Outcome::Failed(status.to_string())
    }
}

fn copy(command: &Command) -> Command {
    let mut copy = Command::new(command.get_program());
    copy.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => copy.env(name, value),
            None => copy.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        copy.current_dir(directory);
    }
    copy
}

/// Returns the test and its result in a line such as `test queue::tests::wraps ... ok <0.012s>`.
fn test_result(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("test ")?.split_once(" ... ")
}

/// Returns the time in a result such as `ok <0.012s>`.
fn seconds(result: &str) -> Option<f64> {
    let (_, time) = result.split_once('<')?;
    time.split_once("s>")?.0.parse().ok()
}

/// Returns the name of a failed test from the line above its output: `---- queue::tests::wraps
/// stdout ----`.
fn failed_test(line: &str) -> Option<String> {
    let name = line.strip_prefix("---- ")?.strip_suffix(" stdout ----")?;
    Some(name.to_owned())
}

/// Returns the first filter that no test matches.
fn unmatched<'a>(filters: &[&'a str], tests: &[String]) -> Option<&'a str> {
    filters
        .iter()
        .copied()
        .find(|filter| !tests.iter().any(|test| test.contains(filter)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn the_exit_status_decides() {
        assert_eq!(run(&mut shell("exit 0")).unwrap(), Outcome::Passed);
        let failed = run(&mut shell("exit 3")).unwrap();
        assert_eq!(failed, Outcome::Failed("exit status: 3".into()));
    }

    #[test]
    fn the_slowest_tests_are_listed() {
        let (name, result) = test_result("test a::one ... ok <0.512s>").unwrap();
        assert_eq!((name, seconds(result)), ("a::one", Some(0.512)));
        assert_eq!(seconds("ok"), None);
        assert_eq!(test_result("running 3 tests"), None);
        let times = vec![(0.5, "a".into()), (2.0, "b".into())];
        let expected = "the slowest of 2 timed tests, in seconds:\n     2.0  b\n     0.5  a";
        assert_eq!(slowest(times), expected);
    }

    #[test]
    fn tests_that_failed_are_named() {
        let script = "echo '---- a::one stdout ----'; echo 'it panicked'; echo '---- b.rs (line 3) stdout ----'; exit 101";
        let failed = run_all_tests(&mut [shell("exit 0"), shell(script)]).unwrap();
        assert_eq!(failed, Outcome::Failed("a::one, b.rs (line 3)".into()));
        let failed = run_all_tests(&mut [shell("echo 'does not compile'; exit 101")]).unwrap();
        assert_eq!(failed, Outcome::Failed("exit status: 101".into()));
    }

    #[test]
    fn a_missing_program_is_an_error_that_names_it() {
        let error = run(&mut Command::new("no-such-program-anywhere")).unwrap_err();
        assert!(
            error.to_string().contains("no-such-program-anywhere"),
            "{error}"
        );
    }

    /// Returns a script that replaces cargo: it builds silently, then prints a test and ends with
    /// the given status.
    fn tests(status: u8) -> Command {
        let script = format!(
            "case \"$*\" in *--no-run*) exit ${{BUILD_STATUS:-0}};; esac; \
             echo 'test ring::loom_tests::steal ... ok'; echo 'test result: ok.'; exit {status}"
        );
        let mut command = shell(&script);
        command.arg("sh");
        command
    }

    #[test]
    fn a_filter_without_a_test_fails() {
        assert_eq!(
            run_tests(&mut tests(0), &["loom"]).unwrap(),
            Outcome::Passed
        );
        let failed = run_tests(&mut tests(0), &["loom", "cell::"]).unwrap();
        let expected = "no test matches `cell::`, expected at least one";
        assert_eq!(failed, Outcome::Failed(expected.into()));
    }

    #[test]
    fn tests_that_fail_or_do_not_compile_fail_the_step() {
        let failed = run_tests(&mut tests(101), &["loom"]).unwrap();
        assert_eq!(failed, Outcome::Failed("exit status: 101".into()));
        let failed = run_tests(tests(0).env("BUILD_STATUS", "1"), &["loom"]).unwrap();
        assert_eq!(failed, Outcome::Failed("exit status: 1".into()));
    }
}
