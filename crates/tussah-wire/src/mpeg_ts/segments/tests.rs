//! Tests of the search for segments, with streams of single packets.

use proptest::prelude::*;

use super::super::packet::SYNC;
use super::*;

const MAP_PID: u16 = 0x1000;
const VIDEO: u16 = 0x100;
const AUDIO: u16 = 0x101;

/// Returns a packet with an adaptation field and a payload, of which the former fills the packet.
fn packet(pid: u16, begins: bool, adaptation: &[u8], payload: &[u8]) -> Vec<u8> {
    let [high, low] = pid.to_be_bytes();
    let mut packet = vec![SYNC, high | u8::from(begins) << 6, low, 0x30];
    let len = PACKET_LEN - 5 - payload.len();
    packet.push(len as u8);
    packet.extend(adaptation);
    packet.resize(5 + len, 0xff);
    packet.extend(payload);
    packet
}

/// Returns a packet with the only section of a table, which begins behind one byte of another one.
fn table(pid: u16, number: u8, body: &[u8]) -> Vec<u8> {
    let len = 5 + body.len() as u16 + 4;
    let [high, low] = len.to_be_bytes();
    let head = [1, 0xff, number, 0xb0 | high, low, 0, 1, 0xc1, 0, 0];
    packet(pid, true, &[0], &[&head, body, &[0; 4]].concat())
}

fn pat() -> Vec<u8> {
    // The first entry is that of the network.
    table(PAT_PID, 0, &[0, 0, 0xe0, 0x10, 0, 1, 0xf0, 0])
}

fn pmt(streams: &[(u8, u16)]) -> Vec<u8> {
    let mut body = vec![0xe1, 0, 0xf0, 2, 0x05, 0];
    for (kind, pid) in streams {
        let [high, low] = pid.to_be_bytes();
        body.extend([*kind, 0xe0 | high, low, 0xf0, 1, 0xff]);
    }
    table(MAP_PID, 2, &body)
}

/// Returns a packet that begins a frame, with the clock and the time stamp of this time.
fn frame(pid: u16, is_key: bool, ticks: u64) -> Vec<u8> {
    let ticks = ticks % WRAP;
    let flags = 0x10 | u8::from(is_key) << 6;
    let [p, q, r, s] = ((ticks >> 1) as u32).to_be_bytes();
    let clock = [flags, p, q, r, s, (ticks as u8 & 1) << 7, 0];
    let stamp = [
        0x21 | (ticks >> 29) as u8 & 0x0e,
        (ticks >> 22) as u8,
        (ticks >> 14) as u8 | 1,
        (ticks >> 7) as u8,
        (ticks << 1) as u8 | 1,
    ];
    let head = [0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5];
    packet(pid, true, &clock, &[&head[..], &stamp].concat())
}

fn filling(pid: u16, packets: usize) -> Vec<u8> {
    packet(pid, false, &[0], &[0xaa; 100]).repeat(packets)
}

/// Searches a file, and returns the segments with the number of bytes that were read.
fn search(file: &[u8], segment: u64) -> (Option<Segments>, u64) {
    let len = file.len() as u64;
    let part = file.len().min(400_000);
    let (first, last) = (&file[..part], &file[file.len() - part..]);
    let Some(mut search) = SegmentSearch::new(first, last, len, segment) else {
        return (None, 0);
    };
    let mut read = 0;
    while let Some(Range { start, end }) = search.wanted() {
        assert!(start < end && end <= len && end - start <= 1 << 20);
        assert_eq!(search.segments(), None);
        search.read(start, &file[start as usize..end as usize]);
        read += end - start;
    }
    (search.segments(), read)
}

const SECOND: u64 = 90_000;

/// The tables and a second of video with sound, in 501 packets.
fn second(begin: u64, tables: &[Vec<u8>]) -> Vec<u8> {
    let mut second = tables.concat();
    second.extend(frame(VIDEO, true, begin));
    second.extend(filling(VIDEO, 300));
    // The frames between are shown before the second one.
    for (number, ticks) in [(1, 60), (2, 20), (3, 40)] {
        second.extend(frame(VIDEO, false, begin + SECOND * ticks / 80));
        second.extend(frame(AUDIO, true, begin + SECOND * number / 4));
    }
    let rest = 501 * PACKET_LEN - second.len();
    second.extend(filling(VIDEO, rest / PACKET_LEN));
    second
}

fn tables() -> [Vec<u8>; 2] {
    [pat(), pmt(&[(0x0f, AUDIO), (0x1b, VIDEO)])]
}

const SECOND_LEN: u64 = 501 * PACKET;

#[test]
fn segments_begin_with_the_tables_of_a_key_frame() {
    // The clock begins again within the film.
    let begin = WRAP - 9 * SECOND;
    let film = (0..30).flat_map(|n| second(begin + n * SECOND, &tables()));
    let film: Vec<_> = film.collect();
    // The end of a segment of 2.5 seconds is at the next key frame.
    let (found, read) = search(&film, SECOND_LEN * 5 / 2);
    let expected = (0..10).map(|n| Segment {
        bytes: 3 * n * SECOND_LEN..3 * (n + 1) * SECOND_LEN,
        duration_ms: 3000,
    });
    let expected = Segments {
        init: None,
        segments: expected.collect(),
        are_independent: true,
    };
    assert_eq!(found, Some(expected));
    assert!(read < film.len() as u64 * 2 / 3, "{read} bytes");
}

