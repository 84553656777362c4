//! Overloads a dynamic page of 20 ms of CPU and 20 ms of waiting with many more clients than the
//! server has capacity for.

use std::time::Duration;

use super::Common;
use super::bench::{self, Bench, Scratch, Server};
use super::figures::{Aim, Bound, Findings};
use super::load::{self, Report};
use super::peer::Peer;
use crate::metric::Metric;

/// The page, and the flag that makes tussah answer it.
const PAGE: &str = "/work?compute=20ms&wait=20ms";
const WORK: &str = "--work";

/// The number of requests on a connection, and the pause of a client that does not honor
/// Retry-After.
const REQUESTS_PER_CONNECTION: u32 = 5;
const PAUSE: &str = "20ms";

/// The number of clients per worker that measure the capacity: enough to keep all workers busy, and
/// few enough that all clients are served.
const CLIENTS_AT_CAPACITY: usize = 4;

/// The time to measure the capacity, and the time to measure the cost of a cached hit.
const CAPACITY: Duration = Duration::from_secs(20);
const HITS: Duration = Duration::from_secs(5);

/// The maximum cost of a rejection, in cached hits.
const REJECTION_HITS: f64 = 1.2;

/// The average number of admissions of a client in a run that judges fairness.
const ADMISSIONS: f64 = 20.0;

/// The warm-up, in which the queue fills and the controllers settle.
const WARM_UP: Duration = Duration::from_secs(10);

const IN_TARGET: &str = "p90 of admitted / target";
const REJECTED: &str = "ms p99 of rejections";
const REJECTION: &str = "a rejection / a cached hit, at most";
const GOODPUT: &str = "goodput / ideal";
const JAIN: &str = "Jain";

/// The reaction of clients to a 503.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After503 {
    /// They wait for the time of Retry-After.
    Honor,
    /// They return after 20 ms.
    Return,
}

/// Runs `web bottleneck` with the base alone, as no peer has such a page.
pub fn bottleneck(
    common: &Common,
    clients: usize,
    target_ms: u32,
    after: After503,
    seconds: Option<u32>,
) -> Result<Findings, String> {
    let scratch = Scratch::new()?;
    let mut bench = common.one_file(&scratch)?;
    let target = format!("--target {target_ms}ms {WORK}");
    let peer = Peer::variant(&format!("{target_ms}ms={target}"))?;
    bench.chosen = vec![peer];
    let servers = bench.start()?;
    let Some(server) = servers.first() else {
        return Err("it is not available".into());
    };
    let capacity = at_capacity(&bench, server)?;
    let hit_s = hit(&bench, server, clients)?;
    let time = match seconds {
        Some(seconds) => Duration::from_secs(seconds.into()),
        None => Duration::from_secs_f64(ADMISSIONS * clients as f64 / capacity),
    };
    eprintln!(
        "capacity {capacity:.1}/s, a hit costs {:.1} µs, measuring for {time:.0?}",
        hit_s * 1e6
    );
    let series = bench::rounds(&servers, common, common.rounds(1), |server, seed| {
        let report = overload(&bench, server, clients, time, after, seed)?;
        Ok(metrics(
            &report,
            common.workers,
            target_ms,
            capacity,
            hit_s,
            after,
        ))
    })?;
    let aim = |unit, bound| Aim {
        unit,
        over: None,
        bound,
    };
    let goodput = if after == After503::Honor { 0.95 } else { 0.9 };
    let mut aims = vec![
        aim(IN_TARGET, Bound::Most(1.0)),
        aim(GOODPUT, Bound::Least(goodput)),
        aim(REJECTED, Bound::Most(50.0)),
        aim(JAIN, Bound::Least(0.95)),
    ];
    if after == After503::Return {
        aims.push(aim(REJECTION, Bound::Most(REJECTION_HITS)));
    }
    Ok(Findings {
        about: format!(
            "{PAGE}, {clients} clients, {REQUESTS_PER_CONNECTION} requests a connection, target {target_ms} ms, workers: {}; after a \
             503 clients {}; {:.0} s, capacity {capacity:.1}/s, a cached hit {:.1} µs of CPU",
            common.workers,
            match after {
                After503::Honor => "wait as long as Retry-After says",
                After503::Return => "return after 20 ms",
            },
            time.as_secs_f64(),
            hit_s * 1e6
        ),
        base: peer.name.to_owned(),
        series,
        missing: bench.missing,
        aims,
    })
}

