//! Operations whose future was dropped.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;
use std::time::Duration;

use tussah_core::file::{self, At};

use super::help::{
    Counted, both, descriptors_in, drain, eventually, feed, open, pipe, poll_in, poll_times, pool,
    ring,
};

/// More bytes than a pipe holds.
const TOO_MUCH: usize = 1 << 20;

#[test]
fn the_kernel_keeps_the_buffer_of_a_dropped_future() {
    both(|runtime| {
        let (reader, writer) = pipe();
        let drops = Arc::new(AtomicUsize::new(0));
        let bytes: Vec<u8> = (0..TOO_MUCH).map(|n| n as u8).collect();
        let buffer = Counted::new(bytes.clone(), &drops);
        {
            let write = pin!(writer.write(buffer, At::Offset(0), true));
            assert!(!poll_in(runtime, write, Waker::noop()));
        }
        // The write is carried out, from the buffer that has no other owner any more.
        assert_eq!(drain(&reader, TOO_MUCH / 2), bytes[..TOO_MUCH / 2]);
        assert_eq!(drops.load(Ordering::SeqCst), 0);
        assert_eq!(drain(&reader, TOO_MUCH / 2), bytes[TOO_MUCH / 2..]);
        eventually("the drop", || drops.load(Ordering::SeqCst) == 1);
    });
}

#[test]
fn a_read_that_is_dropped_is_given_up() {
    let Some(runtime) = ring() else { return };
    let (reader, writer) = pipe();
    let drops = Arc::new(AtomicUsize::new(0));
    {
        let read = pin!(reader.read(Counted::new(vec![0; 16], &drops), 0, false));
        assert!(!poll_in(&runtime, read, Waker::noop()));
    }
    eventually("the drop", || drops.load(Ordering::SeqCst) == 1);
    feed(&writer, b"later");
    let (read, buffer) = runtime.block_on(reader.read(vec![0; 16], 0, false));
    assert_eq!((read.ok(), &buffer[..]), (Some(5), &b"later"[..]));
}

#[test]
fn a_read_that_the_pool_has_begun_keeps_its_buffer() {
    let runtime = pool(4);
    let (reader, writer) = pipe();
    let drops = Arc::new(AtomicUsize::new(0));
    {
        let read = pin!(reader.read(Counted::new(vec![0; 16], &drops), 0, false));
        assert!(!poll_in(&runtime, read, Waker::noop()));
        eventually("the begin", || runtime.blocking().stats().running == 1);
        // It soon sleeps in the kernel.
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
    assert_eq!(drops.load(Ordering::SeqCst), 0);
    feed(&writer, b"now");
    eventually("the drop", || drops.load(Ordering::SeqCst) == 1);
}

#[test]
fn the_end_of_the_runtime_cancels_operations_in_flight() {
    let Some(runtime) = ring() else { return };
    let (reader, _writer) = pipe();
    let drops = Arc::new(AtomicUsize::new(0));
    let buffer = Counted::new(vec![0; 16], &drops);
    let file = reader.clone();
    let thread = runtime.spawn(async move { file.read(buffer, 0, false).await.0 });
    let file = reader.clone();
    // For an outside waiter, the operation ends with an error.
    let outside = std::thread::spawn({
        let handle = runtime.handle().clone();
        move || handle.block_on(file.read(vec![0; 16], 0, false)).0
    });
    eventually("both reads", || runtime.driver().files_in_flight() == 2);
    let report = runtime.shutdown(Duration::ZERO);
    assert_eq!(report.threads_dropped, 1);
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    let error = outside.join().expect("no panic").expect_err("it ended");
    assert_eq!(error.to_string(), "the runtime is shut down");
    drop(thread);
}

#[test]
fn operations_outlive_the_os_thread_that_began_them() {
    let Some(runtime) = ring() else { return };
    let (reader, writer) = pipe();
    let mut read = Box::pin(reader.read(vec![0; 16], 0, false));
    std::thread::scope(|scope| {
        // The kernel gives up this OS thread's submissions when the OS thread ends.
        scope.spawn(|| assert!(!poll_in(&runtime, read.as_mut(), Waker::noop())));
    });
    feed(&writer, b"still there");
    let (read, buffer) = runtime.block_on(read);
    assert_eq!((read.ok(), &buffer[..]), (Some(11), &b"still there"[..]));
}

#[test]
fn a_future_that_is_dropped_leaves_no_descriptor() {
    both(|runtime| {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        let nothing_is_open = || {
            eventually("that nothing is open", || {
                descriptors_in(directory.path()).is_empty()
            });
        };
        macro_rules! at_every_await {
            ($name:literal, $future:expr) => {{
                let mut polls = 0;
                while !poll_times(runtime, $future, polls) {
                    nothing_is_open();
                    polls += 1;
                    assert!(polls < 1000, "{} never ends", $name);
                }
                assert!(polls >= 1, $name);
                nothing_is_open();
            }};
        }
        let (path, directory) = (path.as_path(), directory.path());
        let other = directory.join("other");
        at_every_await!("open", open(path));
        at_every_await!("read", async {
            let file = open(path).await;
            let _ = file.read(vec![0; 8], 0, true).await;
        });
        at_every_await!("write", async {
            let file = open(path).await;
            let _ = file.write(b"12345678", At::Offset(0), true).await;
            let _ = file.write(b"12345678", At::End, false).await;
            let _ = file.sync(true).await;
            let _ = file.set_len(3).await;
            let _ = file.metadata().await;
            let _ = file.close().await;
        });
        at_every_await!("names", async {
            let _ = file::metadata(path, true).await;
            let _ = file::hard_link(path, &other).await;
            let _ = file::rename(&other, path).await;
            let _ = file::symlink(path, &other).await;
            let _ = file::remove_file(&other).await;
            let _ = file::create_dir(&other, 0o777).await;
            let _ = file::remove_dir(&other).await;
        });
        at_every_await!("call", file::call(|| Ok(17)));
    });
}

/// Opening a FIFO waits until its other end is opened.
#[test]
fn to_open_a_fifo_waits_for_the_other_end() {
    both(|runtime| {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).expect("a FIFO");
        // The name is in the system's cache from here on.
        std::fs::metadata(&path).expect("it is there");
        let how = file::OpenHow {
            write: true,
            ..file::OpenHow::default()
        };
        let fifo = path.clone();
        let writer = runtime.spawn(async move { file::open(&fifo, &how).await });
        // Later operations have completed, and the FIFO still has no reader.
        for _ in 0..3 {
            let other = directory.path().join("other");
            let other = async move { open(&other).await };
            runtime.block_on(runtime.spawn(other)).expect("no panic");
        }
        let reader = std::thread::spawn(|| std::fs::File::open(path));
        let opened = runtime.block_on(writer).expect("no panic");
        opened.expect("somebody reads");
        reader.join().expect("no panic").expect("somebody writes");
    });
}
