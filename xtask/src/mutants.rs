//! `cargo xtask mutants`: breaks the core on purpose, one place at a time, and reports the breaks
//! that no test detects.
//!
//! The mutants have names; they are listed in `xtask/mutants.toml`. Tools that generate mutants,
//! such as cargo-mutants, replace function bodies and operators. Here, fences, memory orderings and
//! the steps of protocols matter more, and each needs its own model.

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
    /// Run only the mutants whose names contain this text (repeatable); the record keeps the
    /// results of all other mutants
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Print the names of the mutants, then exit
    #[arg(long)]
    list: bool,
    /// Minimum time limit for the tests of a mutant, in seconds. A mutant counts as caught if its
    /// tests take longer than this limit, and more than four times as long as without the mutant.
    /// The time limit for loom models is half an hour
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    limit: u64,
}

/// Bound, in seconds: the maximum time for a build or for the models of one mutant, on a busy
/// machine.
const BUILD_MAX: Duration = Duration::from_secs(1800);

/// The factor by which the tests of a mutant may be slower than without it. The machine may be
/// busier than it was at the first run.
const SLOWER_MAX: u32 = 4;

/// The tests that a filter selects, as they ran without a mutant.
struct Unbroken {
    filter: Vec<String>,
    /// The tests that ran.
    names: Vec<String>,
    took: Duration,
}

/// The verdict on a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// Caught: the failed tests, or how the program ended.
    Caught(String),
    /// Caught by this time limit in seconds, and the tests that had not ended by then.
    Hung(u64, String),
    Survived,
    /// The table is wrong, for the given reason.
    Stale(String),
}

