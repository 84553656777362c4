//! Admission, disks, and clients that leave.

use super::server::{Client, S, Server, Videos, bytes};

/// Returns a server with two disks, one of which has room for two streams, and the other for one.
fn two_disks() -> Server {
    let videos = Videos::new()
        .file("a/1.mp4", bytes(1_000_000))
        .file("a/2.mp4", bytes(1_000_000))
        .file("b/1.mp4", bytes(1_000_000))
        .file("1.mp4", bytes(1_000_000));
    videos.disk("a", 20_000).disk("b", 10_000).start()
}

/// Plays a video, if there is room, and returns the client.
fn play(server: &Server, path: &str) -> Client {
    let mut client = server.connect();
    assert_eq!(client.play(path).status, 200, "{path}");
    client.read(600_000);
    client
}

fn expect_full(server: &Server, path: &str, retry: &str) {
    let answer = server.get(path, "");
    assert_eq!(
        (answer.status, answer.field("Retry-After")),
        (503, Some(retry))
    );
}

#[test]
fn a_disk_admits_the_streams_that_it_can_read() {
    let server = two_disks();
    let mut first = play(&server, "/a/1.mp4");
    let second = play(&server, "/a/2.mp4");
    expect_full(&server, "/a/1.mp4", "100");
    let _other = play(&server, "/b/1.mp4");
    expect_full(&server, "/b/1.mp4", "100");
    let _root = play(&server, "/1.mp4");
    for (disk, streams) in [(0, 1), (1, 2), (2, 1)] {
        server.expect_disk(disk, "chunks", 12 * streams);
        assert_eq!(server.disk(disk, "streams"), streams);
    }
    assert_eq!(server.status()["rejected"], 2);
    // Streams that were admitted continue.
    server.clock.advance(5 * S);
    first.read(50_000);
    // The seat of a client that leaves is kept for it for a while, for a seek.
    drop(second);
    server.expect_disk(1, "streams", 1);
    server.expect_disk(1, "kept", 1);
    expect_full(&server, "/a/1.mp4", "10");
    server.clock.advance(10 * S);
    drop(play(&server, "/a/1.mp4"));
}

#[test]
fn a_seek_keeps_its_seat() {
    let server = two_disks();
    let mut client = play(&server, "/b/1.mp4");
    for _ in 0..3 {
        drop(client);
        server.expect_disk(2, "streams", 0);
        client = server.connect();
        client.ask("GET /b/1.mp4 HTTP/1.1\r\nHost: a\r\nRange: bytes=300000-\r\n\r\n");
        assert_eq!(client.head().status, 206);
        client.read(600_000);
    }
}

#[test]
fn a_greedy_client_gets_a_few_streams() {
    let videos = Videos::new();
    let videos = (0..4).fold(videos, |videos, n| {
        videos.file(&format!("{n}.mp4"), bytes(1_000_000))
    });
    let server = videos.with(|options| options.each = 3).start();
    let _playing: Vec<_> = (0..3)
        .map(|n| play(&server, &format!("/{n}.mp4")))
        .collect();
    assert_eq!(server.get("/3.mp4", "").status, 429);
}

#[test]
fn a_simulated_disk_is_as_slow_as_its_rate() {
    let videos = Videos::new()
        .file("a.mp4", bytes(1_000_000))
        .disk(".", 10_000);
    let server = videos.with(|options| options.simulate_disks = true).start();
    let mut client = server.connect();
    client.play("/a.mp4");
    for chunk in 0..4 {
        assert_eq!(server.disk(0, "chunks"), chunk);
        // A chunk takes as long as it plays.
        while server.disk(0, "chunks") == chunk {
            server.clock.advance(S);
        }
        client.read(50_000);
    }
}