/// Runs all clients at the same time.
fn overload(
    bench: &Bench,
    server: &Server,
    clients: usize,
    time: Duration,
    after: After503,
    seed: u64,
) -> Result<Report, String> {
    let mut load = load::Command::load(bench, server, PAGE);
    load.clients(clients, REQUESTS_PER_CONNECTION).time(time);
    load.flag("--warm-up", format!("{}s", WARM_UP.as_secs()));
    // A response that misses any target still counts as a response.
    load.flag("--retry-pause", PAUSE).flag("--timeout", "10m");
    if after == After503::Honor {
        load.switch("--honor-retry-after");
    }
    load.flag("--seed", seed % 1_000_000).run()
}

/// Returns the pages per second that the server delivers without overload.
fn at_capacity(bench: &Bench, server: &Server) -> Result<f64, String> {
    let mut load = load::Command::load(bench, server, PAGE);
    load.clients(CLIENTS_AT_CAPACITY * bench.workers, u32::MAX)
        .time(CAPACITY);
    let report = load.flag("--warm-up", "2s").run()?;
    if report.requests.rejected > 0 {
        eprintln!(
            "warning: {} rejections at capacity",
            report.requests.rejected
        );
    }
    Ok(report.served_per_s)
}

/// Returns the cost of a cached hit in CPU seconds, with the number of clients of the overload.
fn hit(bench: &Bench, server: &Server, clients: usize) -> Result<f64, String> {
    let mut load = load::Command::load(bench, server, &bench.site.pages[0].path);
    load.clients(clients, REQUESTS_PER_CONNECTION).time(HITS);
    let report = load.flag("--warm-up", "1s").run()?;
    let cpu = report.cpu.server.ok_or("tussah load reports no CPU time")?;
    Ok(cpu.ms_per_1000_requests / 1e6)
}

fn metrics(
    report: &Report,
    workers: usize,
    target_ms: u32,
    capacity: f64,
    hit_s: f64,
    after: After503,
) -> Vec<Metric> {
    let ms = |ns: u64| ns as f64 / 1e6;
    let rejected = report.requests.rejected as f64 / report.measured_s;
    // Clients that wait leave all of the capacity to the pages. Other clients use up the cost of
    // rejecting them.
    let spent = match after {
        After503::Honor => 0.0,
        After503::Return => rejected * REJECTION_HITS * hit_s / workers as f64,
    };
    let possible = capacity * (1.0 - spent);
    let mut metrics = vec![
        Metric::lower(IN_TARGET, ms(report.latency.p90) / f64::from(target_ms)),
        Metric::info("ms p90 of admitted", ms(report.latency.p90)),
        Metric::info(
            "ms max of admitted, connecting included",
            ms(report.response.max),
        ),
        Metric::higher(GOODPUT, report.served_per_s / possible),
        Metric::info("goodput/s", report.served_per_s),
        Metric::info("possible/s", possible),
        Metric::info("rejections/s", rejected),
        Metric::lower(REJECTED, ms(report.rejected_latency.p99)),
        Metric::higher(JAIN, report.fairness.jain),
    ];
    if after == After503::Return {
        // The CPU time that the pages leave.
        let left = (1.0 - report.served_per_s / capacity) * workers as f64;
        metrics.push(Metric::lower(REJECTION, left / rejected / hit_s));
    }
    metrics
}
