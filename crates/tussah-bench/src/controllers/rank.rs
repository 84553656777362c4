//! Compares two rankings of the same contenders.

use super::bakeoff::{Heat, in_order};
use super::contender::Contender;
use super::scenario::Scenario;
use super::{bakeoff, real, table};

/// The difference of goodput below which two contenders count as equal, as a fraction of the ideal.
const SAME: f64 = 0.05;

/// The fraction of clearly ordered pairs that may be in a different order in real runs.
const SWAPPED_MAX: f64 = 0.05;

/// The fraction of extra computing time above which the machine was too busy for the benchmark.
const LOST_MAX: f64 = 0.02;

/// The results of a scenario's contenders on the simulator and in real runs.
#[derive(Debug)]
pub struct Agreement {
    /// The simulated runs.
    pub simulated: Heat,
    /// The real runs.
    pub real: Heat,
    /// The fraction by which handlers computed longer than planned, because other programs used
    /// their CPUs.
    pub lost: f64,
}

/// Runs scenarios on a real runtime, and on the simulator with the number of CPUs that this machine
/// has for them.
pub fn all(
    scenarios: &[Scenario],
    contenders: &[&Contender],
    real_seeds: usize,
    simulated_seeds: usize,
) -> Vec<Agreement> {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let fitted = scenarios.iter().map(|s| real::fitted(s, cpus));
    fitted
        .map(|scenario| {
            let one = std::slice::from_ref(&scenario);
            let simulated = bakeoff::all(one, contenders, simulated_seeds, false).remove(0);
            let mut lost = real::Lost::default();
            let real = in_order(
                &scenario,
                contenders,
                real_seeds,
                |scenario, contender, seed| real::run(scenario, contender, seed, &mut lost),
            );
            Agreement {
                simulated,
                real,
                lost: lost.part(),
            }
        })
        .collect()
}

/// Prints both side by side, and how well the rankings agree.
pub fn print(agreements: &[Agreement]) {
    for agreement in agreements {
        let scenario = &agreement.real.scenario;
        println!(
            "{}: {} ({})\n",
            scenario.name,
            scenario.about,
            on_workers(scenario.simulation.workers)
        );
        let head = [
            "controller",
            "goodput %",
            "simulated",
            "p90 ms",
            "simulated",
            "rejected %",
            "simulated",
        ];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for real in &agreement.real.entries {
            let Some(simulated) = agreement.simulated.entry(real.contender) else {
                continue;
            };
            let (real_score, simulated) = (&real.median, &simulated.median);
            let figures = [
                real_score.goodput * 100.0,
                simulated.goodput * 100.0,
                real_score.p90,
                simulated.p90,
                real_score.rejected * 100.0,
                simulated.rejected * 100.0,
            ];
            let mut row = vec![real.contender.to_owned()];
            row.extend(figures.map(table::number));
            rows.push(row);
        }
        table::columns(&rows);
        let pairs = agreement.pairs();
        if agreement.lost > LOST_MAX {
            println!(
                "\nOther programs used the CPUs during the runs; these figures include their effect."
            );
        }
        println!(
            "\nhandlers computed for {} % longer than planned",
            table::number(agreement.lost * 100.0)
        );
        println!(
            "rank correlation (Spearman) {}; pairs in a different order, of those that differ by {} % in both: {} of {}\n",
            table::number(spearman(&pairs)),
            table::number(SAME * 100.0),
            swapped(&pairs).0,
            swapped(&pairs).1
        );
    }
}

/// Returns whether the simulator ranks the contenders as the real runs do, over all scenarios, and
/// prints the verdict.
pub fn check(agreements: &[Agreement]) -> bool {
    let pairs = agreements
        .iter()
        .map(|agreement| swapped(&agreement.pairs()));
    let (swapped, all) = pairs.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    let agree = f64::from(swapped) <= SWAPPED_MAX * f64::from(all);
    let verdict = if agree { "PASS" } else { "FAIL" };
    let percent = SWAPPED_MAX * 100.0;
    eprintln!(
        "  {verdict}  the order matches the simulator's: {swapped} of {all} clear pairs are swapped, at most {percent} % may be"
    );
    agree
}

