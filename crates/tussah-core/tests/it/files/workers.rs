//! Rings whose workers are held, or were removed.

use std::future::{Future, poll_fn};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tussah_core::file::{At, OpenFile};
use tussah_core::{Color, FileDriver, Runtime, yield_now};

use super::help::{feed, open, pipe};

/// A worker is held until others have flushed its pushed operations and taken the completions.
#[test]
fn the_ring_of_a_held_worker_is_served() {
    for driver in [FileDriver::Auto, FileDriver::Pool] {
        let runtime = Runtime::builder()
            .workers(2)
            .watchdog(Duration::from_millis(20), |_| ())
            .files(driver)
            .build()
            .expect("workers start");
        let (reader, writer) = pipe();
        let (give, given) = mpsc::channel();
        let done = Arc::new(AtomicBool::new(false));
        let held = done.clone();
        let holder = runtime.spawn(async move {
            let mut read = Box::pin(async move { reader.read(vec![0; 8], 0, false).await.0 });
            let first = poll_fn(|context| Poll::Ready(read.as_mut().poll(context).is_pending()));
            assert!(first.await, "nothing is there");
            give.send(read).expect("the test listens");
            while !held.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        });
        let read = given.recv().expect("the holder runs");
        feed(&writer, b"x");
        assert_eq!(runtime.block_on(read).expect("no error"), 1);
        done.store(true, Ordering::Release);
        runtime.block_on(holder).expect("no panic");
    }
}

/// The only worker is held until an outside caller has read, by its ring if there is one.
#[test]
fn an_outside_reader_does_not_wait_for_the_only_worker() {
    let runtime = Runtime::builder()
        .workers(1)
        .watchdog(Duration::from_millis(20), |_| ())
        .build()
        .expect("the worker starts");
    let (begin, begun) = mpsc::channel();
    let done = Arc::new(AtomicBool::new(false));
    let held = done.clone();
    let holder = runtime.spawn(async move {
        begin.send(()).expect("the test listens");
        while !held.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    });
    begun.recv().expect("it runs");
    let (reader, writer) = pipe();
    let mut read = Box::pin(reader.read(vec![0; 8], 0, false));
    let first = runtime.block_on(poll_fn(|context| Poll::Ready(read.as_mut().poll(context))));
    assert!(first.is_pending(), "nothing is there");
    feed(&writer, b"x");
    assert_eq!(runtime.block_on(read).0.expect("no error"), 1);
    done.store(true, Ordering::Release);
    runtime.block_on(holder).expect("no panic");
}

/// Calls a function when it is woken for the first time.
struct Wakes<F>(F, AtomicBool);

impl<F: Fn() + Send + Sync + 'static> Wake for Wakes<F> {
    fn wake(self: Arc<Self>) {
        if !self.1.swap(true, Ordering::AcqRel) {
            (self.0)();
        }
    }
}

/// Promise 4: a worker finds two completed reads. The first thread that it wakes runs until the
/// second has run, so another worker takes the second.
#[test]
fn a_completion_does_not_wait_behind_a_long_event() {
    // More than is read without the ring.
    const ROOM: usize = 1 << 18;
    let runtime = Runtime::builder().workers(2).no_watchdog().build();
    let runtime = runtime.expect("workers start");
    let mut content = tempfile::tempfile().expect("a file");
    content.write_all(b"x").expect("written");
    let file = OpenFile::from(OwnedFd::from(content));
    // From then on both sleep, and neither keeps watch.
    while runtime
        .stats()
        .workers
        .iter()
        .any(|worker| worker.parks == 0)
    {
        std::thread::yield_now();
    }
    let (done, ended) = (mpsc::channel(), mpsc::channel());
    let (waits, handle) = (Arc::new(AtomicBool::new(false)), runtime.handle().clone());
    let first = runtime.spawn(async move {
        // Turns are short, so the worker seldom looks at the clock.
        for _ in 0..10_000 {
            yield_now().await;
        }
        let ran = Arc::new(AtomicBool::new(false));
        let event = move || {
            // The first one waits for the second.
            if !waits.swap(true, Ordering::AcqRel) {
                while !ran.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
            }
            ran.store(true, Ordering::Release);
            ended.0.send(()).expect("the test listens");
        };
        let reads = [1, 2].map(|color| {
            let (handle, event) = (handle.clone(), event.clone());
            let post = move || handle.post_in(Color(color), event.clone()).expect("open");
            let file = file.clone();
            let mut read = Box::pin(async move { file.read(vec![0; ROOM], 0, false).await.0 });
            let waker = Waker::from(Arc::new(Wakes(post, AtomicBool::new(false))));
            let polled = read.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending(), "the ring is asked");
            read
        });
        done.0.send(reads).expect("the test listens");
    });
    let reads = done.1.recv().expect("the thread runs");
    runtime.block_on(first).expect("no panic");
    assert_eq!(ended.1.iter().take(2).count(), 2);
    for read in reads {
        assert_eq!(runtime.block_on(read).expect("no error"), 1);
    }
}

#[test]
fn the_rings_of_removed_workers_are_served() {
    const WORKERS: usize = 4;
    let runtime = Runtime::builder().workers(WORKERS).build();
    let runtime = runtime.expect("workers start");
    for _ in 0..10 {
        let all_here = Arc::new(Barrier::new(WORKERS));
        let reads: Vec<_> = (0..WORKERS)
            .map(|_| {
                let all_here = all_here.clone();
                runtime.spawn(async move {
                    // This many threads run at the same time, each on another worker.
                    all_here.wait();
                    let (reader, writer) = pipe();
                    let mut read =
                        Box::pin(async move { reader.read(vec![0; 8], 0, false).await.0 });
                    let first = poll_fn(|context| Poll::Ready(read.as_mut().poll(context)));
                    assert!(first.await.is_pending(), "nothing is there");
                    (read, writer)
                })
            })
            .collect();
        let reads: Vec<_> = reads
            .into_iter()
            .map(|thread| runtime.block_on(thread).expect("no panic"))
            .collect();
        runtime.set_workers(1).expect("a worker is left");
        for (read, writer) in reads {
            feed(&writer, b"x");
            assert_eq!(runtime.block_on(read).expect("no error"), 1);
        }
        runtime.set_workers(WORKERS).expect("they start again");
    }
}

/// While the number of workers changes, everything is written once and in order.
#[test]
fn writes_go_on_while_workers_come_and_go() {
    let runtime = Runtime::builder().workers(3).build();
    let runtime = runtime.expect("workers start");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("file");
    let file = runtime.block_on(open(&path));
    let threads: Vec<_> = (0..20u8)
        .map(|n| {
            let file = file.clone();
            runtime.spawn(async move {
                for _ in 0..100 {
                    let (written, _) = file.write(vec![n; 3], At::End, true).await;
                    assert_eq!(written.expect("written"), 3);
                }
            })
        })
        .collect();
    for n in 0..30 {
        runtime.set_workers(1 + n % 3).expect("they can change");
    }
    for thread in threads {
        runtime.block_on(thread).expect("no panic");
    }
    let written = std::fs::read(&path).expect("it is there");
    assert_eq!(written.len(), 20 * 100 * 3);
    assert!(written.chunks(3).all(|chunk| chunk == [chunk[0]; 3]));
}
