//! Stages whose batches last until the paths of their events end.

use std::time::Duration;

use tussah::stage::control::Resource;
use tussah::stage::{
    Batch, BuildError, Direct, DirectHandler, Event, Network, Reason, Sender, Stage, StageBuilder,
    TrySender, shed,
};
use tussah::sync::Limit;

use super::scarce::Three;
use super::support::{Door, by, each, one, until};
use crate::{idle, runtime};

/// Tells what a handler is to do with an event.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Does {
    Wait,
    Fail,
    Panic,
    Keep,
}

/// A stage that waits at a door with each event, and then does what the event says. It sends the
/// events that it keeps to `kept`.
fn store(
    network: &Network,
    door: &Door,
    kept: &tussah::sync::mpsc::Sender<Event<Does>>,
) -> Result<Stage<Does>, BuildError> {
    let (door, kept) = (door.clone(), kept.clone());
    network.stage("store").batch(1).handler(move |_| {
        Ok(by(move |batch: &mut Batch<Does>| {
            let (door, kept) = (door.clone(), kept.clone());
            Box::pin(async move {
                while let Some(event) = batch.next_event() {
                    door.pass().await;
                    match *event {
                        Does::Wait => {}
                        Does::Fail => batch.fail(1),
                        Does::Panic => panic!("as the test wants"),
                        Does::Keep => kept.send(event).await.expect("the test receives"),
                    }
                }
            })
        }))
    })?;
    network.find("store")
}

fn entry<E: Send + 'static>(network: &Network) -> StageBuilder<E> {
    network.stage("entry").whole_path()
}

/// A store behind a door, an entry that sends to it what it gets, and what the store keeps.
struct Pair {
    network: Network,
    entry: Stage<Vec<Does>>,
    store: Stage<Does>,
    door: Door,
    kept: tussah::sync::mpsc::Receiver<Event<Does>>,
}

impl Pair {
    fn new() -> Result<Self, BuildError> {
        let (network, door) = (Network::new("path"), Door::new());
        let (keep, kept) = tussah::sync::mpsc::channel(10);
        let store = store(&network, &door, &keep)?;
        entry(&network).handler(|edges| {
            let to = edges.to(&store).queue(10)?;
            Ok(by(move |batch: &mut Batch<Vec<Does>>| {
                let to = to.clone();
                Box::pin(async move {
                    for does in batch.drain().flatten() {
                        to.send_or(does, shed);
                    }
                })
            }))
        })?;
        let entry = network.find("entry")?;
        Ok(Self {
            network,
            entry,
            store,
            door,
            kept,
        })
    }

    async fn send(&self, does: &[Does]) {
        let sent = self.entry.sender().send(does.to_vec()).await;
        sent.expect("the entry is open");
    }

    /// Waits until the entry is idle, and returns how many of its events were answered, and how
    /// many failed.
    async fn ends(&self) -> (u64, u64) {
        self.entry.settled().await;
        let stats = self.entry.stats();
        (stats.finished - stats.failed, stats.failed)
    }

    async fn lasts(&self) {
        idle().await;
        assert_eq!(self.entry.stats().in_service, 1);
        assert_eq!(self.entry.stats().finished + self.entry.stats().failed, 0);
    }
}

#[test]
fn an_event_is_in_service_until_the_last_of_its_descendants_ends() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let pair = Pair::new()?;
        pair.send(&[Does::Wait; 3]).await;
        pair.door.until(3).await;
        pair.lasts().await;
        pair.door.let_through(2);
        until(&pair.store, |stats| stats.finished == 2).await;
        pair.lasts().await;
        assert_eq!(pair.entry.stats().waiting, 1);
        pair.door.let_through(1);
        assert_eq!(pair.ends().await, (1, 0));
        // Without descendants, an event ends with its handler.
        pair.send(&[]).await;
        assert_eq!(pair.ends().await, (2, 0));
        Ok(())
    })
}

#[test]
fn an_event_fails_if_a_descendant_does() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        for does in [Does::Fail, Does::Panic] {
            let pair = Pair::new()?;
            pair.send(&[Does::Wait, does, Does::Wait]).await;
            pair.door.until(3).await;
            pair.door.let_through(3);
            assert_eq!(pair.ends().await, (0, 1), "{does:?}");
        }
        Ok(())
    })
}

