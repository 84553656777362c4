//! Operations that a job of the blocking pool waits for, where the pool has only the job's OS
//! thread.

use std::sync::mpsc;
use std::task::Waker;

use tussah_core::Runtime;
use tussah_core::file::{At, OpenFile};

use super::help::{drain, feed, open, pipe, poll_in, pool};

/// Runs a closure as the only job that the pool can run, and meanwhile polls some futures, for
/// which the pool has no OS thread.
fn in_the_only_job(
    runtime: &Runtime,
    meanwhile: impl FnOnce(),
    job: impl FnOnce(&tussah_core::Handle) + Send + 'static,
) {
    let (begun, begins) = mpsc::channel();
    let (go, goes) = mpsc::channel();
    let handle = runtime.handle().clone();
    let job = runtime.blocking().submit(move || {
        begun.send(()).expect("the test listens");
        goes.recv().expect("the test goes on");
        job(&handle);
    });
    begins.recv().expect("the job runs");
    meanwhile();
    go.send(()).expect("the job waits");
    runtime
        .block_on(job.expect("there is room"))
        .expect("no panic");
}

fn line(file: &OpenFile, n: u8) -> impl Future<Output = std::io::Result<usize>> + use<> {
    let file = file.clone();
    async move { file.write(vec![n; 3], At::End, true).await.0 }
}

#[test]
fn a_job_runs_the_writes_that_come_before_its_own() {
    let runtime = pool(1);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("file");
    let file = runtime.block_on(open(&path));
    let mut before: Vec<_> = (0..10).map(|n| Box::pin(line(&file, n))).collect();
    let own = line(&file, 10);
    in_the_only_job(
        &runtime,
        || {
            for write in &mut before {
                assert!(!poll_in(&runtime, write.as_mut(), Waker::noop()));
            }
        },
        move |handle| assert_eq!(handle.block_on(own).expect("it is written"), 3),
    );
    for write in before {
        assert_eq!(runtime.block_on(write).expect("it is written"), 3);
    }
    let expected: Vec<u8> = (0..=10).flat_map(|n| [n; 3]).collect();
    assert_eq!(std::fs::read(&path).expect("it is there"), expected);
}

#[test]
fn a_job_runs_an_operation_that_another_has_begun() {
    let runtime = pool(1);
    let (reader, writer) = pipe();
    feed(&writer, b"there");
    let mut read = Box::pin(async move { reader.read(vec![0; 5], 0, true).await.0 });
    let (give, given) = mpsc::channel();
    in_the_only_job(
        &runtime,
        || {
            assert!(!poll_in(&runtime, read.as_mut(), Waker::noop()));
            give.send(read).expect("the job listens");
        },
        move |handle| {
            let read = given.recv().expect("the test gives it");
            assert_eq!(handle.block_on(read).expect("it is read"), 5);
        },
    );
}

/// A write that has begun is left to the OS thread that runs it. The next one then has its turn in
/// the pool's queue, where only the job that waits behind it can reach it.
#[test]
fn a_job_that_waits_is_woken_for_the_next_turn() {
    let runtime = pool(2);
    let (reader, writer) = pipe();
    let mut stuck = Box::pin(writer.write(vec![1u8; 1 << 20], At::Offset(0), true));
    assert!(!poll_in(&runtime, stuck.as_mut(), Waker::noop()));
    super::help::eventually("the begin", || runtime.blocking().stats().running == 1);
    let mut second = Box::pin(line(&writer, 2));
    assert!(!poll_in(&runtime, second.as_mut(), Waker::noop()));
    let (waits, waited) = mpsc::channel();
    let (handle, own) = (runtime.handle().clone(), line(&writer, 3));
    let job = runtime.blocking().submit(move || {
        waits.send(()).expect("the test listens");
        handle.block_on(own)
    });
    let job = job.expect("there is room");
    waited.recv().expect("the job runs");
    // Takes the OS thread that ends the first write, and waits for the job.
    let joined = runtime.blocking().submit(move || job.join());
    assert_eq!(drain(&reader, 1 << 20), vec![1; 1 << 20]);
    let joined = runtime.block_on(joined.expect("there is room"));
    let written = joined.expect("no panic").expect("no panic");
    assert_eq!(written.expect("it is written"), 3);
    assert_eq!(drain(&reader, 6), [2, 2, 2, 3, 3, 3]);
    assert_eq!(runtime.block_on(second).expect("it is written"), 3);
    assert_eq!(runtime.block_on(stuck).0.expect("it is written"), 1 << 20);
}
