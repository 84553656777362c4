//! The results of a run, in the form of the JSON.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::load::run::settings::CloseBy;

/// The version of the format. Removing a field or changing its meaning changes the version; adding
/// a field does not.
pub const VERSION: u32 = 1;

/// The results of a run. If a field contains a time, its name ends with the unit, such as `_s`; the
/// values in a [`Times`] are in nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// [`VERSION`].
    pub version: u32,
    /// The URL to which the requests were sent.
    pub url: String,
    /// The name and version of the generator.
    pub generator: String,
    /// The end of the measurement, in seconds since the Unix epoch.
    pub ended_unix_s: u64,
    /// The parameters of the run.
    pub parameters: Parameters,
    /// True if a signal ended the run.
    pub interrupted: bool,
    /// The length of the measurement, in seconds. Every measured rate is a count divided by the
    /// length of the measurement.
    pub measured_s: f64,
    /// The time that the clients took to connect before the measurement, in seconds.
    pub connecting_s: f64,
    /// The outcomes of requests.
    pub requests: Requests,
    /// Served requests per second.
    pub served_per_s: f64,
    /// Requests served within the time that `--within` specifies; `null` without the option.
    pub within: Option<Within>,
    /// The number of bytes received, in heads and bodies.
    pub bytes: u64,
    /// Bytes received per second.
    pub bytes_per_s: f64,
    /// Latency of served requests: the time from sending the request, or in an open loop from its
    /// due time, to the last byte of the response.
    pub latency: Times,
    /// Like `latency`, but the time of the first request on a connection starts when that request
    /// is due, and includes connecting.
    pub response: Times,
    /// Latency of requests answered with 503.
    pub rejected_latency: Times,
    /// Time to connect, including TLS.
    pub connect: Times,
    /// Time to connect, including TLS, for connections made before the measurement.
    pub connect_before: Times,
    /// In an open loop, the time from the moment at which a request is due until the client sends
    /// it. Counts only requests that became due while their client was free. The lag is a delay
    /// that the generator itself causes.
    pub lag: Times,
    /// The number of failed requests by kind of error; every kind has an entry.
    pub errors: BTreeMap<String, u64>,
    /// The number of clients that could not connect before the measurement, by kind of error.
    pub errors_before: BTreeMap<String, u64>,
    /// One sample message for each kind of error.
    pub error_samples: BTreeMap<String, String>,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// The fairness between clients.
    pub fairness: Fairness,
    /// CPU time during the measurement.
    pub cpu: Cpu,
    /// The counts of each second of the measurement.
    pub seconds: Vec<Second>,
    /// Reasons to doubt the results.
    pub warnings: Vec<String>,
}

/// The parameters of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// The number of clients, each with one connection at a time.
    pub connections: usize,
    /// The number of workers of the generator.
    pub workers: usize,
    /// The number of requests to make, if specified.
    pub requests: Option<u64>,
    /// The length of the measurement, in seconds, if specified.
    pub duration_s: Option<f64>,
    /// Requests per second of an open loop; `null` in a closed loop.
    pub rate_per_s: Option<f64>,
    /// The pause of a client between a response and its next request, in milliseconds.
    pub think_ms: f64,
    /// The length of the warm-up, in seconds.
    pub warm_up_s: f64,
    /// The maximum number of requests on a connection, if limited.
    pub requests_per_connection: Option<u32>,
    /// The way in which a connection ends.
    pub close_by: CloseBy,
    /// The number of requests that a client sends together.
    pub pipeline: usize,
    /// The time limit for a response, in seconds.
    pub timeout_s: f64,
    /// True if clients honor `Retry-After`.
    pub honor_retry_after: bool,
    /// The pause of a client, in milliseconds, after a request that gets no complete response, or
    /// after a 503 whose `Retry-After` is not honored.
    pub retry_pause_ms: f64,
    /// The value of `--check-every`: every Nth response body of each client is compared with the
    /// file; 0 means none.
    pub check_every: u32,
    /// The time limit that `--within` specifies, in milliseconds, if any.
    pub within_ms: Option<f64>,
    /// The number of directories of the file set, if the run uses one.
    pub file_directories: Option<usize>,
    /// The file that lists the requested paths, if the run uses one.
    pub paths: Option<PathBuf>,
    /// The seed of random choices.
    pub seed: u64,
}

/// The outcomes of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    /// Requests that were answered completely and correctly.
    pub served: u64,
    /// Requests that were answered with 503.
    pub rejected: u64,
    /// Requests that failed for any reason.
    pub failed: u64,
    /// Requests in flight at the end of the measurement. In an open loop, unfinished requests count
    /// as attempted. In a closed loop, unfinished requests do not count, because requests are
    /// normally in flight when the measurement ends.
    pub unfinished: u64,
    /// In an open loop, requests that were due but never sent; each counts as an error.
    pub never_sent: u64,
    /// Unfinished requests that, at the end of the measurement, had been due for longer than
    /// [`Parameters::timeout_s`]. In an open loop, each overdue request counts as an error.
    #[serde(default)]
    pub overdue: u64,
    /// The time, in nanoseconds, for which the oldest unfinished or unsent request had been due at
    /// the end of the measurement; 0 if there is none.
    pub unfinished_wait_ns: u64,
}

