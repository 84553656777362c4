//! The videos: their files, bit rates and disks.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tussah::stage::Network;
use tussah::sync::oneshot;
use tussah_wire::mp4;
use tussah_wire::mpeg_ts::SegmentSearch;

use super::clock::Clock;
use super::disk;
use super::options::{Options, read_rate, show_rate};
use super::playlist;
use super::seats::Seats;
use super::server::{Address, VideoError};
use crate::web::site::{Codings, Found, Missing, Opened, Site, SiteOptions};

/// Bound, in files: the maximum number whose descriptions are remembered. Beyond it, all
/// descriptions are forgotten.
const KNOWN_MAX: usize = 10_000;

/// Bound, in bytes: the maximum length of each of the two parts of a transport stream, at its
/// beginning and its end, that are searched for its clock and its tables. A stream without a clock
/// there gets the rate of `--rate`. A clock reference comes every 100 ms, which is 250 KB at
/// 20 Mbit/s.
const CLOCK_BYTES: u64 = 256 << 10;

/// Bound, in bytes: the maximum length of the file that states the rate of a video. The rest of a
/// longer file is not read.
const SIDECAR_BYTES: u64 = 64;

/// The videos of a server, with their disks.
#[derive(Debug)]
pub struct Library {
    pub(super) site: Site,
    pub(super) options: Options,
    pub(super) disks: Vec<Disk>,
    pub(super) seats: Arc<Seats>,
    /// The stages of the graph, once it runs.
    pub(super) network: OnceLock<Network>,
    /// The descriptions of files, by their entity tags and devices.
    known: Mutex<HashMap<(String, u64), Arc<Description>>>,
    pub(super) rejected: AtomicU64,
    pub(super) ready: Address,
}

/// A disk.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) path: PathBuf,
    /// The rate at which it reads chunks, in bytes per second.
    pub(super) rate: u64,
    pub(super) chunks: AtomicU64,
    pub(super) bytes: AtomicU64,
    /// The chunks that were read later than their clients needed them.
    pub(super) late: AtomicU64,
}

/// A video that has been opened.
#[derive(Debug)]
pub(super) struct Title {
    /// The decoded path of its address.
    pub(super) path: String,
    pub(super) file: Arc<File>,
    pub(super) len: u64,
    /// Bytes per second.
    pub(super) rate: u64,
    pub(super) disk: usize,
}

/// The properties of a video that are read from its file.
#[derive(Debug)]
pub(super) struct Description {
    /// Bytes per second.
    pub(super) rate: u64,
    pub(super) parts: Parts,
}

/// The parts of a video that a playlist may consist of.
#[derive(Debug)]
pub(super) enum Parts {
    Movie(mp4::Movie),
    /// The search for the segments that begin with key frames. All playlists of the video continue
    /// the same search.
    TransportStream(Option<Mutex<SegmentSearch>>),
    /// The file has to be converted first.
    Unknown,
}

impl Description {
    /// Returns the search for the segments of a transport stream, if it is not complete, with the
    /// bytes that it needs next.
    pub(super) fn search(&self) -> Option<(&Mutex<SegmentSearch>, Range<u64>)> {
        let Parts::TransportStream(Some(search)) = &self.parts else {
            return None;
        };
        let wanted = search.lock().wanted()?;
        Some((search, wanted))
    }
}

impl Title {
    /// Returns whether this is the same video.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.path == other.path
    }

    #[cfg(test)]
    pub(super) fn fake(path: &str, disk: usize, rate: u64) -> Self {
        Self {
            path: path.to_owned(),
            file: Arc::new(File::open("/dev/null").expect("Linux")),
            len: 0,
            rate,
            disk,
        }
    }
}

