//! Compares web servers with each other and a bare floor: `tussah-bench web SCENARIO`.
//!
//! All servers of a scenario stay alive and take turns in short slices, in an order that changes
//! from round to round. Ratios are taken within a round. The server's single worker has a CPU to
//! itself, and so do the clients. The benchmark keeps the clients' CPU from sleeping.

mod bench;
mod big;
mod bottleneck;
mod cgroup;
mod check;
mod client;
mod config;
mod corpus;
mod cost;
mod counts;
mod fairness;
mod fastcgi;
mod figures;
mod load;
mod memory;
mod peer;
mod process;
mod response;
#[cfg(feature = "web-peers")]
pub mod serve;
mod site;
mod slice;
mod speed;
mod start;
mod support;
pub mod video;
mod windows;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use self::bench::{Bench, Scratch};
use self::bottleneck::After503;
use self::figures::Findings;
use self::peer::{Peer, Peers};
use self::site::Site;

/// Compare web servers: the cost of a request, and fairness between clients.
#[derive(Debug, Parser)]
#[command(name = "tussah-bench web", after_long_help = EXAMPLES)]
struct Options {
    #[command(subcommand)]
    scenario: Scenario,
    #[command(flatten)]
    common: Common,
}

/// The size of the one file, in bytes.
const ONE_FILE_BYTES: u64 = 4096;

const EXAMPLES: &str = "\
scripts/peers installs the peers in C. Those in Rust are part of this program with --features web-peers:
  cargo build --release -p tussah-services -p tussah-bench --features tussah-bench/web-peers

Examples:
  tussah-bench web one-file --connections 64
  tussah-bench web one-file --connections 8000 --peers floor,nginx,tussah --rounds 5 --slice-ms 300";

/// Options of all scenarios.
#[derive(Debug, Args)]
pub struct Common {
    /// Servers to compare, separated by commas [default: all but hyper-shared and apache]
    #[arg(
        long,
        global = true,
        value_name = "NAME|usual|all",
        default_value = "usual",
        value_delimiter = ','
    )]
    peers: Vec<String>,

    /// Server to compare with the others; the aims (performance targets) apply to this server
    #[arg(long, global = true, value_name = "NAME", default_value = "tussah")]
    base: String,

    /// Number of rounds; each round measures every server once [default: 40 for scenarios that
    /// measure costs, which is enough for a figure that you can quote; fewer for slow or
    /// deterministic scenarios]
    #[arg(long, global = true, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,

    /// Measurement time per server and round, in milliseconds
    #[arg(long, global = true, default_value_t = 1500, value_parser = clap::value_parser!(u32).range(10..))]
    slice_ms: u32,

    /// Workers of each server
    #[arg(long, global = true, default_value_t = 1)]
    workers: usize,

    /// Seed for the random choice of the clients' requests, and of the order in which the servers
    /// run
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,

    /// Path of the `tussah` program [default: in the folder of this program]
    #[arg(long, global = true, value_name = "PATH")]
    tussah: Option<PathBuf>,

    /// Flags for `tussah web`, separated by spaces
    #[arg(
        long,
        global = true,
        value_name = "FLAGS",
        default_value = "",
        allow_hyphen_values = true
    )]
    tussah_flags: String,

    /// Additional server: `tussah web` with the given flags, listed as tussah-NAME
    #[arg(
        long,
        global = true,
        value_name = "NAME=FLAGS",
        allow_hyphen_values = true
    )]
    variant: Vec<String>,

    /// Load generator for `one-file` and `files`: `tussah load`, or the clients built into this
    /// program; only the latter wait for all responses at the end of each measurement
    #[arg(long, global = true, value_enum, default_value_t = Load::Own)]
    load: Load,

    /// Fail if an aim (performance target) is missed
    #[arg(long, global = true)]
    check: bool,
}

/// The load generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Load {
    /// The clients that are built into this program.
    Own,
    /// The command `tussah load`.
    Tussah,
}

