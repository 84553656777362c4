//! Playlists of HTTP Live Streaming (RFC 8216), whose segments are byte ranges of a video.

use std::fmt::Write as _;
use std::ops::Range;

use tussah_wire::{mp4, mpeg_ts};

use super::library::Description;
use crate::web::site::percent_encode;

/// The duration of the segments of a transport stream.
const SEGMENT_MS: u64 = 6_000;

/// Bound, in segments: the maximum number in a playlist. A longer video has longer segments.
const SEGMENTS_MAX: u64 = 10_000;

/// A segment: its bytes, and its duration in milliseconds.
type Segment = (Range<u64>, u64);

/// Returns the playlist of a video of `len` bytes at a path. Returns `None` if the video has to be
/// converted first.
///
/// The segments of an MP4 file are its fragments. Those of a transport stream have equal lengths,
/// and durations by the mean bit rate of the file.
pub(super) fn of(
    path: &str,
    len: u64,
    media_type: &str,
    description: &Description,
) -> Option<String> {
    let (init, segments) = match &description.movie {
        Some(movie) if !movie.fragments.is_empty() => {
            (Some(movie.init.clone()), of_fragments(&movie.fragments))
        }
        None if media_type == "video/mp2t" && len > 0 => {
            (None, of_transport_stream(len, description.rate))
        }
        _ => return None,
    };
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut uri = String::new();
    percent_encode(name.as_bytes(), false, &mut uri);
    let longest = segments.iter().map(|(_, ms)| ms.div_ceil(1000)).max()?;
    let mut text = format!(
        "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:{longest}\n\
         #EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-PLAYLIST-TYPE:VOD\n"
    );
    if let Some(Range { start, end }) = init {
        let _ = writeln!(
            text,
            "#EXT-X-MAP:URI=\"{uri}\",BYTERANGE=\"{}@{start}\"",
            end - start
        );
    }
    for (Range { start, end }, ms) in segments {
        let seconds = ms as f64 / 1000.0;
        let _ = writeln!(
            text,
            "#EXTINF:{seconds:.3},\n#EXT-X-BYTERANGE:{}@{start}\n{uri}",
            end - start
        );
    }
    text.push_str("#EXT-X-ENDLIST\n");
    Some(text)
}

fn of_fragments(fragments: &[mp4::Fragment]) -> Vec<Segment> {
    let segments = fragments.iter();
    segments
        .map(|fragment| (fragment.bytes.clone(), fragment.duration_ms))
        .collect()
}

/// Divides a transport stream between packets.
fn of_transport_stream(len: u64, rate: u64) -> Vec<Segment> {
    let packet = mpeg_ts::PACKET_LEN as u64;
    let bytes = (rate * SEGMENT_MS / 1000).max(len / SEGMENTS_MAX);
    let bytes = bytes.div_ceil(packet) * packet;
    let starts = (0..len).step_by(usize::try_from(bytes).unwrap_or(usize::MAX));
    let segment = |start| {
        let end = len.min(start + bytes);
        let ms = u128::from(end - start) * 1000 / u128::from(rate);
        (start..end, u64::try_from(ms).unwrap_or(u64::MAX).max(1))
    };
    starts.map(segment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_stream_is_divided_between_packets() {
        // Six seconds at this rate are no multiple of a packet's length.
        let description = Description {
            rate: 18_801,
            movie: None,
        };
        let text = of("/a/b c.ts", 188_188, "video/mp2t", &description);
        let expected = "\
#EXTM3U
#EXT-X-VERSION:7
#EXT-X-TARGETDURATION:7
#EXT-X-MEDIA-SEQUENCE:0
#EXT-X-PLAYLIST-TYPE:VOD
#EXTINF:6.009,
#EXT-X-BYTERANGE:112988@0
b%20c.ts
#EXTINF:3.999,
#EXT-X-BYTERANGE:75200@112988
b%20c.ts
#EXT-X-ENDLIST
";
        assert_eq!(text.as_deref(), Some(expected));
        assert_eq!(
            of("/a.mkv", 188_188, "video/x-matroska", &description),
            None
        );
        let long = of("/a.ts", 1 << 40, "video/mp2t", &description).expect("a playlist");
        assert!(long.lines().count() < 30_010);
    }

    #[test]
    fn the_fragments_of_a_file_are_its_segments() {
        let fragment = |bytes, duration_ms| mp4::Fragment { bytes, duration_ms };
        let movie = |fragments: &[mp4::Fragment]| Description {
            rate: 1000,
            movie: Some(mp4::Movie {
                duration_ms: Some(3500),
                init: 0..700,
                fragments: fragments.to_vec(),
            }),
        };
        let fragments = [fragment(800..1800, 2002), fragment(1800..2500, 1500)];
        let text = of("/a.mp4", 2500, "video/mp4", &movie(&fragments)).expect("a playlist");
        let (_, rest) = text
            .split_once("VOD\n")
            .expect("a playlist of a whole video");
        let expected = "\
#EXT-X-MAP:URI=\"a.mp4\",BYTERANGE=\"700@0\"
#EXTINF:2.002,
#EXT-X-BYTERANGE:1000@800
a.mp4
#EXTINF:1.500,
#EXT-X-BYTERANGE:700@1800
a.mp4
#EXT-X-ENDLIST
";
        assert_eq!(rest, expected);
        assert!(text.contains("TARGETDURATION:3\n"));
        assert_eq!(of("/a.mp4", 2500, "video/mp4", &movie(&[])), None);
    }
}
