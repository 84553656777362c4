//! A test of `tussah video` with ffmpeg, which is a player of HTTP Live Streaming: it plays the
//! playlist of a transport stream, and seeks. Each segment has to begin with a key frame.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use super::output;
use super::server::Place;

const SECONDS: u32 = 60;
const FRAMES_PER_SECOND: u32 = 10;

/// The times to seek to, after which ffmpeg plays the rest of the video. They are times of key
/// frames, from which ffmpeg plays every frame. The bit rate is several times as high between 20 s
/// and 40 s, so that bytes do not tell times.
const SEEKS: [u32; 3] = [0, 10, 45];

/// Plays the playlist of a video with long groups of frames and frames out of order.
pub(super) fn check(place: &Place, ffmpeg: &str) -> anyhow::Result<Vec<String>> {
    let videos = place.folder.join("hls");
    fs::create_dir_all(&videos)?;
    let film = videos.join("film.ts");
    make(ffmpeg, &film)?;
    let server = place.serve_videos(&videos, &[])?;
    let url = format!("{}/film.ts.m3u8", server.url);
    let mut failures = Vec::new();
    let playlist = get(&url)?;
    if let Err(failure) = check_segments(&playlist, &film, &videos.join("segment.ts")) {
        failures.push(format!("{failure:#}: {playlist}"));
    }
    for seek in SEEKS {
        let mut player = Command::new(ffmpeg);
        player.args(["-nostdin", "-v", "error", "-xerror"]);
        if seek > 0 {
            player.args(["-ss", &seek.to_string()]);
        }
        player.args(["-i", &url]);
        player.args(["-map", "0:v", "-f", "null", "-progress", "-", "-"]);
        let printed = output(&mut player)?;
        let text = String::from_utf8_lossy(&printed.out).into_owned();
        let mut frames = text.lines().filter_map(|line| line.strip_prefix("frame="));
        let played = frames.next_back().and_then(|it| it.trim().parse().ok());
        let expected = (SECONDS - seek) * FRAMES_PER_SECOND;
        if played != Some(expected) || !printed.errors.is_empty() {
            let errors = printed.errors;
            failures.push(format!(
                "from {seek} s: {played:?} frames, expected {expected}; {errors}"
            ));
        }
    }
    let log = server.end()?;
    let log = log.into_iter().filter(|line| line.contains("WARN"));
    failures.extend(log);
    Ok(failures)
}

/// Makes the video, with an encoder that every build of ffmpeg has.
fn make(ffmpeg: &str, film: &Path) -> anyhow::Result<()> {
    let picture = format!("testsrc2=size=320x180:rate={FRAMES_PER_SECOND}:duration={SECONDS}");
    let sound = format!("sine=duration={SECONDS}");
    let mut maker = Command::new(ffmpeg);
    maker.args([
        "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", &picture,
    ]);
    maker.args(["-f", "lavfi", "-i", &sound]);
    maker.args(["-vf", "noise=alls=60:allf=t:enable='between(t,20,40)'"]);
    maker.args(["-c:v", "mpeg2video", "-q:v", "8", "-g", "25", "-bf", "2"]);
    maker.args(["-flags:v", "+cgop", "-sc_threshold", "1000000000"]);
    maker.args(["-c:a", "mp2", "-f", "mpegts"]);
    let made = output(maker.arg(film))?;
    anyhow::ensure!(
        film.is_file() && made.errors.is_empty(),
        "ffmpeg made no video: {}",
        made.errors
    );
    Ok(())
}

/// Returns the body of a response. The URL is that of a server at an IP address.
fn get(url: &str) -> anyhow::Result<String> {
    let rest = url.trim_start_matches("http://");
    let (address, path) = rest.split_once('/').context("the URL has no path")?;
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET /{path} HTTP/1.0\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (_, body) = text.split_once("\r\n\r\n").context("no body")?;
    Ok(body.to_owned())
}

/// Checks that each segment begins with a key frame, and takes as long as its playlist says.
fn check_segments(playlist: &str, film: &Path, segment: &Path) -> anyhow::Result<()> {
    let film = fs::read(film)?;
    let mut expected = None;
    for (duration, start, len) in segments(playlist)? {
        fs::write(segment, &film[start..start + len])?;
        let mut probe = Command::new("ffprobe");
        probe.args(["-v", "error", "-select_streams", "v", "-of", "csv=p=0"]);
        probe.args(["-show_entries", "packet=pts_time,flags"]);
        let printed = output(probe.arg(segment))?;
        let text = String::from_utf8_lossy(&printed.out).into_owned();
        let first = text.lines().next().unwrap_or_default();
        let (time, flags) = first.split_once(',').context("a segment has no frame")?;
        let time: f64 = time.parse().context("the first frame has no time")?;
        anyhow::ensure!(
            flags.starts_with('K'),
            "the segment at {start} begins with {first}"
        );
        let expected = expected.replace(time + duration).unwrap_or(time);
        anyhow::ensure!(
            (time - expected).abs() < 0.002,
            "the segment at {start} begins at {time} s, expected {expected} s"
        );
    }
    let end = expected.context("no segments")?;
    anyhow::ensure!(end > f64::from(SECONDS), "the playlist ends at {end} s");
    Ok(())
}

/// Returns the duration, the start and the length of each segment.
fn segments(playlist: &str) -> anyhow::Result<Vec<(f64, usize, usize)>> {
    let fields = |name| playlist.lines().filter_map(move |it| it.strip_prefix(name));
    let durations = fields("#EXTINF:").zip(fields("#EXT-X-BYTERANGE:"));
    durations
        .map(|(duration, range)| {
            let (len, start) = range.split_once('@').context("a range without a start")?;
            let duration = duration.trim_end_matches(',').parse()?;
            Ok((duration, start.parse()?, len.parse()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_segments_of_a_playlist_are_read() {
        let text = "#EXTM3U\n#EXTINF:2.500,\n#EXT-X-BYTERANGE:376@188\na.ts\n";
        assert_eq!(segments(text).expect("a playlist"), [(2.5, 188, 376)]);
        assert!(segments("#EXTINF:a,\n#EXT-X-BYTERANGE:1@2").is_err());
    }
}
