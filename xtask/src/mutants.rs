//! `cargo xtask mutants`: breaks the core on purpose, one place at a time, and reports the breaks
//! that no test detects.
//!
//! The mutants have names, in `xtask/mutants.toml`. Tools that generate mutants (such as
//! cargo-mutants) replace bodies and operators. Fences, orderings and steps of a protocol matter
//! more here, and each needs its own model.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;

use crate::process::{self, End, Interrupt};
use crate::record;

mod table;
mod tree;

use table::{Mutant, Suite};
use tree::Tree;

#[derive(Args)]
pub(crate) struct Options {
    /// Run the mutants whose names contain this text (repeatable); the record keeps the results of
    /// the others
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Print the names of the mutants, then exit
    #[arg(long)]
    list: bool,
    /// Time limit for the tests of a mutant, in seconds; tests that exceed it have detected the
    /// mutant. Models have half an hour
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    limit: u64,
}

/// Bound, in seconds: the time for a build or the models of one mutant, on a busy machine.
const BUILD_MAX: Duration = Duration::from_secs(1800);

/// The verdict on a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// Caught, with the failed tests, or the way in which the program ended.
    Caught(String),
    Survived,
    /// The table is wrong, for this reason.
    Stale(String),
}

/// Runs the mutants and returns whether each was caught or is expected to survive.
///
/// # Errors
///
/// The table or the tree cannot be read, the tests fail without a mutant, or the record cannot be
/// written.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<bool> {
    let table = std::fs::read_to_string(root.join("xtask/mutants.toml"))
        .context("cannot read xtask/mutants.toml")?;
    let mutants = table::parse(&table)?;
    let wanted = |name: &str| {
        options.only.is_empty() || options.only.iter().any(|text| name.contains(text.as_str()))
    };
    let chosen = mutants.iter().filter(|mutant| wanted(&mutant.name));
    if options.list {
        chosen.for_each(|mutant| println!("{}", mutant.name));
        return Ok(true);
    }
    let interrupt = Interrupt::install()?;
    let tree = Tree::copy(root, &root.join("target/mutants/tree"))?;
    let runner = Runner {
        tree,
        target: root.join("target/mutants"),
        interrupt,
        limit: Duration::from_secs(options.limit),
    };
    let mut results = Vec::new();
    for suite in Suite::ALL {
        // One suite after the other, since each has a separate build.
        let of_suite: Vec<_> = chosen.clone().filter(|it| it.suite == suite).collect();
        if !of_suite.is_empty() {
            runner.without_mutant(suite, &of_suite)?;
        }
        for (number, mutant) in of_suite.iter().enumerate() {
            println!(
                "==> {suite} {}/{}: {}",
                number + 1,
                of_suite.len(),
                mutant.name
            );
            let start = Instant::now();
            let verdict = runner.judge(mutant)?;
            if runner.interrupt.is_set() {
                break;
            }
            println!(
                "    {} in {} s",
                line(mutant, &verdict),
                start.elapsed().as_secs()
            );
            results.push((*mutant, verdict));
        }
    }
    // Without a record there are no earlier verdicts.
    let former = std::fs::read_to_string(root.join("record/mutants.txt")).unwrap_or_default();
    let text = summary(&mutants, &results, &former);
    record::write(root, "mutants", "cargo xtask mutants", &text)?;
    Ok(results
        .iter()
        .all(|(mutant, verdict)| is_expected(mutant, verdict)))
}

struct Runner {
    tree: Tree,
    target: PathBuf,
    interrupt: Interrupt,
    limit: Duration,
}

