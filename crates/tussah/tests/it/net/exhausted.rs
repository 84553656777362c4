//! Accepting when the process has no descriptor left.

use std::io::{self, Write};
use std::time::Duration;

use rustix::process::{Resource, setrlimit};
use tussah::net::{TcpListener, TcpStream};
use tussah::{OpError, spawn};

use super::{alone, until};
use crate::alone::exhaust;
use crate::by_hand;

#[test]
fn a_server_without_descriptors_goes_on() {
    let name = "net::exhausted::a_server_without_descriptors_goes_on";
    alone(name, || {
        // Time is moved by the test, so that each try is seen.
        let (clock, runtime) = by_hand();
        let test = async {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let address = listener.local_addr()?;
            let (client, server) = super::pair().await?;
            let echo = spawn(async move {
                let mut buffer = [0; 16];
                while let Ok(len @ 1..) = server.read(&mut buffer).await {
                    server
                        .write_all(&buffer[..len])
                        .await
                        .expect("the client reads");
                }
            });
            let waiting: Vec<_> = (0..3)
                .map(|_| std::net::TcpStream::connect(address).expect("it listens"))
                .collect();
            let (spare, _other) = super::pair().await?;

            let (limit, free) = exhaust();
            let listener = std::sync::Arc::new(listener);
            let acceptor = listener.clone();
            let accepted = spawn(async move {
                let mut all = Vec::new();
                for _ in 0..3 {
                    all.push(acceptor.accept().await?.0);
                }
                io::Result::Ok(all)
            });
            until(|| listener.stats().pauses == 1).await;
            // Connected clients are served, and nothing tries again without a reason.
            for _ in 0..100 {
                client.write_all(b"ping").await?;
                client.read_exact(&mut [0; 4]).await?;
            }
            assert_eq!(listener.stats().attempts, 1);
            // Each pause is twice as long as the one before, up to a second.
            let pauses = (0..10).map(|n| 1 << n).chain([1000, 1000]);
            for (pause_ms, tries) in pauses.zip(1..) {
                for ms in [pause_ms - 1, 1] {
                    assert_eq!(listener.stats().attempts, tries);
                    clock.advance(Duration::from_millis(ms));
                    client.write_all(b"ping").await?;
                    client.read_exact(&mut [0; 4]).await?;
                }
                until(|| listener.stats().attempts > tries).await;
                // The pause has begun.
                until(|| listener.stats().pauses > tries).await;
                // It is counted before it looks at the clock: other threads have their turn.
                client.write_all(b"ping").await?;
                client.read_exact(&mut [0; 4]).await?;
            }
            // A stream that is closed gives its descriptor to the first who waits, at once.
            assert_eq!(listener.stats().accepted, 0);
            drop(spare);
            until(|| listener.stats().accepted == 1).await;
            // The others come when there is room again, whoever has made it.
            drop(free);
            setrlimit(Resource::Nofile, limit).expect("it was so before");
            until(|| {
                clock.advance(Duration::from_millis(1));
                listener.stats().accepted == 3
            })
            .await;
            assert_eq!(accepted.await.expect("no panic")?.len(), 3);
            drop((client, waiting));
            echo.await.expect("no panic");
            io::Result::Ok(())
        };
        runtime.block_on(test).expect("the network works");
    });
}

#[test]
fn accepting_without_descriptors_fails_if_asked_to() {
    let name = "net::exhausted::accepting_without_descriptors_fails_if_asked_to";
    alone(name, || {
        super::run(1, async {
            let options = TcpListener::builder().exhaustion_fails(true);
            let listener = options.bind("127.0.0.1:0")?;
            let address = listener.local_addr()?;
            let _waiting = TcpStream::connect(address).await?;
            let (limit, free) = exhaust();
            let error = listener.accept().await.expect_err("there is no descriptor");
            let text = format!("accept at {address}: Too many open files (os error 24)");
            assert_eq!(error.to_string(), text);
            assert_eq!(
                OpError::of(&error).and_then(OpError::raw_os_error),
                Some(24)
            );
            let error = TcpStream::connect(address)
                .await
                .expect_err("there is none");
            let text = format!("connect to {address}: Too many open files (os error 24)");
            assert_eq!(error.to_string(), text);
            drop(free);
            setrlimit(Resource::Nofile, limit)?;
            listener.accept().await?;
            Ok(())
        });
    });
}

/// Whoever waits for the first time in a process without descriptors can do so.
#[test]
fn waiting_takes_no_descriptor() {
    alone("net::exhausted::waiting_takes_no_descriptor", || {
        super::run(1, async {
            let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
            let mut theirs = std::net::TcpStream::connect(listener.local_addr()?)?;
            let ours = TcpStream::from_std(listener.accept()?.0)?;
            let (limit, free) = exhaust();
            let mut byte = [0];
            let mut read = ours.read(&mut byte);
            assert!(super::poll_once(&mut read).is_pending(), "nothing is there");
            theirs.write_all(b"x")?;
            assert_eq!(read.await?, 1);
            drop(free);
            Ok(setrlimit(Resource::Nofile, limit)?)
        });
    });
}
