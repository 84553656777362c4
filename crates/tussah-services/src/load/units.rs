//! Durations, sizes and numbers as people write and read them.

use std::time::Duration;

/// Bound, in hours: longer durations are refused, so that sums of them fit into nanoseconds.
const DURATION_HOURS_MAX: u64 = 10_000;

/// The units of time, with what they are in nanoseconds.
const TIMES: [(&str, f64); 6] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];

/// The units of size, with what they are in bytes.
const SIZES: [(&str, f64); 7] = [
    ("b", 1.0),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("kib", 1024.0),
    ("mib", 1024.0 * 1024.0),
    ("gib", 1024.0 * 1024.0 * 1024.0),
];

/// Reads a duration, such as `20ms`, `1.5s` or `2m`; a number alone is in seconds.
///
/// # Errors
/// A sentence that says what was expected.
pub fn duration(text: &str) -> Result<Duration, String> {
    let expected = || format!("expected a duration such as 500us, 20ms, 1.5s or 2m, not `{text}`");
    let (number, unit) = split(text).ok_or_else(expected)?;
    let unit = if unit.is_empty() { "s" } else { unit };
    let ns = factor(&TIMES, unit).ok_or_else(expected)?;
    let duration = Duration::try_from_secs_f64(number * ns / 1e9).ok();
    let duration = duration.filter(|time| time.as_secs() <= DURATION_HOURS_MAX * 3600);
    duration.ok_or_else(expected)
}

/// Reads a duration that is longer than nothing.
///
/// # Errors
/// A sentence that says what was expected.
pub fn some_duration(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration.is_zero() {
        return Err("expected a duration above zero".to_owned());
    }
    Ok(duration)
}

/// Reads a size in bytes, such as `4KB`, `100MB` or `1GiB`; a number alone is in bytes.
///
/// # Errors
/// A sentence that says what was expected.
pub fn size(text: &str) -> Result<u64, String> {
    let expected = || format!("expected a size such as 4KB, 100MB or 3.3GB, not `{text}`");
    let (number, unit) = split(text).ok_or_else(expected)?;
    let unit = if unit.is_empty() { "b" } else { unit };
    let bytes = factor(&SIZES, &unit.to_ascii_lowercase()).ok_or_else(expected)?;
    Ok((number * bytes).round() as u64)
}

/// A number that is not negative, and what stands behind it.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.'));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    Some((number.parse().ok()?, unit.trim()))
}

fn factor(units: &[(&str, f64)], name: &str) -> Option<f64> {
    let found = units.iter().find(|(unit, _)| *unit == name);
    found.map(|&(_, factor)| factor)
}

/// A time with three digits and a fitting unit.
#[must_use]
pub fn show_ns(ns: f64) -> String {
    match ns {
        0.0 => "0".to_owned(),
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => digits(ns / 1e3, "us"),
        ns if ns < 1e9 => digits(ns / 1e6, "ms"),
        ns => digits(ns / 1e9, "s"),
    }
}

/// A number of bytes with three digits and a fitting unit.
#[must_use]
pub fn show_bytes(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 1e3 => format!("{bytes:.0} B"),
        bytes if bytes < 1e6 => digits(bytes / 1e3, "KB"),
        bytes if bytes < 1e9 => digits(bytes / 1e6, "MB"),
        bytes => digits(bytes / 1e9, "GB"),
    }
}

/// A count, with commas between thousands.
#[must_use]
pub fn show_count(count: u64) -> String {
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

fn digits(number: f64, unit: &str) -> String {
    match number {
        number if number < 10.0 => format!("{number:.2} {unit}"),
        number if number < 100.0 => format!("{number:.1} {unit}"),
        number => format!("{number:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let check = |text: &str, expected: Option<u64>| {
            let ns = duration(text).ok().map(|time| time.as_nanos() as u64);
            assert_eq!(ns, expected, "{text}");
        };
        check("20ms", Some(20_000_000));
        check("1.5s", Some(1_500_000_000));
        check("3", Some(3_000_000_000));
        check("500us", Some(500_000));
        check("2 m", Some(120_000_000_000));
        check("0", Some(0));
        check("", None);
        check("ms", None);
        check("-1s", None);
        check("1d", None);
        check("1.2.3s", None);
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
        check("102", Some(102));
        check("4KB", Some(4000));
        check("4kib", Some(4096));
        check("3.3GB", Some(3_300_000_000));
        check("1 MB", Some(1_000_000));
        check("MB", None);
        check("1XB", None);
    }

    #[test]
    fn shown() {
        assert_eq!(show_ns(0.0), "0");
        assert_eq!(show_ns(999.0), "999 ns");
        assert_eq!(show_ns(1_234.0), "1.23 us");
        assert_eq!(show_ns(23_400_000.0), "23.4 ms");
        assert_eq!(show_ns(123e9), "123 s");
        assert_eq!(show_bytes(12.0), "12 B");
        assert_eq!(show_bytes(4_096.0), "4.10 KB");
        assert_eq!(show_count(0), "0");
        assert_eq!(show_count(999), "999");
        assert_eq!(show_count(1_234_567), "1,234,567");
    }
}
