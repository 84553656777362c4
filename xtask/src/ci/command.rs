//! Running a program as a part of a step.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::Context as _;

use super::Outcome;

/// Runs a program with its output shown as it comes.
///
/// # Errors
///
/// The program could not be started.
pub(super) fn run(command: &mut Command) -> anyhow::Result<Outcome> {
    let status = command
        .status()
        .with_context(|| format!("could not start {command:?}"))?;
    Ok(if status.success() {
        Outcome::Passed
    } else {
        Outcome::Failed(status.to_string())
    })
}

/// Builds what a `cargo test` command runs, then runs the tests that match a filter, and fails
/// unless every filter matched the name of at least one test.
///
/// Without that a renamed module would turn a model off, and nobody would notice. The tests are
/// built apart because cargo, told to be quiet, silences their names too.
///
/// # Errors
///
/// The program could not be started, or its output not be read.
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

/// Runs a test program with its output shown as it comes, and returns the names of its tests.
fn run_listed(command: &mut Command) -> anyhow::Result<(Outcome, Vec<String>)> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("could not start {command:?}"))?;
    let stdout = child
        .stdout
        .take()
        .expect("the standard output was piped above");
    let mut tests = Vec::new();
    for line in BufReader::new(stdout).lines() {
        let line = line.context("could not read the output of the tests")?;
        println!("{line}");
        tests.extend(test_name(&line).map(str::to_owned));
    }
    let status = child.wait().context("could not wait for the tests")?;
    Ok((outcome(status), tests))
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

/// The name of the test in a line such as `test queue::tests::wraps ... ok`.
fn test_name(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix("test ")?.split_once(" ... ")?;
    Some(name)
}

/// The first filter that no test matches.
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
    fn a_missing_program_is_an_error_that_names_it() {
        let error = run(&mut Command::new("no-such-program-anywhere")).unwrap_err();
        assert!(
            error.to_string().contains("no-such-program-anywhere"),
            "{error}"
        );
    }

    /// Stands for cargo: builds silently, then prints a test and ends with a status.
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
