//! Gnutella: properties that hold for arbitrary descriptors, handshakes and routes.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tussah_wire::gnutella::{
    self, Bye, Descriptor, Guid, HitResult, Kind, LIFE_MAX, Limits, Payload, Pong, Push, Query,
    QueryHits, Results, Routes, Trailer, handshake,
};

fn no_nul() -> impl Strategy<Value = Vec<u8>> {
    vec(1_u8.., 0..20)
}

/// Pieces of handshakes, put together at random.
fn handshakes() -> impl Strategy<Value = Vec<u8>> {
    let starts: &[&str] = &[
        "GNUTELLA CONNECT/0.6",
        "GNUTELLA/0.6 200 OK",
        "GNUTELLA/0.6",
        "",
    ];
    let words: &[&str] = &[
        "X-Ultrapeer: True",
        "X-Try:",
        " 192.0.2.1:6346",
        ",",
        "\t",
        "\n",
        "\n",
        "\r\n",
        "\r",
        "\0",
    ];
    (select(starts), vec(select(words), 0..12))
        .prop_map(|(start, words)| format!("{start}{}", words.concat()).into_bytes())
}

proptest! {
    #[test]
    fn payloads_are_read_as_written(
        text in no_nul(),
        names in vec((no_nul(), no_nul()), 0..5),
        extension in vec(any::<u8>(), 0..20),
        number in any::<u32>(),
        guid in any::<[u8; 16]>(),
        ttl in any::<u8>(),
        hops in any::<u8>(),
    ) {
        let (port, address, servent) = (number as u16, number.into(), Guid(guid));
        let mut results = Vec::new();
        for (name, extension) in &names {
            HitResult { index: number, size: number, name, extension }.push(&mut results).unwrap();
        }
        let results = Results::new(&results).unwrap();
        let mut trailer = Vec::new();
        Trailer { vendor: *b"TUSS", open: &text, private: &extension }.push(&mut trailer);
        let payloads = [
            Payload::Ping(&extension),
            Payload::Pong(Pong { port, address, files: number, kilobytes: !number, extension: &extension }),
            Payload::Bye(Bye { code: port, text: &text }),
            Payload::Push(Push { servent, index: number, address, port, extension: &extension }),
            Payload::Query(Query { min_speed: port, criteria: &text, extension: &extension }),
            Payload::QueryHits(QueryHits { port, address, speed: number, results, trailer: &trailer, servent }),
            Payload::Other(0x30, &extension),
        ];
        let mut bytes = Vec::new();
        for payload in &payloads {
            gnutella::push_descriptor(&mut bytes, servent, ttl, hops, payload).unwrap();
        }
        let mut rest = &bytes[..];
        for payload in payloads {
            // No cut within a descriptor makes it complete.
            let descriptor = Descriptor::parse(rest, &Limits::default()).unwrap().unwrap();
            for len in 0..descriptor.len() {
                prop_assert_eq!(Descriptor::parse(&rest[..len], &Limits::default()), Ok(None));
            }
            let header = descriptor.header;
            prop_assert_eq!((header.id, header.ttl, header.hops), (servent, ttl, hops));
            prop_assert_eq!(Payload::parse(header.kind, descriptor.payload), Ok(payload));
            let mut again = Vec::new();
            descriptor.push(&mut again);
            prop_assert_eq!(&again[..], &rest[..descriptor.len()]);
            rest = &rest[descriptor.len()..];
        }
        prop_assert!(rest.is_empty());
    }

    /// An accepted payload is written as it was, except that a goodbye ends with its text.
    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..100), number in any::<u8>(), limit in 0_usize..100) {
        let limits = Limits { payload_bytes_max: limit, broadcast_bytes_max: limit };
        if bytes.len() >= gnutella::HEADER_BYTES + limit {
            prop_assert_ne!(Descriptor::parse(&bytes, &limits), Ok(None), "more than the limit is kept");
        }
        let _ = handshake::parse(&bytes, &handshake::Limits::default());
        let kind = Kind::from_number(number);
        for kind in [kind, Kind::Pong, Kind::Bye, Kind::Push, Kind::Query, Kind::QueryHits] {
            let Ok(payload) = Payload::parse(kind, &bytes) else {
                continue;
            };
            if let Payload::QueryHits(hits) = payload {
                prop_assert_eq!(hits.results.count(), bytes[0].into());
                let _ = Trailer::parse(hits.trailer);
            }
            let mut out = Vec::new();
            gnutella::push_descriptor(&mut out, Guid([0; 16]), 1, 0, &payload).unwrap();
            if kind != Kind::Bye {
                prop_assert_eq!(&out[gnutella::HEADER_BYTES..], &bytes[..]);
            }
        }
    }

    /// A part that is complete or refused does not depend on the bytes after it.
    #[test]
    fn a_handshake_does_not_depend_on_later_bytes(bytes in handshakes(), limit in 0_usize..120) {
        let limits = handshake::Limits { head_bytes_max: limit, ..Default::default() };
        let whole = handshake::parse(&bytes, &limits);
        for len in 0..bytes.len() {
            let part = handshake::parse(&bytes[..len], &limits);
            prop_assert!(part == Ok(None) || part == whole, "{:?} but {:?}", part, whole);
        }
        if bytes.len() >= limit {
            prop_assert!(whole != Ok(None), "more than the limit is kept");
        }
        if let Ok(Some(part)) = whole {
            prop_assert!(part.len() <= bytes.len());
            prop_assert!(part.hosts("X-Try", &bytes).count() <= part.len());
        }
    }

    #[test]
    fn a_handshake_is_read_as_written(fields in vec(("X-[a-z]{1,9}", "[!-~]([ -~]{0,20}[!-~])?"), 0..20)) {
        let mut out = Vec::new();
        let mut head = handshake::connect(&mut out);
        for (name, value) in &fields {
            head.field(name, value).unwrap();
        }
        head.end();
        let part = handshake::parse(&out, &handshake::Limits::default()).unwrap().unwrap();
        prop_assert_eq!((part.status, part.len()), (None, out.len()));
        let read: Vec<_> = part.fields(&out).collect();
        let written: Vec<_> = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        prop_assert_eq!(read, written);
    }

    /// However a header looks, no path is longer than the limit, and each forwarding uses up TTL.
    #[test]
    fn every_path_ends(ttl in any::<u8>(), hops in any::<u8>(), life_max in 0..2 * LIFE_MAX) {
        let mut header = gnutella::Header { id: Guid([0; 16]), kind: Kind::Query, ttl, hops };
        while let Ok(next) = header.forwarded(life_max) {
            prop_assert!(next.ttl < header.ttl && next.ttl > 0);
            prop_assert_eq!(next.hops, header.hops + 1);
            prop_assert!(next.ttl + next.hops <= life_max);
            header = next;
        }
    }

    /// The table agrees with a list that is searched from its end.
    #[test]
    fn routes_agree_with_a_list(
        steps in vec((any::<bool>(), 0_u8..12, any::<u8>(), 0_u64..4), 0..80),
        entries_max in 1_usize..6,
        age_max in 0_u64..12,
    ) {
        let mut routes = Routes::new(entries_max, age_max);
        let mut list: Vec<(u8, u8, u64)> = Vec::new();
        let mut now = 0;
        for (is_update, id, peer, elapsed) in steps {
            now += elapsed;
            let guid = Guid([id; 16]);
            list.retain(|(_, _, since)| now - since <= age_max);
            let known = list.iter().find(|entry| entry.0 == id).map(|entry| entry.1);
            prop_assert_eq!(routes.get(&guid, now).copied(), known);
            if is_update {
                routes.update(guid, peer, now);
            } else {
                prop_assert_eq!(routes.insert(guid, peer, now), known.is_none());
            }
            if is_update || known.is_none() {
                list.retain(|entry| entry.0 != id);
                list.push((id, peer, now));
                if list.len() > entries_max {
                    list.remove(0);
                }
            }
            prop_assert!(routes.len() <= entries_max);
            for id in 0..12 {
                let expected = list.iter().find(|entry| entry.0 == id).map(|entry| entry.1);
                prop_assert_eq!(routes.get(&Guid([id; 16]), now).copied(), expected);
            }
        }
    }
}
