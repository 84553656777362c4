//! Deadlines: an event ends when its deadline passes, wherever it waits.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::poll_once;
use tussah::ManualClock;
use tussah::stage::{Batch, BuildError, Event, Network, Reason, Stage};

use super::support::{Door, Noted, adds_up, by, each, notes, one, works};
use crate::by_hand;

const SECOND: Duration = Duration::from_secs(1);

/// An event with a deadline that reports when it misses it.
fn within(n: u32, time: Duration, told: &Noted<(u32, Reason)>) -> Event<u32> {
    let told = told.clone();
    Event::new(n)
        .within(time)
        .on_drop(move |why| told.add((n, why)))
}

/// Takes the next event, in one of three ways.
fn next(batch: &mut Batch<u32>, manner: usize) -> Option<u32> {
    match manner {
        0 => batch.next(),
        1 => batch.next_event().map(Event::into_inner),
        _ => {
            batch.events_mut().sort_by_key(|n| **n);
            batch.next()
        }
    }
}

/// A stage of each kind, whose handler takes a tenth of a second for each event.
fn slow_kinds(
    network: &Network,
    came: &Noted<u32>,
    clock: &Arc<ManualClock>,
    manner: usize,
) -> Result<Vec<Stage<u32>>, BuildError> {
    let (note, passes) = (came.clone(), Arc::clone(clock));
    let work = move |batch: &mut Batch<u32>| {
        assert!(batch.len() <= 50);
        while let Some(n) = next(batch, manner) {
            note.add(n);
            passes.advance(SECOND / 10);
        }
    };
    let same = work.clone();
    let handle = works(move |batch| {
        same(batch);
        Box::pin(async {})
    });
    let names = ["plain", "keyed", "serial", "blocking"].map(|kind| format!("{kind} {manner}"));
    let [plain, keyed, serial, blocking] =
        names.each_ref().map(|name| network.stage(name).servlets(1));
    let (first, second) = (handle.clone(), handle.clone());
    plain.handler(|_| Ok(by(first)))?;
    keyed.keyed_by(|_| ()).handler(|_| Ok(by(second)))?;
    serial.serial(move |_| Ok(one(handle.clone())))?;
    blocking.blocking(|_| Ok(work))?;
    names.iter().map(|name| network.find(name)).collect()
}

#[test]
fn each_event_of_a_batch_is_checked_when_the_handler_takes_it() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    let clock = Arc::new(clock);
    let network = Network::on(runtime.handle(), "expiry");
    for manner in 0..3 {
        let (told, came) = (Noted::default(), Noted::default());
        for stage in slow_kinds(&network, &came, &clock, manner)? {
            stage.pause();
            for n in 0..50 {
                let event = within(n, SECOND, &told);
                stage.sender().try_send(event).expect("there is room");
            }
            stage.resume();
            runtime.block_on(stage.drain());
            let late: Vec<_> = (10..50).map(|n| (n, Reason::Expired)).collect();
            assert_eq!(came.take(), (0..10).collect::<Vec<_>>(), "{stage:?}");
            assert_eq!(told.take(), late, "{stage:?}");
            let stats = stage.stats();
            assert_eq!((stats.finished, stats.expired), (10, 40));
            assert_eq!((stats.batches, stats.response.count), (1, 10));
            adds_up(&stage);
        }
    }
    Ok(())
}

/// A handler of one network sends to another one, which is older or younger.
#[test]
fn a_deadline_holds_in_a_network_of_another_age() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let old = Network::new("old");
        clock.advance(SECOND * 10);
        let young = Network::new("young");
        for (from, to) in [(&old, &young), (&young, &old)] {
            let told = Noted::default();
            let last = to.stage("last").handler(|_| Ok(each(|_: u32| ())))?;
            last.pause();
            let sender = last.sender();
            let first = from.stage("first").handler(move |_| {
                Ok(by(move |batch: &mut Batch<u32>| {
                    let sender = sender.clone();
                    Box::pin(async move {
                        let event = batch.next_event().expect("one is there");
                        sender.send(event).await.expect("there is room");
                    })
                }))
            })?;
            let event = within(1, SECOND, &told);
            first.sender().try_send(event).expect("there is room");
            first.settled().await;
            clock.advance(SECOND - Duration::from_millis(1));
            crate::idle().await;
            assert_eq!((told.len(), last.stats().queued), (0, 1));
            clock.advance(Duration::from_millis(1));
            told.until(1).await;
            assert_eq!(told.take(), [(1, Reason::Expired)]);
            adds_up(&last);
        }
        Ok(())
    })
}

