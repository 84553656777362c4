//! `cargo xtask mutants`: breaks the core on purpose, one place at a time, and tells which breaks no test notices.
//!
//! The mutants are named, in `xtask/mutants.toml`. A tool that makes them up (such as cargo-mutants) replaces bodies and operators; what
//! matters here is fences, orderings and steps of a protocol, and each needs the one model that is about it.

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
    /// Run the mutants whose names contain this, and record nothing (may be given several times)
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Print the names of the mutants, then exit
    #[arg(long)]
    list: bool,
    /// How long the tests of one mutant may take, in seconds; those that take longer have noticed it
    #[arg(long, value_name = "SECONDS", default_value_t = 180)]
    limit: u64,
}

/// Bound, in seconds: how long its build may take, on a busy machine.
const BUILD_MAX: Duration = Duration::from_secs(1800);

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// With the tests that failed, or how the program ended.
    Caught(String),
    Survived,
    /// The table is wrong: with the reason.
    Stale(String),
}

/// Runs the mutants; the result says whether each was caught, or is expected to survive.
///
/// # Errors
///
/// The table or the tree cannot be read, the tests fail without a mutant, or the record cannot be written.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<bool> {
    let table = std::fs::read_to_string(root.join("xtask/mutants.toml"))
        .context("cannot read xtask/mutants.toml")?;
    let mut mutants = table::parse(&table)?;
    let wanted = |name: &str| {
        options.only.is_empty() || options.only.iter().any(|text| name.contains(text.as_str()))
    };
    mutants.retain(|mutant| wanted(&mutant.name));
    if options.list {
        mutants
            .iter()
            .for_each(|mutant| println!("{}", mutant.name));
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
        // Side by side, since each suite is built apart.
        let of_suite: Vec<_> = mutants
            .iter()
            .filter(|mutant| mutant.suite == suite)
            .collect();
        if !of_suite.is_empty() {
            runner.without_mutant(suite, &of_suite)?;
        }
        for (number, mutant) in of_suite.iter().enumerate() {
            if runner.interrupt.is_set() {
                break;
            }
            println!(
                "==> {suite} {}/{}: {}",
                number + 1,
                of_suite.len(),
                mutant.name
            );
            let start = Instant::now();
            let verdict = runner.judge(mutant)?;
            println!(
                "    {} in {} s",
                line(mutant, &verdict),
                start.elapsed().as_secs()
            );
            results.push((*mutant, verdict));
        }
    }
    if runner.interrupt.is_set() {
        println!("interrupted; nothing is recorded");
        return Ok(true);
    }
    let text = summary(&results);
    println!("\n{text}");
    if options.only.is_empty() {
        record::write(root, "mutants", "cargo xtask mutants", &text)?;
    }
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
    /// Sees that the tests pass as long as nothing is broken: else they would catch everything.
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
        let unknown = tests
            .iter()
            .find(|test| !text.contains(&format!("{test} ...")));
        match unknown {
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
        let (end, text) = self.run(mutant.suite, &tests, false, self.limit)?;
        Ok(match end {
            End::Exited(status) if status.success() => Verdict::Survived,
            End::TimedOut => Verdict::Caught("the tests do not end".to_owned()),
            End::Exited(_) | End::Interrupted => Verdict::Caught(failed(&text)),
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
            |_| (),
        )
    }
}

/// The tests that failed; if none is named, the program ended in the middle of one.
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

fn summary(results: &[(&Mutant, Verdict)]) -> String {
    let caught = results
        .iter()
        .filter(|(_, verdict)| matches!(verdict, Verdict::Caught(_)))
        .count();
    let mut text = format!("{caught} of {} mutants caught\n", results.len());
    for (mutant, verdict) in results {
        text.push_str(&format!(
            "\n{} ({}, {})\n    {}\n",
            mutant.name,
            mutant.file,
            mutant.suite,
            line(mutant, verdict)
        ));
    }
    text
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
    fn a_survivor_has_to_be_explained() {
        let mut mutant = Mutant::default();
        assert!(is_expected(&mutant, &Verdict::Caught("two".to_owned())));
        assert!(!is_expected(&mutant, &Verdict::Survived));
        mutant.survives = Some("loom has no such loads".to_owned());
        assert!(is_expected(&mutant, &Verdict::Survived));
        assert!(!is_expected(&mutant, &Verdict::Stale(String::new())));
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
