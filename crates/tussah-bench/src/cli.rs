//! The command line.

use std::time::Duration;

use clap::Parser;

/// Benchmarks of tussah, its peers (tokio, smol, an actor crate, locks, channels) and minimal
/// programs (floors).
///
/// The peers take turns, one run at a time. Each run is a fresh process, and the first round is a
/// warm-up. Every workload checks that no peer lost anything, and fails if one did.
#[derive(Clone, Debug, Parser)]
#[command(version, after_long_help = CALLGRIND)]
pub struct Options {
    /// Name of the workload; `list` prints all workloads with their peers, and `controllers --help`
    /// and `web --help` describe the other two benchmarks
    pub workload: String,

    /// Number of workers per runtime [default: 1 for `yield` and the workloads with I/O, otherwise
    /// 2]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub workers: Option<u16>,

    /// Number of measured runs per peer; use at least 15 for a result that you quote
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,

    /// Peers to run, separated by commas
    #[arg(
        long,
        value_name = "NAME|all",
        default_value = "all",
        value_delimiter = ','
    )]
    pub peer: Vec<String>,

    /// Baseline peer; each paired ratio compares another peer with it
    #[arg(long, value_name = "NAME", default_value = "tussah")]
    pub base: String,

    /// Print one JSON object per line instead of a table
    #[arg(long)]
    pub json: bool,

    /// Number of work steps per event (table2, steal, readers); 0 means none [default: enough for
    /// about 80 ns in table2 and 8 µs in steal; none in readers]
    #[arg(long, value_name = "N")]
    pub work: Option<u32>,

    /// Number of stages in `stages`, each with a queue in front of it [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub stages: Option<u16>,

    /// Maximum number of events per batch (stages) [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: Option<u32>,

    /// Number of flows in `flow` [default: 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub flows: Option<u64>,

    /// Approximate CPU time that each stage spends on an event, in nanoseconds (stages, flow)
    /// [default: 0]
    #[arg(long, value_name = "NS")]
    pub work_ns: Option<u32>,

    /// Yield between consecutive entries into a color (contended, transfer, readers)
    #[arg(long = "yield")]
    pub yield_between: bool,

    /// Disable work stealing in tussah; `steal` always runs with and without stealing, as two peers
    #[arg(long)]
    pub no_steal: bool,

    /// Number of parked threads in `idle`, of pending timers in `timers`, and of blocked pairs in
    /// `fifo`; other workloads park this many additional threads in each runtime [default: 1000000
    /// in idle and timers, otherwise 0]
    #[arg(long, value_name = "N")]
    pub idle: Option<usize>,

    /// Number of connections in `echo`, `bursts` and `gnutella`, and of concurrent connection
    /// attempts in `connect` [default: 100 in echo, 16 in bursts, 4 in gnutella, 64 in connect]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: Option<u32>,

    /// Additional time that each query takes in `gnutella`, in milliseconds; if set, the client
    /// sends 1000 packets a second
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub bottleneck_ms: Option<u64>,

    /// Number of reading threads in `disk` [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub tasks: Option<u32>,

    /// Bypass the page cache in `disk`
    #[arg(long)]
    pub direct: bool,

    /// Folder for the file that `disk` reads; the file is kept for the next run [default: the
    /// folder of this program]
    #[arg(long, value_name = "PATH")]
    pub dir: Option<std::path::PathBuf>,

    /// Pin each worker to one CPU; `cross` then runs its two threads on different CPUs
    #[arg(long)]
    pub pin: bool,

    /// Run the client on one of the server's CPUs; the client can then use CPU time that the server
    /// saves (connect, echo, bursts)
    #[arg(long)]
    pub share_cpu: bool,

    /// Make the events of `steal` memory-bound: each event updates all 256 KB of its color's data
    #[arg(long)]
    pub memory: bool,

    /// Factor by which all counts and durations are multiplied; use a factor below 1 for a quick
    /// run
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub scale: f64,

    /// Run one peer once in this process and print its metrics for the parent process
    #[arg(long, hide = true, value_name = "PEER")]
    pub child: Option<String>,

    /// Make the child process the server of its workload instead of the client
    #[arg(long, hide = true)]
    pub serve: bool,
}

impl Options {
    /// Returns `count` multiplied by the scale, but at least 1.
    pub fn scaled(&self, count: usize) -> usize {
        ((count as f64 * self.scale) as usize).max(1)
    }

    /// Returns the number of workers of each runtime, or 2 by default.
    pub fn workers(&self) -> usize {
        self.workers_or(2)
    }

    /// Returns the number of connections to each server, or the workload's default.
    pub fn connections_or(&self, default: u32) -> usize {
        self.connections.unwrap_or(default) as usize
    }

    /// Returns `duration` multiplied by the scale, but long enough for every server to do some
    /// work.
    pub fn scaled_duration(&self, duration: Duration) -> Duration {
        duration.mul_f64(self.scale).max(Duration::from_millis(100))
    }

    /// Returns the number of workers of each runtime, or the workload's default.
    pub fn workers_or(&self, default: u16) -> usize {
        usize::from(self.workers.unwrap_or(default))
    }

    /// Returns the flags that change the workload, as a user would write them.
    pub fn variant(&self) -> String {
        let mut flags = Vec::new();
        flags.extend(self.workers.map(|n| format!("--workers {n}")));
        flags.extend(self.work.map(|n| format!("--work {n}")));
        flags.extend(self.stages.map(|n| format!("--stages {n}")));
        flags.extend(self.batch.map(|n| format!("--batch {n}")));
        flags.extend(self.work_ns.map(|ns| format!("--work-ns {ns}")));
        flags.extend(self.flows.map(|n| format!("--flows {n}")));
        flags.extend(self.idle.map(|n| format!("--idle {n}")));
        flags.extend(self.connections.map(|n| format!("--connections {n}")));
        flags.extend(self.tasks.map(|n| format!("--tasks {n}")));
        for (set, flag) in [
            (self.yield_between, "--yield"),
            (self.no_steal, "--no-steal"),
            (self.direct, "--direct"),
            (self.pin, "--pin"),
            (self.share_cpu, "--share-cpu"),
            (self.memory, "--memory"),
        ] {
            flags.extend(set.then(|| flag.to_owned()));
        }
        if self.scale != 1.0 {
            flags.push(format!("--scale {}", self.scale));
        }
        if cfg!(feature = "system-alloc") {
            flags.push("--features system-alloc".to_owned());
        }
        flags.join(" ")
    }
}

const CALLGRIND: &str = "\
Instructions for each thread, event or entry (a virtual machine often has no hardware counters):
  cargo build --release -p tussah-bench
  valgrind --tool=callgrind target/release/tussah-bench spawn --scale 0.01 --child tussah
  callgrind_annotate callgrind.out.*
The hidden flag --child PEER runs one peer once in the process itself, without the harness.
Where `perf stat` works, it takes the same command line:
  perf stat -e instructions:u target/release/tussah-bench spawn --child tussah

Examples:
  tussah-bench table2 --work 0
  tussah-bench contended --yield --peer tussah,tokio,parking_lot
  tussah-bench stages --stages 16 --batch 1000 --work-ns 1000
  tussah-bench steal --memory --json > steal.jsonl
  tussah-bench spawn --base tokio --runs 3 --scale 0.1";
