//! TCP streams that work: both ways, in all forms, in order.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::size_of_val;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_lite::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tussah::net::{KeepAlive, RateLimit, Shutdown, TcpListener, TcpStream};
use tussah::{OpError, spawn};

use super::{narrow_pair, pair, pattern, poll_once, run, until};
use crate::{by_hand, refusing};

#[test]
fn large_transfers_both_ways_arrive_whole() {
    run(2, async {
        let (client, server) = pair().await?;
        let (client, server) = (Arc::new(client), Arc::new(server));
        let sent = Arc::new(pattern(5_000_000));
        let mut threads = Vec::new();
        for stream in [&client, &server] {
            let (stream, bytes) = (stream.clone(), sent.clone());
            threads.push(spawn(async move { stream.write_all(&bytes).await }));
        }
        for stream in [&client, &server] {
            let (stream, expected) = (stream.clone(), sent.clone());
            threads.push(spawn(async move {
                let mut received = vec![0; expected.len()];
                stream.read_exact(&mut received).await?;
                assert!(received == *expected);
                Ok(())
            }));
        }
        for thread in threads {
            thread.await.expect("no panic")?;
        }
        Ok(())
    });
}

#[test]
fn small_buffers_make_short_reads_and_writes() {
    run(1, async {
        let (client, server) = narrow_pair().await?;
        let sent = pattern(300_000);
        let bytes = sent.clone();
        let writer = spawn(async move {
            let (mut rest, mut writes) = (&bytes[..], 0);
            while !rest.is_empty() {
                rest = &rest[client.write(rest).await?..];
                writes += 1;
            }
            io::Result::Ok(writes)
        });
        let (mut received, mut buffer) = (Vec::new(), vec![0; 100_000]);
        loop {
            match server.read(&mut buffer).await? {
                0 => break,
                len => received.extend_from_slice(&buffer[..len]),
            }
        }
        assert!(received == sent);
        assert!(writer.await.expect("no panic")? > 3);
        Ok(())
    });
}

#[test]
fn vectored_operations_keep_the_order() {
    run(1, async {
        let (client, server) = narrow_pair().await?;
        let parts: Vec<_> = (0..2000).map(|i| pattern(i % 97)).collect();
        let sent = parts.concat();
        let writer = spawn(async move {
            let mut slices: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
            client.write_all_vectored(&mut slices).await?;
            let end = [IoSlice::new(b"e"), IoSlice::new(b"nd")];
            assert_eq!(client.write_vectored(&end).await?, 3);
            client.write_all_vectored(&mut [IoSlice::new(b"")]).await
        });
        let mut received = Vec::new();
        loop {
            let (mut a, mut b) = ([0; 7], [0; 1000]);
            let mut slices = [IoSliceMut::new(&mut a), IoSliceMut::new(&mut b)];
            let len = server.read_vectored(&mut slices).await?;
            received.extend_from_slice(&[&a[..], &b[..]].concat()[..len]);
            if len == 0 {
                break;
            }
        }
        writer.await.expect("no panic")?;
        assert!(received.strip_suffix(b"end") == Some(&sent[..]));
        Ok(())
    });
}

#[test]
fn a_peek_leaves_what_it_sees() {
    run(1, async {
        let (client, server) = pair().await?;
        client.write_all(b"hello").await?;
        let mut buffer = [0; 3];
        assert_eq!(server.peek(&mut buffer).await?, 3);
        assert_eq!(server.peek(&mut []).await?, 0);
        let mut all = [0; 5];
        server.read_exact(&mut all).await?;
        assert_eq!(&all, b"hello");
        assert_eq!(server.read(&mut []).await?, 0);
        Ok(())
    });
}

