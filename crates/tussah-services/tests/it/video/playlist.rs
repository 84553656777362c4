//! Playlists of HTTP Live Streaming.

use std::time::Duration;

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

/// Returns a transport stream in which each key frame, every two seconds, follows its tables. A
/// second has 100 packets.
fn with_key_frames(seconds: u64) -> Vec<u8> {
    let table = |pid: [u8; 2], number, body: &[u8]| {
        let len = 9 + body.len() as u8;
        let head = [0x47, 0x40 | pid[0], pid[1], 0x10, 0, number, 0xb0, len];
        let mut packet = [&head[..], &[0, 1, 0xc1, 0, 0], body, &[0; 4]].concat();
        packet.resize(188, 0xff);
        packet
    };
    let pat = table([0, 0], 0, &[0, 1, 0xf0, 0]);
    let pmt = table([0x10, 0], 2, &[0xe1, 0, 0xf0, 0, 0x1b, 0xe1, 0, 0xf0, 0]);
    let mut film = transport_stream(seconds);
    for (second, part) in film.chunks_exact_mut(2 * 100 * 188).enumerate() {
        // The clock of the third packet is 20 ms late, and the time stamp is that of the clock.
        let stamp = second as u32 * 2 * 90_000 + 1800;
        let [_, _, s, t] = (stamp << 1).to_be_bytes();
        let [q, r] = ((stamp >> 14) as u16).to_be_bytes();
        let pes = [0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5, 0x21, q, r | 1, s, t | 1];
        part[..188].copy_from_slice(&pat);
        part[188..376].copy_from_slice(&pmt);
        part[377] |= 0x40;
        part[381] |= 0x40;
        part[388..][..pes.len()].copy_from_slice(&pes);
    }
    film
}

#[test]
fn the_segments_of_a_transport_stream_begin_with_key_frames() {
    let film = with_key_frames(600);
    let server = Videos::new().file("film.ts", &film).start();
    let text = server.get("/film.ts.m3u8", "").body;
    let text = String::from_utf8(text).expect("text");
    let starts = text
        .lines()
        .filter_map(|line| line.strip_prefix("#EXT-X-BYTERANGE:"));
    let starts: Vec<usize> = starts
        .map(|range| range.split_once('@').expect("a range").1)
        .map(|start| start.parse().expect("a number"))
        .collect();
    assert!((75..=100).contains(&starts.len()), "{text}");
    for start in starts {
        assert_eq!(film[start..][..4], [0x47, 0x40, 0, 0x10], "{text}");
    }
    let durations = text
        .lines()
        .filter_map(|line| line.strip_prefix("#EXTINF:"));
    let whole = ["6.000,", "8.000,"];
    let other = durations.filter(|duration| !whole.contains(duration));
    assert!(other.count() <= 1, "only the last one: {text}");
    assert!(text.contains("#EXT-X-INDEPENDENT-SEGMENTS"), "{text}");
    assert!(!text.contains("#EXT-X-MAP"), "{text}");
    // The disk reads in chunks, and only the first time.
    let (read, chunks) = (server.disk(0, "bytes_read"), server.disk(0, "chunks"));
    assert!(read <= film.len() as u64, "{read} bytes");
    assert!(read <= chunks * 5 * 18_800, "{read} bytes, {chunks} chunks");
    assert_eq!(server.get("/film.ts.m3u8", "").body, text.as_bytes());
    assert_eq!(server.disk(0, "bytes_read"), read);
}

#[test]
fn the_search_for_segments_reads_at_most_a_chunk() {
    let film = with_key_frames(60);
    let whole = Videos::new().file("film.ts", &film).start();
    let short = Videos::new()
        .file("film.ts", &film)
        .with(|options| options.chunk = Duration::from_secs(1))
        .start();
    let [text, same] = [&whole, &short].map(|server| server.get("/film.ts.m3u8", "").body);
    assert_eq!(text, same);
    let (read, chunks) = (short.disk(0, "bytes_read"), short.disk(0, "chunks"));
    assert!(read <= chunks * 18_900, "{read} bytes, {chunks} chunks");
}

#[test]
fn the_search_for_segments_needs_a_seat() {
    let film = with_key_frames(60);
    let rate = (film.len() as u64).div_ceil(60) + 1000;
    let files = Videos::new().file("a.ts", &film).file("b.ts", &film);
    let server = files.disk(".", rate).start();
    assert_eq!(server.get("/a.ts.m3u8", "").status, 200);
    // It is kept for the segments. The other video has no room, even for a search.
    server.expect_disk(0, "kept", 1);
    let answer = server.get("/b.ts.m3u8", "");
    assert_eq!(answer.status, 503);
    assert!(answer.field("Retry-After").is_some());
    // A known playlist needs no reads.
    assert_eq!(server.get("/a.ts.m3u8", "").status, 200);
    assert_eq!(server.disk(0, "kept"), 1);
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
        .file("c.ts", bytes(1000))
        .start();
    let answer = server.get("/a.mp4.m3u8", "");
    assert_eq!(answer.status, 404);
    let text = String::from_utf8(answer.body).expect("text");
    assert!(text.contains("fragments"), "{text}");
    assert_eq!(server.get("/b.txt.m3u8", "").status, 404);
    assert_eq!(server.get("/c.ts.m3u8", "").status, 404);
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