#[test]
fn an_event_fails_if_a_descendant_ends_in_a_queue() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        // It is shed because there is no room.
        let pair = Pair::new()?;
        pair.store.pause();
        pair.store.set_queue_max(1);
        pair.send(&[Does::Wait; 2]).await;
        until(&pair.store, |stats| stats.refused == 1).await;
        pair.lasts().await;
        pair.store.resume();
        pair.door.let_through(1);
        assert_eq!(pair.ends().await, (0, 1), "shed");
        // It ends with a stage, which has no handler, and the next one finds that stage closed.
        let network = Network::new("path");
        let store = network.stage::<u32>("store").declare()?;
        let entry = entry(&network).handler(|edges| {
            let to = edges.to(&store.stage()).queue(10)?;
            Ok(each(move |n| to.send_or(n, shed)))
        })?;
        entry.sender().send(1).await.expect("it is open");
        until(&store.stage(), |stats| stats.queued == 1).await;
        idle().await;
        assert_eq!(entry.stats().in_service, 1);
        store.stage().destroy(Duration::ZERO).await;
        entry.settled().await;
        assert_eq!(entry.stats().failed, 1);
        entry.sender().send(1).await.expect("it is open");
        entry.settled().await;
        assert_eq!(entry.stats().failed, 2);
        Ok(())
    })
}

#[test]
fn an_event_that_is_kept_keeps_its_path_open() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let mut pair = Pair::new()?;
        pair.send(&[Does::Keep]).await;
        pair.door.let_through(1);
        let kept = pair.kept.recv().await.expect("the store keeps it");
        until(&pair.store, |stats| stats.finished == 1).await;
        pair.lasts().await;
        // Anybody may send it on, and it ends with whatever becomes of it.
        let (sent, cancel) = kept.map(|_| Does::Wait).cancellable();
        pair.store.pause();
        pair.store.sender().send(sent).await.expect("it is open");
        pair.lasts().await;
        assert!(cancel.cancel());
        assert_eq!(pair.ends().await, (0, 1));
        drop(pair.network);
        Ok(())
    })
}

#[test]
fn a_descendant_that_expires_ends() -> Result<(), BuildError> {
    let (clock, runtime) = crate::by_hand();
    runtime.block_on(async {
        let network = Network::new("path");
        let store = network.stage("store").handler(|_| Ok(each(|_: u32| ())))?;
        store.pause();
        let entry = entry(&network).handler(|edges| {
            let to = edges.to(&store).queue(10)?;
            Ok(each(move |n: u32| {
                to.send_or(Event::new(n).within(Duration::from_secs(1)), shed);
            }))
        })?;
        entry.sender().send(1).await.expect("it is open");
        until(&store, |stats| stats.queued == 1).await;
        idle().await;
        assert_eq!(entry.stats().in_service, 1);
        clock.advance(Duration::from_secs(2));
        entry.settled().await;
        assert_eq!((store.stats().expired, entry.stats().failed), (1, 1));
        Ok(())
    })
}

#[test]
fn a_refused_event_that_is_sent_again_does_not_fail() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let network = Network::new("path");
        let store = network
            .stage("store")
            .queue(1)
            .handler(|_| Ok(each(|_: u32| ())))?;
        store.pause();
        let resumed = store.clone();
        let entry = entry(&network).handler(|edges| {
            let to = edges.to(&store).queue(1)?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let (to, store) = (to.clone(), resumed.clone());
                Box::pin(async move {
                    for n in batch.drain() {
                        to.send(n).await.expect("there is room");
                        let refused = to.try_send(n).expect_err("there is none");
                        store.resume();
                        to.send(refused.event).await.expect("it is open");
                    }
                })
            }))
        })?;
        entry.sender().send(1).await.expect("it is open");
        entry.settled().await;
        // The path ends with the batch, and the batch is counted a little later.
        until(&store, |stats| stats.finished == 2).await;
        assert_eq!((entry.stats().finished, entry.stats().failed), (1, 0));
        // A refused event that is dropped has not been handled.
        store.pause();
        store.sender().send(0).await.expect("there is room");
        let dropped = network.stage("drops").whole_path().handler(|edges| {
            let to = edges.to(&store).queue(1)?;
            Ok(each(move |n| drop(to.try_send(n))))
        })?;
        dropped.sender().send(1).await.expect("it is open");
        dropped.settled().await;
        assert_eq!(dropped.stats().failed, 1);
        Ok(())
    })
}

/// Sends each number that is not 0 back, less one.
fn back(to: TrySender<u32>) -> impl Fn(u32) + Send + Sync + 'static {
    move |n| {
        if n > 0 {
            to.try_send(n - 1).expect("there is room");
        }
    }
}

