//! The order of operations that change a file.

use std::future::Future;
use std::pin::Pin;
use std::task::Waker;

use tussah_core::file::At;

use super::help::{both, descriptors_in, drain, open, pipe, poll_in};

#[test]
fn writes_are_carried_out_in_the_order_of_their_first_polls() {
    both(|runtime| {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        let expected = runtime.block_on(async {
            let file = open(&path).await;
            let mut expected = String::new();
            let mut threads = Vec::new();
            for n in 0..500 {
                let line = format!("{n}\n");
                expected += &line;
                let file = file.clone();
                let mut write = Box::pin(async move { file.write(line, At::End, true).await.0 });
                // Its first poll is here; the others where it is awaited.
                if !poll_once(write.as_mut()) {
                    threads.push(runtime.spawn(write));
                }
            }
            for thread in threads {
                thread.await.expect("no panic").expect("it is written");
            }
            expected
        });
        let written = std::fs::read_to_string(&path).expect("it is there");
        assert_eq!(written, expected);
    });
}

#[test]
fn a_write_that_is_dropped_is_carried_out_or_not_but_moves_no_other() {
    both(|runtime| {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        runtime.block_on(async {
            let file = open(&path).await;
            let mut kept = Vec::new();
            for n in 0..300u32 {
                let file = file.clone();
                let line = format!("{n}\n");
                let mut write = Box::pin(async move { file.write(line, At::End, true).await.0 });
                if !poll_once(write.as_mut()) && n % 3 == 0 {
                    kept.push(write);
                }
            }
            for write in kept {
                write.await.expect("it is written");
            }
            file.sync(true).await.expect("it is synced");
        });
        let written = std::fs::read_to_string(&path).expect("it is there");
        let lines: Vec<u32> = written
            .lines()
            .map(|line| line.parse().expect("whole lines"))
            .collect();
        assert!(lines.is_sorted_by(|a, b| a < b), "{lines:?}");
        assert_eq!(lines.iter().filter(|n| *n % 3 == 0).count(), 100);
    });
}

#[test]
fn the_next_write_waits_for_the_kernel_and_not_for_the_future() {
    both(|runtime| {
        let (reader, writer) = pipe();
        // The first one is stuck in the kernel, and its future is dropped.
        let mut first = Box::pin(writer.write(vec![1u8; 1 << 20], At::Offset(0), true));
        assert!(!poll_in(runtime, first.as_mut(), Waker::noop()));
        drop(first);
        let mut second = Box::pin(writer.write(vec![2u8; 10], At::Offset(0), true));
        assert!(!poll_in(runtime, second.as_mut(), Waker::noop()));
        assert_eq!(drain(&reader, 1 << 20), vec![1; 1 << 20]);
        assert_eq!(drain(&reader, 10), [2; 10]);
        assert_eq!(runtime.block_on(second).0.expect("it is written"), 10);
    });
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> bool {
    let mut context = std::task::Context::from_waker(Waker::noop());
    future.poll(&mut context).is_ready()
}

/// A caller that has the result of a write has the only reference to the file, and so closes it.
#[test]
fn a_file_that_was_written_is_closed_by_close() {
    both(|runtime| {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        for _ in 0..1000 {
            let closed = runtime.block_on(async {
                let file = open(&path).await;
                file.write("x".to_owned(), At::End, true)
                    .await
                    .0
                    .expect("it is written");
                file.close().await
            });
            closed.expect("nothing fails");
            assert_eq!(
                descriptors_in(directory.path()),
                [] as [std::path::PathBuf; 0]
            );
        }
    });
}
