//! Operations of a handler on its batch.

use std::sync::Arc;
use std::time::Duration;

use tussah::stage::control::{Order, Settings};
use tussah::stage::{Batch, BuildError, Event, Network, Reason, Restarts};

use super::support::{Door, Noted, adds_up, by, one};
use crate::{by_hand, idle, runtime};

#[test]
fn events_that_a_handler_leaves_come_first_again() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("batches");
        let came = Noted::default();
        let note = came.clone();
        let stage = network.stage("stage").batch(4).manual().serial(move |_| {
            let note = note.clone();
            Ok(one(move |batch: &mut Batch<u32>| {
                let note = note.clone();
                Box::pin(async move {
                    let first = batch.next().expect("no batch is empty");
                    note.add((first, batch.len()));
                })
            }))
        })?;
        stage.pause();
        for n in 0..9 {
            stage.sender().try_send(n).expect("there is room");
        }
        stage.resume();
        stage.drain().await;
        let came = came.take();
        let order: Vec<_> = came.iter().map(|(n, _)| *n).collect();
        assert_eq!(order, (0..9).collect::<Vec<_>>());
        assert_eq!(came[0].1, 3, "the first batch has four");
        adds_up(&stage);
        assert_eq!(stage.stats().finished, 9);
        Ok(())
    })
}

#[test]
fn left_events_of_a_lifo_queue_come_first_again() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("batches");
        let came = Noted::default();
        let note = came.clone();
        let newest_first = Settings {
            order: Some(Order::Lifo),
            ..Settings::default()
        };
        let stage = network.stage("stage").batch(3).settings(newest_first);
        let stage = stage.manual().serial(move |_| {
            let note = note.clone();
            Ok(one(move |batch: &mut Batch<u32>| {
                note.add(batch.next().expect("no batch is empty"));
                Box::pin(async {})
            }))
        })?;
        stage.pause();
        for n in 1..=6 {
            stage.sender().try_send(n).expect("there is room");
        }
        stage.resume();
        stage.drain().await;
        assert_eq!(came.take(), [6, 5, 4, 3, 2, 1]);
        Ok(())
    })
}

#[test]
fn a_batch_is_reordered_filtered_and_summed_up() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("batches");
        let came = Noted::default();
        let note = came.clone();
        let stage = network
            .stage("stage")
            .batch(10)
            .servlets(1)
            .handler(move |_| {
                Ok(by(move |batch: &mut Batch<u32>| {
                    let note = note.clone();
                    Box::pin(async move {
                        batch.retain(|n| **n % 2 == 0);
                        batch.events_mut().sort_by_key(|n| std::cmp::Reverse(**n));
                        let largest = batch.next();
                        let rest: u32 = batch.drain().sum();
                        note.add((largest, rest));
                    })
                }))
            })?;
        stage.pause();
        for n in 0..10 {
            stage.sender().try_send(n).expect("there is room");
        }
        stage.resume();
        stage.drain().await;
        assert_eq!(came.take(), [(Some(8), 12)]);
        let stats = stage.stats();
        assert_eq!((stats.finished, stats.batches), (10, 1));
        assert_eq!(stats.response.count, 10);
        Ok(())
    })
}

#[test]
fn a_filter_that_panics_loses_nothing() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("batches");
        let came = Noted::default();
        let note = came.clone();
        let stage = network.stage("stage").batch(10).handler(move |_| {
            let first = std::sync::atomic::AtomicBool::new(true);
            Ok(by(move |batch: &mut Batch<u32>| {
                let first = first.swap(false, std::sync::atomic::Ordering::Relaxed);
                let note = note.clone();
                Box::pin(async move {
                    batch.retain(|n| {
                        assert!(
                            !first || **n < 5,
                            "expected: five is too much for the first time"
                        );
                        true
                    });
                    batch.drain().for_each(|n| note.add(n));
                })
            }))
        })?;
        stage.pause();
        for n in 0..10 {
            stage.sender().try_send(n).expect("there is room");
        }
        stage.resume();
        stage.drain().await;
        assert_eq!(came.take(), (0..10).collect::<Vec<_>>());
        adds_up(&stage);
        Ok(())
    })
}

/// Panics when the second is dropped.
struct Fragile(u32);

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(self.0 != 2, "expected: the second is dropped");
    }
}

