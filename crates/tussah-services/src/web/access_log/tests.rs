//! Tests of the lines that reach a log.

use std::fs;
use std::io;
use std::sync::mpsc;
use std::time::SystemTime;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

/// A disk that obeys commands, write by write, and shows what was written.
#[derive(Debug)]
pub(super) struct Slow {
    orders: mpsc::Receiver<io::Result<usize>>,
    written: mpsc::Sender<Vec<u8>>,
}

impl Write for Slow {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        // Without further commands, the disk writes everything.
        let len = self.orders.recv().unwrap_or(Ok(lines.len()))?;
        let len = len.min(lines.len());
        let _ = self.written.send(lines[..len].into());
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn slow() -> (
    AccessLog,
    mpsc::SyncSender<io::Result<usize>>,
    mpsc::Receiver<Vec<u8>>,
) {
    let ((order, orders), (written, shown)) = (mpsc::sync_channel(0), mpsc::channel());
    let sink = Sink::Test(Slow { orders, written });
    (
        AccessLog::start(sink, LogFile::Stdout, LogFormat::Common).unwrap(),
        order,
        shown,
    )
}

fn log(log: &AccessLog, request: &str) {
    log.log(&Record {
        client: Some([127, 0, 0, 1].into()),
        user: None,
        time: SystemTime::UNIX_EPOCH,
        request: request.as_bytes(),
        status: 200,
        body_bytes: 1,
        referrer: None,
        user_agent: None,
    });
}

/// Returns the requests in a log, and the log's remarks.
fn requests(text: &[u8]) -> Vec<String> {
    let lines = str::from_utf8(text).unwrap().lines();
    lines
        .map(|line| line.split('"').nth(1).unwrap_or(line).to_owned())
        .collect()
}

#[test]
fn every_line_is_in_the_file_when_it_is_closed() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("log");
    fs::write(&path, "before\n").unwrap();
    let file = LogFile::Path(path.clone());
    let access_log = AccessLog::open(&file, LogFormat::Common).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let access_log = &access_log;
            scope.spawn(move || (0..500).for_each(|n| log(access_log, &format!("{thread} {n}"))));
        }
    });
    assert!(access_log.close());
    let lines = requests(&fs::read(&path).unwrap());
    assert_eq!((lines.len(), &*lines[0]), (2001, "before"));
    for thread in ["0 ", "1 ", "2 ", "3 "] {
        let own = lines.iter().filter(|line| line.starts_with(thread));
        assert!(
            own.eq((0..500)
                .map(|n| format!("{thread}{n}"))
                .collect::<Vec<_>>()
                .iter())
        );
    }
}

#[test]
fn a_log_is_reopened_between_two_lines() {
    let place = tempfile::tempdir().unwrap();
    let (path, old) = (place.path().join("log"), place.path().join("log.1"));
    let access_log = AccessLog::open(&LogFile::Path(path.clone()), LogFormat::Common).unwrap();
    log(&access_log, "1");
    log(&access_log, "2");
    fs::rename(&path, &old).unwrap();
    access_log.reopen();
    log(&access_log, "3");
    drop(access_log);
    assert_eq!(requests(&fs::read(&old).unwrap()), ["1", "2"]);
    assert_eq!(requests(&fs::read(&path).unwrap()), ["3"]);
}

#[test]
fn a_log_that_cannot_be_reopened_stays_open() {
    let place = tempfile::tempdir().unwrap();
    let (directory, moved) = (place.path().join("d"), place.path().join("moved"));
    fs::create_dir(&directory).unwrap();
    let file = LogFile::Path(directory.join("log"));
    let access_log = AccessLog::open(&file, LogFormat::Common).unwrap();
    fs::rename(&directory, &moved).unwrap();
    access_log.reopen();
    log(&access_log, "1");
    assert!(access_log.close());
    assert_eq!(requests(&fs::read(moved.join("log")).unwrap()), ["1"]);
    let error = AccessLog::open(&file, LogFormat::Common)
        .unwrap_err()
        .to_string();
    let shown = directory.display();
    let expected = format!("cannot append to {shown}/log: No such file or directory (os error 2)");
    assert_eq!(error, expected);
}

