//! Stages whose handlers block.

use std::collections::HashSet;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use tussah::stage::control::Settings;
use tussah::stage::{Batch, BuildError, Event, Network, Reason};
use tussah::{BlockingPool, PoolPolicy};

use super::support::{Noted, adds_up, each, until};
use crate::{by_hand, idle, runtime};

#[test]
fn a_handler_that_blocks_has_os_threads_of_its_own() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("blocking");
        let (came, threads) = (Noted::default(), Noted::default());
        let (note, thread) = (came.clone(), threads.clone());
        // Two that wait for each other: one worker alone could not do it.
        let both = Arc::new(Barrier::new(2));
        let stage = network.stage("stage").batch(1).servlets(2).manual();
        let stage = stage.blocking(move |_| {
            Ok(move |batch: &mut Batch<u32>| {
                let n = batch.next().expect("an event");
                both.wait();
                thread.add(std::thread::current().id());
                note.add(n);
            })
        })?;
        for n in 0..20 {
            stage.sender().send(n).await.expect("it is open");
        }
        stage.drain().await;
        let mut came = came.take();
        came.sort_unstable();
        assert_eq!(came, (0..20).collect::<Vec<_>>());
        let threads: HashSet<_> = threads.take().into_iter().collect();
        assert!(!threads.contains(&std::thread::current().id()));
        adds_up(&stage);
        assert!(stage.stats().servlets.busy <= 2);
        Ok(())
    })
}

#[test]
fn further_events_begin_while_all_os_threads_block() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on_spawned(async move {
        let network = Network::new("blocking");
        let target = Duration::from_secs(1);
        let stages = [
            network.stage("without a target"),
            network.stage("with one").target(target),
        ];
        for stage in stages {
            // Four events that wait for each other.
            let all = Barrier::new(4);
            let few = Settings {
                servlets: Some(1),
                ..Settings::default()
            };
            let stage = stage.batch(1).settings(few).blocking(move |_| {
                Ok(move |batch: &mut Batch<u32>| {
                    batch.next();
                    all.wait();
                })
            })?;
            for n in 0..4 {
                stage.sender().try_send(n).expect("there is capacity");
            }
            for busy in 1..4 {
                until(&stage, |stats| stats.servlets.busy == busy).await;
                idle().await;
                clock.advance(Duration::from_millis(5));
            }
            stage.drain().await;
            adds_up(&stage);
            assert_eq!(stage.stats().finished, 4);
        }
        Ok(())
    })
}

#[test]
fn stages_share_a_pool_that_is_too_small_and_go_on() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("blocking");
        let policy = PoolPolicy {
            threads_max: 1,
            queue_max: 1,
            ..PoolPolicy::default()
        };
        let pool = Arc::new(BlockingPool::new("small", policy));
        let came = Noted::default();
        let mut stages = Vec::new();
        for name in ["one", "two", "three"] {
            let note = came.clone();
            stages.push(network.stage(name).batch(2).blocking_on(&pool, move |_| {
                Ok(move |batch: &mut Batch<u32>| {
                    for n in batch.drain() {
                        std::thread::yield_now();
                        note.add((name, n));
                    }
                })
            })?);
        }
        for n in 0..50 {
            for stage in &stages {
                stage.sender().send(n).await.expect("it is open");
            }
        }
        for stage in &stages {
            stage.drain().await;
            adds_up(stage);
        }
        assert_eq!(came.len(), 150);
        Ok(())
    })
}

/// Two stages share one OS thread. The first stage always has events.
#[test]
fn a_stage_with_many_events_leaves_the_pool_to_another_stage() -> Result<(), BuildError> {
    const MANY: usize = 1000;
    let policy = PoolPolicy {
        threads_max: 1,
        ..PoolPolicy::default()
    };
    let pool = Arc::new(BlockingPool::new("shared", policy));
    runtime(1).block_on(async {
        let network = Network::new("blocking");
        let (order, all_sent) = (Noted::default(), Arc::new(Barrier::new(2)));
        let stage = |name: &'static str| {
            let (order, all_sent) = (order.clone(), Arc::clone(&all_sent));
            network
                .stage(name)
                .batch(1)
                .servlets(8)
                .blocking_on(&pool, move |_| {
                    Ok(move |batch: &mut Batch<bool>| {
                        if batch.next() == Some(true) {
                            all_sent.wait();
                        }
                        order.add(name);
                    })
                })
        };
        let (busy, calm) = (stage("busy")?, stage("calm")?);
        assert_eq!(busy.stats().servlets.max, 1);
        for n in 0..MANY {
            let sent = busy.sender().try_send(n == 0);
            sent.expect("there is capacity");
        }
        calm.sender().try_send(false).expect("there is capacity");
        until(&calm, |stats| stats.servlets.busy == 1).await;
        all_sent.wait();
        for stage in [&busy, &calm] {
            stage.drain().await;
            adds_up(stage);
        }
        let order = order.take();
        let place = order.iter().position(|name| *name == "calm");
        assert!(place < Some(10), "{place:?} of {}", order.len());
        Ok(())
    })
}

