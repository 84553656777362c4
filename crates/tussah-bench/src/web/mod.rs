//! Web servers beside each other and a bare floor: `tussah-bench web SCENARIO`.
//!
//! All servers of a scenario stay alive and take turns in short slices, in an order that changes from round to round; ratios are
//! taken within a round. One worker has a CPU to itself and the clients another one, which is kept from sleeping.

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

/// Compares web servers: what a request costs them, and how evenly they serve.
#[derive(Debug, Parser)]
#[command(name = "tussah-bench web", after_long_help = EXAMPLES)]
struct Options {
    #[command(subcommand)]
    scenario: Scenario,
    #[command(flatten)]
    common: Common,
}

/// Bytes of the one file.
const ONE_FILE_BYTES: usize = 4096;

const EXAMPLES: &str = "\
The peers of other makers are installed by scripts/peers, those in Rust are part of this program with --features web-peers:
  cargo build --release -p tussah-services -p tussah-bench --features tussah-bench/web-peers

Examples:
  tussah-bench web one-file --connections 64
  tussah-bench web one-file --connections 8000 --peers floor,nginx,tussah --rounds 5 --slice-ms 300";

/// What all scenarios have.
#[derive(Debug, Args)]
pub struct Common {
    /// Servers, separated by commas; the usual ones are all but hyper-shared and apache
    #[arg(
        long,
        global = true,
        value_name = "NAME|usual|all",
        default_value = "usual",
        value_delimiter = ','
    )]
    peers: Vec<String>,

    /// The server that the ratios and the aims are of
    #[arg(long, global = true, value_name = "NAME", default_value = "tussah")]
    base: String,

    /// Rounds, in each of which all servers are measured once [default: 40 for costs, since a figure counts from there
    /// on, and less for what takes longer or repeats]
    #[arg(long, global = true, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,

    /// How long a server is measured in a round, in milliseconds
    #[arg(long, global = true, default_value_t = 1500, value_parser = clap::value_parser!(u32).range(10..))]
    slice_ms: u32,

    /// Workers of each server
    #[arg(long, global = true, default_value_t = 1)]
    workers: usize,

    /// The beginning of the random numbers: the order of the servers, and what clients ask for
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,

    /// The command `tussah` [default: beside this program]
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

    /// One more server: `tussah web` with other flags, called tussah-NAME
    #[arg(
        long,
        global = true,
        value_name = "NAME=FLAGS",
        allow_hyphen_values = true
    )]
    variant: Vec<String>,

    /// What makes the requests of `one-file` and `files`: clients of this program, which pause between two slices with all
    /// answers received, or `tussah load`
    #[arg(long, global = true, value_enum, default_value_t = Load::Own)]
    load: Load,

    /// Fail if an aim is missed
    #[arg(long, global = true)]
    check: bool,
}

/// What makes requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Load {
    /// The clients of this program.
    Own,
    /// The command `tussah load`.
    Tussah,
}

