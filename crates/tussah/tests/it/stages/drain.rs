//! Whole networks that are drained.

use futures_lite::future::poll_once;
use tussah::stage::{Batch, BuildError, Network, Refusal, Stage};

use super::support::{Door, Noted, by, each};
use crate::runtime;

/// A stage that takes its time, and sends each event on to all of these.
fn passes(network: &Network, name: &str, to: &[&str]) -> Result<Stage<u32>, BuildError> {
    network.stage(name).queue(1000).batch(3).handler(|edges| {
        let to = to.iter().map(|name| edges.named::<u32>(name)?.queue(1));
        let to = to.collect::<Result<Vec<_>, _>>()?;
        Ok(by(move |batch: &mut Batch<u32>| {
            let to = to.clone();
            Box::pin(async move {
                while let Some(n) = batch.next() {
                    tussah::yield_now().await;
                    for next in &to {
                        next.send(n).await.expect("the next stage is open");
                    }
                }
            })
        }))
    })?;
    network.find(name)
}

/// Sends events to the first of some stages, drains all, and gives how many were finished by each.
async fn drained(network: &Network, first: &str) -> Result<Vec<u64>, BuildError> {
    let sender = network.find::<u32>(first)?.sender();
    for n in 0..500 {
        sender.try_send(n).expect("there is room");
    }
    network.drain().await;
    for stats in network.stats() {
        assert_eq!((stats.gate, stats.queued, stats.panicked), ("closed", 0, 0));
    }
    Ok(network.stats().iter().map(|stats| stats.finished).collect())
}

#[test]
fn a_network_is_drained_from_its_beginning() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let chain = Network::new("chain");
        passes(&chain, "last", &[])?;
        passes(&chain, "middle", &["last"])?;
        passes(&chain, "first", &["middle"])?;
        assert_eq!(drained(&chain, "first").await?, [500; 3]);

        let diamond = Network::new("diamond");
        passes(&diamond, "last", &[])?;
        passes(&diamond, "left", &["last"])?;
        passes(&diamond, "right", &["last"])?;
        passes(&diamond, "first", &["left", "right"])?;
        assert_eq!(drained(&diamond, "first").await?, [1000, 500, 500, 500]);
        Ok(())
    })
}

#[test]
fn a_cycle_is_drained_before_its_receivers() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("cycle");
        passes(&network, "last", &[])?;
        let declared = network.stage::<u32>("ask").queue(1000).declare()?;
        let back = declared.stage();
        network.stage("answer").queue(1000).handler(|edges| {
            let back = edges.to(&back).offer(1)?;
            // What comes back when it is closed is lost, as it is told.
            Ok(each(move |n: u32| {
                let _ = back.try_send(n + 1);
            }))
        })?;
        declared.handler(|edges| {
            let answer = edges.named::<u32>("answer")?.queue(1)?;
            let last = edges.named::<u32>("last")?.queue(1)?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let (answer, last) = (answer.clone(), last.clone());
                Box::pin(async move {
                    while let Some(n) = batch.next() {
                        let next = if n % 2 == 0 { &answer } else { &last };
                        next.send(n).await.expect("it is open");
                    }
                })
            }))
        })?;
        let ends = drained(&network, "ask").await?;
        let stats = network.stats();
        let refused = stats[1].refused;
        assert_eq!(ends[2], 250, "half of them are asked for");
        assert_eq!((ends[1], ends[0]), (750 - refused, 500 - refused));
        Ok(())
    })
}

#[test]
fn a_paused_stage_does_not_delay_a_drain() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("paused");
        let last = passes(&network, "last", &[])?;
        passes(&network, "first", &["last"])?;
        last.set_queue_max(1);
        last.pause();
        assert_eq!(drained(&network, "first").await?, [500; 2]);
        Ok(())
    })
}

#[test]
fn a_cancelled_drain_can_be_resumed() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("given up");
        let (door, came) = (Door::new(), Noted::default());
        let note = came.clone();
        let last = network
            .stage("last")
            .handler(|_| Ok(each(move |n: u32| note.add(n))))?;
        let at = door.clone();
        let first = network.stage("first").handler(|edges| {
            let last = edges.to(&last).queue(10)?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let (at, last) = (at.clone(), last.clone());
                Box::pin(async move {
                    at.pass().await;
                    last.forward(batch).await.expect("it is open");
                })
            }))
        })?;
        first.sender().try_send(1).expect("there is room");
        door.until(1).await;
        let mut drain = Box::pin(network.drain());
        assert!(poll_once(&mut drain).await.is_none());
        drop(drain);
        assert!(first.sender().try_send(2).is_err(), "it is closed");
        last.sender().try_send(3).expect("it is open");
        door.let_through(1);
        network.drain().await;
        let mut came = came.take();
        came.sort_unstable();
        assert_eq!(came, [1, 3]);
        Ok(())
    })
}

/// The sender can no longer be admitted, and may never be polled again.
#[test]
fn a_sender_that_does_not_use_its_room_does_not_delay_a_drain() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("unpolled");
        let (door, came) = (Door::new(), Noted::default());
        let (at, note) = (door.clone(), came.clone());
        let stage = network
            .stage("stage")
            .queue(1)
            .batch(1)
            .servlets(1)
            .manual();
        let stage = stage.handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                let (at, note) = (at.clone(), note.clone());
                Box::pin(async move {
                    batch.drain().for_each(|n| note.add(n));
                    at.pass().await;
                })
            }))
        })?;
        let sender = stage.sender();
        sender.try_send(1).expect("there is room");
        door.until(1).await;
        sender.try_send(2).expect("there is room");
        let mut waiting = Box::pin(sender.send(3));
        assert!(poll_once(&mut waiting).await.is_none());
        door.let_through(2);
        came.until(2).await;
        crate::idle().await;
        let stats = stage.stats();
        assert_eq!(
            (stats.queued, stats.queue_len),
            (0, 1),
            "it has been handed room"
        );
        let drained = Noted::default();
        let (note, drains) = (drained.clone(), stage.clone());
        drop(tussah::spawn(async move {
            drains.drain().await;
            note.add(());
        }));
        crate::idle().await;
        assert_eq!(drained.len(), 1);
        assert_eq!(waiting.await.expect_err("it drains").why, Refusal::Closed);
        assert_eq!((came.take(), stage.stats().queue_len), (vec![1, 2], 0));
        Ok(())
    })
}
