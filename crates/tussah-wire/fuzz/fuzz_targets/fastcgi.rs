//! A FastCGI response gives the same result whether it arrives whole or in pieces, and the head of
//! a CGI response does not depend on the bytes after it.

#![no_main]

use std::num::NonZeroU16;

use libfuzzer_sys::fuzz_target;
use tussah_wire::cgi;
use tussah_wire::fastcgi::{Event, Pairs, Parser, push_pair};

/// Returns the streams, and the other events and the error as text.
fn read<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> (Vec<u8>, Vec<u8>, Vec<String>) {
    let mut parser = Parser::new(NonZeroU16::MIN);
    let (mut stdout, mut stderr, mut events) = (Vec::new(), Vec::new(), Vec::new());
    for mut piece in pieces {
        while !piece.is_empty() && !parser.is_done() {
            let step = match parser.parse(piece) {
                Ok(step) => step,
                Err(error) => {
                    events.push(error.to_string());
                    return (stdout, stderr, events);
                }
            };
            assert!(step.consumed > 0);
            piece = &piece[step.consumed..];
            match step.event {
                Some(Event::Stdout(text)) => stdout.extend_from_slice(text),
                Some(Event::Stderr(text)) => stderr.extend_from_slice(text),
                Some(event) => events.push(format!("{event:?}")),
                None => {}
            }
        }
    }
    (stdout, stderr, events)
}

fuzz_target!(|bytes: &[u8]| {
    assert_eq!(read([bytes]), read(bytes.chunks(1 + bytes.len() % 7)));

    let mut out = Vec::new();
    for (name, value) in Pairs::new(bytes).map_while(Result::ok) {
        push_pair(&mut out, name, value);
    }
    // A length below 128 may have taken four bytes.
    assert!(out.len() <= bytes.len());

    let limits = cgi::Limits::default();
    let whole = cgi::parse(bytes, &limits);
    let part = cgi::parse(&bytes[..bytes.len() / 2], &limits);
    assert!(part == Ok(None) || part == whole);
    if let Ok(Some(head)) = whole {
        assert!(head.fields(bytes).all(|(_, value)| !value.contains(&b'\n')));
    }
    let (script, info) = cgi::split_path_info(bytes, b".php");
    assert_eq!([script, info].concat(), bytes);
});