impl Runner {
    /// Checks that the tests pass without a mutant; otherwise they would catch every mutant.
    fn without_mutant(&self, suite: Suite, mutants: &[&Mutant]) -> anyhow::Result<()> {
        println!("==> {suite}: the tests without a mutant");
        let mut tests: Vec<_> = mutants
            .iter()
            .flat_map(|mutant| &mutant.tests)
            .map(String::as_str)
            .collect();
        tests.sort_unstable();
        tests.dedup();
        let (end, text) = self.run(suite, &tests, false, BUILD_MAX)?;
        if !end.is_success() && end != End::Interrupted {
            bail!("the tests fail without a mutant:\n{text}");
        }
        match tests.iter().find(|test| !names_a_test(&text, test)) {
            Some(test) if end != End::Interrupted => bail!("no test is called {test}"),
            _ => Ok(()),
        }
    }

    fn judge(&self, mutant: &Mutant) -> anyhow::Result<Verdict> {
        let original = self.tree.read(&mutant.file)?;
        let broken = match mutant.apply(&original) {
            Ok(broken) => broken,
            Err(reason) => return Ok(Verdict::Stale(reason)),
        };
        self.tree.write(&mutant.file, &broken)?;
        let verdict = self.verdict(mutant);
        self.tree.write(&mutant.file, &original)?;
        verdict
    }

    fn verdict(&self, mutant: &Mutant) -> anyhow::Result<Verdict> {
        let tests: Vec<_> = mutant.tests.iter().map(String::as_str).collect();
        let (end, text) = self.run(mutant.suite, &tests, true, BUILD_MAX)?;
        if !end.is_success() {
            let error = text.lines().find(|line| line.starts_with("error"));
            return Ok(Verdict::Stale(format!(
                "it does not build: {}",
                error.unwrap_or("no error")
            )));
        }
        // A model always ends. One that exceeds its time has more to explore and may find nothing.
        let model = mutant.suite == Suite::Loom;
        let limit = if model { BUILD_MAX } else { self.limit };
        let (end, text) = self.run(mutant.suite, &tests, false, limit)?;
        Ok(match end {
            End::Exited(status) if status.success() => Verdict::Survived,
            End::TimedOut if model => Verdict::Stale("its models take too long".to_owned()),
            End::TimedOut => Verdict::Caught("the tests do not end".to_owned()),
            End::Exited(_) | End::Stopped | End::Interrupted => Verdict::Caught(failed(&text)),
        })
    }

    fn run(
        &self,
        suite: Suite,
        tests: &[&str],
        build: bool,
        limit: Duration,
    ) -> anyhow::Result<(End, String)> {
        let mut cargo = suite.cargo(&self.target);
        cargo.current_dir(self.tree.root());
        if build {
            cargo.arg("--no-run");
        }
        cargo.arg("--").args(tests);
        process::run_logged(
            &mut cargo,
            &self.target.join("log"),
            Some(limit),
            &self.interrupt,
            |news| match news.contains(" ... FAILED") {
                // One failed test is enough.
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            },
        )
    }
}

/// Returns whether this is the name of a test that ran, or a part of one.
fn names_a_test(text: &str, name: &str) -> bool {
    text.lines()
        .filter_map(|line| line.strip_prefix("test "))
        .any(|line| line.contains(name))
}

/// Returns the failed tests. If there are none, the program ended within a test.
fn failed(text: &str) -> String {
    let name = |line: &str| {
        let (name, end) = line.strip_prefix("test ")?.split_once(" ... ")?;
        let last = name.rsplit("::").next()?;
        end.starts_with("FAILED").then(|| last.to_owned())
    };
    let names: Vec<_> = text.lines().filter_map(name).collect();
    if names.is_empty() {
        "the tests crash".to_owned()
    } else {
        names.join(", ")
    }
}

fn is_expected(mutant: &Mutant, verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Caught(_) => true,
        Verdict::Survived => mutant.survives.is_some(),
        Verdict::Stale(_) => false,
    }
}

