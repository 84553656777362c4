//! Bounded queues of what is to be written.

use std::io;
use std::time::Duration;

use futures_lite::AsyncReadExt;
use tussah::net::{Outgoing, OutgoingOptions, OverflowPolicy, PushError, TcpStream};
use tussah::{Color, OpError, spawn};

use super::{narrow_pair, pair, pattern, run, until};
use crate::by_hand;

#[test]
fn all_that_is_pushed_arrives_in_order() {
    run(2, async {
        let (stream, peer) = narrow_pair().await?;
        let options = OutgoingOptions::default()
            .bytes_max(10_000)
            .buffers_max(100);
        let outgoing: Outgoing<Vec<u8>> = options.start_in(Color(1), stream);
        let sent = pattern(500_000);
        let bytes = sent.clone();
        let pusher = spawn(async move {
            outgoing.push(Vec::new()).await.expect("it is open");
            for chunk in bytes.chunks(777) {
                outgoing.push(chunk.to_vec()).await.expect("it is open");
                let stats = outgoing.stats();
                assert!(stats.bytes <= 10_000 && stats.buffers <= 100, "{stats:?}");
            }
            // Longer than all that is allowed, and so alone.
            outgoing.push(vec![9; 20_000]).await.expect("it is open");
            outgoing.finish().await?;
            let stats = outgoing.stats();
            assert_eq!(
                (stats.bytes, stats.buffers, stats.lost, stats.refused),
                (0, 0, 0, 0)
            );
            assert_eq!(stats.bytes_written, 520_000);
            let error = outgoing.push(vec![1]).await.expect_err("it is finished");
            assert_eq!(
                error.to_string(),
                "the writing has ended: the queue was already finished"
            );
            assert_eq!(
                (closed(&error), error.buffer),
                (Some(io::ErrorKind::BrokenPipe), vec![1])
            );
            io::Result::Ok(())
        });
        let mut received = Vec::new();
        (&peer).read_to_end(&mut received).await?;
        pusher.await.expect("no panic")?;
        assert!(received[..500_000] == sent && received.len() == 520_000);
        Ok(())
    });
}

/// Pushes until one is not taken; says which that was.
fn fill(outgoing: &Outgoing<Vec<u8>>) -> (u64, tussah::net::PushError<Vec<u8>>) {
    for pushed in 0.. {
        if let Err(error) = outgoing.try_push(vec![pushed as u8; 1000]) {
            return (pushed, error);
        }
    }
    unreachable!("it is bounded")
}

#[test]
fn a_full_queue_gives_the_buffer_back() {
    // The test is a thread of the only worker, so that nothing is written before it waits.
    let test = async {
        for when_full in [OverflowPolicy::Wait, OverflowPolicy::Drop] {
            let (stream, peer) = pair().await?;
            let options = OutgoingOptions::default()
                .buffers_max(10)
                .when_full(when_full);
            let outgoing = options.start(stream);
            let (pushed, error) = fill(&outgoing);
            assert_eq!((pushed, closed(&error)), (10, None));
            assert_eq!(error.buffer, [10; 1000]);
            if when_full == OverflowPolicy::Drop {
                assert!(outgoing.push(vec![0]).await.is_err());
            }
            assert!(outgoing.stats().refused > 0);
            // The last handle leaves the rest to be written.
            drop(outgoing);
            let mut received = Vec::new();
            (&peer).read_to_end(&mut received).await?;
            assert_eq!(received.len(), 10_000);
        }
        io::Result::Ok(())
    };
    run(1, async { spawn(test).await.expect("no panic") });
}

#[test]
fn a_connection_to_a_slow_peer_is_aborted() {
    run(1, async {
        let (stream, peer) = narrow_pair().await?;
        let (read, write) = stream.into_split();
        let options = OutgoingOptions::default()
            .bytes_max(50_000)
            .when_full(OverflowPolicy::Close);
        let outgoing = options.start(write);
        let reader = spawn(async move { read.read(&mut [0; 16]).await });
        // The thread takes what fits into the system's buffers, and waits then.
        until(|| {
            while outgoing.stats().bytes < 49_000 && outgoing.try_push(vec![0; 1000]).is_ok() {}
            outgoing.stats().bytes_written > 8_000
        })
        .await;
        let (_, error) = fill(&outgoing);
        assert_eq!(closed(&error), Some(io::ErrorKind::TimedOut));
        let ended = outgoing.finish().await.expect_err("it was broken off");
        assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
        // Whoever reads from the peer is woken, and the peer is told.
        assert!(matches!(reader.await.expect("no panic"), Ok(0) | Err(_)));
        let mut received = Vec::new();
        let error = (&peer).read_to_end(&mut received).await;
        assert_eq!(
            error.expect_err("it was reset").kind(),
            io::ErrorKind::ConnectionReset
        );
        let stats = outgoing.stats();
        assert_eq!((stats.bytes, stats.buffers), (0, 0));
        assert!(stats.lost > 0 && stats.refused == 1, "{stats:?}");
        Ok(())
    });
}

