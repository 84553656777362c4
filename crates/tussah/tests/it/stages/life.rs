//! Stages while they run: paused, drained, retuned, destroyed, and forgotten.

use std::future::Future;
use std::sync::{Arc, Weak};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use futures_lite::future::poll_once;
use tussah::stage::control::Settings;
use tussah::stage::{Batch, BuildError, Network, Refusal, Sender, Stage};

use super::support::{Door, Noted, adds_up, by, each};
use crate::{idle, runtime};

#[test]
fn a_paused_stage_queues_and_begins_nothing() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("life");
        let came = Noted::default();
        let note = came.clone();
        let stage = network
            .stage("stage")
            .handler(move |_| Ok(each(move |n: u32| note.add(n))))?;
        assert_eq!(stage.stats().gate, "open");
        stage.pause();
        assert_eq!(stage.stats().gate, "paused");
        stage.sender().try_send(1).expect("there is room");
        idle().await;
        assert_eq!((came.len(), stage.stats().queued), (0, 1));
        stage.resume();
        stage.settled().await;
        assert_eq!(came.take(), [1]);
        stage.drain().await;
        // A drained stage stays so.
        stage.resume();
        assert_eq!(stage.stats().gate, "draining");
        assert_eq!(
            stage.sender().try_send(2).expect_err("closed").why,
            Refusal::Closed
        );
        Ok(())
    })
}

#[test]
fn draining_goes_on_with_a_paused_stage_and_waits_for_batches() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("life");
        let door = Door::new();
        let at = door.clone();
        let stage = network.stage("stage").servlets(1).handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                let at = at.clone();
                Box::pin(async move {
                    batch.drain().for_each(drop);
                    at.pass().await;
                })
            }))
        })?;
        stage.pause();
        stage.sender().try_send(1).expect("there is room");
        let mut drained = Box::pin(stage.drain());
        assert!(poll_once(&mut drained).await.is_none());
        door.until(1).await;
        assert!(poll_once(&mut drained).await.is_none());
        door.let_through(1);
        drained.await;
        assert_eq!(stage.stats().finished, 1);
        Ok(())
    })
}

#[test]
fn a_stage_without_a_handler_is_paused_drained_and_destroyed() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("life");
        let came = Noted::default();
        let declared = network.stage::<u32>("paused").declare()?;
        let stage = declared.stage();
        assert_eq!(stage.stats().gate, "new");
        stage.sender().try_send(1).expect("there is room");
        stage.pause();
        let note = came.clone();
        declared.handler(move |_| Ok(each(move |n| note.add(n))))?;
        idle().await;
        assert_eq!((came.len(), stage.stats().gate), (0, "paused"));
        stage.resume();
        stage.settled().await;
        assert_eq!(came.take(), [1]);

        let declared = network.stage::<u32>("drained").declare()?;
        let stage = declared.stage();
        stage.sender().try_send(2).expect("there is room");
        let mut drained = Box::pin(stage.drain());
        assert!(poll_once(&mut drained).await.is_none());
        let note = came.clone();
        declared.handler(move |_| Ok(each(move |n| note.add(n))))?;
        drained.await;
        assert_eq!(came.take(), [2]);

        let declared = network.stage::<u32>("destroyed").declare()?;
        let stage = declared.stage();
        stage.sender().try_send(3).expect("there is room");
        assert_eq!(stage.destroy(Duration::ZERO).await, 1);
        let made = declared.handler(|_| Ok(each(|_| ())));
        let closed = BuildError::Closed {
            stage: "destroyed".into(),
        };
        assert_eq!(made.err(), Some(closed));
        Ok(())
    })
}

#[test]
fn a_destroyed_stage_frees_its_name_and_fails_its_senders() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("life");
        let door = Door::new();
        let at = door.clone();
        let stage = network
            .stage("stage")
            .queue(1)
            .servlets(1)
            .handler(move |_| {
                Ok(by(move |batch: &mut Batch<u32>| {
                    let at = at.clone();
                    Box::pin(async move {
                        batch.next();
                        at.pass().await;
                    })
                }))
            })?;
        let sender = stage.sender();
        sender.try_send(1).expect("there is room");
        door.until(1).await;
        sender.try_send(2).expect("there is room");
        let waiting = sender.clone();
        let waiting = tussah::spawn(async move { waiting.send(3).await });
        idle().await;
        assert_eq!(stage.destroy(Duration::ZERO).await, 1);
        let error = waiting.await.expect("no panic").expect_err("closed");
        assert_eq!((error.why, *error.event), (Refusal::Closed, 3));
        assert_eq!(sender.try_send(4).expect_err("closed").why, Refusal::Closed);
        assert!(network.names().is_empty());
        // Its last batch ends by itself, beside another stage of the name.
        network.stage("stage").handler(|_| Ok(each(|_: u8| ())))?;
        door.let_through(1);
        idle().await;
        Ok(())
    })
}

/// A waker that wakes nobody.
struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn nothing_is_kept_of_a_cancelled_wait_for_a_stage() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("life");
        let stage = network.stage("stage").handler(|_| Ok(each(|_: u32| ())))?;
        stage.pause();
        stage.sender().try_send(1).expect("there is room");
        let nobody = Arc::new(Nobody);
        let waker = Waker::from(Arc::clone(&nobody));
        let mut settled = Box::pin(stage.settled());
        let polled = settled.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        drop((settled, waker));
        assert_eq!(Arc::strong_count(&nobody), 1);
        Ok(())
    })
}

