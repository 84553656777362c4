//! Controllers of what sockets read and write.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tussah::net::OverflowPolicy;
use tussah::stage::control::log::Change;
use tussah::stage::control::{
    Cadence, Controller, Owns, Sample, Settings,
    policy::{Codel, InputRate, OutgoingBound},
};
use tussah::stage::net::{CloseReason, Connection, SocketEvent, SocketOptions, Sockets};
use tussah::stage::{BuildError, Network};

use super::{pair, receiving_stage};
use crate::alone::until;
use crate::{by_hand, run_on_one};

#[test]
fn all_connections_share_the_input_rate_in_turn() {
    let (clock, runtime) = by_hand();
    runtime
        .block_on_spawned(async move {
            let network = Network::new("rate");
            let (stage, mut events) = receiving_stage(&network, 1000);
            let sockets = Sockets::new(&network, "sockets").expect("the name is free");
            sockets
                .control_reads(InputRate::bytes(1000))
                .expect("nothing decides it");
            let small = sockets.with(SocketOptions::default().packet_max(100));
            let peers: Vec<_> = (0..4).map(|_| pair(&small, &stage)).collect();
            let packets = || sockets.stats().read.finished;
            // At first a second's worth.
            for i in 0..10 {
                peers[i % 4].1.write_all(&[1; 100]).await?;
                until("it is read", || packets() > i as u64).await;
                clock.advance(Duration::from_nanos(1));
            }
            for (_, theirs) in &peers {
                theirs.write_all(&[1; 10_000]).await?;
            }
            until("it is delayed", || {
                clock.advance(Duration::from_nanos(1));
                sockets.read_log().iter().len() > 0
            })
            .await;
            let first = packets();
            assert!((10..=12).contains(&first), "{first}");
            while events.try_recv().is_ok() {}
            // From then on at most 1000 bytes in each second, whatever comes, and half a second's
            // worth after a pause.
            let (mut of_each, mut ms) = ([0u64; 4], 0);
            until("they are read", || {
                clock.advance(Duration::from_millis(1));
                ms += 1;
                let so_far = packets() - first;
                assert!(so_far <= ms / 100 + 6, "{so_far} in {ms} ms");
                so_far >= 60
            })
            .await;
            until("the stage has them", || {
                events.len() as u64 >= packets() - first
            })
            .await;
            while let Ok(event) = events.try_recv() {
                let of =
                    |(connection, _): &_| SocketEvent::id(&event) == Connection::id(connection);
                of_each[peers.iter().position(of).expect("it is one of them")] += 1;
            }
            // In turn.
            let (least, most) = (of_each.iter().min(), of_each.iter().max());
            assert!(
                most.zip(least)
                    .is_some_and(|(most, least)| most - least <= 2),
                "{of_each:?}"
            );
            assert_eq!(sockets.stats().read.bytes, packets() * 100);

            // The sockets log the decisions, and the stages show the controller.
            let log = sockets.read_log();
            let first = log.iter().next().expect("it was decided");
            let Change::Pace(0, pace_ns) = first.change else {
                panic!("another setting: {first}");
            };
            assert!((90_000_000..=200_000_000).contains(&pace_ns), "{first}");
            let mut stats = network.stats();
            stats.retain(|stage| &*stage.name == "sockets.read");
            assert_eq!(stats[0].controllers, [("input-rate", Owns::PACE)]);
            io::Result::Ok(())
        })
        .expect("the network works");
}

/// Wants each pace in turn, at every read.
struct Paces(Vec<u64>);

impl Controller for Paces {
    fn name(&self) -> &'static str {
        "paces"
    }
    fn owns(&self) -> Owns {
        Owns::PACE
    }
    fn cadence(&self) -> Cadence {
        Cadence::every_ns(1)
    }
    fn sample(&mut self, sample: &Sample<'_>, _: u64) -> Settings {
        assert_eq!(sample.servlets.target, 1);
        Settings {
            pace_ns: self.0.pop(),
            ..Settings::default()
        }
    }
}

#[test]
fn a_long_wait_ends_when_the_controller_lowers_it() {
    let (clock, runtime) = by_hand();
    runtime
        .block_on_spawned(async move {
            let network = Network::new("rate");
            let (stage, _events) = receiving_stage(&network, 1000);
            let sockets = Sockets::new(&network, "sockets").expect("the name is free");
            let year_ns = 365 * 24 * 3_600 * 1_000_000_000;
            sockets
                .control_reads(Paces(vec![0, year_ns]))
                .expect("nothing decides it");
            clock.advance(Duration::from_nanos(1));
            let (_connection, theirs) = pair(&sockets, &stage);
            theirs.write_all(b"first").await?;
            until("it is read", || sockets.stats().read.finished == 1).await;
            clock.advance(Duration::from_nanos(1));
            theirs.write_all(b"second").await?;
            until("it is read", || {
                clock.advance(Duration::from_millis(10));
                sockets.stats().read.finished == 2
            })
            .await;
            assert_eq!(sockets.stats().read.delayed, 1);
            io::Result::Ok(())
        })
        .expect("the network works");
}

