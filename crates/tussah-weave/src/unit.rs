//! Units of sizes, durations and counts. A number with a unit is an exact value.

use std::fmt;
use std::time::Duration;

use crate::suggest;
use crate::value::Value;

/// A unit after a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unit {
    /// A factor of a count.
    Times(u64),
    /// A hundredth.
    Percent,
    /// A number of bytes.
    Bytes(u64),
    /// A number of nanoseconds.
    Nanoseconds(u64),
}

/// The units of sizes in bytes, from the smallest to the largest. Of two names for the same unit,
/// the second one is displayed.
pub const SIZES: [(&str, u64); 10] = [
    ("B", 1),
    ("KB", 1_000),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
];

/// The units of durations in nanoseconds, from the smallest to the largest. Of two names for the
/// same unit, the second one is displayed.
///
/// Options and configuration files accept all of them. Weave lacks `m` and `d`, because a unit
/// cannot be the name of an instance.
pub const DURATIONS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

const COUNTS: [(&str, u64); 3] = [("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];

/// Splits a value into a count and the largest of these units that leaves no fraction. Zero has the
/// unit `zero`.
#[must_use]
pub fn split(value: u64, units: &[(&'static str, u64)], zero: &'static str) -> (u64, &'static str) {
    let mut units = units.iter().rev();
    let fitting = units.find(|(_, unit)| value > 0 && value.is_multiple_of(*unit));
    fitting.map_or((value, zero), |(name, unit)| (value / unit, name))
}

/// Returns the names of Weave's units, each with its unit.
fn names() -> impl Iterator<Item = (&'static str, Unit)> {
    let counts = COUNTS.map(|(name, count)| (name, Unit::Times(count)));
    let sizes = SIZES.map(|(name, bytes)| (name, Unit::Bytes(bytes)));
    let durations = DURATIONS.map(|(name, ns)| (name, Unit::Nanoseconds(ns)));
    let durations = durations
        .into_iter()
        .filter(|(name, _)| !["m", "d"].contains(name));
    counts.into_iter().chain(sizes).chain(durations)
}

/// Returns the unit with this name.
pub(crate) fn find(name: &str) -> Option<Unit> {
    let unit = names().find(|(known, _)| *known == name);
    unit.map(|(_, unit)| unit)
}

/// Returns the help for an unknown unit.
pub(crate) fn help(name: &str) -> String {
    let near = match name.to_ascii_lowercase().as_str() {
        "sec" | "secs" | "second" | "seconds" => Some("s"),
        "msec" | "millis" | "millisecond" | "milliseconds" => Some("ms"),
        "usec" | "micros" | "microsecond" | "microseconds" => Some("us"),
        "m" | "minute" | "minutes" | "mins" => Some("min"),
        "hour" | "hours" | "hr" => Some("h"),
        "byte" | "bytes" => Some("B"),
        "percent" => Some("%"),
        _ => suggest::nearest(name, names().map(|(known, _)| known)),
    };
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "durations: `ns us ms s min h`; sizes: `B KiB MiB GiB TiB kB MB GB TB`; counts: \
                 `k M G`; rates: `/s`, `/min`, `/h`"
            .to_owned(),
    }
}

/// Bound, in hours: the longest duration, which has to fit into 64 bits of nanoseconds. A longer
/// one is an error.
const DURATION_HOURS_MAX: u64 = 5_000_000;

/// The longest duration.
pub(crate) const DURATION_MAX: Duration = Duration::from_secs(DURATION_HOURS_MAX * 3600);

/// The reason why a number has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberError {
    /// The value is too large.
    TooLarge,
    /// The duration is too long.
    TooLong,
    /// The number has too many digits after the point.
    TooExact,
    /// The value is not a whole number of these things.
    NotWhole(&'static str),
    /// The text is not a number.
    NotANumber,
    /// The number has a unit other than those of counts, so it cannot be a rate.
    RateOfQuantity,
    /// The rate is not for a time.
    RateForQuantity,
}

impl NumberError {
    /// Returns the message about a number.
    pub(crate) fn of(self, number: &str) -> String {
        match self {
            Self::TooLarge | Self::TooExact | Self::NotANumber => format!("`{number}` {self}"),
            Self::TooLong | Self::NotWhole(_) => format!("this {self}"),
            Self::RateOfQuantity | Self::RateForQuantity => self.to_string(),
        }
    }
}

/// Writes the predicate of a sentence about the number, or a sentence about rates.
impl fmt::Display for NumberError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => out.write_str("is too large"),
            Self::TooLong => write!(
                out,
                "is longer than {DURATION_HOURS_MAX} h, the longest duration"
            ),
            Self::TooExact => write!(out, "has more than {DIGITS_MAX} digits after the point"),
            Self::NotWhole(of) => write!(out, "is not a whole number{of}"),
            Self::NotANumber => out.write_str("is not a number"),
            Self::RateOfQuantity => {
                out.write_str("a rate counts items, such as `10/s` or `10 k/s`")
            }
            Self::RateForQuantity => {
                out.write_str("a rate is for a time, such as `10/s` or `10/min`")
            }
        }
    }
}

