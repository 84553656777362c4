//! The handshake of version 0.6, from "An Extensible Handshaking Protocol for the Gnutella Network"
//! by Greg Bildson and Christopher Rohrs, section 3.
//!
//! The servent that connects sends a request ([`connect`]). The other servent sends an [`answer`],
//! and the connecting servent then sends an [`answer`], too. Descriptors follow if both answers
//! have status 200.

use std::net::SocketAddrV4;

use crate::http::head::HEAD_BYTES_MAX;
use crate::http::response::HeadWriter;
use crate::http::span::Span;
use crate::http::syntax::is_blank;
use crate::http::{Status, decimal};
use crate::line::{self, Stop};
use crate::malformed::{Found, Malformed};

/// The limits on one part of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bound, in bytes: the maximum total length of the first line and the fields; 16 KiB by
    /// default, because servents send long lists of other servents. Values over [`HEAD_BYTES_MAX`]
    /// are reduced to that limit.
    pub head_bytes_max: usize,
    /// Bound, in fields: the maximum number of fields in one part; 100 by default. Servents usually
    /// send about 30 fields.
    pub fields_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes_max: 16 * 1024,
            fields_max: 100,
        }
    }
}

/// The oldest version with this handshake.
const VERSION_MIN: (u8, u8) = (0, 6);

/// One part of a handshake: a request to connect, or an answer.
///
/// This type stores offsets into the parsed buffer, not the text itself. The accessors that return
/// text take the parsed buffer as an argument. They may panic if they are given a shorter buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The status of an answer, or `None` for a request to connect.
    pub status: Option<Status>,
    /// The major and minor version numbers. Versions later than 0.6 are accepted as well.
    pub version: (u8, u8),
    fields_start: u16,
    len: u16,
}

impl Handshake {
    /// Returns the length of the part in bytes, including the final empty line.
    #[expect(clippy::len_without_is_empty, reason = "no part is empty")]
    pub fn len(&self) -> usize {
        self.len.into()
    }

    /// Returns the uninterpreted names and values of all fields, in order. The iterator parses the
    /// fields again.
    ///
    /// A value that is folded over several lines includes the line breaks.
    pub fn fields<'b>(
        &self,
        bytes: &'b [u8],
    ) -> impl Iterator<Item = (&'b [u8], &'b [u8])> + use<'b> {
        let head = &bytes[..self.len()];
        let mut at = usize::from(self.fields_start);
        std::iter::from_fn(move || {
            let (name, value, next) = folded_field(head, at).ok()?;
            at = next;
            Some((name, value.of(head).trim_ascii()))
        })
    }

    /// Returns the value of the first field with this name.
    pub fn field<'b>(&self, name: &str, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let mut fields = self.fields(bytes);
        let field = fields.find(|(it, _)| it.eq_ignore_ascii_case(name.as_bytes()));
        field.map(|(_, value)| value)
    }

    /// Returns the servent addresses listed in the first field with this name. The usual names are
    /// `X-Try` and `X-Try-Ultrapeers`. The iterator skips any list member that is not an IPv4
    /// address with a port, and any whose address or port is 0.
    pub fn hosts<'b>(
        &self,
        name: &str,
        bytes: &'b [u8],
    ) -> impl Iterator<Item = SocketAddrV4> + use<'b> {
        let list = self.field(name, bytes).unwrap_or_default();
        let members = list.split(|&byte| byte == b',');
        members
            .filter_map(|member| str::from_utf8(member.trim_ascii()).ok()?.parse().ok())
            .filter(|host: &SocketAddrV4| host.port() != 0 && !host.ip().is_unspecified())
    }
}

/// Parses the part of a handshake at the start of `bytes`: a request to connect, or an answer.
/// Returns `None` if the part is incomplete.
///
/// Lines end with CR LF, or with LF alone. Values may be folded over several lines; gtk-gnutella
/// folds long lists.
///
/// ```
/// use tussah_wire::gnutella::handshake;
///
/// let bytes = b"GNUTELLA/0.6 200 OK\r\nX-Ultrapeer: True\r\nX-Try: 192.0.2.1:6346, x\r\n\r\n";
/// let limits = handshake::Limits::default();
/// let part = handshake::parse(bytes, &limits)?.expect("it is complete");
/// assert_eq!(part.status.map(|status| status.code()), Some(200));
/// assert_eq!(part.field("x-ultrapeer", bytes), Some(&b"True"[..]));
/// assert_eq!(part.hosts("X-Try", bytes).count(), 1);
/// # Ok::<(), tussah_wire::Malformed>(())
/// ```
///
/// # Errors
///
/// Returns an error if the part belongs to another protocol, has a version before 0.6, contains
/// invalid fields, or exceeds a limit.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Option<Handshake>, Malformed> {
    let len_max = limits.head_bytes_max.min(HEAD_BYTES_MAX);
    line::head_within(bytes, len_max, |seen| part(seen, limits.fields_max))
}

