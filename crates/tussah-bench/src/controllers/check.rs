//! The requirements for the default controllers.

use tussah::stage::sim::EventEnd;

use super::bakeoff::{Heat, in_parallel};
use super::contender::{self, AUTO, ORACLE};
use super::scenario;
use super::table::number;

/// The fraction of its peak that goodput must keep at ten times the capacity.
const GOODPUT_MIN: f64 = 0.95;
/// The time within which a stage must settle after a step to 1.4 times the capacity, in
/// milliseconds.
const SETTLED_MS_MAX: f64 = 20.0;
/// The fraction of the best controller's goodput that the default must reach.
const OF_BEST_MIN: f64 = 0.9;
/// The fraction to reach where services become 30 times longer and only servlets are scarce. In
/// some runs, the default controller reduces the servlets before it can detect this.
const OF_BEST_TIMEOUTS_MIN: f64 = 0.9;
/// The fraction of the goodput of the best fixed settings that the default must reach, in scenarios
/// whose handlers wait.
const OF_ORACLE_MIN: [(&str, f64); 18] = [
    ("permits-1.4", 0.95),
    ("permits-3", 0.95),
    ("permits-10", 0.95),
    // In the first 30 ms, a scarce resource looks like services that vary. Events that begin then
    // are late.
    ("permits-fresh", 0.9),
    ("permits-classes", 0.95),
    ("permits-change", 0.95),
    ("permits-slow", 0.95),
    ("limit-10", 0.95),
    ("limit-fresh", 0.95),
    ("limit-slow", 0.95),
    ("blocking-limit", 0.95),
    ("partial-2", 0.9),
    // Handlers that wait for a permit hold most servlets. A lower number is tried only at times,
    // because the others have none while it is reached.
    ("partial-3", 0.6),
    // No count of completions distinguishes a service that has become longer from a scarce resource
    // until about fifty longer services have ended.
    ("latency", 0.9),
    ("mixed-closed", 0.95),
    // The target is less than seven service times. Few events may then be queued, so the workers
    // are sometimes idle.
    ("mixed-1.4", 0.9),
    ("mixed-3", 0.95),
    ("mixed-fresh", 0.95),
];
/// The fraction of the goodput of the best fixed settings that the default must reach with each
/// seed, relative to the fraction for the median.
const OF_ORACLE_WORST: f64 = 0.75;
/// The number of arrivals at 80 % of the capacity, none of which may be rejected.
const ARRIVALS: f64 = 1e6;
/// Bound, in runs: the maximum number of these runs, since each takes as long as a whole scenario.
const LONG_RUNS_MAX: usize = 20;

/// A requirement and the value that was reached.
#[derive(Debug)]
pub struct Check {
    /// The requirement.
    pub what: String,
    /// The value that was reached.
    pub figure: String,
    /// True if the value meets the requirement.
    pub passed: bool,
}

/// Returns every requirement that these scenarios can decide.
pub fn checks(heats: &[Heat], seeds: usize) -> Vec<Check> {
    let mut checks = Vec::new();
    checks.extend(peak(heats));
    for heat in heats
        .iter()
        .filter(|heat| is_step(heat) || is_short_of(heat))
    {
        checks.extend(within_target(heat));
    }
    checks.extend(settled(heats));
    if heats.iter().any(|heat| heat.scenario.name == "80-percent") {
        checks.push(nobody_rejected(seeds.min(LONG_RUNS_MAX)));
    }
    checks.extend(heats.iter().filter_map(of_best));
    for heat in heats {
        checks.extend(of_oracle(heat));
        checks.extend(nobody_held_back(heat));
    }
    checks
}

/// Prints one line for each requirement.
pub fn print(checks: &[Check]) {
    println!("requirements for the default controllers:\n");
    for check in checks {
        let mark = if check.passed { "PASS" } else { "FAIL" };
        println!("  {mark}  {}: {}", check.what, check.figure);
    }
}

fn is_step(heat: &Heat) -> bool {
    heat.scenario.name.starts_with("step-")
}

/// Returns whether permits are scarce throughout, or workers are scarce and handlers also wait.
fn is_short_of(heat: &Heat) -> bool {
    // In `mixed-fresh`, more than a tenth of the admitted events is shed later.
    [
        "permits-1.4",
        "permits-3",
        "permits-10",
        "limit-10",
        "blocking-limit",
        "mixed-closed",
        "mixed-1.4",
        "mixed-3",
    ]
    .contains(&heat.scenario.name)
}

