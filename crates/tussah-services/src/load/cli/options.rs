//! The options of `tussah load URL`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::target::{field, method};
use crate::load::report::expect::Expectation;
use crate::load::run::settings::{CloseBy, Settings};
use crate::units::{duration, some_duration};

/// The text after the options in the long help.
pub(super) const MORE: &str = "\
Results:
  served        complete, correct responses: not 4xx or 5xx, and with the right
                length and content if these are known
  rejected      responses with status 503; their latency is listed separately
  failed        failures by kind: connect_refused, connect_timeout,
                no_free_port, no_descriptor, tls, connect_other, reset,
                closed_early (before the first byte of the response), truncated,
                timeout, bad_response, unsolicited, wrong_body, status, other.
                unsolicited: the server sent more data than the requests called
                for. The client closes the connection, and counts one failure,
                plus one for each request that it was about to send. If the data
                arrives while the next request is in flight, it counts as the
                response to that request
  unfinished    requests that were due but not answered at the end. In a
                closed loop each client always has some, and they are not
                errors. In an open loop they count as attempted; those never
                sent, or due for longer than --timeout, are errors
  latency       latency of served requests, from sending (in an open loop: from
                the due time) to the last byte of the response
  with connect  like latency, but the time of the first request on a connection
                starts when the request is due, and includes connecting
  within        served requests whose `with connect` time is at most --within
                (the goodput), as a share of all requests that ended, or had
                been due for longer than --within at the end
  sent late     in an open loop: the delay in sending a request whose
                connection was free; the generator adds this delay to latency
  fairness      Jain's index of the requests served to each client: 1 if all
                clients got the same number, 1/N if one of N clients got all
  server CPU    CPU time of --pid and its descendants, in nanoseconds, from the
                kernel's process clock

  The JSON contains all results, with latencies in nanoseconds. Its `version`
  changes only if a field is removed or changes its meaning.

Bounds:
  --expect takes MEASURE<VALUE, or the same with <=, > or >=. Measures are:
  p50 p75 p90 p95 p99 p99.9 p99.99 mean min max
                of latency; other times need a prefix, as in response.p99,
                connect.max or 503.p99
  errors, rejected, within
                shares of all requests, such as 0.1%; within needs --within
  rate, goodput served requests per second; goodput needs --within
  bytes         bytes per second
  jain, jain_worst
                fairness over the run, and in the worst window
  cpu           CPU time of the server per 1000 responses, such as 12ms; needs
                --pid
  busy          busy share of the time of the generator's workers

Exit status:
  0  the server served at least one request, and every --expect is met; other
     requests may have failed or been rejected (--expect 'errors<=0%' checks)
  1  the server served no request, even if every --expect is met; no client
     could connect; or the results cannot be written
  2  the arguments are invalid
  3  an --expect is not met
  Ctrl-C ends the measurement and prints the results so far, with the same
  status; a second Ctrl-C quits immediately.

Examples:
  Load one page with 64 connections for ten seconds:
    tussah load http://127.0.0.1:8080/index.html
  Use 10,000 connections and a warm-up, and measure the server's CPU time:
    tussah load -c 10000 -d 60s --warm-up 5s --pid $(pgrep -o nginx) \\
        http://127.0.0.1:8080/
  Send 1000 requests per second, and require a latency and an error rate:
    tussah load --rate 1000 -d 30s --expect 'p99<20ms' --expect 'errors<0.1%' \\
        http://127.0.0.1:8080/
  Overload a server; require a goodput and a time limit for rejections:
    tussah web --work DIR
    tussah load -c 1024 --within 1s --expect 'goodput>50' \\
        --expect '503.p99<50ms' 'http://127.0.0.1:8080/work?compute=20ms'
  Request files as in SPECweb99, with connections and pauses as in the SEDA
  paper:
    tussah load files --size 3.3GB /srv/set
    tussah web /srv/set
    tussah load -c 1024 --files /srv/set --requests-per-connection 5 \\
        --think 20ms http://127.0.0.1:8080/
  Compare two runs:
    tussah load --json before.json http://127.0.0.1:8080/
    tussah load --json after.json --svg after.svg http://127.0.0.1:8080/
    tussah load compare before.json after.json";

const CONNECTIONS: &str = "Connections";
const REQUESTS: &str = "Requests";
const MEASURING: &str = "Measuring";
const OUTPUT: &str = "Output";

/// The options of a run: the clients, the duration, and the requests.
#[derive(Args, Debug)]
pub(super) struct Options {
    /// URL to send requests to: http://HOST[:PORT][/PATH] or https://..
    pub(super) url: String,

    /// Number of clients, each with one connection at a time; 1 to 10,000
    #[arg(short, long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) connections: u32,

    /// Stop after N requests
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,

    /// Stop after this time, such as 500ms, 10s or 2min [default: 10s without --requests]
    #[arg(short, long, value_parser = some_duration)]
    duration: Option<Duration>,

    /// Open loop: send this many requests per second in total, evenly spaced, whatever the server
    /// does
    #[arg(short, long, value_name = "PER_SECOND", value_parser = rate)]
    rate: Option<f64>,