/// An event that waits in a queue ends within a millisecond of its deadline, though the stage does
/// nothing.
#[test]
fn late_events_end_in_a_paused_stage() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        for keyed in [false, true] {
            let network = Network::new("expiry");
            let mut builder = network.stage("stage").classes(2).queue(5);
            if keyed {
                builder = builder.keyed_by(|n: &u32| n % 2);
            }
            let (told, came) = (Noted::default(), Noted::default());
            let note = came.clone();
            let stage = builder.handler(move |_| Ok(each(move |n: u32| note.add(n))))?;
            stage.pause();
            let sender = stage.sender();
            // The earliest comes last.
            for (n, seconds) in [(0, 3), (1, 2), (2, 0), (3, 1)] {
                let event = match seconds {
                    0 => Event::new(n),
                    seconds => within(n, SECOND * seconds, &told),
                };
                sender.try_send(event).expect("there is room");
            }
            clock.advance(SECOND - Duration::from_millis(1));
            crate::idle().await;
            assert_eq!(told.len(), 0);
            clock.advance(Duration::from_millis(1));
            told.until(1).await;
            assert_eq!(told.take(), [(3, Reason::Expired)]);
            assert_eq!((stage.stats().queued, stage.stats().expired), (3, 1));
            // What comes later and is late sooner is seen to as well.
            let soon = within(4, SECOND / 2, &told);
            sender.try_send(soon).expect("there is room");
            clock.advance(SECOND / 2);
            told.until(1).await;
            clock.advance(SECOND / 2);
            told.until(2).await;
            assert_eq!(told.take(), [4, 1].map(|n| (n, Reason::Expired)));
            stage.resume();
            stage.drain().await;
            let mut came = came.take();
            came.sort_unstable();
            assert_eq!(came, [0, 2]);
            adds_up(&stage);
        }
        Ok(())
    })
}

#[test]
fn late_events_end_while_the_stage_is_busy_and_free_their_room() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let network = Network::new("expiry");
        let (told, came, door) = (Noted::default(), Noted::default(), Door::new());
        let (note, at) = (came.clone(), door.clone());
        let stage = network.stage("stage").queue(2).servlets(1).manual();
        let stage = stage.handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                let (note, at) = (note.clone(), at.clone());
                Box::pin(async move {
                    batch.drain().for_each(|n| note.add(n));
                    at.pass().await;
                })
            }))
        })?;
        let sender = stage.sender();
        sender.try_send(0).expect("there is room");
        door.until(1).await;
        for n in 1..3 {
            let event = within(n, SECOND, &told);
            sender.try_send(event).expect("there is room");
        }
        let waiting = stage.sender();
        let waiting = tussah::spawn(async move { waiting.send(3).await.is_ok() });
        crate::idle().await;
        clock.advance(SECOND);
        assert!(waiting.await.expect("no panic"));
        assert_eq!(told.take(), [1, 2].map(|n| (n, Reason::Expired)));
        door.let_through(2);
        stage.drain().await;
        assert_eq!(came.take(), [0, 3]);
        adds_up(&stage);
        Ok(())
    })
}

/// Events that a handler leaves, or has not reached when it waits, expire in the queue like others.
#[test]
fn events_that_a_handler_leaves_expire_in_the_queue() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let network = Network::new("expiry");
        let (told, door) = (Noted::default(), Door::new());
        let at = door.clone();
        let stage = network.stage("stage").batch(1).servlets(1).manual();
        let stage = stage.handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                let at = at.clone();
                Box::pin(async move {
                    batch.next();
                    at.pass().await;
                })
            }))
        })?;
        stage.pause();
        for n in 0..4 {
            let event = within(n, SECOND, &told);
            stage.sender().try_send(event).expect("there is room");
        }
        stage.resume();
        door.until(1).await;
        clock.advance(SECOND);
        told.until(3).await;
        assert_eq!(told.take(), [1, 2, 3].map(|n| (n, Reason::Expired)));
        door.let_through(1);
        stage.drain().await;
        adds_up(&stage);
        Ok(())
    })
}

