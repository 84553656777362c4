//! A measurement of the time from a server's start to its first response.

use super::Common;
use super::bench::{self, Scratch};
use super::figures::{Aim, Bound, Findings};
use crate::metric::Metric;

const MS: &str = "ms to the first answer";

/// The default number of rounds.
const ROUNDS: u32 = 20;

/// Runs `web start`.
pub fn start(common: &Common) -> Result<Findings, String> {
    let scratch = Scratch::new()?;
    let mut bench = common.one_file(&scratch)?;
    let series = bench::rounds_anew(
        &mut bench,
        common,
        common.rounds(ROUNDS),
        |bench, peer, _| {
            let server = bench.start_one(peer, Ok)?;
            let ms = server.map(|server| server.first_answer.as_secs_f64() * 1e3);
            Ok(ms.map(|ms| vec![Metric::lower(MS, ms)]))
        },
    )?;
    Ok(Findings {
        about: format!(
            "from the start of the process to the first answer, one file of 4 KB, workers: {}",
            common.workers
        ),
        base: common.base.clone(),
        series,
        missing: bench.missing,
        aims: vec![Aim {
            unit: MS,
            over: None,
            bound: Bound::Most(50.0),
        }],
    })
}
