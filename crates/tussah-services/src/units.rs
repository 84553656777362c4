//! Durations, sizes and counts as text.
//!
//! `show_size` and `show_duration` are exact: their text reads back as the same value. `show_ns`,
//! `show_bytes` and `show_len` round to three digits.

use std::time::Duration;

use tussah_weave::unit::{DURATIONS, SIZES, split};

/// Parses `200MB`, `64KiB`, `1.5 GiB`, in any case; a number without a unit is in bytes.
pub(crate) fn read_size(text: &str) -> Option<u64> {
    read(text, &SIZES, Some(1))
}

/// Parses `250ms`, `1s`, `1.5h`; only 0 needs no unit.
pub(crate) fn read_duration(text: &str) -> Option<Duration> {
    if text.trim() == "0" {
        return Some(Duration::ZERO);
    }
    read(text, &DURATIONS, None).map(Duration::from_nanos)
}

/// Formats a size in the largest unit of which it is a whole multiple.
pub(crate) fn show_size(bytes: u64) -> String {
    let (count, unit) = split(bytes, &SIZES, "B");
    format!("{count}{unit}")
}

/// Formats a duration in the largest unit of which it is a whole multiple.
pub(crate) fn show_duration(duration: Duration) -> String {
    let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let (count, unit) = split(ns, &DURATIONS, "s");
    format!("{count}{unit}")
}

/// Bound, in hours: longer durations are rejected, so that sums of durations fit into nanoseconds.
const DURATION_HOURS_MAX: u64 = 10_000;

/// Parses a duration, such as `20ms`, `1.5s` or `2min`; only 0 needs no unit.
///
/// # Errors
/// Returns a sentence that states what was expected.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let duration = read_duration(text).filter(|time| time.as_secs() <= DURATION_HOURS_MAX * 3600);
    duration.ok_or_else(|| {
        format!("expected a duration such as 500us, 20ms, 1.5s or 2min, not `{text}`")
    })
}

/// Parses a duration above zero.
///
/// # Errors
/// Returns a sentence that states what was expected.
pub(crate) fn some_duration(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration.is_zero() {
        return Err("expected a duration above zero".to_owned());
    }
    Ok(duration)
}

/// Parses a size in bytes, such as `4kB`, `100MB` or `1GiB`; a number without a unit is in bytes.
///
/// # Errors
/// Returns a sentence that states what was expected.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let size = read_size(text);
    size.ok_or_else(|| format!("expected a size such as 4kB, 100MB or 3.3GB, not `{text}`"))
}

/// Formats a time with three digits, in seconds or a smaller unit.
pub(crate) fn show_ns(ns: f64) -> String {
    if ns == 0.0 {
        return "0".to_owned();
    }
    round(ns, DURATIONS.iter().filter(|(_, ns)| *ns <= 1_000_000_000))
}

/// Formats a number of bytes with three digits, in a decimal unit.
pub(crate) fn show_bytes(bytes: f64) -> String {
    let is_decimal = |unit: u64| unit == 1 || !unit.is_power_of_two();
    round(bytes, SIZES.iter().filter(|(_, unit)| is_decimal(*unit)))
}

/// Formats a count with commas between thousands.
pub(crate) fn show_count(count: u64) -> String {
    let text = count.to_string();
    let mut shown = String::new();
    for (at, digit) in text.char_indices() {
        if at > 0 && (text.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Formats a length in a binary unit, rounded up, with at most three digits below 1000 TiB.
pub(crate) fn show_len(len: u64) -> String {
    let mut units = SIZES.iter().filter(|(_, unit)| unit.is_power_of_two());
    let fitting = units.find(|(_, unit)| len.div_ceil(*unit) < 1000);
    let (name, unit) = fitting.unwrap_or(&SIZES[SIZES.len() - 1]);
    format!("{} {name}", len.div_ceil(*unit))
}

fn read(text: &str, units: &[(&str, u64)], alone: Option<u64>) -> Option<u64> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim_start());
    let unit = match units
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))
    {
        Some(&(_, unit)) => unit,
        None => alone.filter(|_| unit.is_empty())?,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    // Further digits would each be less than a billionth of a unit.
    let digits = u32::try_from(fraction.len())
        .ok()
        .filter(|digits| *digits <= 9)?;
    let fraction = fraction.parse::<u128>().ok()? * u128::from(unit) / 10u128.pow(digits);
    whole.checked_add(u64::try_from(fraction).ok()?)
}

