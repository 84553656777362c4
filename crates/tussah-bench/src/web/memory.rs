//! A measurement of a server's memory per idle keep-alive connection, without the kernel's memory.

use std::time::Duration;

use super::Common;
use super::bench::{self, Scratch, Server};
use super::cost::Shape;
use super::figures::{Aim, Bound, Findings};
use crate::metric::Metric;

const BYTES: &str = "bytes / connection";

/// The default number of rounds, each with a new server.
const ROUNDS: u32 = 5;

/// The idle time before the memory is read.
const IDLE: Duration = Duration::from_secs(2);

/// Runs `web memory`.
pub fn memory(common: &Common, connections: usize) -> Result<Findings, String> {
    let scratch = Scratch::new()?;
    let mut bench = common.one_file(&scratch)?;
    let shape = Shape::keep_alive(connections);
    let series = bench::rounds_anew(
        &mut bench,
        common,
        common.rounds(ROUNDS),
        |bench, peer, seed| {
            let Some(server) = bench.start_one(peer, Ok)? else {
                return Ok(None);
            };
            let before = server.process.anonymous_bytes();
            let mut clients = shape.clients(bench, &server, seed);
            clients.once()?;
            std::thread::sleep(IDLE);
            Ok(Some(metrics(&server, before, connections)))
        },
    )?;
    Ok(Findings {
        about: format!(
            "{connections} idle keep-alive connections after one request each; resident anonymous and shared memory, without files and \
             the kernel apart. Before any connection a server has MB of its own, which may be room that it keeps for them"
        ),
        base: common.base.clone(),
        series,
        missing: bench.missing,
        aims: vec![Aim {
            unit: BYTES,
            over: None,
            bound: Bound::Most(512.0),
        }],
    })
}

fn metrics(server: &Server, before: f64, connections: usize) -> Vec<Metric> {
    let after = server.process.anonymous_bytes();
    vec![
        Metric::lower(BYTES, (after - before) / connections as f64),
        Metric::info("MB before", before / 1e6),
        Metric::lower("MB with them", after / 1e6),
    ]
}
