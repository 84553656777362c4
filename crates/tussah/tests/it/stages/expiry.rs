//! Deadlines: an event ends when its deadline passes, wherever it waits.

use std::sync::Arc;
use std::time::Duration;

use tussah::stage::{Batch, BuildError, Event, Network, Reason};

use super::support::{Door, Noted, adds_up, by, each};
use crate::by_hand;

const SECOND: Duration = Duration::from_secs(1);

/// An event that is to be begun with within so long, and tells when it is not.
fn within(n: u32, time: Duration, told: &Noted<(u32, Reason)>) -> Event<u32> {
    let told = told.clone();
    Event::new(n)
        .within(time)
        .on_drop(move |why| told.add((n, why)))
}

#[test]
fn each_event_of_a_batch_is_checked_when_the_handler_takes_it() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    let clock = Arc::new(clock);
    for manner in 0..3 {
        let (told, came) = (Noted::default(), Noted::default());
        let (passes, note) = (Arc::clone(&clock), came.clone());
        let network = Network::on(runtime.handle(), "expiry");
        runtime.block_on(async {
            let stage = network.stage("stage").handler(move |_| {
                Ok(by(move |batch: &mut Batch<u32>| {
                    let (passes, note) = (Arc::clone(&passes), note.clone());
                    Box::pin(async move {
                        assert!(batch.len() <= 50);
                        loop {
                            let next = match manner {
                                0 => batch.next(),
                                1 => batch.next_event().map(Event::into_inner),
                                _ => {
                                    batch.events_mut().sort_by_key(|n| **n);
                                    batch.next()
                                }
                            };
                            let Some(n) = next else { return };
                            note.add(n);
                            passes.advance(SECOND / 10);
                        }
                    })
                }))
            })?;
            stage.pause();
            for n in 0..50 {
                let event = within(n, SECOND, &told);
                stage.sender().try_send(event).expect("there is room");
            }
            stage.resume();
            stage.drain().await;
            assert_eq!(came.take(), (0..10).collect::<Vec<_>>());
            let late: Vec<_> = (10..50).map(|n| (n, Reason::Expired)).collect();
            assert_eq!(told.take(), late);
            let stats = stage.stats();
            assert_eq!((stats.finished, stats.expired), (10, 40));
            assert_eq!(stats.response.count, 10);
            adds_up(&stage);
            Ok::<(), BuildError>(())
        })?;
    }
    Ok(())
}

/// An event that waits in a queue ends within a millisecond of its deadline, though the stage does nothing.
#[test]
fn what_is_late_ends_in_a_stage_that_is_paused() -> Result<(), BuildError> {
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
fn what_is_late_ends_while_the_stage_is_busy_and_makes_room() -> Result<(), BuildError> {
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

/// What a handler leaves, or has not come to as it waits, is late in the queue as anything else.
#[test]
fn what_a_handler_leaves_is_late_in_the_queue() -> Result<(), BuildError> {
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