impl Agreement {
    /// Returns the goodputs of each contender: real, and simulated.
    pub fn pairs(&self) -> Vec<(f64, f64)> {
        let real = self.real.entries.iter();
        real.filter_map(|real| {
            let simulated = self.simulated.entry(real.contender)?;
            Some((real.median.goodput, simulated.median.goodput))
        })
        .collect()
    }
}

fn on_workers(workers: usize) -> String {
    format!("on {workers} worker{}", if workers == 1 { "" } else { "s" })
}

/// Spearman's rank correlation: 1 for the same order, -1 for opposite orders. Equal values share
/// their ranks.
fn spearman(pairs: &[(f64, f64)]) -> f64 {
    let ranks = |values: Vec<f64>| -> Vec<f64> {
        let rank = |value: &f64| {
            let below = values.iter().filter(|other| *other < value).count();
            let same = values.iter().filter(|other| *other == value).count();
            below as f64 + (same as f64 - 1.0) / 2.0
        };
        values.iter().map(rank).collect()
    };
    let (one, other) = (
        ranks(pairs.iter().map(|pair| pair.0).collect()),
        ranks(pairs.iter().map(|pair| pair.1).collect()),
    );
    let middle = (pairs.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        let parts = a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle));
        parts.sum()
    };
    let scale = (product(&one, &one) * product(&other, &other)).sqrt();
    if scale == 0.0 {
        return 1.0;
    }
    product(&one, &other) / scale
}

/// Returns the number of pairs in a different order, and the number of clearly ordered pairs.
fn swapped(pairs: &[(f64, f64)]) -> (u32, u32) {
    let (mut swapped, mut all) = (0, 0);
    for (at, one) in pairs.iter().enumerate() {
        for other in &pairs[at + 1..] {
            let (real, simulated) = (one.0 - other.0, one.1 - other.1);
            if real.abs() > SAME && simulated.abs() > SAME {
                all += 1;
                swapped += u32::from((real > 0.0) != (simulated > 0.0));
            }
        }
    }
    (swapped, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_compared_by_rank() {
        let check = |pairs: &[(f64, f64)], expected: f64| {
            assert!((spearman(pairs) - expected).abs() < 1e-9, "{pairs:?}");
        };
        check(&[(1.0, 10.0), (2.0, 11.0), (3.0, 100.0)], 1.0);
        check(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)], -1.0);
        check(&[(1.0, 1.0), (1.0, 1.0), (2.0, 2.0)], 1.0);
        check(&[], 1.0);
    }

    #[test]
    fn an_order_that_is_another_in_reality_is_no_agreement() {
        let heat = |goodputs: &[f64]| {
            let scenarios = [super::super::scenario::all().swap_remove(1)];
            let names = &super::super::contender::ALL[..goodputs.len()];
            let contenders: Vec<&Contender> = names.iter().collect();
            let mut scores = goodputs.iter();
            in_order(&scenarios[0], &contenders, 1, |_, _, _| {
                let goodput = *scores.next()?;
                let nothing = super::super::score::median(&[]);
                Some(super::super::score::Score { goodput, ..nothing })
            })
        };
        let agrees = |simulated: &[f64], real: &[f64]| {
            let agreement = Agreement {
                simulated: heat(simulated),
                real: heat(real),
                lost: 0.0,
            };
            check(&[agreement])
        };
        assert!(agrees(&[0.9, 0.5, 0.1], &[0.8, 0.4, 0.0]));
        assert!(!agrees(&[0.9, 0.5, 0.1], &[0.4, 0.8, 0.0]));
    }

    #[test]
    fn one_worker_is_not_many() {
        assert_eq!([1, 2].map(on_workers), ["on 1 worker", "on 2 workers"]);
    }

    #[test]
    fn only_clear_differences_count_as_swapped() {
        assert_eq!(swapped(&[(0.5, 0.6), (0.6, 0.5)]), (1, 1));
        assert_eq!(swapped(&[(0.5, 0.51), (0.6, 0.5)]), (0, 0));
    }
}
