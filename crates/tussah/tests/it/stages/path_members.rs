//! The events that belong to a path, and the counts of the event with which it began.

use std::time::Duration;

use tussah::stage::{Batch, BuildError, Event, Network, Reason, Restarts, Stage, shed};

use super::support::{Door, Work, by, each, until};
use crate::{idle, runtime};

/// A stage that holds each event up at a door.
fn held(network: &Network, door: &Door) -> Result<Stage<u32>, BuildError> {
    let door = door.clone();
    network.stage("store").batch(1).handler(move |_| {
        Ok(by(move |batch: &mut Batch<u32>| {
            let door = door.clone();
            Box::pin(async move {
                for _ in batch.drain() {
                    door.pass().await;
                }
            })
        }))
    })?;
    network.find("store")
}

/// Fails odd numbers, or panics with them.
fn fails(batch: &mut Batch<u32>, how: &str) {
    while let Some(n) = batch.next() {
        match how {
            _ if n % 2 == 0 => {}
            "panic" => panic!("as the test wants"),
            _ => batch.fail(1),
        }
    }
}

#[test]
fn an_event_that_fails_counts_once() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        for how in ["fail", "panic", "blocking"] {
            let network = Network::new("path");
            let stage = network
                .stage("entry")
                .whole_path()
                .restarts(Restarts::new(1_000_000, Duration::from_secs(1)));
            if how == "blocking" {
                stage.blocking(|_| Ok(|batch: &mut Batch<u32>| fails(batch, "fail")))?;
            } else {
                stage.handler(move |_| {
                    Ok(by(move |batch: &mut Batch<u32>| -> Work<'_> {
                        Box::pin(async move { fails(batch, how) })
                    }))
                })?;
            }
            let entry = network.find::<u32>("entry")?;
            // Events that are known to be short share a run.
            for numbers in [[0; 100], std::array::from_fn(|n| n as u32)] {
                entry.pause();
                for n in numbers {
                    entry.sender().send(n).await.expect("it is open");
                }
                entry.resume();
                entry.settled().await;
            }
            let stats = entry.stats();
            assert_eq!((stats.finished, stats.failed), (200, 50), "{how}");
        }
        Ok(())
    })
}

#[test]
fn a_path_fails_even_if_its_first_event_is_left_out() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("path");
        let store = network.stage("store").handler(|_| {
            Ok(by(|batch: &mut Batch<u32>| -> Work<'_> {
                Box::pin(async move { fails(batch, "fail") })
            }))
        })?;
        let entry = network.stage("entry").whole_path().handler(|edges| {
            let to = edges.to(&store).queue(100)?;
            Ok(by(move |batch: &mut Batch<u32>| -> Work<'_> {
                let to = to.clone();
                Box::pin(async move {
                    while let Some(n) = batch.next() {
                        to.send(n).await.expect("it is open");
                        batch.leave_out(1);
                    }
                })
            }))
        })?;
        for n in 0..10 {
            entry.sender().send(n).await.expect("it is open");
        }
        entry.settled().await;
        let stats = entry.stats();
        assert_eq!((stats.finished, stats.failed), (10, 5));
        assert_eq!(stats.response.count, 0);
        Ok(())
    })
}

#[test]
fn a_stage_of_another_network_belongs_to_the_path() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let (network, other) = (Network::new("path"), Network::new("other"));
        // Each network numbers its stages from 1.
        let door = Door::new();
        let store = held(&other, &door)?;
        let to = store.sender();
        let entry = network
            .stage("entry")
            .whole_path()
            .handler(move |_| Ok(each(move |n| to.send_or(n, shed))))?;
        entry.sender().send(1).await.expect("it is open");
        door.until(1).await;
        idle().await;
        assert_eq!(entry.stats().in_service, 1);
        door.let_through(1);
        entry.settled().await;
        assert_eq!(entry.stats().finished, 1);
        Ok(())
    })
}

#[test]
fn a_batch_that_a_handler_makes_belongs_to_its_path() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        // Many plain events are handed over as a whole, unless they belong to a path.
        for (count, is_plain) in [(20, true), (3, true), (3, false)] {
            let (network, door) = (Network::new("path"), Door::new());
            let store = held(&network, &door)?;
            let entry = network.stage("entry").whole_path().handler(|edges| {
                let to = edges.to(&store).queue(100)?;
                Ok(by(move |batch: &mut Batch<u32>| {
                    let to = to.clone();
                    Box::pin(async move {
                        for n in batch.drain() {
                            let event = |n: u32| match is_plain {
                                true => Event::new(n),
                                false => Event::new(n).on_drop(|_: Reason| ()),
                            };
                            let mut own = Batch::of((0..n).map(event));
                            to.forward(&mut own).await.expect("it is open");
                        }
                    })
                }))
            })?;
            entry.sender().send(count).await.expect("it is open");
            until(&store, |stats| stats.arrived == u64::from(count)).await;
            for n in 1..=count {
                idle().await;
                assert_eq!(entry.stats().in_service, 1, "{n} of {count}, {is_plain}");
                door.let_through(1);
                until(&store, |stats| stats.finished == u64::from(n)).await;
            }
            entry.settled().await;
        }
        Ok(())
    })
}

