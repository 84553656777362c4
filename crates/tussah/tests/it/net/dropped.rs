//! Futures of all operations, dropped after each number of polls.

use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::AsFd;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_lite::future::Boxed;
use futures_lite::{AsyncReadExt, AsyncWriteExt, StreamExt};
use tussah::Color;
use tussah::net::{Outgoing, OutgoingOptions, RateLimit, TcpListener, TcpStream};

use super::{alone, descriptors, narrow_pair, pattern, run, until};

/// Notes that somebody was woken. Who keeps the waker keeps a count of it.
#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// Polls a future up to `polls` times, each time after it was woken, and drops it then. True if it
/// completed.
async fn poll_and_drop(
    mut future: Boxed<()>,
    polls: usize,
    mut progress: impl FnMut(),
    keeps_waker: bool,
) -> bool {
    let flag = Arc::new(Flag::default());
    let waker = Waker::from(flag.clone());
    let mut done = false;
    for poll in 0..polls {
        if poll > 0 {
            until(|| {
                progress();
                flag.0.swap(false, Ordering::Acquire)
            })
            .await;
        }
        // Inside of a poll of this thread, so that the operation finds its runtime.
        let polled =
            poll_fn(|_| Poll::Ready(future.as_mut().poll(&mut Context::from_waker(&waker))));
        if polled.await.is_ready() {
            done = true;
            break;
        }
    }
    drop(future);
    drop(waker);
    if !keeps_waker {
        // The OS thread that has just woken us may not have dropped its waker yet.
        for _ in 0..1_000_000 {
            if Arc::strong_count(&flag) == 1 {
                break;
            }
            std::thread::yield_now();
        }
        assert_eq!(Arc::strong_count(&flag), 1, "somebody still waits");
    }
    done
}

