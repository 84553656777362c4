//! The options of `tussah load URL`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::target::{field, method};
use crate::load::expect::Expectation;
use crate::load::settings::{CloseBy, Settings};
use crate::load::units::{duration, some_duration};

/// What stands behind the options in the long help.
pub(super) const MORE: &str = "\
Results:
  served        whole answers that are right: not 4xx or 5xx, and of the right
                length and content if it is known
  rejected      answers 503, with their latency apart
  failed        by kind: connect_refused, connect_timeout, no_free_port,
                no_descriptor, tls, connect_other, reset, closed_early (before
                the first byte of the answer), truncated, timeout,
                bad_response, wrong_body, status, other
  unfinished    requests that were due but not answered in the end. In closed
                loop each client has some, and they are no errors. In open loop
                they are among all requests, and errors are also those that
                were never sent, or were due longer ago than --timeout
  latency       of what is served: from sending the request (in open loop:
                from when it was due) to the last byte of the answer
  with connect  the same, but the first request on a connection counts from
                when it was due, with connecting
  within        of what is served: `with connect` is at most --within, which
                is also called goodput; a part of all that ended, or were due
                longer ago than that in the end
  sent late     in open loop: by how much a request whose connection was free
                was sent late; the generator adds this to latency
  fairness      Jain's index over what each client was served: 1 if all got
                the same, 1/N if one of N got everything
  server CPU    of --pid and its descendants, by the kernel's clock of the
                process (nanoseconds)

  The JSON has everything, latencies in nanoseconds. Its `version` changes
  only if a field is taken away or means something else.