#[test]
fn destroying_drains_for_a_time() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("life");
        let came = Noted::default();
        let note = came.clone();
        let stage = network
            .stage("stage")
            .handler(move |_| Ok(each(move |n: u32| note.add(n))))?;
        stage.pause();
        for n in 0..5 {
            stage.sender().try_send(n).expect("there is room");
        }
        assert_eq!(stage.destroy(Duration::from_secs(3600)).await, 0);
        assert_eq!(came.len(), 5);
        Ok(())
    })
}

/// Two stages that send to each other, and what lives as long as their handlers.
type Cycle = (Stage<u32>, Stage<u32>, Weak<()>);

/// Two stages that refer to each other, and what tells whether their handlers still exist.
fn cycle(network: &Network) -> Result<Cycle, BuildError> {
    let alive = Arc::new(());
    let weak = Arc::downgrade(&alive);
    let there = network.stage::<u32>("there").declare()?;
    let to = there.stage();
    let held = Arc::clone(&alive);
    network.stage::<u32>("here").serial(move |edges| {
        let (next, own) = (
            edges.to(&to).offer(1)?,
            edges.named::<u32>("here")?.offer(1)?,
        );
        let held = Arc::clone(&held);
        Ok(each(move |n| {
            let _ = (&held, &own);
            next.send_or(n, |_, _| ());
        }))
    })?;
    let here = network.find::<u32>("here")?;
    let to = here.clone();
    there.handler(move |edges| {
        let back = edges.to(&to).offer(1)?;
        Ok(each(move |_| {
            let _ = (&alive, &back);
        }))
    })?;
    Ok((here, network.find("there")?, weak))
}

#[test]
fn destroyed_stages_that_refer_to_each_other_are_freed() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("life");
        let (here, there, alive) = cycle(&network)?;
        for n in 0..10 {
            here.sender().try_send(n).expect("there is room");
        }
        here.settled().await;
        there.settled().await;
        assert!(alive.upgrade().is_some());
        here.destroy(Duration::ZERO).await;
        there.destroy(Duration::ZERO).await;
        // Parked servlets have been called, and end.
        while alive.upgrade().is_some() {
            tussah::yield_now().await;
        }
        Ok(())
    })
}

#[test]
fn a_handler_that_was_swapped_out_is_freed() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("life");
        let alive = Arc::new(());
        let weak = Arc::downgrade(&alive);
        let stage = network.stage::<u32>("stage").handler(move |_| {
            Ok(each(move |_| {
                let _ = &alive;
            }))
        })?;
        stage.sender().try_send(1).expect("there is room");
        stage.settled().await;
        // The stage as it was made keeps its handler for calls.
        drop(stage);
        let stage: Stage<u32> = network.find("stage")?;
        stage.swap(|_| Ok(each(|_| ()))).await?;
        while weak.upgrade().is_some() {
            tussah::yield_now().await;
        }
        Ok(())
    })
}

#[test]
fn settings_are_kept_within_the_stages_bounds() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("life");
        let sizes = Noted::default();
        let note = sizes.clone();
        let stage = network
            .stage("stage")
            .queue(50)
            .batch(10)
            .servlets(4)
            .manual()
            .handler(move |_| {
                Ok(by(move |batch: &mut Batch<u32>| {
                    let note = note.clone();
                    Box::pin(async move {
                        note.add(batch.len());
                        batch.drain().for_each(drop);
                    })
                }))
            })?;
        let set = |batch, threshold, servlets| {
            stage.retune(Settings {
                batch: Some(batch),
                threshold: Some(threshold),
                servlets: Some(servlets),
                ..Settings::default()
            });
            let stats = stage.stats();
            (stats.batch_max, stats.threshold, stats.servlets.target)
        };
        assert_eq!(set(1000, 1000, 1000), (10, 50, 4));
        assert_eq!(set(0, 0, 0), (1, 1, 1));
        assert_eq!(set(3, 7, 2), (3, 7, 2));
        stage.pause();
        let sender: Sender<u32> = stage.sender();
        let taken = (0..20).filter(|n| sender.try_send(*n).is_ok()).count();
        assert_eq!(taken, 7);
        stage.resume();
        stage.drain().await;
        let sizes = sizes.take();
        assert!(sizes.iter().all(|size| *size <= 3), "{sizes:?}");
        adds_up(&stage);
        Ok(())
    })
}

#[test]
fn a_stage_is_destroyed_from_outside_of_a_runtime() -> Result<(), BuildError> {
    let runtime = runtime(1);
    let network = Network::on(runtime.handle(), "outside");
    let door = Door::new();
    let pass = door.clone();
    let stage = network.stage("stage").servlets(1).batch(1).manual();
    let stage = stage.handler(move |_| {
        Ok(by(move |batch: &mut Batch<u32>| {
            let pass = pass.clone();
            Box::pin(async move {
                batch.next();
                pass.pass().await;
            })
        }))
    })?;
    for n in 0..2 {
        stage.sender().try_send(n).expect("there is room");
    }
    futures_lite::future::block_on(async {
        door.until(1).await;
        let millisecond = Duration::from_millis(1);
        assert_eq!(stage.clone().destroy(millisecond).await, 1);
        door.let_through(1);
        let ended = network.stage("stage").handler(|_| Ok(each(|_: u32| ())))?;
        assert_eq!(ended.destroy(Duration::from_secs(3600)).await, 0);
        Ok(())
    })
}