#[test]
fn an_error_of_the_peer_ends_the_queue() {
    run(1, async {
        let (stream, peer) = pair().await?;
        let outgoing: Outgoing<Vec<u8>> = OutgoingOptions::default().start(stream);
        peer.set_linger(Some(std::time::Duration::ZERO))?;
        let address = peer.local_addr()?;
        drop(peer);
        let pushed = loop {
            if let Err(error) = outgoing.push(vec![1; 1000]).await {
                break error.closed.expect("it has ended");
            }
        };
        let finished = outgoing.finish().await.expect_err("it has ended");
        for error in [pushed, finished] {
            let kinds = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
            assert!(kinds.contains(&error.kind()), "{error}");
            let error = OpError::of(&error).expect("the system said so");
            assert_eq!(
                (error.operation(), error.object()),
                ("write to", &*address.to_string())
            );
        }
        Ok(())
    });
}

fn closed<B>(error: &PushError<B>) -> Option<io::ErrorKind> {
    error.closed.as_ref().map(io::Error::kind)
}

/// Pushes so much that the thread waits for its peer.
async fn stuck(options: OutgoingOptions) -> io::Result<(Outgoing<Vec<u8>>, TcpStream)> {
    let (stream, peer) = narrow_pair().await?;
    let outgoing = options.start(stream);
    outgoing.try_push(pattern(200_000)).expect("it fits");
    until(|| outgoing.stats().bytes_written > 8_000).await;
    Ok((outgoing, peer))
}

#[test]
fn aborting_ends_the_writing() {
    run(1, async {
        let (outgoing, peer) = stuck(OutgoingOptions::default()).await?;
        outgoing.try_push(vec![1]).expect("it fits");
        outgoing.break_off();
        let error = outgoing.finish().await.expect_err("it was broken off");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
        let error = outgoing.try_push(vec![1]).expect_err("it has ended");
        assert_eq!(closed(&error), Some(io::ErrorKind::ConnectionAborted));
        // The thread drops what it was writing.
        until(|| outgoing.stats().lost == 2).await;
        let stats = outgoing.stats();
        assert_eq!((stats.bytes, stats.buffers), (0, 0));
        let error = (&peer).read_to_end(&mut Vec::new()).await;
        assert_eq!(
            error.expect_err("it was reset").kind(),
            io::ErrorKind::ConnectionReset
        );
        Ok(())
    });
}

#[test]
fn a_peer_that_does_not_read_delays_the_end_up_to_the_timeout() {
    let (clock, runtime) = by_hand();
    let time = Duration::from_secs(100);
    let test = async move {
        let options = OutgoingOptions::default().finish_max(time);
        for is_dropped in [false, true] {
            let (outgoing, peer) = stuck(options).await?;
            clock.advance(10 * time); // which does not count
            let finish = match is_dropped {
                true => {
                    drop(outgoing);
                    None
                }
                false => Some(spawn(async move { outgoing.finish().await })),
            };
            let broken = spawn(async move {
                // It is told of the end, though it reads nothing.
                until(|| matches!(peer.take_error(), Ok(Some(_)) | Err(_))).await;
            });
            crate::idle().await;
            assert!(!broken.is_finished(), "there is time");
            until(|| {
                clock.advance(time / 10);
                broken.is_finished()
            })
            .await;
            if let Some(finish) = finish {
                let error = finish.await.expect("no panic").expect_err("too late");
                assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            }
        }
        // A peer that reads in time gets all of it.
        let (outgoing, peer) = stuck(options).await?;
        drop(outgoing);
        let mut received = Vec::new();
        (&peer).read_to_end(&mut received).await?;
        assert!(received == pattern(200_000));
        io::Result::Ok(())
    };
    runtime.block_on_spawned(test).expect("the network works");
}