#[test]
fn a_path_ends_though_its_handler_took_the_whole_batch() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("path");
        let entry = network.stage("entry").whole_path().handler(|_| {
            Ok(by(|batch: &mut Batch<u32>| {
                Box::pin(async {
                    let mut own = std::mem::take(batch);
                    assert_eq!(own.next(), Some(1));
                })
            }))
        })?;
        entry.sender().send(1).await.expect("it is open");
        until(&entry, |stats| stats.finished == 1).await;
        entry.settled().await;
        Ok(())
    })
}

#[test]
fn a_refused_event_that_is_handled_by_a_call_does_not_fail() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("path");
        let store = network.stage("store").handler(|_| Ok(each(|_: u32| ())))?;
        let other = network.stage("other").handler(|_| Ok(each(|_: u32| ())))?;
        let entry = network.stage("entry").whole_path().handler(|edges| {
            let (to, other) = (edges.to(&store).queue(1)?, edges.to(&other).call()?);
            Ok(by(move |batch: &mut Batch<u32>| {
                let (to, other) = (to.clone(), other.clone());
                Box::pin(async move {
                    for n in batch.drain() {
                        let refused = to.try_send(n).expect_err("it is closed");
                        other.send(refused.event).await.expect("it is open");
                    }
                })
            }))
        })?;
        store.destroy(Duration::ZERO).await;
        entry.sender().send(1).await.expect("it is open");
        entry.settled().await;
        assert_eq!((entry.stats().finished, entry.stats().failed), (1, 0));
        Ok(())
    })
}

#[test]
fn the_failure_of_another_event_in_the_batch_does_not_count() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("path");
        let store = network.stage("store").handler(|_| {
            Ok(by(|batch: &mut Batch<u32>| {
                Box::pin(async {
                    while let Some(n) = batch.next() {
                        batch.fail(u64::from(n));
                    }
                })
            }))
        })?;
        store.pause();
        let entry = network.stage("entry").whole_path().handler(|edges| {
            let to = edges.to(&store).queue(10)?;
            Ok(each(move |n| to.send_or(n, shed)))
        })?;
        // The event of the path is the first of the batch, and only the later one fails.
        for (fails, failed) in [(1, 0), (2, 1)] {
            entry.sender().send(0).await.expect("it is open");
            until(&store, |stats| stats.queued == 1).await;
            store.sender().send(fails).await.expect("it is open");
            store.resume();
            entry.settled().await;
            assert_eq!(entry.stats().failed, failed, "{fails}");
            store.settled().await;
            store.pause();
        }
        Ok(())
    })
}

#[test]
fn retaining_events_does_not_end_the_path_of_the_one_taken() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let (network, door) = (Network::new("path"), Door::new());
        let store = held(&network, &door)?;
        let entry = network.stage("entry").whole_path().handler(|edges| {
            let to = edges.to(&store).queue(10)?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let to = to.clone();
                Box::pin(async move {
                    while let Some(n) = batch.next() {
                        batch.retain(|_| true);
                        to.send_or(n, shed);
                    }
                })
            }))
        })?;
        entry.sender().send(1).await.expect("it is open");
        door.until(1).await;
        idle().await;
        assert_eq!(entry.stats().in_service, 1);
        door.let_through(1);
        entry.settled().await;
        Ok(())
    })
}

#[test]
fn an_event_that_returns_to_an_inner_entry_stays_in_the_outer_path() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let (network, door) = (Network::new("path"), Door::new());
        let store = held(&network, &door)?;
        let declared = network
            .stage::<u32>("inner")
            .whole_path()
            .servlets(1)
            .declare()?;
        let to = declared.stage();
        let again = network.stage("again").handler(|edges| {
            let back = edges.to(&to).offer(10)?;
            Ok(each(move |n: u32| back.send_or(n - 1, shed)))
        })?;
        let inner = declared.handler(|edges| {
            let (again, store) = (edges.to(&again).queue(10)?, edges.to(&store).queue(10)?);
            Ok(each(move |n| match n {
                0 => store.send_or(n, shed),
                _ => again.send_or(n, shed),
            }))
        })?;
        let outer = network.stage("outer").whole_path().handler(|edges| {
            let to = edges.to(&inner).queue(10)?;
            Ok(each(move |n| to.send_or(n, shed)))
        })?;
        outer.sender().send(2).await.expect("it is open");
        door.until(1).await;
        until(&inner, |stats| stats.finished == 2).await;
        idle().await;
        // The inner path of each round has ended, except that of the last.
        assert_eq!((outer.stats().in_service, inner.stats().finished), (1, 2));
        door.let_through(1);
        outer.settled().await;
        assert_eq!((outer.stats().finished, outer.stats().failed), (1, 0));
        Ok(())
    })
}
