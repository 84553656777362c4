//! Counts the words of files, to show the runtime at work on real data.
//!
//! One thread walks the directories, and several threads count, each one file at a time. Blocking
//! calls (opening, reading, listing) run on the blocking pool. Each counting thread adds its counts
//! to the totals, which are colored state, split into shards to reduce contention. A bounded queue
//! connects walking and counting.
//!
//! ```text
//! cargo run --release --example word_count -- README.md crates
//! ```

mod count;
mod read;
mod report;
mod totals;
mod walk;

use std::convert::Infallible;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tussah::sync::mpmc;
use tussah::{Colored, Runtime, Scope, scope};

use report::{Problem, Report};
use totals::Totals;

/// Bound, in paths: they take about 6 MB. Usually, all paths fit, so that the progress bar soon
/// knows the total.
const PATHS_QUEUED_MAX: usize = 65_536;

/// Bound, in files: the maximum number that are read at the same time, which keeps a disk busy.
/// Each file takes memory for a chunk and a table of words.
const FILES_AT_ONCE: usize = 32;

/// Count the words of files
///
/// A word is a sequence of letters and digits of any script, ignoring case. Directories are walked;
/// links inside them are not followed. A path that cannot be read is reported, the rest is counted,
/// and the exit status is 1.
#[derive(Parser)]
#[command(
    name = "word_count",
    after_help = "Examples:\n  word_count README.md\n  word_count --top 3 --workers 1 src docs\n  word_count --json ."
)]
struct Options {
    /// Files and directories
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Workers, 1 to 1024 [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Number of the most frequent words to list
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let mut builder = Runtime::builder().name("word_count");
    if let Some(workers) = options.workers {
        builder = builder.workers(workers.into());
    }
    let runtime = match builder.build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("word_count: cannot start the workers: {error}");
            return ExitCode::FAILURE;
        }
    };
    let report = runtime.block_on_spawned(run(options.paths, options.top));
    let text = if options.json {
        report.json()
    } else {
        report.table()
    };
    match io::stdout().write_all(text.as_bytes()) {
        // A reader that closes the pipe early has read as much as it wanted.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("word_count: cannot write the result: {error}");
            ExitCode::FAILURE
        }
        _ if report.problems.is_empty() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Walks, counts and sums up.
async fn run(paths: Vec<PathBuf>, top: usize) -> Report {
    let job = Job {
        totals: Totals::new(),
        problems: Colored::new(Vec::new()),
        progress: progress_bar(),
    };
    let (sender, files) = mpmc::channel(PATHS_QUEUED_MAX);
    let done = scope(async |scope: Scope<Infallible>| {
        let walker = job.clone();
        scope.spawn(async move {
            walk::walk(&walker, paths, sender).await;
            Ok(())
        });
        for _ in 0..FILES_AT_ONCE {
            let (counter, files) = (job.clone(), files.clone());
            scope.spawn(async move {
                count::count_files(&counter, files).await;
                Ok(())
            });
        }
        Ok(())
    });
    let Ok(()) = done.await;
    job.progress.finish_and_clear();
    let mut problems = job.problems.with(std::mem::take).await;
    problems.sort();
    job.totals.report(top, problems).await
}

/// The state shared by the threads.
#[derive(Clone)]
struct Job {
    totals: Totals,
    problems: Colored<Vec<Problem>>,
    progress: ProgressBar,
}

impl Job {
    /// Reports a path that cannot be counted, immediately and again at the end.
    async fn problem(&self, path: PathBuf, error: io::Error) {
        let problem = Problem {
            path: path.display().to_string(),
            error: error.to_string(),
        };
        self.progress
            .suspend(|| eprintln!("word_count: {}: {}", problem.path, problem.error));
        self.problems
            .with(move |problems| problems.push(problem))
            .await;
    }
}

/// Returns a progress bar, which is hidden unless standard error is a terminal.
fn progress_bar() -> ProgressBar {
    let style = "{bar:40} {bytes}/{total_bytes} {bytes_per_sec}";
    let style = ProgressStyle::with_template(style).expect("the template is well formed");
    ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr()).with_style(style)
}
