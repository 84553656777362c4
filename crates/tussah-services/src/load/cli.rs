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

use super::conduct::{Stage, conduct};
use super::descriptors;
use super::plot::{self, Curve};
use super::run::Run;
use super::summary::Summary;
use super::table::table;
use super::tally::Tally;
use super::units::show_count;

/// Make requests to a web server, and tell how it does.
///
/// Every client is one connection at a time. In a closed loop, which is the default, it sends a request, waits for the whole answer, thinks for
/// --think, and sends the next. In an open loop (--rate) requests are due at even times whatever the server does, and their latency counts
/// from when they are due: a server that stalls is not spared the requests that it kept from being sent.
///
/// First all clients connect, a few at a time so that the server's queue of new connections does not overflow. Then they make requests for
/// --warm-up, which are not counted. What ends in the measurement that follows is counted.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_long_help = MORE)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: Option<Options>,
}

/// The exit status of a run that did not reach what was expected of it.
const NOT_MET: u8 = 3;

#[derive(Debug, Subcommand)]
enum Command {
    Files(files::Arguments),
    Compare(compare::Arguments),
}

/// Runs the command. The exit status is 0; 1 if nothing was served or the run failed; 2 if the arguments make no
/// sense; 3 if an expectation is not met.
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
        Err(error) => return failed(&format!("the workers can't be started: {error}")),
    };
    let directories = prepared.set.map(super::files::FileSet::directories);
    let result: Result<_, String> = runtime.block_on(async {
        let dial = prepared.dial(options).await?;
        let handle = tussah::Handle::current();
        let run = Arc::new(Run::new(settings, dial, prepared.requests, handle));
        let tell = progress();
        let course = conduct(run.clone(), tell).await;
        clear();
        let course = course?;
        Ok(Summary::of(&run, &options.url, directories, &course))
    });
    match result {
        Ok((summary, tally)) => match report(options, &summary, &tally) {
            Ok(status) => status,
            Err(error) => failed(&error),
        },
        Err(error) => failed(&error),
    }
}

/// Tells what the run has shown, and whether it is as expected.
fn report(options: &Options, summary: &Summary, tally: &Tally) -> Result<ExitCode, String> {
    let write = |path: &Path, text: String| {
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    if let Some(path) = &options.svg {
        let histograms = [
            // Beneath the other, from which it often does not differ.
            Curve::of("with connect", "#2ca02c", &tally.response())
                .filter(|_| summary.connect.count > 0),
            Curve::of("latency", "#1f77b4", &tally.latency()),
            Curve::of("503", "#ff7f0e", &tally.rejected),
        ];
        let curves: Vec<Curve> = histograms.into_iter().flatten().collect();
        write(path, plot::svg(summary, &curves))?;
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
        let text = format!("no request was served: {failed} failed, {rejected} were rejected");
        return Err(text);
    }
    Ok(if all_met {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NOT_MET)
    })
}

/// Prints the results; who does not want them any more has closed the pipe.
fn print(text: &str) -> Result<(), String> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("the results can't be written: {error}"))
        }
        _ => Ok(()),
    }
}

/// Tells how the run is in one line, if anybody sees it.
fn progress() -> impl FnMut(&Run, Stage) {
    let is_seen = io::stderr().is_terminal();
    let mut before = 0;
    move |run, stage| {
        if !is_seen {
            return;
        }
        let (mut served, mut rejected, mut failed) = (0, 0, 0);
        run.tallies(|tally| {
            served += tally.served();
            rejected += tally.rejected.len();
            failed += tally.failed();
        });
        let text = match stage {
            Stage::Connecting => format!(
                "connecting: {} of {}",
                run.arrived_count(),
                run.settings.connections
            ),
            Stage::WarmingUp => "warming up".to_owned(),
            Stage::Measuring => format!(
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
    }
}

/// Takes the line away again.
fn clear() {
    if io::stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
}

/// The arguments make no sense.
fn usage(error: &str) -> ExitCode {
    eprintln!("tussah load: {error}\nFor more, try `tussah load --help`.");
    ExitCode::from(2)
}

/// There is nothing to tell.
fn failed(error: &str) -> ExitCode {
    eprintln!("tussah load: {error}");
    ExitCode::FAILURE
}
