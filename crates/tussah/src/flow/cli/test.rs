//! The command `test`, and a function that does the same for `cargo test`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use tussah_weave::Diagnostic;

use super::Program;
use super::manifest::foreign;
use super::rig::rig;
use super::source::{Source, WRONG, fail, print, print_error, printable};
use super::steps::{self, Failure};
use crate::flow::Modules;

/// Run the tests of Weave graphs, in virtual time.
///
/// Exits with 0 if all tests pass, with 1 if a test fails, and with 2 if a file is invalid or
/// cannot be read.
#[derive(Args)]
pub struct TestArguments {
    /// Files that contain the tests to run
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl TestArguments {
    pub(super) fn run(&self, program: &Program) -> ExitCode {
        let (mut has_failed, mut is_wrong) = (false, false);
        for path in &self.files {
            let source = match Source::read(path) {
                Ok(source) => source,
                Err(error) => {
                    fail(&error);
                    is_wrong = true;
                    continue;
                }
            };
            let file = (self.files.len() > 1).then(|| source.file());
            match run_tests_of(&source, &program.modules, file.as_deref()) {
                Ok(Report { lines, failures }) => {
                    if let Err(error) = print(&lines) {
                        return fail(&error);
                    }
                    print_error(&failures);
                    has_failed |= !failures.is_empty();
                }
                Err(errors) => {
                    print_error(&errors);
                    print_error(&foreign(program, &source, "test"));
                    is_wrong = true;
                }
            }
        }
        ExitCode::from(match is_wrong {
            true => WRONG,
            false => u8::from(has_failed),
        })
    }
}

/// Runs the tests in a Weave file in virtual time, like the command `test`.
///
/// The path is relative to the directory of the package, where `cargo test` runs tests.
///
/// # Panics
/// Panics if the file is invalid or a test fails; the message contains the positions of the errors.
///
/// # Examples
/// ```no_run
/// # fn modules() -> tussah::flow::Modules { tussah::flow::Modules::new() }
/// #[test]
/// fn the_graph_passes_its_tests() {
///     tussah::flow::run_tests("graph.weave", &modules());
/// }
/// ```
#[track_caller]
pub fn run_tests(file: impl AsRef<Path>, modules: &Modules) {
    let source = Source::read(file.as_ref());
    match source.and_then(|source| run_tests_of(&source, modules, None)) {
        Ok(Report { lines, failures }) => {
            print!("{lines}");
            assert!(failures.is_empty(), "tests failed\n{failures}");
        }
        Err(error) => panic!("{error}"),
    }
}

/// The results of a file's tests.
struct Report {
    /// A line for each test.
    lines: String,
    /// The steps that failed, with their places.
    failures: String,
}

/// Runs the tests of a file. The line of each test begins with `file`, if there is one.
///
/// # Errors
/// Returns excerpts of the file if it is invalid.
fn run_tests_of(source: &Source, modules: &Modules, file: Option<&str>) -> Result<Report, String> {
    let place = file.map_or_else(String::new, |file| printable(file) + ": ");
    let checked = source.check(Some(modules.signatures()));
    if checked.diagnostics.iter().any(Diagnostic::is_error) {
        return Err(source.render(&checked.diagnostics));
    }
    let mut report = Report {
        lines: String::new(),
        failures: String::new(),
    };
    for test in &checked.tests {
        let graph = &checked.graphs[test.graph];
        let result = rig(source, modules, graph, test)
            .map_err(Failure::from)
            .and_then(|rig| steps::run(test, rig));
        let outcome = if result.is_ok() { "ok" } else { "FAILED" };
        let mut add = |line: std::fmt::Arguments<'_>| {
            report.lines.write_fmt(line).expect("a string takes all");
        };
        let name = printable(&test.name);
        add(format_args!("test {place}{name} ... {outcome}\n"));
        if let Err(Failure { errors, diff }) = result {
            let (name, errors) = (&test.name, source.render(&errors));
            report.failures += &format!("test {name:?} failed\n{}\n{diff}\n", errors.trim_end());
        }
    }
    if checked.tests.is_empty() {
        report.lines = format!("{} has no tests\n", source.file());
    }
    Ok(report)
}
