//! Properties that hold for arbitrary bytes.

use proptest::collection::vec;
use proptest::prelude::*;
use tussah_wire::http::range::Ranges;
use tussah_wire::http::response::{self, HeadWriter};
use tussah_wire::http::{Framing, Method, Status, body, condition, encoding, head, target};

use crate::differential::soup;
use crate::session::{run, same};

/// Cuts `bytes` at these offsets, taken modulo its length.
pub(crate) fn cut<'b>(bytes: &'b [u8], places: &[usize]) -> Vec<&'b [u8]> {
    let mut places: Vec<_> = places
        .iter()
        .map(|place| place % (bytes.len() + 1))
        .collect();
    places.sort_unstable();
    let mut pieces = Vec::new();
    let mut start = 0;
    for place in places {
        pieces.push(&bytes[start..place]);
        start = place;
    }
    pieces.push(&bytes[start..]);
    pieces
}

/// Encodes a body in chunks of these sizes.
fn chunked(body: &[u8], sizes: &[usize]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = body;
    for &size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, after) = rest.split_at(size.min(rest.len()));
        bytes.extend_from_slice(format!("{:X};a=\"b\"\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
        rest = after;
    }
    bytes.extend_from_slice(b"0\r\nX: y\r\n\r\n");
    bytes
}

