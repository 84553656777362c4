//! Compares tussah and nginx in front of php-fpm, and overloads php-fpm behind tussah.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::Common;
use super::bench::{self, Bench, Cpus, Scratch, Server};
use super::cost::{self, CPU, P99, RATE, Shape};
use super::figures::{Aim, Bound, Findings};
use super::load::{self, Report};
use super::process::{self, Process};
use crate::metric::Metric;

/// The small page, about 200 bytes of HTML, and the page that waits for 20 ms.
const SMALL: &str =
    "<?php echo '<p>', str_repeat('Hello ', 32), htmlspecialchars($_GET['name'] ?? '');";
const WAIT: &str = "<?php usleep(20000); echo 'done';";

/// The processes of php-fpm: its default on Debian, and fewer for the overload.
pub const CHILDREN: usize = 5;
const CHILDREN_OVERLOADED: usize = 4;

/// The default number of rounds.
const ROUNDS: u32 = 15;
const ROUNDS_OVERLOAD: u32 = 3;

/// The clients of the overload. They are more than are in the server at a time.
const CLIENTS: usize = 512;

const JAIN: &str = "Jain";
const LONGEST: &str = "ms of the longest wait";

/// A load above the capacity, with the units of its figures.
struct Overload {
    factor: f64,
    in_target: &'static str,
    goodput: &'static str,
    rejected: &'static str,
}

const OVERLOADS: [Overload; 3] = [
    Overload {
        factor: 1.4,
        in_target: "p90 of admitted / target at 1.4 x",
        goodput: "goodput / capacity at 1.4 x",
        rejected: "ms p99 of rejections at 1.4 x",
    },
    Overload {
        factor: 3.0,
        in_target: "p90 of admitted / target at 3 x",
        goodput: "goodput / capacity at 3 x",
        rejected: "ms p99 of rejections at 3 x",
    },
    Overload {
        factor: 10.0,
        in_target: "p90 of admitted / target at 10 x",
        goodput: "goodput / capacity at 10 x",
        rejected: "ms p99 of rejections at 10 x",
    },
];

/// Runs `web fastcgi`: nginx beside tussah, one at a time.
pub fn fastcgi(common: &Common, connections: usize) -> Result<Findings, String> {
    let scratch = Scratch::new()?;
    let mut bench = common.one_file(&scratch)?;
    let knows = |name: &str| name.starts_with("nginx") || name.starts_with("tussah");
    bench.chosen.retain(|peer| knows(peer.name));
    write(&bench, "small.php", SMALL)?;
    // A kept connection occupies a process of php-fpm, so each server needs one of its own.
    let (mut servers, mut all_php) = (Vec::new(), Vec::new());
    for peer in bench.chosen.clone() {
        let php = Php::start(&scratch, &bench, CHILDREN)?;
        bench.fastcgi = Some((php.process.address, CHILDREN));
        all_php.push(php);
        servers.extend(bench.start_one(peer, Ok)?);
    }
    let series = bench::rounds(&servers, common, common.rounds(ROUNDS), |server, seed| {
        let mut load = load::Command::load(&bench, server, "/small.php?name=you");
        let shape = Shape::keep_alive(connections);
        load.clients(shape.connections, shape.requests_per_connection);
        load.time(common.slice()).flag("--warm-up", "300ms");
        let report = load.flag("--seed", seed % 1_000_000).run()?;
        let cpu = report.cpu.server.ok_or("tussah load reports no CPU time")?;
        Ok(vec![
            Metric::higher(RATE, report.served_per_s),
            Metric::lower(CPU, cpu.ms_per_1000_requests),
            Metric::higher(JAIN, report.fairness.jain),
            Metric::lower(LONGEST, report.latency.max as f64 / 1e6),
            Metric::lower("µs p50", report.latency.p50 as f64 / 1e3),
            Metric::lower(P99, report.latency.p99 as f64 / 1e3),
        ])
    })?;
    let faster = Aim {
        unit: RATE,
        over: Some("nginx"),
        bound: Bound::Least(1.0),
    };
    Ok(Findings {
        about: format!(
            "a small PHP page, {connections} keep-alive connections, workers: {}; each server has a php-fpm with {CHILDREN} processes on all \
             CPUs, and its CPU time does not count; {CHILDREN} kept connections over TCP",
            common.workers
        ),
        base: common.base.clone(),
        series,
        missing: bench.missing,
        aims: vec![
            faster,
            cost::aim(CPU, "nginx", 1.0),
            own(JAIN, Bound::Least(0.95)),
        ],
    })
}

