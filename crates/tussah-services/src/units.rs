//! Sizes and durations in their text form. The text of a value reads back as the same value.

use std::time::Duration;

/// The units of sizes with their bytes, the largest first.
const SIZES: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

/// The units of durations with their nanoseconds, the largest first.
const TIMES: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Parses `200MB`, `64KiB`, `1.5 GiB`, in any case; a number without a unit is in bytes.
pub(crate) fn read_size(text: &str) -> Option<u64> {
    read(text, &SIZES, Some(1))
}

/// Parses `250ms`, `1s`, `1.5h`; only 0 needs no unit.
pub(crate) fn read_duration(text: &str) -> Option<Duration> {
    if text.trim() == "0" {
        return Some(Duration::ZERO);
    }
    read(text, &TIMES, None).map(Duration::from_nanos)
}

/// Formats a size in the largest unit of which it is a whole multiple.
pub(crate) fn show_size(bytes: u64) -> String {
    show(bytes, &SIZES)
}

/// Formats a duration in the largest unit of which it is a whole multiple.
pub(crate) fn show_duration(duration: Duration) -> String {
    show(
        u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
        &TIMES,
    )
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

fn show(value: u64, units: &[(&str, u64)]) -> String {
    let fitting = units
        .iter()
        .find(|(_, unit)| value > 0 && value.is_multiple_of(*unit));
    let (name, unit) = fitting.unwrap_or(units.last().expect("there are units"));
    format!("{}{name}", value / unit)
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
            (200_000_000, "200MB"),
        ];
        for (bytes, expected) in table {
            assert_eq!(show_size(bytes), expected);
        }
        assert_eq!(show_duration(Duration::from_millis(1500)), "1500ms");
        assert_eq!(show_duration(Duration::from_secs(120)), "2m");
        assert_eq!(show_duration(Duration::ZERO), "0ns");
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
