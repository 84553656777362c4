//! HTTP dates (RFC 9110, section 5.6.7).

use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The length, in bytes, of a date that [`format()`] returns.
pub const LEN: usize = 29;

/// Bound, in seconds since 1970: the last second that an HTTP date can express, at the end of the
/// year 9999. Later times are formatted as this one.
const SECONDS_MAX: u64 = 253_402_300_799;

/// Formats `unix_seconds` as an HTTP date, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
///
/// Times after the year 9999 are formatted as the last second of that year.
///
/// ```
/// let text = tussah_wire::http::date::format(784_111_777);
/// assert_eq!(&text, b"Sun, 06 Nov 1994 08:49:37 GMT");
/// ```
pub fn format(unix_seconds: u64) -> [u8; LEN] {
    let seconds = unix_seconds.min(SECONDS_MAX);
    let date = httpdate::HttpDate::from(UNIX_EPOCH + Duration::from_secs(seconds));
    let mut text = [0; LEN];
    write!(&mut text[..], "{date}").expect("up to the year 9999 a date has 29 bytes");
    text
}

/// Parses a date in any of the three forms of RFC 9110 into seconds since 1970. Returns `None` for
/// an invalid date, or one before 1970.
pub fn parse(text: &[u8]) -> Option<u64> {
    let text = str::from_utf8(text).ok()?;
    httpdate::parse_http_date(text).ok().map(unix_seconds)
}

/// Returns the number of seconds from the start of 1970 to `time`, rounded down, or 0 if `time` is
/// before 1970.
pub fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let check = |text: &[u8], seconds| assert_eq!(parse(text), seconds, "{text:?}");
        check(b"Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777));
        check(b"Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777));
        check(b"Sun Nov  6 08:49:37 1994", Some(784_111_777));
        check(b"Thu, 01 Jan 1970 00:00:00 GMT", Some(0));
        check(b"Thu, 29 Feb 2024 23:59:59 GMT", Some(1_709_251_199));
        check(b"", None);
        check(b"yesterday", None);
        check(b"Sun, 06 Nov 1994 08:49:37", None);
        check(b"Sun, 06 Nov 1994 08:49:37 CET", None);
        check(b"Sun, 31 Feb 1994 08:49:37 GMT", None);
        check(b"\xff", None);
    }

    #[test]
    fn written_dates_can_be_read() {
        for seconds in [0, 59, 951_782_400, 4_102_444_800, SECONDS_MAX] {
            assert_eq!(parse(&format(seconds)), Some(seconds));
        }
        assert_eq!(format(u64::MAX), format(SECONDS_MAX));
    }
}
