//! The access log, which records requests and their results.
//!
//! Lines are collected in memory, and an OS thread writes them in batches, so that no worker waits
//! for a disk. If the disk is full or too slow, lines are lost. The diagnostics report the loss of
//! lines immediately. Once the log can be written again, a line in the log states the number of
//! lost lines and the reason.

mod line;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustix::fs::{Access, OFlags, access, fcntl_setfl};
use rustix::io::Errno;

pub use line::Record;

use crate::web::config::{LogFile, LogFormat};

/// Bound, in bytes: the maximum total length of the lines that wait to be written, about 5,000
/// lines. Further lines are lost. In addition, up to the same amount is being written.
const PENDING_BYTES_MAX: usize = 1 << 20;

/// Bound, in milliseconds: the maximum time for which a line waits for others to be written with
/// it.
const BATCH_MS: u64 = 100;

/// Bound, in seconds: the maximum time for which closing a log waits for a disk. Lines that are not
/// written by then are lost.
const CLOSE_SECONDS: u64 = 5;

/// An access log. Dropping the log writes the remaining lines, within the time limit of
/// [`close`](Self::close).
#[derive(Debug)]
pub struct AccessLog {
    shared: Arc<Shared>,
    format: LogFormat,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    pending: Mutex<Pending>,
    /// Notified when the writer has work.
    wanted: Condvar,
    /// Notified when all lines have been written, for `close`.
    done: Condvar,
}

#[derive(Debug, Default)]
struct Pending {
    lines: Vec<u8>,
    lost: u64,
    /// The position of the first line that belongs in the file that is opened next.
    reopen_at: Option<usize>,
    closing: bool,
    closed: bool,
}

impl AccessLog {
    /// Opens a log for appending, and starts the OS thread that writes it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, or the OS thread cannot be started.
    pub fn open(file: &LogFile, format: LogFormat) -> io::Result<Self> {
        let sink = Sink::open(file)?;
        Self::start(sink, file.clone(), format)
    }

    /// Checks that a log could probably be opened, without opening or creating its file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, or cannot be created in its directory.
    pub(crate) fn check(file: &LogFile) -> io::Result<()> {
        let LogFile::Path(path) = file else {
            return Ok(());
        };
        // Opening and closing a pipe would end the program that reads it.
        let checked = match path.metadata() {
            Ok(known) if known.is_dir() => Err(Errno::ISDIR),
            Ok(_) => access(path, Access::WRITE_OK),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
                let directory = directory.unwrap_or(Path::new("."));
                access(directory, Access::WRITE_OK | Access::EXEC_OK)
            }
            Err(error) => return Err(describe(path, &error)),
        };
        checked.map_err(|errno| describe(path, &errno.into()))
    }

    fn start(sink: Sink, file: LogFile, format: LogFormat) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let writer = Writer {
            shared: Arc::clone(&shared),
            sink,
            file,
            failure: None,
            lost: Lost::default(),
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

    /// Logs a request. The call blocks only on a lock that is held briefly.
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

    /// Reopens the log at its path, as required after log rotation. Later lines go to the newly
    /// opened file. If the file cannot be opened, the log continues in the old file.
    pub fn reopen(&self) {
        let mut pending = self.shared.pending.lock();
        pending.reopen_at = Some(pending.lines.len());
        drop(pending);
        self.shared.wanted.notify_one();
    }

    /// Writes the remaining lines and closes the log; later lines are lost. Blocks the calling OS
    /// thread for at most five seconds, and returns whether all lines were written.
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
        if !closed {
            tracing::error!(
                "cannot write the end of the access log within {CLOSE_SECONDS} s; its last lines are lost"
            );
        }
        // Otherwise the writer hangs in the kernel, and ends with the process.
        closed && writer.join().is_ok()
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.close();
    }
}

/// The destination of lines.
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

    /// Writes all lines, and removes the written ones from `lines`.
    fn write(&mut self, lines: &mut &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                write_to(&mut stdout, lines)?;
                stdout.flush()
            }
            Self::File(file) => write_to(file, lines),
            #[cfg(test)]
            Self::Test(slow) => write_to(slow, lines),
        }
    }
}

