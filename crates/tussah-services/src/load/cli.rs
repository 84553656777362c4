//! The command line of `tussah load`.

mod compare;
mod files;
mod options;
mod target;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use options::{MORE, Options};

use crate::load::report::plot;
use crate::load::report::summary::Summary;
use crate::load::report::table::table;
use crate::load::report::tally::Tally;
use crate::load::run::descriptors;
use crate::load::run::phases::{Phase, run_phases};
use crate::load::run::shared::Run;
use crate::units::show_count;

/// Generate load on a web server and report how the server performs.
///
/// Every client uses one connection at a time. In a closed loop, the default, a client sends a
/// request, waits for the complete response, pauses for --think, and sends the next request. In an
/// open loop (--rate), requests are due at even intervals whatever the server does. The latency of
/// a request is then measured from its due time, so a server stall also counts against the requests
/// that it delays.
///
/// First, all clients connect, a few at a time so that the server's accept queue does not overflow.
/// Then, for the duration of --warm-up, the clients make requests that do not count. Finally, the
/// measurement starts. The measurement counts all requests that end while it is running.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_long_help = MORE)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: Option<Options>,
}

/// The exit status of a run that missed an expectation.
const NOT_MET: u8 = 3;

#[derive(Debug, Subcommand)]
enum Command {
    Files(files::Arguments),
    Compare(compare::Arguments),
}

/// Runs the command and returns its exit status: 0 for success, 1 if nothing was served or the run
/// failed, 2 for invalid arguments, 3 if an expectation is not met.
pub fn run(arguments: Arguments) -> ExitCode {
    match (arguments.command, arguments.options) {
        (Some(Command::Files(arguments)), _) => files::run(&arguments),
        (Some(Command::Compare(arguments)), _) => compare::run(&arguments),
        (None, Some(options)) => load(&options),
        (None, None) => usage("expected a URL"),
    }
}

fn load(options: &Options) -> ExitCode {
    let prepared = match options.check().and_then(|()| target::prepare(options)) {
        Ok(prepared) => prepared,
        Err(error) => return usage(&error),
    };
    let settings = options.settings();
    if let Err(error) = descriptors::allow(settings.connections) {
        return failed(&error);
    }
    let runtime = tussah::Runtime::builder().workers(settings.workers).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("cannot start the workers: {error}")),
    };
    let directories = prepared
        .set
        .map(crate::load::run::files::FileSet::directories);
    let result: Result<_, String> = runtime.block_on(async {
        let dial = prepared.dial(options).await?;
        let handle = tussah::Handle::current();
        let run = Arc::new(Run::new(settings, dial, prepared.requests, handle));
        let tell = progress();
        let course = run_phases(run.clone(), tell).await;
        clear();
        let course = course?;
        let (mut summary, tally) = Summary::of(&run, &options.url, directories, &course);
        summary.parameters.paths.clone_from(&options.paths);
        Ok((summary, tally))
    });
    match result {
        Ok((summary, tally)) => match report(options, &summary, &tally) {
            Ok(status) => status,
            Err(error) => failed(&error),
        },
        Err(error) => failed(&error),
    }
}

/// Writes the results, and returns whether they meet the expectations.
fn report(options: &Options, summary: &Summary, tally: &Tally) -> Result<ExitCode, String> {
    let write = |path: &Path, text: String| {
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    if let Some(path) = &options.svg {
        let histograms = [
            // This curve is drawn first, below the latency curve, since the two often coincide.
            plot::curve("with connect", &tally.response()).filter(|_| summary.connect.count > 0),
            plot::curve("latency", &tally.latency()),
            plot::curve("503", &tally.rejected),
        ];
        let curves = histograms.into_iter().flatten().collect();
        write(path, plot::svg(summary, curves))?;
    }
    let json = || serde_json::to_string_pretty(summary).expect("it has only names as keys") + "\n";
    match &options.json {
        Some(path) if path.as_os_str() == "-" => print(&json())?,
        Some(path) => {
            write(path, json())?;
            print(&table(summary))?;
        }
        None => print(&table(summary))?,
    }
    let mut all_met = true;
    for expectation in &options.expect {
        let judged = expectation.judge(summary);
        eprintln!("{}", judged.text);
        all_met &= judged.is_met;
    }
    let requests = &summary.requests;
    if requests.ended() == 0 {
        return Err("nothing was measured: no request was answered, and none failed".to_owned());
    }
    if requests.served == 0 {
        let (failed, rejected) = (requests.failed, requests.rejected);
        let text =
            format!("the server served no request: {failed} failed, {rejected} were rejected");
        return Err(text);
    }
    Ok(if all_met {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NOT_MET)
    })
}

/// Prints the results. A reader that has closed the pipe is not an error.
fn print(text: &str) -> Result<(), String> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write the results: {error}"))
        }
        _ => Ok(()),
    }
}

/// Returns a function that shows the progress of a run in one line, if standard error is a
/// terminal.
fn progress() -> Option<impl FnMut(&Run, Phase)> {
    if !io::stderr().is_terminal() {
        return None;
    }
    let mut before = 0;
    Some(move |run: &Run, stage| {
        let (mut served, mut rejected, mut failed) = (0, 0, 0);
        run.tallies(|tally| {
            served += tally.served();
            rejected += tally.rejected.len();
            failed += tally.failed();
        });
        let text = match stage {
            Phase::Connecting => format!(
                "connecting: {} of {}",
                run.arrived_count(),
                run.settings.connections
            ),
            Phase::WarmingUp => "warming up".to_owned(),
            Phase::Measuring => format!(
                "{} served, {}/s, {} rejected, {} failed",
                show_count(served),
                show_count(served - before),
                show_count(rejected),
                show_count(failed)
            ),
        };
        before = served;
        clear();
        eprint!("{text}");
    })
}

/// Clears the progress line.
fn clear() {
    if io::stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
}

/// Reports invalid arguments.
fn usage(error: &str) -> ExitCode {
    eprintln!("tussah load: {error}\nFor more, try `tussah load --help`.");
    ExitCode::from(2)
}

/// Reports a run without results.
fn failed(error: &str) -> ExitCode {
    eprintln!("tussah load: {error}");
    ExitCode::FAILURE
}