#[test]
fn an_event_that_panics_as_it_is_filtered_out_takes_none_along() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("batches");
        let came = Noted::default();
        let note = came.clone();
        let stage = network.stage("stage").manual().handler(move |_| {
            Ok(by(move |batch: &mut Batch<Fragile>| {
                let note = note.clone();
                Box::pin(async move {
                    batch.retain(|event| event.0 != 2);
                    batch.drain().for_each(|event| note.add(event.0));
                })
            }))
        })?;
        stage.pause();
        for n in 1..=4 {
            stage.sender().try_send(Fragile(n)).expect("there is room");
        }
        stage.resume();
        stage.drain().await;
        assert_eq!(came.take(), [1, 3, 4]);
        adds_up(&stage);
        Ok(())
    })
}

#[test]
fn a_batch_that_is_taken_away_is_finished() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("batches");
        let stage = network.stage("stage").servlets(1).handler(|_| {
            Ok(by(|batch: &mut Batch<u32>| {
                let mut mine = std::mem::take(batch);
                Box::pin(async move { mine.drain().for_each(drop) })
            }))
        })?;
        // The one before has traces of its own.
        let first = network.stage("first").servlets(1).handler(|edges| {
            let next = edges.to(&stage).call()?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let next = next.clone();
                Box::pin(async move {
                    batch.next();
                    next.call(batch).await.expect("it is open");
                })
            }))
        })?;
        for stage in [network.find::<u32>("first")?, network.find("stage")?] {
            stage.pause();
            for n in 1..=6_u32 {
                let event = Event::new(n).traced(u64::from(n));
                stage.sender().try_send(event).expect("there is room");
            }
            stage.resume();
        }
        first.drain().await;
        stage.drain().await;
        for stage in [network.find::<u32>("first")?, network.find("stage")?] {
            let stats = stage.stats();
            assert_eq!((stats.finished, stats.batches), (6, 1), "{stats:?}");
            adds_up(&stage);
        }
        Ok(())
    })
}

#[test]
fn a_handler_may_leave_other_events_than_it_was_given() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("batches");
        let came = Noted::default();
        let note = came.clone();
        // One event of a hundred becomes a hundred events of one.
        let stage = network.stage("stage").handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                let note = note.clone();
                Box::pin(async move {
                    match batch.next() {
                        Some(100) => *batch = Batch::of(vec![1u32; 100]),
                        Some(n) => note.add(n),
                        None => {}
                    }
                })
            }))
        })?;
        stage.sender().try_send(100).expect("there is room");
        stage.settled().await;
        assert_eq!(came.take(), vec![1; 100]);
        assert_eq!(stage.stats().queued, 0);
        assert_eq!(stage.stats().in_service, 0);
        Ok(())
    })
}

#[test]
fn no_more_events_fail_than_were_taken() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("batches");
        let stage = network.stage("stage").batch(1).handler(|_| {
            Ok(by(|batch: &mut Batch<u32>| {
                Box::pin(async move {
                    batch.drain().for_each(drop);
                    batch.fail(u64::MAX);
                    batch.fail(1);
                })
            }))
        })?;
        for n in 0..2 {
            stage.sender().try_send(n).expect("there is room");
        }
        stage.settled().await;
        let stats = stage.stats();
        assert_eq!((stats.finished, stats.failed), (2, 2));
        Ok(())
    })
}

#[test]
fn a_failed_event_counts_once_if_its_handler_panics() -> Result<(), BuildError> {
    // What the handler does with the second of three events before it panics, and the failures.
    for (before, failed) in [("nothing", 2), ("fail", 2), ("leave out", 2), ("settle", 1)] {
        let stats = runtime(1).block_on_spawned(async move {
            let network = Network::new("batches");
            let stage = network.stage("stage").servlets(1).manual();
            let stage = stage.handler(move |_| {
                Ok(by(move |batch: &mut Batch<u32>| {
                    Box::pin(async move {
                        batch.next();
                        batch.settle();
                        batch.next();
                        match before {
                            "fail" => batch.fail(1),
                            "leave out" => batch.leave_out(1),
                            "settle" => batch.settle(),
                            _ => {}
                        }
                        batch.next();
                        panic!("on purpose");
                    })
                }))
            })?;
            stage.pause();
            for n in 0..3 {
                stage.sender().try_send(n).expect("there is room");
            }
            stage.resume();
            stage.settled().await;
            Ok(stage.stats())
        })?;
        assert_eq!((stats.finished, stats.failed), (3, failed), "{before}");
        assert_eq!(stats.response.count, 3 - failed, "{before}");
    }
    Ok(())
}

