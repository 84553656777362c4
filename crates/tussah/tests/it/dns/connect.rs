//! Connecting by name, with real sockets.

use std::io;
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream as StdStream};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use tussah::net::{ConnectError, TcpStream};

use super::server::{Reply, Server, a, aaaa, bytes, is_a, zone};
use super::{builder, sockets_to};
use crate::{by_hand, refusing, runtime};

/// A host with these IPv4 addresses, and `::1`.
fn host(addresses: &[[u8; 4]]) -> Server {
    let mut records: Vec<_> = addresses.iter().map(|ip| a("host.test.", *ip)).collect();
    records.push(aaaa("host.test.", Ipv6Addr::LOCALHOST));
    Server::of_records(records)
}

fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    (listener, port)
}

#[test]
fn an_address_that_refuses_is_followed_by_the_next() {
    let server = host(&[[127, 0, 0, 1]]);
    let (listener, port) = listen();
    // The clock stands still: nothing waits for any delay.
    let (_clock, runtime) = by_hand();
    runtime.block_on(async {
        let resolver = builder([&server]).build();
        let options = TcpStream::builder().resolver(&resolver);
        for to in [format!("host.test:{port}"), format!("host.test.:{port}")] {
            let stream = options.connect(to).await.expect("IPv4 wins");
            let peer = stream.peer_addr().expect("it is connected");
            assert_eq!(peer, SocketAddr::from(([127, 0, 0, 1], port)));
            assert_eq!(sockets_to(port), 1);
        }
        options
            .connect(("host.test", port))
            .await
            .expect("IPv4 wins");
    });
    drop(listener);
    assert_eq!(sockets_to(server.address.port()), 0);
}

/// A listener that takes no more connections, and those that fill it.
fn full(port: u16) -> (std::os::fd::OwnedFd, Vec<StdStream>) {
    let flags = SocketFlags::CLOEXEC;
    let fd = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None);
    let fd = fd.expect("a socket");
    let address = SocketAddr::from(([127, 0, 0, 2], port));
    rustix::net::bind(&fd, &address).expect("nobody is there");
    rustix::net::listen(&fd, 0).expect("it listens");
    let mut filling = vec![StdStream::connect(address).expect("there is one place")];
    // One more, for systems that have a place more than they say.
    filling.extend(StdStream::connect_timeout(
        &address,
        Duration::from_millis(1),
    ));
    (fd, filling)
}

#[test]
fn a_silent_address_is_followed_by_the_next_after_the_delay() {
    let server = Server::of_records(vec![
        a("host.test.", [127, 0, 0, 2]),
        a("host.test.", [127, 0, 0, 1]),
    ]);
    let (listener, port) = listen();
    let (silent, filling) = full(port);
    let to_silent = filling.len();
    let (clock, runtime) = by_hand();
    let resolver = builder([&server]).build_in(&runtime);
    let options = TcpStream::builder().resolver(&resolver);
    let options = options.attempt_delay(Duration::from_secs(3));
    let connect = runtime.spawn(async move { options.connect(("host.test", port)).await });
    // Until the first attempt goes on.
    while sockets_to(port) == to_silent {
        std::thread::yield_now();
    }
    clock.advance(Duration::from_secs(3));
    let stream = runtime
        .block_on(connect)
        .expect("no panic")
        .expect("the second wins");
    let peer = stream.peer_addr().expect("it is connected");
    assert_eq!(peer, SocketAddr::from(([127, 0, 0, 1], port)));
    // The first one is given up, with its descriptor.
    assert_eq!(sockets_to(port), to_silent + 1);
    drop((silent, filling, listener));
}

#[test]
fn all_fail() {
    let server = host(&[[127, 0, 0, 1], [127, 0, 0, 3]]);
    let (_socket, port) = refusing();
    let (_clock, runtime) = by_hand();
    runtime.block_on(async {
        let resolver = builder([&server]).build();
        let options = TcpStream::builder().resolver(&resolver);
        let error = options
            .connect(("host.test", port))
            .await
            .expect_err("nobody is there");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let refused = "Connection refused (os error 111)";
        let expected = format!(
            "connect to host.test:{port}: [::1]:{port}: {refused}; 127.0.0.1:{port}: {refused}; \
             127.0.0.3:{port}: {refused}"
        );
        assert_eq!(error.to_string(), expected);
        let error = ConnectError::of(&error).expect("it was by name");
        let addresses: Vec<_> = error.attempts().map(|(address, _)| address.ip()).collect();
        assert_eq!(addresses, super::ips(&["::1", "127.0.0.1", "127.0.0.3"]));
        assert!(!error.is_timed_out() && error.lookups().is_empty());
        assert_eq!(sockets_to(port), 0);
    });
}

#[test]
fn the_time_is_up() {
    let server = Server::new(|_| Vec::new());
    let asked = server.tell();
    let (clock, runtime) = by_hand();
    let resolver = builder([&server]).build_in(&runtime);
    let limit = Duration::from_secs(2);
    let options = TcpStream::builder().resolver(&resolver).timeout(limit);
    let connect = runtime.spawn(async move { options.connect(("host.test", 80)).await });
    asked.recv().expect("it is asked");
    clock.advance(limit);
    let error = runtime
        .block_on(connect)
        .expect("no panic")
        .expect_err("nobody answers");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(
        error.to_string(),
        "connect to host.test:80: the timeout elapsed"
    );
    assert_eq!(sockets_to(server.address.port()), 0);
}

#[test]
fn an_unknown_host_is_an_error() {
    let server = host(&[]);
    runtime(1).block_on(async {
        let resolver = builder([&server]).search(["corp.test"]).build();
        let options = TcpStream::builder().resolver(&resolver);
        let error = options
            .connect("nosuch:80")
            .await
            .expect_err("it does not exist");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let expected = "connect to nosuch:80: resolve nosuch (A, AAAA): no such name";
        assert_eq!(error.to_string(), expected);
    });
}

#[test]
fn one_family_is_enough() {
    // Nobody answers for IPv6.
    let server = Server::new(|asked| {
        let message = zone(asked, &[a("host.test.", [127, 0, 0, 1])]);
        let reply = vec![Reply::Bytes(bytes(&message))];
        if is_a(asked) { reply } else { Vec::new() }
    });
    let (_listener, port) = listen();
    // No question is ever too late: nothing but the resolution delay can let IPv4 begin.
    let forever = Duration::from_secs(1_000_000_000);
    let (clock, runtime) = by_hand();
    let resolver = builder([&server]).timeout(forever).build_in(&runtime);
    let options = TcpStream::builder().resolver(&resolver).timeout(forever);
    let connect = runtime.spawn(async move { options.connect(("host.test", port)).await });
    while !connect.is_finished() {
        clock.advance(Duration::from_millis(50));
        std::thread::yield_now();
    }
    let stream = runtime
        .block_on(connect)
        .expect("no panic")
        .expect("IPv4 is enough");
    assert!(stream.peer_addr().expect("it is connected").is_ipv4());
}

#[test]
fn localhost_is_resolved_without_a_server() {
    let (_listener, port) = listen();
    let (_clock, runtime) = by_hand();
    runtime.block_on(async {
        // Without any server to ask: ::1 refuses, 127.0.0.1 does not.
        let stream = TcpStream::connect(("localhost", port))
            .await
            .expect("it is known");
        assert!(
            stream
                .peer_addr()
                .expect("it is connected")
                .ip()
                .is_loopback()
        );
        TcpStream::connect(format!("localhost:{port}"))
            .await
            .expect("it is known");
        TcpStream::connect(("127.0.0.1", port))
            .await
            .expect("it is an address");
    });
}