fn peak(heats: &[Heat]) -> Option<Check> {
    let auto = |heat: &Heat| heat.entry(AUTO).map(|entry| entry.median.good_per_second);
    let loads = heats
        .iter()
        .filter(|heat| is_step(heat) || heat.scenario.name == "80-percent");
    let loads: Vec<f64> = loads.filter_map(auto).collect();
    // With a single load, that load would be its own peak.
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
    // An event that is admitted and shed later counts as admitted and never answered.
    let p90 = entry.median.p90_admitted;
    let worst = entry.seeds.iter().map(|seed| seed.p90_admitted);
    let worst = worst.fold(0.0, f64::max);
    Some(Check {
        what: format!(
            "{}: 90th percentile of admitted events within {} ms",
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
            "settled within {} ms of a step to 1.4 times the capacity, in the median seed",
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
                rejected += u64::from(matches!(outcome.end, EventEnd::Rejected | EventEnd::Shed));
            });
        rejected
    });
    let with_any = rejected.iter().filter(|rejected| **rejected > 0).count();
    Check {
        what: "no rejections in 1,000,000 arrivals at 80 % of the capacity".to_owned(),
        figure: format!(
            "{} rejections in {runs} runs of that length; {with_any} of the runs had any",
            rejected.iter().sum::<u64>()
        ),
        passed: with_any == 0,
    }
}

fn of_best(heat: &Heat) -> Option<Check> {
    if oracle_part(heat).is_some() {
        return None;
    }
    let auto = heat.entry(AUTO)?;
    let others = heat.entries.iter();
    let others = others.filter(|entry| entry.contender != AUTO && entry.contender != ORACLE);
    let best = others.max_by(|a, b| a.median.goodput.total_cmp(&b.median.goodput))?;
    let part = auto.median.goodput / best.median.goodput;
    let least = if heat.scenario.name == "timeouts" {
        OF_BEST_TIMEOUTS_MIN
    } else {
        OF_BEST_MIN
    };
    Some(Check {
        what: format!(
            "{}: within {} % of the best controller",
            heat.scenario.name,
            number((1.0 - least) * 100.0)
        ),
        figure: format!(
            "{} % of the ideal; {}, the best of the others, has {} %",
            number(auto.median.goodput * 100.0),
            best.contender,
            number(best.median.goodput * 100.0)
        ),
        passed: part >= least,
    })
}

fn oracle_part(heat: &Heat) -> Option<f64> {
    let mut parts = OF_ORACLE_MIN.iter();
    Some(parts.find(|(name, _)| *name == heat.scenario.name)?.1)
}

/// Compares the default with the best fixed settings, where handlers wait.
fn of_oracle(heat: &Heat) -> Option<Check> {
    let least = OF_ORACLE_MIN
        .iter()
        .find(|(name, _)| *name == heat.scenario.name)?
        .1;
    let (auto, oracle) = (heat.entry(AUTO)?, heat.entry(ORACLE)?);
    let part = auto.median.goodput / oracle.median.goodput;
    let goods = auto.seeds.iter().map(|seed| seed.goodput);
    let worst = goods.fold(f64::INFINITY, f64::min) / oracle.median.goodput;
    let least_worst = OF_ORACLE_WORST * least;
    Some(Check {
        what: format!(
            "{}: at least {} % of the goodput of the best fixed servlets and queue, {} % with each seed",
            heat.scenario.name,
            number(least * 100.0),
            number(least_worst * 100.0)
        ),
        figure: format!(
            "{} % of {} % of the ideal ({} % with the worst of the seeds)",
            number(part * 100.0),
            number(oracle.median.goodput * 100.0),
            number(worst * 100.0)
        ),
        passed: part >= least && worst >= least_worst,
    })
}

fn nobody_held_back(heat: &Heat) -> Option<Check> {
    if !["permits-0.7", "waits"].contains(&heat.scenario.name) {
        return None;
    }
    let entry = heat.entry(AUTO)?;
    let some = entry.seeds.iter().filter(|seed| seed.rejected > 0.0);
    let some = some.count();
    Some(Check {
        what: format!("{}: no rejections", heat.scenario.name),
        figure: format!("rejections in {some} of {} seeds", entry.seeds.len()),
        passed: some == 0,
    })
}