#[test]
fn try_operations_do_not_wait() {
    run(1, async {
        let (client, server) = pair().await?;
        let mut buffer = [0; 16];
        let would_block = |result: io::Result<usize>| {
            result.expect_err("it would block").kind() == io::ErrorKind::WouldBlock
        };
        // More than once: nobody waits in between, and what comes then is seen nevertheless.
        for _ in 0..3 {
            assert!(would_block(server.try_read(&mut buffer)));
            client.writable().await?;
            assert_eq!(client.try_write(b"abc")?, 3);
            let mut read = server.try_read(&mut buffer);
            while read
                .as_ref()
                .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
            {
                read = server.try_read(&mut buffer);
            }
            assert_eq!(read?, 3);
        }
        while client.try_write(&[0; 100_000]).is_ok() {}
        assert!(poll_once(&mut client.writable()).is_pending());
        server.readable().await?;
        assert!(server.try_read(&mut buffer)? > 0);
        Ok(())
    });
}

#[test]
fn each_direction_is_closed_by_itself() {
    run(1, async {
        let (client, server) = pair().await?;
        client.write_all(b"question").await?;
        client.shutdown(Shutdown::Write)?;
        let mut received = Vec::new();
        (&server).read_to_end(&mut received).await?;
        assert_eq!(received, b"question");
        server.write_all(b"answer").await?;
        drop(server);
        let mut received = Vec::new();
        (&client).read_to_end(&mut received).await?;
        assert_eq!(received, b"answer");
        Ok(())
    });
}

#[test]
fn a_shutdown_wakes_the_reader() {
    run(1, async {
        let (client, _server) = pair().await?;
        let client = Arc::new(client);
        let reader = client.clone();
        let reader = spawn(async move { reader.read(&mut [0; 16]).await });
        tussah::yield_now().await;
        client.shutdown(Shutdown::Both)?;
        assert_eq!(reader.await.expect("no panic")?, 0);
        Ok(())
    });
}

#[test]
fn halves_end_in_order() {
    run(1, async {
        let (client, server) = pair().await?;
        let (read, write) = client.into_split();
        let (other_read, other_write) = server.into_split();
        let error = read.reunite(other_write).expect_err("they are strangers");
        let (read, other_write) = (error.0, error.1);
        write.write_all(b"abc").await?;
        drop(write);
        let mut received = Vec::new();
        let mut other_read = other_read;
        other_read.read_to_end(&mut received).await?;
        assert_eq!(received, b"abc");
        // The other direction is still open, also when its half was put together again.
        let server = other_read
            .reunite(other_write)
            .expect("they belong together");
        server.write_all(b"def").await?;
        let mut buffer = [0; 3];
        read.read_exact(&mut buffer).await?;
        assert_eq!(&buffer, b"def");
        let (other_read, other_write) = server.into_split();
        other_write.forget();
        assert!(poll_once(&mut read.read(&mut buffer)).is_pending());
        drop(other_read);
        assert_eq!(read.read(&mut buffer).await?, 0);
        Ok(())
    });
}

#[test]
fn the_traits_of_futures_io_work() {
    run(1, async {
        let (mut client, server) = narrow_pair().await?;
        let echo = spawn(async move {
            let mut server = server;
            let (read, write) = server.split();
            futures_lite::io::copy(read, write).await
        });
        let sent = pattern(100_000);
        let (mut read, mut write) = client.split();
        let mut received = vec![0; sent.len()];
        let both = futures_lite::future::try_zip(
            async {
                AsyncWriteExt::write_all(&mut write, &sent).await?;
                AsyncWriteExt::close(&mut write).await
            },
            AsyncReadExt::read_exact(&mut read, &mut received),
        );
        both.await?;
        assert!(received == sent);
        assert_eq!(echo.await.expect("no panic")?, 100_000);
        Ok(())
    });
}

#[test]
fn owned_buffers_come_back() {
    run(1, async {
        let (client, server) = pair().await?;
        let (written, buffer) = client.write_owned("hello".to_string()).await;
        assert_eq!((written?, buffer.as_str()), (5, "hello"));
        let (read, buffer) = server.read_owned([0; 8]).await;
        assert_eq!(&buffer[..read?], b"hello");
        let (written, _) = client.write_all_owned(buffer).await;
        written?;
        drop(client);
        server.read_exact(&mut [0; 8]).await?;
        let (read, _) = server.read_owned(vec![0; 4]).await;
        assert_eq!(read?, 0);
        Ok(())
    });
}