/// Every third event fails or panics, late. They are in no percentile and no mean.
#[test]
fn how_long_a_failure_took_is_in_no_estimate() -> Result<(), BuildError> {
    for (batch_max, panics) in [(1, false), (1, true), (100, false)] {
        let (hand, runtime) = by_hand();
        let hand = Arc::new(hand);
        let stats = runtime.block_on(async {
            let network = Network::new("batches");
            let stage = network.stage("stage").batch(batch_max).manual();
            let stage = stage.restarts(Restarts::new(100, Duration::from_secs(1)));
            let stage = stage.handler(move |_| {
                let hand = Arc::clone(&hand);
                Ok(by(move |batch: &mut Batch<u32>| {
                    let hand = Arc::clone(&hand);
                    Box::pin(async move {
                        while let Some(n) = batch.next() {
                            if n % 3 != 0 {
                                continue;
                            }
                            hand.advance(Duration::from_secs(1));
                            assert!(!panics, "on purpose");
                            batch.fail(1);
                        }
                    })
                }))
            })?;
            let sender = stage.sender();
            for n in 0..30 {
                sender.try_send(n).expect("there is room");
                if batch_max == 1 {
                    stage.settled().await;
                }
            }
            stage.settled().await;
            Ok(stage.stats())
        })?;
        let case = (batch_max, panics);
        assert_eq!((stats.finished, stats.failed), (30, 10), "{case:?}");
        assert_eq!(stats.response.count, 20, "{case:?}");
        // In a larger batch the others wait for them.
        if batch_max == 1 {
            assert_eq!(stats.response.p99, Duration::ZERO, "{case:?}");
            assert_eq!((stats.service, stats.batches), (Duration::ZERO, 20));
        }
    }
    Ok(())
}

#[test]
fn a_handler_leaves_no_more_than_there_is_room_for() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("batches");
        let (came, shed) = (Noted::default(), Noted::default());
        let (note, told) = (came.clone(), shed.clone());
        let stage = network.stage("stage").queue(10).manual();
        let stage = stage.on_drop(move |n, why| told.add((n, why)));
        let stage = stage.handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                let note = note.clone();
                Box::pin(async move {
                    if note.len() == 0 {
                        note.add(batch.len() as u32);
                        *batch = Batch::of(0..100);
                    } else {
                        batch.drain().for_each(|n| note.add(n));
                    }
                })
            }))
        })?;
        stage.pause();
        for n in 0..3 {
            stage.sender().try_send(n).expect("there is room");
        }
        stage.resume();
        stage.drain().await;
        let kept: Vec<_> = std::iter::once(3).chain(0..10).collect();
        let dropped: Vec<_> = (10..100).map(|n| (n, Reason::Shed)).collect();
        assert_eq!((came.take(), shed.take()), (kept, dropped));
        adds_up(&stage);
        Ok(())
    })
}

/// The events behind one of unknown duration would wait for it.
#[test]
fn the_first_batches_of_a_stage_take_one_event_each() -> Result<(), BuildError> {
    for keys in [None, Some(10)] {
        runtime(1).block_on_spawned(async move {
            let network = Network::new("batches");
            let (came, door) = (Noted::default(), Door::new());
            let mut stage = network.stage("stage").target(Duration::from_secs(1));
            if let Some(keys) = keys {
                stage = stage.keyed_by(move |n: &u32| n % keys);
            }
            let (note, wait) = (came.clone(), door.clone());
            let stage = stage.handler(move |_| {
                Ok(by(move |batch: &mut Batch<u32>| {
                    let (note, wait) = (note.clone(), wait.clone());
                    Box::pin(async move {
                        note.add(batch.len());
                        while batch.next().is_some() {
                            wait.pass().await;
                        }
                    })
                }))
            })?;
            stage.pause();
            for n in 0..40 {
                stage.sender().try_send(n).expect("there is room");
            }
            stage.resume();
            let at_once = keys.map_or(40, |keys| keys as usize);
            door.until(at_once).await;
            idle().await;
            assert_eq!(came.take(), vec![1; at_once]);
            door.let_through(40);
            stage.drain().await;
            assert_eq!(stage.stats().finished, 40);
            adds_up(&stage);
            Ok::<_, BuildError>(())
        })?;
    }
    Ok(())
}