/// Appends the start of a request to connect. The caller must append any further fields, and then
/// call [`HeadWriter::end`].
pub fn connect(out: &mut Vec<u8>) -> HeadWriter<'_> {
    out.extend_from_slice(b"GNUTELLA CONNECT/0.6\r\n");
    HeadWriter::go_on(out)
}

/// Appends the start of an answer. The caller must append any further fields, and then call
/// [`HeadWriter::end`].
///
/// ```
/// use tussah_wire::gnutella::handshake;
/// use tussah_wire::http::Status;
///
/// let mut out = Vec::new();
/// let mut answer = handshake::answer(&mut out, Status::OK);
/// answer.field("User-Agent", "tussah")?;
/// answer.end();
/// assert_eq!(out, b"GNUTELLA/0.6 200 OK\r\nUser-Agent: tussah\r\n\r\n");
/// # Ok::<(), tussah_wire::http::response::FieldInvalid>(())
/// ```
pub fn answer(out: &mut Vec<u8>, status: Status) -> HeadWriter<'_> {
    let line = format!("GNUTELLA/0.6 {} {}\r\n", status.code(), status.reason());
    out.extend_from_slice(line.as_bytes());
    HeadWriter::go_on(out)
}

fn part(bytes: &[u8], fields_max: usize) -> Result<Handshake, Stop> {
    let mut part = first_line(bytes)?;
    let mut at = usize::from(part.fields_start);
    let mut fields = 0;
    while !line::is_empty(bytes, at) {
        let (_, _, next) = folded_field(bytes, at)?;
        fields += 1;
        if fields > fields_max {
            let found = Found::Number(fields as u64);
            return Err(Malformed::new(at as u64, "fewer fields", found).into());
        }
        at = next;
    }
    part.len = line::line_end(bytes, at, "an empty line")? as u16;
    Ok(part)
}

/// Returns a part with its first line only.
fn first_line(bytes: &[u8]) -> Result<Handshake, Stop> {
    const START: &str = "GNUTELLA/0.6 or GNUTELLA CONNECT/0.6";
    let at = literal(bytes, 0, b"GNUTELLA", START)?;
    let is_connect = bytes.get(at) == Some(&b' ');
    let rest: &[u8] = if is_connect { b" CONNECT/" } else { b"/" };
    let at = literal(bytes, at, rest, START)?;
    let major = digit(bytes, at, "a digit of the version")?;
    let point = literal(bytes, at + 1, b".", "a point in the version")?;
    let minor = digit(bytes, point, "a digit of the version")?;
    if (major, minor) < VERSION_MIN {
        let found = Found::Number(minor.into());
        let expected = "version 0.6 or a later one";
        return Err(Malformed::new(point as u64, expected, found).into());
    }
    let at = point + 1;
    let (status, next) = if is_connect {
        let next = line::line_end(bytes, at, "the end of the line after the version")?;
        (None, next)
    } else {
        let (status, end) = status(bytes, at)?;
        let next = match bytes.get(end) {
            Some(&byte) if is_blank(byte) => line::text(bytes, end)?.1,
            _ => line::line_end(bytes, end, "a space or the end of the line")?,
        };
        (Some(status), next)
    };
    Ok(Handshake {
        status,
        version: (major, minor),
        fields_start: next as u16,
        len: 0,
    })
}

/// Returns the status after the space at `at`, and the end of its digits.
fn status(bytes: &[u8], at: usize) -> Result<(Status, usize), Stop> {
    let start = literal(bytes, at, b" ", "a space after the version")?;
    let end = start + 3;
    for at in start..end {
        digit(bytes, at, "a status of three digits")?;
    }
    let code = decimal(&bytes[start..end]).and_then(|code| Status::new(code as u16));
    let found = Found::Text("a smaller number");
    let status = code.ok_or_else(|| Malformed::new(start as u64, "a status from 100 on", found))?;
    Ok((status, end))
}

/// Returns the end of `text`, which has to be at `at`.
fn literal(bytes: &[u8], at: usize, text: &[u8], expected: &'static str) -> Result<usize, Stop> {
    let found = bytes.get(at..).unwrap_or_default();
    match text.iter().zip(found).position(|(a, b)| a != b) {
        Some(place) => Err(Stop::at(bytes, at + place, expected)),
        None if found.len() < text.len() => Err(Stop::More),
        None => Ok(at + text.len()),
    }
}

fn digit(bytes: &[u8], at: usize, expected: &'static str) -> Result<u8, Stop> {
    match bytes.get(at) {
        Some(digit) if digit.is_ascii_digit() => Ok(digit - b'0'),
        _ => Err(Stop::at(bytes, at, expected)),
    }
}

