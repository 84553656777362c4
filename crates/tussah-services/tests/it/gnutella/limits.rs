//! Malformed, silent, slow and greedy peers: each gets its answer, and the others do not notice.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tussah_wire::gnutella::{Guid, Kind, Payload, Query};

use super::servent::{Net, Servent, packet};

const S: Duration = Duration::from_secs(1);

#[test]
fn a_slow_peer_is_cut_off_and_the_others_go_on() {
    let net = Net::of(|options| options.queue = 64 << 10);
    let (mut a, slow, mut b) = (net.servent(), net.servent(), net.servent());
    let words = [b'a'; 4000];
    let mut number: u128 = 0;
    let mut round = || {
        number += 1;
        let query = Payload::Query(Query {
            min_speed: 0,
            criteria: &words,
            extension: b"",
        });
        let mut bytes = packet(1, 7, &query);
        bytes[..16].copy_from_slice(&number.to_le_bytes());
        a.write(&bytes);
        // The sender waits until one peer has the query, so that peer is never slow.
        let next = b.next().expect("a query");
        assert_eq!(next.header.id, Guid(number.to_le_bytes()));
    };
    while net.count("ended/slow") == 0 {
        for _ in 0..200 {
            round();
        }
    }
    round();
    net.expect_peers(0, 2);
    assert_eq!(net.count("ended/slow"), 1);
    // What waited for the peer is gone: at its end is a reset, or the end after what was sent.
    let mut rest = Vec::new();
    let _ = (&slow.stream).read_to_end(&mut rest);
    assert!((rest.len() as u128) < number * 4026);
}

#[test]
fn malformed_data_ends_a_connection_with_a_reason() {
    let net = Net::of(|_| {});
    let address = net.routers[0].address();
    for bytes in ["GET / HTTP/1.1\r\n\r\n", "GNUTELLA CONNECT/0.4\n\n"] {
        let mut servent = Servent::silent(address);
        servent.write(bytes.as_bytes());
        let head = servent.head();
        assert!(
            head.starts_with("GNUTELLA/0.6 400 Bad Request\r\n"),
            "{head}"
        );
        assert!(servent.next().is_none());
    }
    let mut servent = net.servent();
    let mut bytes = packet(1, 7, &Payload::Ping(b""));
    bytes[19..].copy_from_slice(&u32::MAX.to_le_bytes());
    servent.write(&bytes);
    let text = servent.expect_bye(400);
    assert_eq!(
        text,
        "the peer sent malformed data: byte 19: expected a payload within the limit, found 4294967295"
    );
    net.expect("ended/malformed", 3);
}

#[test]
fn a_few_malformed_payloads_are_tolerated() {
    let net = Net::of(|_| {});
    let (mut a, mut b) = (net.servent(), net.servent());
    let kinds = [
        Kind::Query,
        Kind::Pong,
        Kind::Push,
        Kind::QueryHits,
        Kind::Bye,
    ];
    for number in 0..9 {
        a.send_bytes(number, kinds[usize::from(number) % kinds.len()], b"");
    }
    a.expect_nothing(99);
    b.expect_nothing(98);
    assert_eq!(net.count("packets/malformed"), 9);
    a.send_bytes(9, Kind::Query, b"no end");
    a.expect_bye(400);
    net.expect("ended/broken", 1);
}

#[test]
fn a_silent_peer_is_pinged_and_then_left() {
    let (mut net, clock) = Net::with_clock();
    net.add(|_| {});
    let mut silent = net.servent();
    let mut alive = net.servent();
    for id in 97..100 {
        // The ping comes after half of the two minutes.
        clock.advance(61 * S);
        let ping = alive.next().expect("a ping");
        assert_eq!((ping.header.kind, ping.header.ttl), (Kind::Ping, 1));
        alive.expect_nothing(id);
    }
    let ping = silent.next().expect("a ping");
    assert_eq!((ping.header.kind, ping.header.ttl), (Kind::Ping, 1));
    assert_eq!(silent.expect_bye(408), "the peer sent nothing for too long");
    net.expect("ended/silent", 1);
    net.expect_peers(0, 1);
    // So is one that makes no handshake.
    let mut mute = Servent::silent(net.routers[0].address());
    mute.stream.set_nonblocking(true).expect("a socket");
    while let Err(error) = mute.stream.read(&mut [0; 100]) {
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
        clock.advance(S);
        thread::yield_now();
    }
    net.expect("ended/silent", 2);
}

#[test]
fn a_greedy_address_gets_a_few_connections() {
    let net = Net::of(|options| options.each_max = 2);
    let (_a, _b) = (net.servent(), net.servent());
    let (mut servent, head) = Servent::greet(net.routers[0].address(), "");
    assert!(head.starts_with("GNUTELLA/0.6 429 "), "{head}");
    assert!(servent.next().is_none());
    net.expect("ended/greedy", 1);
}

#[test]
fn a_full_router_names_other_hosts() {
    let net = Net::of(|options| (options.keep, options.peers_max) = (0, 2));
    let address = net.routers[0].address();
    let _a = Servent::connect_with(address, "Listen-IP: 127.0.0.1:9\r\n");
    let b = Servent::connect_with(address, "Listen-IP: 192.0.2.1:9\r\n");
    let (mut servent, head) = Servent::greet(address, "");
    assert!(head.starts_with("GNUTELLA/0.6 503 "), "{head}");
    // The address of another machine is not believed.
    assert!(head.contains("\r\nX-Try: 127.0.0.1:9\r\n"), "{head}");
    assert!(servent.next().is_none());
    net.expect("ended/full", 1);
    drop(b);
    net.expect_peers(0, 1);
    net.servent();
}

#[test]
fn a_peer_is_connected_once() {
    let net = Net::of(|_| {});
    let address = net.routers[0].address();
    let (_, head) = Servent::greet(address, "");
    let own = head.lines().find_map(|line| line.strip_prefix("GUID: "));
    let own = format!("GUID: {}\r\n", own.expect("an identifier"));
    let other = format!("GUID: {}\r\n", Guid([7; 16]));
    let _peer = Servent::connect_with(address, &other);
    for guid in [own, other] {
        let (_, head) = Servent::greet(address, &guid);
        assert!(head.starts_with("GNUTELLA/0.6 409 "), "{head}");
    }
    net.expect("ended/known", 2);
}

#[test]
fn a_peer_that_floods_the_router_does_not_keep_others_from_it() {
    let net = Net::of(|_| {});
    let (flood, mut other) = (net.servent(), net.servent());
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Each ping is a duplicate, so the flood is not answered.
            let pings = packet(1, 7, &Payload::Ping(b"")).repeat(1000);
            while !over.load(Ordering::Relaxed) {
                (&flood.stream).write_all(&pings).expect("it is read");
            }
            flood.stream.shutdown(Shutdown::Both).expect("it is open");
        });
        let served = catch_unwind(AssertUnwindSafe(|| {
            let first = other.next().expect("a ping");
            assert_eq!(first.head(), (Guid([1; 16]), Kind::Ping, 6, 1));
            for id in 100..120 {
                other.expect_nothing(id);
            }
            while net.count("packets/duplicates") <= 1000 {
                thread::yield_now();
            }
        }));
        over.store(true, Ordering::Relaxed);
        served.expect("the other peer is served");
    });
}
