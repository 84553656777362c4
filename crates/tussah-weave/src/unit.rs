//! Units of literals. A number with a unit is an exact value.

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

/// The units, of each kind from the smallest to the largest.
const UNITS: &[(&str, Unit)] = &[
    ("k", Unit::Times(1_000)),
    ("M", Unit::Times(1_000_000)),
    ("G", Unit::Times(1_000_000_000)),
    ("B", Unit::Bytes(1)),
    ("kB", Unit::Bytes(1_000)),
    ("KiB", Unit::Bytes(1 << 10)),
    ("MB", Unit::Bytes(1_000_000)),
    ("MiB", Unit::Bytes(1 << 20)),
    ("GB", Unit::Bytes(1_000_000_000)),
    ("GiB", Unit::Bytes(1 << 30)),
    ("TB", Unit::Bytes(1_000_000_000_000)),
    ("TiB", Unit::Bytes(1 << 40)),
    ("ns", Unit::Nanoseconds(1)),
    ("us", Unit::Nanoseconds(1_000)),
    ("ms", Unit::Nanoseconds(1_000_000)),
    ("s", Unit::Nanoseconds(1_000_000_000)),
    ("min", Unit::Nanoseconds(60_000_000_000)),
    ("h", Unit::Nanoseconds(3_600_000_000_000)),
];

/// Returns the unit with this name.
pub(crate) fn find(name: &str) -> Option<Unit> {
    let unit = UNITS.iter().find(|(known, _)| *known == name);
    unit.map(|&(_, unit)| unit)
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
        _ => suggest::nearest(name, UNITS.iter().map(|&(known, _)| known)),
    };
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "durations: `ns us ms s min h`; sizes: `B KiB MiB GiB TiB kB MB GB TB`; counts: \
                 `k M G`; rates: `/s`, `/min`, `/h`"
            .to_owned(),
    }
}

/// Returns the value of a decimal number with a unit.
///
/// # Errors
///
/// Returns an error if the value is too large, or not a whole number of items, bytes or
/// nanoseconds.
pub(crate) fn value(number: &str, unit: Option<Unit>) -> Result<Value, String> {
    match unit {
        None if number.contains('.') => Ok(Value::Number(real(number)?)),
        None => whole(number, 1, "").map(Value::Count),
        Some(Unit::Percent) => Ok(Value::Number(real(number)? / 100.0)),
        Some(Unit::Times(factor)) => whole(number, factor, "").map(Value::Count),
        Some(Unit::Bytes(factor)) => whole(number, factor, " of bytes").map(Value::Size),
        Some(Unit::Nanoseconds(factor)) => whole(number, factor, " of nanoseconds")
            .map(|nanoseconds| Value::Duration(Duration::from_nanos(nanoseconds))),
    }
}

/// Returns the rate of a number of items per unit of time.
///
/// # Errors
///
/// Returns an error if the number is too large, or if the unit is not a unit of time.
pub(crate) fn rate(number: &str, times: Option<Unit>, per: Unit) -> Result<Value, String> {
    let factor = match times {
        None => 1,
        Some(Unit::Times(factor)) => factor,
        Some(_) => return Err("a rate counts items, such as `10/s` or `10 k/s`".into()),
    };
    let Unit::Nanoseconds(nanoseconds) = per else {
        return Err("a rate is for a time, such as `10/s` or `10/min`".into());
    };
    let seconds = nanoseconds as f64 / 1e9;
    Ok(Value::Rate(real(number)? * factor as f64 / seconds))
}

fn real(number: &str) -> Result<f64, String> {
    let real: f64 = number
        .parse()
        .map_err(|_| format!("`{number}` is not a number"))?;
    match real.is_finite() {
        true => Ok(real),
        false => Err(format!("`{number}` is too large")),
    }
}

/// Bound, in digits: the maximum number after the point; more are an error. Values have 64 bits, so
/// further digits are zeros or are lost.
const DIGITS_MAX: usize = 20;

/// Multiplies a decimal number with a factor, without rounding.
fn whole(number: &str, factor: u64, of: &str) -> Result<u64, String> {
    let too_large = || format!("`{number}` is too large");
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > DIGITS_MAX {
        return Err(format!(
            "`{number}` has more than {DIGITS_MAX} digits after the point"
        ));
    }
    let digits: u128 = format!("{whole}{fraction}")
        .parse()
        .map_err(|_| too_large())?;
    let scaled = digits
        .checked_mul(u128::from(factor))
        .ok_or_else(too_large)?;
    let scale = u32::try_from(fraction.len())
        .ok()
        .and_then(|places| 10_u128.checked_pow(places))
        .ok_or_else(too_large)?;
    if !scaled.is_multiple_of(scale) {
        return Err(format!("this is not a whole number{of}"));
    }
    u64::try_from(scaled / scale).map_err(|_| too_large())
}

/// Splits a size into a count and its largest unit without a fraction.
pub(crate) fn size(bytes: u64) -> (u64, &'static str) {
    let binary = |unit: Unit| match unit {
        Unit::Bytes(factor) if factor.is_power_of_two() => Some(factor),
        _ => None,
    };
    largest(bytes, binary).unwrap_or((bytes, "B"))
}

/// Splits a duration into a count and its largest unit without a fraction.
pub(crate) fn duration(time: Duration) -> (u64, &'static str) {
    let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let of_time = |unit: Unit| match unit {
        Unit::Nanoseconds(factor) => Some(factor),
        _ => None,
    };
    let (count, unit) = largest(nanoseconds, of_time).unwrap_or((0, "s"));
    // "90 s" reads better than "90000 ms"; so does "1 min" than "60 s", but not "0 h".
    if nanoseconds == 0 {
        (0, "s")
    } else {
        (count, unit)
    }
}

fn largest(value: u64, factor: impl Fn(Unit) -> Option<u64>) -> Option<(u64, &'static str)> {
    let mut units = UNITS.iter().rev();
    if value == 0 {
        return None;
    }
    units.find_map(|&(name, unit)| {
        let factor = factor(unit)?;
        value.is_multiple_of(factor).then(|| (value / factor, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_is_exact() {
        let check = |number: &str, unit: &str, expected: &str| {
            let shown = match value(number, find(unit)) {
                Ok(value) => value.to_string(),
                Err(error) => error,
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
        check("1", "kB", "1000 B");
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
