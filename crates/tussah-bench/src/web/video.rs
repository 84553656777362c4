//! Finds the number of video streams that a server holds without a late chunk.
//!
//! This is the measurement of section 5.2 of the Aspen paper (PPoPP 2007). The disks are loop
//! devices, each with a file system of its own, whose rate a control group limits. All servers
//! therefore read the same disks with ordinary system calls.

mod disks;
pub mod threads;
mod viewers;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clap::Args;

use self::disks::Disks;
use self::viewers::Show;
use super::Common;
use super::bench::{self, Cpus, Scratch};
use super::cgroup::Cgroup;
use super::figures::{Aim, Bound, Findings};
use super::peer;
use super::process::{self, Process};
use crate::metric::Metric;

/// The options of `web video`.
#[derive(Args, Clone, Copy, Debug)]
pub struct Options {
    /// Number of disks
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub disks: u32,
    /// Rate of each disk, as the number of streams that it can supply
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(20..))]
    pub streams_per_disk: u32,
    /// Bit rate of each stream, in kbit/s
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(8..))]
    pub kbit_per_s: u32,
    /// Length of the part of a video that a server sends immediately, in seconds
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(5..))]
    pub ahead_s: u32,
    /// Time within which all viewers start, in seconds
    #[arg(long, default_value_t = 10)]
    pub start_s: u32,
    /// Time for which all viewers watch, in seconds
    #[arg(long, default_value_t = 60)]
    pub watch_s: u32,
    /// Total size of the videos on each disk, in MB
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(16..))]
    pub disk_mb: u32,
}

impl Options {
    /// Returns the rate of a stream, in bytes per second.
    fn rate(&self) -> u64 {
        u64::from(self.kbit_per_s) * 1000 / 8
    }

    /// Returns the rate of a disk, in bytes per second.
    fn disk_rate(&self) -> u64 {
        self.rate() * u64::from(self.streams_per_disk)
    }
}

/// The length of a chunk, in seconds, as in the paper.
const CHUNK_S: u32 = 5;

/// The numbers of streams that are tried are multiples of this share of what the disks can read.
const STEPS: u32 = 20;

/// The share of the videos that fits into the memory of a server, and the least memory of a server,
/// in bytes.
const IN_MEMORY: u64 = 8;
const MEMORY_MIN: u64 = 64 << 20;

/// How far tussah is ahead at this many disks, as in the paper: +36 %.
const LEAD: f64 = 1.36;
const DISKS_OF_LEAD: u32 = 8;

const HELD: &str = "streams without a late chunk";

/// The function that makes the command to start a server on a port.
type Start = fn(&Common, &Options, &Place<'_>) -> Result<Command, String>;

/// The locations that a server needs.
struct Place<'a> {
    /// The folder of the videos.
    videos: &'a Path,
    scratch: &'a Path,
    port: u16,
}

/// The servers of the comparison.
const SERVERS: [(&str, Start); 3] = [("threads", threads), ("nginx", nginx), ("tussah", tussah)];

/// Runs `web video`.
pub fn video(common: &Common, options: Options) -> Result<Findings, String> {
    let scratch = Scratch::new()?;
    let disks = Disks::new(scratch.path(), &options)?;
    let cpus = Cpus::of(common.workers)?;
    let names = SERVERS.map(|(name, _)| name);
    let series = bench::turns(&names, common, common.rounds(1), |at, seed| {
        let (name, start) = SERVERS[at];
        let most = Search::default().run(|streams| {
            disks.forget()?;
            let port = process::free_port();
            let folder = scratch.path().join(format!("{name}-{port}"));
            std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
            let place = Place {
                videos: disks.folder(),
                scratch: &folder,
                port,
            };
            let group = Cgroup::memory(name, (disks.bytes() / IN_MEMORY).max(MEMORY_MIN))?;
            let group = group.with_read_rates(disks.rates())?;
            let command = group.wrap(&start(common, &options, &place)?);
            let server = Process::start(command, port, &cpus.server, &folder.join("output"))?;
            let show = Show {
                address: server.address,
                streams: (options.disks * options.streams_per_disk * streams / STEPS) as usize,
                seed,
            };
            let (before, begin) = (server.cpu(), std::time::Instant::now());
            let seen = show.run(&disks, &options)?;
            let cpu = (server.cpu() - before).as_secs_f64() / begin.elapsed().as_secs_f64();
            eprintln!(
                "\n{name}: {} streams: {seen}; {:.0} % of a CPU",
                show.streams,
                100.0 * cpu
            );
            let metrics = vec![
                Metric::higher(HELD, show.streams as f64),
                Metric::lower("s until a viewer plays, at most", seen.start_s_max),
                Metric::lower("% of a CPU", 100.0 * cpu),
            ];
            Ok(seen.is_held().then_some(metrics))
        })?;
        Ok(Some(
            most.unwrap_or_else(|| vec![Metric::higher(HELD, 0.0)]),
        ))
    })?;
    Ok(Findings {
        about: format!(
            "{} disks that read {:.0} MB/s each, streams of {} kbit/s; {} s ahead, chunks of {CHUNK_S} s; \
             viewers start within {} s and watch for {} s; 1/{IN_MEMORY} of the videos fits into memory; workers: {}",
            options.disks,
            options.disk_rate() as f64 / 1e6,
            options.kbit_per_s,
            options.ahead_s,
            options.start_s,
            options.watch_s,
            common.workers
        ),
        base: common.base.clone(),
        series,
        missing: Vec::new(),
        aims: vec![
            ahead("threads", options.disks),
            ahead("nginx", options.disks),
        ],
    })
}

