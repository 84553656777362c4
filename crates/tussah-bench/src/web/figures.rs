//! Evaluates the rounds: summaries, paired ratios with confidence intervals, aims, and tables.

use fastrand::Rng;

use crate::metric::{Better, Metric, Summary};

/// The number of samples of the bootstrap; its seed is fixed.
const RESAMPLES: usize = 10_000;
const SEED: u64 = 2026;

/// The values of one server, in a list for each round.
#[derive(Clone, Debug)]
pub struct Series {
    /// The server.
    pub name: String,
    /// The metrics of each round.
    pub rounds: Vec<Vec<Metric>>,
    /// The reason for a failure, after which there are no more rounds.
    pub failed: Option<String>,
}

impl Series {
    /// Returns the median in one unit.
    pub fn median(&self, unit: &str) -> Option<f64> {
        Some(Summary::of(self.values(unit))?.median)
    }

    /// Returns the values in one unit, round by round.
    fn values(&self, unit: &str) -> Vec<f64> {
        let rounds = self.rounds.iter();
        rounds.filter_map(|round| value(round, unit)).collect()
    }
}

fn value(round: &[Metric], unit: &str) -> Option<f64> {
    let metric = round.iter().find(|metric| metric.unit == unit)?;
    Some(metric.value)
}

/// A median with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The median and the range.
    pub summary: Summary,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Estimates by the bootstrap: the medians of samples that are drawn with replacement. Returns
    /// `None` if there are no values.
    pub fn of(values: &[f64]) -> Option<Estimate> {
        let summary = Summary::of(values.iter().copied())?;
        let mut random = Rng::with_seed(SEED);
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let drawn = (0..values.len()).map(|_| values[random.usize(..values.len())]);
                Summary::of(drawn).map_or(f64::NAN, |summary| summary.median)
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        let at = |part: f64| medians[(part * (RESAMPLES - 1) as f64).round() as usize];
        let (low, high) = (at(0.025), at(0.975));
        Some(Estimate { summary, low, high })
    }
}

/// A bound for the median. It is missed only if the whole interval is beyond it.
#[derive(Clone, Debug)]
pub struct Aim {
    /// The unit.
    pub unit: &'static str,
    /// The peer by whose value the base's value is divided, round by round; `None` uses the base's
    /// value itself.
    pub over: Option<&'static str>,
    /// The bound.
    pub bound: Bound,
}

/// The good side of a value.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// At most this value.
    Most(f64),
    /// At least this value.
    Least(f64),
}

/// The verdict on an aim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The median is on the good side.
    Met,
    /// The median is on the wrong side, but part of the interval is on the good side.
    NotSurely,
    /// The whole interval is on the wrong side.
    Missed,
}

impl Bound {
    fn judge(self, estimate: Estimate) -> Verdict {
        let (median, best, good): (f64, f64, fn(&f64, &f64) -> bool) = match self {
            Bound::Most(_) => (estimate.summary.median, estimate.low, f64::le),
            Bound::Least(_) => (estimate.summary.median, estimate.high, f64::ge),
        };
        let (Bound::Most(bound) | Bound::Least(bound)) = self;
        if good(&median, &bound) {
            Verdict::Met
        } else if good(&best, &bound) {
            Verdict::NotSurely
        } else {
            Verdict::Missed
        }
    }
}

/// The results of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// A one-line description.
    pub about: String,
    /// The server whose values are compared with the others.
    pub base: String,
    /// The servers.
    pub series: Vec<Series>,
    /// Servers that are missing, with the reason.
    pub missing: Vec<String>,
    /// The aims.
    pub aims: Vec<Aim>,
}