/// Formats a value with three digits in the largest of these units that leaves a whole part.
fn round<'a>(value: f64, mut units: impl DoubleEndedIterator<Item = &'a (&'a str, u64)>) -> String {
    let fitting = units.rfind(|(_, unit)| *unit == 1 || value / *unit as f64 >= 0.9995);
    let (name, unit) = fitting.expect("one unit is 1");
    let number = value / *unit as f64;
    let digits = match number {
        _ if *unit == 1 => 0,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{number:.digits$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_read() {
        let table = [
            ("0", Some(0)),
            ("102", Some(102)),
            ("200MB", Some(200_000_000)),
            ("4KB", Some(4_000)),
            ("4kB", Some(4_000)),
            ("64KiB", Some(65_536)),
            ("64kib", Some(65_536)),
            (" 1.5 GiB ", Some(3 << 29)),
            ("0.1B", Some(0)),
            ("", None),
            ("KB", None),
            (".5KB", None),
            ("5.KB", None),
            ("-5KB", None),
            ("5K", None),
            ("5KB5", None),
            ("1.2.3KB", None),
            ("99999999999GB", None),
            ("16777216TiB", None),
            ("1.0000000001GB", None),
        ];
        for (text, expected) in table {
            assert_eq!(read_size(text), expected, "{text:?}");
        }
    }

    #[test]
    fn durations_are_read() {
        let table = [
            ("0", Some(0)),
            ("250ms", Some(250_000_000)),
            ("1s", Some(1_000_000_000)),
            ("1.5m", Some(90_000_000_000)),
            ("1.5M", Some(90_000_000_000)),
            ("1.5min", Some(90_000_000_000)),
            ("2 h", Some(7_200_000_000_000)),
            ("1d", Some(86_400_000_000_000)),
            ("7us", Some(7_000)),
            ("5", None),
            ("s", None),
            ("1m30s", None),
            ("1 week", None),
        ];
        for (text, expected) in table {
            assert_eq!(
                read_duration(text),
                expected.map(Duration::from_nanos),
                "{text:?}"
            );
        }
    }

    #[test]
    fn values_are_shown_in_the_largest_unit() {
        let table = [
            (0, "0B"),
            (1, "1B"),
            (1024, "1KiB"),
            (65_536, "64KiB"),
            (4_000, "4kB"),
            (200_000_000, "200MB"),
        ];
        for (bytes, expected) in table {
            assert_eq!(show_size(bytes), expected);
        }
        assert_eq!(show_duration(Duration::from_millis(1500)), "1500ms");
        assert_eq!(show_duration(Duration::from_secs(120)), "2min");
        assert_eq!(show_duration(Duration::ZERO), "0s");
    }

    #[test]
    fn durations() {
        let check = |text: &str, expected: Option<u64>| {
            let ns = duration(text).ok().map(|time| time.as_nanos() as u64);
            assert_eq!(ns, expected, "{text}");
        };
        check("20ms", Some(20_000_000));
        check("3", None);
        check("10000h", Some(36_000_000_000_000_000));
        check("10001h", None);
        check("99999999999999999999999h", None);
        assert!(some_duration("0ms").is_err());
        assert!(some_duration("1ns").is_ok());
    }

    #[test]
    fn sizes() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(size(text).ok(), expected, "{text}");
        };
        check("3.3GB", Some(3_300_000_000));
        check("1XB", None);
    }

    #[test]
    fn shown() {
        assert_eq!(show_ns(0.0), "0");
        assert_eq!(show_ns(999.0), "999 ns");
        assert_eq!(show_ns(1_234.0), "1.23 us");
        assert_eq!(show_ns(23_400_000.0), "23.4 ms");
        assert_eq!(show_ns(999_600.0), "1.00 ms");
        assert_eq!(show_ns(9_996_000.0), "10.0 ms");
        assert_eq!(show_ns(123e9), "123 s");
        assert_eq!(show_bytes(0.0), "0 B");
        assert_eq!(show_bytes(12.0), "12 B");
        assert_eq!(show_bytes(4_096.0), "4.10 kB");
        assert_eq!(show_bytes(2e15), "2000 TB");
        assert_eq!(show_count(0), "0");
        assert_eq!(show_count(999), "999");
        assert_eq!(show_count(1_234_567), "1,234,567");
    }

    #[test]
    fn lengths_are_short() {
        let table = [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1 KiB"),
            (1025, "2 KiB"),
            (1024 * 999, "999 KiB"),
            (1024 * 1000, "1 MiB"),
            (u64::MAX, "16777216 TiB"),
        ];
        for (len, expected) in table {
            assert_eq!(show_len(len), expected);
        }
    }

    proptest! {
        #[test]
        fn a_printed_value_reads_back_unchanged(value: u64, text in "\\PC{0,12}") {
            prop_assert_eq!(read_size(&show_size(value)), Some(value));
            let duration = Duration::from_nanos(value);
            prop_assert_eq!(read_duration(&show_duration(duration)), Some(duration));
            let _ = (read_size(&text), read_duration(&text)); // the result does not matter, a panic would
        }
    }
}
