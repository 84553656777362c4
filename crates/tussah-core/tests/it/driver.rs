//! Tests of descriptors that threads wait for.

use std::future::poll_fn;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tussah_core::io::{Direction, Source};
use tussah_core::{Handle, Runtime, yield_now};

use crate::{HANG, runtime};

/// Returns a descriptor in the runtime, and its other end, which blocks.
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

/// From an OS thread that is not a worker and has no driver.
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
fn all_waiters_are_woken() {
    let runtime = runtime(2);
    let (source, mut theirs) = pair(&runtime);
    let source = Arc::new(source);
    let readers: Vec<_> = (0..20)
        .map(|_| {
            let source = source.clone();
            runtime.spawn(async move { read(&source).await })
        })
        .collect();
    // Some of them give up.
    readers.iter().step_by(3).for_each(|reader| reader.abort());
    theirs.write_all(&[1; 20]).expect("the readers are there");
    for (n, reader) in readers.into_iter().enumerate() {
        match runtime.block_on(reader) {
            Ok(byte) => assert_eq!(byte.expect("no error"), 1),
            Err(error) => assert!(error.is_cancelled() && n % 3 == 0),
        }
    }
}

/// A worker is held until another thread has read from a descriptor that is registered with that
/// worker.
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

/// No worker could help: there is no other, or the others do not steal, or they are held as well.
#[test]
fn an_outside_waiter_does_not_wait_for_held_workers() {
    for (workers, stealing, held) in [(1, true, 1), (2, false, 1), (2, true, 2)] {
        let runtime = Runtime::builder()
            .workers(workers)
            .stealing(stealing)
            .watchdog(Duration::from_millis(20), |_| ())
            .build()
            .expect("workers start");
        // From here on they are registered with one worker after the other.
        let mut all: Vec<_> = (0..workers).map(|_| two_bytes(&runtime)).collect();
        for (_, reads, _) in &mut all {
            let first = poll_fn(|context| Poll::Ready(reads.as_mut().poll(context)));
            assert!(runtime.block_on(first).is_pending(), "nothing is there");
        }
        let (begin, begun) = mpsc::channel();
        let done = Arc::new(AtomicBool::new(false));
        for _ in 0..held {
            let (begin, done) = (begin.clone(), done.clone());
            drop(runtime.spawn(async move {
                begin.send(()).expect("the test listens");
                while !done.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
            }));
        }
        (0..held).for_each(|_| begun.recv().expect("it runs"));
        for (theirs, reads, told) in &mut all {
            theirs.write_all(b"a").expect("open");
            read_first(&runtime, reads, told);
        }
        done.store(true, Ordering::Release);
        for (mut theirs, reads, _) in all {
            theirs.write_all(b"b").expect("open");
            runtime.block_on(reads).expect("no error");
        }
    }
}

#[test]
fn an_attempt_that_a_signal_interrupts_is_made_again() {
    let runtime = Runtime::builder().workers(1).build();
    let runtime = runtime.expect("the worker starts");
    let (source, _theirs) = pair(&runtime);
    let mut attempts = 0;
    let written = source.try_io(Direction::Write, |_| {
        attempts += 1;
        if attempts < 3 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(attempts)
    });
    assert_eq!(written.expect("nothing else is wrong"), 3);
}

/// A waker of another executor, which blocks until the test has received its message.
struct Blocks(std::sync::Mutex<mpsc::Receiver<()>>);

impl Wake for Blocks {
    fn wake(self: Arc<Self>) {
        let go = self.0.lock().expect("called once");
        go.recv().expect("the test tells");
    }
}

/// The waker of another executor holds the only worker, or one of two of which the other sleeps.
#[test]
fn a_waker_that_holds_a_worker_is_reported() {
    for workers in [1, 2] {
        let (tell, told) = mpsc::channel();
        let tell = std::sync::Mutex::new(tell);
        let runtime = Runtime::builder()
            .workers(workers)
            .watchdog(Duration::from_millis(5), move |stuck| {
                // The test listens to the first report.
                let _ = tell.lock().expect("no panic").send(*stuck);
            })
            .build()
            .expect("workers start");
        let (source, mut theirs) = pair(&runtime);
        let (go, wait) = mpsc::channel();
        let waker = Waker::from(Arc::new(Blocks(std::sync::Mutex::new(wait))));
        let mut read = Box::pin(read(&source));
        let first = read.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(first.is_pending(), "nothing is there");
        theirs.write_all(b"x").expect("open");
        let stuck = told.recv().expect("the watchdog barks");
        assert!(stuck.event.is_none(), "{stuck}");
        // A peer runs events from outside, although the held worker counts as a searcher.
        if workers > 1 {
            for _ in 0..20 {
                runtime.block_on(runtime.spawn(async {})).expect("no panic");
            }
        }
        go.send(()).expect("the waker waits");
        let read = runtime.block_on(read);
        assert_eq!(read.expect("no error"), b'x');
    }
}

