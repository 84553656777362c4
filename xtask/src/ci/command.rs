//! Runs a program as a part of a step.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::Context as _;

use super::Outcome;

/// Runs a program and passes its output through.
///
/// # Errors
///
/// The program could not be started.
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

/// Runs `cargo test` and passes its output through. A failure names the failed tests, for the
/// summary.
///
/// # Errors
///
/// The program could not be started, or its output could not be read.
pub(super) fn run_quiet_tests(cargo: &mut Command) -> anyhow::Result<Outcome> {
    let mut failed = Vec::new();
    let outcome = run_read(cargo, |line| failed.extend(failed_test(line)))?;
    Ok(match outcome {
        Outcome::Failed(status) if failed.is_empty() => Outcome::Failed(status),
        Outcome::Failed(_) => Outcome::Failed(failed.join(", ")),
        other => other,
    })
}

/// Builds the tests, runs those that match a filter, and fails if a filter matches no test.
///
/// Without this check, a renamed module would silently drop its models. The build is a separate
/// command because a quiet cargo also hides the names of tests.
///
/// # Errors
///
/// The program could not be started, or its output could not be read.
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
        tests.extend(test_name(line).map(str::to_owned));
    })?;
    Ok((outcome, tests))
}

/// Runs a program, passes its output through, and calls `look` with each line.
fn run_read(command: &mut Command, mut look: impl FnMut(&str)) -> anyhow::Result<Outcome> {
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
        println!("{line}");
        look(&line);
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

/// Returns the name of the test in a line such as `test queue::tests::wraps ... ok`.
fn test_name(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix("test ")?.split_once(" ... ")?;
    Some(name)
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
    fn tests_that_failed_are_named() {
        let script = "echo '---- a::one stdout ----'; echo 'it panicked'; echo '---- b.rs (line 3) stdout ----'; exit 101";
        let failed = run_quiet_tests(&mut shell(script)).unwrap();
        assert_eq!(failed, Outcome::Failed("a::one, b.rs (line 3)".into()));
        let failed = run_quiet_tests(&mut shell("echo 'does not compile'; exit 101")).unwrap();
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

    /// Returns a script in place of cargo: it builds silently, then prints a test and ends with a
    /// status.
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
