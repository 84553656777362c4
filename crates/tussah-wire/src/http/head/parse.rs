//! The parser for request heads: a single pass without allocations.

use super::{EMPTY_LINES_MAX, Field, Head, Limits, METHOD_BYTES_MAX, Version, host};
use crate::http::Method;
use crate::http::connection::Connection;
use crate::http::framing::{self, Framing};
use crate::http::line::{Stop, field_line, head_within, line_end, refuse_at};
use crate::http::refusal::{Kind, Refusal};
use crate::http::span::Span;
use crate::http::syntax::{PATH, QUERY, TOKEN, is_word, run};

/// Parses the head at the start of `bytes`. Returns `None` if the head is incomplete. The body and
/// further requests may follow the head in `bytes`.
///
/// A refusal does not depend on later bytes: with more bytes, the same head is refused in the same
/// way.
///
/// # Errors
///
/// Returns a [`Refusal`] if the head breaks the rules of RFC 9112 or exceeds a limit.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Option<Head>, Refusal> {
    head_within(bytes, limits, |seen| request(seen, limits))
}

fn request(bytes: &[u8], limits: &Limits) -> Result<Head, Stop> {
    let start = skip_empty_lines(bytes)?;
    let (method, method_end) = method(bytes, start)?;
    let target = target(bytes, method_end + 1, limits)?;
    let (version, fields_start) = version(bytes, target.span.end() + 1)?;
    let mut draft = Draft {
        head: Head {
            framing: Framing::None,
            spans: Default::default(),
            method_span: Span::new(start, method_end),
            target: target.span,
            path: target.path,
            fields_start: fields_start as u16,
            len: 0,
            repeated: 0,
            method,
            version,
            keep_alive: false,
            expect_continue: false,
            conditional: false,
        },
        body: framing::Fields::default(),
        connection: Connection::default(),
    };
    let is_path = bytes[target.span.start()] == b'/' && method != Method::Connect;
    let host = if is_path {
        None
    } else {
        draft.other_form(bytes)?
    };
    let mut at = fields_start;
    let mut fields = 0;
    while bytes.get(at) != Some(&b'\r') {
        let line = field_line(bytes, at)?;
        fields += 1;
        if fields > limits.fields_max {
            return Err(Refusal::new(Kind::FieldsMany, at).into());
        }
        if let Some(known) = Known::of(line.name) {
            draft.field(known, bytes, line.value)?;
        }
        at = line.next;
    }
    let len = line_end(bytes, at, Kind::NameByte)?;
    Ok(draft.finish(len, host)?)
}

fn skip_empty_lines(bytes: &[u8]) -> Result<usize, Stop> {
    let mut at = 0;
    while let Some(b'\r' | b'\n') = bytes.get(at) {
        if at == 2 * EMPTY_LINES_MAX {
            return Err(Refusal::new(Kind::LinesEmpty, at).into());
        }
        at = line_end(bytes, at, Kind::MethodByte)?;
    }
    Ok(at)
}

/// Returns the method at `at` and the position of the space after it.
#[inline(always)]
fn method(bytes: &[u8], at: usize) -> Result<(Method, usize), Stop> {
    if bytes.get(at..at + 4) == Some(b"GET ") {
        return Ok((Method::Get, at + 3));
    }
    let end = run(bytes, at, TOKEN);
    if end - at > METHOD_BYTES_MAX {
        return Err(Refusal::new(Kind::MethodLong, at + METHOD_BYTES_MAX).into());
    }
    if bytes.get(at) == Some(&0x16) {
        return Err(Refusal::new(Kind::MethodTls, at).into());
    }
    if end == at || bytes.get(end) != Some(&b' ') {
        return Err(refuse_at(bytes, end, Kind::MethodByte));
    }
    Ok((Method::from_token(&bytes[at..end]), end))
}

struct Target {
    span: Span,
    /// Set as if the target were a path. [`Draft::other_form`] determines the actual form.
    path: Span,
}

/// Reads the target at `at`, which must be followed by a space.
#[inline(always)]
fn target(bytes: &[u8], at: usize, limits: &Limits) -> Result<Target, Stop> {
    let path_end = run(bytes, at, PATH);
    let mut end = path_end;
    if bytes.get(end) == Some(&b'?') {
        end = run(bytes, end, QUERY);
    }
    if end - at > limits.target_bytes_max {
        return Err(Refusal::new(Kind::TargetLong, at + limits.target_bytes_max).into());
    }
    if end == at || bytes.get(end) != Some(&b' ') {
        return Err(refuse_at(bytes, end, Kind::TargetByte));
    }
    Ok(Target {
        span: Span::new(at, end),
        path: Span::new(at, path_end),
    })
}

/// Returns the version at `at` and the start of the next line.
#[inline(always)]
fn version(bytes: &[u8], at: usize) -> Result<(Version, usize), Stop> {
    if bytes.get(at..at + 10) == Some(b"HTTP/1.1\r\n") {
        return Ok((Version::Http11, at + 10));
    }
    version_other(bytes, at)
}

#[cold]
fn version_other(bytes: &[u8], at: usize) -> Result<(Version, usize), Stop> {
    let digit = |at: usize| match bytes.get(at) {
        Some(byte) if byte.is_ascii_digit() => Ok(byte - b'0'),
        _ => Err(refuse_at(bytes, at, Kind::Version)),
    };
    let letter = |at: usize, letter: u8| match bytes.get(at) {
        Some(&byte) if byte == letter => Ok(()),
        _ => Err(refuse_at(bytes, at, Kind::Version)),
    };
    for (place, &expected) in b"HTTP/".iter().enumerate() {
        letter(at + place, expected)?;
    }
    let major = digit(at + 5)?;
    letter(at + 6, b'.')?;
    let minor = digit(at + 7)?;
    let next = line_end(bytes, at + 8, Kind::Version)?;
    match (major, minor) {
        (1, 0) => Ok((Version::Http10, next)),
        (1, _) => Ok((Version::Http11, next)),
        _ => Err(Refusal::new(Kind::VersionMajor, at + 5).into()),
    }
}

