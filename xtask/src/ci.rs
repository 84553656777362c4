//! The steps of `cargo xtask ci`, run one after the other, with a summary table.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

mod command;
mod recorded;
mod steps;
mod toolchain;

pub(crate) use steps::cargo;
pub(crate) use toolchain::{NIGHTLY, Rustup};

#[derive(Args)]
pub(crate) struct Options {
    /// Run only this step (repeatable, or a comma-separated list)
    #[arg(
        long,
        value_name = "STEP",
        value_delimiter = ',',
        conflicts_with = "skip"
    )]
    only: Vec<Step>,
    /// Skip this step (repeatable, or a comma-separated list)
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    skip: Vec<Step>,
    /// Run only fmt, clippy and the unit tests
    #[arg(long, conflicts_with_all = ["only", "skip"])]
    quick: bool,
    /// Continue with the next step after a failure
    #[arg(long)]
    keep_going: bool,
    /// Never install a toolchain, a component or a package; skip the steps that lack one
    #[arg(long)]
    no_install: bool,
    /// Record that loom or miri has passed, so that later runs repeat it only after a change
    #[arg(long, requires = "only")]
    record: bool,
}

/// One step of CI, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// The code is formatted with `cargo fmt`
    Fmt,
    /// The code follows the house rules (`cargo xtask tidy`)
    Tidy,
    /// Clippy has no warnings
    Clippy,
    /// The documentation builds without a warning
    Doc,
    /// The public interface is as listed in `api/`
    Api,
    /// All tests pass
    Test,
    /// A new project that `tussah new` creates passes its tests; this step runs only with `--only
    /// new`
    New,
    /// The code compiles with the oldest supported Rust
    Msrv,
    /// The loom models hold
    Loom,
    /// Miri finds no undefined behavior in the selected tests
    Miri,
    /// curl, wrk and a browser get correct responses
    Clients,
}

impl Step {
    fn name(self) -> String {
        self.to_possible_value()
            .expect("no step is hidden")
            .get_name()
            .to_owned()
    }
}

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    /// Passed earlier with the same sources, on this date.
    Recorded(String),
    /// Failed, with the reason in one line.
    Failed(String),
    /// Skipped, with the reason in one line.
    Skipped(String),
    /// An earlier step failed.
    NotRun,
}

/// A line of the summary.
struct Record {
    step: Step,
    outcome: Outcome,
    took: Duration,
}

/// Runs the selected steps and returns whether none failed.
///
/// # Errors
///
/// Returns an error if a program cannot be started, or the workspace cannot be read.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<bool> {
    let context = steps::Context::new(root, !options.no_install, options.quick)?;
    let run = |step| match step {
        Step::Loom | Step::Miri => run_or_recall(root, options, step, || context.run(step)),
        _ => context.run(step),
    };
    let records = run_steps(&selected(options), options.keep_going, |step| {
        println!("\n==> {}: {}", step.name(), context.describe(step));
        run(step).unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")))
    });
    println!("\n{}", summary(&records));
    Ok(!records
        .iter()
        .any(|record| matches!(record.outcome, Outcome::Failed(_))))
}

/// Runs a step, unless it is recorded to have passed. With `--only`, it always runs.
fn run_or_recall(
    root: &Path,
    options: &Options,
    step: Step,
    run: impl FnOnce() -> anyhow::Result<Outcome>,
) -> anyhow::Result<Outcome> {
    let (name, sources) = (step.name(), recorded::fingerprint(root)?);
    if options.only.is_empty()
        && let Some(date) = recorded::date(root, &name, &sources)
    {
        return Ok(Outcome::Recorded(date));
    }
    let outcome = run()?;
    if options.record && outcome == Outcome::Passed {
        recorded::write(root, &name, &sources)?;
    }
    Ok(outcome)
}

/// The steps of `--quick`, which runs only the unit tests.
const QUICK: [Step; 3] = [Step::Fmt, Step::Clippy, Step::Test];

fn selected(options: &Options) -> Vec<Step> {
    if options.quick {
        return QUICK.into();
    }
    let wanted = |step: &Step| match options.only.is_empty() {
        true => *step != Step::New && !options.skip.contains(step),
        false => options.only.contains(step),
    };
    Step::value_variants()
        .iter()
        .copied()
        .filter(wanted)
        .collect()
}