Bounds:
  --expect takes MEASURE<VALUE, or with <=, > or >=. Measures are p50 p75 p90
  p95 p99 p99.9 p99.99 mean min max (of latency; of others as response.p99,
  connect.max, 503.p99), errors, rejected and within (parts of all requests:
  0.1%), rate (served a second), goodput (served a second within --within),
  bytes (a second), jain and jain_worst, cpu (of the server for 1000 answers:
  12ms), busy (the generator's workers: 80%). within and goodput need --within,
  cpu needs --pid.

Exit status:
  0  at least one request was served, and every --expect is met; requests may
     have failed or been rejected: add --expect 'errors<=0%' to rule that out
  1  no request was served, whatever was expected; no connection could be
     made; or the results can't be written
  2  the arguments make no sense
  3  an --expect is not met
  Ctrl-C ends the measurement and prints what there is, with the same status;
  a second one ends at once.

Examples:
  One page by 64 connections for ten seconds:
    tussah load http://127.0.0.1:8080/index.html
  10,000 connections, a warm-up, and the CPU time of the server:
    tussah load -c 10000 -d 60s --warm-up 5s --pid $(pgrep -o nginx) \\
        http://127.0.0.1:8080/
  1000 requests a second whatever the server does, and how it should do:
    tussah load --rate 1000 -d 30s --expect 'p99<20ms' --expect 'errors<0.1%' \\
        http://127.0.0.1:8080/
  A server that is overloaded: how much it serves in time, and in how much time
  it says no:
    tussah web --work DIR
    tussah load -c 1024 --within 1s --expect 'goodput>50' \\
        --expect '503.p99<50ms' 'http://127.0.0.1:8080/work?compute=20ms'
  Files as in SPECweb99, with new connections and pauses as in the SEDA paper:
    tussah load files --size 3.3GB /srv/set
    tussah web /srv/set
    tussah load -c 1024 --files /srv/set --requests-per-connection 5 \\
        --think 20ms http://127.0.0.1:8080/
  Two runs beside each other:
    tussah load --json before.json http://127.0.0.1:8080/
    tussah load --json after.json --svg after.svg http://127.0.0.1:8080/
    tussah load compare before.json after.json";

const CONNECTIONS: &str = "Connections";
const REQUESTS: &str = "Requests";
const MEASURING: &str = "Measuring";
const OUTPUT: &str = "Output";

/// How many clients connect, for how long, and what they ask for.
#[derive(Args, Debug)]
pub(super) struct Options {
    /// What to load: http://HOST[:PORT][/PATH] or https://..
    pub(super) url: String,

    /// Clients, each with one connection at a time; 1 to 10,000
    #[arg(short, long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) connections: u32,

    /// Ends after so many requests
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,

    /// Ends after so long, such as 500ms, 10s or 2m [default: 10s, unless there is --requests]
    #[arg(short, long, value_parser = some_duration)]
    duration: Option<Duration>,

    /// Open loop: so many requests a second by all clients together, evenly, whatever the server does
    #[arg(short, long, value_name = "PER_SECOND", value_parser = rate)]
    rate: Option<f64>,

    /// Pause of a client between an answer and its next request
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration, conflicts_with = "rate")]
    think: Duration,

    /// Makes requests for so long before any is counted
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    warm_up: Duration,

    /// OS threads that make requests [default: half of the CPUs]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,

    /// Method
    #[arg(short = 'X', long, default_value = "GET", value_parser = method, help_heading = REQUESTS)]
    pub(super) method: String,

    /// A field, instead of one of the same name that would be sent otherwise; may be given several times
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = field, help_heading = REQUESTS)]
    pub(super) header: Vec<(String, String)>,

    /// Body
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file", help_heading = REQUESTS)]
    pub(super) body: Option<String>,

    /// File with the body
    #[arg(long, value_name = "PATH", help_heading = REQUESTS)]
    pub(super) body_file: Option<PathBuf>,

    /// Picks files of a SPECweb99-like set below the URL, by their popularity: a directory that `tussah load files` has made, or the size of one
    #[arg(long, value_name = "DIR|SIZE", help_heading = REQUESTS)]
    pub(super) files: Option<String>,

    /// With --files: compares every Nth body of a client with the file byte by byte; 0: none. Lengths are always compared
    #[arg(long, value_name = "N", default_value_t = 100, help_heading = REQUESTS)]
    check_every: u32,

    /// Requests that a client sends together before it waits for their answers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256), help_heading = REQUESTS)]
    pipeline: u16,

    /// Time limit for an answer, or for those to requests that are sent together
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = some_duration, help_heading = REQUESTS)]
    timeout: Duration,

    /// In closed loop, after a 503 a client waits as long as its Retry-After says, and up to a second more by chance
    #[arg(long, conflicts_with = "rate", help_heading = REQUESTS)]
    honor_retry_after: bool,

    /// In closed loop, pause of a client after a failure, or a 503 (unless its Retry-After is honored)
    #[arg(long, value_name = "DURATION", default_value = "20ms", value_parser = duration, help_heading = REQUESTS)]
    retry_pause: Duration,

    /// Where random choices begin; the same seed makes the same choices
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = REQUESTS)]
    seed: u64,

    /// Makes a new connection after so many requests [default: keeps it]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = CONNECTIONS)]
    pub(super) requests_per_connection: Option<u32>,

    /// How a connection ends after these
    #[arg(long, value_name = "HOW", default_value = "header", help_heading = CONNECTIONS)]
    pub(super) close_by: CloseBy,

    /// Time limit for connecting, TLS included
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = some_duration, help_heading = CONNECTIONS)]
    pub(super) connect_timeout: Duration,

    /// Addresses of this machine to connect from, in turn: more ports than one address has (about 28,000, each of which may wait for a minute
    /// after its connection); 127.0.0.2 and so on for a server on this machine
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', help_heading = CONNECTIONS)]
    pub(super) source: Vec<IpAddr>,

    /// Connects to a Unix socket; the URL still says what to ask for
    #[arg(long, value_name = "PATH", help_heading = CONNECTIONS)]
    pub(super) unix: Option<PathBuf>,

    /// Trusts every certificate
    #[arg(short = 'k', long, conflicts_with = "cacert", help_heading = CONNECTIONS)]
    pub(super) insecure: bool,

    /// PEM file with the certificates to trust instead of the system's
    #[arg(long, value_name = "PATH", help_heading = CONNECTIONS)]
    pub(super) cacert: Option<PathBuf>,

    /// Process of the server, whose CPU time is measured, with its descendants
    #[arg(long, help_heading = MEASURING)]
    pub(super) pid: Option<u32>,

    /// Windows in which fairness is judged [default: as many seconds as give a client 20 answers]
    #[arg(long, value_name = "DURATION", value_parser = some_duration, help_heading = MEASURING)]
    window: Option<Duration>,

    /// Tells how many requests were served within so long, as part of all and a second (goodput)
    #[arg(long, value_name = "DURATION", value_parser = some_duration, help_heading = MEASURING)]
    within: Option<Duration>,

    /// What the run is to reach, such as 'p99<20ms', 'errors<0.1%', 'rate>1000' or 'jain>0.99'; if it does not, the exit status is 1; may be
    /// given several times
    #[arg(long, value_name = "BOUND", help_heading = MEASURING)]
    pub(super) expect: Vec<Expectation>,

    /// Writes the results as JSON; `-`: to standard output, instead of the table
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(super) json: Option<PathBuf>,

    /// Draws the latencies by percentile, and the requests of each second
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(super) svg: Option<PathBuf>,
}

impl Options {
    /// Whether all that is expected will be measured.
    ///
    /// # Errors
    /// A sentence that says which option is missing.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_given = |option| match option {
            "--within" => self.within.is_some(),
            _ => self.pid.is_some(),
        };
        for expectation in &self.expect {
            if let Some(option) = expectation.option().filter(|option| !is_given(*option)) {
                return Err(format!("--expect '{expectation}' needs {option}"));
            }
        }
        Ok(())
    }

    pub(super) fn settings(&self) -> Settings {
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
            within: self.within,
            pid: self.pid,
            seed: self.seed,
        }
    }
}

/// Reads a number of requests a second.
fn rate(text: &str) -> Result<f64, String> {
    let rate: Option<f64> = text.parse().ok();
    let rate = rate.filter(|rate| (0.001..=1e7).contains(rate));
    rate.ok_or_else(|| {
        format!("expected a number of requests a second up to ten million, not `{text}`")
    })
}
