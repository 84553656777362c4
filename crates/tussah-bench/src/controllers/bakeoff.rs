//! Runs scenarios with contenders on all CPUs and collects their scores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::contender::Contender;
use super::cost;
use super::scenario::Scenario;
use super::score::{self, Score, Scorer};

/// The result of a contender in a scenario.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The contender's name.
    pub contender: &'static str,
    /// The median of each measure over the seeds.
    pub median: Score,
    /// The scores, one for each seed.
    pub seeds: Vec<Score>,
    /// The cost of a decision, in nanoseconds of real time.
    pub decision_ns: f64,
}

/// A seed is in the tail if its goodput is below this share of the median.
const TAIL: f64 = 0.85;

impl Entry {
    /// Returns the lowest goodput of all seeds, which the median does not show.
    pub fn goodput_worst(&self) -> f64 {
        let goodputs = self.seeds.iter().map(|score| score.goodput);
        goodputs.min_by(f64::total_cmp).unwrap_or(0.0)
    }

    /// Returns the share of the seeds whose goodput is below 85 % of the median. With many seeds,
    /// it varies less than the lowest goodput.
    pub fn tail(&self) -> f64 {
        let is_in_tail = |score: &&Score| score.goodput < TAIL * self.median.goodput;
        let count = self.seeds.iter().filter(is_in_tail).count();
        count as f64 / self.seeds.len().max(1) as f64
    }
}

/// A scenario and the results of its contenders.
#[derive(Clone, Debug)]
pub struct Heat {
    /// The scenario.
    pub scenario: Scenario,
    /// One entry for each contender that took part.
    pub entries: Vec<Entry>,
}

impl Heat {
    /// Returns the entry of a contender that took part.
    pub fn entry(&self, contender: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.contender == contender)
    }
}

/// Runs a scenario once with a contender. Returns `None` if the contender does not take part in it.
pub fn run(scenario: &Scenario, contender: &Contender, seed: u64) -> Option<Score> {
    let controllers = contender.controllers(scenario)?;
    let mut scorer = Scorer::new(scenario);
    let ticks = scenario
        .simulation
        .run(controllers, seed, |outcome| scorer.see(outcome));
    Some(scorer.score(&ticks))
}

/// Runs all scenarios with all contenders that take part, once for each of `seeds` seeds. With
/// `costs`, it also measures the cost of a decision.
pub fn all(
    scenarios: &[Scenario],
    contenders: &[&Contender],
    seeds: usize,
    costs: bool,
) -> Vec<Heat> {
    let mut pairs = Vec::new();
    for (at, scenario) in scenarios.iter().enumerate() {
        let part = contenders
            .iter()
            .filter(|contender| contender.controllers(scenario).is_some());
        pairs.extend(part.map(|contender| (at, *contender)));
    }
    let runs = in_parallel(pairs.len() * seeds, |job| {
        let (at, contender) = pairs[job / seeds];
        run(&scenarios[at], contender, (job % seeds) as u64 + 1)
    });
    let mut heats: Vec<Heat> = scenarios
        .iter()
        .map(|scenario| Heat {
            scenario: scenario.clone(),
            entries: Vec::new(),
        })
        .collect();
    for ((at, contender), runs) in pairs.iter().zip(runs.chunks(seeds)) {
        let seeds: Vec<Score> = runs.iter().copied().flatten().collect();
        heats[*at].entries.push(Entry {
            contender: contender.name,
            median: score::median(&seeds),
            seeds,
            decision_ns: if costs {
                cost::decision_ns(&scenarios[*at], contender)
            } else {
                0.0
            },
        });
    }
    heats
}

/// Runs a scenario with all contenders that take part, using `run`, one after the other, once for
/// each of `seeds` seeds.
pub fn in_order(
    scenario: &Scenario,
    contenders: &[&Contender],
    seeds: usize,
    mut run: impl FnMut(&Scenario, &Contender, u64) -> Option<Score>,
) -> Heat {
    let mut runs = vec![Vec::new(); contenders.len()];
    // With turns, a slow drift of the machine affects all contenders alike.
    for seed in 1..=seeds as u64 {
        for (contender, runs) in contenders.iter().zip(&mut runs) {
            runs.extend(run(scenario, contender, seed));
        }
    }
    let entries = contenders.iter().zip(runs);
    Heat {
        scenario: scenario.clone(),
        entries: entries
            .filter(|(_, seeds)| !seeds.is_empty())
            .map(|(contender, seeds)| Entry {
                contender: contender.name,
                median: score::median(&seeds),
                seeds,
                decision_ns: 0.0,
            })
            .collect(),
    }
}

/// Runs `jobs` jobs on all CPUs and returns the results in the order of the jobs.
pub fn in_parallel<R: Send>(jobs: usize, job: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(jobs));
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= jobs {
                        break;
                    }
                    let result = job(at);
                    results
                        .lock()
                        .expect("no job panics with the lock")
                        .push((at, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("all threads have ended");
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}