/// Runs `web fastcgi-overload` with the base alone: requests at an even rate above the capacity of
/// php-fpm, for a script that waits.
pub fn overload(common: &Common, target_ms: u32) -> Result<Findings, String> {
    let scratch = Scratch::new()?;
    let mut bench = common.one_file(&scratch)?;
    bench.chosen.retain(|peer| peer.name == common.base);
    let php = Php::start(&scratch, &bench, CHILDREN_OVERLOADED)?;
    bench.fastcgi = Some((php.process.address, CHILDREN_OVERLOADED));
    write(&bench, "wait.php", WAIT)?;
    bench
        .peers
        .tussah_flags
        .push(format!("--target={target_ms}ms"));
    let servers = bench.start()?;
    let mut capacity = 0.0;
    let series = bench::rounds(
        &servers,
        common,
        common.rounds(ROUNDS_OVERLOAD),
        |server, seed| {
            capacity = at_rate(common, &bench, server, None, seed)?.served_per_s;
            let mut metrics = vec![Metric::info("capacity/s", capacity)];
            for load in &OVERLOADS {
                let rate = Some(load.factor * capacity);
                let report = at_rate(common, &bench, server, rate, seed)?;
                let ms = |ns: u64| ns as f64 / 1e6;
                metrics.push(Metric::lower(
                    load.in_target,
                    ms(report.latency.p90) / f64::from(target_ms),
                ));
                metrics.push(Metric::higher(load.goodput, report.served_per_s / capacity));
                metrics.push(Metric::lower(
                    load.rejected,
                    ms(report.rejected_latency.p99),
                ));
            }
            Ok(metrics)
        },
    )?;
    let mut aims = Vec::new();
    for load in &OVERLOADS {
        aims.push(own(load.in_target, Bound::Most(1.0)));
        aims.push(own(load.goodput, Bound::Least(0.95)));
        aims.push(own(load.rejected, Bound::Most(50.0)));
    }
    Ok(Findings {
        about: format!(
            "a PHP page that waits for 20 ms, php-fpm with {CHILDREN_OVERLOADED} processes, target {target_ms} ms, \
             workers: {}; {CLIENTS} connections, requests at an even rate, from their due times",
            common.workers
        ),
        base: common.base.clone(),
        series,
        missing: bench.missing,
        aims,
    })
}

/// Loads the page that waits, at an even rate or as much as php-fpm can answer.
fn at_rate(
    common: &Common,
    bench: &Bench,
    server: &Server,
    rate: Option<f64>,
    seed: u64,
) -> Result<Report, String> {
    let mut load = load::Command::load(bench, server, "/wait.php");
    let clients = if rate.is_some() {
        CLIENTS
    } else {
        2 * CHILDREN_OVERLOADED
    };
    load.clients(clients, u32::MAX)
        .time(Duration::max(common.slice(), Duration::from_secs(5)));
    if let Some(rate) = rate {
        load.flag("--rate", rate);
    }
    load.flag("--warm-up", "3s")
        .flag("--seed", seed % 1_000_000)
        .run()
}

fn own(unit: &'static str, bound: Bound) -> Aim {
    Aim {
        unit,
        over: None,
        bound,
    }
}

/// Writes a page of the site.
pub fn write(bench: &Bench, name: &str, code: &str) -> Result<(), String> {
    let path = bench.site.folder.join(name);
    fs::write(&path, code).map_err(|error| format!("{}: {error}", path.display()))
}

/// A php-fpm with a fixed number of processes, on all CPUs.
pub struct Php {
    pub process: Process,
}

impl Php {
    /// Starts it on a free port.
    ///
    /// # Errors
    ///
    /// Returns an error if php-fpm is not installed, or does not start.
    pub fn start(scratch: &Scratch, bench: &Bench, children: usize) -> Result<Self, String> {
        let port = process::free_port();
        let folder = scratch.path().join(format!("php-{port}"));
        let failed = |error: io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(&folder).map_err(failed)?;
        let is_root = rustix::process::getuid().is_root();
        let user = if is_root {
            "user = root\ngroup = root\n"
        } else {
            ""
        };
        let text = format!(
            "[global]\nerror_log = {}/log\n[www]\n{user}listen = 127.0.0.1:{port}\npm = static\n\
             pm.max_children = {children}\n",
            folder.display()
        );
        let file = folder.join("fpm.conf");
        fs::write(&file, text).map_err(failed)?;
        let mut command = Command::new(program()?);
        command.args(is_root.then_some("--allow-to-run-as-root"));
        command
            .args(["--nodaemonize", "--no-php-ini", "--fpm-config"])
            .arg(file);
        let Cpus { server, clients } = &bench.cpus;
        let cpus = [&server[..], clients].concat();
        let process = Process::start(command, port, &cpus, &folder.join("output"))?;
        Ok(Self { process })
    }
}

/// Finds php-fpm, whose name contains its version on Debian.
fn program() -> Result<PathBuf, String> {
    let files = fs::read_dir("/usr/sbin").into_iter().flatten().flatten();
    let is_php = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("php-fpm"))
    };
    let found = files.map(|file| file.path()).find(|path| is_php(path));
    found.ok_or_else(|| "php-fpm is not installed; run apt-get install php-fpm".to_owned())
}
