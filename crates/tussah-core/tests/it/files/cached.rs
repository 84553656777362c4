//! Reads from the page cache.

use std::future::poll_fn;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tussah_core::file::OpenFile;

use super::help::{both, eventually, not_tested, pool};

/// Returns a file that was just written, and its content.
fn written(len: usize) -> (OpenFile, Vec<u8>) {
    let content: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
    let file = tempfile::tempfile().expect("there is a place for it");
    rustix::io::pwrite(&file, &content, 0).expect("there is room");
    (OpenFile::from(OwnedFd::from(file)), content)
}

#[test]
fn the_first_poll_reads_what_is_in_memory() {
    both(|runtime| {
        runtime.block_on(async {
            let (file, content) = written(10_000);
            for (room, offset) in [
                (1, 0),
                (4096, 4096),
                (10_000, 0),
                (65_536, 9_999),
                (1, 10_000),
            ] {
                for whole in [false, true] {
                    let mut read = pin!(file.read(vec![0; room], offset, whole));
                    let polled = poll_fn(|context| Poll::Ready(read.as_mut().poll(context))).await;
                    let Poll::Ready((read, buffer)) = polled else {
                        panic!("it waits for {room} bytes at {offset}");
                    };
                    let end = content.len().min(offset as usize + room);
                    let expected = &content[offset as usize..end];
                    assert_eq!(read.expect("read"), expected.len());
                    assert!(buffer == expected, "{room} bytes at {offset}");
                }
            }
        });
        assert_eq!(runtime.blocking().stats().completed, 0);
    });
}

#[test]
fn a_file_without_nowait_reads_is_read_by_an_operation() {
    let runtime = pool(1);
    runtime.block_on(async {
        let file = std::fs::File::open("/proc/self/stat").expect("the system is Linux");
        let file = OpenFile::from(OwnedFd::from(file));
        let (read, buffer) = file.read(vec![0; 4096], 0, false).await;
        let own = std::process::id().to_string();
        assert!(read.is_ok() && buffer.starts_with(own.as_bytes()));
    });
    eventually("one job", || runtime.blocking().stats().completed == 1);
}

/// The temporary directory may be in memory or on a device: the result is the same.
#[test]
fn a_direct_read_is_an_operation() {
    let runtime = pool(1);
    let file = tempfile::tempfile().expect("there is a place for it");
    let flags = fcntl_getfl(&file).expect("it is open");
    if fcntl_setfl(&file, flags | OFlags::DIRECT).is_err() {
        return not_tested("direct I/O, which the file system does not have");
    }
    let file = OpenFile::from(OwnedFd::from(file));
    assert!(fcntl_getfl(file.as_fd()).is_ok_and(|flags| flags.contains(OFlags::DIRECT)));
    let buffer = tussah_core::file::AlignedBuf::zeroed(4096, 4096);
    let (read, _) = runtime.block_on(file.read(buffer, 0, false));
    assert_eq!(read.expect("it is empty"), 0);
    eventually("one job", || runtime.blocking().stats().completed == 1);
}

/// On the only worker, beside a thread that reads until the other one has run.
#[test]
fn reads_from_memory_let_others_have_their_turn() {
    let runtime = pool(1);
    let seen = Arc::new(AtomicBool::new(false));
    let reader = runtime.spawn({
        let seen = seen.clone();
        async move {
            let (file, _) = written(4096);
            while !seen.load(Ordering::Relaxed) {
                file.read(vec![0; 4096], 0, false).await.0.expect("read");
            }
        }
    });
    let other = runtime.spawn(async move { seen.store(true, Ordering::Relaxed) });
    runtime.block_on(reader).expect("no panic");
    runtime.block_on(other).expect("no panic");
}
