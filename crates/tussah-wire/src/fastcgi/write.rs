//! The records that a web server sends.

use std::num::NonZeroU16;

use super::pairs::push_pair;
use super::{HEADER_BYTES, MAX_CONNS, MAX_REQS, MPXS_CONNS, Record, VERSION};

/// Bound, in bytes: the maximum length of the content of a record that is sent. This length fits in
/// 16 bits, and is a multiple of eight (section 3.3).
pub const CONTENT_BYTES_MAX: usize = u16::MAX as usize & !7;

/// The number of a record that belongs to no request (section 3.3).
const MANAGEMENT: u16 = 0;

/// The role of the application (section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Answers a request, like a CGI program (section 6.2).
    Responder = 1,
    /// Decides whether a request is allowed (section 6.3).
    Authorizer = 2,
    /// Answers a request by processing a file that the web server sends as [`Stream::Data`]
    /// (section 6.4).
    Filter = 3,
}

/// A stream from the web server to the application (sections 5.2 and 5.3).
///
/// A stream consists of any number of records with content, followed by an empty record that ends
/// the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The variables of the request, as name-value pairs.
    Params,
    /// The body of the request.
    Stdin,
    /// The file that a [`Role::Filter`] processes.
    Data,
}

impl Stream {
    fn record(self) -> Record {
        match self {
            Self::Params => Record::Params,
            Self::Stdin => Record::Stdin,
            Self::Data => Record::Data,
        }
    }
}

/// A record that carries part of a stream. To send the record, send its header, its content and its
/// padding, in this order.
///
/// The content is borrowed, so that a vectored write can send it without a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk<'b> {
    /// The header of the record.
    pub header: [u8; HEADER_BYTES],
    /// The content, which is never empty.
    pub content: &'b [u8],
    /// Zeros that make the length of the record a multiple of eight bytes.
    pub padding: &'static [u8],
}

/// Splits `content` into records of a stream. If `content` is empty, there are no records, and the
/// stream does not end.
///
/// ```
/// use std::num::NonZeroU16;
/// use tussah_wire::fastcgi::{self, Stream};
///
/// let body = vec![b'x'; 100_000];
/// let chunks: Vec<_> = fastcgi::chunks(Stream::Stdin, NonZeroU16::MIN, &body).collect();
/// assert_eq!((chunks[0].content.len(), chunks[1].content.len()), (65_528, 34_472));
/// ```
pub fn chunks(stream: Stream, id: NonZeroU16, content: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    content.chunks(CONTENT_BYTES_MAX).map(move |content| Chunk {
        header: header(stream.record(), id.get(), content.len()),
        content,
        padding: padding(content.len()),
    })
}

/// Appends `content` as records of a stream. If `content` is empty, nothing is appended.
pub fn push_stream(out: &mut Vec<u8>, stream: Stream, id: NonZeroU16, content: &[u8]) {
    for chunk in chunks(stream, id, content) {
        out.extend_from_slice(&chunk.header);
        out.extend_from_slice(chunk.content);
        out.extend_from_slice(chunk.padding);
    }
}

/// Appends the empty record that ends a stream.
pub fn push_stream_end(out: &mut Vec<u8>, stream: Stream, id: NonZeroU16) {
    out.extend_from_slice(&header(stream.record(), id.get(), 0));
}

/// Appends `BEGIN_REQUEST` (section 5.1). If `keep_conn` is true, the application keeps the
/// connection open after the response.
pub fn push_begin_request(out: &mut Vec<u8>, id: NonZeroU16, role: Role, keep_conn: bool) {
    out.extend_from_slice(&header(Record::BeginRequest, id.get(), 8));
    out.extend_from_slice(&[0, role as u8, keep_conn.into(), 0, 0, 0, 0, 0]);
}

/// Appends `ABORT_REQUEST` (section 5.4). The aborted request remains open until the application
/// ends it.
pub fn push_abort_request(out: &mut Vec<u8>, id: NonZeroU16) {
    out.extend_from_slice(&header(Record::AbortRequest, id.get(), 0));
}