#[test]
fn options_are_kept() {
    run(1, async {
        let (client, _server) = pair().await?;
        for on in [true, false] {
            client.set_nodelay(on)?;
            assert_eq!(client.nodelay()?, on);
        }
        for keep_alive in [Some(KeepAlive::default()), None] {
            client.set_keep_alive(keep_alive)?;
            assert_eq!(client.keep_alive()?, keep_alive);
        }
        client.set_ttl(17)?;
        assert_eq!(client.ttl()?, 17);
        for linger in [Some(Duration::ZERO), None] {
            client.set_linger(linger)?;
            assert_eq!(client.linger()?, linger);
        }
        let error = client.set_linger(Some(Duration::from_secs(1)));
        let error = error.expect_err("it would block the drop");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        client.set_send_buffer(10_000)?;
        assert_eq!(client.send_buffer()?, 20_000);
        client.set_receive_buffer(10_000)?;
        assert_eq!(client.receive_buffer()?, 20_000);
        assert!(client.take_error()?.is_none());
        let listener = TcpListener::bind("[::1]:0")?;
        listener.set_ttl(9)?;
        assert_eq!(listener.ttl()?, 9);
        let options = TcpStream::builder().ttl(8);
        let client = options.connect(listener.local_addr()?).await?;
        assert_eq!(client.ttl()?, 8);
        for on in [true, false] {
            let listener = TcpListener::builder().nodelay(on).bind("127.0.0.1:0")?;
            let _client = TcpStream::connect(listener.local_addr()?).await?;
            let (server, _) = listener.accept().await?;
            assert_eq!(server.nodelay()?, on);
        }
        Ok(())
    });
}

#[test]
fn a_refused_connection_says_with_whom() {
    run(1, async {
        let (_socket, port) = refusing();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let error = TcpStream::connect(address)
            .await
            .expect_err("nobody is there");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let text = format!("connect to {address}: Connection refused (os error 111)");
        assert_eq!(error.to_string(), text);
        assert_eq!(
            OpError::of(&error).map(OpError::operation),
            Some("connect to")
        );
        // The next address is tried.
        let listener = TcpListener::bind("127.0.0.1:0")?;
        TcpStream::connect([address, listener.local_addr()?].as_slice()).await?;
        for nothing in [&[][..], &[address]] {
            assert!(TcpStream::connect(nothing).await.is_err());
        }
        Ok(())
    });
}

/// A runtime with one worker and a clock that the test moves.
fn with_clock<F: Future<Output = io::Result<()>>>(test: impl FnOnce(tussah::ManualClock) -> F) {
    let (manual, runtime) = by_hand();
    runtime.block_on(test(manual)).expect("the network works");
}

