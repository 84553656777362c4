//! The best fixed settings for a scenario, found by search: a number of servlets and a bound on the
//! queue. They show what an operator with full knowledge of the load could reach.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tussah::stage::control::{Owns, auto_besides, policy::Threshold};

use super::bakeoff::in_parallel;
use super::contender::{Fixed, Set};
use super::scenario::Scenario;
use super::score::Scorer;

/// The number of runs of each candidate. Their seeds differ from the seeds of the measured runs.
const SEEDS: usize = 2;
const SEED_FIRST: u64 = 1_000_000;

/// The candidate numbers of servlets. The candidate queue lengths are fractions of the number of
/// events that the stage serves within the target.
const SERVLETS: [usize; 20] = [
    1, 2, 3, 4, 6, 8, 9, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 256, 512, 1000,
];
const QUEUES: [f64; 10] = [0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 100.0];

/// A number of servlets, and the credits of the queue.
type Fix = (usize, u64);

/// The results of earlier searches, by scenario and number of workers.
static FOUND: Mutex<BTreeMap<(&str, usize), Fix>> = Mutex::new(BTreeMap::new());

/// Returns controllers that keep the best settings for this scenario; `None` unless the scenario
/// compares both settings.
pub fn controllers(scenario: &Scenario) -> Option<Set> {
    if !scenario.settings.has(Owns::SERVLETS | Owns::ADMISSION) {
        return None;
    }
    let key = (scenario.name, scenario.simulation.workers);
    let mut found = FOUND.lock().expect("no search panics");
    let fix = *found.entry(key).or_insert_with(|| search(scenario));
    Some(fixed(fix))
}

fn fixed((servlets, queue): Fix) -> Set {
    let mut set = auto_besides(None, Owns::SERVLETS | Owns::ADMISSION);
    set.push(Box::new(Fixed::servlets("fixed-servlets", servlets)));
    set.push(Box::new(Threshold::new(queue)));
    set
}

/// Searches for the best number of servlets and the best queue alternately.
fn search(scenario: &Scenario) -> Fix {
    let whole = scenario.capacity * scenario.target_ns() as f64 / 1e9;
    let queues = QUEUES.map(|part| ((whole * part) as u64).max(1));
    let begin: Vec<Fix> = SERVLETS.map(|servlets| (servlets, queues[5])).to_vec();
    let (servlets, _) = best(scenario, &begin);
    let (_, queue) = best(scenario, &queues.map(|queue| (servlets, queue)));
    best(scenario, &SERVLETS.map(|servlets| (servlets, queue)))
}

fn best(scenario: &Scenario, fixes: &[Fix]) -> Fix {
    let goodputs = in_parallel(fixes.len() * SEEDS, |job| {
        let mut scorer = Scorer::new(scenario);
        let seed = SEED_FIRST + (job % SEEDS) as u64;
        let see = |outcome: &_| scorer.see(outcome);
        let ticks = scenario
            .simulation
            .run(fixed(fixes[job / SEEDS]), seed, see);
        scorer.score(&ticks).goodput
    });
    let sums = goodputs.chunks(SEEDS).map(|of| of.iter().sum::<f64>());
    let most = sums
        .zip(fixes)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    *most.expect("there is something to try").1
}

#[cfg(test)]
mod tests {
    use super::super::scenario;
    use super::*;

    #[test]
    fn the_best_has_about_as_many_servlets_as_there_are_permits() {
        let all = scenario::all();
        let permits = all.iter().find(|one| one.name == "permits-3");
        let short = permits.expect("it is one of them").short(0.2);
        let (servlets, queue) = search(&short);
        assert!((8..=32).contains(&servlets), "{servlets}");
        assert!(servlets as u64 + queue < 80, "{queue}");
    }
}
