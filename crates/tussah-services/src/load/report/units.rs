//! Durations, sizes and numbers, as arguments and in results.

use std::time::Duration;

use crate::units::{read_duration, read_size};

/// Bound, in hours: longer durations are rejected, so that sums of durations fit into nanoseconds.
const DURATION_HOURS_MAX: u64 = 10_000;

/// Parses a duration, such as `20ms`, `1.5s` or `2m`; only 0 needs no unit.
///
/// # Errors
/// A sentence that says what was expected.
pub fn duration(text: &str) -> Result<Duration, String> {
    let duration = read_duration(text).filter(|time| time.as_secs() <= DURATION_HOURS_MAX * 3600);
    duration
        .ok_or_else(|| format!("expected a duration such as 500us, 20ms, 1.5s or 2m, not `{text}`"))
}

/// Parses a duration above zero.
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

/// Parses a size in bytes, such as `4KB`, `100MB` or `1GiB`; a number without a unit is in bytes.
///
/// # Errors
/// A sentence that says what was expected.
pub fn size(text: &str) -> Result<u64, String> {
    let size = read_size(text);
    size.ok_or_else(|| format!("expected a size such as 4KB, 100MB or 3.3GB, not `{text}`"))
}

/// Formats a time with three digits and a fitting unit.
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

/// Formats a number of bytes with three digits and a fitting unit.
#[must_use]
pub fn show_bytes(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 1e3 => format!("{bytes:.0} B"),
        bytes if bytes < 1e6 => digits(bytes / 1e3, "KB"),
        bytes if bytes < 1e9 => digits(bytes / 1e6, "MB"),
        bytes => digits(bytes / 1e9, "GB"),
    }
}

/// Formats a count with commas between thousands.
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
        assert_eq!(show_ns(123e9), "123 s");
        assert_eq!(show_bytes(12.0), "12 B");
        assert_eq!(show_bytes(4_096.0), "4.10 KB");
        assert_eq!(show_count(0), "0");
        assert_eq!(show_count(999), "999");
        assert_eq!(show_count(1_234_567), "1,234,567");
    }
}