#[test]
fn time_limits_end_operations_that_wait() {
    with_clock(|clock| async move {
        let (client, server) = pair().await?;
        assert_eq!(client.read_timeout(), None);
        let second = Duration::from_secs(1);
        let error = client.set_read_timeout(Some(Duration::ZERO));
        assert_eq!(error.expect_err("zero").kind(), io::ErrorKind::InvalidInput);
        client.set_read_timeout(Some(second))?;
        client.set_write_timeout(Some(second))?;
        assert_eq!(
            (client.read_timeout(), client.write_timeout()),
            (Some(second), Some(second))
        );
        let client = Arc::new(client);

        let timed_out = async |operation: tussah::JoinHandle<io::Result<usize>>| {
            until(|| {
                clock.advance(second / 10);
                operation.is_finished()
            })
            .await;
            let result = operation.await.expect("no panic");
            result.expect_err("the time is up")
        };
        let stream = client.clone();
        let read = spawn(async move { stream.read(&mut [0; 16]).await });
        let error = timed_out(read).await;
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let peer = client.peer_addr()?;
        assert!(
            error
                .to_string()
                .starts_with(&format!("read from {peer}: ")),
            "{error}"
        );

        let stream = client.clone();
        let polled = spawn(async move { AsyncReadExt::read(&mut &*stream, &mut [0; 16]).await });
        assert_eq!(timed_out(polled).await.kind(), io::ErrorKind::TimedOut);

        while client.try_write(&[0; 100_000]).is_ok() {}
        let stream = client.clone();
        let write = spawn(async move { stream.write(&[0; 16]).await });
        assert_eq!(timed_out(write).await.kind(), io::ErrorKind::TimedOut);

        // Nothing was lost, and without a limit it waits.
        server.write_all(b"late").await?;
        client.read_exact(&mut [0; 4]).await?;
        client.set_read_timeout(None)?;
        let stream = client.clone();
        let read = spawn(async move { stream.read(&mut [0; 16]).await });
        tussah::yield_now().await;
        clock.advance(100 * second);
        tussah::yield_now().await;
        assert!(!read.is_finished());
        drop(server);
        assert!(read.await.expect("no panic").is_err()); // what was written to it met nobody
        Ok(())
    });
}

#[test]
fn a_rate_limit_delays_reading() {
    with_clock(|clock| async move {
        let (client, server) = pair().await?;
        let limit = Arc::new(RateLimit::bytes(1000));
        server.set_read_limit(Some(limit.clone()));
        assert!(server.read_limit().is_some());
        client.write_all(&pattern(3000)).await?;
        let start = clock.clock().now();
        let reader = spawn(async move {
            let mut received = vec![0; 1500];
            server.read_exact(&mut received).await?;
            AsyncReadExt::read_exact(&mut &server, &mut received).await?; // by polling
            io::Result::Ok(received)
        });
        until(|| {
            clock.advance(Duration::from_millis(1));
            reader.is_finished()
        })
        .await;
        let received = reader.await.expect("no panic")?;
        assert!(received == pattern(3000)[1500..]);
        assert_eq!(limit.bytes_read(), 3000);
        assert!(limit.reads_delayed() > 0);
        // By the clock of the test: a thousand at once, and the rest at the rate, but for the last
        // piece.
        let took = clock.clock().now() - start;
        assert!(took >= Duration::from_millis(1800), "{took:?}");
        Ok(())
    });
}

#[test]
fn the_futures_are_small() {
    run(1, async {
        let (client, _server) = pair().await?;
        let mut buffer = [0; 1];
        assert!(size_of_val(&client) <= 56);
        assert!(size_of_val(&client.read(&mut buffer)) <= 64);
        assert!(size_of_val(&client.write(&buffer)) <= 64);
        assert!(size_of_val(&client.write_all(&buffer)) <= 64);
        assert!(size_of_val(&client.read_exact(&mut buffer)) <= 64);
        assert!(size_of_val(&client.readable()) <= 48);
        assert!(size_of_val(&TcpStream::connect("127.0.0.1:1")) <= 400);
        Ok(())
    });
}

#[test]
fn a_socket_that_is_always_ready_starves_nobody() {
    run(1, async {
        let (client, server) = pair().await?;
        let hog = spawn(async move {
            let bytes = vec![0; 1 << 20];
            while client.write_all(&bytes).await.is_ok() {}
        });
        let eater = spawn(async move {
            let mut buffer = vec![0; 1 << 20];
            while server.read(&mut buffer).await.is_ok_and(|len| len > 0) {}
        });
        // A byte at a time from a socket that always has one: nothing of it ever waits.
        let (full, reader) = pair().await?;
        let source = spawn(async move {
            let bytes = [0; 1 << 16];
            while full.write_all(&bytes).await.is_ok() {}
        });
        let nibbler =
            spawn(async move { while reader.read(&mut [0; 1]).await.is_ok_and(|len| len > 0) {} });
        for _ in 0..20 {
            tussah::time::sleep(Duration::from_millis(1)).await;
            let (a, b) = pair().await?;
            a.write_all(b"x").await?;
            b.read_exact(&mut [0; 1]).await?;
        }
        assert!(!hog.is_finished() && !eater.is_finished());
        assert!(!source.is_finished() && !nibbler.is_finished());
        hog.abort();
        nibbler.abort();
        Ok(())
    });
}

