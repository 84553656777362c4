//! Runs the peers in turn, each run in a fresh child process, and collects their reports.
//!
//! A child process for every run isolates a peer from the allocator state, leftover threads and
//! page tables of other peers. With turns (A B C A B C ...), slow drifts of the machine affect all
//! peers alike, and two peers of one round make a paired ratio.

use std::io::{IsTerminal, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::cli::Options;
use crate::metric::Metric;
use crate::report;
use crate::workload::{self, Peer, Workload};

/// Bound, in seconds: a run that takes longer than this is considered hung. The slowest correct run
/// takes well under a minute.
const RUN_SECONDS_MAX: u64 = 300;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The metrics of one run, or `None` for a run that did not take place.
pub type Run = Option<Vec<Metric>>;

/// All runs of one peer, in the order of the rounds.
pub struct PeerRuns {
    /// The name of the peer.
    pub name: &'static str,
    /// One entry per round.
    pub rounds: Vec<Run>,
}

/// Runs the requested workload and prints the report.
pub fn parent(options: &Options) -> ExitCode {
    if options.workload == "list" {
        report::list();
        return ExitCode::SUCCESS;
    }
    let (workload, peers) = match select(options) {
        Ok(selected) => selected,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(2);
        }
    };
    // The child also gets the terminal's signal and dies; a second signal ends this process.
    let handler = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    if let Err(error) = handler {
        eprintln!("warning: cannot handle Ctrl-C, which will not print partial results: {error}");
    }
    let mut all: Vec<PeerRuns> = peers
        .iter()
        .map(|peer| PeerRuns {
            name: peer.name,
            rounds: Vec::new(),
        })
        .collect();
    let outcome = rounds(options, &mut all);
    progress("");
    report::print(options, workload, &all);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one peer once in this process and prints its metrics to standard output, one JSON object
/// per line.
pub fn child(options: &Options, peer: &str) -> ExitCode {
    let found = workload::find(&options.workload).and_then(|workload| {
        workload
            .peers
            .iter()
            .find(|candidate| candidate.name == peer)
    });
    let Some(peer) = found else {
        eprintln!("error: no peer {peer} in the workload {}", options.workload);
        return ExitCode::from(2);
    };
    let (name, workload) = (peer.name, options.workload.clone());
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(RUN_SECONDS_MAX));
        eprintln!("error: {workload} of {name} did not finish in {RUN_SECONDS_MAX} seconds");
        std::process::exit(1);
    });
    // A runtime contains a panic in its event; a benchmark must not miss it.
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        print(info);
        std::process::exit(101);
    }));
    let metrics = (peer.run)(options);
    let mut out = std::io::stdout().lock();
    for metric in metrics {
        let line = serde_json::to_string(&metric).expect("a metric has no map and no foreign type");
        if writeln!(out, "{line}").is_err() {
            return ExitCode::FAILURE;
        }
    }
    // An immediate exit saves the time that a runtime with a million parked tasks takes to shut
    // down.
    std::process::exit(0);
}

/// Resolves the names on the command line.
fn select(options: &Options) -> Result<(&'static Workload, Vec<&'static Peer>), String> {
    let workload = workload::find(&options.workload).ok_or_else(|| {
        format!(
            "no workload is named {:?}; `list` prints all of them",
            options.workload
        )
    })?;
    if options.peer.iter().any(|name| name == "all") {
        return Ok((workload, workload.peers.iter().collect()));
    }
    let peers = options.peer.iter().map(|name| {
        workload
            .peers
            .iter()
            .find(|peer| peer.name == name)
            .ok_or_else(|| {
                let known: Vec<_> = workload.peers.iter().map(|peer| peer.name).collect();
                format!(
                    "{} has no peer {name:?}, but: {}",
                    workload.name,
                    known.join(", ")
                )
            })
    });
    Ok((workload, peers.collect::<Result<_, _>>()?))
}

/// Runs one warm-up round, and then the measured rounds. Stops early on an interrupt.
fn rounds(options: &Options, all: &mut [PeerRuns]) -> Result<(), String> {
    for round in 0..=options.runs {
        for peer in all.iter_mut() {
            let label = match round {
                0 => "warm-up".to_owned(),
                _ => format!("run {round} of {}", options.runs),
            };
            progress(&format!("{}: {label}: {}", options.workload, peer.name));
            let metrics = run_child(peer.name);
            if INTERRUPTED.load(Ordering::Relaxed) {
                return Err("interrupted; the figures cover the runs up to this point".to_owned());
            }
            let metrics = metrics.map_err(|error| {
                format!(
                    "{} of {} failed in {label}: {error}",
                    options.workload, peer.name
                )
            })?;
            if round > 0 {
                peer.rounds.push(Some(metrics));
            }
        }
    }
    Ok(())
}

/// Runs this program again with the same arguments for one run of one peer.
fn run_child(peer: &str) -> Result<Vec<Metric>, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .args(std::env::args_os().skip(1))
        .args(["--child", peer])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(output.status.to_string());
    }
    let text = String::from_utf8(output.stdout).map_err(|error| error.to_string())?;
    let metrics: Result<Vec<Metric>, _> = text.lines().map(serde_json::from_str).collect();
    metrics.map_err(|error| error.to_string())
}

/// Shows `text` in the last line of a terminal; an empty string clears it.
fn progress(text: &str) {
    let mut err = std::io::stderr().lock();
    if err.is_terminal() {
        // A closed terminal must not stop the measurement.
        let _ = write!(err, "\r\x1b[K{text}");
        let _ = err.flush();
    }
}
