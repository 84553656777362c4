//! The bytes of video files: what is found lies within the file, and nothing takes long.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tussah_wire::mp4;
use tussah_wire::mpeg_ts::{self, SegmentSearch};

fuzz_target!(|bytes: &[u8]| {
    let (first, last) = bytes.split_at(bytes.len() / 2);
    let _ = mpeg_ts::duration_ms(first, last);
    let read = |at: u64, buffer: &mut [u8]| {
        let at = usize::try_from(at).expect("it is within the file");
        buffer.copy_from_slice(&bytes[at..at + buffer.len()]);
        Ok(())
    };
    let len = bytes.len() as u64;
    if let Ok(Some(movie)) = mp4::movie(len, read) {
        assert!(movie.init.end <= len);
        for pair in movie.fragments.windows(2) {
            assert_eq!(pair[0].bytes.end, pair[1].bytes.start);
        }
        assert!(
            movie
                .fragments
                .last()
                .is_none_or(|last| last.bytes.end <= len)
        );
    }
    // The last byte selects the length of the segments.
    let segment = u64::from(bytes.last().copied().unwrap_or(0)) << 7;
    segments(bytes, segment);
    segments(&transport_stream(bytes), segment);
});

/// The beginnings of the packets of a PAT and a PMT, with video in stream 0x100.
const TABLES: [&[u8]; 2] = [
    &[
        0x47, 0x40, 0, 0x10, 0, 0, 0xb0, 13, 0, 1, 0xc1, 0, 0, 0, 1, 0xf0, 0, 0, 0, 0, 0,
    ],
    &[
        0x47, 0x50, 0, 0x10, 0, 2, 0xb0, 18, 0, 1, 0xc1, 0, 0, 0xe1, 0, 0xf0, 0, 0x1b, 0xe1, 0,
        0xf0, 0, 0, 0, 0, 0,
    ],
];

/// The streams of the packets: those of the tables, of video and of sound.
const STREAMS: [u16; 4] = [0, 0x1000, 0x100, 0x101];

/// Returns a transport stream: first the tables, and then a packet for each 24 bytes, which select
/// its stream and are its beginning.
fn transport_stream(bytes: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut add = |packet: &[u8]| {
        file.extend(packet);
        file.resize(file.len().next_multiple_of(mpeg_ts::PACKET_LEN), 0xff);
    };
    TABLES.iter().for_each(|table| add(table));
    for part in bytes.chunks(24) {
        let [high, low] = STREAMS[usize::from(part[0] & 3)].to_be_bytes();
        add(&[&[0x47, part[0] & 0xe0 | high, low], &part[1..]].concat());
    }
    file
}

/// Searches for the segments of a file.
fn segments(bytes: &[u8], segment: u64) {
    let len = bytes.len() as u64;
    let Some(mut search) = SegmentSearch::new(bytes, bytes, len, segment) else {
        return;
    };
    let mut read = 0;
    while let Some(wanted) = search.wanted() {
        assert!(wanted.start < wanted.end && wanted.end <= len);
        search.read(
            wanted.start,
            &bytes[wanted.start as usize..wanted.end as usize],
        );
        read += wanted.end - wanted.start;
        // A rest that is shorter than a packet is read twice.
        assert!(read <= len + len / 100 + 1000);
    }
    let found = search.segments();
    let found = found.as_ref().map_or(&[][..], |found| &found.segments);
    for pair in found.windows(2) {
        assert_eq!(pair[0].bytes.end, pair[1].bytes.start);
    }
    for segment in found {
        assert!(segment.bytes.start < segment.bytes.end && segment.duration_ms > 0);
    }
    assert!(found.last().is_none_or(|last| last.bytes.end == len));
}
