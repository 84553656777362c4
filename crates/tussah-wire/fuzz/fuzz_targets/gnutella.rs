//! Accepted descriptors are written as they were read, and a handshake does not depend on the bytes
//! after it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tussah_wire::gnutella::{
    Descriptor, HEADER_BYTES, LIFE_MAX, Limits, Payload, Trailer, handshake, push_descriptor,
};

fuzz_target!(|bytes: &[u8]| {
    let limits = handshake::Limits::default();
    let whole = handshake::parse(bytes, &limits);
    let part = handshake::parse(&bytes[..bytes.len() / 2], &limits);
    assert!(part == Ok(None) || part == whole);
    let mut rest = bytes;
    if let Ok(Some(part)) = whole {
        part.fields(bytes).for_each(drop);
        part.hosts("X-Try", bytes).for_each(drop);
        rest = &bytes[part.len()..];
    }

    while let Ok(Some(descriptor)) = Descriptor::parse(rest, &Limits::default()) {
        let (read, after) = rest.split_at(descriptor.len());
        let header = descriptor.header;
        if let Ok(next) = header.forwarded(LIFE_MAX) {
            assert!(next.ttl > 0 && next.ttl < header.ttl && next.ttl + next.hops <= LIFE_MAX);
        }
        let mut out = Vec::new();
        descriptor.push(&mut out);
        assert_eq!(out, read);
        if let Ok(payload) = Payload::parse(header.kind, descriptor.payload) {
            out.clear();
            // Not for a goodbye: the bytes after its text are dropped.
            let written = push_descriptor(&mut out, header.id, header.ttl, header.hops, &payload);
            match payload {
                Payload::Bye(bye) => assert!(bye.text.len() + 2 <= read.len() - HEADER_BYTES),
                _ => assert_eq!((written, &out[..]), (Ok(()), read)),
            }
            if let Payload::QueryHits(hits) = payload {
                assert_eq!(hits.results.len(), hits.results.count());
                let _ = Trailer::parse(hits.trailer);
            }
        }
        rest = after;
    }
});
