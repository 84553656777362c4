//! Playlists of HTTP Live Streaming (RFC 8216), whose segments are byte ranges of a video.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tussah_wire::http::Status;
use tussah_wire::mpeg_ts::{self, SEGMENTS_MAX, Segments};

use super::disk::{Read, Reader};
use super::library::{Description, Parts, Title};
use super::seats::Seat;
use crate::modules::{Request, Response};
use crate::web::site::percent_encode;

/// The duration of the segments of a transport stream.
const SEGMENT_MS: u64 = 6_000;

/// The shortest read of a search, in bytes. A search recognizes packets by the packets after them.
pub(super) const READ_MIN: u64 = 16 * mpeg_ts::PACKET_LEN as u64;

/// A segment: its bytes, and its duration in milliseconds.
type Segment = (Range<u64>, u64);

/// A request for a playlist whose segments have to be found. It reads as a stream does that has not
/// read its first minute, so it has a seat, and reads one chunk at a time.
pub(super) struct Search {
    request: Request,
    title: Arc<Title>,
    description: Arc<Description>,
    _seat: Seat,
}

impl Search {
    pub(super) fn new(
        request: Request,
        title: Arc<Title>,
        description: Arc<Description>,
        seat: Seat,
    ) -> Self {
        Self {
            request,
            title,
            description,
            _seat: seat,
        }
    }

    pub(super) fn title(&self) -> &Title {
        &self.title
    }

    /// Returns the next read: a chunk of this length. Returns `None` if the search is complete, or
    /// if the client has disconnected.
    pub(super) fn next(&self, chunk: Duration) -> Option<Read> {
        let (_, wanted) = self.description.search()?;
        let chunk = (self.title.rate as f64 * chunk.as_secs_f64()) as u64;
        (!self.request.is_over()).then(|| Read {
            title: Arc::clone(&self.title),
            bytes: wanted.start..wanted.start + chunk.max(READ_MIN),
            reader: Reader::Playlist(Arc::clone(&self.description)),
        })
    }

    /// Answers with the playlist.
    pub(super) fn respond(self) -> Response {
        respond(self.request, &self.title, &self.description)
    }

    /// Answers that the file cannot be read.
    pub(super) fn fail(self) -> Response {
        self.request.status(Status::INTERNAL_SERVER_ERROR)
    }
}

/// Answers with the playlist of a video.
pub(super) fn respond(request: Request, title: &Title, description: &Description) -> Response {
    match of(&title.path, title.len, description) {
        Some(text) => {
            let response = request.respond(text);
            response.with_type("application/vnd.apple.mpegurl")
        }
        None => {
            let text = "a playlist needs an MPEG transport stream, or an MP4 file with fragments and an index (sidx)\n";
            request.respond(text).with_status(Status::NOT_FOUND)
        }
    }
}

/// Returns the mean length of the segments of a transport stream.
pub(super) fn segment_len(len: u64, rate: u64) -> u64 {
    (rate * SEGMENT_MS / 1000).max(len / SEGMENTS_MAX)
}

/// Returns the playlist of a video of `len` bytes at a path. Returns `None` if the video has to be
/// converted first.
///
/// The segments of an MP4 file are its fragments. Those of a transport stream begin with key
/// frames. If the search for them failed, they have equal lengths, and durations by the mean bit
/// rate of the file.
fn of(path: &str, len: u64, description: &Description) -> Option<String> {
    let found = match &description.parts {
        Parts::TransportStream(Some(search)) => search.lock().segments(),
        _ => None,
    };
    let are_independent = found.as_ref().is_some_and(|found| found.are_independent);
    let (init, segments) = match (&description.parts, found) {
        (Parts::Movie(movie), _) => {
            let segments = movie.fragments.iter();
            let segments = segments.map(|it| (it.bytes.clone(), it.duration_ms));
            (Some(movie.init.clone()), segments.collect())
        }
        (_, Some(Segments { init, segments, .. })) => {
            let segments = segments.into_iter();
            let segments = segments.map(|it| (it.bytes, it.duration_ms));
            (init, segments.collect())
        }
        (Parts::TransportStream(_), None) => (None, equal_segments(len, description.rate)),
        (Parts::Unknown, None) => return None,
    };
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut uri = String::new();
    percent_encode(name.as_bytes(), false, &mut uri);
    let longest = segments.iter().map(|(_, ms)| ms.div_ceil(1000)).max()?;
    let mut text = format!(
        "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:{longest}\n\
         #EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-PLAYLIST-TYPE:VOD\n"
    );
    if are_independent {
        text.push_str("#EXT-X-INDEPENDENT-SEGMENTS\n");
    }
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

/// Divides a transport stream between packets.
fn equal_segments(len: u64, rate: u64) -> Vec<Segment> {
    let packet = mpeg_ts::PACKET_LEN as u64;
    let bytes = segment_len(len, rate).div_ceil(packet) * packet;
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
    use tussah_wire::mp4;

    #[test]
    fn a_transport_stream_is_divided_between_packets() {
        // Six seconds at this rate are no multiple of a packet's length.
        let description = Description {
            rate: 18_801,
            parts: Parts::TransportStream(None),
        };
        let text = of("/a/b c.ts", 188_188, &description);
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
        let long = of("/a.ts", 1 << 40, &description).expect("a playlist");
        assert!(long.lines().count() < 30_010);
    }

    #[test]
    fn the_fragments_of_a_file_are_its_segments() {
        let fragment = |bytes, duration_ms| mp4::Fragment { bytes, duration_ms };
        let movie = |fragments: &[mp4::Fragment]| Description {
            rate: 1000,
            parts: Parts::Movie(mp4::Movie {
                duration_ms: Some(3500),
                init: 0..700,
                fragments: fragments.to_vec(),
            }),
        };
        let fragments = [fragment(800..1800, 2002), fragment(1800..2500, 1500)];
        let text = of("/a.mp4", 2500, &movie(&fragments)).expect("a playlist");
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
        assert_eq!(of("/a.mp4", 2500, &movie(&[])), None);
    }
}
