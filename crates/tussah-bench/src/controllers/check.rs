//! What the default controllers must reach.

use tussah::stage::sim::End;

use super::bakeoff::{Heat, in_parallel};
use super::contender::{self, AUTO};
use super::scenario;
use super::table::number;

/// The part of the peak that goodput has to keep at ten times the capacity.
const GOODPUT_MIN: f64 = 0.95;
/// How soon a stage has to be settled after a step to 1.4 times the capacity, in milliseconds.
const SETTLED_MS_MAX: f64 = 20.0;
/// What part of the best controller's goodput the default has to have.
const OF_BEST_MIN: f64 = 0.9;
/// In so many arrivals at 80 % of the capacity, none may be rejected.
const ARRIVALS: f64 = 1e6;
/// Bound, in runs: how many of these are made, since each takes as long as a whole scenario.
const LONG_RUNS_MAX: usize = 20;

/// Something that must be reached, and the figure that was.
#[derive(Debug)]
pub struct Check {
    /// What must be reached.
    pub what: String,
    /// What was.
    pub figure: String,
    /// Whether that is enough.
    pub passed: bool,
}

/// All that can be told from the scenarios that were run.
pub fn checks(heats: &[Heat], seeds: usize) -> Vec<Check> {
    let mut checks = Vec::new();
    checks.extend(peak(heats));
    for heat in heats.iter().filter(|heat| is_step(heat)) {
        checks.extend(within_target(heat));
    }
    checks.extend(settled(heats));
    if heats.iter().any(|heat| heat.scenario.name == "80-percent") {
        checks.push(nobody_rejected(seeds.min(LONG_RUNS_MAX)));
    }
    checks.extend(heats.iter().filter_map(of_best));
    checks
}

/// Prints a line for each.
pub fn print(checks: &[Check]) {
    println!("what the default controllers must reach:\n");
    for check in checks {
        let mark = if check.passed { "PASS" } else { "FAIL" };
        println!("  {mark}  {}: {}", check.what, check.figure);
    }
}

fn is_step(heat: &Heat) -> bool {
    heat.scenario.name.starts_with("step-")
}

fn peak(heats: &[Heat]) -> Option<Check> {
    let auto = |heat: &Heat| heat.entry(AUTO).map(|entry| entry.median.good_per_second);
    let loads = heats
        .iter()
        .filter(|heat| is_step(heat) || heat.scenario.name == "80-percent");
    let loads: Vec<f64> = loads.filter_map(auto).collect();
    // A single load would be its own peak.
    let peak = (loads.len() > 1).then(|| loads.into_iter().fold(0.0, f64::max))?;
    let most = heats.iter().find(|heat| heat.scenario.name == "step-10")?;
    let part = auto(most)? / peak;
    Some(Check {
        what: format!(
            "goodput at 10 times the capacity at least {} % of the peak",
            number(GOODPUT_MIN * 100.0)
        ),
        figure: format!("{} % of {} a second", number(part * 100.0), number(peak)),
        passed: part >= GOODPUT_MIN,
    })
}

fn within_target(heat: &Heat) -> Option<Check> {
    let entry = heat.entry(AUTO)?;
    let target_ms = heat.scenario.target_ns() as f64 / 1e6;
    // Who was let in and shed later was admitted too, and is never answered.
    let p90 = entry.median.p90_admitted;
    let worst = entry.seeds.iter().map(|seed| seed.p90_admitted);
    let worst = worst.fold(0.0, f64::max);
    Some(Check {
        what: format!(
            "{}: 90th percentile of what was admitted within {} ms",
            heat.scenario.name,
            number(target_ms)
        ),
        figure: format!(
            "{} ms ({} ms in the worst of the seeds)",
            number(p90),
            number(worst)
        ),
        passed: p90 <= target_ms,
    })
}

fn settled(heats: &[Heat]) -> Option<Check> {
    let heat = heats.iter().find(|heat| heat.scenario.name == "step-1.4")?;
    let entry = heat.entry(AUTO)?;
    let soon = |score: &&super::score::Score| score.settled <= SETTLED_MS_MAX;
    let settled = entry.seeds.iter().filter(soon).count();
    Some(Check {
        what: format!(
            "settled {} ms after a step to 1.4 times the capacity, in the median seed",
            number(SETTLED_MS_MAX)
        ),
        figure: format!(
            "{} ms ({settled} of {} seeds were in time)",
            number(entry.median.settled),
            entry.seeds.len()
        ),
        passed: entry.median.settled <= SETTLED_MS_MAX,
    })
}

fn nobody_rejected(runs: usize) -> Check {
    let scenario = scenario::long(ARRIVALS);
    let auto = contender::ALL.iter().find(|c| c.name == AUTO);
    let rejected = in_parallel(runs, |run| {
        let mut rejected = 0u64;
        let controllers = auto.and_then(|auto| auto.controllers(&scenario));
        let controllers = controllers.expect("the default takes part everywhere");
        scenario
            .simulation
            .run(controllers, run as u64 + 1, |outcome| {
                rejected += u64::from(matches!(outcome.end, End::Rejected | End::Shed));
            });
        rejected
    });
    let with_any = rejected.iter().filter(|rejected| **rejected > 0).count();
    Check {
        what: "nobody rejected in 1,000,000 arrivals at 80 % of the capacity".to_owned(),
        figure: format!(
            "{} rejected in {runs} times as many, in {with_any} of the {runs}",
            rejected.iter().sum::<u64>()
        ),
        passed: with_any == 0,
    }
}

fn of_best(heat: &Heat) -> Option<Check> {
    let auto = heat.entry(AUTO)?;
    let others = heat.entries.iter().filter(|entry| entry.contender != AUTO);
    let best = others.max_by(|a, b| a.median.goodput.total_cmp(&b.median.goodput))?;
    let part = auto.median.goodput / best.median.goodput;
    Some(Check {
        what: format!("{}: within 10 % of the best controller", heat.scenario.name),
        figure: format!(
            "{} % of what is possible; {}, the best of the others, has {} %",
            number(auto.median.goodput * 100.0),
            best.contender,
            number(best.median.goodput * 100.0)
        ),
        passed: part >= OF_BEST_MIN,
    })
}