#[test]
fn a_handler_that_blocks_sends_and_panics_as_others_do() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("blocking");
        let (came, told) = (Noted::default(), Noted::default());
        let note = came.clone();
        let last = network
            .stage("last")
            .handler(move |_| Ok(each(move |n: u32| note.add(n))))?;
        let next = last.clone();
        let stage = network.stage("stage").servlets(1).blocking(move |edges| {
            let next = edges.to(&next).queue(1)?;
            Ok(move |batch: &mut Batch<u32>| {
                while let Some(n) = batch.next() {
                    assert_ne!(n, 3, "expected: three");
                    next.try_send(n).expect("there is room");
                }
            })
        })?;
        stage.pause();
        for n in 0..6 {
            let told = told.clone();
            let event = Event::new(n).on_drop(move |why| told.add((n, why)));
            stage.sender().try_send(event).expect("there is room");
        }
        stage.resume();
        stage.drain().await;
        last.drain().await;
        assert_eq!(came.take(), [0, 1, 2, 4, 5]);
        assert_eq!(told.take(), [0, 1, 2, 3].map(|n| (n, Reason::Panicked)));
        assert_eq!((stage.stats().panicked, stage.stats().lost), (1, 4));
        Ok(())
    })
}

#[test]
fn a_pool_that_was_shut_down_closes_the_stage() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("blocking");
        let pool = Arc::new(BlockingPool::new("gone", PoolPolicy::default()));
        let told = Noted::default();
        let tell = told.clone();
        let stage = network
            .stage("stage")
            .on_drop(move |n: u32, why| tell.add((n, why)))
            .blocking_on(&pool, |_| {
                Ok(|_: &mut Batch<u32>| unreachable!("there is no OS thread"))
            })?;
        let _ = pool.shutdown(std::time::Instant::now());
        stage.sender().try_send(1).expect("it is not known yet");
        assert_eq!(told.take(), [(1, Reason::ShutDown)]);
        assert!(stage.sender().try_send(2).is_err());
        assert_eq!(stage.stats().gate, "closed");
        stage.destroy(Duration::ZERO).await;
        Ok(())
    })
}

#[test]
fn a_runtime_that_ends_reports_events_that_wait_for_an_os_thread() -> Result<(), BuildError> {
    let runtime = runtime(1);
    let network = Network::on(runtime.handle(), "blocking");
    let told = Noted::default();
    let tell = told.clone();
    let (begun, is_begun) = std::sync::mpsc::channel();
    let (end, ends) = std::sync::mpsc::channel::<()>();
    let ends = parking_lot::Mutex::new(ends);
    let stage = network
        .stage("stage")
        .batch(1)
        .servlets(1)
        .on_drop(move |n: u32, why| tell.add((n, why)))
        .blocking(move |_| {
            Ok(move |batch: &mut Batch<u32>| {
                batch.next();
                begun.send(()).expect("the test listens");
                let _ = ends.lock().recv();
            })
        })?;
    stage.sender().try_send(0).expect("there is room");
    is_begun.recv().expect("it begins");
    stage.sender().try_send(1).expect("there is room");
    let ending = std::thread::spawn(move || drop(runtime));
    // One batch more is begun by the OS thread that is at work.
    end.send(()).expect("it listens");
    let _ = is_begun.recv();
    drop(end);
    ending.join().expect("no panic");
    while stage.stats().in_service + stage.stats().queued > 0 {
        std::thread::yield_now();
    }
    let told = told.take();
    let finished = stage.stats().finished;
    assert_eq!(told.len() as u64 + finished, 2, "{told:?}");
    Ok(())
}