impl Findings {
    /// Returns the tables as text, and whether no aim is missed.
    pub fn report(&self) -> (String, bool) {
        let mut text = format!("{}\n", self.about);
        for missing in &self.missing {
            text.push_str(&format!("missing: {missing}\n"));
        }
        for series in &self.series {
            if let Some(error) = &series.failed {
                let (name, rounds) = (&series.name, series.rounds.len());
                text.push_str(&format!("failed after {rounds} rounds: {name}: {error}\n"));
            }
        }
        let head = [
            "server",
            "unit",
            "median",
            "95 % from",
            "to",
            "min",
            "max",
            "rounds",
        ];
        let mut rows = vec![head.map(str::to_owned)];
        for (unit, _) in self.units() {
            for series in &self.series {
                let estimate = Estimate::of(&series.values(&unit));
                rows.extend(estimate.map(|estimate| cells(&series.name, &unit, estimate)));
            }
        }
        if rows.len() > 1 {
            text.push('\n');
            columns(&rows, &mut text);
        }
        let ratios = self.ratios();
        if !ratios.is_empty() {
            text.push_str(&format!(
                "\n{} in ratio to the others, by pairs within a round:\n\n",
                self.base
            ));
            let mut rows = vec![head.map(str::to_owned)];
            rows[0][0] = "to".to_owned();
            rows.extend(ratios);
            columns(&rows, &mut text);
        }
        let (verdicts, reached) = self.verdicts();
        text.push_str(&verdicts);
        (text, reached)
    }

    /// Returns the units in the order in which the servers report them, each with its better
    /// direction.
    fn units(&self) -> Vec<(String, Better)> {
        let mut units: Vec<(String, Better)> = Vec::new();
        let rounds = self.series.iter().flat_map(|series| &series.rounds);
        for metric in rounds.flatten() {
            if units.iter().all(|(unit, _)| *unit != metric.unit) {
                units.push((metric.unit.clone(), metric.better));
            }
        }
        units
    }

    fn of(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.name == name)
    }

    /// Divides the base's values by those of `peer` in the same rounds.
    fn pairs(&self, unit: &str, peer: &str) -> Option<Estimate> {
        let (base, peer) = (self.of(&self.base)?, self.of(peer)?);
        let rounds = base.rounds.iter().zip(&peer.rounds);
        let ratios =
            rounds.filter_map(|(base, peer)| Some(value(base, unit)? / value(peer, unit)?));
        let ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite()).collect();
        Estimate::of(&ratios)
    }

    fn ratios(&self) -> Vec<[String; 8]> {
        let mut rows = Vec::new();
        let compared = |(_, better): &(String, Better)| *better != Better::Neither;
        for (unit, _) in self.units().into_iter().filter(compared) {
            for peer in self.series.iter().filter(|peer| peer.name != self.base) {
                let estimate = self.pairs(&unit, &peer.name);
                rows.extend(estimate.map(|estimate| cells(&peer.name, &unit, estimate)));
            }
        }
        rows
    }

    fn verdicts(&self) -> (String, bool) {
        let (mut text, mut reached) = (String::new(), true);
        let of_others = |aim: &&Aim| aim.over != Some(self.base.as_str());
        for aim in self.aims.iter().filter(of_others) {
            let Some(base) = self.of(&self.base) else {
                break;
            };
            let (estimate, what) = match aim.over {
                Some(peer) => (
                    self.pairs(aim.unit, peer),
                    format!("{} over {peer}", aim.unit),
                ),
                None => (Estimate::of(&base.values(aim.unit)), aim.unit.to_owned()),
            };
            let bound = match aim.bound {
                Bound::Most(bound) => format!("at most {}", number(bound)),
                Bound::Least(bound) => format!("at least {}", number(bound)),
            };
            let Some(estimate) = estimate else {
                text.push_str(&format!("not measured  {what}: {bound}\n"));
                continue;
            };
            let verdict = aim.bound.judge(estimate);
            reached &= verdict != Verdict::Missed;
            let word = match verdict {
                Verdict::Met => "met",
                Verdict::NotSurely => "not surely",
                Verdict::Missed => "MISSED",
            };
            let [median, low, high] =
                [estimate.summary.median, estimate.low, estimate.high].map(number);
            text.push_str(&format!(
                "{word:<12}  {what}: {bound}; {median} ({low} to {high})\n"
            ));
        }
        if !text.is_empty() {
            text.insert_str(0, &format!("\naims of {}:\n\n", self.base));
        }
        (text, reached)
    }
}

