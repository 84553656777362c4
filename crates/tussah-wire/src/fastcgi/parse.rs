//! The parser for the records that an application sends.

use std::num::NonZeroU16;

use super::{HEADER_BYTES, MAX_CONNS, MAX_REQS, MPXS_CONNS, Pairs, Record, VERSION};
use crate::http::decimal;
use crate::malformed::{Found, Malformed};

/// Bound, in bytes: the maximum length of the content of `GET_VALUES_RESULT`, which the parser
/// buffers until it is complete. The three values that `GET_VALUES` asks for occupy about 60 bytes.
pub const VALUES_BYTES_MAX: usize = 512;

/// The length of the body of `END_REQUEST` and `UNKNOWN_TYPE`, in bytes.
const BODY_BYTES: usize = 8;

/// The result of one call to [`Parser::parse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<'b> {
    /// Number of bytes consumed.
    pub consumed: usize,
    /// The event that the consumed bytes complete, if any.
    pub event: Option<Event<'b>>,
}

/// An event in the response of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'b> {
    /// The next bytes of the CGI response, which the application writes to its standard output. The
    /// slice contains at least one byte.
    Stdout(&'b [u8]),
    /// The next bytes of the log messages that the application writes to its standard error. The
    /// slice contains at least one byte.
    Stderr(&'b [u8]),
    /// The end of the request.
    End(EndRequest),
    /// The response to `GET_VALUES`.
    Values(Values),
    /// The application does not recognize management records of this type (section 4.2).
    UnknownType(u8),
}

/// The end of a request (section 5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndRequest {
    /// The exit status of the application, with the same meaning as that of a CGI program.
    pub app_status: u32,
    /// The reason why the request ended.
    pub status: ProtocolStatus,
}

/// The reason why a request ended (section 5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolStatus {
    /// The request was handled.
    RequestComplete,
    /// The application rejected the request, because it handles only one request at a time on a
    /// connection.
    CantMultiplex,
    /// The application rejected the request, because it has run out of a resource.
    Overloaded,
    /// The application rejected the request, because it does not support the requested role.
    UnknownRole,
}

impl ProtocolStatus {
    /// Returns whether the application handled the request, instead of rejecting it.
    pub fn is_complete(self) -> bool {
        self == Self::RequestComplete
    }
}

/// The values that an application reports about itself (section 4.1).
///
/// A value is absent if the application did not send it, or sent something other than a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// The maximum number of simultaneous connections.
    pub max_conns: Option<u64>,
    /// The maximum number of simultaneous requests.
    pub max_reqs: Option<u64>,
    /// True if a connection may carry several requests at the same time.
    pub mpxs_conns: Option<bool>,
}

impl Values {
    fn parse(content: &[u8]) -> Result<Self, Malformed> {
        let mut values = Self::default();
        for pair in Pairs::new(content) {
            match pair? {
                (MAX_CONNS, value) => values.max_conns = decimal(value),
                (MAX_REQS, value) => values.max_reqs = decimal(value),
                (MPXS_CONNS, value) => values.mpxs_conns = decimal(value).map(|value| value > 0),
                _ => {}
            }
        }
        Ok(values)
    }
}

/// A parser for the records that an application sends for one request, and for the response to
/// `GET_VALUES`.
///
/// The parser buffers at most [`VALUES_BYTES_MAX`] bytes, because it passes streams on as they
/// arrive. If the connection ends before [`is_done`](Parser::is_done) returns true, the response is
/// incomplete.
#[derive(Clone, Debug)]
pub struct Parser {
    id: NonZeroU16,
    expect: Expect,
    /// The header, or the content that has to be complete before it means something.
    kept: Vec<u8>,
    stdout_ended: bool,
    stderr_ended: bool,
    /// Bytes consumed so far, for the position in an error.
    at: u64,
    /// The position of the content of the record.
    content_at: u64,
}

/// The next bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    /// More of a header.
    Header,
    /// `left` bytes of content of a record, and its padding.
    Content {
        record: Record,
        left: u16,
        padding: u8,
    },
    /// The given number of bytes of padding, after which `record` is complete.
    Padding { record: Record, left: u8 },
    /// Nothing.
    Nothing,
}

impl Expect {
    /// Returns the rest of a record with `left` bytes of content and this much padding.
    fn rest(record: Record, left: u16, padding: u8) -> Self {
        match left {
            0 => Self::Padding {
                record,
                left: padding,
            },
            _ => Self::Content {
                record,
                left,
                padding,
            },
        }
    }
}

impl Parser {
    /// Creates a parser for the response to the request with the number `id`.
    pub fn new(id: NonZeroU16) -> Self {
        Self {
            id,
            expect: Expect::Header,
            kept: Vec::new(),
            stdout_ended: false,
            stderr_ended: false,
            at: 0,
            content_at: 0,
        }
    }

    /// Returns whether the request has ended and the connection is ready for another request. If
    /// the application sends more bytes before it receives the next request, it violates the
    /// protocol.
    pub fn is_done(&self) -> bool {
        self.expect == Expect::Nothing
    }