    /// Pause between a response and the client's next request
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration, conflicts_with = "rate")]
    think: Duration,

    /// Length of the warm-up, whose requests do not count
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    warm_up: Duration,

    /// Number of OS threads that make requests [default: half of the CPUs]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,

    /// Request method [default: GET, or POST with a body]
    #[arg(short = 'X', long, value_parser = method, help_heading = REQUESTS)]
    pub(super) method: Option<String>,

    /// Header field to send; replaces a default field of the same name; repeatable
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = field, help_heading = REQUESTS)]
    pub(super) header: Vec<(String, String)>,

    /// Request body
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file", help_heading = REQUESTS)]
    pub(super) body: Option<String>,

    /// File to send as the request body
    #[arg(long, value_name = "PATH", help_heading = REQUESTS)]
    pub(super) body_file: Option<PathBuf>,

    /// Request the files of a SPECweb99-like set below the URL, popular files more often. DIR is a
    /// directory that `tussah load files` created; SIZE is the size of the set
    #[arg(long, value_name = "DIR|SIZE", help_heading = REQUESTS)]
    pub(super) files: Option<String>,

    /// Request the paths that a file lists, in random order, instead of the path in the URL. Each
    /// line contains a path, after an optional weight and a space; a path with weight 2 is
    /// requested twice as often as a path with the default weight of 1
    #[arg(long, value_name = "FILE", conflicts_with = "files", help_heading = REQUESTS)]
    pub(super) paths: Option<PathBuf>,

    /// With --files: compare every Nth response body of each client, byte by byte, with the file; 0
    /// compares none. Lengths are always compared
    #[arg(long, value_name = "N", default_value_t = 100, help_heading = REQUESTS)]
    check_every: u32,

    /// Number of requests that a client sends together before it waits for the responses
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256), help_heading = REQUESTS)]
    pipeline: u16,

    /// Time limit for a response, or for all responses to requests sent together
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = some_duration, help_heading = REQUESTS)]
    timeout: Duration,

    /// In a closed loop, wait after a 503 for the time in Retry-After, plus a random time of up to
    /// one second
    #[arg(long, conflicts_with = "rate", help_heading = REQUESTS)]
    honor_retry_after: bool,

    /// In a closed loop, pause for this long after a request that gets no complete response, or
    /// after a 503 whose Retry-After is not honored
    #[arg(long, value_name = "DURATION", default_value = "20ms", value_parser = duration, help_heading = REQUESTS)]
    retry_pause: Duration,

    /// Seed for random choices; equal seeds lead to equal choices
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = REQUESTS)]
    seed: u64,

    /// Open a new connection after N requests [default: keep each connection open]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = CONNECTIONS)]
    pub(super) requests_per_connection: Option<u32>,

    /// How to end a connection that has reached --requests-per-connection
    #[arg(long, value_name = "HOW", default_value = "header", help_heading = CONNECTIONS)]
    pub(super) close_by: CloseBy,

    /// Time limit for connecting, including TLS
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = some_duration, help_heading = CONNECTIONS)]
    pub(super) connect_timeout: Duration,

    /// Local addresses to connect from, used in rotation. Each address adds about 28,000 ports. A
    /// port may be unusable for a minute after its connection has closed. For a server on this
    /// machine, use 127.0.0.2 and so on
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', help_heading = CONNECTIONS)]
    pub(super) source: Vec<IpAddr>,

    /// Connect to a Unix socket; the host and the path in each request still come from the URL
    #[arg(long, value_name = "PATH", help_heading = CONNECTIONS)]
    pub(super) unix: Option<PathBuf>,

    /// Trust every certificate
    #[arg(short = 'k', long, conflicts_with = "cacert", help_heading = CONNECTIONS)]
    pub(super) insecure: bool,

    /// PEM file with the certificates to trust instead of the system's
    #[arg(long, value_name = "PATH", help_heading = CONNECTIONS)]
    pub(super) cacert: Option<PathBuf>,

    /// Process ID of the server; the results then include the CPU time of the server and its
    /// descendants
    #[arg(long, help_heading = MEASURING)]
    pub(super) pid: Option<u32>,

    /// Length of the windows in which fairness is measured [default: enough seconds for each client
    /// to receive 20 responses]
    #[arg(long, value_name = "DURATION", value_parser = some_duration, help_heading = MEASURING)]
    window: Option<Duration>,

    /// Report the share of requests that are served within this time, and their number per second
    /// (goodput)
    #[arg(long, value_name = "DURATION", value_parser = some_duration, help_heading = MEASURING)]
    within: Option<Duration>,

    /// Requirement for the results, such as 'p99<20ms', 'errors<0.1%', 'rate>1000' or 'jain>0.99';
    /// the exit status is 3 if the results do not meet it; repeatable
    #[arg(long, value_name = "BOUND", help_heading = MEASURING)]
    pub(super) expect: Vec<Expectation>,

    /// Write the results as JSON to this file; `-` writes them to standard output in place of the
    /// table
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(super) json: Option<PathBuf>,

    /// Write an SVG chart of the latency percentiles and of the requests per second to this file
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(super) svg: Option<PathBuf>,
}

impl Options {
    /// Checks that the options enable every measurement that the expectations require.
    ///
    /// # Errors
    /// Returns an error message that names the missing option.
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

/// Parses a number of requests a second.
fn rate(text: &str) -> Result<f64, String> {
    let rate: Option<f64> = text.parse().ok();
    let rate = rate.filter(|rate| (0.001..=1e7).contains(rate));
    rate.ok_or_else(|| {
        format!("expected a number of requests a second up to ten million, not `{text}`")
    })
}
