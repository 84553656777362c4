//! Listeners: limits, several at one port, connections in colors.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_lite::StreamExt;
use tussah::net::{TcpListener, TcpStream};
use tussah::{Color, spawn};

use super::{poll_once, run, until};

#[test]
fn no_more_connections_than_allowed() {
    run(1, async {
        let listener = TcpListener::builder()
            .connections_max(2)
            .bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let mut clients = Vec::new();
        for _ in 0..4 {
            clients.push(TcpStream::connect(address).await?);
        }
        let (first, _) = listener.accept().await?;
        let (second, _) = listener.accept().await?;
        let mut third = Box::pin(listener.accept());
        assert!(poll_once(&mut third).is_pending());
        drop(first);
        let (third, _) = third.await?;
        // A stream that is split counts until both halves are gone, in whichever order.
        let mut fourth = Box::pin(listener.accept());
        assert!(poll_once(&mut fourth).is_pending());
        let (read, write) = third.into_split();
        drop(write);
        assert!(poll_once(&mut fourth).is_pending());
        drop(read);
        let (fourth, _) = fourth.await?;
        drop((second, fourth));
        Ok(())
    });
}

#[test]
fn listeners_of_all_workers_share_a_port() {
    run(2, async {
        let options = TcpListener::builder().connections_max(1000);
        let listeners = options.bind_per_worker("127.0.0.1:0")?;
        assert_eq!(listeners.len(), 2);
        let address = listeners[0].local_addr()?;
        assert_eq!(listeners[1].local_addr()?, address);
        let served = Arc::new([const { AtomicUsize::new(0) }; 2]);
        let mut threads = Vec::new();
        for (which, listener) in listeners.into_iter().enumerate() {
            let served = served.clone();
            threads.push(spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    served[which].fetch_add(1, Ordering::Relaxed);
                    stream.write_all(b"x").await.expect("the client reads");
                }
            }));
        }
        for _ in 0..64 {
            let client = TcpStream::connect(address).await?;
            client.read_exact(&mut [0; 1]).await?;
        }
        let served = [0, 1].map(|which| served[which].load(Ordering::Relaxed));
        assert_eq!(served[0] + served[1], 64);
        // The system chooses by a hash of the client's port.
        assert!(served[0] > 0 && served[1] > 0, "{served:?}");
        threads.iter().for_each(|thread| thread.abort());
        Ok(())
    });
}

#[test]
fn connections_of_one_color_run_one_at_a_time() {
    run(2, async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let inside = Arc::new(AtomicUsize::new(0));
        let mut threads = Vec::new();
        for _ in 0..8 {
            threads.push(spawn(async move {
                let client = TcpStream::connect(address).await?;
                for _ in 0..100 {
                    client.write_all(b"x").await?;
                    client.read_exact(&mut [0; 1]).await?;
                }
                io::Result::Ok(())
            }));
            let inside = inside.clone();
            let serve = |stream: TcpStream, _| async move {
                loop {
                    if stream.read(&mut [0; 1]).await? == 0 {
                        return io::Result::Ok(());
                    }
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two of a color");
                    // Long enough for another worker to come in, if it may.
                    (0..10_000).for_each(|_| std::hint::spin_loop());
                    inside.fetch_sub(1, Ordering::SeqCst);
                    stream.write_all(b"x").await?;
                }
            };
            threads.push(listener.accept_in(Color(11), serve).await?);
        }
        for thread in threads {
            thread.await.expect("no panic")?;
        }
        Ok(())
    });
}

#[test]
fn incoming_gives_one_after_the_other() {
    run(1, async {
        let listener = TcpListener::from_std(std::net::TcpListener::bind("127.0.0.1:0")?)?;
        let address = listener.local_addr()?;
        let mut incoming = pin!(listener.incoming());
        for i in 1..=3 {
            let client = TcpStream::connect(address).await?;
            let server = incoming.next().await.expect("it never ends")?;
            assert_eq!(server.peer_addr()?, client.local_addr()?);
            assert_eq!(server.local_addr()?, client.peer_addr()?);
            assert_eq!(listener.stats().accepted, i);
        }
        Ok(())
    });
}

#[test]
fn options_decide_whether_a_port_is_shared() {
    run(1, async {
        let shared = TcpListener::builder().reuse_port(true).backlog(1);
        let first = shared.bind("127.0.0.1:0")?;
        let address = first.local_addr()?;
        let _second = shared.bind(address)?;
        let error = TcpListener::bind(address).expect_err("it does not share");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let text = format!("listen at {address}: Address already in use (os error 98)");
        assert_eq!(error.to_string(), text);
        // Of several addresses, the first that can be had.
        let third = TcpListener::bind([address, "127.0.0.1:0".parse().expect("one")].as_slice())?;
        assert_ne!(third.local_addr()?, address);
        // An IPv6 listener for IPv6 only leaves the port to IPv4, where another test may have it.
        let mut kept = Vec::new();
        let both = (0..10).any(|_| {
            let v6 = TcpListener::builder().v6only(true).ttl(3).bind("[::]:0");
            let v6 = v6.expect("there is a port");
            assert_eq!(v6.ttl().expect("asked"), 3);
            let port = v6.local_addr().expect("it is bound").port();
            kept.push(v6);
            TcpListener::bind((std::net::Ipv4Addr::UNSPECIFIED, port)).is_ok()
        });
        assert!(both);
        Ok(())
    });
}

#[test]
fn several_threads_may_accept() {
    run(2, async {
        let listener = Arc::new(TcpListener::bind("127.0.0.1:0")?);
        let address = listener.local_addr()?;
        let acceptors: Vec<_> = (0..8)
            .map(|_| {
                let listener = listener.clone();
                spawn(async move { listener.accept().await })
            })
            .collect();
        let mut clients = Vec::new();
        for _ in 0..8 {
            clients.push(TcpStream::connect(address).await?);
        }
        for acceptor in acceptors {
            acceptor.await.expect("no panic")?;
        }
        until(|| listener.stats().accepted == 8).await;
        Ok(())
    });
}

#[test]
fn waiting_for_a_connection_takes_no_place() {
    run(2, async {
        let options = TcpListener::builder().connections_max(1);
        let listeners = options.bind_per_worker("127.0.0.1:0")?;
        let address = listeners[0].local_addr()?;
        let threads = listeners.into_iter().map(|listener| {
            spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    stream.write_all(b"x").await.expect("the client reads");
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        for _ in 0..50 {
            let client = TcpStream::connect(address).await?;
            client.set_read_timeout(Some(Duration::from_secs(10)))?;
            client.read_exact(&mut [0; 1]).await?;
        }
        threads.iter().for_each(|thread| thread.abort());
        Ok(())
    });
}