/// Runs the mutants and returns whether each was caught or is expected to survive.
///
/// # Errors
///
/// Returns an error if the table or the tree cannot be read, if the tests fail without a mutant, or
/// if the record cannot be written.
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
        // One suite runs after the other, because each has a separate build.
        let of_suite: Vec<_> = chosen.clone().filter(|it| it.suite == suite).collect();
        let unbroken = runner.without_mutant(suite, &of_suite)?;
        for (number, mutant) in of_suite.iter().enumerate() {
            println!(
                "==> {suite} {}/{}: {}",
                number + 1,
                of_suite.len(),
                mutant.name
            );
            let start = Instant::now();
            let verdict = runner.judge(mutant, &unbroken)?;
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
    // If there is no record, there are no earlier verdicts.
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
    /// Checks that the tests pass without a mutant; otherwise, every mutant would seem to be
    /// caught. The time that each filter's tests take here determines the time limit with a mutant.
    fn without_mutant(&self, suite: Suite, mutants: &[&Mutant]) -> anyhow::Result<Vec<Unbroken>> {
        let mut filters: Vec<_> = mutants.iter().map(|mutant| mutant.tests.clone()).collect();
        if suite == Suite::Loom && !filters.is_empty() {
            // Models have a separate time limit, and several filters select the same models.
            filters = vec![filters.concat()];
        }
        filters.iter_mut().for_each(|filter| {
            filter.sort_unstable();
            filter.dedup();
        });
        filters.sort_unstable();
        filters.dedup();
        let mut unbroken = Vec::new();
        for (number, filter) in filters.into_iter().enumerate() {
            if number == 0 {
                println!("==> {suite}: the tests without a mutant");
                self.run(suite, &filter, true, BUILD_MAX)?;
            }
            let start = Instant::now();
            let (end, text) = self.run(suite, &filter, false, BUILD_MAX)?;
            let took = start.elapsed();
            if end == End::Interrupted {
                break;
            }
            if !end.is_success() {
                bail!("the tests fail without a mutant:\n{text}");
            }
            let names = ended(&text);
            let runs = |test: &&String| names.iter().any(|name| name.contains(test.as_str()));
            if let Some(test) = filter.iter().find(|test| !runs(test)) {
                bail!("no test is called {test}");
            }
            unbroken.push(Unbroken {
                filter,
                names,
                took,
            });
        }
        Ok(unbroken)
    }

    fn judge(&self, mutant: &Mutant, unbroken: &[Unbroken]) -> anyhow::Result<Verdict> {
        let original = self.tree.read(&mutant.file)?;
        let broken = match mutant.apply(&original) {
            Ok(broken) => broken,
            Err(reason) => return Ok(Verdict::Stale(reason)),
        };
        self.tree.write(&mutant.file, &broken)?;
        let verdict = self.verdict(mutant, unbroken);
        self.tree.write(&mutant.file, &original)?;
        verdict
    }

    fn verdict(&self, mutant: &Mutant, unbroken: &[Unbroken]) -> anyhow::Result<Verdict> {
        let (end, text) = self.run(mutant.suite, &mutant.tests, true, BUILD_MAX)?;
        if !end.is_success() {
            let error = text.lines().find(|line| line.starts_with("error"));
            return Ok(Verdict::Stale(format!(
                "it does not build: {}",
                error.unwrap_or("no error")
            )));
        }
        // A model always ends. One that exceeds its time limit only has more to explore, and may
        // find nothing.
        let model = mutant.suite == Suite::Loom;
        let mut filter = mutant.tests.clone();
        filter.sort_unstable();
        let unbroken = unbroken.iter().find(|it| it.filter == filter);
        let limit = match unbroken {
            Some(unbroken) if !model => self.limit.max(SLOWER_MAX * unbroken.took),
            _ => BUILD_MAX,
        };
        let (end, text) = self.run(mutant.suite, &mutant.tests, false, limit)?;
        let names = unbroken.map_or(&[][..], |unbroken| &unbroken.names);
        Ok(match end {
            End::Exited(status) if status.success() => Verdict::Survived,
            End::TimedOut if model => Verdict::Stale("its models take too long".to_owned()),
            End::TimedOut => Verdict::Hung(limit.as_secs(), unended(names, &text)),
            End::Exited(_) | End::Stopped | End::Interrupted => Verdict::Caught(failed(&text)),
        })
    }

    fn run(
        &self,
        suite: Suite,
        tests: &[String],
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

/// Returns the tests that have ended, by their full names.
fn ended(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("test ")?.split_once(" ... "))
        .filter(|(_, end)| !end.is_empty())
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Returns those of the tests that have not ended, without the names of their modules.
fn unended(names: &[String], text: &str) -> String {
    let ended = ended(text);
    let left = names.iter().filter(|name| !ended.contains(name));
    let left: Vec<_> = left.filter_map(|name| name.rsplit("::").next()).collect();
    left.join(", ")
}

/// Returns the failed tests. If there are none, the program ended in the middle of a test.
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
        Verdict::Caught(_) | Verdict::Hung(..) => true,
        Verdict::Survived => mutant.survives.is_some(),
        Verdict::Stale(_) => false,
    }
}

fn line(mutant: &Mutant, verdict: &Verdict) -> String {
    let caught = match mutant.survives {
        None => "caught",
        Some(_) => "caught, and the table expects that it survives",
    };
    match (verdict, &mutant.survives) {
        (Verdict::Caught(by), _) => format!("{caught}: {by}"),
        (Verdict::Hung(limit, tests), _) => {
            format!("{caught} by the time limit of {limit} s, without an end of: {tests}")
        }
        (Verdict::Survived, None) => "SURVIVED".to_owned(),
        (Verdict::Survived, Some(reason)) => format!("survived, as expected: {reason}"),
        (Verdict::Stale(reason), _) => format!("STALE: {reason}"),
    }
}

/// Returns an entry for each mutant of the table. A mutant without a new result keeps its earlier
/// entry, including its date.
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
    fn tests_that_hang_are_named() {
        let text = "test a::one ... ok\ntest a::two has been running for over 60 seconds\n";
        assert_eq!(ended(text), ["a::one"]);
        let names = ["a::one", "a::two", "three"].map(str::to_owned);
        assert_eq!(unended(&names, text), "two, three");
        assert_eq!(unended(&names, "test a::one ... "), "one, two, three");
        let hung = Verdict::Hung(60, "two".to_owned());
        assert!(is_expected(&Mutant::default(), &hung));
        assert_eq!(
            line(&Mutant::default(), &hung),
            "caught by the time limit of 60 s, without an end of: two"
        );
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