#[test]
fn vectored_transfers_are_bounded_too() {
    run(1, async {
        let (client, server) = pair().await?;
        let bytes = pattern(200_000);
        let slices = [IoSlice::new(&bytes); 8];
        let len = client.write_vectored(&slices).await?;
        assert!(0 < len && len <= 256 * 1024, "{len}");
        // Of a rate, an eighth at a time.
        server.set_read_limit(Some(Arc::new(RateLimit::bytes(800))));
        for lens in [[0, 500], [80, 80]] {
            let mut buffers = lens.map(|len| vec![0; len]);
            let mut slices = buffers.each_mut().map(|buffer| IoSliceMut::new(buffer));
            let len = server.read_vectored(&mut slices).await?;
            assert!(0 < len && len <= 100, "{len}");
        }
        Ok(())
    });
}

#[test]
fn empty_slices_are_not_the_end() {
    run(1, async {
        let (client, server) = pair().await?;
        // More of them than the system takes at a time.
        let mut slices = vec![IoSlice::new(b""); 2000];
        slices.push(IoSlice::new(b"hello"));
        assert_eq!(client.write_vectored(&slices).await?, 5);
        let mut buffer = [0; 9];
        let mut slices: Vec<_> = (0..2000).map(|_| IoSliceMut::new(&mut [])).collect();
        slices.push(IoSliceMut::new(&mut buffer));
        assert_eq!(server.read_vectored(&mut slices).await?, 5);
        assert_eq!(&buffer[..5], b"hello");
        Ok(())
    });
}

#[test]
fn streams_that_share_a_rate_do_not_go_all_at_once() {
    const PIECE: u64 = 125;
    let (clock, runtime) = by_hand();
    // The test is a thread of the only worker, so that all others run whenever it yields.
    let test = async move {
        let limit = Arc::new(RateLimit::bytes(8 * PIECE));
        let mut clients = Vec::new();
        let mut readers = Vec::new();
        for _ in 0..16 {
            let (client, server) = pair().await?;
            client.write_all(&pattern(2000)).await?;
            clients.push(client);
            server.set_read_limit(Some(limit.clone()));
            readers.push(spawn(async move {
                while server.read(&mut [0; 2000]).await? > 0 {}
                io::Result::Ok(())
            }));
        }
        for passed_ms in (0..2000).step_by(25) {
            crate::idle().await;
            // A window at once, then the rate, but for the last piece.
            let allowed = (1000 + passed_ms) * 8 * PIECE / 1000 + PIECE;
            let bytes = limit.bytes_read();
            assert!(bytes <= allowed, "{bytes} of {allowed} in {passed_ms} ms");
            clock.advance(Duration::from_millis(25));
        }
        assert!(limit.bytes_read() >= 20 * PIECE);
        // The same read is delayed again.
        let reads = limit.bytes_read() / PIECE;
        assert!(limit.reads_delayed() <= reads + 16);
        readers.iter().for_each(|reader| reader.abort());
        io::Result::Ok(())
    };
    runtime.block_on_spawned(test).expect("the network works");
}

