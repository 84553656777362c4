//! Runs of a servlet over the events of several keys.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tussah::stage::{Batch, BuildError, Network, Stage};

use super::support::{Door, Noted, adds_up, by, until};
use crate::{idle, runtime};

/// A key, and which of its events it is.
type Keyed = (u8, u32);

/// The key whose events wait at a door.
const SLOW: u8 = 9;

/// Makes a keyed stage with a few servlets, whose events are short until one waits. It notes the
/// events that its handler begins.
async fn stage(
    door: &Door,
    came: &Noted<Keyed>,
) -> Result<Stage<Keyed, impl Sized + use<>>, BuildError> {
    let (door, note) = (door.clone(), came.clone());
    let network = Network::new("keyed");
    let stage = network
        .stage("stage")
        .keyed_by(|event: &Keyed| event.0)
        .batch(2)
        .servlets(3)
        .manual()
        .handler(move |_| {
            Ok(by(move |batch: &mut Batch<Keyed>| {
                let (door, note) = (door.clone(), note.clone());
                Box::pin(async move {
                    while let Some((key, n)) = batch.next() {
                        note.add((key, n));
                        if key == SLOW {
                            door.pass().await;
                        }
                    }
                })
            }))
        })?;
    // After these, the stage knows that its events are short.
    for n in 0..100 {
        stage.sender().send((0, n)).await.expect("it is open");
    }
    stage.settled().await;
    came.take();
    Ok(stage)
}

/// Sends events to a paused stage, which has one servlet, and resumes it.
fn at_once<C>(stage: &Stage<Keyed, C>, events: &[Keyed]) {
    stage.pause();
    for event in events {
        stage.sender().try_send(*event).expect("there is room");
    }
    stage.resume();
}

/// The keys before and behind the one that waits are free, and nothing of them is out of order.
#[test]
fn a_handler_that_waits_keeps_no_other_key_of_its_run() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let (door, came) = (Door::new(), Noted::default());
        let stage = stage(&door, &came).await?;
        at_once(&stage, &[(1, 0), (SLOW, 0), (2, 0), (2, 1), (3, 0), (2, 2)]);
        door.until(1).await;
        for event in [(1, 1), (2, 3), (3, 1), (SLOW, 1)] {
            stage.sender().try_send(event).expect("there is room");
        }
        until(&stage, |stats| stats.queued == 1).await;
        idle().await;
        assert_eq!(stage.stats().keys, 1);
        let before = came.take();
        let of = |key| before.iter().filter(move |event| event.0 == key);
        assert_eq!(of(1).map(|event| event.1).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(of(2).map(|event| event.1).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(of(3).map(|event| event.1).collect::<Vec<_>>(), [0, 1]);
        door.let_through(2);
        stage.settled().await;
        assert_eq!(came.take(), [(SLOW, 1)]);
        assert_eq!(stage.stats().keys, 0);
        adds_up(&stage);
        Ok(())
    })
}

/// Keys that a run gives back come before keys that arrived later.
#[test]
fn keys_that_a_run_gave_back_come_next() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let (door, came) = (Door::new(), Noted::default());
        let stage = stage(&door, &came).await?;
        at_once(&stage, &[(SLOW, 0), (4, 0), (5, 0), (6, 0)]);
        door.until(1).await;
        door.let_through(1);
        stage.settled().await;
        assert_eq!(came.take(), [(SLOW, 0), (4, 0), (5, 0), (6, 0)]);
        adds_up(&stage);
        Ok(())
    })
}

/// One run takes the events of many keys, each of which gets batches of its own.
#[test]
fn a_run_takes_short_events_of_many_keys() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("keyed");
        let stage = network
            .stage("stage")
            .keyed_by(|event: &Keyed| event.0)
            .servlets(1)
            .manual()
            .handler(|_| {
                Ok(by(|batch: &mut Batch<Keyed>| {
                    Box::pin(async move {
                        let keys: Vec<_> = batch.drain().map(|event| event.0).collect();
                        assert!(keys.iter().all(|key| *key == keys[0]), "one key: {keys:?}");
                    })
                }))
            })?;
        stage.sender().send((0, 0)).await.expect("it is open");
        stage.settled().await;
        let events: Vec<_> = (0..3)
            .flat_map(|n| (0..20).map(move |key| (key, n)))
            .collect();
        let before = stage.stats().batches;
        at_once(&stage, &events);
        stage.settled().await;
        let stats = stage.stats();
        assert_eq!((stats.finished, stats.panicked), (61, 0));
        assert_eq!(stats.batches - before, 20);
        adds_up(&stage);
        Ok(())
    })
}

/// A handler that blocks for another key has it handled by another OS thread.
#[test]
fn keys_that_block_run_side_by_side() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("keyed");
        let met = Arc::new((Mutex::new(0), Condvar::new()));
        let here = Arc::clone(&met);
        let stage = network
            .stage("stage")
            .keyed_by(|event: &Keyed| event.0)
            .servlets(3)
            .blocking(move |_| {
                Ok(move |batch: &mut Batch<Keyed>| {
                    let (count, more) = &*here;
                    let events = batch.drain().count();
                    let mut count = count.lock().expect("nobody panics with it");
                    *count += events;
                    more.notify_all();
                    let wait = Duration::from_secs(20);
                    let waited = more.wait_timeout_while(count, wait, |count| *count < 3);
                    let (_count, outcome) = waited.expect("nobody panics with it");
                    assert!(!outcome.timed_out(), "the keys were handled one by one");
                })
            })?;
        at_once(&stage, &[(1, 0), (2, 0), (3, 0)]);
        stage.settled().await;
        let stats = stage.stats();
        assert_eq!((stats.finished, stats.panicked), (3, 0));
        Ok(())
    })
}