fn run_steps(
    steps: &[Step],
    keep_going: bool,
    mut run_one: impl FnMut(Step) -> Outcome,
) -> Vec<Record> {
    let mut records = Vec::new();
    let mut stopped = false;
    for &step in steps {
        if stopped {
            records.push(Record {
                step,
                outcome: Outcome::NotRun,
                took: Duration::ZERO,
            });
            continue;
        }
        let start = Instant::now();
        let outcome = run_one(step);
        let took = start.elapsed();
        println!(
            "<== {}: {} in {:.1} s",
            step.name(),
            word(&outcome),
            took.as_secs_f64()
        );
        stopped = matches!(outcome, Outcome::Failed(_)) && !keep_going;
        records.push(Record {
            step,
            outcome,
            took,
        });
    }
    records
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Recorded(_) => "recorded",
        Outcome::Failed(_) => "FAILED",
        Outcome::Skipped(_) => "skipped",
        Outcome::NotRun => "not run",
    }
}

fn summary(records: &[Record]) -> String {
    let mut text = format!("{:<8} {:<8} {:>8}\n", "step", "result", "seconds");
    for Record {
        step,
        outcome,
        took,
    } in records
    {
        let note = match outcome {
            Outcome::Failed(note) | Outcome::Skipped(note) => note,
            Outcome::Recorded(date) => &format!("passed on {date} with the same sources"),
            Outcome::Passed | Outcome::NotRun => "",
        };
        let seconds = took.as_secs_f64();
        let row = format!(
            "{:<8} {:<8} {seconds:>8.1}  {note}",
            step.name(),
            word(outcome)
        );
        text.push_str(row.trim_end());
        text.push('\n');
    }
    let total: Duration = records.iter().map(|record| record.took).sum();
    text.push_str(&format!(
        "{:<8} {:<8} {:>8.1}",
        "total",
        "",
        total.as_secs_f64()
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(only: &[Step], skip: &[Step]) -> Options {
        Options {
            only: only.into(),
            skip: skip.into(),
            quick: false,
            keep_going: false,
            no_install: true,
            record: false,
        }
    }

    fn outcomes(keep_going: bool) -> Vec<Outcome> {
        let steps = [Step::Fmt, Step::Doc, Step::Test];
        let records = run_steps(&steps, keep_going, |step| match step {
            Step::Fmt => Outcome::Skipped("no rustfmt".into()),
            Step::Doc => Outcome::Failed("a broken link".into()),
            _ => Outcome::Passed,
        });
        records.into_iter().map(|record| record.outcome).collect()
    }

    #[test]
    fn all_steps_but_the_one_on_demand_are_selected_unless_told_otherwise() {
        let all = Step::value_variants().iter().copied();
        let all: Vec<_> = all.filter(|step| *step != Step::New).collect();
        assert_eq!(selected(&options(&[], &[])), all);
        assert_eq!(selected(&options(&[Step::New], &[])), [Step::New]);
        assert_eq!(
            selected(&options(&[Step::Loom, Step::Fmt], &[])),
            [Step::Fmt, Step::Loom]
        );
        assert!(!selected(&options(&[], &[Step::Miri])).contains(&Step::Miri));
    }

    #[test]
    fn a_failure_stops_the_run_but_a_skipped_step_does_not() {
        let outcomes = outcomes(false);
        assert!(matches!(outcomes[0], Outcome::Skipped(_)));
        assert!(matches!(outcomes[1], Outcome::Failed(_)));
        assert_eq!(outcomes[2], Outcome::NotRun);
    }

    #[test]
    fn keep_going_runs_what_follows_a_failure() {
        assert_eq!(outcomes(true)[2], Outcome::Passed);
    }

    #[test]
    fn the_summary_names_each_step_with_its_result_and_reason() {
        let records = [
            Record {
                step: Step::Fmt,
                outcome: Outcome::Passed,
                took: Duration::from_millis(1500),
            },
            Record {
                step: Step::Miri,
                outcome: Outcome::Skipped("rustup is not installed".into()),
                took: Duration::ZERO,
            },
        ];
        let expected = "step     result    seconds\n\
                        fmt      passed        1.5\n\
                        miri     skipped       0.0  rustup is not installed\n\
                        total                  1.5";
        assert_eq!(summary(&records), expected);
    }
}
