//! The command `tussah video`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::options::{DiskOptions, Options, read_rate};
use super::server::{Video, VideoError};
use crate::address::address;
use crate::units::some_duration;

/// Serve the videos of a directory at the rate at which they are played.
///
/// A client gets the first minute of a video immediately, and then five more seconds of it every
/// five seconds. The server admits a stream only if the disk that holds the video can read it in
/// time; otherwise the client gets 503. An admitted stream is never late as long as the disk
/// sustains the rate that is stated or measured for that disk.
///
/// Any player that supports HTTP can be used; players seek with range requests. If VIDEO is an MPEG
/// transport stream, or a fragmented MP4 file with an index of its fragments, VIDEO.m3u8 is its
/// playlist for HTTP Live Streaming. /status shows the disks, the streams, and the graph.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = AFTER)]
pub struct Arguments {
    /// Directory with videos
    #[arg(value_name = "DIR", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    root: PathBuf,
    /// Address to listen on: IP:PORT, or PORT (on 127.0.0.1); port 0 selects a free port
    #[arg(short, long, value_name = "ADDR", default_value = "127.0.0.1:8080", value_parser = address)]
    listen: SocketAddr,
    /// Directory inside DIR that is on a disk of its own, and the rate at which that disk reads
    /// chunks; repeatable
    ///
    /// If no rate is given for a disk, the server measures the disk's rate at startup. Together,
    /// the admitted streams of a disk never need more than the disk's rate. The path `.` stands for
    /// the disk of DIR itself.
    #[arg(short, long, value_name = "PATH[=RATE]", value_parser = disk)]
    disk: Vec<DiskOptions>,
    /// Bit rate of videos whose files do not state one [default: 8Mbit/s]
    ///
    /// MP4 files and MPEG transport streams state their duration, from which the server computes
    /// their mean rate. A file VIDEO.rate next to VIDEO, with a rate such as 1.5Mbit/s, takes
    /// precedence over all other rates.
    #[arg(short, long, value_name = "RATE", value_parser = read_rate)]
    rate: Option<u64>,
    /// Length of the part of a video that is sent immediately [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = some_duration)]
    ahead: Option<Duration>,
    /// Length of the chunks in which the rest of a video is read and sent [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = some_duration)]
    chunk: Option<Duration>,
    /// Maximum number of streams per client address [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit_streams: Option<u32>,
    /// Maximum number of open connections [default: 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit_connections: Option<u32>,
    /// Time after which a client that reads nothing is disconnected [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = some_duration)]
    patience: Option<Duration>,
    /// Time for which streams may continue when the server shuts down [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = some_duration)]
    drain: Option<Duration>,
    /// Number of workers [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Limit each disk to its stated rate, so that a measurement can use one fast disk in place of
    /// several
    #[arg(long)]
    simulate_disks: bool,
}

const AFTER: &str = "\
Rates:
  bit/s, kbit/s, Mbit/s and Gbit/s, or bytes such as MB/s

Exit status:
  0  the server was stopped by a signal
  1  the server could not start
  2  the command line is invalid

Examples:
  Serve the videos of a directory, and play one:
    tussah video /srv/videos
    mpv http://127.0.0.1:8080/film.mp4
  Use three disks, two of which read 80 MB/s:
    tussah video /srv/videos --disk disk1=80MB/s --disk disk2=80MB/s
  Watch the pace:
    curl -o /dev/null http://127.0.0.1:8080/film.mp4";

fn disk(text: &str) -> Result<DiskOptions, String> {
    let Some((path, rate)) = text.rsplit_once('=') else {
        return Ok(DiskOptions {
            path: text.into(),
            rate: None,
        });
    };
    let rate = read_rate(rate).map_err(|error| error.to_string())?;
    Ok(DiskOptions {
        path: path.into(),
        rate: Some(rate),
    })
}

impl From<Arguments> for Options {
    fn from(arguments: Arguments) -> Self {
        let defaults = Self::default();
        let count = |given: Option<u32>, default| given.map_or(default, |it| it as usize);
        Self {
            root: arguments.root,
            listen: arguments.listen,
            disks: arguments.disk,
            rate: arguments.rate.unwrap_or(defaults.rate),
            ahead: arguments.ahead.unwrap_or(defaults.ahead),
            chunk: arguments.chunk.unwrap_or(defaults.chunk),
            each: count(arguments.limit_streams, defaults.each),
            connections: count(arguments.limit_connections, defaults.connections),
            patience: arguments.patience.unwrap_or(defaults.patience),
            drain: arguments.drain.unwrap_or(defaults.drain),
            workers: arguments.workers.map(usize::from),
            simulate_disks: arguments.simulate_disks,
        }
    }
}

/// Runs `tussah video`. Returns the exit status.
#[must_use]
pub fn run(arguments: Arguments) -> ExitCode {
    match Video::new(arguments.into()).run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tussah video: {error}");
            match error {
                VideoError::Option(_) => ExitCode::from(2),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_read() {
        let check = |text: &str, path: &str, rate: Option<u64>| {
            let expected = DiskOptions {
                path: path.into(),
                rate,
            };
            assert_eq!(disk(text), Ok(expected), "{text}");
        };
        check("a", "a", None);
        check("a=1MB/s", "a", Some(1_000_000));
        check("a=b=8Mbit/s", "a=b", Some(1_000_000));
        assert!(disk("a=1MB").is_err());
    }
}