#[derive(Debug, Subcommand)]
enum Scenario {
    /// Starts and checks every server, and says which are there
    List,
    /// One file of 4 KB on keep-alive connections: CPU a request
    OneFile {
        /// Connections
        #[arg(long, default_value_t = 64)]
        connections: usize,
    },
    /// A set of files like that of SPECweb99, ten requests a connection: CPU a request, p99
    Files {
        /// Clients
        #[arg(long, default_value_t = 256)]
        clients: usize,
    },
    /// The same set: CPU a request of two workers over that of one
    SpeedUp {
        /// Clients
        #[arg(long, default_value_t = 256)]
        clients: usize,
    },
    /// The same set: the base with two workers beside two copies of it with one
    NCopy {
        /// Clients
        #[arg(long, default_value_t = 256)]
        clients: usize,
    },
    /// Throughput from one client to 8000
    Clients {
        /// Draws it, as SVG
        #[arg(long, value_name = "FILE")]
        plot: Option<PathBuf>,
    },
    /// The corpus of requests: where nginx and hyper differ from tussah, as docs/http.md has it
    Corpus {
        /// Where the requests are
        #[arg(long, value_name = "PATH", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../tussah-wire/tests/corpus"))]
        folder: PathBuf,
    },
    /// From the start of a server to its first answer
    Start,
    /// 3.3 GB of files, 1 GB of memory and a cache of 200 MB, as root; loaded by `tussah load`
    Big {
        /// Clients
        #[arg(long, default_value_t = 1024)]
        clients: usize,
        /// How long a server is measured in a round, in seconds
        #[arg(long, default_value_t = 20)]
        seconds: u32,
        /// How long it is loaded before that, until its caches hold what they can
        #[arg(long, default_value_t = 20)]
        warm_up_seconds: u32,
        /// Where the files are, which are kept for the next time [default: a folder for temporary files]
        #[arg(long, value_name = "PATH")]
        folder: Option<PathBuf>,
    },
    /// A page of 20 ms of CPU and 20 ms of waiting, overloaded; tussah alone, loaded by `tussah load`
    Bottleneck {
        /// Clients
        #[arg(long, default_value_t = 1024)]
        clients: usize,
        /// Within which time pages are to be answered, in milliseconds
        #[arg(long, default_value_t = 5000)]
        target_ms: u32,
        /// Clients wait after a 503 as long as Retry-After says; else they return after 20 ms
        #[arg(long)]
        honor_retry_after: bool,
        /// How long is measured, in seconds [default: until a client has 20 pages on average]
        #[arg(long)]
        seconds: Option<u32>,
    },
    /// User instructions a request, counted by valgrind, with one file of 4 KB
    Instructions {
        /// Connections
        #[arg(long, default_value_t = 64)]
        connections: usize,
    },
    /// System calls a request, counted by strace, with one file of 4 KB
    Syscalls {
        /// Connections
        #[arg(long, default_value_t = 64)]
        connections: usize,
    },
    /// Memory of an idle keep-alive connection after its first request
    Memory {
        /// Connections
        #[arg(long, default_value_t = 10_000)]
        connections: usize,
    },
    /// How evenly many clients are served: Jain's index in the worst window, p99 beside p50
    Fairness {
        /// Connections
        #[arg(long, default_value_t = 8000)]
        connections: usize,
    },
}

impl Common {
    /// A bench for servers of one file of 4 KB.
    fn one_file(&self, scratch: &Scratch) -> Result<Bench, String> {
        let site = Site::one_file(&scratch.path().join("site"), ONE_FILE_BYTES);
        Bench::new(self, scratch, self.site(site)?, self.workers)
    }

    /// A bench for servers with so many workers of the set of 100 MB.
    fn files(&self, scratch: &Scratch, workers: usize) -> Result<Bench, String> {
        let site = Site::files(&scratch.path().join("site"), site::FOLDERS);
        Bench::new(self, scratch, self.site(site)?, workers)
    }

    /// The servers that were asked for.
    fn chosen(&self) -> Result<Vec<&'static Peer>, String> {
        let known = |name: &str| {
            ["usual", "all"].contains(&name) || peer::ALL.iter().any(|peer| peer.name == name)
        };
        if let Some(name) = self.peers.iter().find(|name| !known(name)) {
            let names: Vec<_> = peer::ALL.iter().map(|peer| peer.name).collect();
            return Err(format!("no server {name}; there are {}", names.join(", ")));
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

    /// Where the programs are.
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

    /// Rounds, `usual` ones unless the user says otherwise.
    fn rounds(&self, usual: u32) -> u32 {
        self.rounds.unwrap_or(usual)
    }

    fn slice(&self) -> Duration {
        Duration::from_millis(self.slice_ms.into())
    }

    /// The files, or why they could not be written.
    fn site(&self, written: std::io::Result<Site>) -> Result<Site, String> {
        written.map_err(|error| format!("the files to serve could not be written: {error}"))
    }
}

/// Runs a scenario and prints what was found.
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
        Scenario::OneFile { connections } => cost::one_file(common, connections),
        Scenario::Files { clients } => cost::files(common, clients),
        Scenario::SpeedUp { clients } => speed::speed_up(common, clients),
        Scenario::NCopy { clients } => speed::n_copy(common, clients),
        Scenario::Clients { ref plot } => speed::clients(common, plot.as_deref()),
        Scenario::Corpus { ref folder } => corpus::corpus(common, folder),
        Scenario::Start => start::start(common),
        Scenario::Big {
            clients,
            seconds,
            warm_up_seconds,
            ref folder,
        } => {
            let times = big::Times {
                seconds,
                warm_up_seconds,
            };
            big::big(common, clients, times, folder.as_deref())
        }
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
        Scenario::Instructions { connections } => counts::instructions(common, connections),
        Scenario::Syscalls { connections } => counts::syscalls(common, connections),
        Scenario::Memory { connections } => memory::memory(common, connections),
        Scenario::Fairness { connections } => fairness::fairness(common, connections),
    }
}