#[test]
fn memory_for_slow_peers_is_divided_among_the_connections() {
    let (clock, runtime) = by_hand();
    runtime
        .block_on_spawned(async move {
            let network = Network::new("slow");
            let (stage, mut events) = receiving_stage(&network, 1000);
            let sockets = Sockets::new(&network, "sockets").expect("the name is free");
            const KIB: usize = 1024;
            let bound = OutgoingBound::each(200 * KIB as u64).of_all(256 * KIB as u64);
            sockets.control_writes(bound).expect("nothing decides it");
            let drops = SocketOptions::default().outgoing_bytes_max(1024 * KIB);
            let drops = sockets.with(drops.when_full(OverflowPolicy::Drop));
            let tick = || clock.advance(Duration::from_millis(100));
            // The bytes fit into the peer's queue; the system takes none, since the thread has no
            // turn.
            let fits = |connection: &Connection| {
                tick();
                let count = || connection.try_send(vec![1; KIB]).is_ok();
                (0..).take_while(|_| count()).count() * KIB
            };
            let (first, _theirs) = pair(&drops, &stage);
            assert_eq!(fits(&first), 200 * KIB);
            let (second, _theirs_too) = pair(&drops, &stage);
            assert_eq!(fits(&second), 128 * KIB);
            assert!(first.try_send("too much").is_err());
            let log = sockets.write_log();
            let changes: Vec<_> = log.iter().map(|decision| decision.change).collect();
            let (each, half) = (200 * KIB as u64, 128 * KIB as u64);
            let expected = [
                Change::Outgoing(u64::MAX, each),
                Change::Outgoing(each, half),
            ];
            assert_eq!(changes, expected);

            // As a rule a peer that is too slow is not served any more.
            let (slow, _theirs) = pair(&sockets, &stage);
            while slow.try_send(vec![1; KIB]).is_ok() {}
            loop {
                let event = events.recv().await.expect("the stage is there");
                if let SocketEvent::Closed(connection, closed) = event {
                    assert!(
                        connection == slow && matches!(closed, CloseReason::Slow(_)),
                        "{closed}"
                    );
                    break;
                }
            }
            assert_eq!(sockets.stats().slow, 1);
            io::Result::Ok(())
        })
        .expect("the network works");
}

#[test]
fn settings_that_sockets_lack_are_not_decided() {
    run_on_one(async {
        let network = Network::new("refused");
        let sockets = Sockets::new(&network, "sockets").expect("the name is free");
        let refused = sockets.control_reads(Codel::default()).expect_err("in vain");
        assert_eq!(
            refused.to_string(),
            "the controller `codel` decides admission, which the stage `sockets.read` does not have: expected a controller of its pace of reads"
        );
        let refused = sockets.control_writes(InputRate::packets(1));
        assert!(matches!(refused, Err(BuildError::NoSuchSetting { .. })));
        sockets.control_writes(OutgoingBound::each(1)).expect("it is free");
        let refused = sockets.control_writes(OutgoingBound::each(2));
        assert!(matches!(refused, Err(BuildError::TwoOwners { .. })));
        let stage = network.stage::<SocketEvent>("stage").controller(InputRate::packets(1));
        let (sender, _receiver) = tussah::sync::mpsc::channel(1);
        let refused = stage.handler(|_| Ok(super::Pass(sender))).err();
        assert!(matches!(refused, Some(BuildError::NoSuchSetting { .. })));
        io::Result::Ok(())
    })
    .expect("the network works");
}

/// Decides nothing, and adds up what it is shown.
struct Adds(Arc<AtomicU64>);

impl Controller for Adds {
    fn name(&self) -> &'static str {
        "adds"
    }
    fn owns(&self) -> Owns {
        Owns::NOTHING
    }
    fn cadence(&self) -> Cadence {
        Cadence {
            finished: 1,
            ..Cadence::default()
        }
    }
    fn sample(&mut self, sample: &Sample<'_>, _: u64) -> Settings {
        self.0.fetch_add(sample.finished, Ordering::Relaxed);
        Settings::default()
    }
}

#[test]
fn the_end_of_a_stream_is_no_packet() {
    run_on_one(async {
        let network = Network::new("adds");
        let (stage, mut events) = receiving_stage(&network, 10);
        let sockets = Sockets::new(&network, "sockets").expect("the name is free");
        let seen = Arc::new(AtomicU64::new(0));
        let adds = Adds(Arc::clone(&seen));
        sockets.control_reads(adds).expect("it decides nothing");
        let (connection, theirs) = pair(&sockets, &stage);
        theirs.write_all(b"one").await?;
        let event = events.recv().await.expect("the stage is there");
        assert!(matches!(event, SocketEvent::Packet(..)), "{event:?}");
        drop((event, theirs));
        let event = events.recv().await.expect("the stage is there");
        assert!(matches!(event, SocketEvent::Ended(_)), "{event:?}");
        assert_eq!(seen.load(Ordering::Relaxed), 1);
        drop(connection);
        io::Result::Ok(())
    })
    .expect("the network works");
}
