//! Serves more files than fit into memory: 3.3 GB of files, 1 GB of memory for the server and a
//! cache of 200 MB.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::Common;
use super::bench::{self, Bench, Scratch, Server};
use super::cost::RATE;
use super::figures::{Aim, Bound, Findings};
use super::load;
use super::site::{self, Site};
use crate::metric::Metric;

/// The memory of a server, in bytes, and the bound on its file cache, in MB.
const MEMORY: u64 = 1 << 30;
const CACHE_MEGABYTES: usize = 200;

/// The number of requests on a connection and the pause before each.
const REQUESTS_PER_CONNECTION: u32 = 5;
const THINK: &str = "20ms";

/// The default number of rounds.
const ROUNDS: u32 = 5;

/// Servers that cannot serve more files than fit into memory.
const IN_MEMORY: [&str; 2] = ["floor", "actix-web"];

const JAIN: &str = "Jain";
const SECONDS_MAX: &str = "s max, connecting included";

/// The options of `web big`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Number of clients
    #[arg(long, default_value_t = 1024)]
    pub clients: usize,
    /// Measurement time per server and round, in seconds
    #[arg(long, default_value_t = 20)]
    pub seconds: u32,
    /// Warm-up before each measurement, in seconds, to fill the server's caches
    #[arg(long, default_value_t = 20)]
    pub warm_up_seconds: u32,
    /// Folder for the files, which are kept for the next run [default: a temporary folder, which is
    /// deleted after the run]
    #[arg(long, value_name = "PATH")]
    pub folder: Option<PathBuf>,
}

/// Runs `web big`.
pub fn big(common: &Common, options: &Options) -> Result<Findings, String> {
    let scratch = Scratch::new()?;
    let folder = options.folder.clone();
    let folder = folder.unwrap_or_else(|| scratch.path().join("site"));
    eprintln!(
        "writing 3.3 GB to {}, except for existing files",
        folder.display()
    );
    let folder = std::path::absolute(folder).map_err(|error| error.to_string())?;
    let site = common.site(Site::files(&folder, site::FOLDERS_SEDA))?;
    let mut bench = Bench::new(common, &scratch, site, common.workers)?;
    bench.cache_megabytes = Some(CACHE_MEGABYTES);
    bench.leave_out(&IN_MEMORY, "it keeps all files in memory");
    let series = bench::rounds_anew(
        &mut bench,
        common,
        common.rounds(ROUNDS),
        |bench, peer, seed| {
            let Some((group, server)) = bench.start_in(peer, MEMORY)? else {
                return Ok(None);
            };
            let mut metrics = measure(bench, &server, options, seed)?;
            let peak = group.peak_bytes().map(|bytes| bytes / 1e6);
            metrics.extend(
                peak.map(|peak| Metric::info("MB of memory at peak, files included", peak)),
            );
            Ok(Some(metrics))
        },
    )?;
    let own = |unit, bound| Aim {
        unit,
        over: None,
        bound,
    };
    let mut aims = vec![
        own(JAIN, Bound::Least(0.99)),
        own(SECONDS_MAX, Bound::Most(3.9)),
    ];
    aims.extend(["nginx", "lighttpd", "hyper"].map(|peer| Aim {
        unit: RATE,
        over: Some(peer),
        bound: Bound::Least(1.0),
    }));
    Ok(Findings {
        about: format!(
            "3.3 GB of files like those of SPECweb99, 1 GB of memory, a cache of {CACHE_MEGABYTES} MB; {} clients, \
             {THINK} of thinking, {REQUESTS_PER_CONNECTION} requests a connection; {} s, after {}; workers: {}",
            options.clients, options.seconds, options.warm_up_seconds, common.workers
        ),
        base: common.base.clone(),
        series,
        missing: bench.missing,
        aims,
    })
}

fn measure(
    bench: &Bench,
    server: &Server,
    options: &Options,
    seed: u64,
) -> Result<Vec<Metric>, String> {
    let mut load = load::Command::load(bench, server, "");
    load.clients(options.clients, REQUESTS_PER_CONNECTION)
        .flag("--think", THINK);
    load.flag("--warm-up", format!("{}s", options.warm_up_seconds));
    load.time(Duration::from_secs(options.seconds.into()));
    let report = load.flag("--seed", seed % 1_000_000).run()?;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let cpus = report
        .cpu
        .server
        .map_or(f64::NAN, |cpu| cpu.seconds / report.measured_s);
    Ok(vec![
        Metric::higher(RATE, report.served_per_s),
        Metric::info("MB/s", report.bytes_per_s / 1e6),
        Metric::higher(JAIN, report.fairness.jain),
        Metric::info("Jain, worst window", report.fairness.jain_worst),
        Metric::lower(SECONDS_MAX, seconds(report.response.max)),
        Metric::lower("s p99, connecting included", seconds(report.response.p99)),
        Metric::info("CPUs used", cpus),
    ])
}