/// Reads two bytes.
type Reads = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// Returns the end of a pair, the thread that reads two bytes at the other, and a receiver for the
/// first one.
fn two_bytes(handle: &Handle) -> (UnixStream, Reads, mpsc::Receiver<()>) {
    let (source, theirs) = pair(handle);
    let (tell, told) = mpsc::channel();
    let reads = Box::pin(async move {
        read(&source).await?;
        tell.send(()).expect("the test listens");
        read(&source).await.map(drop)
    });
    (theirs, reads, told)
}

/// Returns descriptors that are each registered with another worker, in the order of the workers,
/// their readers, and receivers for the first byte.
fn one_at_each_worker(
    runtime: &Runtime,
    workers: usize,
) -> Vec<(UnixStream, Reads, mpsc::Receiver<()>)> {
    let all_here = Arc::new(Barrier::new(workers));
    let registered: Vec<_> = (0..workers)
        .map(|_| {
            let all_here = all_here.clone();
            runtime.spawn(async move {
                // This many threads run at the same time, each on another worker.
                all_here.wait();
                let (theirs, mut reads, told) = Handle::with_current(two_bytes);
                let read = poll_fn(|context| Poll::Ready(reads.as_mut().poll(context)));
                assert!(read.await.is_pending(), "nothing is there");
                let worker = std::thread::current().name().map(str::to_owned);
                (worker, (theirs, reads, told))
            })
        })
        .collect();
    let registered = registered.into_iter();
    let mut registered: Vec<_> = registered
        .map(|thread| runtime.block_on(thread).expect("no panic"))
        .collect();
    registered.sort_by(|(a, _), (b, _)| a.cmp(b));
    registered.into_iter().map(|(_, all)| all).collect()
}

/// Reads up to the second byte, which is not there.
fn read_first(runtime: &Runtime, reads: &mut Reads, told: &mpsc::Receiver<()>) {
    runtime.block_on(poll_fn(|context| {
        assert!(reads.as_mut().poll(context).is_pending());
        match told.try_recv() {
            Ok(()) => Poll::Ready(()),
            Err(_) => Poll::Pending,
        }
    }));
}

#[test]
fn the_driver_of_a_removed_worker_is_served() {
    let runtime = runtime(4);
    let mut all = one_at_each_worker(&runtime, 4);
    runtime.set_workers(1).expect("a worker is left");
    for (theirs, reads, told) in &mut all {
        theirs.write_all(b"a").expect("open");
        read_first(&runtime, reads, told);
    }
    runtime.set_workers(4).expect("workers start");
    for (mut theirs, reads, _) in all {
        theirs.write_all(b"b").expect("open");
        runtime.block_on(reads).expect("no error");
    }
}

/// Worker 0, which has no descriptor of its own, never sleeps.
#[test]
fn a_busy_worker_serves_the_driver_of_a_removed_one() {
    let runtime = runtime(2);
    let mut all = one_at_each_worker(&runtime, 2);
    let (mut theirs, mut reads, told) = all.pop().expect("there are two");
    drop(all);
    runtime.set_workers(1).expect("a worker is left");
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let busy = runtime.spawn(async move {
        while !stopped.load(Ordering::Relaxed) {
            yield_now().await;
        }
    });
    // The worker may still see the first byte on its way out of the driver.
    theirs.write_all(b"a").expect("open");
    read_first(&runtime, &mut reads, &told);
    theirs.write_all(b"b").expect("open");
    runtime.block_on(reads).expect("no error");
    stop.store(true, Ordering::Relaxed);
    runtime.block_on(busy).expect("no panic");
}

#[test]
fn an_outside_waiter_learns_of_the_end() {
    let runtime = runtime(1);
    let (source, _theirs) = pair(&runtime);
    let handle = runtime.handle().clone();
    let (told, wait) = mpsc::channel();
    let (end, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let result = handle.block_on(async {
            let mut read = std::pin::pin!(read(&source));
            poll_fn(|context| Poll::Ready(read.as_mut().poll(context).is_pending())).await;
            told.send(()).expect("the test listens");
            read.await
        });
        end.send(result).expect("the test listens");
    });
    wait.recv().expect("it waits");
    drop(runtime);
    let result = ended.recv_timeout(HANG).expect("the wait ends");
    let error = result.expect_err("nothing came");
    assert_eq!(error.to_string(), "the runtime is shut down");
}