#[derive(Debug, Subcommand)]
enum Scenario {
    /// Start and check every server, and list those that are available
    List,
    /// CPU time per request for one file on keep-alive connections
    OneFile {
        /// Number of connections
        #[arg(long, default_value_t = 64)]
        connections: usize,
        /// Length of the file, in bytes
        #[arg(long, default_value_t = ONE_FILE_BYTES, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
        bytes: u64,
    },
    /// CPU time per request and p99 latency for a file set like that of SPECweb99, with ten
    /// requests per connection
    Files {
        /// Number of clients
        #[arg(long, default_value_t = 256)]
        clients: usize,
    },
    /// CPU time per request with two workers relative to one worker, for the file set of `files`
    SpeedUp {
        /// Number of clients
        #[arg(long, default_value_t = 256)]
        clients: usize,
    },
    /// Base server with two workers, compared with two copies of it that have one worker each; uses
    /// the file set of `files`
    NCopy {
        /// Number of clients
        #[arg(long, default_value_t = 256)]
        clients: usize,
    },
    /// Throughput with 1 to 8000 clients
    Clients {
        /// File for an SVG plot of the curve
        #[arg(long, value_name = "FILE")]
        plot: Option<PathBuf>,
    },
    /// Differences between the responses of tussah, nginx and hyper to the corpus of requests, in
    /// the format of docs/http.md
    Corpus {
        /// Folder of the requests
        #[arg(long, value_name = "PATH", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../tussah-wire/tests/corpus"))]
        folder: PathBuf,
    },
    /// Time from starting a server to its first response
    Start,
    /// Throughput and fairness for 3.3 GB of files with 1 GB of memory and a 200 MB cache; `tussah
    /// load` sends the requests; requires root
    Big(big::Options),
    /// Overload of a page that takes 20 ms of CPU time and 20 ms of waiting; measures only tussah;
    /// `tussah load` sends the requests
    Bottleneck {
        /// Number of clients
        #[arg(long, default_value_t = 1024)]
        clients: usize,
        /// Target for the response time of pages, in milliseconds
        #[arg(long, default_value_t = 5000)]
        target_ms: u32,
        /// Make clients honor Retry-After after a 503; without this flag they retry after 20 ms
        #[arg(long)]
        honor_retry_after: bool,
        /// Length of the measurement, in seconds [default: until each client has received 20 pages
        /// on average]
        #[arg(long)]
        seconds: Option<u32>,
    },
    /// Throughput, CPU time and fairness for a small PHP page, compared with nginx; both keep their
    /// connections to php-fpm open; `tussah load` sends the requests
    Fastcgi {
        /// Number of connections
        #[arg(long, default_value_t = 64)]
        connections: usize,
    },
    /// Overload of php-fpm behind tussah, at 1.4, 3 and 10 times its capacity
    FastcgiOverload {
        /// Target for the response time of pages, in milliseconds
        #[arg(long, default_value_t = 200)]
        target_ms: u32,
    },
    /// PHP pages with images, and downloads that do not fit into memory, compared with nginx and
    /// Apache; requires root
    Support(support::Options),
    /// Number of video streams that a server sustains without a late chunk, from disks whose rate
    /// is limited to a known value; requires root
    Video(video::Options),
    /// User-space instructions per request for one 4 KB file, counted by valgrind
    Instructions {
        /// Number of connections
        #[arg(long, default_value_t = 64)]
        connections: usize,
    },
    /// System calls per request for one 4 KB file, counted by strace
    Syscalls {
        /// Number of connections
        #[arg(long, default_value_t = 64)]
        connections: usize,
    },
    /// Server memory per idle keep-alive connection, after one request on each connection
    Memory {
        /// Number of connections
        #[arg(long, default_value_t = 10_000)]
        connections: usize,
    },
    /// Fairness between clients: Jain's index in the worst window, and p99 latency relative to p50
    Fairness {
        /// Number of connections
        #[arg(long, default_value_t = 8000)]
        connections: usize,
    },
}

impl Common {
    /// Creates a bench for servers of one file of 4 KB.
    fn one_file(&self, scratch: &Scratch) -> Result<Bench, String> {
        self.one_file_of(scratch, ONE_FILE_BYTES)
    }

    /// Creates a bench for servers of one file.
    fn one_file_of(&self, scratch: &Scratch, bytes: u64) -> Result<Bench, String> {
        let site = Site::one_file(&scratch.path().join("site"), bytes as usize);
        Bench::new(self, scratch, self.site(site)?, self.workers)
    }

    /// Creates a bench for servers of the set of 100 MB, with `workers` workers.
    fn files(&self, scratch: &Scratch, workers: usize) -> Result<Bench, String> {
        let site = Site::files(&scratch.path().join("site"), site::FOLDERS);
        Bench::new(self, scratch, self.site(site)?, workers)
    }

