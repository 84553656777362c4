//! Metrics that a run of a peer reports: a value, its unit, and the better direction.

use serde::{Deserialize, Serialize};

/// The better direction of a metric, which decides the direction of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Better {
    /// A rate: higher is better.
    Higher,
    /// A cost: lower is better.
    Lower,
    /// Context for other metrics; the report contains no ratio for it.
    Neither,
}

/// One value of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Metric {
    /// The unit and, if a workload reports several metrics in that unit, the name of this metric:
    /// `"ns p99.9 from a worker"`.
    pub unit: String,
    /// The better direction.
    pub better: Better,
    /// The value in that unit.
    pub value: f64,
}

impl Metric {
    /// Returns a rate: higher is better.
    pub fn higher(unit: &str, value: f64) -> Metric {
        Metric {
            unit: unit.to_owned(),
            better: Better::Higher,
            value,
        }
    }

    /// Returns a cost: lower is better.
    pub fn lower(unit: &str, value: f64) -> Metric {
        Metric {
            unit: unit.to_owned(),
            better: Better::Lower,
            value,
        }
    }

    /// Returns context that is neither good nor bad.
    pub fn info(unit: &str, value: f64) -> Metric {
        Metric {
            unit: unit.to_owned(),
            better: Better::Neither,
            value,
        }
    }

    /// Returns the rate of `count` operations, in millions per second.
    pub fn rate(count: usize, elapsed: std::time::Duration) -> Metric {
        Metric::higher("M/s", count as f64 / elapsed.as_secs_f64() / 1e6)
    }

    /// Returns the time for each of `count` operations, in nanoseconds.
    pub fn nanos_each(unit: &str, count: usize, elapsed: std::time::Duration) -> Metric {
        Metric::lower(unit, elapsed.as_nanos() as f64 / count as f64)
    }

    /// Returns how many times better `base` is than `other`, or `None` where a ratio has no
    /// meaning.
    pub fn ratio(better: Better, base: f64, other: f64) -> Option<f64> {
        let ratio = match better {
            Better::Higher => base / other,
            Better::Lower => other / base,
            Better::Neither => return None,
        };
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    }
}

/// The median and the range of the values of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The middle value, or the mean of the two middle values.
    pub median: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// The number of values.
    pub runs: usize,
}

impl Summary {
    /// Summarizes `values`; returns `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Summary> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let runs = values.len();
        let median = (values[(runs - 1) / 2] + values[runs / 2]) / 2.0;
        Some(Summary {
            median,
            min,
            max,
            runs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even() {
        assert_eq!(Summary::of([]), None);
        let odd = Summary::of([3.0, 1.0, 2.0]).unwrap();
        assert_eq!(
            odd,
            Summary {
                median: 2.0,
                min: 1.0,
                max: 3.0,
                runs: 3
            }
        );
        assert_eq!(Summary::of([4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
    }

    #[test]
    fn ratio_says_how_many_times_better() {
        assert_eq!(Metric::ratio(Better::Higher, 6.0, 2.0), Some(3.0));
        assert_eq!(Metric::ratio(Better::Lower, 2.0, 6.0), Some(3.0));
        assert_eq!(Metric::ratio(Better::Neither, 2.0, 6.0), None);
        assert_eq!(Metric::ratio(Better::Lower, 2.0, 0.0), None);
    }
}