/// Returns the aim beside another server.
fn ahead(over: &'static str, disks: u32) -> Aim {
    // With fewer disks, the disks are the limit.
    let lead = if disks < DISKS_OF_LEAD { 1.0 } else { LEAD };
    Aim {
        unit: HELD,
        over: Some(over),
        bound: Bound::Least(lead),
    }
}

/// Unmounts the disks in the folder of this program for temporary files.
pub fn unmount(scratch: &Path) {
    disks::unmount(&scratch.join(disks::FOLDER));
}

/// A search for the largest number of steps that succeeds.
#[derive(Default)]
struct Search<T> {
    /// The largest number that has succeeded, and its result.
    most: u32,
    result: Option<T>,
}

impl<T> Search<T> {
    /// Tries all that the disks can read first, because a good server holds that.
    fn run(
        mut self,
        mut held: impl FnMut(u32) -> Result<Option<T>, String>,
    ) -> Result<Option<T>, String> {
        let (mut least_failed, mut next) = (STEPS + 1, STEPS);
        while least_failed - self.most > 1 {
            match held(next)? {
                Some(result) => (self.most, self.result) = (next, Some(result)),
                None => least_failed = next,
            }
            next = self.most.midpoint(least_failed);
        }
        Ok(self.result)
    }
}

fn tussah(common: &Common, options: &Options, place: &Place<'_>) -> Result<Command, String> {
    let program = common.programs(place.scratch).tussah;
    let mut command = Command::new(program);
    command.arg("video").arg(place.videos);
    command.args(["--listen", &format!("127.0.0.1:{}", place.port)]);
    for disk in 0..options.disks {
        let rate = options.disk_rate();
        command.args(["--disk", &format!("{}={rate}B/s", disks::name(disk))]);
    }
    command.args(["--rate", &format!("{}kbit/s", options.kbit_per_s)]);
    command.args(["--ahead", &format!("{}s", options.ahead_s)]);
    command.args(["--chunk", &format!("{CHUNK_S}s")]);
    command.args(["--workers", &common.workers.to_string()]);
    let limit = (options.disks * options.streams_per_disk + 100).to_string();
    command.args(["--limit-streams", &limit, "--limit-connections", &limit]);
    Ok(command)
}

fn threads(_: &Common, options: &Options, place: &Place<'_>) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["video-serve", "--port", &place.port.to_string()]);
    command.args(["--rate", &options.rate().to_string()]);
    command.args(["--ahead-s", &options.ahead_s.to_string()]);
    command.arg(place.videos);
    Ok(command)
}

/// nginx paces a response by itself: `limit_rate` is the rate, and `limit_rate_after` is sent at
/// once. Its thread pool reads the files.
fn nginx(common: &Common, options: &Options, place: &Place<'_>) -> Result<Command, String> {
    let file = place.scratch.join("nginx.conf");
    let user = match rustix::process::getuid().is_root() {
        true => "user root;",
        false => "",
    };
    let (rate, scratch) = (options.rate(), place.scratch.display());
    let text = format!(
        "daemon off; {user} worker_processes {}; worker_rlimit_nofile 40000;
pid {scratch}/nginx.pid; error_log {scratch}/nginx.log crit;
events {{ worker_connections 20000; use epoll; multi_accept on; }}
http {{
    access_log off; sendfile on; aio threads; sendfile_max_chunk 640k;
    client_body_temp_path {scratch}/body; proxy_temp_path {scratch}/proxy; fastcgi_temp_path {scratch}/fastcgi;
    uwsgi_temp_path {scratch}/uwsgi; scgi_temp_path {scratch}/scgi;
    open_file_cache max=20000 inactive=1h; open_file_cache_valid 1h;
    limit_rate {rate}; limit_rate_after {};
    server {{ listen 127.0.0.1:{} backlog=4096; root {}; }}
}}
",
        common.workers,
        rate * u64::from(options.ahead_s),
        place.port,
        place.videos.display(),
    );
    std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut command = peer::installed("nginx", "nginx")?;
    command.arg("-c").arg(file).arg("-p").arg(place.scratch);
    command.args(["-e", "stderr"]);
    Ok(command)
}

/// How often the viewers check whether a stream is late.
const LOOK: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_finds_the_largest_number_that_is_held() {
        for most in 0..=STEPS {
            let mut tries = 0;
            let found = Search::default().run(|streams| {
                tries += 1;
                Ok((streams <= most).then_some(streams))
            });
            assert_eq!(found, Ok((most > 0).then_some(most)));
            assert!(tries <= 6, "{tries} tries for {most}");
        }
    }
}
