//! The paths of packets.

use std::net::Ipv4Addr;
use std::time::Duration;

use tussah_wire::gnutella::{
    Bye, Guid, HitResult, Kind, Payload, Pong, Push, Query, QueryHits, Results,
};

use super::servent::{Net, Servent};

fn query(words: &[u8]) -> Payload<'_> {
    Payload::Query(Query {
        min_speed: 0,
        criteria: words,
        extension: b"",
    })
}

fn pong(port: u16) -> Payload<'static> {
    Payload::Pong(Pong {
        port,
        address: Ipv4Addr::LOCALHOST,
        files: 1,
        kilobytes: 2,
        extension: b"",
    })
}

#[test]
fn a_ping_goes_to_all_other_peers_and_pongs_come_back() {
    let net = Net::of(|_| {});
    let (mut a, mut b, mut c) = (net.servent(), net.servent(), net.servent());
    a.send(1, 3, &Payload::Ping(b"extension"));
    let own = a.next().expect("a pong");
    assert_eq!(own.head(), (Guid([1; 16]), Kind::Pong, 1, 0));
    let Ok(Payload::Pong(parsed)) = Payload::parse(Kind::Pong, &own.payload) else {
        panic!("{own:?}");
    };
    let address = net.routers[0].address();
    assert_eq!(
        (parsed.address, parsed.port),
        (*address.ip(), address.port())
    );
    for other in [&mut b, &mut c] {
        let ping = other.next().expect("a ping");
        assert_eq!(ping.head(), (Guid([1; 16]), Kind::Ping, 2, 1));
        assert_eq!(ping.payload, b"extension");
    }
    b.send(1, 2, &pong(1234));
    let back = a.next().expect("a pong");
    assert_eq!(back.head(), (Guid([1; 16]), Kind::Pong, 1, 1));
    c.expect_nothing(99);
    assert_eq!(net.count("packets/pings"), 2);
    assert_eq!(net.count("packets/pongs"), 1);
}

#[test]
fn hits_and_pushes_go_back_along_the_path() {
    let net = Net::of(|_| {});
    let (mut a, mut b, mut c) = (net.servent(), net.servent(), net.servent());
    a.send(1, 7, &query(b"wild silk"));
    for other in [&mut b, &mut c] {
        let passed = other.next().expect("a query");
        assert_eq!(passed.head(), (Guid([1; 16]), Kind::Query, 6, 1));
        assert_eq!(passed.payload, b"\0\0wild silk\0");
    }
    let mut results = Vec::new();
    b.send(1, 2, &hits(&mut results, 8));
    let back = a.next().expect("hits");
    assert_eq!(back.head(), (Guid([1; 16]), Kind::QueryHits, 1, 1));
    a.send(2, 2, &push(8));
    let pushed = b.next().expect("a push");
    assert_eq!(pushed.head(), (Guid([2; 16]), Kind::Push, 1, 1));
    c.expect_nothing(99);
    assert_eq!(
        (net.count("packets/hits"), net.count("packets/pushes")),
        (1, 1)
    );
}

/// Returns hits for one file, of this servent.
fn hits(results: &mut Vec<u8>, servent: u8) -> Payload<'_> {
    let file = HitResult {
        index: 1,
        size: 2,
        name: b"wild silk",
        extension: b"",
    };
    results.clear();
    file.push(results).expect("it is valid");
    Payload::QueryHits(QueryHits {
        port: 1,
        address: Ipv4Addr::LOCALHOST,
        speed: 1,
        results: Results::new(results).expect("it is valid"),
        trailer: b"",
        servent: Guid([servent; 16]),
    })
}

fn push(servent: u8) -> Payload<'static> {
    Payload::Push(Push {
        servent: Guid([servent; 16]),
        index: 1,
        address: Ipv4Addr::LOCALHOST,
        port: 2,
        extension: b"",
    })
}

#[test]
fn a_push_follows_the_latest_hits() {
    let net = Net::of(|_| {});
    let (mut a, mut b, mut c) = (net.servent(), net.servent(), net.servent());
    let mut results = Vec::new();
    a.send(1, 7, &query(b"silk"));
    // Hits for a query that nobody has made leave no route to their servent.
    b.send(9, 7, &hits(&mut results, 7));
    b.expect_query_and_nothing(1, 99);
    c.expect_query_and_nothing(1, 98);
    for (number, from) in [(10, &mut b), (11, &mut c)] {
        from.send(1, 7, &hits(&mut results, 8));
        assert_eq!(a.next().expect("hits").header.kind, Kind::QueryHits);
        a.send(number, 7, &push(8));
        let pushed = from.next().expect("a push");
        assert_eq!(pushed.head(), (Guid([number; 16]), Kind::Push, 6, 1));
    }
    a.send(12, 7, &push(7));
    a.expect_nothing(97);
    b.expect_nothing(96);
    c.expect_nothing(95);
    assert_eq!(net.count("packets/unrouted"), 2);
}