proptest! {
    #[test]
    fn nothing_panics(bytes in vec(any::<u8>(), 0..200), len in any::<u64>()) {
        let limits = head::Limits::default();
        let _ = run([&bytes[..]]);
        let _ = response::parse(&bytes, Method::Get, &limits);
        let _ = target::path(&bytes);
        let _ = target::query(&bytes).count();
        let _ = Ranges::parse(&[b"bytes=", &bytes[..]].concat(), len);
        let _ = encoding::Accepted::parse([&bytes[..]]).preferred(encoding::Codings::ALL);
        for name in ["If-Match", "If-None-Match", "If-Range", "If-Modified-Since"] {
            let request = [b"GET / HTTP/1.1\r\nHost: a\r\n", name.as_bytes(), b": ", &bytes, b"\r\n\r\n"].concat();
            if let Ok(Some(head)) = head::parse(&request, &limits) {
                let current = condition::Validators { etag: Some("\"a\""), modified: Some(0) };
                let _ = condition::evaluate(&head, &request, Some(&current));
                let _ = condition::range_counts(&head, &request, &current);
            }
        }
    }

    #[test]
    fn parsing_in_pieces_equals_parsing_the_whole(bytes in soup(), places in vec(any::<usize>(), 0..6)) {
        let whole = run([&bytes[..]]);
        let pieces = run(cut(&bytes, &places));
        prop_assert!(same(&whole, &pieces), "{:?} but {:?}", whole, pieces);
    }

    /// Bytes that follow a head change neither its refusal nor its acceptance.
    #[test]
    fn bytes_after_a_message_do_not_change_it(bytes in soup(), more in soup()) {
        let limits = head::Limits::default();
        let before = head::parse(&bytes, &limits);
        if before != Ok(None) {
            prop_assert_eq!(head::parse(&[bytes, more].concat(), &limits), before);
        }
    }

    #[test]
    fn chunks_are_put_together(body in vec(any::<u8>(), 0..300), sizes in vec(1_usize..100, 1..5), places in vec(any::<usize>(), 0..9)) {
        let bytes = [&chunked(&body, &sizes)[..], b"next"].concat();
        let limits = body::Limits { extension_bytes_max: usize::MAX, ..body::Limits::default() };
        let mut decoder = body::Decoder::new(Framing::Chunked, limits).unwrap();
        let mut decoded = Vec::new();
        let mut consumed = 0;
        for piece in cut(&bytes, &places) {
            let mut rest = piece;
            while !rest.is_empty() && !decoder.is_done() {
                let step = decoder.decode(rest).unwrap();
                decoded.extend_from_slice(&rest[step.body]);
                consumed += step.consumed;
                rest = &rest[step.consumed..];
            }
        }
        prop_assert!(decoder.is_done());
        prop_assert_eq!(decoded, body);
        prop_assert_eq!(&bytes[consumed..], b"next");
    }

    #[test]
    fn ranges_are_in_the_representation(
        specs in vec((any::<Option<u8>>(), any::<Option<u8>>()), 1..6),
        len in 0_u64..300,
    ) {
        let number = |number: Option<u8>| number.map(|number| number.to_string()).unwrap_or_default();
        let specs: Vec<_> = specs.into_iter().map(|(first, last)| format!("{}-{}", number(first), number(last))).collect();
        let ranges = match Ranges::parse(format!("bytes={}", specs.join(",")).as_bytes(), len) {
            Ranges::Whole | Ranges::Unsatisfiable => Vec::new(),
            Ranges::Single(range) => vec![range],
            Ranges::Several(ranges) => ranges,
        };
        for range in &ranges {
            prop_assert!(range.first <= range.last && range.last < len, "{:?} of {}", range, len);
        }
        prop_assert!(ranges.iter().map(|range| range.len()).sum::<u64>() <= len);
    }

    /// A decoded path has no dot segments, and normalizing it again after encoding changes nothing.
    #[test]
    fn paths_are_normal(segments in vec(prop::sample::select(vec!["a", ".", "..", "", "%2e", "%2E.", "b%20c", "...", "%C3%A9", "%25"]), 0..8)) {
        let raw = format!("/{}", segments.join("/"));
        let Ok(path) = target::path(raw.as_bytes()) else { return Ok(()) };
        prop_assert!(path.starts_with(b"/"));
        let inner: Vec<_> = path[1..].split(|&byte| byte == b'/').collect();
        for (place, segment) in inner.iter().enumerate() {
            prop_assert!(segment != b"." && segment != b"..");
            prop_assert!(!segment.is_empty() || place == inner.len() - 1);
        }
        let encoded: Vec<u8> = path.iter().flat_map(|&byte| match byte {
            b'/' => vec![b'/'],
            _ => format!("%{byte:02x}").into_bytes(),
        }).collect();
        prop_assert_eq!(target::path(&encoded), Ok(path.clone()));
    }

    /// Encoding each segment of a path separately gives a path with the same segments, whatever
    /// they contain. The path used for route lookup has the same number of segments.
    #[test]
    fn segments_are_kept_apart(segments in vec(prop::sample::select(vec!["a", "..%2f", ".", "..", "", "%2e", "a%5Cb", "%2F", "%00", "%252F", "%25"]), 0..8)) {
        let raw = format!("/{}", segments.join("/"));
        let Ok(path) = target::path_with_escapes(raw.as_bytes()) else {
            prop_assert!(target::segments(raw.as_bytes()).is_err());
            return Ok(());
        };
        let is_special = |byte: &u8| byte.is_ascii_control() || *byte == b'\\';
        prop_assert!(!path.iter().any(is_special));
        prop_assert!(target::path(raw.as_bytes()).map_or(true, |plain| plain == path));
        let segments: Vec<_> = target::segments(raw.as_bytes()).expect("it is the same path").collect();
        prop_assert_eq!(segments.len(), path.split(|&byte| byte == b'/').count() - 1);
        let encoded: Vec<u8> = segments.iter().flat_map(|segment| {
            let bytes = segment.iter().map(|byte| format!("%{byte:02x}"));
            format!("/{}", bytes.collect::<String>()).into_bytes()
        }).collect();
        let again: Vec<_> = target::segments(&encoded).expect("it is one too").collect();
        prop_assert_eq!(again, segments);
    }

    #[test]
    fn a_written_head_reads_back_unchanged(
        code in 200_u16..600,
        fields in vec(("[a-zA-Z][a-zA-Z0-9-]{0,20}", "\\PC{0,40}"), 0..20),
        len in any::<u64>(),
    ) {
        // These characters have a meaning for the parser.
        let mean = ["content-length", "transfer-encoding", "connection", "retry-after"];
        let status = Status::new(code).unwrap();
        let mut out = Vec::new();
        let mut writer = HeadWriter::new(&mut out, status);
        let mut written = Vec::new();
        for (name, value) in &fields {
            if !mean.contains(&&name.to_ascii_lowercase()[..]) && writer.field(name, value).is_ok() {
                written.push((name.as_bytes(), value.as_bytes()));
            }
        }
        let length = len.to_string();
        writer.content_length(len);
        written.push((b"Content-Length", length.as_bytes()));
        writer.end();

        let mut theirs = [httparse::EMPTY_HEADER; 32];
        let mut parsed = httparse::Response::new(&mut theirs);
        prop_assert_eq!(parsed.parse(&out), Ok(httparse::Status::Complete(out.len())));
        prop_assert_eq!((parsed.code, parsed.version, parsed.reason), (Some(code), Some(1), Some(status.reason())));
        let theirs: Vec<_> = parsed.headers.iter().map(|field| (field.name.as_bytes(), field.value)).collect();
        prop_assert_eq!(&theirs, &written);

        let head = response::parse(&out, Method::Get, &head::Limits::default()).unwrap().unwrap();
        prop_assert_eq!((head.status, head.len()), (status, out.len()));
        prop_assert_eq!(head.fields(&out).collect::<Vec<_>>(), written);
        prop_assert_eq!(head.framing, if status.has_body() { Framing::Length(len) } else { Framing::None });
    }
}
