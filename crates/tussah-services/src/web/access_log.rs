//! The access log: which requests came, and what became of them.
//!
//! Lines are collected in memory, and an OS thread writes them in batches, so that no worker waits for a disk. When
//! the disk is too slow or full, lines are lost, and the log itself says how many.

mod line;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

pub use line::Record;

use super::config::{LogFile, LogFormat};

/// Bound, in bytes: the lines that wait to be written, some 5,000; more are lost. As many again are being written.
const PENDING_BYTES_MAX: usize = 1 << 20;

/// Bound, in milliseconds: how long a line waits for others to be written with it.
const BATCH_MS: u64 = 100;

/// Bound, in seconds: how long the end of a log waits for a disk.
const CLOSE_SECONDS: u64 = 5;

/// An access log. Dropping it writes what is left, for [`close`](Self::close)'s time at most.
#[derive(Debug)]
pub struct AccessLog {
    shared: Arc<Shared>,
    format: LogFormat,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    pending: Mutex<Pending>,
    /// Tells the writer that there is something to do.
    wanted: Condvar,
    /// Tells who closes the log that all is written.
    done: Condvar,
}

#[derive(Debug, Default)]
struct Pending {
    lines: Vec<u8>,
    lost: u64,
    /// Where in the lines those begin that belong into the file that is opened next.
    reopen_at: Option<usize>,
    closing: bool,
    closed: bool,
}

impl AccessLog {
    /// Opens a log, whose file is appended to, and starts its OS thread.
    ///
    /// # Errors
    /// If the file can't be opened, or there can't be another OS thread.
    pub fn open(file: &LogFile, format: LogFormat) -> io::Result<Self> {
        let sink = Sink::open(file)?;
        Self::start(sink, file.clone(), format)
    }

    fn start(sink: Sink, file: LogFile, format: LogFormat) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let writer = Writer {
            shared: Arc::clone(&shared),
            sink,
            file,
            torn: false,
        };
        let writer = thread::Builder::new()
            .name("access-log".into())
            .spawn(|| writer.run())?;
        Ok(Self {
            shared,
            format,
            writer: Mutex::new(Some(writer)),
        })
    }

    /// Writes down a request. It takes a short lock and waits for nothing else.
    pub fn log(&self, record: &Record<'_>) {
        thread_local! {
            static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        LINE.with_borrow_mut(|line| {
            line.clear();
            line::write_line(record, self.format, line);
            let mut pending = self.shared.pending.lock();
            let before = pending.lines.len();
            if before + line.len() > PENDING_BYTES_MAX {
                pending.lost += 1;
                return;
            }
            pending.lines.extend_from_slice(line);
            const HALF: usize = PENDING_BYTES_MAX / 2;
            if before == 0 || (before < HALF && pending.lines.len() >= HALF) {
                drop(pending);
                self.shared.wanted.notify_one();
            }
        });
    }

    /// Has the file opened anew: what is logged from now on goes to what has its name then. If that can't be
    /// opened, the old one is kept.
    pub fn reopen(&self) {
        let mut pending = self.shared.pending.lock();
        pending.reopen_at = Some(pending.lines.len());
        drop(pending);
        self.shared.wanted.notify_one();
    }

    /// Writes what is left, and ends: what is logged later is lost. It blocks the OS thread, for five seconds at most, and gives back whether all was written.
    pub fn close(&self) -> bool {
        let Some(writer) = self.writer.lock().take() else {
            return true;
        };
        let mut pending = self.shared.pending.lock();
        pending.closing = true;
        self.shared.wanted.notify_one();
        let until = Instant::now() + Duration::from_secs(CLOSE_SECONDS);
        while !pending.closed && !self.shared.done.wait_until(&mut pending, until).timed_out() {}
        let closed = pending.closed;
        drop(pending);
        // Else it hangs in the kernel, and goes with the process.
        closed && writer.join().is_ok()
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.close();
    }
}

/// Where lines go in the end.
#[derive(Debug)]
enum Sink {
    Stdout,
    File(File),
    #[cfg(test)]
    Test(tests::Slow),
}

impl Sink {
    fn open(file: &LogFile) -> io::Result<Self> {
        match file {
            LogFile::Stdout => Ok(Self::Stdout),
            LogFile::Path(path) => open_file(path).map(Self::File),
        }
    }

    fn write_all(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(lines)?;
                stdout.flush()
            }
            Self::File(file) => file.write_all(lines),
            #[cfg(test)]
            Self::Test(slow) => slow.write_all(lines),
        }
    }
}

fn open_file(path: &Path) -> io::Result<File> {
    let opened = File::options().append(true).create(true).open(path);
    opened.map_err(|error| {
        let what = format!(
            "expected a file to append to at {}: {error}",
            path.display()
        );
        io::Error::new(error.kind(), what)
    })
}

struct Writer {
    shared: Arc<Shared>,
    sink: Sink,
    file: LogFile,
    /// Whether the last write failed, perhaps in the middle of a line.
    torn: bool,
}

impl Writer {
    fn run(mut self) {
        let mut batch = Vec::new();
        loop {
            let mut pending = self.shared.pending.lock();
            while pending.is_idle() {
                self.shared.wanted.wait(&mut pending);
            }
            if !pending.is_urgent() {
                self.shared
                    .wanted
                    .wait_for(&mut pending, Duration::from_millis(BATCH_MS));
            }
            std::mem::swap(&mut pending.lines, &mut batch);
            let lost = std::mem::take(&mut pending.lost);
            let reopen_at = pending.reopen_at.take();
            let closing = pending.closing;
            drop(pending);

            let (before, after) = batch.split_at(reopen_at.unwrap_or(batch.len()));
            let mut lost = lost + self.write(before);
            if reopen_at.is_some() {
                self.reopen();
            }
            lost += self.write(after);
            batch.clear();
            lost = self.tell_of(lost);

            let mut pending = self.shared.pending.lock();
            pending.lost += lost;
            if closing {
                pending.closed = true;
                self.shared.done.notify_all();
                return;
            }
        }
    }

    /// Gives back how many lines were lost.
    fn write(&mut self, lines: &[u8]) -> u64 {
        if lines.is_empty() {
            return 0;
        }
        let mut result = Ok(());
        if self.torn {
            result = self.sink.write_all(b"\n");
        }
        let result = result.and_then(|()| self.sink.write_all(lines));
        if let (Err(error), false) = (&result, self.torn) {
            tracing::error!("the access log can't be written: {error}");
        }
        self.torn = result.is_err();
        if self.torn {
            lines.iter().filter(|byte| **byte == b'\n').count() as u64
        } else {
            0
        }
    }

    /// Says in the log how many lines were lost, and gives back how many it has not been told of.
    fn tell_of(&mut self, lost: u64) -> u64 {
        if lost == 0 || self.torn {
            return lost;
        }
        let line = format!(
            "# {lost} requests are not in this log, since it could not be written fast enough\n"
        );
        if self.write(line.as_bytes()) > 0 {
            lost
        } else {
            0
        }
    }

    fn reopen(&mut self) {
        match Sink::open(&self.file) {
            Ok(sink) => (self.sink, self.torn) = (sink, false),
            Err(error) => tracing::error!("the access log stays where it was: {error}"),
        }
    }
}

impl Pending {
    fn is_idle(&self) -> bool {
        self.lines.is_empty() && self.reopen_at.is_none() && !self.closing
    }

    fn is_urgent(&self) -> bool {
        self.lines.len() >= PENDING_BYTES_MAX / 2 || self.reopen_at.is_some() || self.closing
    }
}