/// Returns the value of a decimal number with a unit.
///
/// # Errors
///
/// Returns an error if the value is too large, or not a whole number of items, bytes or
/// nanoseconds.
pub(crate) fn value(number: &str, unit: Option<Unit>) -> Result<Value, NumberError> {
    match unit {
        None if number.contains('.') => Ok(Value::Number(real(number)?)),
        None => whole(number, 1, "").map(Value::Count),
        Some(Unit::Percent) => Ok(Value::Number(real(number)? / 100.0)),
        Some(Unit::Times(factor)) => whole(number, factor, "").map(Value::Count),
        Some(Unit::Bytes(factor)) => whole(number, factor, " of bytes").map(Value::Size),
        Some(Unit::Nanoseconds(factor)) => {
            let time = Duration::from_nanos(whole(number, factor, " of nanoseconds")?);
            match time <= DURATION_MAX {
                true => Ok(Value::Duration(time)),
                false => Err(NumberError::TooLong),
            }
        }
    }
}

/// Returns the rate of a number of items per unit of time.
///
/// # Errors
///
/// Returns an error if the number is too large, or if the unit is not a unit of time.
pub(crate) fn rate(number: &str, times: Option<Unit>, per: Unit) -> Result<Value, NumberError> {
    let factor = match times {
        None => 1,
        Some(Unit::Times(factor)) => factor,
        Some(_) => return Err(NumberError::RateOfQuantity),
    };
    let Unit::Nanoseconds(nanoseconds) = per else {
        return Err(NumberError::RateForQuantity);
    };
    let seconds = nanoseconds as f64 / 1e9;
    Ok(Value::Rate(real(number)? * factor as f64 / seconds))
}

fn real(number: &str) -> Result<f64, NumberError> {
    let real: f64 = number.parse().map_err(|_| NumberError::NotANumber)?;
    match real.is_finite() {
        true => Ok(real),
        false => Err(NumberError::TooLarge),
    }
}

/// Bound, in digits: the maximum number after the point; more are an error. Values have 64 bits, so
/// further digits are zeros or are lost.
const DIGITS_MAX: usize = 20;

/// Multiplies a decimal number with a factor, without rounding.
fn whole(number: &str, factor: u64, of: &'static str) -> Result<u64, NumberError> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > DIGITS_MAX {
        return Err(NumberError::TooExact);
    }
    let digits: Option<u128> = format!("{whole}{fraction}").parse().ok();
    let scaled = digits.and_then(|digits| digits.checked_mul(u128::from(factor)));
    let scaled = scaled.ok_or(NumberError::TooLarge)?;
    let scale = u32::try_from(fraction.len())
        .ok()
        .and_then(|places| 10_u128.checked_pow(places))
        .ok_or(NumberError::TooLarge)?;
    if !scaled.is_multiple_of(scale) {
        return Err(NumberError::NotWhole(of));
    }
    u64::try_from(scaled / scale).map_err(|_| NumberError::TooLarge)
}

/// Splits a size into a count and its largest unit without a fraction.
pub(crate) fn size(bytes: u64) -> (u64, &'static str) {
    split(bytes, &SIZES, "B")
}

/// Splits a duration into a count and its largest unit without a fraction.
pub(crate) fn duration(time: Duration) -> (u64, &'static str) {
    let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    // Weave has no days, which are the last unit.
    split(nanoseconds, &DURATIONS[..DURATIONS.len() - 1], "s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_names_of_instances_are_no_units() {
        for name in ["m", "d"] {
            assert_eq!(find(name), None);
        }
    }

    #[test]
    fn a_literal_is_exact() {
        let check = |number: &str, unit: &str, expected: &str| {
            let shown = match value(number, find(unit)) {
                Ok(value) => value.to_string(),
                Err(error) => error.of(number),
            };
            assert_eq!(shown, expected, "{number} {unit}");
        };
        check("200", "MiB", "200 MiB");
        check("0.5", "s", "500 ms");
        check("0.1", "s", "100 ms");
        check("60", "s", "1 min");
        check("1.5", "k", "1500");
        check("0", "ms", "0 s");
        check("0", "B", "0 B");
        check("1", "kB", "1 kB");
        check("1", "KB", "1 kB");
        check("200", "MB", "200 MB");
        check("24", "h", "24 h");
        check("5000000", "h", "5000000 h");
        let too_long = "this is longer than 5000000 h, the longest duration";
        check("5000000.1", "h", too_long);
        check("18446744073709551615", "ns", too_long);
        check(
            "18446744073709551616",
            "ns",
            "`18446744073709551616` is too large",
        );
        check("0.5", "B", "this is not a whole number of bytes");
        check("1.0", "B", "1 B");
        check(
            "99999999999999999999",
            "",
            "`99999999999999999999` is too large",
        );
        check("20000000", "TiB", "`20000000` is too large");
        check(
            "0.00000000000000000000000000000000000000000001",
            "s",
            "`0.00000000000000000000000000000000000000000001` has more than 20 digits after the point",
        );
    }
}
