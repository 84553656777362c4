//! Descriptors that threads wait for.

use std::future::poll_fn;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use tussah_core::io::{Direction, Source};
use tussah_core::{Handle, Runtime, yield_now};

use crate::runtime;

/// A descriptor in the runtime, and the other end of it, which blocks.
fn pair(handle: &Handle) -> (Source, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("there are descriptors");
    ours.set_nonblocking(true).expect("a socket may be");
    (Source::new_in(handle, ours.into()), theirs)
}

/// Reads one byte.
async fn read(source: &Source) -> io::Result<u8> {
    let mut byte = [0];
    let len = source
        .io(Direction::Read, |fd| Ok(rustix::io::read(fd, &mut byte)?))
        .await?;
    if len == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(byte[0])
}

#[test]
fn bytes_come_one_by_one() {
    let runtime = runtime(2);
    let (source, mut theirs) = pair(&runtime);
    let (told, wait) = mpsc::channel();
    let reader = runtime.spawn(async move {
        while let Ok(byte) = read(&source).await {
            told.send(byte).expect("the test listens");
        }
    });
    for byte in 0..100 {
        theirs.write_all(&[byte]).expect("the reader is there");
        assert_eq!(wait.recv(), Ok(byte));
    }
    drop(theirs);
    runtime.block_on(reader).expect("no panic");
}

#[test]
fn writing_waits_for_room() {
    let runtime = runtime(1);
    let (source, mut theirs) = pair(&runtime);
    let writer = runtime.spawn(async move {
        let block = [7; 64 << 10];
        let mut written = 0;
        while written < 4 << 20 {
            let write = |fd: std::os::fd::BorrowedFd<'_>| Ok(rustix::io::write(fd, &block)?);
            written += source.io(Direction::Write, write).await.expect("no error");
        }
        written
    });
    let mut all = Vec::new();
    theirs.read_to_end(&mut all).expect("no error");
    assert_eq!(runtime.block_on(writer).expect("no panic"), all.len());
}

/// From an OS thread that is no worker, which has no driver.
#[test]
fn block_on_waits_too() {
    let runtime = runtime(1);
    let (source, mut theirs) = pair(&runtime);
    let (told, wait) = mpsc::channel();
    let writer = std::thread::spawn(move || {
        wait.recv().expect("the reader waits");
        theirs.write_all(b"x").expect("the reader is there");
    });
    let byte = runtime.block_on(async {
        let mut read = std::pin::pin!(read(&source));
        let first = poll_fn(|context| Poll::Ready(read.as_mut().poll(context).is_pending())).await;
        assert!(first, "nothing is there");
        told.send(()).expect("the writer waits");
        read.await
    });
    assert_eq!(byte.expect("no error"), b'x');
    writer.join().expect("no panic");
}

#[test]
fn all_who_wait_are_woken() {
    let runtime = runtime(2);
    let (source, mut theirs) = pair(&runtime);
    let source = Arc::new(source);
    let readers: Vec<_> = (0..20)
        .map(|_| {
            let source = source.clone();
            runtime.spawn(async move { read(&source).await })
        })
        .collect();
    // Some give up.
    readers.iter().step_by(3).for_each(|reader| reader.abort());
    theirs.write_all(&[1; 20]).expect("the readers are there");
    for (n, reader) in readers.into_iter().enumerate() {
        match runtime.block_on(reader) {
            Ok(byte) => assert_eq!(byte.expect("no error"), 1),
            Err(error) => assert!(error.is_cancelled() && n % 3 == 0),
        }
    }
}

/// A worker is held until somebody has read what came to a descriptor that is registered with that worker.
#[test]
fn the_driver_of_a_held_worker_is_served() {
    let runtime = Runtime::builder()
        .workers(2)
        .watchdog(Duration::from_millis(20), |_| ())
        .build()
        .expect("workers start");
    let (source, mut theirs) = pair(&runtime);
    let (give, given) = mpsc::channel();
    let done = Arc::new(AtomicBool::new(false));
    let held = done.clone();
    let holder = runtime.spawn(async move {
        let mut read = Box::pin(async move { read(&source).await });
        // Registers the descriptor here.
        let first = poll_fn(|context| Poll::Ready(read.as_mut().poll(context).is_pending())).await;
        assert!(first, "nothing is there");
        give.send(read).expect("the test listens");
        while !held.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    });
    let read = given.recv().expect("the holder runs");
    theirs.write_all(b"x").expect("open");
    assert_eq!(runtime.block_on(read).expect("no error"), b'x');
    done.store(true, Ordering::Release);
    runtime.block_on(holder).expect("no panic");
}

