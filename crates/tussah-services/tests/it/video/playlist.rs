//! Playlists of HTTP Live Streaming.

use super::server::{Videos, bytes};

/// Returns a transport stream of a second for each 100 packets.
fn transport_stream(seconds: u64) -> Vec<u8> {
    let packet = |number: u64| {
        let ticks = number * 900;
        let [_, _, _, p, q, r, s, t] = (ticks << 7).to_be_bytes();
        let mut packet = vec![0x47, 1, 0, 0x30, 7, 0x10, p, q, r, s, t & 0x80, 0];
        // The clock has 33 bits in front of 7 others.
        let high = (ticks >> 1) as u32;
        packet[6..10].copy_from_slice(&high.to_be_bytes());
        packet[10] = ((ticks & 1) as u8) << 7;
        packet.resize(188, number as u8);
        packet
    };
    (0..=100 * seconds).flat_map(packet).collect()
}

#[test]
fn the_segments_of_a_playlist_are_the_video() {
    let film = transport_stream(20);
    let server = Videos::new().file("tv/film.ts", &film).start();
    let answer = server.get("/tv/film.ts.m3u8", "");
    assert_eq!(
        answer.field("Content-Type"),
        Some("application/vnd.apple.mpegurl")
    );
    let text = String::from_utf8(answer.body).expect("text");
    let mut all = Vec::new();
    let mut client = server.connect();
    let ranges = text
        .lines()
        .filter_map(|line| line.strip_prefix("#EXT-X-BYTERANGE:"));
    for range in ranges {
        let (len, start) = range.split_once('@').expect("a range");
        let [len, start] = [len, start].map(|number| number.parse::<u64>().expect("a number"));
        let end = start + len - 1;
        client.ask(&format!(
            "GET /tv/film.ts HTTP/1.1\r\nHost: a\r\nRange: bytes={start}-{end}\r\n\r\n"
        ));
        let answer = client.answer();
        assert_eq!(
            (answer.status, answer.field("Content-Type")),
            (206, Some("video/mp2t"))
        );
        all.extend(answer.body);
    }
    assert!(all == film);
    assert_eq!(text.matches("#EXTINF:6.0").count(), 3, "{text}");
    assert_eq!(text.matches("film.ts\n").count(), 4, "{text}");
}

#[test]
fn a_video_that_has_to_be_converted_has_no_playlist() {
    let server = Videos::new()
        .file("a.mp4", bytes(1000))
        .file("b.txt", "b")
        .start();
    let answer = server.get("/a.mp4.m3u8", "");
    assert_eq!(answer.status, 404);
    let text = String::from_utf8(answer.body).expect("text");
    assert!(text.contains("fragments"), "{text}");
    assert_eq!(server.get("/b.txt.m3u8", "").status, 404);
    assert_eq!(server.get("/none.ts.m3u8", "").status, 404);
}

#[test]
fn segments_use_one_seat() {
    let film = transport_stream(20);
    let rate = (film.len() as u64).div_ceil(20);
    let server = Videos::new().file("film.ts", &film).disk(".", rate).start();
    let mut client = server.connect();
    for start in [0, 112_800] {
        let end = start + 112_799;
        client.ask(&format!(
            "GET /film.ts HTTP/1.1\r\nHost: a\r\nRange: bytes={start}-{end}\r\n\r\n"
        ));
        assert_eq!(client.answer().status, 206);
        server.expect_disk(0, "kept", 1);
    }
    assert_eq!(server.status()["rejected"], 0);
}