#[test]
fn a_full_table_forgets_its_oldest_route() {
    let net = Net::of(|options| options.routes = 3);
    let (mut a, mut b) = (net.servent(), net.servent());
    for number in 1..=4 {
        a.send(number, 7, &query(b"silk"));
        assert_eq!(b.next().expect("a query").header.kind, Kind::Query);
    }
    let mut results = Vec::new();
    b.send(1, 7, &hits(&mut results, 8)); // forgotten
    b.send(2, 7, &hits(&mut results, 8));
    assert_eq!(a.next().expect("hits").header.id, Guid([2; 16]));
    assert_eq!(net.count("packets/unrouted"), 1);
    // It counts as new again.
    a.send(1, 7, &query(b"silk"));
    assert_eq!(b.next().expect("a query").header.id, Guid([1; 16]));
}

#[test]
fn a_route_is_forgotten_after_ten_minutes() {
    let (mut net, clock) = Net::with_clock();
    net.add(|options| options.silence = Duration::from_secs(3600));
    let (mut a, mut b) = (net.servent(), net.servent());
    let mut results = Vec::new();
    let mut answered = |id, a: &mut Servent, b: &mut Servent| {
        b.send(1, 7, &hits(&mut results, 8));
        b.expect_nothing(id);
        net.count("packets/unrouted") == 0 && {
            assert_eq!(a.next().expect("hits").header.kind, Kind::QueryHits);
            true
        }
    };
    a.send(1, 7, &query(b"silk"));
    assert_eq!(b.next().expect("a query").header.kind, Kind::Query);
    clock.advance(Duration::from_secs(599));
    assert!(answered(99, &mut a, &mut b));
    clock.advance(Duration::from_secs(2));
    assert!(!answered(98, &mut a, &mut b));
}

#[test]
fn duplicates_expired_and_unrouted_packets_are_dropped() {
    let net = Net::of(|_| {});
    let (mut a, mut b) = (net.servent(), net.servent());
    a.send(1, 1, &Payload::Ping(b"")); // ends at the router, which answers it
    assert_eq!(a.next().expect("a pong").header.kind, Kind::Pong);
    a.send(2, 2, &query(b"a"));
    assert_eq!(
        b.next().expect("a query").head(),
        (Guid([2; 16]), Kind::Query, 1, 1)
    );
    b.send(2, 2, &query(b"a")); // came already
    b.send(3, 2, &pong(1)); // answers nothing
    b.send(1, 1, &pong(1)); // has no hops left
    b.send(4, 7, &Payload::Other(0x30, b"for neighbors"));
    b.expect_nothing(99);
    a.expect_nothing(98);
    for (name, count) in [
        ("duplicates", 1),
        ("unrouted", 1),
        ("others", 1),
        ("queries", 1),
    ] {
        assert_eq!(net.count(&format!("packets/{name}")), count, "{name}");
    }
    // Three pings with TTL 1, and the pong.
    assert_eq!(net.count("packets/expired"), 4);
}

#[test]
fn a_ttl_that_is_too_long_is_reduced() {
    let net = Net::of(|options| options.ttl = 3);
    let (mut a, head) = super::servent::Servent::greet(net.routers[0].address(), "");
    assert!(head.starts_with("GNUTELLA/0.6 200"), "{head}");
    a.write(b"GNUTELLA/0.6 200 OK\r\n\r\n");
    assert_eq!(a.next().expect("a ping").header.ttl, 3);
    let (mut b, _) = super::servent::Servent::greet(net.routers[0].address(), "");
    b.write(b"GNUTELLA/0.6 200 OK\r\n\r\n");
    b.next().expect("a ping");
    a.send(1, 200, &query(b"a"));
    let passed = b.next().expect("a query");
    assert_eq!(passed.head(), (Guid([1; 16]), Kind::Query, 2, 1));
}

#[test]
fn a_peer_that_leaves_gets_nothing_more() {
    let net = Net::of(|_| {});
    let (mut a, mut b) = (net.servent(), net.servent());
    let bye = Bye {
        code: 200,
        text: b"so long",
    };
    b.send(1, 1, &Payload::Bye(bye));
    assert!(b.next().is_none());
    net.expect("ended/bye", 1);
    drop(net.servent());
    net.expect("ended/gone", 1);
    net.expect_peers(0, 1);
    a.send(2, 7, &query(b"a"));
    a.expect_nothing(99);
    // Soon, the router sends nothing but its own pong.
    for id in 100.. {
        let sent = net.count("packets/sent");
        a.send(id, 7, &Payload::Ping(b""));
        assert_eq!(a.next().expect("a pong").header.id, Guid([id; 16]));
        if net.count("packets/sent") == sent + 1 {
            break;
        }
    }
}