#[test]
fn the_driver_of_a_worker_that_was_taken_away_is_served() {
    let runtime = runtime(4);
    let mut pairs = Vec::new();
    let read_bytes = Arc::new(AtomicUsize::new(0));
    for _ in 0..64 {
        let (source, theirs) = pair(&runtime);
        let (told, wait) = mpsc::channel();
        let read_bytes = read_bytes.clone();
        let reader = runtime.spawn(async move {
            read(&source).await.expect("no error");
            told.send(()).expect("the test listens");
            read(&source).await.expect("no error");
            read_bytes.fetch_add(1, Ordering::Relaxed);
            read(&source).await.expect("no error");
        });
        pairs.push((theirs, wait, reader));
    }
    for (theirs, wait, _) in &mut pairs {
        theirs.write_all(b"a").expect("open");
        wait.recv().expect("the reader is there");
    }
    runtime.set_workers(1).expect("a worker is left");
    pairs
        .iter_mut()
        .for_each(|(theirs, ..)| theirs.write_all(b"b").expect("open"));
    while read_bytes.load(Ordering::Relaxed) < 64 {
        std::thread::yield_now();
    }
    runtime.set_workers(4).expect("workers start");
    for (mut theirs, _, reader) in pairs {
        theirs.write_all(b"c").expect("open");
        runtime.block_on(reader).expect("no panic");
    }
}

#[test]
fn who_waits_outside_hears_of_the_end() {
    let runtime = runtime(1);
    let (source, _theirs) = pair(&runtime);
    let handle = runtime.handle().clone();
    let (told, wait) = mpsc::channel();
    let waits = std::thread::spawn(move || {
        handle.block_on(async {
            let mut read = std::pin::pin!(read(&source));
            poll_fn(|context| Poll::Ready(read.as_mut().poll(context).is_pending())).await;
            told.send(()).expect("the test listens");
            read.await
        })
    });
    wait.recv().expect("it waits");
    drop(runtime);
    let error = waits.join().expect("no panic").expect_err("nothing came");
    assert_eq!(error.to_string(), "the runtime is shut down");
}

#[test]
fn a_file_can_not_be_waited_for() {
    let runtime = runtime(1);
    let file = std::fs::File::open("/proc/self/exe").expect("it is there");
    let source = Source::new_in(&runtime, file.into());
    let wait = source.io(Direction::Read, |_| {
        Err::<(), _>(ErrorKind::WouldBlock.into())
    });
    let error = runtime.block_on(wait).expect_err("epoll refuses it");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
}

/// One that is always ready lets the others of its worker run.
#[test]
fn a_descriptor_that_is_always_ready_yields() {
    let runtime = runtime(1);
    let (source, _theirs) = pair(&runtime);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let (begin, begun) = mpsc::channel();
    let busy = runtime.spawn(async move {
        let mut tried = 0u64;
        while !stopped.load(Ordering::Relaxed) {
            tried += 1;
            source
                .io(Direction::Write, |_| Ok(()))
                .await
                .expect("no error");
            if tried == 1 {
                begin.send(()).expect("the test listens");
            }
        }
    });
    begun.recv().expect("it began");
    runtime
        .block_on(runtime.spawn(async move {
            yield_now().await;
            stop.store(true, Ordering::Relaxed);
        }))
        .expect("no panic");
    runtime.block_on(busy).expect("no panic");
}

#[test]
fn a_descriptor_comes_back() {
    let runtime = runtime(1);
    let (source, mut theirs) = pair(&runtime);
    theirs.write_all(b"ab").expect("open");
    assert_eq!(runtime.block_on(read(&source)).expect("no error"), b'a');
    let mut ours = UnixStream::from(source.into_fd());
    let mut byte = [0];
    ours.read_exact(&mut byte).expect("it is there");
    assert_eq!(byte, *b"b");
    // The descriptor can be used again, in another runtime.
    let again = self::runtime(1);
    let source = Source::new_in(&again, ours.into());
    assert!(source.as_fd().try_clone_to_owned().is_ok());
    theirs.write_all(b"c").expect("open");
    assert_eq!(again.block_on(read(&source)).expect("no error"), b'c');
}
