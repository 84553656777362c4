//! What an idle keep-alive connection costs a server in memory, the kernel's apart.

use std::time::Duration;

use super::Common;
use super::bench::{self, Scratch, Server};
use super::cost::Shape;
use super::figures::{Aim, Bound, Findings};
use crate::metric::Metric;

const BYTES: &str = "bytes / connection";

/// Rounds unless the user says otherwise; a server is started anew for each.
const ROUNDS: u32 = 5;

/// How long the connections are idle before the memory is read.
const IDLE: Duration = Duration::from_secs(2);

/// `web memory`.
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
            "{connections} idle keep-alive connections after one request each; anonymous and shared memory in RAM, files and \
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