impl Library {
    /// Opens the directory, and measures the disks whose rates are not stated.
    pub(super) fn open(
        options: Options,
        ready: oneshot::Sender<SocketAddr>,
    ) -> Result<Self, VideoError> {
        let types = [
            ("ts", "video/mp2t"),
            ("m3u8", "application/vnd.apple.mpegurl"),
        ];
        let site = SiteOptions {
            listing: true,
            precompressed: Codings::NONE,
            types: types.map(|(name, kind)| (name.into(), kind.into())).into(),
            ..SiteOptions::default()
        };
        let site = Site::open(&options.root, site).map_err(VideoError::Site)?;
        let cannot = |path: &Path, error: io::Error| {
            VideoError::Disk(format!("cannot open the disk {}: {error}", path.display()))
        };
        let root = options.root.canonicalize();
        let root = root.map_err(|error| cannot(&options.root, error))?;
        let mut paths = vec![(root.clone(), None)];
        for stated in &options.disks {
            let path = root.join(&stated.path);
            let path = path.canonicalize().map_err(|error| cannot(&path, error))?;
            if !path.starts_with(&root) || !path.is_dir() {
                return Err(VideoError::Disk(format!(
                    "the disk {} is not a directory inside {}",
                    path.display(),
                    root.display()
                )));
            }
            match paths.iter_mut().find(|(known, _)| *known == path) {
                Some((_, rate)) => *rate = stated.rate,
                None => paths.push((path, stated.rate)),
            }
        }
        let all: Vec<_> = paths.iter().map(|(path, _)| path.clone()).collect();
        let disks = paths.into_iter().map(|(path, rate)| {
            let rate = rate.unwrap_or_else(|| disk::measure(&path, &all));
            Disk {
                path,
                rate,
                chunks: AtomicU64::new(0),
                bytes: AtomicU64::new(0),
                late: AtomicU64::new(0),
            }
        });
        let disks: Vec<_> = disks.collect();
        let rates = disks.iter().map(|disk| disk.rate).collect();
        Ok(Self {
            seats: Arc::new(Seats::new(rates, options.ahead, options.each)),
            site,
            disks,
            network: OnceLock::new(),
            known: Mutex::default(),
            rejected: AtomicU64::new(0),
            ready: Mutex::new(Some(ready)),
            options,
        })
    }

    /// Returns the video of an opened file.
    pub(super) fn title(&self, path: &str, opened: Opened) -> (Title, Arc<Description>) {
        disk::read_exactly(&opened.file);
        let description = self.describe(path, &opened);
        let title = Title {
            path: path.to_owned(),
            len: opened.meta.len,
            rate: description.rate,
            disk: disk_of(&self.disks, path),
            file: Arc::new(opened.file),
        };
        (title, description)
    }

    /// Describes a file. May wait for its disk, for a megabyte if it is a transport stream and
    /// otherwise for a few kilobytes.
    fn describe(&self, path: &str, opened: &Opened) -> Arc<Description> {
        let key = (opened.meta.etag.as_str().to_owned(), opened.meta.device);
        // The rate that another file states may change, so the file is looked at each time.
        let stated = self.stated(path);
        let known = self.known.lock().get(&key).cloned();
        if let Some(known) = known.filter(|known| stated.is_none_or(|rate| rate == known.rate)) {
            return known;
        }
        let description = Arc::new(self.read(path, opened, stated));
        let mut all = self.known.lock();
        if all.len() >= KNOWN_MAX {
            all.clear();
        }
        all.insert(key, Arc::clone(&description));
        description
    }

