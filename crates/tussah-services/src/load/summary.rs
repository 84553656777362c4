//! The results of a run, as they are written in JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::settings::CloseBy;

/// The version of the format. Fields are added without a new one; it changes when one is taken away or means something else.
pub const VERSION: u32 = 1;

/// All that a run has shown. Times in the names' units; latencies are in nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// [`VERSION`].
    pub version: u32,
    /// What was loaded.
    pub url: String,
    /// Who has written it: `tussah load` with its version.
    pub generator: String,
    /// When the measurement ended, in seconds since 1970.
    pub ended_unix_s: u64,
    /// What was asked for.
    pub parameters: Parameters,
    /// It was ended by a signal.
    pub interrupted: bool,
    /// How long was measured; all rates are by this.
    pub measured_s: f64,
    /// How long making the first connections took, before the measurement.
    pub connecting_s: f64,
    /// What became of requests.
    pub requests: Requests,
    /// Requests that were served, a second.
    pub served_per_s: f64,
    /// Requests that were served in time; `null` if no time was given.
    pub within: Option<Within>,
    /// Bytes that were received, heads and bodies.
    pub bytes: u64,
    /// The same a second.
    pub bytes_per_s: f64,
    /// Of requests that were served: from sending (in open loop from when it was due) to the last byte.
    pub latency: Times,
    /// The same, but with connecting for the first request on a connection: from when it was due.
    pub response: Times,
    /// Of requests that were answered 503, as `latency`.
    pub rejected_latency: Times,
    /// Of connections, TLS included.
    pub connect: Times,
    /// Of the connections that were made before the measurement.
    pub connect_before: Times,
    /// By how much requests of an open loop were sent late though their connection was free: what the generator itself adds.
    pub lag: Times,
    /// Failed requests by kind; every kind is there.
    pub errors: BTreeMap<String, u64>,
    /// Clients that could not connect before the measurement, by kind.
    pub errors_before: BTreeMap<String, u64>,
    /// What was said of one error of its kind.
    pub error_samples: BTreeMap<String, String>,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// How evenly clients were served.
    pub fairness: Fairness,
    /// CPU time during the measurement.
    pub cpu: Cpu,
    /// Each second of the measurement.
    pub seconds: Vec<Second>,
    /// What makes the results doubtful.
    pub warnings: Vec<String>,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// Clients, each with one connection at a time.
    pub connections: usize,
    /// Workers of the generator.
    pub workers: usize,
    /// Requests to be made, if that was said.
    pub requests: Option<u64>,
    /// How long to measure, if that was said.
    pub duration_s: Option<f64>,
    /// Requests a second of an open loop; `null` in closed loop.
    pub rate_per_s: Option<f64>,
    /// What a client waits between an answer and its next request.
    pub think_ms: f64,
    /// How long requests were made before the measurement.
    pub warm_up_s: f64,
    /// Requests of a connection, if there is an end.
    pub requests_per_connection: Option<u32>,
    /// How a connection ends.
    pub close_by: CloseBy,
    /// Requests that are sent together.
    pub pipeline: usize,
    /// How long an answer may take.
    pub timeout_s: f64,
    /// Whether clients obey `Retry-After`.
    pub honor_retry_after: bool,
    /// What a client waits after an error, or a 503 that does not say when to come again.
    pub retry_pause_ms: f64,
    /// One in so many bodies is compared; 0: none.
    pub check_every: u32,
    /// The time in which requests should be served, if one was given.
    pub within_ms: Option<f64>,
    /// Directories of the set of files, if there is one.
    pub file_directories: Option<usize>,
    /// Where random choices begin.
    pub seed: u64,
}

/// What became of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    /// Answered in full and rightly.
    pub served: u64,
    /// Answered with 503.
    pub rejected: u64,
    /// Failed in some way.
    pub failed: u64,
    /// Under way in the end. In open loop they are among all requests, in closed loop they are not, as each client has some.
    pub unfinished: u64,
    /// Due but not sent in the end, in open loop, where each is an error.
    pub never_sent: u64,
    /// Of the unfinished: due longer ago than [`Parameters::timeout_s`]; in open loop each is an error.
    #[serde(default)]
    pub overdue: u64,
    /// For how long the oldest of these was due.
    pub unfinished_wait_ns: u64,
}