/// Requests whose time, measured as in [`Summary::response`], was at most
/// [`Parameters::within_ms`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Within {
    /// The number of requests served within the time limit.
    pub count: u64,
    /// The share of requests served within the time limit, from 0 to 1. The share is relative to
    /// all requests that ended, or that had been due for longer than `within_ms` at the end of the
    /// measurement.
    pub share: f64,
    /// The goodput: the number of requests served within the time limit, per second.
    pub per_s: f64,
}

/// A distribution of times, in nanoseconds. All fields are 0 if no time was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The number of times.
    pub count: u64,
    /// The minimum.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// The median.
    pub p50: u64,
    /// The 75th percentile.
    pub p75: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p99_9: u64,
    /// The 99.99th percentile.
    #[serde(rename = "p99.99")]
    pub p99_99: u64,
    /// The maximum.
    pub max: u64,
}

/// The fairness between clients, measured by Jain's index: 1 means that all clients were served
/// equally.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Jain's index over the whole measurement.
    pub jain: f64,
    /// Jain's index in the worst window.
    pub jain_worst: f64,
    /// The length of a window, in seconds.
    pub window_s: f64,
    /// The average number of requests served per client and window.
    pub window_completions: f64,
    /// Jain's index in each window. A window begins about every second, or every `window_s` if that
    /// is shorter. In a run of more than an hour, windows begin less often.
    pub windows: Vec<f64>,
    /// The number of requests served for the client that got the fewest responses.
    pub served_min: u64,
    /// The number of requests served for the client that got the most responses.
    pub served_max: u64,
}

/// CPU time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// The server's CPU time, if its process ID was specified.
    pub server: Option<ServerCpu>,
    /// The generator's CPU time, in seconds.
    pub generator_s: f64,
    /// The utilization of the generator's workers: the share of the measurement, from 0 to 1,
    /// during which the workers were busy.
    pub generator_busy: f64,
}

/// CPU time of the server's process and its descendants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerCpu {
    /// The server's process ID.
    pub pid: u32,
    /// The number of processes of the server at the end of the measurement, including the process
    /// `pid`.
    pub processes: usize,
    /// CPU seconds.
    pub seconds: f64,
    /// CPU milliseconds per thousand answered requests, whatever the status of each response.
    pub ms_per_1000_requests: f64,
    /// The average number of CPUs that the server kept busy.
    pub cpus: f64,
}

/// The counts of one second of the measurement; the last entry may cover less than a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Second {
    /// Requests that were served.
    pub served: u64,
    /// Requests that were answered with 503.
    pub rejected: u64,
    /// Requests that failed.
    pub failed: u64,
}

impl Requests {
    /// Returns the number of requests that ended within the measurement.
    pub(in crate::load) fn ended(&self) -> u64 {
        self.served + self.rejected + self.failed
    }
}

impl Summary {
    /// Returns the number of requests that ended; in an open loop, the number of requests that were
    /// due.
    #[must_use]
    pub fn attempted(&self) -> u64 {
        let requests = &self.requests;
        match self.parameters.rate_per_s {
            Some(_) => requests.ended() + requests.unfinished + requests.never_sent,
            None => requests.ended(),
        }
    }

    /// Returns the number of failed requests; rejected requests do not count. In an open loop, the
    /// number includes the requests that were never sent, and the unfinished requests that had
    /// exceeded their time limit when the run ended.
    #[must_use]
    pub fn errors(&self) -> u64 {
        let requests = &self.requests;
        match self.parameters.rate_per_s {
            Some(_) => requests.failed + requests.never_sent + requests.overdue,
            None => requests.failed,
        }
    }

    /// Returns the share of [`attempted`](Self::attempted) requests that are
    /// [`errors`](Self::errors), from 0 to 1.
    #[must_use]
    pub fn error_share(&self) -> f64 {
        self.errors() as f64 / self.attempted().max(1) as f64
    }
}

#[cfg(test)]
pub(in crate::load) mod tests {
    use super::*;

    /// Returns the results of a run without requests.
    pub(in crate::load) fn summary() -> Summary {
        let json = include_str!("summary/nothing.json");
        serde_json::from_str(json).expect("it has the format")
    }

    #[test]
    fn the_format_stays() {
        let json = include_str!("summary/nothing.json");
        let written = serde_json::to_string_pretty(&summary()).expect("it has only names as keys");
        assert_eq!(
            written,
            json.trim_end(),
            "a change of the format needs another version"
        );
    }

    #[test]
    fn results_without_newer_fields_are_read() {
        let mut value = serde_json::to_value(summary()).expect("it has only names as keys");
        let fields = value.as_object_mut().expect("it is an object");
        assert!(fields.remove("within").is_some());
        let parameters = fields["parameters"].as_object_mut();
        assert!(parameters.and_then(|all| all.remove("within_ms")).is_some());
        let read: Summary = serde_json::from_value(value).expect("it has the format");
        assert_eq!((read.within, read.parameters.within_ms), (None, None));
    }
}
