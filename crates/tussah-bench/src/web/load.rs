//! Runs the command `tussah load` as the load generator of a scenario and reads its report.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::process::{self, Stdio};
use std::time::Duration;

use serde::Deserialize;

use super::bench::{Bench, Server};

/// The share of failed requests above which the results are useless.
const FAILED_MAX: f64 = 0.01;

/// A prepared run of `tussah load`.
#[derive(Debug)]
pub struct Command {
    command: process::Command,
}

/// The needed part of its report; times are in nanoseconds.
#[derive(Debug, Deserialize)]
pub struct Report {
    /// The length of the measurement, in seconds.
    pub measured_s: f64,
    /// The outcomes of requests.
    pub requests: Requests,
    /// Served responses per second, without rejections.
    pub served_per_s: f64,
    /// Bytes received per second.
    pub bytes_per_s: f64,
    /// Latency of served requests, from sending.
    pub latency: Times,
    /// The same with connecting.
    pub response: Times,
    /// Latency of rejections.
    pub rejected_latency: Times,
    /// Failed requests by kind.
    pub errors: BTreeMap<String, u64>,
    /// The fairness between clients.
    pub fairness: Fairness,
    /// CPU time.
    pub cpu: Cpu,
    /// Reasons to doubt the results.
    pub warnings: Vec<String>,
}

/// The outcomes of requests.
#[derive(Debug, Deserialize)]
pub struct Requests {
    /// Requests that were answered completely and correctly.
    pub served: u64,
    /// Requests that were answered with 503.
    pub rejected: u64,
    /// Requests that failed for any reason.
    pub failed: u64,
}

/// A distribution of times, in nanoseconds.
#[derive(Debug, Deserialize)]
pub struct Times {
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The maximum.
    pub max: u64,
}

/// Jain's index.
#[derive(Debug, Deserialize)]
pub struct Fairness {
    /// The index over the whole measurement.
    pub jain: f64,
    /// The index in the worst window that gives a client 20 responses.
    pub jain_worst: f64,
}

/// CPU time.
#[derive(Debug, Deserialize)]
pub struct Cpu {
    /// The server's CPU time.
    pub server: Option<ServerCpu>,
}

/// CPU time of the server with its descendants.
#[derive(Debug, Deserialize)]
pub struct ServerCpu {
    /// CPU seconds.
    pub seconds: f64,
    /// CPU milliseconds per thousand responses, including 503.
    pub ms_per_1000_requests: f64,
}

impl Command {
    /// Prepares a load on `path` of a server, or on the file set if the path is empty, from the
    /// clients' CPUs.
    pub fn load(bench: &Bench, server: &Server, path: &str) -> Command {
        crate::runtimes::pin_to_cpus(&bench.cpus.clients);
        let mut command = process::Command::new(&bench.peers.tussah);
        command
            .arg("load")
            .arg(format!("http://{}{path}", server.process.address));
        if path.is_empty() {
            // The contents differ from those that the generator would write.
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

    /// Sets the number of clients, and the number of requests after which each closes its
    /// connection.
    pub fn clients(&mut self, connections: usize, requests_per_connection: u32) -> &mut Command {
        self.flag("--connections", connections);
        if requests_per_connection < u32::MAX {
            self.flag("--requests-per-connection", requests_per_connection);
            self.flag("--close-by", "client");
        }
        self
    }

    /// Sets the length of the measurement.
    pub fn time(&mut self, time: Duration) -> &mut Command {
        self.flag("--duration", format!("{}ms", time.as_millis()))
    }

    /// Runs the command to its end.
    ///
    /// # Errors
    ///
    /// Returns an error if the command failed, or if too many requests did.
    pub fn run(&mut self) -> Result<Report, String> {
        self.command.stdin(Stdio::null()).stderr(Stdio::piped());
        let output = self.command.output();
        let output = output.map_err(|error| format!("tussah load: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("tussah load failed: {}", said.trim()));
        }
        let report: Report = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("cannot read the report of tussah load: {error}"))?;
        for warning in &report.warnings {
            eprintln!("\ntussah load: warning: {warning}");
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
