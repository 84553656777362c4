//! FastCGI: properties that hold for arbitrary records and bytes.

use std::num::NonZeroU16;

use proptest::collection::vec;
use proptest::prelude::*;
use tussah_wire::fastcgi::{
    self, EndRequest, Event, Pairs, Parser, ProtocolStatus, Stream, VALUES_BYTES_MAX,
};

use crate::properties::cut;

/// The results of the parser: the streams put together, and the other events as text.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    events: Vec<String>,
    error: Option<String>,
    consumed: usize,
}

fn read(pieces: &[&[u8]]) -> Seen {
    let mut parser = Parser::new(NonZeroU16::MIN);
    let mut seen = Seen::default();
    for mut piece in pieces.iter().copied() {
        while !piece.is_empty() && !parser.is_done() {
            let step = match parser.parse(piece) {
                Ok(step) => step,
                Err(error) => {
                    // The position of an error does not depend on the pieces; `consumed` does.
                    seen.error = Some(error.to_string());
                    seen.consumed = 0;
                    return seen;
                }
            };
            assert!(step.consumed > 0, "no progress");
            seen.consumed += step.consumed;
            piece = &piece[step.consumed..];
            match step.event {
                Some(Event::Stdout(text)) => seen.stdout.extend_from_slice(text),
                Some(Event::Stderr(text)) => seen.stderr.extend_from_slice(text),
                Some(other) => seen.events.push(format!("{other:?}")),
                None => {}
            }
        }
    }
    seen
}

/// A record of an application: its type, number, content and padding.
fn record(record: u8, id: u8, content: &[u8], padding: u8) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    let header = [1, record, 0, id, high, low, padding, 0];
    [&header[..], content, &vec![b'p'; padding.into()]].concat()
}

/// Mostly valid records, one after the other.
fn records() -> impl Strategy<Value = Vec<u8>> {
    let one = (
        prop_oneof![
            4 => Just(6_u8),
            2 => Just(7),
            1 => Just(10),
            1 => Just(11),
            1 => Just(3),
            1 => any::<u8>(),
        ],
        vec(any::<u8>(), 0..30),
        any::<u8>(),
    );
    vec(one, 0..8).prop_map(|records| {
        let bytes = records.iter().map(|(kind, content, padding)| match kind {
            3 => record(
                3,
                1,
                &[0, 0, 0, 9, content.len() as u8 % 5, 0, 0, 0],
                *padding,
            ),
            11 => record(11, 0, &[*padding; 8], *padding),
            10 => record(10, 0, content, *padding),
            kind => record(*kind, 1, content, *padding),
        });
        bytes.collect::<Vec<_>>().concat()
    })
}

proptest! {
    #[test]
    fn records_in_pieces_equal_the_whole(bytes in records(), places in vec(any::<usize>(), 0..9)) {
        let whole = read(&[&bytes]);
        prop_assert_eq!(&read(&cut(&bytes, &places)), &whole);
        let bytewise: Vec<_> = bytes.chunks(1).collect();
        prop_assert_eq!(&read(&bytewise), &whole);
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..200)) {
        read(&[&bytes]);
        let pairs: Vec<_> = Pairs::new(&bytes).collect();
        prop_assert!(pairs.iter().rev().skip(1).all(Result::is_ok));
    }

    /// A response is read as it was written, and the rest is left alone.
    #[test]
    fn a_response_is_read_as_written(
        output in vec(any::<u8>(), 0..500),
        sizes in vec(1_usize..100, 1..5),
        padding in any::<u8>(),
        app_status in any::<u32>(),
    ) {
        let mut bytes = Vec::new();
        let mut rest = &output[..];
        for size in sizes.iter().cycle() {
            let (content, after) = rest.split_at(rest.len().min(*size));
            bytes.extend(record(6, 1, content, padding));
            if content.is_empty() {
                break;
            }
            rest = after;
        }
        let end = [&app_status.to_be_bytes()[..], &[0; 4]].concat();
        bytes.extend(record(3, 1, &end, padding));
        let len = bytes.len();
        bytes.extend_from_slice(b"rest");
        let seen = read(&[&bytes]);
        let end = EndRequest { app_status, status: ProtocolStatus::RequestComplete };
        prop_assert_eq!(seen.error, None);
        prop_assert_eq!((seen.stdout, seen.consumed), (output, len));
        prop_assert_eq!(seen.events, [format!("{:?}", Event::End(end))]);
    }

    #[test]
    fn pairs_are_read_as_written(pairs in vec((vec(any::<u8>(), 0..200), vec(any::<u8>(), 0..200)), 0..9)) {
        let mut bytes = Vec::new();
        for (name, value) in &pairs {
            fastcgi::push_pair(&mut bytes, name, value);
        }
        let read: Vec<_> = Pairs::new(&bytes)
            .map(|pair| pair.map(|(name, value)| (name.to_vec(), value.to_vec())).unwrap())
            .collect();
        prop_assert_eq!(read, pairs);
    }

    /// The records of a stream, without headers and padding, are its content.
    #[test]
    fn a_stream_is_its_chunks(len in 0_usize..200_000) {
        let content: Vec<u8> = (0..len).map(|at| (at / 7) as u8).collect();
        let mut bytes = Vec::new();
        fastcgi::push_stream(&mut bytes, Stream::Stdin, NonZeroU16::MIN, &content);
        let mut rest = &bytes[..];
        let mut read = Vec::new();
        while let Some((header, after)) = rest.split_first_chunk::<8>() {
            let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
            prop_assert!(len > 0);
            prop_assert_eq!((8 + len + usize::from(header[6])) % 8, 0);
            read.extend_from_slice(&after[..len]);
            rest = &after[len + usize::from(header[6])..];
        }
        prop_assert_eq!(read, content);
    }
}

/// A record of values that is too long is refused before its content is kept.
#[test]
fn long_values_are_refused() {
    let content = vec![0; VALUES_BYTES_MAX];
    assert_eq!(read(&[&record(10, 0, &content, 0)]).error, None);
    let error = read(&[&record(10, 0, &[&content[..], b"x"].concat(), 0)[..8]]).error;
    assert!(error.is_some());
}
