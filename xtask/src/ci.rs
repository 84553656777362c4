//! The steps of `cargo xtask ci`, with a summary table.
//!
//! The steps run one after the other, except that some run beside the tests ([`BESIDE_TESTS`]).

use std::path::Path;
use std::thread;
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
    /// Never install missing toolchains, components or packages; skip the steps that need them
    #[arg(long)]
    no_install: bool,
    /// Record that loom or miri has passed, so that later runs repeat the step only after a change
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
    /// All tests pass
    Test,
    /// The public interface matches the listings in `api/`
    Api,
    /// The code compiles with the oldest supported Rust
    Msrv,
    /// The documentation builds without a warning
    Doc,
    /// A new project that `tussah new` creates passes its tests; this step runs only with `--only
    /// new`
    New,
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

impl Record {
    fn not_run(step: Step) -> Self {
        Record {
            step,
            outcome: Outcome::NotRun,
            took: Duration::ZERO,
        }
    }
}

/// Runs the selected steps and returns whether none failed.
///
/// # Errors
///
/// Returns an error if a program cannot be started, or the workspace cannot be read.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<bool> {
    let start = Instant::now();
    let context = steps::Context::new(root, !options.no_install, options.quick)?;
    let run = |step| match step {
        Step::Loom | Step::Miri => run_or_recall(root, options, step, || context.run(step)),
        _ => context.run(step),
    };
    let records = run_steps(&selected(options), options.keep_going, |step| {
        println!("\n==> {}: {}", step.name(), context.describe(step));
        run(step).unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")))
    });
    println!("\n{}", summary(&records, start.elapsed()));
    Ok(!failed(&records))
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

/// The steps that run beside the tests. They only compile, and the tests often wait and leave a CPU
/// idle. Their priority is the lowest, so the tests are hardly slower.
const BESIDE_TESTS: [Step; 3] = [Step::Api, Step::Msrv, Step::Doc];

fn run_steps(
    steps: &[Step],
    keep_going: bool,
    run_one: impl Fn(Step) -> Outcome + Sync,
) -> Vec<Record> {
    let mut records = Vec::new();
    let mut rest = steps;
    while let [step, others @ ..] = rest {
        let stopped = failed(&records) && !keep_going;
        let beside = match step {
            Step::Test => others
                .iter()
                .take_while(|step| BESIDE_TESTS.contains(step))
                .count(),
            _ => 0,
        };
        let (beside, others) = others.split_at(beside);
        rest = others;
        let all = |steps: &[Step]| -> Vec<_> {
            let run = |&step| match stopped {
                true => Record::not_run(step),
                false => record(step, &run_one),
            };
            steps.iter().map(run).collect()
        };
        thread::scope(|scope| {
            let beside = (!beside.is_empty()).then(|| {
                scope.spawn(|| {
                    lower_priority();
                    all(beside)
                })
            });
            records.extend(all(&[*step]));
            let join = |thread: thread::ScopedJoinHandle<'_, Vec<Record>>| thread.join();
            records.extend(
                beside
                    .map(join)
                    .into_iter()
                    .flat_map(|ended| ended.expect("a step does not panic")),
            );
        });
    }
    records
}

/// Runs a step, and says how it ended.
fn record(step: Step, run: impl Fn(Step) -> Outcome) -> Record {
    let start = Instant::now();
    let outcome = run(step);
    let took = start.elapsed();
    println!(
        "<== {}: {} in {:.1} s",
        step.name(),
        word(&outcome),
        took.as_secs_f64()
    );
    Record {
        step,
        outcome,
        took,
    }
}

fn failed(records: &[Record]) -> bool {
    let failed = |record: &Record| matches!(record.outcome, Outcome::Failed(_));
    records.iter().any(failed)
}

/// Gives this thread, and the programs that it starts, the lowest priority.
fn lower_priority() {
    // On failure, the programs merely compete with the tests.
    let _ = rustix::process::setpriority_process(None, 19);
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

fn summary(records: &[Record], total: Duration) -> String {
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
    use std::sync::Barrier;

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
        let steps = [Step::Fmt, Step::Clippy, Step::Test, Step::Doc];
        let records = run_steps(&steps, keep_going, |step| match step {
            Step::Fmt => Outcome::Skipped("no rustfmt".into()),
            Step::Clippy => Outcome::Failed("a warning".into()),
            _ => Outcome::Passed,
        });
        records.into_iter().map(|record| record.outcome).collect()
    }

    #[test]
    fn all_steps_except_the_one_on_demand_are_selected_by_default() {
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
        assert_eq!(outcomes[2..], [Outcome::NotRun, Outcome::NotRun]);
    }

    #[test]
    fn keep_going_runs_what_follows_a_failure() {
        assert_eq!(outcomes(true)[2..], [Outcome::Passed, Outcome::Passed]);
    }

    #[test]
    fn compilers_run_beside_the_tests() {
        let both = Barrier::new(2);
        let steps = [Step::Clippy, Step::Test, Step::Api, Step::Clients];
        let records = run_steps(&steps, false, |step| {
            if matches!(step, Step::Test | Step::Api) {
                both.wait();
            }
            Outcome::Passed
        });
        let order: Vec<_> = records.iter().map(|record| record.step).collect();
        assert_eq!(order, steps);
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
        assert_eq!(summary(&records, Duration::from_millis(1500)), expected);
    }
}
