//! The pace of streams, by a clock that the test moves.

use super::server::{S, Videos, bytes};

/// Lets the server do everything that is due.
fn settle(server: &super::server::Server) {
    for _ in 0..20 {
        server.status();
    }
}

#[test]
fn a_minute_comes_at_once_and_five_seconds_every_five_seconds() {
    let server = Videos::new().file("a.mp4", bytes(710_000)).start();
    let mut client = server.connect();
    assert_eq!(client.play("/a.mp4").len(), 710_000);
    let mut body = client.read(600_000);
    server.expect_disk(0, "chunks", 12);
    server.clock.advance(5 * S - S / 1000);
    settle(&server);
    assert_eq!(server.disk(0, "chunks"), 12);
    server.clock.advance(S / 1000);
    body.extend(client.read(50_000));
    settle(&server);
    assert_eq!(server.disk(0, "chunks"), 13);
    server.clock.advance(5 * S);
    body.extend(client.read(50_000));
    server.expect_disk(0, "chunks", 14);
    server.clock.advance(5 * S);
    body.extend(client.read(10_000));
    assert!(body == bytes(710_000));
    // The connection is free for the next video.
    client.ask("GET /none HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer().status, 404);
    let disk = &server.status()["disks"][0];
    assert_eq!(disk["late"], 0);
    assert_eq!(
        (&disk["bytes_read"], &disk["streams"]),
        (&710_000.into(), &0.into())
    );
}

#[test]
fn the_options_set_the_pace() {
    let videos = Videos::new().file("a.mp4", bytes(100_000));
    let server = videos
        .with(|options| (options.ahead, options.chunk) = (2 * S, S))
        .start();
    let mut client = server.connect();
    client.play("/a.mp4");
    client.read(20_000);
    server.expect_disk(0, "chunks", 2);
    server.clock.advance(S);
    client.read(10_000);
    server.expect_disk(0, "chunks", 3);
}

#[test]
fn a_client_that_reads_nothing_is_cut_off() {
    let big = 60_000_000;
    let videos = Videos::new().file("a.mp4", bytes(big)).disk(".", 1 << 30);
    let videos = videos.with(|options| options.rate = big as u64 / 60);
    let server = videos.start();
    let mut client = server.connect();
    client.play("/a.mp4");
    server.expect_disk(0, "chunks", 12);
    // The buffers of the system hold a part.
    server.expect_disk(0, "streams", 1);
    while server.disk(0, "streams") == 1 {
        server.clock.advance(S);
    }
    assert!(client.rest().len() < big);
}

#[test]
fn a_rate_is_that_of_the_file() {
    let mut mvhd = vec![0; 100];
    mvhd[12..16].copy_from_slice(&1000_u32.to_be_bytes());
    mvhd[16..20].copy_from_slice(&2000_u32.to_be_bytes());
    let boxed = |kind: &[u8], body: &[u8]| {
        let len = (8 + body.len()) as u32;
        [&len.to_be_bytes(), kind, body].concat()
    };
    let mvhd = boxed(b"mvhd", &mvhd);
    let film = [
        boxed(b"ftyp", b"isom"),
        boxed(b"moov", &mvhd),
        boxed(b"mdat", &[7; 99_864]),
    ];
    let film = film.concat();
    assert_eq!(film.len(), 100_000);
    let server = Videos::new()
        .file("stated.mp4", &film)
        .file("stated.mp4.rate", "160kbit/s\n")
        .file("own.mp4", &film)
        .file("unknown.mp4", bytes(1_000_000))
        .file("wrong.mp4", bytes(1_000_000))
        .file("wrong.mp4.rate", "fast")
        .file("low.mp4", bytes(700_000))
        .file("low.mp4.rate", "80kbit/s")
        .start();
    let check = |path: &str, rate: u64| {
        let mut client = server.connect();
        client.play(path);
        client.read(1);
        server.expect_disk(0, "streams", 1);
        assert_eq!(server.disk(0, "used_bytes_per_s"), rate, "{path}");
        drop(client);
        while server.disk(0, "streams") + server.disk(0, "kept") > 0 {
            server.clock.advance(5 * S);
        }
    };
    check("/unknown.mp4", 10_000);
    check("/wrong.mp4", 10_000);
    check("/low.mp4", 10_000);
    // The state of short videos would depend on the time of the look.
    let used = |path: &str| {
        let len = server.get(path, "").body.len();
        assert_eq!(len, 100_000);
        server.disk(0, "chunks")
    };
    let before = server.disk(0, "chunks");
    assert_eq!(used("/own.mp4"), before + 1, "it plays for 2 s");
    assert_eq!(used("/stated.mp4"), before + 2, "it plays for 5 s");
}
