//! Runs of a servlet over the events of several keys.

use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Wake, Waker};
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

/// Does something when it is woken.
struct Does<F>(F);

impl<F: Fn() + Send + Sync> Wake for Does<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// A call that waits for a key, and the waker that it is polled with.
type Calling = (Pin<Box<dyn Future<Output = ()> + Send>>, Waker);

/// The handler sends an event for key 1, and then waits with another key. The receiver is busy, so
/// that the event is collected.
#[test]
fn a_key_is_free_after_what_was_sent_for_it_has_arrived() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("keyed");
        let (door, seen) = (Door::new(), Noted::default());
        let at = door.clone();
        let last = network.stage("last").servlets(1).manual();
        let last = last.handler(move |_| {
            Ok(by(move |batch: &mut Batch<Keyed>| {
                let at = at.clone();
                Box::pin(async move {
                    batch.drain().for_each(drop);
                    at.pass().await;
                })
            }))
        })?;
        last.sender().try_send((0, 0)).expect("there is room");
        door.until(1).await;
        let calling: Arc<Mutex<Option<Calling>>> = Arc::default();
        let (at, call) = (door.clone(), Arc::clone(&calling));
        let stage = network
            .stage("stage")
            .keyed_by(|event: &Keyed| event.0)
            .servlets(3)
            .manual()
            .handler(|edges| {
                let to = edges.to(&last).queue(10)?;
                Ok(by(move |batch: &mut Batch<Keyed>| {
                    let (at, call, to) = (at.clone(), Arc::clone(&call), to.clone());
                    Box::pin(async move {
                        while let Some(event) = batch.next() {
                            if event.0 == SLOW {
                                at.pass().await;
                            }
                            if event.0 == 1 {
                                to.try_send(event).expect("there is room");
                                let mut call = call.lock().expect("nobody panics with it");
                                let (call, waker) = call.as_mut().expect("it is set");
                                let polled = call.as_mut().poll(&mut Context::from_waker(waker));
                                assert!(polled.is_pending(), "its key is busy");
                            }
                        }
                    })
                }))
            })?;
        for n in 0..100 {
            stage.sender().send((0, n)).await.expect("it is open");
        }
        stage.settled().await;
        let (mut call, found) = (None, network.find::<Keyed>("stage")?);
        let caller = network.stage::<Keyed>("caller").handler(|edges| {
            call = Some(edges.to(&found).call()?);
            Ok(by(|batch: &mut Batch<Keyed>| {
                batch.drain().for_each(drop);
                Box::pin(async {})
            }))
        })?;
        let call = call.expect("it was made");
        let called = async move { _ = call.send((1, 1)).await };
        let (look, note) = (last.clone(), seen.clone());
        let woken = Does(move || note.add(look.stats().queued));
        *calling.lock().expect("nobody panics with it") =
            Some((Box::pin(called), Waker::from(Arc::new(woken))));
        at_once(&stage, &[(1, 0), (SLOW, 0)]);
        seen.until(1).await;
        assert_eq!(seen.take()[0], 1);
        calling.lock().expect("nobody panics with it").take();
        door.let_through(10);
        network.drain().await;
        drop(caller);
        adds_up(&last);
        Ok(())
    })
}