/// The fields that this parser interprets.
#[derive(Clone, Copy)]
enum Known {
    Noted(Field),
    Connection,
    ContentLength,
    TransferEncoding,
    Expect,
}

impl Known {
    #[inline(always)]
    fn of(name: &[u8]) -> Option<Self> {
        Some(match name.len() {
            4 if is_word(name, b"host") => Self::Noted(Field::Host),
            5 if is_word(name, b"range") => Self::Noted(Field::Range),
            6 if is_word(name, b"expect") => Self::Expect,
            7 if is_word(name, b"referer") => Self::Noted(Field::Referer),
            8 if is_word(name, b"if-match") => Self::Noted(Field::IfMatch),
            8 if is_word(name, b"if-range") => Self::Noted(Field::IfRange),
            9 if is_word(name, b"forwarded") => Self::Noted(Field::Forwarded),
            10 if is_word(name, b"connection") => Self::Connection,
            10 if is_word(name, b"user-agent") => Self::Noted(Field::UserAgent),
            13 if is_word(name, b"if-none-match") => Self::Noted(Field::IfNoneMatch),
            14 if is_word(name, b"content-length") => Self::ContentLength,
            15 if is_word(name, b"accept-encoding") => Self::Noted(Field::AcceptEncoding),
            15 if is_word(name, b"x-forwarded-for") => Self::Noted(Field::ForwardedFor),
            17 if is_word(name, b"transfer-encoding") => Self::TransferEncoding,
            17 if is_word(name, b"if-modified-since") => Self::Noted(Field::IfModifiedSince),
            19 if is_word(name, b"if-unmodified-since") => Self::Noted(Field::IfUnmodifiedSince),
            _ => return None,
        })
    }
}

/// A head whose fields are still being read.
struct Draft {
    head: Head,
    body: framing::Fields,
    connection: Connection,
}

impl Draft {
    /// Handles a target that does not start with a slash. Returns the position of its host.
    #[cold]
    fn other_form(&mut self, bytes: &[u8]) -> Result<Option<Span>, Refusal> {
        let (start, end) = (self.head.target.start(), self.head.target.end());
        let target = &bytes[start..end];
        let scheme = |scheme: &[u8]| {
            target
                .get(..scheme.len())
                .is_some_and(|it| it.eq_ignore_ascii_case(scheme))
        };
        let host_start = match self.head.method {
            Method::Connect if host::has_port(target) => {
                self.head.path = Span::new(end, end);
                return Ok(Some(self.head.target));
            }
            Method::Options if target == b"*" => return Ok(None),
            Method::Connect => return Err(Refusal::new(Kind::TargetForm, start)),
            _ if scheme(b"http://") => start + 7,
            _ if scheme(b"https://") => start + 8,
            _ => return Err(Refusal::new(Kind::TargetForm, start)),
        };
        let path_end = self.head.path.end();
        let slash = bytes[host_start..path_end]
            .iter()
            .position(|&byte| byte == b'/');
        let host_end = slash.map_or(path_end, |len| host_start + len);
        let text = &bytes[host_start..host_end];
        if text.is_empty() || text[0] == b':' || !host::is_valid(text) {
            return Err(Refusal::new(Kind::TargetHost, host_start));
        }
        self.head.path = Span::new(host_end, path_end);
        Ok(Some(Span::new(host_start, host_end)))
    }

    #[inline(always)]
    fn field(&mut self, known: Known, bytes: &[u8], value: Span) -> Result<(), Refusal> {
        match known {
            Known::Noted(Field::Host) => {
                if !self.head.spans[Field::Host as usize].is_absent() {
                    return Err(Refusal::new(Kind::HostTwice, value.start()));
                }
                if !host::is_valid(value.of(bytes)) {
                    return Err(Refusal::new(Kind::HostInvalid, value.start()));
                }
                self.head.note(Field::Host, value);
            }
            Known::Noted(field) => self.head.note(field, value),
            Known::Connection => self.connection.field(value.of(bytes)),
            Known::ContentLength => self.body.content_length(bytes, value)?,
            Known::TransferEncoding => self.body.transfer_encoding(bytes, value)?,
            Known::Expect => {
                self.head.expect_continue |= value.of(bytes).eq_ignore_ascii_case(b"100-continue")
            }
        }
        Ok(())
    }

    /// Returns the head after all fields were read. `host` is that of the target, which takes
    /// precedence.
    #[inline(always)]
    fn finish(mut self, len: usize, host: Option<Span>) -> Result<Head, Refusal> {
        let head = &mut self.head;
        let http11 = head.version == Version::Http11;
        if http11 && head.spans[Field::Host as usize].is_absent() {
            return Err(Refusal::new(Kind::HostMissing, len));
        }
        head.framing = self.body.of_request(http11, len)?;
        head.keep_alive = self.connection.is_kept(head.version);
        head.expect_continue &= http11 && head.framing != Framing::None;
        head.len = len as u16;
        if let Some(host) = host {
            head.spans[Field::Host as usize] = host;
        }
        Ok(self.head)
    }
}