/// Sources are made, waited for and dropped while their runtime ends, and after that. Each wait
/// ends.
#[test]
fn a_waiter_during_the_shutdown_learns_of_the_end() {
    for _ in 0..30 {
        let runtime = runtime(2);
        let (begin, begun) = mpsc::channel();
        let waiting = [(); 3].map(|()| {
            let (handle, begin) = (runtime.handle().clone(), begin.clone());
            std::thread::spawn(move || {
                // Bytes come as long as the runtime exists. In the end the thread waits for one
                // that never comes.
                for n in 0.. {
                    let (source, mut theirs) = pair(&handle);
                    let mut read = Box::pin(read(&source));
                    let first = poll_fn(|context| Poll::Ready(read.as_mut().poll(context)));
                    let first = futures_lite::future::block_on(first);
                    if n == 100 {
                        begin.send(()).expect("the test listens");
                    }
                    if n < 200 && first.is_pending() {
                        theirs.write_all(b"x").expect("open");
                    }
                    let ended = match first {
                        Poll::Ready(ended) => ended,
                        Poll::Pending => futures_lite::future::block_on(read.as_mut()),
                    };
                    drop(read);
                    if let Err(error) = ended {
                        return (error, source, theirs);
                    }
                }
                unreachable!("nobody writes the last byte");
            })
        });
        for _ in 0..3 {
            begun.recv().expect("they begin");
        }
        let handle = runtime.handle().clone();
        drop(runtime);
        for waits in waiting {
            let (error, source, mut theirs) = waits.join().expect("no panic");
            assert_eq!(error.to_string(), "the runtime is shut down");
            drop(source);
            // Reset, if the last byte was not read before the end.
            let closed = theirs.read(&mut [0]).or_else(|error| match error.kind() {
                ErrorKind::ConnectionReset => Ok(0),
                _ => Err(error),
            });
            assert_eq!(closed.expect("it is closed"), 0);
        }
        let (source, mut theirs) = pair(&handle);
        let error = futures_lite::future::block_on(read(&source)).expect_err("nobody reports");
        assert_eq!(error.to_string(), "the runtime is shut down");
        drop(source);
        assert_eq!(theirs.read(&mut [0]).expect("it is closed"), 0);
    }
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

/// A descriptor that is always ready lets the others of its worker run.
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

/// Waits for a moment.
fn register(runtime: &Runtime, source: &Source) {
    let mut wait = source.io(Direction::Read, |_| {
        Err::<(), _>(ErrorKind::WouldBlock.into())
    });
    let first = runtime.block_on(poll_fn(|context| {
        Poll::Ready(Pin::new(&mut wait).poll(context).is_pending())
    }));
    assert!(first, "it is registered, and waited for");
}

#[test]
fn a_descriptor_comes_back() {
    let runtime = runtime(1);
    let (source, mut theirs) = pair(&runtime);
    theirs.write_all(b"ab").expect("open");
    assert_eq!(runtime.block_on(read(&source)).expect("no error"), b'a');
    // Waited for, and given up: it can be waited for again, in the same driver.
    register(&runtime, &source);
    let source = Source::new_in(&runtime, source.into_fd());
    register(&runtime, &source);
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

/// An operation that does not wait is tried each time.
#[test]
fn a_descriptor_without_waiters_is_tried() {
    let runtime = runtime(1);
    let (source, mut theirs) = pair(&runtime);
    let mut byte = [0];
    let mut try_read = || source.try_io(Direction::Read, |fd| Ok(rustix::io::read(fd, &mut byte)?));
    let error = try_read().expect_err("nothing is there");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    theirs.write_all(b"x").expect("open");
    assert_eq!(try_read().expect("it is there"), 1);
}

/// A read stops short at the mark of urgent data, although more data follows.
#[test]
fn urgent_data_is_no_end() {
    use std::net::{TcpListener, TcpStream};
    let runtime = runtime(1);
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let theirs = TcpStream::connect(listener.local_addr().expect("it has one"));
    let mut theirs = theirs.expect("somebody listens");
    let (ours, _) = listener.accept().expect("it connects");
    ours.set_nonblocking(true).expect("a socket may be");
    let source = Source::new_in(&runtime, ours.into());
    register(&runtime, &source);
    theirs.write_all(b"abc").expect("open");
    rustix::net::send(&theirs, b"!", rustix::net::SendFlags::OOB).expect("open");
    theirs.write_all(b"def").expect("open");
    let all = runtime.block_on(async {
        let mut all = Vec::new();
        while !all.ends_with(b"def") {
            let mut bytes = [0; 16];
            let read = source.io(Direction::Read, |fd| {
                let before = source.marker();
                let (len, _) = rustix::net::recv(fd, &mut bytes, rustix::net::RecvFlags::empty())?;
                if len < 16 {
                    source.came_short(Direction::Read, before);
                }
                Ok(len)
            });
            let len = read.await.expect("no error");
            all.extend_from_slice(&bytes[..len]);
        }
        all
    });
    assert_eq!(all, b"abcdef");
}
