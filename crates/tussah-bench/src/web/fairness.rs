//! Measures fairness between many clients.

use std::time::{Duration, Instant};

use super::Common;
use super::bench::{self, Bench, Scratch, Server};
use super::client::Until;
use super::cost::{P99, RATE, Shape};
use super::figures::{Aim, Bound, Findings};
use super::windows::Windows;
use crate::metric::Metric;

const JAIN: &str = "Jain, worst window";
const SPREAD: &str = "p99 / p50";

/// The default number of rounds and the number of windows in each.
const ROUNDS: u32 = 15;
const WINDOWS: usize = 3;

/// Bound, in seconds: the maximum time to measure a server that is too slow to finish the windows.
const SLICE_SECONDS_MAX: u64 = 30;

/// Runs `web fairness`.
pub fn fairness(common: &Common, connections: usize) -> Result<Findings, String> {
    let scratch = Scratch::new()?;
    let mut bench = common.one_file(&scratch)?;
    let servers = bench.start()?;
    let shape = Shape::keep_alive(connections);
    let series = bench::rounds(&servers, common, common.rounds(ROUNDS), |server, seed| {
        slice(&bench, server, shape, seed)
    })?;
    let own = |unit, bound| Aim {
        unit,
        over: None,
        bound,
    };
    Ok(Findings {
        about: format!(
            "one file of 4 KB, {connections} keep-alive connections, workers: {}; {WINDOWS} windows of 20 completions a \
             client and at least 1 s",
            common.workers
        ),
        base: common.base.clone(),
        series,
        missing: bench.missing,
        aims: vec![own(JAIN, Bound::Least(0.99)), own(SPREAD, Bound::Most(3.0))],
    })
}

fn slice(bench: &Bench, server: &Server, shape: Shape, seed: u64) -> Result<Vec<Metric>, String> {
    let mut clients = shape.clients(bench, server, seed);
    clients.once()?;
    let mut windows = Windows::new(shape.connections, Instant::now());
    let until = Until::Windows(WINDOWS, Duration::from_secs(SLICE_SECONDS_MAX));
    let slice = clients.run(until, Some(&mut windows))?;
    let quantile = |q: f64| slice.latency_ns.value_at_quantile(q) as f64 / 1e3;
    let mut metrics = vec![
        Metric::higher(JAIN, windows.worst()),
        Metric::lower(SPREAD, quantile(0.99) / quantile(0.5)),
        Metric::lower(P99, quantile(0.99)),
        Metric::lower("µs max", slice.latency_ns.max() as f64 / 1e3),
        Metric::higher(RATE, slice.requests as f64 / slice.elapsed.as_secs_f64()),
    ];
    metrics.extend(slice.unusual());
    Ok(metrics)
}
