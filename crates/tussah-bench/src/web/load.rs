//! The command `tussah load` as the generator of a scenario's load, and what it reports.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::process::{self, Stdio};
use std::time::Duration;

use serde::Deserialize;

use super::bench::{Bench, Server};

/// More than one failed request of so many, and the figures say nothing.
const FAILED_MAX: f64 = 0.01;

/// A run of `tussah load` that is about to begin.
#[derive(Debug)]
pub struct Command {
    command: process::Command,
}

/// What it tells, as far as it is needed; times in nanoseconds.
#[derive(Debug, Deserialize)]
pub struct Report {
    /// How long was measured, in seconds.
    pub measured_s: f64,
    /// What became of requests.
    pub requests: Requests,
    /// Answers a second, without those that were turned away.
    pub served_per_s: f64,
    /// Bytes received a second.
    pub bytes_per_s: f64,
    /// Of what was served, from the request on.
    pub latency: Times,
    /// The same with connecting.
    pub response: Times,
    /// Of what was turned away.
    pub rejected_latency: Times,
    /// Failed requests by kind.
    pub errors: BTreeMap<String, u64>,
    /// How evenly clients were served.
    pub fairness: Fairness,
    /// CPU time.
    pub cpu: Cpu,
    /// What makes the results doubtful.
    pub warnings: Vec<String>,
}

/// What became of requests.
#[derive(Debug, Deserialize)]
pub struct Requests {
    /// Answered in full and rightly.
    pub served: u64,
    /// Answered with 503.
    pub rejected: u64,
    /// Failed in some way.
    pub failed: u64,
}

/// A distribution of times, in nanoseconds.
#[derive(Debug, Deserialize)]
pub struct Times {
    /// The median.
    pub p50: u64,
    /// 90 % are no longer.
    pub p90: u64,
    /// 99 % are no longer.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

/// Jain's index.
#[derive(Debug, Deserialize)]
pub struct Fairness {
    /// Over the whole measurement.
    pub jain: f64,
    /// In the worst window that gives a client 20 answers.
    pub jain_worst: f64,
}

/// CPU time.
#[derive(Debug, Deserialize)]
pub struct Cpu {
    /// The server's.
    pub server: Option<ServerCpu>,
}

/// CPU time of the server with its children.
#[derive(Debug, Deserialize)]
pub struct ServerCpu {
    /// Seconds.
    pub seconds: f64,
    /// Milliseconds by a thousand requests that were answered, 503 included.
    pub ms_per_1000_requests: f64,
}

impl Command {
    /// A load on `path` of a server, or on the set of files if the path is empty, from the CPUs of the clients.
    pub fn load(bench: &Bench, server: &Server, path: &str) -> Command {
        crate::runtimes::pin_to_cpus(&bench.cpus.clients);
        let mut command = process::Command::new(&bench.peers.tussah);
        command
            .arg("load")
            .arg(format!("http://{}{path}", server.process.address));
        if path.is_empty() {
            // The contents are not those that the generator would write.
            let folders = bench.site.pages.len() / super::site::FILES_OF_FOLDER;
            let bytes = folders as u64 * super::site::BYTES_OF_FOLDER;
            command.args(["--files", &format!("{bytes}B")]);
        }
        command.args(["--check-every", "0", "--workers", "1", "--json", "-"]);
        command.args(["--pid", &server.process.pid().to_string()]);
        Command { command }
    }

    /// Adds a flag.
    pub fn flag(&mut self, name: &str, value: impl Display) -> &mut Command {
        self.command.arg(name).arg(value.to_string());
        self
    }

    /// Adds a flag without a value.
    pub fn switch(&mut self, name: &str) -> &mut Command {
        self.command.arg(name);
        self
    }

    /// So many clients; each closes its connection after so many requests.
    pub fn clients(&mut self, connections: usize, requests_per_connection: u32) -> &mut Command {
        self.flag("--connections", connections);
        if requests_per_connection < u32::MAX {
            self.flag("--requests-per-connection", requests_per_connection);
            self.flag("--close-by", "client");
        }
        self
    }

    /// How long is measured.
    pub fn time(&mut self, time: Duration) -> &mut Command {
        self.flag("--duration", format!("{}ms", time.as_millis()))
    }

    /// Runs it to its end.
    ///
    /// # Errors
    ///
    /// It failed, or too many requests did.
    pub fn run(&mut self) -> Result<Report, String> {
        self.command.stdin(Stdio::null()).stderr(Stdio::piped());
        let output = self.command.output();
        let output = output.map_err(|error| format!("tussah load: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("tussah load failed: {}", said.trim()));
        }
        let report: Report = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("tussah load reports something else: {error}"))?;
        for warning in &report.warnings {
            eprintln!("\nwarning of tussah load: {warning}");
        }
        let Requests {
            served,
            rejected,
            failed,
        } = report.requests;
        if failed as f64 > FAILED_MAX * (served + rejected + failed) as f64 {
            let kinds = report.errors.iter().filter(|(_, count)| **count > 0);
            let kinds: Vec<_> = kinds
                .map(|(kind, count)| format!("{count} {kind}"))
                .collect();
            return Err(format!("{failed} requests failed: {}", kinds.join(", ")));
        }
        Ok(report)
    }
}