fn write_to(sink: &mut impl Write, lines: &mut &[u8]) -> io::Result<()> {
    while !lines.is_empty() {
        match sink.write(lines) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => *lines = &lines[len..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Opens a file without waiting, since opening a pipe would wait for a reader.
fn open_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    options
        .append(true)
        .create(true)
        .custom_flags(flags.bits().cast_signed());
    let opened = options.open(path).and_then(|file| {
        // Writing may wait, which is the purpose of the OS thread.
        fcntl_setfl(&file, OFlags::APPEND)?;
        Ok(file)
    });
    opened.map_err(|error| describe(path, &error))
}

/// Adds the path and a remedy to an error from opening a log.
fn describe(path: &Path, error: &io::Error) -> io::Error {
    let path = path.display();
    let what = if Errno::from_io_error(error) == Some(Errno::NXIO) {
        format!("{path} is a pipe without a reader, or a socket: start its reader first")
    } else {
        format!("cannot append to {path}: {error}")
    };
    io::Error::new(error.kind(), what)
}

struct Writer {
    shared: Arc<Shared>,
    sink: Sink,
    file: LogFile,
    /// The reason why the last write failed, perhaps in the middle of a line.
    failure: Option<String>,
    lost: Lost,
}

/// Requests that are missing from the log, until the log states this.
#[derive(Debug, Default)]
struct Lost {
    /// Requests for which there was no room in memory while others were being written.
    slow: u64,
    /// Requests that could not be written, with the reason.
    failed: u64,
    why: String,
}

impl Lost {
    /// Returns a sentence for each reason.
    fn sentences(&self, log: &str) -> Vec<String> {
        let reasons = [
            (self.slow, "the disk or reader was too slow"),
            (self.failed, &self.why),
        ];
        let some = reasons.into_iter().filter(|(count, _)| *count > 0);
        some.map(|(count, why)| {
            let requests = if count == 1 { "request" } else { "requests" };
            format!("{count} {requests} missing from {log}: {why}")
        })
        .collect()
    }
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
            self.lost.slow += std::mem::take(&mut pending.lost);
            let reopen_at = pending.reopen_at.take();
            let closing = pending.closing;
            drop(pending);

            let (before, after) = batch.split_at(reopen_at.unwrap_or(batch.len()));
            self.write(before);
            if reopen_at.is_some() {
                self.reopen();
            }
            self.write(after);
            batch.clear();
            self.report_lost();

            if closing {
                for sentence in self.lost.sentences("the access log") {
                    tracing::error!("{sentence}");
                }
                self.shared.pending.lock().closed = true;
                self.shared.done.notify_all();
                return;
            }
        }
    }

    /// Writes lines as far as possible, and counts the others.
    fn write(&mut self, lines: &[u8]) {
        if lines.is_empty() {
            return;
        }
        let mut left = lines;
        let begun = match &self.failure {
            Some(_) => self.sink.write(&mut &b"\n"[..]),
            None => Ok(()),
        };
        match begun.and_then(|()| self.sink.write(&mut left)) {
            Ok(()) => {
                if self.failure.take().is_some() {
                    let lost = self.lost.slow + self.lost.failed;
                    tracing::warn!(
                        "the access log can be written again; requests missing from it: {lost}"
                    );
                }
            }
            Err(error) => {
                let why = error.to_string();
                if self.failure.as_ref() != Some(&why) {
                    let file = &self.file;
                    tracing::error!(
                        "cannot write the access log {file}: {why}; requests are missing from it until it can be written"
                    );
                }
                self.lost.failed += left.iter().filter(|byte| **byte == b'\n').count() as u64;
                self.lost.why.clone_from(&why);
                self.failure = Some(why);
            }
        }
    }

    /// Reports the number of missing requests in the log, if it can be written now.
    fn report_lost(&mut self) {
        if self.failure.is_some() {
            return;
        }
        let lines = self.lost.sentences("this log").into_iter();
        let lines: String = lines.map(|line| format!("# {line}\n")).collect();
        let before = std::mem::take(&mut self.lost);
        self.write(lines.as_bytes());
        if self.failure.is_some() {
            self.lost = before;
        }
    }

    fn reopen(&mut self) {
        match Sink::open(&self.file) {
            Ok(sink) => (self.sink, self.failure) = (sink, None),
            Err(error) => tracing::error!(
                "cannot reopen the access log, still writing to the old file: {error}"
            ),
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
