//! Shared files and pages over HTTP.

use std::fs;

use super::servent::{Net, get};

#[test]
fn shared_files_are_served_by_number_and_name() {
    let directory = tempfile::tempdir().expect("there is room");
    fs::write(directory.path().join("a b.txt"), "0123456789").expect("there is room");
    fs::write(directory.path().join(".hidden"), "secret").expect("there is room");
    let net = Net::of(|options| options.share = Some(directory.path().into()));
    let http = net.routers[0].http();
    let check = |path: &str, lines: &str, status: u16, body: &[u8]| {
        let (found, bytes) = get(http, path, lines);
        assert_eq!(found, status, "{path}");
        assert!(body.is_empty() || bytes == body, "{path}: {bytes:?}");
    };
    check("/get/0/a%20b.txt", "", 200, b"0123456789");
    check("/get/0/a%20b.txt", "Range: bytes=2-4\r\n", 206, b"234");
    check("/get/0/a%20b.txt", "Range: bytes=8-\r\n", 206, b"89");
    check("/get/0/a%20b.txt", "Range: bytes=10-\r\n", 416, b"");
    for path in [
        "/get/1/a%20b.txt",
        "/get/0/a",
        "/get/0/.hidden",
        "/get/0/..%2Fa%20b.txt",
        "/get/x/a%20b.txt",
        "/get/0",
        "/",
    ] {
        check(path, "", 404, b"");
    }
    fs::remove_file(directory.path().join("a b.txt")).expect("it exists");
    check("/get/0/a%20b.txt", "", 404, b"");
}

#[test]
fn pages_of_the_operator() {
    let net = Net::of(|_| {});
    let http = net.routers[0].http();
    let _peer = net.servent();
    let (status, page) = get(http, "/status", "Accept: text/html\r\n");
    let page = String::from_utf8(page).expect("text");
    assert_eq!(status, 200);
    for part in ["<svg", "router", "127.0.0.1:", "<td>test<td>the peer"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert_eq!(get(http, "/status?format=prometheus", "").0, 400);
    assert_eq!(get(http, "/search", "").0, 400);
    assert_eq!(get(http, "/search?q=a&hits=0", "").0, 400);
    let status = net.status(0);
    let stages = status["stages"].as_array().expect("a list");
    assert!(stages.iter().any(|stage| stage["name"] == "router"));
}