#[test]
fn tables_elsewhere_are_sent_before_the_segments() {
    let mut film = [filling(VIDEO, 3), filling(0x11, 1), tables().concat()].concat();
    let start = film.len() as u64 + 7 * PACKET;
    film.extend(filling(AUDIO, 7));
    film.extend((0..4).flat_map(|n| second(n * SECOND, &[])));
    let (found, _) = search(&film, SECOND_LEN / 2);
    let found = found.expect("there are key frames");
    assert_eq!(found.init, Some(4 * PACKET..6 * PACKET));
    let starts: Vec<_> = found.segments.iter().map(|it| it.bytes.start).collect();
    assert_eq!(starts, [0, 1, 2, 3].map(|n| start + n * SECOND_LEN));
    assert!(found.segments.iter().all(|it| it.duration_ms == 1000));
}

#[test]
fn frames_before_a_key_frame_make_segments_dependent() {
    let check = |before: u64, are_independent| {
        let open = |n| {
            let key = frame(VIDEO, true, n * SECOND);
            let next = frame(VIDEO, false, n * SECOND - before);
            let rest = filling(VIDEO, 497);
            [tables().concat(), key, filling(AUDIO, 1), next, rest].concat()
        };
        let film = (1..20).flat_map(open);
        let (found, _) = search(&film.collect::<Vec<_>>(), SECOND_LEN);
        let found = found.expect("there are key frames");
        assert_eq!(found.are_independent, are_independent);
    };
    check(SECOND / 25, false);
    check(0, true);
}

#[test]
fn the_length_of_segments_follows_the_bit_rate() {
    let slow = |n| second(n * SECOND, &tables());
    let fast = |n: u64| {
        let more = filling(VIDEO, 3 * 501);
        [slow(n), more].concat()
    };
    let film = (0..40).flat_map(|n| if n < 20 { slow(n) } else { fast(n) });
    let film: Vec<_> = film.collect();
    let (found, _) = search(&film, SECOND_LEN * 6);
    let found = found.expect("there are key frames").segments;
    let durations: Vec<_> = found.iter().map(|it| it.duration_ms / 1000).collect();
    assert_eq!(durations, [6, 3, 3, 3, 3, 3, 2, 3, 3, 3, 3, 3, 2]);
}

#[test]
fn sound_alone_has_segments() {
    let tables = [pat(), pmt(&[(0x0f, AUDIO)])].concat();
    let unit = |n| [frame(AUDIO, true, n * SECOND / 10), filling(AUDIO, 49)].concat();
    let film = (0..100).flat_map(|n| [tables.clone(), unit(n)].concat());
    let (found, _) = search(&film.collect::<Vec<_>>(), 2 * 520 * PACKET);
    let found = found.expect("each unit is a beginning").segments;
    let durations: Vec<_> = found.iter().map(|it| it.duration_ms).collect();
    assert_eq!(durations, [2000; 5]);
}

#[test]
fn a_stream_with_too_few_key_frames_has_no_segments() {
    let keyless = |n| {
        let frame = frame(VIDEO, n == 0, n * SECOND);
        [tables().concat(), frame, filling(VIDEO, 498)].concat()
    };
    let film: Vec<_> = (0..100).flat_map(keyless).collect();
    let (found, read) = search(&film, 6 * SECOND_LEN);
    assert_eq!(found, None);
    assert!(read < 40 * SECOND_LEN, "{read} bytes");
    // In a short file, one key frame is enough.
    let (found, _) = search(&film[..20 * SECOND_LEN as usize], 6 * SECOND_LEN);
    let found = found.expect("there is a key frame").segments;
    assert_eq!(found[0].bytes, 0..20 * SECOND_LEN);
    assert_eq!(found[0].duration_ms, 20_000);
    // A gap later in the file makes one segment longer.
    let film: Vec<_> = (0..100)
        .flat_map(|n| match n {
            20..80 => keyless(n),
            _ => second(n * SECOND, &tables()),
        })
        .collect();
    let (found, _) = search(&film, 2 * SECOND_LEN);
    let found = found.expect("there are key frames").segments;
    let longest = found.iter().map(|it| it.duration_ms).max();
    assert_eq!(longest, Some(62_000));
    assert_eq!(found.iter().map(|it| it.duration_ms).sum::<u64>(), 100_000);
}

#[test]
fn a_segment_with_a_broken_clock_has_the_mean_rate() {
    let film =
        (0..20).flat_map(|n| second(if n < 10 { n + 90_000 } else { n } * SECOND, &tables()));
    let mut film: Vec<_> = film.collect();
    // The clock ends later than it begins, so that the file has a duration.
    film.extend(second(90_020 * SECOND, &tables()));
    let (found, _) = search(&film, 4 * SECOND_LEN);
    let found = found.expect("there are key frames").segments;
    let durations: Vec<_> = found.iter().map(|it| it.duration_ms).collect();
    // 21 seconds of film, of which the first and the last clock reference make 20.5.
    assert_eq!(durations, [4000, 4000, 3904, 4000, 3905, 976]);
}

proptest! {
    #[test]
    fn no_bytes_make_the_search_panic(
        mut bytes: Vec<u8>,
        damage in prop::collection::vec((0..60_000_usize, any::<u8>()), 0..200),
        segment in 0..100_000_u64,
    ) {
        bytes.extend((0..3).flat_map(|n| second(n * SECOND, &tables())));
        for (at, byte) in damage {
            let len = bytes.len();
            bytes[at * 5 % len] = byte;
        }
        let (found, read) = search(&bytes, segment);
        prop_assert!(read <= bytes.len() as u64 * 101 / 100 + 1000);
        for Segment { bytes: range, duration_ms } in found.iter().flat_map(|it| &it.segments) {
            prop_assert!(range.start < range.end && range.end <= bytes.len() as u64);
            prop_assert!(*duration_ms > 0);
        }
    }
}
