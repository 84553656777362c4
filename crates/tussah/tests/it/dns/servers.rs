//! Servers that don't answer, or not well: the next one is asked, or the error says what came.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hickory_proto::op::ResponseCode;
use tussah::dns::{Resolver, ServerOrder};

use super::server::{Asked, Reply, Server, a, bytes, response, txt, zone};
use super::{builder, ips};
use crate::{by_hand, runtime};

const TIMEOUT: Duration = Duration::from_secs(5);

fn truth() -> Server {
    Server::of_records(vec![a("host.test.", [192, 0, 2, 1])])
}

fn silent() -> Server {
    Server::new(|_| Vec::new())
}

fn saying(code: ResponseCode) -> Server {
    Server::new(move |asked| {
        let mut message = response(asked);
        message.metadata.response_code = code;
        vec![Reply::Bytes(bytes(&message))]
    })
}

/// A port where nobody listens while the socket is kept: it hears but itself. A port that was given
/// back could become another test's.
fn nobody() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("it is bound");
    socket.connect(address).expect("it is there");
    (socket, address)
}

#[test]
fn a_silent_server_is_followed_by_the_next() {
    let (first, second) = (silent(), truth());
    let asked = first.tell();
    let (clock, runtime) = by_hand();
    let resolver = builder([&first, &second])
        .timeout(TIMEOUT)
        .build_in(&runtime);
    let same = resolver.clone();
    let lookup = runtime.spawn(async move { same.lookup_a("host.test").await });
    asked.recv().expect("it is asked");
    assert_eq!(second.count(), 0);
    clock.advance(TIMEOUT);
    let found = runtime
        .block_on(lookup)
        .expect("no panic")
        .expect("it is there");
    assert_eq!(found.as_slice(), ips(&["192.0.2.1"]));
}

#[test]
fn a_question_is_sent_again() {
    let count = AtomicUsize::new(0);
    let server = Server::new(move |asked| {
        // The first datagram is lost.
        let lost = count.fetch_add(1, Ordering::SeqCst) == 0;
        let message = zone(asked, &[a("host.test.", [192, 0, 2, 1])]);
        let reply = vec![Reply::Bytes(bytes(&message))];
        if lost { Vec::new() } else { reply }
    });
    let asked = server.tell();
    let (clock, runtime) = by_hand();
    let resolver = builder([&server])
        .timeout(TIMEOUT)
        .attempts(1)
        .build_in(&runtime);
    let lookup = runtime.spawn(async move { resolver.lookup_a("host.test").await });
    asked.recv().expect("it is asked");
    clock.advance(TIMEOUT / 2);
    let found = runtime
        .block_on(lookup)
        .expect("no panic")
        .expect("it is there");
    assert_eq!(found.as_slice(), ips(&["192.0.2.1"]));
}

#[test]
fn nobody_answers() {
    let server = silent();
    let asked = server.tell();
    let (clock, runtime) = by_hand();
    let resolver = builder([&server])
        .timeout(TIMEOUT)
        .attempts(2)
        .search(["test"]);
    let resolver = resolver.build_in(&runtime);
    let lookup = runtime.spawn(async move { resolver.lookup_a("host").await });
    asked.recv().expect("it is asked");
    while !lookup.is_finished() {
        clock.advance(TIMEOUT);
        std::thread::yield_now();
    }
    let error = runtime
        .block_on(lookup)
        .expect("no panic")
        .expect_err("nobody answers");
    assert!(error.is_timed_out() && !error.is_not_found());
    assert_eq!(error.server(), Some(server.address));
    let address = server.address;
    let expected = format!("resolve host (A): {address}: no answer within 5s");
    assert_eq!(error.to_string(), expected);
    assert_eq!(
        std::io::Error::from(error).kind(),
        std::io::ErrorKind::TimedOut
    );
    // It was asked for one name only: nobody said that it does not exist.
    let other = |asked: &Asked| asked.query.name().to_ascii() != "host.test.";
    assert!(!server.asked().iter().any(other));
}

