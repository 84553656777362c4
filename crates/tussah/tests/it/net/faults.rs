//! Effects of peers and signals on connections.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tussah::net::{KeepAlive, TcpListener, TcpStream};
use tussah::{Color, spawn, yield_now};

use super::{alone, descriptors, pair, pattern, run, until};

/// Closes a connection so that the other end is reset.
fn reset(stream: TcpStream) {
    stream
        .set_linger(Some(Duration::ZERO))
        .expect("it is allowed");
    drop(stream);
}

fn assert_reset<T: std::fmt::Debug>(result: io::Result<T>, verb: &str, peer: std::net::SocketAddr) {
    let error = result.expect_err("the peer has broken off");
    let kinds = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
    assert!(kinds.contains(&error.kind()), "{error:?}");
    assert!(
        error.to_string().starts_with(&format!("{verb} {peer}: ")),
        "{error}"
    );
}

#[test]
fn a_reset_before_accepting() {
    run(1, async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let client = TcpStream::connect(address).await?;
        let peer = client.local_addr()?;
        reset(client);
        let next = TcpStream::connect(address).await?;
        // The system gives what is broken already, or nothing of it.
        let (mut server, from) = listener.accept().await?;
        if from == peer {
            assert_reset(server.read(&mut [0; 1]).await, "read from", peer);
            (server, _) = listener.accept().await?;
        }
        assert_eq!(server.peer_addr()?, next.local_addr()?);
        Ok(())
    });
}

#[test]
fn a_reset_before_an_operation() {
    run(1, async {
        for unread in [&b""[..], b"unread"] {
            let (client, server) = pair().await?;
            let peer = client.local_addr()?;
            client.write_all(unread).await?;
            reset(client);
            if !unread.is_empty() {
                assert_eq!(server.read(&mut [0; 16]).await?, unread.len());
            }
            assert_reset(server.read(&mut [0; 16]).await, "read from", peer);
            assert_eq!(server.read(&mut [0; 16]).await?, 0);
            assert_reset(server.write(b"x").await, "write to", peer);
            assert_eq!(server.peer_addr()?, peer); // it is remembered
        }
        Ok(())
    });
}

#[test]
fn a_reset_during_an_operation() {
    run(1, async {
        let (client, server) = pair().await?;
        let peer = client.local_addr()?;
        let reader = spawn(async move {
            let mut buffer = [0; 100];
            server.read_exact(&mut buffer).await
        });
        client.write_all(&[1; 50]).await?;
        yield_now().await;
        reset(client);
        assert_reset(reader.await.expect("no panic"), "read from", peer);

        let (client, server) = pair().await?;
        let peer = client.local_addr()?;
        let writer = spawn(async move { server.write_all(&vec![0; 50_000_000]).await });
        client.read_exact(&mut vec![0; 100_000]).await?;
        reset(client);
        assert_reset(writer.await.expect("no panic"), "write to", peer);
        Ok(())
    });
}

#[test]
fn a_reset_on_close() {
    run(1, async {
        // Closing a socket with unread data resets the peer.
        let (client, server) = pair().await?;
        let peer = client.local_addr()?;
        server.write_all(b"unread").await?;
        client.readable().await?;
        drop(client);
        assert_reset(server.read(&mut [0; 1]).await, "read from", peer);
        assert_eq!(
            server
                .shutdown(tussah::net::Shutdown::Write)
                .expect_err("it is broken")
                .kind(),
            io::ErrorKind::NotConnected
        );
        Ok(())
    });
}

#[test]
fn a_peer_that_vanishes_is_noticed() {
    run(1, async {
        let (client, server) = pair().await?;
        // A program that drops every packet: the peer answers nothing from now on.
        let nothing = socket2::SockFilter::new(0x06, 0, 0, 0);
        socket2::SockRef::from(&client).attach_filter(&[nothing])?;
        let peer = client.local_addr()?;
        server.set_read_timeout(Some(Duration::from_millis(10)))?;
        let error = server.read(&mut [0; 1]).await.expect_err("nobody writes");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        server.set_read_timeout(None)?;
        let second = Duration::from_secs(1);
        server.set_keep_alive(Some(KeepAlive {
            idle: second,
            interval: second,
            count: 1,
        }))?;
        let error = server.read(&mut [0; 1]).await.expect_err("nobody answers");
        assert_eq!(
            error.to_string(),
            format!("read from {peer}: Connection timed out (os error 110)")
        );
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        Ok(())
    });
}