    fn read(&self, path: &str, opened: &Opened, stated: Option<u64>) -> Description {
        let (file, len) = (&opened.file, opened.meta.len);
        // A file that cannot be read has no description; its stream shows the error.
        let movie = mp4::movie(len, |at, buffer| file.read_exact_at(buffer, at)).ok();
        let movie = movie.flatten();
        let ends = match &movie {
            Some(_) => None,
            None => both_ends(file, len),
        };
        let clock = ends.as_ref().and_then(|(first, last)| {
            Clock::read(len, first, last, |at, len| part_of(file, at, len))
        });
        let jumps = clock.is_some_and(|clock| clock.jumps);
        if jumps {
            tracing::warn!(
                %path,
                "the clock of the stream jumps; its duration is an estimate, and it has no playlist"
            );
        }
        let ms = match (&movie, clock) {
            (Some(movie), _) => movie.duration_ms,
            (None, clock) => clock.map(|clock| clock.duration_ms),
        };
        let own = ms.map(|ms| (u128::from(len) * 1000).div_ceil(ms.into()));
        let own = own.and_then(|rate| u64::try_from(rate).ok());
        let known = stated.or(own);
        let rate = known.unwrap_or_else(|| {
            let rate = show_rate(self.options.rate);
            tracing::warn!(
                %path,
                "the file does not state its bit rate; {rate} is assumed (--rate, or a file {path}.rate)"
            );
            self.options.rate
        });
        let rate = rate.max(super::options::RATE_MIN);
        let parts = match (movie, ends) {
            (Some(movie), _) => Parts::Movie(movie),
            // A file of another type may have the same extension.
            (None, Some((first, last)))
                if &*opened.meta.media_type == "video/mp2t" && known.is_some() && !jumps =>
            {
                let segment = playlist::segment_len(len, rate);
                let search = SegmentSearch::new(&first, &last, len, segment);
                Parts::TransportStream(search.map(Mutex::new))
            }
            (None, _) => Parts::Unknown,
        };
        Description { rate, parts }
    }

    /// Returns the rate that the file next to a video states.
    fn stated(&self, path: &str) -> Option<u64> {
        let sidecar = format!("{path}.rate");
        let opened = match self.site.look_up(sidecar.as_bytes(), Codings::NONE) {
            Ok(Found::File(opened)) => opened,
            Ok(_) | Err(Missing::NotFound) => return None,
            Err(error) => {
                tracing::warn!(?error, "cannot read {sidecar}");
                return None;
            }
        };
        let mut text = vec![0; opened.meta.len.min(SIDECAR_BYTES) as usize];
        let read = opened.file.read_exact_at(&mut text, 0);
        let text = String::from_utf8_lossy(&text);
        match read.map_err(|error| error.to_string()).and_then(|()| {
            let rate = read_rate(&text);
            rate.map_err(|error| error.to_string())
        }) {
            Ok(rate) => Some(rate),
            Err(error) => {
                tracing::warn!("cannot use {sidecar}: {error}");
                None
            }
        }
    }

    /// Counts a chunk that was read. Returns whether it is the first late one of its disk.
    pub(super) fn count(&self, disk: usize, bytes: u64, is_late: bool) -> bool {
        let disk = &self.disks[disk];
        // Relaxed: these are only counts.
        disk.chunks.fetch_add(1, Ordering::Relaxed);
        disk.bytes.fetch_add(bytes, Ordering::Relaxed);
        is_late && disk.late.fetch_add(1, Ordering::Relaxed) == 0
    }
}

/// Returns the first and the last bytes of a file that may be a transport stream.
fn both_ends(file: &File, len: u64) -> Option<(Vec<u8>, Vec<u8>)> {
    let part = len.min(CLOCK_BYTES);
    Some((part_of(file, 0, part)?, part_of(file, len - part, part)?))
}

/// Reads a part of a file.
fn part_of(file: &File, at: u64, len: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
}

/// Returns the number of the disk of a path: the deepest directory that contains it.
fn disk_of(disks: &[Disk], path: &str) -> usize {
    let whole = disks[0].path.join(path.trim_start_matches('/'));
    let containing = disks.iter().enumerate();
    let containing = containing.filter(|(_, disk)| whole.starts_with(&disk.path));
    let deepest = containing.max_by_key(|(_, disk)| disk.path.components().count());
    deepest.map_or(0, |(number, _)| number)
}
