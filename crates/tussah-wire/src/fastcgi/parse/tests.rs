//! Tests of the parser, with the responses of appendix B.

use super::*;

fn parser() -> Parser {
    Parser::new(NonZeroU16::MIN)
}

/// Returns the events in `bytes`, of which each call gets `piece_len`.
fn events(bytes: &[u8], piece_len: usize) -> Result<Vec<Event<'_>>, Malformed> {
    let mut parser = parser();
    let mut events = Vec::new();
    for mut piece in bytes.chunks(piece_len) {
        while !piece.is_empty() && !parser.is_done() {
            let step = parser.parse(piece)?;
            assert!(step.consumed > 0 && parser.kept.len() <= VALUES_BYTES_MAX);
            piece = &piece[step.consumed..];
            events.extend(step.event);
        }
    }
    Ok(events)
}

const END: EndRequest = EndRequest {
    app_status: 0,
    status: ProtocolStatus::RequestComplete,
};

/// The first response of appendix B, with padding.
#[test]
fn a_response() {
    let head = b"Content-type: text/html\r\n\r\n<html>";
    let bytes = [
        &b"\x01\x06\0\x01\0\x21\x07\0"[..],
        head,
        b"1234567",
        b"\x01\x06\0\x01\0\0\0\0",
        b"\x01\x03\0\x01\0\x08\0\0\0\0\0\0\0\0\0\0",
    ]
    .concat();
    let expected = [Event::Stdout(head), Event::End(END)];
    assert_eq!(events(&bytes, bytes.len()), Ok(expected.to_vec()));
    let bytewise = events(&bytes, 1).unwrap();
    assert_eq!(bytewise.len(), head.len() + 1);
    assert_eq!(bytewise[5], Event::Stdout(b"n"));
}

/// The third response of appendix B: an error message, and a status of the application.
#[test]
fn an_error() {
    let bytes = [
        &b"\x01\x07\0\x01\0\x15\x02\0config error: missing  "[..],
        b"\x01\x06\0\x01\0\x02\0\0hi",
        b"\x01\x06\0\x01\0\0\0\0\x01\x07\0\x01\0\0\0\0",
        b"\x01\x03\0\x01\0\x08\0\0\0\0\x03\xaa\0\0\0\0",
    ]
    .concat();
    let end = EndRequest {
        app_status: 938,
        ..END
    };
    let expected = [
        Event::Stderr(b"config error: missing"),
        Event::Stdout(b"hi"),
        Event::End(end),
    ];
    assert_eq!(events(&bytes, 300), Ok(expected.to_vec()));
}

#[test]
fn the_end_comes_after_its_padding() {
    let mut parser = parser();
    let bytes = b"\x01\x03\0\x01\0\x08\x02\0\0\0\0\x01\x02\0\0\0..next";
    let step = parser.parse(&bytes[..17]).unwrap();
    assert_eq!((step.consumed, step.event), (17, None));
    assert!(!parser.is_done());
    let step = parser.parse(&bytes[17..]).unwrap();
    let status = ProtocolStatus::Overloaded;
    let end = EndRequest {
        app_status: 1,
        status,
    };
    assert_eq!((step.consumed, step.event), (1, Some(Event::End(end))));
    assert!(parser.is_done() && !status.is_complete());
    assert_eq!(parser.parse(b"next").unwrap().consumed, 0);
}

#[test]
fn management_records() {
    let values =
        b"\x0e\x02FCGI_MAX_CONNS16\x0d\x04FCGI_MAX_REQSmany\x0f\x01FCGI_MPXS_CONNS0\x01\x01ab";
    let bytes = [
        &[1, 10, 0, 0, 0, values.len() as u8, 1, 0],
        &values[..],
        b".\x01\x0b\0\0\0\x08\0\0\x63\0\0\0\0\0\0\0",
    ]
    .concat();
    let values = Values {
        max_conns: Some(16),
        max_reqs: None,
        mpxs_conns: Some(false),
    };
    let expected = [Event::Values(values), Event::UnknownType(0x63)];
    for piece_len in 1..bytes.len() {
        assert_eq!(events(&bytes, piece_len), Ok(expected.to_vec()));
    }
}

#[test]
fn malformed_records() {
    let check = |bytes: &[u8], expected: &str| {
        for piece_len in 1..=bytes.len() {
            let error = events(bytes, piece_len).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    };
    check(
        b"HTTP/1.1 200 OK",
        "byte 0: expected version 1 of FastCGI, found 72",
    );
    check(
        b"\x01\x01\0\x01\0\x08\0\0",
        "byte 1: expected a type of record for a web server, found 1",
    );
    let number = "expected the number of the request, or 0 for management";
    check(
        b"\x01\x06\0\x02\0\0\0\0",
        &format!("byte 2: {number}, found 2"),
    );
    check(
        b"\x01\x0b\0\x01\0\x08\0\0",
        &format!("byte 2: {number}, found 1"),
    );
    check(
        b"\x01\x03\0\x01\0\x07\0\0",
        "byte 4: expected a content of 8 bytes, found 7",
    );
    check(
        b"\x01\x0b\0\0\0\0\0\0",
        "byte 4: expected a content of 8 bytes, found 0",
    );
    check(
        b"\x01\x0a\0\0\x02\x01\0\0",
        "byte 4: expected values of at most 512 bytes, found 513",
    );
    check(
        b"\x01\x06\0\x01\0\0\0\0\x01\x06\0\x01\0\x01\0\0",
        "byte 12: expected no content after the end of the stream, found 1",
    );
    check(
        b"\x01\x03\0\x01\0\x08\0\0\0\0\0\0\x04\0\0\0",
        "byte 12: expected a protocol status from 0 to 3, found 4",
    );
    check(
        b"\x01\x0a\0\0\0\x02\x01\0\x05\0.",
        "byte 10: expected as many bytes as the name has, found 0",
    );
}
