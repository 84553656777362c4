//! Files that change, vanish or fail while they are sent.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::client::{Client, End, request};
use super::process::{Process, Site, bytes, until};
use super::secure;

const LARGE: usize = 30_000_000;

/// Asks for the large file, and takes the beginning only.
fn begun(server: &Process) -> Client<std::net::TcpStream> {
    let mut client = server.connect();
    client.send(request("/large.bin", ""));
    assert!(client.fill());
    client
}

fn site() -> Site {
    Site::new().file("site/large.bin", bytes(LARGE))
}

#[test]
fn a_file_that_becomes_shorter() {
    let server = site().serve("");
    let mut client = begun(&server);
    let file = File::options()
        .write(true)
        .open(server.site.path("site/large.bin"));
    let len = 24 << 20; // a whole number of pages: the kernel clears what is beyond
    file.expect("it is there")
        .set_len(len)
        .expect("it may become shorter");
    let end = client.next().map(|answer| answer.head);
    let Err(End::Within(body)) = end else {
        panic!("expected a cut: {end:?}");
    };
    assert!(body.len() as u64 <= len);
    assert!(body == bytes(LARGE)[..body.len()], "other bytes");
    until("the shorter file is served", || {
        let mut client = server.connect();
        client.send(request("/large.bin", ""));
        client
            .next()
            .is_ok_and(|answer| answer.body.len() as u64 == len)
    });
}

#[test]
fn a_file_that_becomes_shorter_over_tls() {
    let server = secure::site()
        .file("site/large.bin", bytes(LARGE))
        .serve(secure::OPTIONS);
    let mut client = secure::connect(&server);
    client.send(request("/large.bin", ""));
    assert!(client.fill());
    let file = File::options()
        .write(true)
        .open(server.site.path("site/large.bin"));
    file.expect("it is there")
        .set_len(24 << 20)
        .expect("it may become shorter");
    let end = client.next().map(|answer| answer.head);
    let Err(End::Within(body)) = end else {
        panic!("expected a cut: {end:?}");
    };
    assert!(body == bytes(LARGE)[..body.len()], "other bytes");
    assert_eq!(
        secure::connect(&server).ask(&request("/a.txt", "")).status,
        200
    );
}

#[test]
fn a_file_that_is_removed_or_replaced() {
    let server = site().serve("");
    let mut client = begun(&server);
    let path = server.site.path("site/large.bin");
    fs::remove_file(&path).expect("it is there");
    let mut other = begun_or_not(&server);
    assert!(client.answer().body == bytes(LARGE), "other bytes");
    if let Some(other) = &mut other {
        assert!(other.answer().body == bytes(LARGE), "other bytes");
    }
    until("it is gone", || server.get("/large.bin").status == 404);
    fs::write(&path, bytes(LARGE)).expect("there is room");
    until("it is there again", || {
        server.get("/large.bin").status == 200
    });
    let mut client = begun(&server);
    let next = server.site.path("next");
    fs::write(&next, "replaced").expect("there is room");
    fs::rename(&next, &path).expect("it is there");
    assert!(client.answer().body == bytes(LARGE), "other bytes");
    until("the other is served", || {
        server.get("/large.bin").body == b"replaced"
    });
}

/// The same if it is still given: it is looked at once a second.
fn begun_or_not(server: &Process) -> Option<Client<std::net::TcpStream>> {
    let mut client = server.connect();
    client.send(request("/large.bin", "Range: bytes=0-0\r\n"));
    let status = client.answer().status;
    client.send(request("/large.bin", ""));
    (status == 206).then_some(client)
}

#[test]
fn a_file_that_fails() {
    // The kernel says that it has 4096 bytes, and gives fewer.
    let odd = "/sys/kernel/mm/transparent_hugepage/enabled";
    let odd_len = fs::metadata(odd).map_or(0, |meta| meta.len());
    for kind in ["sharded", "none"] {
        let site = Site::new().file("site/secret.txt", "x");
        symlink(odd, site.path("site/odd")).expect("there is room");
        symlink("loop", site.path("site/loop")).expect("there is room");
        fs::set_permissions(
            site.path("site/secret.txt"),
            fs::Permissions::from_mode(0o000),
        )
        .expect("it is ours");
        let sent = site.serve(&format!(
            "--symlinks all --cache {kind} --cache-file-size 1KB"
        ));
        let mut kept = Site::new();
        symlink(odd, kept.path("site/odd")).expect("there is room");
        kept = kept.file("site/b.txt", "b");
        let kept = kept.serve(&format!("--symlinks all --cache {kind}"));
        for _ in 0..3 {
            if odd_len > 1000 {
                // Before the head is sent it is an error, and after that a cut.
                assert_eq!(kept.get("/odd").status, 500);
                let mut client = sent.connect();
                client.send(request("/odd", ""));
                let end = client.next().map(|answer| answer.head);
                assert!(matches!(end, Err(End::Within(_))), "{end:?}");
            }
            let looped = sent.get("/loop").status;
            assert!(matches!(looped, 403 | 404), "{looped}");
            if !rustix::process::geteuid().is_root() {
                assert_eq!(sent.get("/secret.txt").status, 403);
            }
            assert_eq!(sent.get("/a.txt").text(), "hello\n");
            assert_eq!(kept.get("/b.txt").text(), "b");
        }
    }
}

#[test]
fn a_cache_that_is_smaller_than_a_page() {
    let site = Site::new()
        .file("site/b.bin", bytes(100_000))
        .file("site/empty", "");
    let server = site.serve("--cache-size 4KB");
    let mut clients: Vec<_> = (0..20).map(|_| server.connect()).collect();
    for _ in 0..5 {
        for client in &mut clients {
            client.send(request("/b.bin", "") + &request("/a.txt", "") + &request("/empty", ""));
        }
        for client in &mut clients {
            assert!(client.answer().body == bytes(100_000), "other bytes");
            assert_eq!(client.answer().text(), "hello\n");
            assert_eq!(client.answer().text(), "");
        }
    }
}

#[test]
fn pages_that_are_evicted_while_they_are_sent() {
    let mut site = Site::new();
    for n in 0..6 {
        site = site.file(&format!("site/{n}.bin"), bytes(LARGE / 2 + n));
    }
    // Room for one or two at a time.
    let server = site.serve("--workers 1 --cache-size 35MB --cache-file-size 30MB");
    let mut clients = Vec::new();
    for n in 0..6 {
        let mut client = server.connect();
        client.send(request(&format!("/{n}.bin"), ""));
        assert!(client.fill());
        clients.push(client);
    }
    for (n, client) in clients.iter_mut().enumerate() {
        assert!(
            client.answer().body == bytes(LARGE / 2 + n),
            "{n}: other bytes"
        );
    }
    drop(clients);
    until("what was evicted is given back", || {
        server.memory_bytes() < 60_000_000
    });
}