#[test]
fn lines_dropped_for_a_slow_disk_are_counted() {
    let (access_log, order, shown) = slow();
    // While the first batch is being written, a second one fills the buffer.
    log(&access_log, "first");
    let long = "x".repeat(PENDING_BYTES_MAX / 4);
    for _ in 0..11 {
        log(&access_log, &long);
    }
    drop(order);
    assert!(access_log.close());
    let lines = requests(&shown.iter().flatten().collect::<Vec<_>>());
    let kept = lines.iter().filter(|line| **line == long).count();
    let told = lines.iter().filter(|line| line.starts_with("# "));
    let told = told.map(|line| line.split(' ').nth(1).unwrap().parse::<usize>().unwrap());
    assert_eq!(lines[0], "first");
    assert_eq!(
        (kept + told.sum::<usize>(), kept <= 6),
        (11, true),
        "{kept}"
    );
    let why = lines.iter().find(|line| line.starts_with("# "));
    assert!(
        why.is_some_and(|why| why.ends_with(": the disk or reader was too slow")),
        "{why:?}"
    );
}

#[test]
fn lines_refused_by_a_full_disk_are_counted() {
    let (access_log, order, shown) = slow();
    let full = || Err(io::ErrorKind::StorageFull.into());
    for request in ["1", "2"] {
        log(&access_log, request);
        order.send(full()).unwrap(); // The order is taken at the write.
    }
    log(&access_log, "3");
    drop(order);
    assert!(access_log.close());
    let written: Vec<_> = shown.iter().collect();
    // This ends the written part of the line that failed.
    assert_eq!(written[0], b"\n");
    let remark = "# 2 requests missing from this log: no storage space";
    assert_eq!(requests(&written[1..].concat()), ["3", remark]);
}

#[test]
fn a_partly_written_batch_keeps_its_rest() {
    let (access_log, order, shown) = slow();
    log(&access_log, "held");
    let line = {
        let (another, order, shown) = slow();
        log(&another, "1");
        drop(order);
        assert!(another.close());
        shown.recv().unwrap().len()
    };
    // The writer has taken the first line; the other lines are the next batch.
    order.send(Ok(1)).unwrap();
    for request in ["1", "2", "3", "4"] {
        log(&access_log, request);
    }
    order.send(Ok(usize::MAX)).unwrap();
    order.send(Ok(2 * line + 5)).unwrap();
    order.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
    drop(order);
    log(&access_log, "5");
    assert!(access_log.close());
    let written: Vec<u8> = shown.iter().flatten().collect();
    let remark = "# 2 requests missing from this log: no storage space";
    let expected = ["held", "1", "2", "127.0", "5", remark];
    assert_eq!(requests(&written), expected);
}

#[test]
fn a_log_that_cannot_be_opened_is_found_without_opening_it() {
    let directory = tempfile::tempdir().unwrap();
    let check = |path: &Path, expected: Option<&str>| {
        let error = AccessLog::check(&LogFile::Path(path.into())).err();
        let expected = expected.map(|why| format!("cannot append to {}: {why}", path.display()));
        assert_eq!(error.map(|error| error.to_string()), expected);
    };
    let missing = "No such file or directory (os error 2)";
    check(&directory.path().join("new"), None);
    assert!(!directory.path().join("new").exists());
    check(Path::new("new"), None);
    check(&directory.path().join("missing/new"), Some(missing));
    check(directory.path(), Some("Is a directory (os error 21)"));
    fs::write(directory.path().join("old"), "").unwrap();
    check(&directory.path().join("old"), None);
    let inside = directory.path().join("old/new");
    check(&inside, Some("Not a directory (os error 20)"));
    // The pipe is not opened, because no program reads it.
    let pipe = directory.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    check(&pipe, None);
}