#[test]
fn a_cycle_to_the_entry_does_not_wait_for_itself() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("path");
        let declared = entry::<u32>(&network).servlets(1).declare()?;
        let to = declared.stage();
        let again = network
            .stage("again")
            .handler(|edges| Ok(each(back(edges.to(&to).offer(10)?))))?;
        let entry = declared.handler(|edges| {
            let next = edges.to(&again).queue(10)?;
            Ok(each(move |n| next.send_or(n, shed)))
        })?;
        entry.sender().send(5).await.expect("it is open");
        until(&entry, |stats| stats.finished == 6).await;
        entry.settled().await;
        // An event that its handler leaves in the batch does not, either.
        let left = network.stage("left").whole_path().serial(|_| {
            let mut left = false;
            Ok(one(move |batch: &mut Batch<u32>| {
                left = !left;
                if !left {
                    batch.drain().for_each(drop);
                }
                Box::pin(async {})
            }))
        })?;
        left.sender().send(1).await.expect("it is open");
        left.settled().await;
        assert_eq!(left.stats().finished, 1);
        Ok(())
    })
}

#[test]
fn a_cycle_within_the_path_lasts_until_the_last_retry() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("path");
        let declared = network.stage::<u32>("again").declare()?;
        let to = declared.stage();
        let door = Door::new();
        let held = door.clone();
        let again = declared.handler(|edges| {
            let back = back(edges.to(&to).offer(10)?);
            Ok(by(move |batch: &mut Batch<u32>| {
                let held = held.clone();
                let n = batch.next();
                n.into_iter().for_each(&back);
                Box::pin(async move { held.pass().await })
            }))
        })?;
        let entry = entry(&network).handler(|edges| {
            let next = edges.to(&again).queue(10)?;
            Ok(each(move |n| next.send_or(n, shed)))
        })?;
        entry.sender().send(3).await.expect("it is open");
        for n in 1..=4 {
            door.until(n).await;
            assert_eq!(entry.stats().in_service, 1);
        }
        door.let_through(3);
        idle().await;
        assert_eq!(entry.stats().in_service, 1);
        door.let_through(1);
        entry.settled().await;
        assert_eq!((entry.stats().finished, again.stats().finished), (1, 4));
        Ok(())
    })
}

#[test]
fn a_path_within_a_path_is_a_part_of_it() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let pair = Pair::new()?;
        let outer = pair.network.stage("outer").whole_path().handler(|edges| {
            let to = edges.to(&pair.entry).queue(10)?;
            Ok(each(move |does| to.send_or(does, shed)))
        })?;
        outer
            .sender()
            .send(vec![Does::Wait, Does::Fail])
            .await
            .expect("it is open");
        pair.door.until(2).await;
        idle().await;
        assert_eq!(
            (outer.stats().in_service, pair.entry.stats().in_service),
            (1, 1)
        );
        pair.door.let_through(2);
        outer.settled().await;
        assert_eq!((outer.stats().failed, pair.entry.stats().failed), (1, 1));
        Ok(())
    })
}

struct Through(Sender<u32>);

impl DirectHandler for Through {
    type Event = u32;
    fn handle(&self, n: u32) {
        self.0.send_or(n, shed);
    }
}

#[test]
fn what_a_called_handler_sends_belongs_to_the_path_of_its_caller() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let (network, door) = (Network::new("path"), Door::new());
        let held = door.clone();
        let last = network.stage("last").batch(1).handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                let held = held.clone();
                Box::pin(async move {
                    for _ in batch.drain() {
                        held.pass().await;
                    }
                })
            }))
        })?;
        let direct = network
            .stage("direct")
            .direct(|edges| Ok(Through(edges.to(&last).queue(10)?)))?;
        let called = network.stage("called").handler(|edges| {
            let to = edges.to(&last).queue(10)?;
            Ok(each(move |n: u32| to.send_or(n, shed)))
        })?;
        let entry = entry(&network).handler(|edges| {
            let direct: Direct<u32, Through> = edges.to(&direct).direct(10)?;
            let called = edges.to(&called).call()?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let (direct, called) = (direct.clone(), called.clone());
                Box::pin(async move {
                    for n in batch.drain() {
                        direct.send(n).expect("it is open");
                        called.send(n).await.expect("it is open");
                        // One with a callback is checked in the callee.
                        let told = Event::new(n).on_drop(|_: Reason| ());
                        called.send(told).await.expect("it is open");
                        direct.send(n).expect("it is open");
                    }
                })
            }))
        })?;
        entry.sender().send(1).await.expect("it is open");
        for n in 1..=4 {
            door.until(4).await;
            idle().await;
            assert_eq!(entry.stats().in_service, 1, "{n}");
            door.let_through(1);
            until(&last, |stats| stats.finished == n).await;
        }
        entry.settled().await;
        assert_eq!(entry.stats().finished, 1);
        Ok(())
    })
}