fn number(value: f64) -> String {
    match value.abs() {
        1000.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

fn cells(name: &str, unit: &str, estimate: Estimate) -> [String; 8] {
    let Estimate { summary, low, high } = estimate;
    let values = [summary.median, low, high, summary.min, summary.max].map(number);
    let [median, low, high, min, max] = values;
    let (name, unit, rounds) = (name.to_owned(), unit.to_owned(), summary.runs.to_string());
    [name, unit, median, low, high, min, max, rounds]
}

/// Formats rows in columns: two columns of text, then numbers.
fn columns(rows: &[[String; 8]], text: &mut String) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; 8] = std::array::from_fn(|column| width(column).unwrap_or(0));
    for row in rows {
        let [name, unit, numbers @ ..] = row;
        let mut line = format!("{name:<0$}  {unit:<1$}", widths[0], widths[1]);
        for (number, width) in numbers.iter().zip(&widths[2..]) {
            line.push_str(&format!("  {number:>width$}"));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_the_median_and_narrows() {
        assert_eq!(Estimate::of(&[]), None);
        let width = |count: u64| {
            let mut random = Rng::with_seed(1);
            let values: Vec<f64> = (0..count).map(|_| random.usize(..1000) as f64).collect();
            let estimate = Estimate::of(&values).unwrap();
            assert!(estimate.low <= estimate.summary.median);
            assert!(estimate.summary.median <= estimate.high);
            estimate.high - estimate.low
        };
        assert!(width(400) < width(20) / 2.0);
    }

    #[test]
    fn verdicts() {
        let check = |bound: Bound, low, median, high, expected| {
            let summary = Summary {
                median,
                min: low,
                max: high,
                runs: 3,
            };
            assert_eq!(
                bound.judge(Estimate { summary, low, high }),
                expected,
                "{bound:?}"
            );
        };
        check(Bound::Most(1.1), 1.0, 1.05, 1.2, Verdict::Met);
        check(Bound::Most(1.1), 1.0, 1.15, 1.2, Verdict::NotSurely);
        check(Bound::Most(1.1), 1.11, 1.15, 1.2, Verdict::Missed);
        check(Bound::Least(0.99), 0.97, 0.98, 0.985, Verdict::Missed);
        check(Bound::Least(0.99), 0.97, 0.98, 0.995, Verdict::NotSurely);
        check(Bound::Least(0.99), 0.97, 0.99, 0.995, Verdict::Met);
    }

    #[test]
    fn ratios_are_of_the_same_round_and_an_aim_without_its_peer_is_not_met() {
        let series = |name: &str, values: &[f64]| Series {
            name: name.to_owned(),
            rounds: values
                .iter()
                .map(|value| vec![Metric::lower("ms", *value)])
                .collect(),
            failed: None,
        };
        let aim = |peer| Aim {
            unit: "ms",
            over: Some(peer),
            bound: Bound::Most(1.5),
        };
        let findings = Findings {
            base: "a".to_owned(),
            series: vec![
                series("a", &[2.0, 20.0, 200.0]),
                series("b", &[1.0, 10.0, 100.0]),
            ],
            aims: vec![aim("b"), aim("c")],
            ..Findings::default()
        };
        let pairs = findings.pairs("ms", "b").unwrap();
        assert_eq!(
            (pairs.low, pairs.summary.median, pairs.high),
            (2.0, 2.0, 2.0)
        );
        let (text, reached) = findings.report();
        assert!(
            !reached && text.contains("MISSED        ms over b: at most 1.500; 2.000"),
            "{text}"
        );
        assert!(text.contains("not measured  ms over c"), "{text}");
    }
}
