//! The scores of a run.

use tussah::stage::sim::{EventEnd, Outcome, Tick};

use super::scenario::Scenario;

/// The number of consecutive completions that decide whether a stage has settled. One of them may
/// be late.
const SETTLED_OF: usize = 100;

/// The measures of one run, or the median of each measure over several runs. Times are in
/// milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Score {
    /// Weighted responses within the target, as a fraction of the ideal.
    pub goodput: f64,
    /// Responses within the target per second.
    pub good_per_second: f64,
    /// The median response time; 0 if there is no response.
    pub p50: f64,
    /// The 90th percentile of the response times.
    pub p90: f64,
    /// The 90th percentile of the admitted events, including events shed later; infinite if more
    /// than a tenth of them was shed.
    pub p90_admitted: f64,
    /// The 99th percentile of the response times.
    pub p99: f64,
    /// The 99.9th percentile of the response times.
    pub p999: f64,
    /// The fraction of the events that was rejected or shed.
    pub rejected: f64,
    /// The mean time from arrival to rejection; 0 if there is no rejection.
    pub reject: f64,
    /// Jain's index of the users' timely responses: 1 if all users get the same number.
    pub jain: f64,
    /// The time from the step until the stage has settled: from then on, all but one of any hundred
    /// consecutive completions are within the target. Infinite if that point is in the last
    /// twentieth of the run.
    pub settled: f64,
    /// The standard deviation of the number of timely responses in an interval, divided by its
    /// mean. An interval is the average time of a hundred timely responses.
    pub oscillation: f64,
    /// The mean number of servlets that were allowed to work.
    pub servlets: f64,
}

/// A scorer, which computes the measures of a run.
#[derive(Debug)]
pub struct Scorer<'a> {
    scenario: &'a Scenario,
    /// The completion times of the responses that count, with their response times, in nanoseconds.
    answered: Vec<(u64, u64)>,
    /// The completion times of the responses within the target.
    good: Vec<u64>,
    good_by_user: Vec<u64>,
    worth: f64,
    rejections: u64,
    /// The number of admitted events that were shed later.
    shed: u64,
    reject_sum_ns: u128,
}

impl<'a> Scorer<'a> {
    /// Returns a scorer that has seen no outcomes.
    pub fn new(scenario: &'a Scenario) -> Self {
        let users = scenario.simulation.arrivals.users;
        Self {
            scenario,
            answered: Vec::new(),
            good: Vec::new(),
            good_by_user: vec![0; usize::from(users)],
            worth: 0.0,
            rejections: 0,
            shed: 0,
            reject_sum_ns: 0,
        }
    }

    /// Records the outcome of an event.
    pub fn see(&mut self, outcome: &Outcome) {
        let scenario = self.scenario;
        if outcome.ended_ns < scenario.from_ns {
            return;
        }
        let response_ns = outcome.response_ns();
        match outcome.end {
            EventEnd::Rejected | EventEnd::Shed => {
                self.rejections += 1;
                self.shed += u64::from(outcome.end == EventEnd::Shed);
                self.reject_sum_ns += u128::from(response_ns);
            }
            // The event took until its time limit; no controller is to blame. Clients wait.
            EventEnd::Failed | EventEnd::TimedOut => {}
            EventEnd::Served => {
                self.answered.push((outcome.ended_ns, response_ns));
                if response_ns <= scenario.late_ns() {
                    self.good.push(outcome.ended_ns);
                    self.good_by_user[usize::from(outcome.user)] += 1;
                    self.worth += scenario.weights[usize::from(outcome.class.0)];
                }
            }
        }
    }