/// Requests whose `response` was at most [`Parameters::within_ms`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Within {
    /// How many there are.
    pub count: u64,
    /// Their part of all requests that ended, or were due longer ago than that in the end, 0 to 1.
    pub share: f64,
    /// How many there are a second: the goodput.
    pub per_s: f64,
}

/// The distribution of times, in nanoseconds; all 0 if there is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// How many there are.
    pub count: u64,
    /// The least.
    pub min: u64,
    /// The average.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// The median.
    pub p50: u64,
    /// 75 % are no longer.
    pub p75: u64,
    /// 90 % are no longer.
    pub p90: u64,
    /// 95 % are no longer.
    pub p95: u64,
    /// 99 % are no longer.
    pub p99: u64,
    /// 99.9 % are no longer.
    #[serde(rename = "p99.9")]
    pub p99_9: u64,
    /// 99.99 % are no longer.
    #[serde(rename = "p99.99")]
    pub p99_99: u64,
    /// The longest.
    pub max: u64,
}

/// How evenly clients were served, by Jain's index: 1 is even.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Over the whole measurement.
    pub jain: f64,
    /// In the worst window.
    pub jain_worst: f64,
    /// How long a window is.
    pub window_s: f64,
    /// Requests of a client that were served in a window, on average.
    pub window_completions: f64,
    /// In each window; one begins with every second (or, if windows are shorter, with every window).
    pub windows: Vec<f64>,
    /// The fewest and the most requests of one client that were served.
    pub served_min: u64,
    /// See there.
    pub served_max: u64,
}

/// CPU time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// The server's, if its process was given.
    pub server: Option<ServerCpu>,
    /// The generator's seconds.
    pub generator_s: f64,
    /// The part of the time in which its workers were busy, 0 to 1.
    pub generator_busy: f64,
}

/// CPU time of the server, with its children.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerCpu {
    /// Its process.
    pub pid: u32,
    /// Processes it had in the end, itself included.
    pub processes: usize,
    /// Seconds.
    pub seconds: f64,
    /// Milliseconds by a thousand requests that were answered, whatever the status.
    pub ms_per_1000_requests: f64,
    /// CPUs that it kept busy.
    pub cpus: f64,
}

/// One second of the measurement; the last one may be shorter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Second {
    /// Requests that were served.
    pub served: u64,
    /// Requests that were answered 503.
    pub rejected: u64,
    /// Requests that failed.
    pub failed: u64,
}

impl Requests {
    /// Those that ended within the measurement.
    pub(super) fn ended(&self) -> u64 {
        self.served + self.rejected + self.failed
    }
}

impl Summary {
    /// All requests that ended; in open loop all that were due.
    #[must_use]
    pub fn attempted(&self) -> u64 {
        let requests = &self.requests;
        match self.parameters.rate_per_s {
            Some(_) => requests.ended() + requests.unfinished + requests.never_sent,
            None => requests.ended(),
        }
    }

    /// Requests that failed, not counting rejected ones; in open loop also those that were never sent, or not answered within the time
    /// limit when the run ended.
    #[must_use]
    pub fn errors(&self) -> u64 {
        let requests = &self.requests;
        match self.parameters.rate_per_s {
            Some(_) => requests.failed + requests.never_sent + requests.overdue,
            None => requests.failed,
        }
    }

    /// The part of [`attempted`](Self::attempted) requests that are [`errors`](Self::errors), 0 to 1.
    #[must_use]
    pub fn error_share(&self) -> f64 {
        self.errors() as f64 / self.attempted().max(1) as f64
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The results of a run in which nothing happened.
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
    fn results_without_what_was_added_are_read() {
        let mut value = serde_json::to_value(summary()).expect("it has only names as keys");
        let fields = value.as_object_mut().expect("it is an object");
        assert!(fields.remove("within").is_some());
        let parameters = fields["parameters"].as_object_mut();
        assert!(parameters.and_then(|all| all.remove("within_ms")).is_some());
        let read: Summary = serde_json::from_value(value).expect("it has the format");
        assert_eq!((read.within, read.parameters.within_ms), (None, None));
    }
}