#[test]
fn a_wait_that_was_abandoned_does_not_count_for_the_next() {
    let (clock, runtime) = by_hand();
    let second = Duration::from_secs(1);
    // The test is a thread of the only worker, so that timers have fired when it goes on.
    let test = async move {
        let passes = async |time| {
            clock.advance(time);
            crate::idle().await;
        };
        let (client, _server) = pair().await?;
        let mut buffer = [0; 16];
        let mut poll = || poll_once(&mut AsyncReadExt::read(&mut &client, &mut buffer));
        client.set_read_timeout(Some(second))?;
        assert!(poll().is_pending());
        passes(second).await;
        // Nobody has waited for what the timer has reported.
        passes(100 * second).await;
        assert!(poll().is_pending());
        // Nor does a limit count that is none any more.
        client.set_read_timeout(Some(100 * second))?;
        passes(second).await;
        assert!(poll().is_pending());
        client.set_read_timeout(None)?;
        passes(100 * second).await;
        assert!(poll().is_pending());
        client.set_read_timeout(Some(second))?;
        assert!(poll().is_pending());
        passes(100 * second).await;
        let Poll::Ready(Err(error)) = poll() else {
            panic!("this one was waited for");
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        io::Result::Ok(())
    };
    runtime.block_on_spawned(test).expect("the network works");
}

#[test]
fn a_time_limit_does_not_lift_a_rate_limit() {
    let (clock, runtime) = by_hand();
    let test = async move {
        let limit = Arc::new(RateLimit::bytes(1000));
        let (client, server) = pair().await?;
        let (other_client, other) = pair().await?;
        server.set_read_limit(Some(limit.clone()));
        server.set_read_timeout(Some(Duration::from_secs(100)))?;
        other.set_read_limit(Some(limit.clone()));
        let reader = spawn(async move {
            server.read(&mut [0; 16]).await?;
            AsyncReadExt::read(&mut &server, &mut [0; 16]).await
        });
        for _ in 0..2 {
            // It waits for its peer now. Meanwhile the other one takes all that is allowed.
            tussah::yield_now().await;
            other_client.write_all(&pattern(2000)).await?;
            let error = loop {
                if let Err(error) = other.try_read(&mut [0; 1000]) {
                    break error;
                }
            };
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
            let before = limit.bytes_read();
            client.write_all(b"x").await?;
            crate::idle().await;
            assert_eq!(limit.bytes_read(), before, "it was not its turn");
            until(|| {
                clock.advance(Duration::from_millis(1));
                limit.bytes_read() > before
            })
            .await;
        }
        assert_eq!(reader.await.expect("no panic")?, 1);
        io::Result::Ok(())
    };
    runtime.block_on_spawned(test).expect("the network works");
}

/// A waker that reads from a stream when it is dropped for the last time.
struct ReadsWhenDropped(Arc<TcpStream>, Arc<AtomicBool>);

impl Wake for ReadsWhenDropped {
    fn wake(self: Arc<Self>) {}
}

impl Drop for ReadsWhenDropped {
    fn drop(&mut self) {
        let context = &mut Context::from_waker(Waker::noop());
        let read = Pin::new(&mut &*self.0).poll_read(context, &mut [0; 8]);
        self.1.store(read.is_pending(), Ordering::Relaxed);
    }
}

#[test]
fn a_waker_may_use_its_stream_when_it_is_dropped() {
    run(1, async {
        let (stream, peer) = pair().await?;
        stream.set_read_timeout(Some(Duration::from_secs(3600)))?;
        let stream = Arc::new(stream);
        let has_read = Arc::new(AtomicBool::new(false));
        let waker = Waker::from(Arc::new(ReadsWhenDropped(stream.clone(), has_read.clone())));
        let poll = |waker: &Waker| {
            let context = &mut Context::from_waker(waker);
            Pin::new(&mut &*stream).poll_read(context, &mut [0; 8])
        };
        assert!(poll(&waker).is_pending());
        drop(waker);
        assert!(!has_read.load(Ordering::Relaxed), "the stream has it");
        // Another waker takes its place.
        assert!(poll(Waker::noop()).is_pending());
        assert!(has_read.load(Ordering::Relaxed));
        peer.write_all(b"x").await?;
        stream.readable().await?;
        assert!(matches!(poll(Waker::noop()), Poll::Ready(Ok(1))));
        Ok(())
    });
}