/// Appends `GET_VALUES`, which asks for the three values of [`Values`](super::Values) (section
/// 4.1).
pub fn push_get_values(out: &mut Vec<u8>) {
    let mut content = Vec::new();
    for name in [MAX_CONNS, MAX_REQS, MPXS_CONNS] {
        push_pair(&mut content, name, b"");
    }
    out.extend_from_slice(&header(Record::GetValues, MANAGEMENT, content.len()));
    out.extend_from_slice(&content);
    out.extend_from_slice(padding(content.len()));
}

/// Returns the header of a record (section 3.3).
fn header(record: Record, id: u16, content_len: usize) -> [u8; HEADER_BYTES] {
    debug_assert!(content_len <= CONTENT_BYTES_MAX);
    let [id_high, id_low] = id.to_be_bytes();
    let [len_high, len_low] = (content_len as u16).to_be_bytes();
    let padding_len = padding(content_len).len() as u8;
    [
        VERSION,
        record as u8,
        id_high,
        id_low,
        len_high,
        len_low,
        padding_len,
        0,
    ]
}

/// Returns the padding that section 3.3 recommends.
fn padding(content_len: usize) -> &'static [u8] {
    &[0; 7][..content_len.wrapping_neg() % 8]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    /// The second request of appendix B.
    #[test]
    fn a_request_with_data_on_stdin() {
        let id = NonZeroU16::MIN;
        let out = written(|out| {
            push_begin_request(out, id, Role::Responder, false);
            let params = written(|out| push_pair(out, b"SERVER_PORT", b"80"));
            push_stream(out, Stream::Params, id, &params);
            push_stream_end(out, Stream::Params, id);
            push_stream(out, Stream::Stdin, id, b"quantity=100&item=3047936");
            push_stream_end(out, Stream::Stdin, id);
        });
        let expected = [
            &b"\x01\x01\0\x01\0\x08\0\0\0\x01\0\0\0\0\0\0"[..],
            b"\x01\x04\0\x01\0\x0f\x01\0\x0b\x02SERVER_PORT80\0",
            b"\x01\x04\0\x01\0\0\0\0",
            b"\x01\x05\0\x01\0\x19\x07\0quantity=100&item=3047936\0\0\0\0\0\0\0",
            b"\x01\x05\0\x01\0\0\0\0",
        ];
        assert_eq!(out, expected.concat());
    }

    #[test]
    fn numbers_have_two_bytes() {
        let id = NonZeroU16::new(0x1234).unwrap();
        let begin = written(|out| push_begin_request(out, id, Role::Filter, true));
        assert_eq!(begin, b"\x01\x01\x12\x34\0\x08\0\0\0\x03\x01\0\0\0\0\0");
        let abort = written(|out| push_abort_request(out, id));
        assert_eq!(abort, b"\x01\x02\x12\x34\0\0\0\0");
        let data = written(|out| push_stream(out, Stream::Data, id, &[7; 0x108]));
        assert_eq!(data[..9], *b"\x01\x08\x12\x34\x01\x08\0\0\x07");
    }

    #[test]
    fn values_are_asked_for() {
        let expected =
            b"\x01\x09\0\0\0\x30\0\0\x0e\0FCGI_MAX_CONNS\x0d\0FCGI_MAX_REQS\x0f\0FCGI_MPXS_CONNS";
        assert_eq!(written(push_get_values), expected);
    }

    #[test]
    fn a_long_content_is_split() {
        let content: Vec<u8> = (0..2 * CONTENT_BYTES_MAX + 1).map(|at| at as u8).collect();
        let chunks: Vec<_> = chunks(Stream::Stdin, NonZeroU16::MIN, &content).collect();
        let contents: Vec<_> = chunks.iter().map(|chunk| chunk.content).collect();
        assert_eq!(contents.concat(), content);
        assert_eq!(chunks[1].header, *b"\x01\x05\0\x01\xff\xf8\0\0");
        assert_eq!(chunks[2].header, *b"\x01\x05\0\x01\0\x01\x07\0");
        assert_eq!(chunks[2].padding, [0; 7]);
    }

    #[test]
    fn no_content_is_no_record() {
        let push = |out: &mut Vec<u8>| push_stream(out, Stream::Stdin, NonZeroU16::MIN, b"");
        assert_eq!(written(push), b"");
    }
}
