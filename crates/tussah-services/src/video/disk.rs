//! The module that reads a disk.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};
use tussah::flow::{AsyncOut, Fields, Value, module};
use tussah::time::{now, sleep_until};

use super::library::{Description, Library, Title};
use super::playlist::READ_MIN;
use crate::modules::BodySender;

/// The maximum length, in bytes, of the part of a chunk that is read at a time, and that is then in
/// memory.
const BUFFER_BYTES: usize = 1 << 20;

/// A chunk of a video to read.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) title: Arc<Title>,
    pub(super) bytes: Range<u64>,
    pub(super) reader: Reader,
}

/// The purpose of a chunk.
#[derive(Debug)]
pub(super) enum Reader {
    /// A stream; a chunk that no client waits for is not read.
    Stream(Arc<BodySender>),
    /// The search for the segments of a playlist, which needs parts of the chunk.
    Playlist(Arc<Description>),
}

impl Fields for Read {
    const NAMES: &'static [&'static str] = &["disk"];

    fn field(&self, name: &str) -> Option<Value> {
        (name == "disk").then_some(Value::Count(self.title.disk as u64))
    }

    fn shard(&self, _: &str) -> Option<usize> {
        Some(self.title.disk)
    }
}

/// A chunk that has been read, and is in the memory of the system.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) bytes: Range<u64>,
    /// The number of bytes that were read.
    pub(super) read: io::Result<u64>,
}

/// Reads the chunks of a disk, one after the other.
///
/// The chunks stay in the page cache of the system, from which the connections send them. Reading
/// therefore needs no memory for each stream, and a slow client holds none.
pub(super) struct Disk {
    library: Arc<Library>,
    /// The time at which a simulated disk has read everything so far.
    idle_at: Option<Instant>,
}

#[module]
impl Disk {
    fn init(library: Arc<Library>) -> Self {
        Self {
            library,
            idle_at: None,
        }
    }

    async fn run(&mut self, read: Read, out: &impl AsyncOut<Loaded>) {
        let bytes = read.bytes.clone();
        let read = self.read(&read).await;
        out.send(Loaded { bytes, read }).await;
    }
}

impl Disk {
    async fn read(&mut self, read: &Read) -> io::Result<u64> {
        let Read { title, bytes, .. } = read;
        let file = tussah::fs::File::from(title.file.try_clone()?);
        let mut len = 0;
        match &read.reader {
            Reader::Stream(body) => {
                while bytes.start + len < bytes.end && !body.is_over() {
                    let rest = bytes.start + len..bytes.end;
                    len += read_part(&file, rest).await?.len() as u64;
                }
            }
            Reader::Playlist(description) => {
                while let Some((search, wanted)) = description.search() {
                    let (at, end) = (wanted.start, wanted.end.min(bytes.end));
                    // What is too short for a read belongs to the next chunk.
                    let is_short = end < wanted.end && end < at + READ_MIN;
                    if at < bytes.start || is_short {
                        break;
                    }
                    let part = read_part(&file, at..end).await?;
                    search.lock().read(at, &part);
                    len += part.len() as u64;
                }
            }
        }
        if self.library.options.simulate_disks {
            let rate = self.library.disks[title.disk].rate as f64;
            let takes = Duration::from_secs_f64(len as f64 / rate);
            let idle_at = self.idle_at.unwrap_or_else(now).max(now()) + takes;
            self.idle_at = Some(idle_at);
            sleep_until(idle_at).await;
        }
        Ok(len)
    }
}

/// Reads the first bytes of a range, at least one.
async fn read_part(file: &tussah::fs::File, bytes: Range<u64>) -> io::Result<Vec<u8>> {
    // A buffer of exactly this length, because the read fills it.
    let len = usize::try_from(bytes.end - bytes.start).unwrap_or(BUFFER_BYTES);
    let buffer = Vec::with_capacity(len.min(BUFFER_BYTES));
    let (read, part) = file.read_at(buffer, bytes.start).await;
    match read? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(part),
    }
}

/// Makes reads of a file take only what they ask for from its disk.
///
/// The system would otherwise read megabytes beyond each chunk on some disks. With many streams,
/// these pages leave the memory before they are needed, and the disk reads several times as much
/// as it sends.
pub(super) fn read_exactly(file: &File) {
    // File systems that know no advice read as they do.
    let _ = fadvise(file, 0, None, Advice::Random);
}

/// The rate that is assumed for a disk without files to measure: that of a slow hard disk.
const UNKNOWN: u64 = 50_000_000;

/// Bound, in time: the time after which the measurement of a disk begins no further read.
const MEASURE: Duration = Duration::from_millis(500);

/// Bound, in entries: the maximum number of directory entries that are examined for files to
/// measure.
const ENTRIES_MAX: usize = 10_000;

/// Bound, in files: the maximum number of files that are read to measure a disk.
const FILES_MAX: usize = 64;

/// Measures the rate at which a disk reads parts of a megabyte in random places of its files, in
/// bytes per second. A quarter of it is left as a reserve.
///
/// The directories in `others` that are inside `path` are disks of their own.
pub(super) fn measure(path: &Path, others: &[PathBuf]) -> u64 {
    let mut directories = vec![path.to_owned()];
    let (mut files, mut seen) = (Vec::new(), 0);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            seen += 1;
            let (whole, kind) = (entry.path(), entry.file_type());
            match kind {
                Ok(kind) if kind.is_dir() && !others.contains(&whole) => directories.push(whole),
                Ok(kind) if kind.is_file() => files.extend(File::open(whole)),
                _ => {}
            }
            if seen >= ENTRIES_MAX || files.len() >= FILES_MAX {
                directories.clear();
                break;
            }
        }
    }
    let rate = measure_files(&files);
    if rate.is_none() {
        let path = path.display();
        tracing::warn!("cannot measure the disk {path}: no file of 1 MiB; 50 MB/s is assumed");
    }
    rate.map_or(UNKNOWN, |rate| rate / 4 * 3)
}

fn measure_files(files: &[File]) -> Option<u64> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let parts = |file: &File| file.metadata().map_or(0, |meta| meta.len() >> 20);
    files.iter().for_each(read_exactly);
    let files: Vec<_> = files.iter().map(|file| (file, parts(file))).collect();
    let files: Vec<_> = files.into_iter().filter(|(_, parts)| *parts > 0).collect();
    let (begun, mut bytes) = (Instant::now(), 0);
    while begun.elapsed() < MEASURE {
        let (file, parts) = files.get(fastrand::usize(..files.len().max(1)))?;
        let at = fastrand::u64(..parts) << 20;
        // If the part stays in memory nevertheless, the disk seems faster than it is. The operator
        // can state its rate.
        let _ = fadvise(
            file,
            at,
            std::num::NonZeroU64::new(1 << 20),
            Advice::DontNeed,
        );
        file.read_exact_at(&mut buffer, at).ok()?;
        bytes += buffer.len() as u64;
    }
    Some((bytes as f64 / begun.elapsed().as_secs_f64()) as u64)
}