fn line(mutant: &Mutant, verdict: &Verdict) -> String {
    match (verdict, &mutant.survives) {
        (Verdict::Caught(by), None) => format!("caught: {by}"),
        (Verdict::Caught(by), Some(_)) => {
            format!("caught, and the table expects that it survives: {by}")
        }
        (Verdict::Survived, None) => "SURVIVED".to_owned(),
        (Verdict::Survived, Some(reason)) => format!("survived, as expected: {reason}"),
        (Verdict::Stale(reason), _) => format!("STALE: {reason}"),
    }
}

/// Returns an entry for each mutant of the table. A mutant without a result keeps its earlier
/// entry, which has its own date.
fn summary(mutants: &[Mutant], results: &[(&Mutant, Verdict)], former: &str) -> String {
    let entry = |mutant: &Mutant| {
        let name = format!("{} (", mutant.name);
        let result = results.iter().find(|(it, _)| it.name == mutant.name);
        let former = former.split("\n\n").find(|entry| entry.starts_with(&name));
        let judged = result.map(|(_, verdict)| {
            let (file, suite, date) = (&mutant.file, mutant.suite, record::today());
            format!(
                "{name}{file}, {suite}, {date})\n    {}",
                line(mutant, verdict)
            )
        });
        judged
            .or_else(|| former.map(|entry| entry.trim_end().to_owned()))
            .unwrap_or_else(|| format!("{name}{})\n    not run yet", mutant.file))
    };
    let entries: Vec<_> = mutants.iter().map(entry).collect();
    let caught = entries
        .iter()
        .filter(|entry| entry.contains("\n    caught"))
        .count();
    format!(
        "{caught} of {} mutants caught\n\n{}",
        entries.len(),
        entries.join("\n\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_named() {
        let text = "test a::one ... ok\ntest a::two ... FAILED\ntest three ... FAILED\n";
        assert_eq!(failed(text), "two, three");
        assert_eq!(failed("test a::one ... "), "the tests crash");
    }

    #[test]
    fn a_test_is_named_by_its_module_too() {
        let text = "test a::tests::one ... ok\nerror: two\n";
        assert!(names_a_test(text, "a::tests") && names_a_test(text, "one"));
        assert!(!names_a_test(text, "two"));
    }

    #[test]
    fn a_survivor_has_to_be_explained() {
        let mut mutant = Mutant::default();
        assert!(is_expected(&mutant, &Verdict::Caught("two".to_owned())));
        assert!(!is_expected(&mutant, &Verdict::Survived));
        mutant.survives = Some("loom has no such loads".to_owned());
        assert!(is_expected(&mutant, &Verdict::Survived));
        assert!(!is_expected(&mutant, &Verdict::Stale(String::new())));
    }

    #[test]
    fn a_partial_run_keeps_the_results_of_the_others() {
        let [one, two, three] = ["one", "two", "three"].map(|name| Mutant {
            name: name.to_owned(),
            file: "a.rs".to_owned(),
            ..Mutant::default()
        });
        let former = "$ command\n2000-01-01\n\n1 of 2 mutants caught\n\none (a.rs, unit, 2000-01-01)\n    caught: x\n\n\
            two (a.rs, unit, 2000-01-01)\n    SURVIVED\n";
        let mutants = [one, two, three];
        let results = [(&mutants[1], Verdict::Caught("y".to_owned()))];
        let today = record::today();
        assert_eq!(
            summary(&mutants, &results, former),
            format!(
                "2 of 3 mutants caught\n\none (a.rs, unit, 2000-01-01)\n    caught: x\n\n\
                two (a.rs, unit, {today})\n    caught: y\n\nthree (a.rs)\n    not run yet"
            )
        );
    }

    #[test]
    fn every_mutant_of_the_table_applies() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let table = std::fs::read_to_string(root.join("xtask/mutants.toml")).unwrap();
        for mutant in table::parse(&table).unwrap() {
            let text = std::fs::read_to_string(root.join(&mutant.file)).unwrap();
            if let Err(reason) = mutant.apply(&text) {
                panic!("{}: {reason}", mutant.name);
            }
        }
    }
}
