//! Tests of the payloads, with the layouts of section 3.2.

use super::*;
use crate::gnutella::{HitResult, Results, Trailer};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(208, 17, 50, 4);

/// Checks that `bytes` are parsed to `payload`, and `payload` is written as `bytes`.
fn check(payload: Payload<'_>, bytes: &[u8]) {
    assert_eq!(Payload::parse(payload.kind(), bytes), Ok(payload));
    let mut out = Vec::new();
    let id = Guid(*b"0123456789abcdef");
    push_descriptor(&mut out, id, 5, 2, &payload).unwrap();
    assert_eq!(out[..16], id.0);
    assert_eq!(out[16..19], [payload.kind().number(), 5, 2]);
    assert_eq!(out[19..23], (bytes.len() as u32).to_le_bytes());
    assert_eq!(out[23..], *bytes);
}

#[test]
fn payloads() {
    check(Payload::Ping(b""), b"");
    check(Payload::Ping(b"\xc3"), b"\xc3");
    check(Payload::Other(0x31, b"GTKG"), b"GTKG");
    // The address is big-endian, and everything else is little-endian.
    let pong = Pong {
        port: 6346,
        address: ADDRESS,
        files: 3,
        kilobytes: 0x0102_0304,
        extension: b"ggep",
    };
    let bytes = b"\xca\x18\xd0\x11\x32\x04\x03\0\0\0\x04\x03\x02\x01ggep";
    check(Payload::Pong(pong), bytes);
    let query = Query {
        min_speed: 0x80c0,
        criteria: b"wild silk",
        extension: b"urn:\0x",
    };
    check(Payload::Query(query), b"\xc0\x80wild silk\0urn:\0x");
    let push = Push {
        servent: Guid(*b"servent_servent_"),
        index: 2468,
        address: ADDRESS,
        port: 6346,
        extension: b"",
    };
    let bytes = b"servent_servent_\xa4\x09\0\0\xd0\x11\x32\x04\xca\x18";
    check(Payload::Push(push), bytes);
    // An example of section 6 of the document on Bye.
    let bye = Bye {
        code: 200,
        text: b"Shutting Down\r\nServer: my server/version\r\n\r\n",
    };
    let bytes = b"\xc8\0Shutting Down\r\nServer: my server/version\r\n\r\n\0";
    check(Payload::Bye(bye), bytes);
}

/// The result of section 5, and one more.
#[test]
fn query_hits() {
    let files = [
        HitResult {
            index: 2468,
            size: 4_356_789,
            name: b"Foobar.mp3",
            extension: b"",
        },
        HitResult {
            index: 1,
            size: 0,
            name: b"",
            extension: b"urn:sha1:",
        },
    ];
    let mut results = Vec::new();
    files
        .iter()
        .for_each(|file| file.push(&mut results).unwrap());
    let mut trailer = Vec::new();
    let parts = Trailer {
        vendor: *b"GTKG",
        open: b"\x1c\x19",
        private: b"\xc3",
    };
    parts.push(&mut trailer);
    let hits = QueryHits {
        port: 6346,
        address: ADDRESS,
        speed: 56,
        results: Results::new(&results).unwrap(),
        trailer: &trailer,
        servent: Guid(*b"servent_servent_"),
    };
    let bytes = [
        &b"\x02\xca\x18\xd0\x11\x32\x04\x38\0\0\0"[..],
        b"\xa4\x09\0\0\xb5\x7a\x42\0Foobar.mp3\0\0",
        b"\x01\0\0\0\0\0\0\0\0urn:sha1:\0",
        b"GTKG\x02\x1c\x19\xc3servent_servent_",
    ]
    .concat();
    check(Payload::QueryHits(hits), &bytes);
    assert_eq!(hits.results.len(), 2);
    assert_eq!(hits.results.collect::<Vec<_>>(), files);
    assert_eq!(Trailer::parse(hits.trailer), Some(parts));
}

#[test]
fn incomplete_payloads() {
    let check = |kind: Kind, bytes: &[u8], expected: &str| {
        let error = Payload::parse(kind, bytes).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    let end = "found the end of the payload";
    check(
        Kind::Pong,
        b"\0",
        &format!("byte 1: expected a port of two bytes, {end}"),
    );
    check(
        Kind::Pong,
        &[0; 13],
        &format!("byte 13: expected a number of kilobytes in four bytes, {end}"),
    );
    check(
        Kind::Query,
        b"\0\0abc",
        &format!("byte 5: expected a NUL after the search criteria, {end}"),
    );
    check(
        Kind::Push,
        &[0; 25],
        &format!("byte 25: expected a port of two bytes, {end}"),
    );
    check(
        Kind::Bye,
        b"",
        &format!("byte 0: expected a code of two bytes, {end}"),
    );
    check(
        Kind::QueryHits,
        &[0; 15],
        &format!("byte 15: expected the identifier of a servent, of 16 bytes, {end}"),
    );
    check(
        Kind::QueryHits,
        &[0; 26],
        &format!("byte 10: expected a speed in four bytes, {end}"),
    );
    // The identifier of the servent does not belong to the results.
    let hits = [
        &b"\x01\xca\x18\xd0\x11\x32\x04\0\0\0\0"[..],
        &[0; 10],
        &[7; 15],
    ]
    .concat();
    check(
        Kind::QueryHits,
        &hits,
        &format!("byte 20: expected a second NUL after the name of the file, {end}"),
    );
}

#[test]
fn a_goodbye_may_lack_its_nul() {
    let bye = Bye {
        code: 502,
        text: b"full",
    };
    assert_eq!(
        Payload::parse(Kind::Bye, b"\xf6\x01full"),
        Ok(Payload::Bye(bye))
    );
}

#[test]
fn invalid_payloads_are_not_written() {
    let mut out = b"before".to_vec();
    let mut check = |payload: Payload<'_>, expected: &str| {
        let error = push_descriptor(&mut out, Guid([0; 16]), 1, 0, &payload).unwrap_err();
        assert_eq!(
            (error.to_string(), &out[..]),
            (expected.to_owned(), &b"before"[..])
        );
    };
    let text = b"a\0b";
    let query = Query {
        min_speed: 0,
        criteria: text,
        extension: b"",
    };
    let nul = "byte 1: expected text without NUL, found 0x00";
    check(Payload::Query(query), nul);
    check(Payload::Bye(Bye { code: 200, text }), nul);
    let long = vec![0; PAYLOAD_BYTES_MAX + 1];
    check(
        Payload::Ping(&long),
        "byte 0: expected a payload of at most 64 KiB, found 65537",
    );
    let file = HitResult {
        index: 0,
        size: 0,
        name: b"a",
        extension: text,
    };
    let mut results = Vec::new();
    assert!(file.push(&mut results).is_err() && results.is_empty());
    let many = b"\0\0\0\0\0\0\0\0\0\0".repeat(255);
    assert_eq!(Results::new(&many).map(|results| results.len()), Ok(255));
    let error = Results::new(&[&many[..], &many[..10]].concat()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "byte 2550: expected at most 255 results, found one more"
    );
}
