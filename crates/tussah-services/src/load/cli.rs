//! The command line of `tussah load`.

mod compare;
mod files;
mod target;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::conduct::{Stage, conduct};
use super::expect::Expectation;
use super::plot::{self, Curve};
use super::run::Run;
use super::settings::{CloseBy, Settings};
use super::summary::Summary;
use super::table::table;
use super::tally::Tally;
use super::units::{duration, show_count, some_duration};
use super::url::Url;

/// Makes requests to a web server, and tells how it does.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: Option<Options>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Files(files::Arguments),
    Compare(compare::Arguments),
}

/// How many clients connect, for how long, and what they ask for.
#[derive(Args, Debug)]
struct Options {
    /// What to load: http://HOST[:PORT][/PATH] or https://..
    url: String,

    /// Clients, each with one connection at a time
    #[arg(short, long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,

    /// Ends after so many requests
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,

    /// Ends after so long [default: 10s, unless there is --requests]
    #[arg(short, long, value_parser = some_duration)]
    duration: Option<Duration>,

    /// Open loop: so many requests a second in all, evenly, whatever the server does
    #[arg(short, long, value_name = "PER_SECOND", value_parser = rate)]
    rate: Option<f64>,

    /// Makes requests for so long before any is counted
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    warm_up: Duration,

    /// Closes a connection after so many requests and makes a new one [default: keeps it]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    requests_per_connection: Option<u32>,

    /// How a connection ends after these
    #[arg(long, value_name = "HOW", default_value = "header")]
    close_by: CloseBy,

    /// Pause of a client between an answer and its next request
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration, conflicts_with = "rate")]
    think: Duration,

    /// Requests that a client sends together before it waits for their answers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pipeline: u16,

    /// Picks files of a SPECweb99-like set below the URL, by their popularity: a directory made by `tussah load files`, or the size of one
    #[arg(long, value_name = "DIR|SIZE")]
    files: Option<String>,

    /// Compares every Nth body of a client with the file byte by byte; 0: only the lengths
    #[arg(long, value_name = "N", default_value_t = 100)]
    check_every: u32,

    /// Time limit for an answer
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = some_duration)]
    timeout: Duration,

    /// Time limit for connecting
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = some_duration)]
    connect_timeout: Duration,

    /// After a 503, waits as long as its Retry-After says
    #[arg(long, conflicts_with = "rate")]
    honor_retry_after: bool,

    /// Pause of a client after an error, or a 503 (unless its Retry-After is honored)
    #[arg(long, value_name = "DURATION", default_value = "20ms", value_parser = duration)]
    retry_pause: Duration,

    /// Windows in which fairness is judged [default: as many seconds as give a client 20 answers]
    #[arg(long, value_name = "DURATION", value_parser = some_duration)]
    window: Option<Duration>,

    /// Process of the server, whose CPU time is measured, with its children
    #[arg(long)]
    pid: Option<u32>,

    /// Method of the requests
    #[arg(short = 'X', long, default_value = "GET", value_parser = target::method)]
    method: String,

    /// A field of the requests; may be given several times
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = target::field)]
    header: Vec<(String, String)>,

    /// Body of the requests
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file")]
    body: Option<String>,

    /// File with the body of the requests
    #[arg(long, value_name = "PATH")]
    body_file: Option<PathBuf>,

    /// Connects to a Unix socket; the URL still says what to ask for
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,

    /// Addresses to connect from, in turn
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    source: Vec<IpAddr>,

    /// Trusts every certificate
    #[arg(short = 'k', long, conflicts_with = "cacert")]
    insecure: bool,

    /// PEM file with the certificates to trust instead of the system's
    #[arg(long, value_name = "PATH")]
    cacert: Option<PathBuf>,

    /// OS threads that make requests [default: half of the CPUs]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,

    /// Where random choices begin; the same seed makes the same choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Writes the results as JSON; `-`: to standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Draws the latencies by percentile, and the requests of each second
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// What the run is to reach; if it does not, the exit status is 1; may be given several times
    #[arg(long, value_name = "BOUND")]
    expect: Vec<Expectation>,
}

/// Runs the command; the exit status is 0, 1 if there is nothing to tell, or 2 if the arguments make no sense.
pub fn run(arguments: Arguments) -> ExitCode {
    match (arguments.command, arguments.options) {
        (Some(Command::Files(arguments)), _) => files::run(&arguments),
        (Some(Command::Compare(arguments)), _) => compare::run(&arguments),
        (None, Some(options)) => load(&options),
        (None, None) => usage("expected a URL"),
    }
}

fn load(options: &Options) -> ExitCode {
    let prepared = match target::prepare(options) {
        Ok(prepared) => prepared,
        Err(error) => return usage(&error),
    };
    let settings = options.settings();
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
        let course = conduct(run.clone(), tell).await?;
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
        Some(path) if path.as_os_str() == "-" => print(&json()),
        Some(path) => {
            write(path, json())?;
            print(&table(summary))
        }
        None => print(&table(summary)),
    };
    let mut all_met = true;
    for expectation in &options.expect {
        let judged = expectation.judge(summary);
        eprintln!("{}", judged.text);
        all_met &= judged.is_met;
    }
    Ok(ExitCode::from(u8::from(!all_met)))
}

/// Prints the results; who does not want them any more has closed the pipe.
fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => failed(&format!("the results can't be written: {error}")),
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
        eprint!("\r\x1b[K{text}");
    }
}

impl Options {
    fn settings(&self) -> Settings {
        let no_end = self.requests.is_none() && self.duration.is_none();
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Settings {
            connections: self.connections as usize,
            workers: self.workers.map_or((cpus / 2).max(1), usize::from),
            requests: self.requests,
            duration: self.duration.or(no_end.then_some(Duration::from_secs(10))),
            rate: self.rate,
            think: self.think,
            warm_up: self.warm_up,
            requests_per_connection: self.requests_per_connection,
            close_by: self.close_by,
            pipeline: usize::from(self.pipeline),
            timeout: self.timeout,
            honor_retry_after: self.honor_retry_after,
            retry_pause: self.retry_pause,
            check_every: self.check_every,
            window: self.window,
            pid: self.pid,
            seed: self.seed,
        }
    }

    fn url(&self) -> Result<Url, String> {
        Url::parse(&self.url)
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: Option<f64> = text.parse().ok();
    let rate = rate.filter(|rate| (0.001..=1e7).contains(rate));
    rate.ok_or_else(|| {
        format!("expected a number of requests a second up to ten million, not `{text}`")
    })
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
