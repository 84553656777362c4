//! Tests of sockets on a real epoll while workers come and go.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::task::{Context, Waker};
use std::time::Duration;

use super::{Direction, Source};
use crate::{Runtime, yield_now};

/// A guard against hangs: a run takes about a second.
const HANG_LIMIT: Duration = Duration::from_secs(120);

/// Returns both ends of a new pair, in the caller's runtime.
fn pair() -> [Source; 2] {
    let (a, b) = UnixStream::pair().expect("there are descriptors");
    [a, b].map(|end| {
        end.set_nonblocking(true).expect("a socket may be");
        Source::new(end.into())
    })
}

#[test]
fn spread_descriptors_go_to_all_workers_in_turn() {
    /// Returns how many of eight descriptors, which one event waits for, are registered with each
    /// of two workers.
    fn homes(spread: bool) -> [usize; 2] {
        let waits = async move {
            let mut homes = [0; 2];
            for _ in 0..8 {
                let [source, _peer] = pair();
                let source = if spread { source.spread() } else { source };
                let mut context = Context::from_waker(Waker::noop());
                let read = |_: BorrowedFd<'_>| Err::<(), _>(io::ErrorKind::WouldBlock.into());
                assert!(
                    source
                        .poll_io(&mut context, Direction::Read, read)
                        .is_pending()
                );
                homes[usize::from(source.slot().lock().home) - 1] += 1;
            }
            homes.sort_unstable();
            homes
        };
        let runtime = Runtime::builder().workers(2).build().expect("a runtime");
        runtime.block_on_spawned(waits)
    }
    assert_eq!(homes(true), [4, 4]);
    assert_eq!(homes(false), [0, 8]);
}

async fn write_all(source: &Source, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = source.io(Direction::Write, |fd| Ok(rustix::io::write(fd, bytes)?));
        bytes = &bytes[written.await?..];
    }
    Ok(())
}

/// Reads `len` bytes, or up to the end of the stream.
async fn read_up_to(source: &Source, len: usize) -> io::Result<Vec<u8>> {
    let mut all = vec![0; len];
    let mut done = 0;
    while done < len {
        let rest = &mut all[done..];
        let read = source.io(Direction::Read, |fd| Ok(rustix::io::read(fd, &mut *rest)?));
        match read.await? {
            0 => break,
            read => done += read,
        }
    }
    all.truncate(done);
    Ok(all)
}

/// Echoes every byte until the end of the stream.
async fn echo(source: Source) -> io::Result<()> {
    loop {
        let byte = read_up_to(&source, 1).await?;
        if byte.is_empty() {
            return Ok(());
        }
        write_all(&source, &byte).await?;
    }
}

/// Sends single bytes through a pair and back, often enough to make a descriptor move. If asked, it
/// then sends a block larger than the socket's buffer through another pair.
async fn exchange(block: bool) -> io::Result<()> {
    let [ours, theirs] = pair();
    let echo = crate::spawn(echo(theirs));
    for byte in 0..50 {
        write_all(&ours, &[byte]).await?;
        assert_eq!(read_up_to(&ours, 1).await?, [byte]);
        yield_now().await;
    }
    drop(ours);
    echo.await.expect("no panic")?;
    if block {
        let [ours, theirs] = pair();
        let block: Vec<_> = (0..400_000u32).map(|n| n as u8).collect();
        let sent = block.clone();
        let writer = crate::spawn(async move { write_all(&theirs, &sent).await });
        assert!(read_up_to(&ours, block.len()).await? == block);
        writer.await.expect("no panic")?;
    }
    Ok(())
}

/// Descriptors are registered, move and are removed while the drivers lose and gain workers, and
/// their numbers are reused immediately. At the end one worker is left, which serves all drivers.
#[test]
fn bytes_arrive_while_workers_come_and_go() {
    const PAIRS: usize = 300;
    const CHANGES: usize = 150;
    let runtime = Runtime::builder().workers(1).build();
    let runtime = runtime.expect("the worker starts");
    let (running, ended) = mpsc::channel::<()>();
    let changing = Arc::new(AtomicBool::new(true));
    let threads: Vec<_> = (0..PAIRS)
        .map(|n| {
            let (running, changing) = (running.clone(), changing.clone());
            runtime.spawn(async move {
                while changing.load(Ordering::Relaxed) {
                    exchange(n % 10 == 0).await.expect("no error");
                }
                drop(running);
            })
        })
        .collect();
    drop(running);
    for n in 0..=CHANGES {
        runtime.set_workers(1 + n % 4).expect("they can change");
        std::thread::yield_now();
    }
    runtime.set_workers(1).expect("one is left");
    changing.store(false, Ordering::Relaxed);
    let all_ended = ended.recv_timeout(HANG_LIMIT);
    assert_eq!(all_ended, Err(RecvTimeoutError::Disconnected), "it hangs");
    for thread in threads {
        runtime.block_on(thread).expect("no panic");
    }
    let shared = &runtime.handle().shared;
    for place in 0..shared.places() {
        assert!(!shared.waits(place), "something is registered with {place}");
    }
}
