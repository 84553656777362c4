//! The catcher, which keeps a router connected.

use std::fs;
use std::net::SocketAddrV4;

use tussah_wire::gnutella::{Payload, Pong};

use super::servent::Net;

#[test]
fn four_peers_are_kept() {
    let mut net = Net::new();
    let others: Vec<_> = (0..6)
        .map(|_| net.add(|_| {}).address().to_string())
        .collect();
    net.add(|options| (options.keep, options.peers) = (4, others.clone()));
    net.expect_peers(6, 4);
    let of = |net: &Net| -> Vec<String> {
        let status = net.status(6);
        let peers = status["peers"].as_array().expect("a list").iter();
        let hosts = peers.map(|peer| peer["listens_at"].as_str().expect("a host").to_owned());
        hosts.collect()
    };
    let before = of(&net);
    let place = others.iter().position(|it| *it == before[0]);
    net.stop(place.expect("it is one of them"));
    while of(&net).contains(&before[0]) || net.peers(6) != 4 {
        std::thread::yield_now();
    }
    assert!(of(&net).iter().all(|host| others.contains(host)));
}

#[test]
fn addresses_of_no_hosts_are_not_tried() {
    let mut net = Net::new();
    net.add(|options| options.keep = 2);
    let other = net.add(|_| {}).address();
    let (mut peer, ping) = net.servent_and_ping();
    for host in [
        "0.0.0.1:9",
        "255.255.255.255:9",
        "127.0.0.1:0",
        &other.to_string(),
    ] {
        let host: SocketAddrV4 = host.parse().expect("an address");
        let pong = Payload::Pong(Pong {
            port: host.port(),
            address: *host.ip(),
            files: 0,
            kilobytes: 0,
            extension: b"",
        });
        peer.answer(ping.header.id, &pong);
    }
    net.expect_peers(0, 2);
    assert_eq!(net.count("ended/unreachable"), 0);
}

#[test]
fn hosts_come_from_a_file_and_from_other_peers() {
    let mut net = Net::new();
    let shown = |address: std::net::SocketAddrV4| address.to_string();
    let far = shown(net.add(|_| {}).address());
    let near = net.add(|options| (options.keep, options.peers) = (1, vec![far]));
    let near = shown(near.address());
    net.expect_peers(1, 1);
    // A router that is full names its peer.
    let full = net.add(|options| {
        (options.keep, options.peers_max, options.peers) = (1, 1, vec![near]);
    });
    let full = shown(full.address());
    net.expect_peers(2, 1);
    let (_socket, none) = crate::refusing();
    let directory = tempfile::tempdir().expect("there is room");
    let path = directory.path().join("hosts");
    fs::write(&path, format!("# hosts\n{none}\n\n{full}\n")).expect("there is room");
    // From the full router it learns of the near one, and from its pong of the far one.
    net.add(|options| (options.keep, options.hosts) = (2, Some(path)));
    net.expect_peers(3, 2);
    let status = net.status(3);
    for reason in ["unreachable", "rejected"] {
        assert_ne!(status["ended"][reason], 0, "{status}");
    }
}