    /// Returns the measures at the end of the run.
    pub fn score(self, ticks: &[Tick]) -> Score {
        let scenario = self.scenario;
        let seconds = (scenario.simulation.until_ns - scenario.from_ns) as f64 / 1e9;
        let mut sorted: Vec<u64> = self.answered.iter().map(|answer| answer.1).collect();
        sorted.sort_unstable();
        let ended = self.answered.len() as f64 + self.rejections as f64;
        let counted = ticks.iter().filter(|tick| tick.at_ns > scenario.from_ns);
        let servlets: Vec<f64> = counted.map(|tick| tick.servlets as f64).collect();
        Score {
            goodput: self.worth / seconds / scenario.ideal_worth,
            good_per_second: self.good.len() as f64 / seconds,
            p50: percentile_ms(&sorted, 0.5),
            p90: percentile_ms(&sorted, 0.9),
            p90_admitted: admitted_ms(&sorted, self.shed, 0.9),
            p99: percentile_ms(&sorted, 0.99),
            p999: percentile_ms(&sorted, 0.999),
            rejected: self.rejections as f64 / ended.max(1.0),
            reject: self.reject_sum_ns as f64 / 1e6 / (self.rejections as f64).max(1.0),
            jain: jain(&self.good_by_user),
            settled: self.settled_ms(),
            oscillation: oscillation(&self.good, scenario),
            servlets: mean(&servlets),
        }
    }

    fn settled_ms(&self) -> f64 {
        let Scenario {
            from_ns,
            simulation,
            ..
        } = self.scenario;
        let target_ns = self.scenario.late_ns();
        let late = |window: &&[(u64, u64)]| {
            let late = window.iter().filter(|answer| answer.1 > target_ns);
            late.count() > 1
        };
        let settled_ns = if self.answered.len() < SETTLED_OF {
            simulation.until_ns
        } else {
            let last = self.answered.windows(SETTLED_OF).rfind(late);
            last.map_or(*from_ns, |window| window[SETTLED_OF - 1].0)
        };
        let (took_ns, all_ns) = (settled_ns - from_ns, simulation.until_ns - from_ns);
        if took_ns as f64 > 0.95 * all_ns as f64 {
            f64::INFINITY
        } else {
            took_ns as f64 / 1e6
        }
    }
}

/// Returns the time that a fraction of `share` does not exceed. The times are in ascending order.
fn percentile_ms(sorted_ns: &[u64], share: f64) -> f64 {
    let place = (sorted_ns.len() as f64 * share).ceil() as usize;
    let ns = sorted_ns.get(place.saturating_sub(1)).copied();
    ns.unwrap_or(0) as f64 / 1e6
}

/// Returns the same percentile if `shed` further events were never answered.
fn admitted_ms(sorted_ns: &[u64], shed: u64, share: f64) -> f64 {
    let place = ((sorted_ns.len() as f64 + shed as f64) * share).ceil() as usize;
    let answered = sorted_ns.get(place.saturating_sub(1));
    match answered {
        Some(ns) => *ns as f64 / 1e6,
        None if shed == 0 => 0.0,
        None => f64::INFINITY,
    }
}

/// Jain's index: Jain, Chiu and Hawe, "A quantitative measure of fairness" (DEC TR-301, 1984).
fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|share| *share as f64).sum();
    let squares: f64 = shares.iter().map(|share| (*share as f64).powi(2)).sum();
    if squares == 0.0 {
        return 1.0;
    }
    sum * sum / (shares.len() as f64 * squares)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / (values.len() as f64).max(1.0)
}

fn oscillation(good: &[u64], scenario: &Scenario) -> f64 {
    let intervals = good.len() / SETTLED_OF;
    if intervals < 2 {
        return 0.0;
    }
    let all_ns = scenario.simulation.until_ns - scenario.from_ns;
    let mut counts = vec![0.0; intervals];
    for at_ns in good {
        let place = (at_ns - scenario.from_ns) as f64 / all_ns as f64 * intervals as f64;
        counts[(place as usize).min(intervals - 1)] += 1.0;
    }
    let mean_count = mean(&counts);
    let squares: Vec<f64> = counts.iter().map(|c| (c - mean_count).powi(2)).collect();
    mean(&squares).sqrt() / mean_count
}