    /// Parses the next bytes, up to the next event. `bytes` must start with the first byte that has
    /// not been consumed.
    ///
    /// Each call consumes at least one byte, unless `bytes` is empty or the request has ended.
    ///
    /// # Errors
    ///
    /// Returns an error if a record has an unknown version or type, belongs to another request, has
    /// a wrong length, or adds content to a stream that has ended. The parser must not be used
    /// after an error.
    pub fn parse<'b>(&mut self, bytes: &'b [u8]) -> Result<Step<'b>, Malformed> {
        let mut consumed = 0;
        let mut event = None;
        while event.is_none() && consumed < bytes.len() && !self.is_done() {
            let rest = &bytes[consumed..];
            let (len, found) = match self.expect {
                Expect::Header => (self.header(rest)?, None),
                Expect::Content {
                    record,
                    left,
                    padding,
                } => self.content(rest, record, left, padding),
                Expect::Padding { record, left } => {
                    let len = rest.len().min(left.into());
                    let left = left - len as u8;
                    self.expect = Expect::Padding { record, left };
                    (len, None)
                }
                Expect::Nothing => (0, None),
            };
            self.at += len as u64;
            consumed += len;
            event = match self.expect {
                Expect::Padding { record, left: 0 } => self.end_record(record)?.or(found),
                _ => found,
            };
        }
        Ok(Step { consumed, event })
    }

    /// Takes bytes of a header (section 3.3). Returns their number.
    fn header(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let len = bytes.len().min(HEADER_BYTES - self.kept.len());
        self.kept.extend_from_slice(&bytes[..len]);
        let Ok(header) = <[u8; HEADER_BYTES]>::try_from(&self.kept[..]) else {
            return Ok(len);
        };
        self.kept.clear();
        let [
            version,
            record,
            id_high,
            id_low,
            len_high,
            len_low,
            padding,
            _,
        ] = header;
        self.content_at = self.at + len as u64;
        // Some bytes of the header may have arrived earlier.
        let start = self.content_at - HEADER_BYTES as u64;
        let error =
            |at, expected, found| Err(Malformed::new(start + at, expected, Found::Number(found)));
        if version != VERSION {
            return error(0, "version 1 of FastCGI", version.into());
        }
        let (record, id) = match record {
            3 => (Record::EndRequest, self.id.get()),
            6 => (Record::Stdout, self.id.get()),
            7 => (Record::Stderr, self.id.get()),
            10 => (Record::GetValuesResult, 0),
            11 => (Record::UnknownType, 0),
            _ => return error(1, "a type of record for a web server", record.into()),
        };
        let found = u16::from_be_bytes([id_high, id_low]);
        if found != id {
            return error(
                2,
                "the number of the request, or 0 for management",
                found.into(),
            );
        }
        let left = u16::from_be_bytes([len_high, len_low]);
        let content_len = usize::from(left);
        let has_ended = match record {
            Record::Stdout => &mut self.stdout_ended,
            Record::Stderr => &mut self.stderr_ended,
            Record::GetValuesResult if content_len > VALUES_BYTES_MAX => {
                return error(4, "values of at most 512 bytes", left.into());
            }
            Record::EndRequest | Record::UnknownType if content_len != BODY_BYTES => {
                return error(4, "a content of 8 bytes", left.into());
            }
            _ => &mut false,
        };
        if *has_ended && left > 0 {
            return error(4, "no content after the end of the stream", left.into());
        }
        *has_ended |= left == 0;
        self.expect = Expect::rest(record, left, padding);
        Ok(len)
    }

    /// Takes bytes of the content of `record`. Returns their number, and an event if they belong to
    /// a stream.
    fn content<'b>(
        &mut self,
        bytes: &'b [u8],
        record: Record,
        left: u16,
        padding: u8,
    ) -> (usize, Option<Event<'b>>) {
        let taken = &bytes[..bytes.len().min(left.into())];
        let event = match record {
            Record::Stdout => Some(Event::Stdout(taken)),
            Record::Stderr => Some(Event::Stderr(taken)),
            _ => {
                self.kept.extend_from_slice(taken);
                None
            }
        };
        self.expect = Expect::rest(record, left - taken.len() as u16, padding);
        (taken.len(), event)
    }

    /// Returns the event that the content of a complete record stands for.
    fn end_record(&mut self, record: Record) -> Result<Option<Event<'static>>, Malformed> {
        self.expect = Expect::Header;
        let event = match (record, &self.kept[..]) {
            (Record::EndRequest, &[b3, b2, b1, b0, status, ..]) => {
                self.expect = Expect::Nothing;
                let status = match status {
                    0 => ProtocolStatus::RequestComplete,
                    1 => ProtocolStatus::CantMultiplex,
                    2 => ProtocolStatus::Overloaded,
                    3 => ProtocolStatus::UnknownRole,
                    _ => {
                        let found = Found::Number(status.into());
                        let expected = "a protocol status from 0 to 3";
                        return Err(Malformed::new(self.content_at + 4, expected, found));
                    }
                };
                Some(Event::End(EndRequest {
                    app_status: u32::from_be_bytes([b3, b2, b1, b0]),
                    status,
                }))
            }
            (Record::UnknownType, &[unknown, ..]) => Some(Event::UnknownType(unknown)),
            (Record::GetValuesResult, content) => {
                let values = Values::parse(content);
                Some(Event::Values(
                    values.map_err(|error| error.after(self.content_at))?,
                ))
            }
            _ => None,
        };
        self.kept.clear();
        Ok(event)
    }
}

#[cfg(test)]
mod tests;
