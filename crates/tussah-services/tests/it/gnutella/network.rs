//! A network of routers.

use std::fs;
use std::net::SocketAddr;

use serde_json::Value;

use super::servent::{Net, get};

#[test]
fn twenty_routers_find_what_one_of_them_shares() {
    let directory = tempfile::tempdir().expect("there is room");
    fs::write(directory.path().join("Wild silk.txt"), "tussah").expect("there is room");
    let mut net = Net::new();
    // All others know the first router only, which has room for five of them.
    let first = net.add(|options| options.peers_max = 5).address();
    for number in 1..20 {
        net.add(|options| {
            (options.keep, options.peers) = (4, vec![first.to_string()]);
            if number == 7 {
                options.share = Some(directory.path().into());
            }
        });
    }
    for number in 1..20 {
        while net.peers(number) < 4 {
            std::thread::yield_now();
        }
    }
    assert!(net.peers(0) <= 5);
    let asker = net.routers[19].http();
    let (status, body) = get(asker, "/search?q=silk+wild&hits=1&wait=60", "");
    assert_eq!(status, 200);
    let page: Value = serde_json::from_slice(&body).expect("it is JSON");
    let hit = &page["hits"][0];
    assert_eq!(
        (&hit["name"], &hit["bytes"]),
        (&"Wild silk.txt".into(), &6.into())
    );
    let url = hit["url"].as_str().expect("an address");
    let (host, path) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .expect("an address with a path");
    let host: SocketAddr = host.parse().expect("an address");
    assert_eq!(host, net.routers[7].http());
    assert_eq!(
        get(host, &format!("/{path}"), ""),
        (200, b"tussah".to_vec())
    );
    assert_eq!(net.status(7)["answers"], 1);
}
