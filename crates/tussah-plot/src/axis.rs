//! Axes: their ranges, and the numbers that are drawn at them.

/// Bound, in powers of ten: the maximum range of a logarithmic axis. Lower values are drawn at its
/// lower end.
const DECADES_MAX: f64 = 6.0;
/// The approximate number of steps of a linear axis.
const STEPS: f64 = 5.0;

/// An axis of a plot.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The name of the axis, with the unit of its values.
    pub name: String,
    /// True if the axis is logarithmic.
    pub is_logarithmic: bool,
    /// The range of the values. By default, a linear horizontal axis covers the range of the
    /// points, and a linear vertical axis begins at zero. By default, a logarithmic axis ends at
    /// whole powers of ten, and covers at most the six highest decades.
    pub range: Option<(f64, f64)>,
    /// The values that are labeled on the axis, with their labels; by default, round numbers.
    pub ticks: Vec<(f64, String)>,
    /// The function that formats a number for the axis.
    pub show: fn(f64) -> String,
}

impl Axis {
    /// Creates a linear axis.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            is_logarithmic: false,
            range: None,
            ticks: Vec::new(),
            show: short,
        }
    }

    /// Makes the axis logarithmic.
    #[must_use]
    pub fn logarithmic(mut self) -> Self {
        self.is_logarithmic = true;
        self
    }

    /// Sets the function that formats the numbers on the axis.
    #[must_use]
    pub fn showing(mut self, show: fn(f64) -> String) -> Self {
        self.show = show;
        self
    }

    /// Returns the scale for these values. A linear scale ends at the lowest and highest value.
    pub(crate) fn scale(&self, values: &[f64]) -> Scale {
        let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let range = match self.range {
            Some(range) => range,
            None if self.is_logarithmic => return self.decades(values),
            None if lowest < highest => (lowest, highest),
            None => (0.0, 1.0),
        };
        let step = rounded_up((range.1 - range.0) / STEPS);
        self.linear(range, step)
    }

    /// Returns the scale for these values. A linear scale begins at zero, and ends at a round
    /// number.
    pub(crate) fn scale_from_zero(&self, values: &[f64]) -> Scale {
        if self.is_logarithmic || self.range.is_some() {
            return self.scale(values);
        }
        let highest = values.iter().copied().fold(0.0, f64::max);
        let highest = if highest > 0.0 { highest } else { 1.0 };
        let step = rounded_up(highest / STEPS);
        self.linear((0.0, (highest / step).ceil() * step), step)
    }

    fn linear(&self, (from, to): (f64, f64), step: f64) -> Scale {
        let (first, last) = ((from / step).ceil() as i64, (to / step).floor() as i64);
        let round = (first..=last).map(|at| at as f64 * step);
        self.with_ticks((from, to), round)
    }

    fn decades(&self, values: &[f64]) -> Scale {
        let positive = values.iter().copied().filter(|&value| value > 0.0);
        let (lowest, highest) = positive.fold((f64::INFINITY, 0.0), |(low, high), value| {
            (f64::min(low, value), f64::max(high, value))
        });
        let (low, high) = match highest > 0.0 {
            true => (lowest.log10().floor(), highest.log10().ceil()),
            false => (0.0, 1.0),
        };
        let low = low.max(high - DECADES_MAX).min(high - 1.0);
        let powers = (low as i32..=high as i32).map(|power| 10f64.powi(power));
        self.with_ticks((low, high), powers)
    }

    fn with_ticks(&self, range: (f64, f64), round: impl Iterator<Item = f64>) -> Scale {
        let ticks = match self.ticks.is_empty() {
            true => round.map(|value| (value, (self.show)(value))).collect(),
            false => self.ticks.clone(),
        };
        Scale {
            range,
            is_logarithmic: self.is_logarithmic,
            ticks,
        }
    }
}

/// The range of an axis, and the numbers at it.
pub(crate) struct Scale {
    /// The ends; of a logarithmic axis, their logarithms to base 10.
    range: (f64, f64),
    is_logarithmic: bool,
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Scale {
    /// Returns the place of a value between the ends, from 0 to 1.
    pub(crate) fn part(&self, value: f64) -> f64 {
        let value = match self.is_logarithmic {
            true => value.max(f64::MIN_POSITIVE).log10(),
            false => value,
        };
        ((value - self.range.0) / (self.range.1 - self.range.0)).clamp(0.0, 1.0)
    }
}

/// Returns the next number of the form 1, 2 or 5 times a power of ten, for a positive number.
fn rounded_up(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
    steps
        .into_iter()
        .find(|step| *step >= value)
        .unwrap_or(value)
}

/// Returns a number with few digits.
fn short(value: f64) -> String {
    let text = match value.abs() {
        1e6.. => format!("{}M", value / 1e6),
        1e4.. => format!("{}k", value / 1e3),
        100.0.. => format!("{value:.0}"),
        1.0.. => format!("{value:.1}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.4}"),
    };
    match text.contains('.') && !text.ends_with(['M', 'k']) {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_numbers() {
        let check = |value, expected| assert_eq!(rounded_up(value), expected);
        check(0.7, 1.0);
        check(1.0, 1.0);
        check(120.0, 200.0);
        check(5001.0, 10_000.0);
    }

    fn ticks(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn a_linear_axis_has_round_numbers_up_to_the_highest_value() {
        let axis = Axis::new("n");
        let scale = axis.scale_from_zero(&[3.0, 17_000.0]);
        assert_eq!(ticks(&scale), ["0", "5000", "10k", "15k", "20k"]);
        assert_eq!((scale.part(0.0), scale.part(20_000.0)), (0.0, 1.0));
        let scale = axis.scale(&[1.5, 9.0]);
        assert_eq!(ticks(&scale), ["2", "4", "6", "8"]);
        assert_eq!(
            ticks(&axis.scale_from_zero(&[])),
            ["0", "0.2", "0.4", "0.6", "0.8", "1"]
        );
    }

    #[test]
    fn a_logarithmic_axis_has_powers_of_ten() {
        let axis = Axis::new("n").logarithmic();
        assert_eq!(
            ticks(&axis.scale(&[0.0, 2.0, 300.0])),
            ["1", "10", "100", "1000"]
        );
        let long = axis.scale(&[1e-9, 1e3]);
        assert_eq!(long.ticks.len(), DECADES_MAX as usize + 1);
        assert_eq!(long.part(1e-9), 0.0);
        assert_eq!(ticks(&axis.scale(&[])), ["1", "10"]);
    }

    #[test]
    fn an_axis_may_have_its_own_range_and_texts() {
        let mut axis = Axis::new("percentile");
        axis.range = Some((0.0, 5.0));
        axis.ticks = vec![(1.0, "90 %".to_owned())];
        let scale = axis.scale_from_zero(&[100.0]);
        assert_eq!(ticks(&scale), ["90 %"]);
        assert_eq!(scale.part(2.5), 0.5);
        assert_eq!(
            Axis::new("s")
                .showing(|s| format!("{s} s"))
                .scale(&[0.0, 4.0])
                .ticks[1]
                .1,
            "1 s"
        );
    }
}