#[test]
fn a_path_goes_on_after_a_wait_of_its_handler() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let (network, door) = (Network::new("path"), Door::new());
        let last = network.stage("last").handler(|_| Ok(each(|_: u32| ())))?;
        last.pause();
        let held = door.clone();
        let entry = entry(&network).handler(|edges| {
            let to = edges.to(&last).queue(10)?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let (to, held) = (to.clone(), held.clone());
                Box::pin(async move {
                    for n in batch.drain() {
                        held.pass().await;
                        to.send(n).await.expect("there is room");
                    }
                })
            }))
        })?;
        for n in 0..2 {
            entry.sender().send(n).await.expect("it is open");
        }
        door.until(2).await;
        door.let_through(2);
        until(&last, |stats| stats.queued == 2).await;
        idle().await;
        assert_eq!(entry.stats().in_service, 2);
        last.resume();
        entry.settled().await;
        assert_eq!(entry.stats().finished, 2);
        Ok(())
    })
}

#[test]
fn servlets_bound_the_paths_of_every_kind_of_stage() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        for kind in ["handler", "keyed", "serial", "blocking"] {
            let network = Network::new("path");
            let last = network.stage("last").handler(|_| Ok(each(|_: u32| ())))?;
            last.pause();
            let stage = entry(&network).servlets(3);
            let entry: Stage<u32> = match kind {
                "serial" => {
                    let to = last.clone();
                    stage.serial(move |edges| {
                        let to = edges.to(&to).queue(100)?;
                        Ok(each(move |n| to.send_or(n, shed)))
                    })?;
                    network.find("entry")?
                }
                "blocking" => stage.blocking(|edges| {
                    let to = edges.to(&last).queue(100)?;
                    Ok(move |batch: &mut Batch<u32>| {
                        batch.drain().for_each(|n| to.send_or(n, shed));
                    })
                })?,
                _ => {
                    let stage = match kind {
                        "keyed" => stage.keyed_by(|n| *n),
                        _ => stage,
                    };
                    stage.handler(|edges| {
                        let to = edges.to(&last).queue(100)?;
                        Ok(each(move |n| to.send_or(n, shed)))
                    })?;
                    network.find("entry")?
                }
            };
            for n in 0..10 {
                entry.sender().send(n).await.expect("it is open");
            }
            let most = if kind == "serial" { 1 } else { 3 };
            until(&last, |stats| stats.queued == most).await;
            idle().await;
            assert_eq!(last.stats().queued, most, "{kind}");
            assert_eq!(entry.stats().in_service, most, "{kind}");
            last.resume();
            entry.drain().await;
            assert_eq!(entry.stats().finished, 10, "{kind}");
        }
        Ok(())
    })
}

#[test]
fn rejections_name_the_later_stage_or_its_limit() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let network = Network::new("path");
        let limit = Limit::new("db", 0);
        let used = limit.clone();
        let store = network.stage("store").batch(1).handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                let used = used.clone();
                Box::pin(async move {
                    while batch.next().is_some() {
                        let _permit = used.acquire().await;
                    }
                })
            }))
        })?;
        store.pause();
        let entry = entry(&network)
            .servlets(8)
            .controller(Three)
            .handler(|edges| {
                let to = edges.to(&store).queue(10)?;
                Ok(each(move |n| to.send_or(n, shed)))
            })?;
        let sender = entry.sender();
        for n in 0..3 {
            sender.try_send(n).expect("the controller admits three");
        }
        until(&store, |stats| stats.queued == 3).await;
        let rejects = |resource: &Resource| {
            for n in 0..30 {
                sender.try_send(n).expect_err("there are three");
            }
            let by = entry.stats().rejected_by;
            let found = by.iter().find(|(by, _)| by == resource);
            assert!(found.is_some_and(|(_, count)| *count > 20), "{by:?}");
        };
        rejects(&Resource::Stage("store".into()));
        let log = entry.log();
        let last = log
            .iter()
            .last()
            .expect("servlets change each time")
            .to_string();
        assert!(last.contains("0 of 1000 in `store`, 2 waiting"), "{last}");
        store.resume();
        until(&store, |stats| stats.waiting == 3).await;
        rejects(&Resource::Limit("db".into()));
        limit.set_permits(1);
        entry.settled().await;
        assert_eq!(entry.stats().finished, 3);
        Ok(())
    })
}
