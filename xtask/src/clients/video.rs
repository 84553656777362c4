//! A test of `tussah video` with headless Chromium: a video plays and seeks, and so do the segments
//! of its playlist.

use std::fs;

use super::browser::run_page;
use super::server::Place;

/// The page that plays the video. It prints `video: passed` or `video: failed` on its console.
const PAGE: &str = include_str!("video/index.html");

/// An MP4 file with one fragment of one second, of 12 KB. VP9 is a codec that every build of
/// Chromium decodes. This command makes the file:
///
/// ```sh
/// ffmpeg -f lavfi -i testsrc2=size=320x180:rate=10:duration=1 \
///     -c:v libvpx-vp9 -pix_fmt yuv420p -crf 40 -b:v 0 -g 10 \
///     -video_track_timescale 1000 -fflags +bitexact -flags:v +bitexact \
///     -movflags +frag_keyframe+empty_moov+default_base_moof+skip_trailer second.mp4
/// ```
const SECOND: &[u8] = include_bytes!("video/second.mp4");

/// The duration of the video. Chromium requests another range only if a seek goes far beyond the
/// bytes that it has, by more than about 160 KB. One minute of video is long enough.
const SECONDS: u32 = 60;

/// Plays the video. The server sends two seconds of it at once, so a seek goes to a part that has
/// not been sent.
pub(super) fn check(place: &Place, program: &str) -> anyhow::Result<Vec<String>> {
    let videos = place.folder.join("videos");
    fs::create_dir_all(&videos)?;
    fs::write(videos.join("index.html"), PAGE)?;
    fs::write(videos.join("film.mp4"), film(SECOND, SECONDS))?;
    let server = place.serve_videos(&videos, &["--ahead", "2s", "--chunk", "1s"])?;
    let failure = run_page(place, program, "video", &format!("{}/", server.url))?;
    let served = server.end()?;
    let failure = failure.map(|failure| format!("{failure}; the server printed {served:?}"));
    Ok(failure.into_iter().collect())
}

/// Returns a video that repeats a fragment of one second, with an index of all fragments.
fn film(second: &[u8], seconds: u32) -> Vec<u8> {
    let (init, fragment) = second.split_at(find(second, b"moof") - 4);
    let mut film = init.to_vec();
    film.extend(index(fragment.len() as u32, seconds));
    // The number of a fragment and the time at which it begins are behind version and flags.
    let (number, time) = (find(fragment, b"mfhd") + 8, find(fragment, b"tfdt") + 8);
    for second in 0..seconds {
        let mut fragment = fragment.to_vec();
        fragment[number..][..4].copy_from_slice(&(second + 1).to_be_bytes());
        fragment[time..][..8].copy_from_slice(&(u64::from(second) * 1000).to_be_bytes());
        film.extend(fragment);
    }
    film
}

/// Returns an index of equal fragments (`sidx`; ISO/IEC 14496-12, section 8.16.3).
fn index(fragment_len: u32, count: u32) -> Vec<u8> {
    let (track, timescale) = (1, 1000);
    // Version and flags, the track, the timescale, the first time, and the distance to the first
    // fragment.
    let mut fields = vec![0, track, timescale, 0, 0, count];
    for _ in 0..count {
        let begins_with_key_frame = 0x9000_0000;
        fields.extend([fragment_len, timescale, begins_with_key_frame]);
    }
    let len = 8 + 4 * fields.len() as u32;
    let mut index = [len.to_be_bytes(), *b"sidx"].concat();
    index.extend(fields.into_iter().flat_map(u32::to_be_bytes));
    index
}

/// Returns the place of a box's type.
fn find(bytes: &[u8], kind: &[u8; 4]) -> usize {
    let mut windows = bytes.windows(4);
    windows
        .position(|window| window == kind)
        .expect("the file has this box")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_film_repeats_its_second() {
        let film = film(SECOND, 3);
        let fragment = SECOND.len() - (find(SECOND, b"moof") - 4);
        let sidx = find(&film, b"sidx");
        assert_eq!(film.len(), SECOND.len() + 2 * fragment + 32 + 12 * 3);
        let last = &film[film.len() - fragment..];
        assert_eq!(
            &last[find(last, b"tfdt") + 8..][..8],
            2000_u64.to_be_bytes()
        );
        assert_eq!(film[sidx + 26..][..2], [0, 3]);
        assert!(SECOND.len() < 100_000);
    }
}