#[test]
fn a_server_that_is_not_there_is_followed_by_the_next() {
    let server = truth();
    runtime(1).block_on(async {
        let (_socket, gone) = nobody();
        let servers = [gone, server.address];
        let resolver = Resolver::builder().servers(servers).build();
        let found = resolver
            .lookup_a("host.test")
            .await
            .expect("the second has it");
        assert_eq!(found.as_slice(), ips(&["192.0.2.1"]));
        let resolver = Resolver::builder().servers([gone]).build();
        let error = resolver
            .lookup_a("host.test")
            .await
            .expect_err("nobody is there");
        let expected = format!("resolve host.test (A): {gone}: Connection refused (os error 111)");
        assert_eq!(error.to_string(), expected);
        let error = std::io::Error::from(error);
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_server_that_fails_is_followed_by_the_next() {
    let second = truth();
    runtime(1).block_on(async {
        for code in [
            ResponseCode::ServFail,
            ResponseCode::Refused,
            ResponseCode::NotImp,
        ] {
            let first = saying(code);
            let resolver = builder([&first, &second]).build();
            let found = resolver
                .lookup_a("host.test")
                .await
                .expect("the second has it");
            assert_eq!(found.as_slice(), ips(&["192.0.2.1"]), "{code}");
            assert_eq!(first.count(), 1);
        }
    });
}

#[test]
fn errors_say_what_the_server_said() {
    runtime(1).block_on(async {
        let server = saying(ResponseCode::ServFail);
        let resolver = builder([&server]).search(["corp.test"]).build();
        let error = resolver.lookup_a("host").await.expect_err("it fails");
        let address = server.address;
        let expected = format!("resolve host (A): {address}: server failure (ServFail)");
        assert_eq!(error.to_string(), expected);
        assert!(error.is_server_failure() && !error.is_refused());
        // Twice for each of two names.
        assert_eq!(server.count(), 4);
        let server = saying(ResponseCode::Refused);
        let resolver = builder([&server]).attempts(1).build();
        let error = resolver.lookup_a("host").await.expect_err("it refuses");
        let address = server.address;
        let expected = format!("resolve host (A): {address}: the server refused to answer");
        assert_eq!(error.to_string(), expected);
        assert!(error.is_refused() && !error.is_server_failure());
        assert_eq!(server.count(), 1);
    });
}

/// Says by UDP that the answer is too long, and gives it by TCP.
fn long(asked: &Asked) -> Vec<Reply> {
    let mut message = response(asked);
    if asked.by_tcp {
        let long = "x".repeat(250);
        message = zone(asked, &[txt("host.test.", &[long.as_str(); 200])]);
    } else {
        message.metadata.truncation = true;
    }
    vec![Reply::Bytes(bytes(&message))]
}

#[test]
fn a_long_answer_comes_by_tcp() {
    let server = Server::new(long);
    runtime(1).block_on(async {
        let resolver = builder([&server]).build();
        let found = resolver.lookup_txt("host.test").await.expect("it is there");
        assert_eq!(found[0].concat().len(), 50_000);
        let by_tcp: Vec<_> = server.asked().iter().map(|asked| asked.by_tcp).collect();
        assert_eq!(by_tcp, [false, true]);
    });
}

#[test]
fn a_server_without_tcp_is_followed_by_the_next() {
    let first = Server::new(|asked| match asked.by_tcp {
        true => vec![Reply::Close],
        false => long(asked),
    });
    let second = Server::new(long);
    runtime(1).block_on(async {
        let resolver = builder([&first, &second]).build();
        let found = resolver
            .lookup_txt("host.test")
            .await
            .expect("the second has it");
        assert_eq!(found[0].concat().len(), 50_000);
        let resolver = builder([&first]).build();
        let error = resolver
            .lookup_txt("host.test")
            .await
            .expect_err("it is too long");
        assert_eq!(error.server(), Some(first.address));
    });
}

#[test]
fn in_turn() {
    let servers = [truth(), truth()];
    runtime(1).block_on(async {
        let resolver = builder(&servers).cache_size(0);
        let resolver = resolver.server_order(ServerOrder::Rotate).build();
        for _ in 0..4 {
            resolver.lookup_a("host.test").await.expect("it is there");
        }
        assert_eq!(servers.each_ref().map(Server::count), [2, 2]);
    });
}
