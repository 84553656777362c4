//! Measurements of the gain of more workers: two workers compared with one, one process with two,
//! and any number of clients.

use std::path::Path;

use super::Common;
use super::bench::{self, Bench, Scratch, Server};
use super::cost::{self, CPU, RATE, Shape};
use super::figures::{Aim, Bound, Findings, Series};
use crate::metric::Metric;

/// The number of workers that is compared with one.
const WORKERS: usize = 2;

const SPEED_UP: &str = "CPU / request, 2 workers over 1";

/// The second server of `n_copy`.
const COPIES: &str = "two copies";

/// The default number of rounds of the curve, and its numbers of connections.
const ROUNDS_CURVE: u32 = 5;
const CONNECTIONS: [usize; 8] = [1, 4, 16, 64, 256, 1024, 4096, 8000];

/// Runs `web speed-up`.
pub fn speed_up(common: &Common, clients: usize) -> Result<Findings, String> {
    let (scratch, shape) = (Scratch::new()?, Shape::files(clients));
    let mut one = common.files(&scratch, 1)?;
    let mut more = common.files(&scratch, WORKERS)?;
    let (of_one, of_more) = (one.start()?, more.start()?);
    let series = bench::rounds(
        &of_one,
        common,
        common.rounds(cost::ROUNDS),
        |server, seed| {
            let twin = of_more
                .iter()
                .find(|twin| twin.peer.name == server.peer.name);
            let twin = twin.ok_or("the second start failed")?;
            let single = cost::slice(common, &[server], shape.clients(&one, server, seed))?;
            let double = cost::slice(common, &[twin], shape.clients(&more, twin, seed))?;
            Ok(beside(&single, &double))
        },
    )?;
    Ok(Findings {
        about: format!(
            "100 MB of files like those of SPECweb99, {clients} clients; {WORKERS} workers, which share {} CPUs with the \
             clients, over one with a CPU of its own",
            more.cpus.server.len()
        ),
        base: common.base.clone(),
        series,
        missing: one.missing,
        aims: vec![cost::aim(SPEED_UP, "floor", 1.1)],
    })
}

/// Returns the metrics of one worker and of several, and their ratios.
fn beside(single: &[Metric], double: &[Metric]) -> Vec<Metric> {
    let of = |metrics: &[Metric], unit: &str| {
        let metric = metrics.iter().find(|metric| metric.unit == unit);
        metric.expect("every slice has it").value
    };
    let over = |unit| of(double, unit) / of(single, unit);
    vec![
        Metric::lower(SPEED_UP, over(CPU)),
        Metric::info("requests/s, 2 workers over 1", over(RATE)),
        Metric::info("CPU ms / 1000 requests, 1 worker", of(single, CPU)),
        Metric::info("CPU ms / 1000 requests, 2 workers", of(double, CPU)),
    ]
}

/// Runs `web n-copy`: the base with two workers compared with two copies of it with one worker.
pub fn n_copy(common: &Common, clients: usize) -> Result<Findings, String> {
    let (scratch, shape) = (Scratch::new()?, Shape::files(clients));
    let mut bench = common.files(&scratch, WORKERS)?;
    let base = bench.chosen.iter().find(|peer| peer.name == common.base);
    let base = *base.ok_or("the base is not among the servers")?;
    let start = |bench: &mut Bench, workers| {
        bench.workers = workers;
        bench
            .start_one(base, Ok)?
            .ok_or_else(|| bench.missing.join("; "))
    };
    let one: Server = start(&mut bench, WORKERS)?;
    let copies = [start(&mut bench, 1)?, start(&mut bench, 1)?];
    let sides: [Vec<&Server>; 2] = [vec![&one], copies.iter().collect()];
    let names = [common.base.as_str(), COPIES];
    let series = bench::turns(&names, common, common.rounds(cost::ROUNDS), |at, seed| {
        let clients = shape.clients_of(&bench, &sides[at], seed);
        cost::slice(common, &sides[at], clients).map(Some)
    })?;
    let rate = Aim {
        unit: RATE,
        over: Some(COPIES),
        bound: Bound::Least(0.95),
    };
    Ok(Findings {
        about: format!(
            "100 MB of files like those of SPECweb99, {clients} clients; one process with {WORKERS} workers beside \
             {WORKERS} processes with one, which have half of the clients each"
        ),
        base: common.base.clone(),
        series,
        missing: Vec::new(),
        aims: vec![cost::aim(CPU, COPIES, 1.05), rate],
    })
}

/// Runs `web clients`: the throughput from one client to 8000, with an optional plot.
pub fn clients(common: &Common, plot: Option<&Path>) -> Result<Findings, String> {
    let scratch = Scratch::new()?;
    let mut bench = common.one_file(&scratch)?;
    let servers = bench.start()?;
    let series = bench::rounds(
        &servers,
        common,
        common.rounds(ROUNDS_CURVE),
        |server, seed| {
            let mut rates = Vec::new();
            for connections in CONNECTIONS {
                let clients = Shape::keep_alive(connections).clients(&bench, server, seed);
                let metrics = cost::slice(common, &[server], clients)?;
                let rate = metrics.into_iter().find(|metric| metric.unit == RATE);
                let rate = rate.expect("every slice has it").value;
                rates.push(Metric::higher(&unit(connections), rate));
            }
            Ok(rates)
        },
    )?;
    if let Some(path) = plot {
        draw(&series, path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(Findings {
        about: format!(
            "one file of 4 KB, keep-alive, workers: {}; throughput by the number of clients",
            common.workers
        ),
        base: common.base.clone(),
        series,
        missing: bench.missing,
        aims: Vec::new(),
    })
}

fn unit(connections: usize) -> String {
    format!("requests/s of {connections}")
}

fn draw(series: &[Series], path: &Path) -> std::io::Result<()> {
    use tussah_plot::{Axis, Line, Panel, svg};
    let lines = series.iter().map(|series| {
        let point =
            |connections: usize| Some((connections as f64, series.median(&unit(connections))?));
        Line {
            name: series.name.clone(),
            points: CONNECTIONS.into_iter().filter_map(point).collect(),
        }
    });
    let clients = Axis::new("clients").logarithmic();
    let panel = Panel::new(clients, Axis::new(RATE), lines.collect());
    std::fs::write(path, svg("one file of 4 KB, keep-alive", &[panel]))
}