type Case = (&'static str, fn(Arc<TcpStream>) -> Boxed<()>);

macro_rules! cases {
    ($(($name:literal, |$stream:ident| $body:expr)),* $(,)?) => {
        [$(($name, |$stream| Box::pin(async move { $body.await.expect($name); }))),*]
    };
}

/// Checks operations that take nothing before they complete.
const READ: &[Case] = &cases![
    ("read", |stream| stream.read(&mut [0; 100])),
    ("peek", |stream| stream.peek(&mut [0; 100])),
    ("readable", |stream| stream.readable()),
    ("read_vectored", |stream| {
        let (mut a, mut b) = ([0; 1], [0; 50]);
        async move {
            let mut slices = [IoSliceMut::new(&mut a), IoSliceMut::new(&mut b)];
            stream.read_vectored(&mut slices).await
        }
    }),
    ("read_owned", |stream| async move {
        stream.read_owned(vec![0; 100]).await.0
    }),
];

/// Checks operations that may have taken a part before.
const READ_EXACT: &[Case] = &cases![
    ("read_exact", |stream| stream.read_exact(&mut [0; 10])),
    ("AsyncRead", |stream| async move {
        AsyncReadExt::read_exact(&mut &*stream, &mut [0; 10]).await
    }),
];

/// Checks operations that give nothing before they complete; there is no room when they begin.
const WRITE: &[Case] = &cases![
    ("write", |stream| stream.write(&[1; 100])),
    ("writable", |stream| stream.writable()),
    ("write_vectored", |stream| async move {
        let slices = [IoSlice::new(&[1; 10]), IoSlice::new(&[2; 10])];
        stream.write_vectored(&slices).await
    }),
    ("write_owned", |stream| async move {
        stream.write_owned(vec![1; 100]).await.0
    }),
];

/// Checks operations that may have given a part of the pattern before.
const WRITE_ALL: &[Case] = &cases![
    ("write_all", |stream| async move {
        stream.write_all(&pattern(LONG)).await
    }),
    ("AsyncWrite", |stream| async move {
        AsyncWriteExt::write_all(&mut &*stream, &pattern(LONG)).await
    }),
    ("write_all_vectored", |stream| async move {
        let bytes = pattern(LONG);
        let mut slices: Vec<_> = bytes.chunks(1000).map(IoSlice::new).collect();
        stream.write_all_vectored(&mut slices).await
    }),
    ("write_all_owned", |stream| async move {
        stream.write_all_owned(pattern(LONG)).await.0
    }),
    ("send_file", |stream| async move {
        use std::io::Write;
        let mut file = tempfile::tempfile()?;
        file.write_all(&pattern(LONG))?;
        stream.send_file(file.as_fd(), 0, LONG as u64).await
    }),
];

/// More than fits into the buffers, so that it takes several waits.
const LONG: usize = 100_000;

/// How a stream is set before the operation.
const SET: [fn(&TcpStream); 2] = [
    |_| (),
    |stream| {
        let day = Some(Duration::from_secs(24 * 60 * 60));
        stream.set_read_timeout(day).expect("it is a time");
        stream.set_write_timeout(day).expect("it is a time");
        // So many that nobody ever waits for it.
        stream.set_read_limit(Some(Arc::new(RateLimit::bytes(1 << 40))));
    },
];

/// Calls `check` with the number of polls, from 0 on, until it says that the operation completed.
async fn at_each_await(
    name: &str,
    mut check: impl AsyncFnMut(usize) -> io::Result<bool>,
) -> io::Result<()> {
    for polls in 0..1000 {
        if check(polls).await? {
            assert!(polls > 1, "{name} never waited");
            return Ok(());
        }
    }
    panic!("{name} does not complete");
}

async fn dropped_reads(set: fn(&TcpStream)) -> io::Result<()> {
    let all = READ.iter().map(|case| (case, true));
    let all = all.chain(READ_EXACT.iter().map(|case| (case, false)));
    for (&(name, operation), takes_nothing) in all {
        at_each_await(name, async |polls| {
            let (peer, stream) = super::pair().await?;
            set(&stream);
            let stream = Arc::new(stream);
            let mut sent = Vec::new();
            let progress = || {
                sent.push(sent.len() as u8);
                let wrote = peer.try_write(&sent[sent.len() - 1..]);
                assert_eq!(wrote.expect("there is room"), 1);
            };
            let keeps = name == "AsyncRead";
            let done = poll_and_drop(operation(stream.clone()), polls, progress, keeps).await;
            drop(peer);
            let mut rest = Vec::new();
            (&*stream).read_to_end(&mut rest).await?;
            assert!(sent.ends_with(&rest), "{name}: {sent:?}, then {rest:?}");
            if takes_nothing && !done {
                assert_eq!(rest, sent, "{name}: a dropped one took something");
            }
            Ok(done)
        })
        .await?;
    }
    Ok(())
}

async fn dropped_writes(set: fn(&TcpStream)) -> io::Result<()> {
    let all = WRITE.iter().map(|case| (case, true));
    let all = all.chain(WRITE_ALL.iter().map(|case| (case, false)));
    for (&(name, operation), gives_nothing) in all {
        at_each_await(name, async |polls| {
            let (stream, peer) = narrow_pair().await?;
            set(&stream);
            let stream = Arc::new(stream);
            let mut before = 0;
            if gives_nothing {
                while let Ok(len) = stream.try_write(&[0; 10_000]) {
                    before += len;
                }
            }
            let mut received = Vec::new();
            let mut buffer = vec![0; 100_000];
            let progress = || {
                if let Ok(len) = peer.try_read(&mut buffer) {
                    received.extend_from_slice(&buffer[..len]);
                }
            };
            let keeps = name == "AsyncWrite";
            let done = poll_and_drop(operation(stream.clone()), polls, progress, keeps).await;
            let writer = tussah::spawn(async move {
                stream.write_all(b"mark").await?;
                drop(stream);
                io::Result::Ok(())
            });
            (&peer).read_to_end(&mut received).await?;
            writer.await.expect("no panic")?;
            let rest = received[before..].strip_suffix(b"mark");
            let rest = rest.unwrap_or_else(|| panic!("{name}: what follows was lost"));
            if gives_nothing {
                assert!(
                    done || rest.is_empty(),
                    "{name}: a dropped one gave something"
                );
            } else {
                assert!(pattern(LONG).starts_with(rest), "{name}: out of order");
                assert!(!done || rest.len() == LONG, "{name}: not all");
            }
            Ok(done)
        })
        .await?;
    }
    Ok(())
}

type Accepting = (&'static str, fn(Arc<TcpListener>) -> Boxed<()>);

const ACCEPT: &[Accepting] = &cases![
    ("accept", |listener| listener.accept()),
    ("accept_in", |listener| async move {
        let accepted = listener.accept_in(Color(3), async |_, _| ()).await;
        accepted.map(drop)
    }),
    ("incoming", |listener| async move {
        pin!(listener.incoming())
            .next()
            .await
            .expect("it never ends")
    }),
];

async fn dropped_accepts(connections_max: usize) -> io::Result<()> {
    for &(name, operation) in ACCEPT {
        at_each_await(name, async |polls| {
            let options = TcpListener::builder().connections_max(connections_max);
            let listener = Arc::new(options.bind("127.0.0.1:0")?);
            let address = listener.local_addr()?;
            let first = std::net::TcpStream::connect(address)?;
            let mut taken = Some(listener.accept().await?);
            let mut clients = Vec::new();
            if connections_max == 1 {
                // With the only place taken, the wait is for that; else it is for a client.
                clients.push(std::net::TcpStream::connect(address)?);
            }
            let progress = || {
                taken = None;
                clients.push(std::net::TcpStream::connect(address).expect("it listens"));
            };
            let done = poll_and_drop(operation(listener.clone()), polls, progress, false).await;
            drop((taken, first));
            for _ in 0..clients.len() - usize::from(done) {
                listener.accept().await?;
            }
            assert!(super::poll_once(&mut Box::pin(listener.accept())).is_pending());
            Ok(done)
        })
        .await?;
    }
    Ok(())
}

async fn dropped_connects() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    // It need not wait: on the same machine a connection may be there at once.
    for polls in 0..3 {
        let operation = async move {
            let limit = Duration::from_secs(24 * 60 * 60);
            TcpStream::connect_timeout(address, limit)
                .await
                .expect("it listens");
        };
        let done = poll_and_drop(Box::pin(operation), polls, || (), false).await;
        if polls > 0 {
            listener.accept().await?;
        }
        if done {
            return Ok(());
        }
    }
    panic!("connect does not complete");
}

/// The listener's queue is full, so that a connection has to wait.
async fn dropped_connect_that_waits() -> io::Result<()> {
    let listener = TcpListener::builder().backlog(1).bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let mut queued = Vec::new();
    loop {
        let before = descriptors();
        let mut connect = Box::pin(TcpStream::connect(address));
        if let Poll::Ready(stream) = super::poll_once(&mut connect) {
            queued.push(stream?);
            assert!(queued.len() < 100, "the queue is never full");
            continue;
        }
        assert_eq!(descriptors(), before + 1);
        drop(connect);
        assert_eq!(descriptors(), before);
        break;
    }
    for _ in &queued {
        listener.accept().await?;
    }
    let _another = TcpStream::connect(address).await?;
    Ok(())
}

async fn dropped_pushes() -> io::Result<()> {
    type Pushing = fn(Outgoing<Vec<u8>>) -> Boxed<()>;
    let cases: [(&str, Pushing); 2] = [
        ("push", |outgoing| {
            Box::pin(async move { outgoing.push(vec![7; 10]).await.expect("it is open") })
        }),
        ("finish", |outgoing| {
            Box::pin(async move { outgoing.finish().await.expect("the peer reads") })
        }),
    ];
    for (name, operation) in cases {
        at_each_await(name, async |polls| {
            let (stream, peer) = narrow_pair().await?;
            let outgoing = OutgoingOptions::default().buffers_max(1).start(stream);
            outgoing.push(pattern(LONG)).await.expect("it is empty");
            let mut received = Vec::new();
            let mut buffer = vec![0; 100_000];
            let progress = || {
                if let Ok(len) = peer.try_read(&mut buffer) {
                    received.extend_from_slice(&buffer[..len]);
                }
            };
            let done = poll_and_drop(operation(outgoing.clone()), polls, progress, false).await;
            drop(outgoing);
            (&peer).read_to_end(&mut received).await?;
            let rest = received
                .strip_prefix(&pattern(LONG)[..])
                .expect("it was taken");
            let pushed = name == "push" && done;
            assert_eq!(rest, &[7; 10][..if pushed { 10 } else { 0 }]);
            Ok(done)
        })
        .await?;
    }
    Ok(())
}

#[test]
fn futures_may_be_dropped_at_each_await() {
    alone("net::dropped::futures_may_be_dropped_at_each_await", || {
        run(1, async {
            let mut before = 0;
            for round in 0..2 {
                for set in SET {
                    dropped_reads(set).await?;
                    dropped_writes(set).await?;
                }
                dropped_accepts(1).await?;
                dropped_accepts(100).await?;
                dropped_connects().await?;
                dropped_connect_that_waits().await?;
                dropped_pushes().await?;
                // The first round has made what the runtime keeps.
                until(|| round == 0 || descriptors() == before).await;
                before = descriptors();
            }
            Ok(())
        });
    });
}