/// Returns the median of each measure.
pub fn median(scores: &[Score]) -> Score {
    let of = |figure: fn(&Score) -> f64| {
        let mut values: Vec<f64> = scores.iter().map(figure).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    Score {
        goodput: of(|s| s.goodput),
        good_per_second: of(|s| s.good_per_second),
        p50: of(|s| s.p50),
        p90: of(|s| s.p90),
        p90_admitted: of(|s| s.p90_admitted),
        p99: of(|s| s.p99),
        p999: of(|s| s.p999),
        rejected: of(|s| s.rejected),
        reject: of(|s| s.reject),
        jain: of(|s| s.jain),
        settled: of(|s| s.settled),
        oscillation: of(|s| s.oscillation),
        servlets: of(|s| s.servlets),
    }
}

#[cfg(test)]
mod tests {
    use tussah::stage::Class;

    use super::super::scenario;
    use super::*;

    const MS: u64 = 1_000_000;

    fn outcome(ended_ns: u64, response_ns: u64, end: EventEnd) -> Outcome {
        Outcome {
            clients: 0,
            class: Class(0),
            user: 0,
            hot: false,
            attempts: 1,
            arrived_ns: ended_ns - response_ns,
            last_ns: ended_ns - response_ns,
            ended_ns,
            end,
        }
    }

    #[test]
    fn only_events_that_end_after_the_step_count_and_only_timely_ones_are_good() {
        let scenario = scenario::all().swap_remove(1);
        let mut scorer = Scorer::new(&scenario);
        let from_ns = scenario.from_ns;
        for (ended_ns, response_ns, end) in [
            (from_ns - 1, MS, EventEnd::Served),
            (from_ns + MS, MS, EventEnd::Served),
            (from_ns + 2 * MS, 2 * MS, EventEnd::Served),
            (from_ns + 3 * MS, MS, EventEnd::Failed),
            (from_ns + 4 * MS, 0, EventEnd::Rejected),
            (from_ns + 5 * MS, 3 * MS, EventEnd::Shed),
        ] {
            scorer.see(&outcome(ended_ns, response_ns, end));
        }
        let score = scorer.score(&[]);
        assert_eq!(score.good_per_second, 2.0);
        assert_eq!((score.p50, score.p999), (1.0, 2.0));
        assert_eq!((score.rejected, score.reject), (0.5, 1.5));
        assert_eq!(score.jain, 1.0 / 16.0);
        assert_eq!(score.settled, f64::INFINITY);
    }

    #[test]
    fn admitted_and_shed_events_are_late() {
        let scenario = scenario::all().swap_remove(1);
        let p90s = |shed: u64| {
            let mut scorer = Scorer::new(&scenario);
            for i in 0..90 + shed {
                let end = if i < 90 {
                    EventEnd::Served
                } else {
                    EventEnd::Shed
                };
                scorer.see(&outcome(scenario.from_ns + (i + 1) * MS, MS, end));
            }
            let score = scorer.score(&[]);
            (score.p90, score.p90_admitted)
        };
        assert_eq!(p90s(10), (1.0, 1.0));
        assert_eq!(p90s(11), (1.0, f64::INFINITY));
    }

    #[test]
    fn a_stage_has_settled_after_the_last_hundred_with_two_late_ones() {
        let scenario = scenario::all().swap_remove(1);
        let settled = |late: &[u64]| {
            let mut scorer = Scorer::new(&scenario);
            for i in 0..4000u64 {
                let response_ns = if late.contains(&i) { 2 * MS } else { MS };
                let ended_ns = scenario.from_ns + i * MS / 10;
                scorer.see(&outcome(ended_ns, response_ns, EventEnd::Served));
            }
            scorer.score(&[]).settled
        };
        assert_eq!(settled(&[]), 0.0);
        assert_eq!(settled(&[500, 700]), 0.0);
        assert_eq!(settled(&[500, 599]), 59.9);
        assert_eq!(settled(&[500, 501, 900]), 59.9);
        assert_eq!(settled(&[3998, 3999]), 399.9);
    }
}