/// An event that a stage is called with, outside of any batch, whether it was queued before or not.
#[test]
fn a_single_called_event_is_checked_when_the_handler_takes_it() -> Result<(), BuildError> {
    for keyed in [false, true] {
        let (clock, runtime) = by_hand();
        let clock = Arc::new(clock);
        runtime.block_on(async {
            let network = Network::new("expiry");
            let (told, came, door) = (Noted::default(), Noted::default(), Door::new());
            let handle = notes(&came, &door);
            let builder = network.stage("callee");
            if keyed {
                builder.keyed_by(|_: &u32| ()).handler(|_| Ok(by(handle)))?;
            } else {
                builder.serial(move |_| Ok(one(handle.clone())))?;
            }
            let callee = network.find::<u32>("callee")?;
            let (mut edge, passes) = (None, Arc::clone(&clock));
            let caller = network.stage("caller").handler(|edges| {
                let call = edges.to(&callee).call()?;
                edge = Some(call.clone());
                Ok(by(move |batch: &mut Batch<u32>| {
                    let (call, passes) = (call.clone(), Arc::clone(&passes));
                    Box::pin(async move {
                        let event = batch.next_event().expect("it was in time");
                        passes.advance(SECOND);
                        call.send(event).await.expect("it is open");
                    })
                }))
            })?;
            let call = edge.expect("it was made");
            let late = |n| [(n, Reason::Expired)];
            // The callee is busy until it is too late.
            callee.sender().try_send(0).expect("there is room");
            door.until(1).await;
            let mut calling = pin!(call.send(within(1, SECOND, &told)));
            assert!(poll_once(&mut calling).await.is_none());
            clock.advance(SECOND);
            door.let_through(1);
            calling.await.expect("it is open");
            assert_eq!(told.take(), late(1));
            call.send(within(2, SECOND, &told)).await.expect("open");
            // It was in time when the caller took it.
            let event = within(3, SECOND, &told);
            caller.sender().try_send(event).expect("there is room");
            caller.settled().await;
            assert_eq!(told.take(), late(3));
            assert_eq!(came.take(), [0, 2]);
            let stats = callee.stats();
            assert_eq!((stats.called, stats.expired, stats.finished), (3, 2, 1));
            adds_up(&callee);
            adds_up(&caller);
            Ok::<(), BuildError>(())
        })?;
    }
    Ok(())
}

/// A drop callback may use the stage that was called: no lock is held.
#[test]
fn late_events_of_a_batch_for_a_keyed_stage_are_skipped() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let network = Network::new("expiry");
        let (told, came) = (Noted::default(), Noted::default());
        let note = came.clone();
        let callee = network.stage("callee").keyed_by(|n: &u32| n % 2);
        let callee = callee.handler(move |_| Ok(each(move |n: u32| note.add(n))))?;
        let to = callee.clone();
        let caller = network.stage("caller").servlets(1).handler(move |edges| {
            let call = edges.to(&to).call()?;
            Ok(by(move |batch: &mut Batch<u32>| {
                clock.advance(SECOND);
                let call = call.clone();
                Box::pin(async move { call.call(batch).await.expect("it is open") })
            }))
        })?;
        caller.pause();
        for n in 0..6 {
            let (tell, stage) = (told.clone(), callee.clone());
            let mut event = Event::new(n);
            if n != 3 {
                let used = move |_| tell.add((n, stage.stats().queued));
                event = event.within(SECOND).on_drop(used);
            }
            caller.sender().try_send(event).expect("there is room");
        }
        caller.resume();
        caller.settled().await;
        assert_eq!(came.take(), [3]);
        assert_eq!(told.take(), [0, 2, 4, 1, 5].map(|n| (n, 0)));
        assert_eq!((caller.stats().expired, caller.stats().finished), (5, 1));
        assert_eq!(callee.stats().keys, 0);
        adds_up(&caller);
        Ok(())
    })
}