#[test]
fn signals_interrupt_nothing() {
    alone("net::faults::signals_interrupt_nothing", || {
        let seen = Arc::new(AtomicBool::new(false));
        let registered = signal_hook::flag::register(signal_hook::consts::SIGUSR1, seen.clone());
        registered.expect("the signal may be handled");
        run(2, async {
            let done = Arc::new(AtomicBool::new(false));
            let finished = done.clone();
            let storm = std::thread::spawn(move || {
                // By their own numbers, since what is meant for the process interrupts its first OS
                // thread alone.
                while !finished.load(Ordering::Relaxed) {
                    for thread in std::fs::read_dir("/proc/self/task").expect("this is Linux") {
                        let name = thread.expect("it is readable").file_name();
                        let number = name.to_str().and_then(|name| name.parse().ok());
                        let thread = number.and_then(Pid::from_raw).expect("a number");
                        // It may have ended meanwhile.
                        let _ = kill_process(thread, Signal::USR1);
                    }
                }
            });
            let (client, server) = super::narrow_pair().await?;
            let waiting = spawn(async move {
                server.read_exact(&mut [0; 1]).await?;
                io::Result::Ok(server)
            });
            // All workers sleep, and are interrupted in that.
            for _ in 0..100 {
                while !seen.swap(false, Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            }
            assert!(!waiting.is_finished());
            client.write_all(b"x").await?;
            let server = waiting.await.expect("no panic")?;
            let sent = Arc::new(pattern(1_000_000));
            let bytes = sent.clone();
            let writer = spawn(async move { client.write_all(&bytes).await });
            let mut received = vec![0; sent.len()];
            server.read_exact(&mut received).await?;
            writer.await.expect("no panic")?;
            assert!(received == *sent);
            for _ in 0..100 {
                pair().await?; // connecting and accepting
            }
            done.store(true, Ordering::Relaxed);
            storm.join().expect("no panic");
            Ok(())
        });
    });
}

#[test]
fn connections_that_break_leave_nothing() {
    alone("net::faults::connections_that_break_leave_nothing", || {
        let count = std::env::var("TUSSAH_TEST_CONNECTIONS");
        let count = count.map_or(10_000, |count| count.parse().expect("a number"));
        run(2, async {
            let listener = TcpListener::bind("0.0.0.0:0")?;
            let port = listener.local_addr()?.port();
            let acceptor = spawn(async move {
                for i in 0.. {
                    let serve = |stream: TcpStream, _| async move {
                        let mut buffer = [0; 64];
                        while let Ok(len @ 1..) = stream.read(&mut buffer).await {
                            if stream.write_all(&buffer[..len]).await.is_err() {
                                break;
                            }
                        }
                    };
                    listener.accept_in(Color(i), serve).await.map(drop)?;
                }
                io::Result::Ok(())
            });
            let mut before = usize::MAX;
            for i in 0..count {
                // Many addresses, since a port rests for a while after its connection has ended.
                let address = ([127, 0, (i % 200) as u8, 1], port);
                let stream = TcpStream::connect(std::net::SocketAddr::from(address)).await?;
                match i % 5 {
                    0 => drop(stream),
                    1 => reset(stream),
                    2 => {
                        stream.write_all(b"hello").await?;
                        reset(stream);
                    }
                    3 => {
                        stream.write_all(b"hello").await?;
                        stream.read_exact(&mut [0; 5]).await?;
                        reset(stream);
                    }
                    _ => {
                        stream.write_all(b"hello").await?;
                        stream.shutdown(tussah::net::Shutdown::Write)?;
                        stream.read_exact(&mut [0; 5]).await?;
                        assert_eq!(stream.read(&mut [0; 1]).await?, 0);
                    }
                }
                if i == 100 {
                    before = descriptors();
                }
            }
            until(|| descriptors() <= before).await;
            assert!(!acceptor.is_finished());
            acceptor.abort();
            Ok(())
        });
    });
}