    /// Returns the requested servers.
    fn chosen(&self) -> Result<Vec<&'static Peer>, String> {
        let known = |name: &str| {
            ["usual", "all"].contains(&name) || peer::ALL.iter().any(|peer| peer.name == name)
        };
        if let Some(name) = self.peers.iter().find(|name| !known(name)) {
            let names: Vec<_> = peer::ALL.iter().map(|peer| peer.name).collect();
            return Err(format!(
                "unknown server {name}; known are {}",
                names.join(", ")
            ));
        }
        let asked = |name: &str| self.peers.iter().any(|asked| asked == name);
        let chosen =
            |peer: &&Peer| asked("all") || (asked("usual") && peer.usual) || asked(peer.name);
        let mut chosen: Vec<&'static Peer> = peer::ALL.iter().filter(chosen).collect();
        for variant in &self.variant {
            chosen.push(Peer::variant(variant)?);
        }
        Ok(chosen)
    }

    /// Returns the locations of the programs.
    fn programs(&self, scratch: &Path) -> Peers {
        let beside = || {
            let program = std::env::current_exe().unwrap_or_default();
            program.with_file_name("tussah")
        };
        let flags = self.tussah_flags.split_whitespace().map(str::to_owned);
        Peers {
            tussah: self.tussah.clone().unwrap_or_else(beside),
            tussah_flags: flags.collect(),
            scratch: scratch.to_owned(),
        }
    }

    /// Returns the requested number of rounds, or `usual`.
    fn rounds(&self, usual: u32) -> u32 {
        self.rounds.unwrap_or(usual)
    }

    fn slice(&self) -> Duration {
        Duration::from_millis(self.slice_ms.into())
    }

    /// Returns the files, or an error if they could not be written.
    fn site(&self, written: std::io::Result<Site>) -> Result<Site, String> {
        written.map_err(|error| format!("cannot write the files to serve: {error}"))
    }
}

/// Runs a scenario and prints the results.
pub fn main(arguments: impl Iterator<Item = String>) -> ExitCode {
    let options = Options::parse_from(std::iter::once("web".to_owned()).chain(arguments));
    if let Err(error) = crate::descriptors::allow(config::CONNECTIONS_MAX) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    process::end_with_this_program(bench::Scratch::folder());
    match run(&options) {
        Ok(findings) => {
            let (text, reached) = findings.report();
            print!("{text}");
            ExitCode::from(u8::from(options.common.check && !reached))
        }
        Err(error) => {
            eprintln!("tussah-bench web: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<Findings, String> {
    let common = &options.common;
    match options.scenario {
        Scenario::List => {
            let scratch = Scratch::new()?;
            let mut bench = common.one_file(&scratch)?;
            let about = bench.list()?;
            let missing = bench.missing;
            Ok(Findings {
                about,
                missing,
                ..Findings::default()
            })
        }
        Scenario::OneFile { connections, bytes } => cost::one_file(common, connections, bytes),
        Scenario::Files { clients } => cost::files(common, clients),
        Scenario::SpeedUp { clients } => speed::speed_up(common, clients),
        Scenario::NCopy { clients } => speed::n_copy(common, clients),
        Scenario::Clients { ref plot } => speed::clients(common, plot.as_deref()),
        Scenario::Corpus { ref folder } => corpus::corpus(common, folder),
        Scenario::Start => start::start(common),
        Scenario::Big(ref options) => big::big(common, options),
        Scenario::Bottleneck {
            clients,
            target_ms,
            honor_retry_after,
            seconds,
        } => {
            let after = match honor_retry_after {
                true => After503::Honor,
                false => After503::Return,
            };
            bottleneck::bottleneck(common, clients, target_ms, after, seconds)
        }
        Scenario::Fastcgi { connections } => fastcgi::fastcgi(common, connections),
        Scenario::FastcgiOverload { target_ms } => fastcgi::overload(common, target_ms),
        Scenario::Support(options) => support::support(common, options),
        Scenario::Video(options) => video::video(common, options),
        Scenario::Instructions { connections } => counts::instructions(common, connections),
        Scenario::Syscalls { connections } => counts::syscalls(common, connections),
        Scenario::Memory { connections } => memory::memory(common, connections),
        Scenario::Fairness { connections } => fairness::fairness(common, connections),
    }
}
