//! The command `tussah gnutella`.

use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tussah::net::ToAddresses as _;

use super::options::Options;
use super::running::{Gnutella, GnutellaError};
use crate::address::address_v4;
use crate::units::{size, some_duration};

/// Route packets of the Gnutella network.
///
/// The router accepts peers, and connects to further hosts while it has fewer than four peers (see
/// --keep). The router forwards pings and queries to all other peers, and returns pushes, pongs and
/// query hits along the paths of the packets that they answer.
///
/// With --share, the router answers queries for the files in a directory, and serves these files
/// over HTTP. /search?q=WORDS sends a query, and shows the files that were found. /status shows the
/// peers, the counters, and the graph. Only clients on this machine may use /search and /status.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = AFTER)]
pub struct Arguments {
    /// Address to which peers connect: IP:PORT, or PORT (on 127.0.0.1); port 0 selects a free port
    #[arg(short, long, value_name = "ADDR", default_value = "127.0.0.1:6346", value_parser = address_v4)]
    listen: SocketAddrV4,
    /// Address for files, /search and /status over HTTP; port 0 selects a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:6347", value_parser = address_v4)]
    http: SocketAddrV4,
    /// Host to connect to first; repeatable
    #[arg(short, long = "peer", value_name = "HOST:PORT", value_parser = host)]
    peers: Vec<String>,
    /// File with additional hosts, one HOST:PORT per line
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    hosts: Option<PathBuf>,
    /// Directory with files to share
    #[arg(short, long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    share: Option<PathBuf>,
    /// Number of peers below which the router connects to further hosts, 0 to 100 [default: 4]
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// Maximum number of connected peers, from --keep to 10000 [default: 100]
    #[arg(long, value_name = "N")]
    limit_peers: Option<usize>,
    /// Maximum number of peers per address, 1 to 10000 [default: 16]
    #[arg(long, value_name = "N")]
    limit_each: Option<usize>,
    /// Maximum number of bytes queued for a peer, 64KiB to 1GiB; the router disconnects a peer
    /// whose queue exceeds it [default: 1MiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    limit_queue: Option<u64>,
    /// Maximum number of hops of a packet, 1 to 7 [default: 7]
    #[arg(long, value_name = "N")]
    ttl: Option<u8>,
    /// Maximum number of routes to remember, separately for pings, queries and servents, 1 to 2^31
    /// [default: 100000]
    #[arg(long, value_name = "N")]
    routes: Option<usize>,
    /// Time after which the router disconnects a peer that sends nothing, at least 80ms [default:
    /// 2min]
    #[arg(long, value_name = "TIME", value_parser = some_duration)]
    silence: Option<Duration>,
    /// Time limit for sending the last packets and finishing downloads when the router shuts down
    /// [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = some_duration)]
    drain: Option<Duration>,
    /// Log the end of each connection, with its reason
    #[arg(short, long)]
    verbose: bool,
    /// Number of workers [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Artificial delay before each search of the shared files, for use in measurements
    #[arg(long, value_name = "TIME", value_parser = some_duration)]
    bottleneck: Option<Duration>,
}

const AFTER: &str = "\
Exit status:
  0  the router was stopped by a signal
  1  the router could not start
  2  the command line is invalid

Examples:
  Share the files of a directory:
    tussah gnutella --share /srv/music
  Connect a second router to the first one, and look for a file:
    tussah gnutella --listen 127.0.0.1:7346 --http 127.0.0.1:7347 --peer 127.0.0.1:6346
    curl 'http://127.0.0.1:7347/search?q=silk'";

/// Checks a host.
fn host(text: &str) -> Result<String, String> {
    match text.to_target() {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl From<Arguments> for Options {
    fn from(arguments: Arguments) -> Self {
        let defaults = Self::default();
        let queue = arguments.limit_queue.map(usize::try_from);
        Self {
            listen: arguments.listen,
            http: arguments.http,
            peers: arguments.peers,
            hosts: arguments.hosts,
            keep: arguments.keep.unwrap_or(defaults.keep),
            peers_max: arguments.limit_peers.unwrap_or(defaults.peers_max),
            each_max: arguments.limit_each.unwrap_or(defaults.each_max),
            queue: queue.map_or(defaults.queue, |queue| queue.unwrap_or(usize::MAX)),
            ttl: arguments.ttl.unwrap_or(defaults.ttl),
            routes: arguments.routes.unwrap_or(defaults.routes),
            silence: arguments.silence.unwrap_or(defaults.silence),
            share: arguments.share,
            verbose: arguments.verbose,
            drain: arguments.drain.unwrap_or(defaults.drain),
            workers: arguments.workers.map(usize::from),
            bottleneck: arguments.bottleneck,
        }
    }
}

/// Runs `tussah gnutella`. Returns the exit status.
#[must_use]
pub fn run(arguments: Arguments) -> ExitCode {
    match Gnutella::new(arguments.into()).run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tussah gnutella: {error}");
            match error {
                GnutellaError::Option(_) => ExitCode::from(2),
                _ => ExitCode::FAILURE,
            }
        }
    }
}
