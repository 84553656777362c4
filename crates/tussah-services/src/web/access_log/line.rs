//! Formats a request as a line of the log.

use std::cell::RefCell;
use std::io::Write;
use std::net::IpAddr;
use std::time::SystemTime;

use jiff::Timestamp;
use tussah_wire::http::date::unix_seconds;

use crate::web::config::LogFormat;

/// The data that the access log records about a request.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The client's address; `None` if it is unknown, as on a Unix socket or after a reset.
    pub client: Option<IpAddr>,
    /// The authenticated user, if there is one.
    pub user: Option<&'a [u8]>,
    /// The time at which the response ended.
    pub time: SystemTime,
    /// The first line of the request, as received.
    pub request: &'a [u8],
    /// The status code of the response.
    pub status: u16,
    /// The number of body bytes that the server sent.
    pub body_bytes: u64,
    /// The value of `Referer`.
    pub referrer: Option<&'a [u8]>,
    /// The value of `User-Agent`.
    pub user_agent: Option<&'a [u8]>,
}

/// Appends a line to a buffer, in NCSA's common log format or in the combined format of Apache and
/// nginx. Times are UTC.
pub(super) fn write_line(record: &Record<'_>, format: LogFormat, line: &mut Vec<u8>) {
    match record.client {
        Some(address) => put(line, format_args!("{}", address.to_canonical())),
        None => line.push(b'-'),
    }
    line.extend(b" - ");
    escaped(record.user, line);
    line.extend(b" [");
    DATE.with_borrow_mut(|date| line.extend(date.of(unix_seconds(record.time))));
    line.extend(b"] \"");
    escaped(Some(record.request), line);
    // An empty body is a dash, as in Apache's log.
    match record.body_bytes {
        0 => put(line, format_args!("\" {} -", record.status)),
        len => put(line, format_args!("\" {} {len}", record.status)),
    }
    if format == LogFormat::Combined {
        line.extend(b" \"");
        escaped(record.referrer, line);
        line.extend(b"\" \"");
        escaped(record.user_agent, line);
        line.push(b'"');
    }
    line.push(b'\n');
}

/// Escapes a client's text as nginx does: any byte that could end the field or the line, or control
/// a terminal, becomes `\xHH`.
fn escaped(text: Option<&[u8]>, line: &mut Vec<u8>) {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        line.push(b'-');
        return;
    };
    for &byte in text {
        match byte {
            b'"' | b'\\' | ..=0x1f | 0x7f.. => put(line, format_args!("\\x{byte:02X}")),
            _ => line.push(byte),
        }
    }
}

fn put(line: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    line.write_fmt(text).expect("a vector takes everything");
}

thread_local! {
    static DATE: RefCell<Date> = const { RefCell::new(Date { second: u64::MAX, text: Vec::new() }) };
}

/// The last date, which most other lines of the same second share.
struct Date {
    second: u64,
    text: Vec<u8>,
}

impl Date {
    fn of(&mut self, second: u64) -> &[u8] {
        if second != self.second {
            self.text.clear();
            let date = i64::try_from(second).map(Timestamp::from_second);
            let date = date.ok().and_then(Result::ok).unwrap_or_default();
            put(
                &mut self.text,
                format_args!("{}", date.strftime("%d/%b/%Y:%H:%M:%S +0000")),
            );
            self.second = second;
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::{Duration, UNIX_EPOCH};

    fn record(request: &[u8]) -> Record<'_> {
        Record {
            client: Some([192, 0, 2, 7].into()),
            user: None,
            time: UNIX_EPOCH + Duration::from_millis(971_186_136_999),
            request,
            status: 200,
            body_bytes: 2326,
            referrer: None,
            user_agent: None,
        }
    }

    fn check(record: &Record<'_>, format: LogFormat, expected: &str) {
        let mut line = Vec::new();
        write_line(record, format, &mut line);
        assert_eq!(String::from_utf8(line).unwrap(), format!("{expected}\n"));
    }

    #[test]
    fn lines_are_in_the_formats_of_others() {
        let plain = record(b"GET /a.gif HTTP/1.0");
        check(
            &plain,
            LogFormat::Common,
            r#"192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET /a.gif HTTP/1.0" 200 2326"#,
        );
        let told = Record {
            client: Some("::ffff:192.0.2.8".parse().unwrap()),
            user: Some(b"frank"),
            status: 304,
            body_bytes: 0,
            referrer: Some(b"http://example.com/"),
            user_agent: Some(b"Mozilla/5.0 (X11)"),
            ..plain
        };
        check(
            &told,
            LogFormat::Combined,
            r#"192.0.2.8 - frank [10/Oct/2000:13:55:36 +0000] "GET /a.gif HTTP/1.0" 304 - "http://example.com/" "Mozilla/5.0 (X11)""#,
        );
        let odd = Record {
            client: None,
            time: UNIX_EPOCH,
            request: b"",
            user_agent: Some(b"\"\\\r\n\x1b[31m\x7f\xff"),
            ..plain
        };
        check(
            &odd,
            LogFormat::Combined,
            r#"- - - [01/Jan/1970:00:00:00 +0000] "-" 200 2326 "-" "\x22\x5C\x0D\x0A\x1B[31m\x7F\xFF""#,
        );
    }

    proptest! {
        #[test]
        fn no_client_makes_two_lines_of_one(request: Vec<u8>, agent: Vec<u8>) {
            let record = Record { user_agent: Some(&agent), ..record(&request) };
            let mut line = Vec::new();
            write_line(&record, LogFormat::Combined, &mut line);
            prop_assert_eq!(line.pop(), Some(b'\n'));
            prop_assert!(line.iter().all(|byte| matches!(byte, b' '..=b'~')));
            prop_assert_eq!(line.iter().filter(|byte| **byte == b'"').count(), 6);
        }
    }
}