/// Returns the name and value of the field at `at`, and the start of the next one. Lines that start
/// with white space belong to the value.
fn folded_field(bytes: &[u8], at: usize) -> Result<(&[u8], Span, usize), Stop> {
    let (name, mut value, mut next) = line::field(bytes, at)?;
    loop {
        match bytes.get(next) {
            Some(&byte) if is_blank(byte) => {
                let (more, after) = line::text(bytes, next)?;
                value = Span::new(value.start(), more.end());
                next = after;
            }
            Some(_) => return Ok((name, value, next)),
            None => return Err(Stop::More),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Handshake {
        let part = parse(text.as_bytes(), &Limits::default());
        part.unwrap_or_else(|error| panic!("{text:?}: {error}"))
            .unwrap_or_else(|| panic!("{text:?} is incomplete"))
    }

    /// The interaction of section 3.
    #[test]
    fn a_handshake() {
        let connect = "GNUTELLA CONNECT/0.6\r\nUser-Agent: BearShare\r\nQuery-Routing: 0.2\r\n\r\n";
        let part = parsed(connect);
        assert_eq!((part.status, part.version), (None, (0, 6)));
        let answer =
            "GNUTELLA/0.6 200 OK\r\nUser-Agent: BearShare\r\nBearShare-Data: 5ef89a\r\n\r\n";
        let part = parsed(answer);
        assert_eq!((part.status, part.len()), (Some(Status::OK), answer.len()));
        let fields: Vec<_> = part.fields(answer.as_bytes()).collect();
        let expected: [(&[u8], &[u8]); 2] = [
            (b"User-Agent", b"BearShare"),
            (b"BearShare-Data", b"5ef89a"),
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn first_lines() {
        let check = |line: &str, status: Option<u16>, version| {
            let part = parsed(&format!("{line}\n\n"));
            let code = part.status.map(|status| status.code());
            assert_eq!((code, part.version), (status, version), "{line}");
        };
        check("GNUTELLA CONNECT/0.7", None, (0, 7));
        check("GNUTELLA CONNECT/1.0\r", None, (1, 0));
        check("GNUTELLA/0.6 200", Some(200), (0, 6));
        check("GNUTELLA/0.6 503 Busy, try later", Some(503), (0, 6));
    }

    #[test]
    fn hosts() {
        let check = |value: &str, expected: &[&str]| {
            let text =
                format!("GNUTELLA/0.6 503 Full\r\nx-try:{value}\r\nX-Try: 192.0.2.9:1\r\n\r\n");
            let hosts = parsed(&text).hosts("X-Try", text.as_bytes());
            assert_eq!(
                hosts.map(|host| host.to_string()).collect::<Vec<_>>(),
                expected
            );
        };
        check(
            " 192.0.2.1:6346,192.0.2.2:1",
            &["192.0.2.1:6346", "192.0.2.2:1"],
        );
        check(
            "192.0.2.1:6346,\r\n\t192.0.2.2:1",
            &["192.0.2.1:6346", "192.0.2.2:1"],
        );
        check("\r\n 192.0.2.1:6346", &["192.0.2.1:6346"]);
        check("", &[]);
        check(
            ",192.0.2.1,192.0.2.1:0,0.0.0.0:1,a:1,192.0.2.1:65536,::1:1",
            &[],
        );
    }

    #[test]
    fn malformed_parts() {
        let check = |text: &str, expected: &str| {
            let limits = Limits {
                head_bytes_max: 60,
                fields_max: 2,
            };
            let error = parse(text.as_bytes(), &limits).expect_err(text);
            assert_eq!(error.to_string(), expected, "{text:?}");
        };
        let start = "expected GNUTELLA/0.6 or GNUTELLA CONNECT/0.6";
        check(
            "GET / HTTP/1.1\r\n",
            &format!("byte 1: {start}, found 0x45"),
        );
        check("GNUTELLA OK\n\n", &format!("byte 9: {start}, found 0x4f"));
        let version = "expected version 0.6 or a later one";
        check(
            "GNUTELLA CONNECT/0.4\n\n",
            &format!("byte 19: {version}, found 4"),
        );
        check(
            "GNUTELLA/x",
            "byte 9: expected a digit of the version, found 0x78",
        );
        check(
            "GNUTELLA/06",
            "byte 10: expected a point in the version, found 0x36",
        );
        let end = "expected the end of the line after the version";
        check(
            "GNUTELLA CONNECT/0.61",
            &format!("byte 20: {end}, found 0x31"),
        );
        check(
            "GNUTELLA/0.6 2x0",
            "byte 14: expected a status of three digits, found 0x78",
        );
        check(
            "GNUTELLA/0.6 099\n",
            "byte 13: expected a status from 100 on, found a smaller number",
        );
        let space = "expected a space or the end of the line";
        check(
            "GNUTELLA/0.6 2000",
            &format!("byte 16: {space}, found 0x30"),
        );
        let colon = "expected a colon after the name of the field";
        check(
            "GNUTELLA/0.6 200\nA b",
            &format!("byte 18: {colon}, found 0x20"),
        );
        let fields = "expected fewer fields, found 3";
        check(
            "GNUTELLA/0.6 200\nA:\nA:\nA:\n\n",
            &format!("byte 23: {fields}"),
        );
        let long = "expected the end of the head, found a head that is over the limit";
        let text = format!("GNUTELLA/0.6 200\nA: {}\n\n", "b".repeat(60));
        check(&text, &format!("byte 60: {long}"));
    }
}
