//! Stages by key.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use futures_lite::FutureExt;
use parking_lot::Mutex;
use tussah::stage::control::{
    Admission, Arrival, Cadence, Controller, Order, Owns, Sample, Settings,
};
use tussah::stage::{Batch, BuildError, Class, Event, Network, Reason, Refusal};

use super::support::{Door, Noted, adds_up, by, each, until};
use crate::{idle, runtime};

/// A key, and which of its events it is.
type Keyed = (u8, u32);

/// A key function that panics on 13.
fn key_of(event: &u32) -> u32 {
    assert_ne!(*event, 13, "on purpose");
    event % 2
}

/// The event ends with its sender, under no lock: whoever is told of that may use the stage.
#[test]
fn a_panic_of_the_key_function_reaches_the_sender() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("keyed");
        let came = Noted::default();
        let note = came.clone();
        let stage = network.stage("stage").keyed_by(key_of).servlets(1);
        let stage = stage.handler(move |_| Ok(each(move |n| note.add(n))))?;
        let told = Noted::default();
        let bad = || {
            let (told, stage) = (told.clone(), stage.clone());
            Event::new(13).on_drop(move |why| told.add((why, stage.stats().queued)))
        };
        let sender = stage.sender();
        stage.pause();
        sender.try_send(1).expect("there is room");
        let sent = catch_unwind(AssertUnwindSafe(|| sender.try_send(bad()).is_ok()));
        sent.expect_err("the key function panics");
        let called = network.stage::<u32>("calls").servlets(1).handler(|edges| {
            let call = edges.to(&stage).call()?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let call = call.clone();
                Box::pin(async move {
                    let called = AssertUnwindSafe(call.call(batch)).catch_unwind().await;
                    let left = batch.drain().count();
                    assert_eq!(left, 2, "nothing has been taken");
                    resume_unwind(called.expect_err("the key function panics"));
                })
            }))
        })?;
        called.pause();
        called.sender().try_send(1).expect("there is room");
        called.sender().try_send(bad()).expect("there is room");
        called.resume();
        called.settled().await;
        assert_eq!(told.take(), [(Reason::Panicked, 1), (Reason::Panicked, 1)]);
        sender.try_send(2).expect("there is room");
        stage.resume();
        stage.settled().await;
        assert_eq!(came.take(), [1, 2]);
        assert_eq!(stage.stats().keys, 0);
        adds_up(&stage);
        Ok(())
    })
}

/// An event without a key any more goes back to the key that it was taken from.
#[test]
fn events_given_back_stay_if_the_key_function_panics() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("keyed");
        let came = Noted::default();
        let note = came.clone();
        let stage = network.stage("stage").keyed_by(key_of).batch(2).manual();
        let stage = stage.handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                let note = note.clone();
                Box::pin(async move {
                    if note.len() > 0 {
                        return batch.drain().for_each(|n| note.add(n));
                    }
                    // It is left, as one that has no key.
                    note.add(0);
                    *batch.events_mut()[0] = 13;
                })
            }))
        })?;
        stage.pause();
        for n in [1, 3, 5] {
            stage.sender().try_send(n).expect("there is room");
        }
        stage.resume();
        stage.settled().await;
        assert_eq!(came.take(), [0, 13, 3, 5]);
        assert_eq!(stage.stats().keys, 0);
        adds_up(&stage);
        Ok(())
    })
}

#[test]
fn a_key_is_busy_until_its_handler_is_done_and_others_run_meanwhile() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("keyed");
        let door = Door::new();
        let came = Noted::default();
        let (at, note) = (door.clone(), came.clone());
        let stage = network
            .stage("stage")
            .keyed_by(|event: &Keyed| event.0)
            .batch(2)
            .servlets(8)
            .manual()
            .handler(move |_| {
                Ok(by(move |batch: &mut Batch<Keyed>| {
                    let (at, note) = (at.clone(), note.clone());
                    Box::pin(async move {
                        let keys: Vec<_> = batch.drain().collect();
                        let slow = keys[0].0 == 0;
                        note.add(keys);
                        if slow {
                            at.pass().await;
                        }
                    })
                }))
            })?;
        let sender = stage.sender();
        stage.pause();
        for n in 0..4 {
            for key in [0, 1, 2] {
                sender.try_send((key, n)).expect("there is room");
            }
        }
        assert_eq!(stage.stats().keys, 3);
        stage.resume();
        door.until(1).await;
        until(&stage, |stats| stats.queued == 2).await;
        idle().await;
        assert_eq!(door.came(), 1, "the slow key has one batch in flight");
        let stats = stage.stats();
        assert_eq!((stats.keys, stats.in_service), (1, 2));
        sender.try_send((0, 4)).expect("there is room");
        door.let_through(1);
        door.until(2).await;
        door.let_through(2);
        stage.settled().await;
        assert_eq!(stage.stats().keys, 0, "keys without events are forgotten");
        adds_up(&stage);
        let mut last = HashMap::new();
        for batch in came.take() {
            assert!(batch.len() <= 2);
            for (key, n) in &batch {
                assert_eq!(*key, batch[0].0, "a batch has one key");
                let before = last.insert(*key, *n);
                assert_eq!(before.map_or(0, |before| before + 1), *n);
            }
        }
        assert_eq!(last[&0], 4);
        Ok(())
    })
}

#[test]
fn exclusion_holds_with_several_workers() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let network = Network::new("keyed");
        let busy: Arc<Mutex<HashMap<u8, u32>>> = Arc::default();
        let last = Arc::clone(&busy);
        let stage = network
            .stage("stage")
            .keyed_by(|event: &Keyed| event.0)
            .batch(3)
            .servlets(4)
            .manual()
            .handler(move |_| {
                Ok(by(move |batch: &mut Batch<Keyed>| {
                    let last = Arc::clone(&last);
                    Box::pin(async move {
                        let key = batch.events_mut()[0].0;
                        // Taken out: who comes while this waits finds none.
                        let before = last.lock().remove(&key);
                        let mut before = before.expect("the key is not in use");
                        for (this, n) in batch.drain() {
                            assert_eq!((this, n), (key, before));
                            before += 1;
                        }
                        tussah::yield_now().await;
                        last.lock().insert(key, before);
                    })
                }))
            })?;
        busy.lock().extend((0..5).map(|key| (key, 0)));
        let sender = stage.sender();
        for n in 0..400 {
            for key in 0..5 {
                sender.send((key, n)).await.expect("it is open");
            }
        }
        stage.drain().await;
        let stats = stage.stats();
        assert_eq!((stats.panicked, stats.finished), (0, 2000));
        assert!(busy.lock().values().all(|next| *next == 400));
        Ok(())
    })
}

#[test]
fn events_that_a_handler_leaves_of_a_key_come_first_again() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("keyed");
        let came = Noted::default();
        let note = came.clone();
        let stage = network
            .stage("stage")
            .keyed_by(|event: &Keyed| event.0)
            .batch(3)
            .handler(move |_| {
                Ok(by(move |batch: &mut Batch<Keyed>| {
                    let note = note.clone();
                    Box::pin(async move { note.add(batch.next().expect("an event")) })
                }))
            })?;
        stage.pause();
        for n in 0..5 {
            for key in 0..2 {
                stage.sender().try_send((key, n)).expect("there is room");
            }
        }
        stage.resume();
        stage.drain().await;
        let came = came.take();
        for key in 0..2 {
            let order = came
                .iter()
                .filter(|event| event.0 == key)
                .map(|event| event.1);
            assert_eq!(order.collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        }
        Ok(())
    })
}

#[test]
fn a_key_has_a_bound_of_its_own() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("keyed");
        let stage = network
            .stage("stage")
            .keyed_by(|event: &Keyed| event.0)
            .key_queue(2)
            .handler(|_| Ok(super::support::each(|_: Keyed| ())))?;
        stage.pause();
        let sender = stage.sender();
        sender.try_send((1, 0)).expect("there is room");
        sender.try_send((1, 1)).expect("there is room");
        let error = sender.try_send((1, 2)).expect_err("the key is full");
        assert_eq!((error.why, *error.event), (Refusal::KeyFull, (1, 2)));
        sender.try_send((2, 0)).expect("another key has room");
        // A sender that waits for the key does not stop others.
        let waiting = sender.clone();
        let waiting = tussah::spawn(async move { waiting.send((1, 2)).await.is_ok() });
        idle().await;
        assert_eq!(stage.stats().queued, 3);
        stage.resume();
        assert!(waiting.await.expect("no panic"));
        stage.drain().await;
        let stats = stage.stats();
        assert_eq!((stats.finished, stats.refused), (4, 1));
        adds_up(&stage);
        Ok(())
    })
}

/// Queues events while the stage is paused, and tells in which order they were handled.
fn handled(
    classes: usize,
    order: Order,
    events: Vec<(Keyed, u8)>,
) -> Result<Vec<Keyed>, BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("keyed");
        let came = Noted::default();
        let note = came.clone();
        let stage = network
            .stage("stage")
            .keyed_by(|event: &Keyed| event.0)
            .classes(classes)
            .key_queue(1000)
            .queue(10_000)
            .batch(1)
            .servlets(1)
            .settings(Settings {
                order: Some(order),
                ..Settings::default()
            })
            .handler(move |_| Ok(super::support::each(move |event: Keyed| note.add(event))))?;
        stage.pause();
        for (event, class) in events {
            let event = Event::new(event).class(Class(class));
            stage.sender().try_send(event).expect("there is room");
        }
        stage.resume();
        stage.drain().await;
        adds_up(&stage);
        Ok(came.take())
    })
}

#[test]
fn policies_choose_among_keys_and_never_within_one() -> Result<(), BuildError> {
    let events = |keys: &[u8]| -> Vec<_> {
        let each = |n| keys.iter().map(move |key| ((*key, n), 0));
        (0..3).flat_map(each).collect()
    };
    let within = |came: &[Keyed], key| -> Vec<u32> {
        let of_key = came.iter().filter(|event| event.0 == key);
        of_key.map(|event| event.1).collect()
    };
    let came = handled(1, Order::Fifo, events(&[1, 2, 3]))?;
    assert_eq!(came[..3], [(1, 0), (2, 0), (3, 0)]);
    let came = handled(1, Order::Lifo, events(&[1, 2, 3]))?;
    assert_eq!(came[0], (3, 0));
    for key in 1..=3 {
        assert_eq!(within(&came, key), [0, 1, 2]);
    }
    // A key's place is that of its oldest event.
    let mixed = vec![
        ((1, 0), 1),
        ((1, 1), 0),
        ((2, 0), 0),
        ((2, 1), 1),
        ((3, 0), 0),
    ];
    let came = handled(2, Order::Fifo, mixed)?;
    assert_eq!(came, [(2, 0), (3, 0), (1, 0), (1, 1), (2, 1)]);
    Ok(())
}

#[test]
fn a_lower_class_of_keys_is_not_starved() -> Result<(), BuildError> {
    let hot = (0..300).map(|n| ((1, n), 0));
    let events = std::iter::once(((2, 0), 1)).chain(hot).collect();
    let came = handled(2, Order::Fifo, events)?;
    let place = came.iter().position(|event| event.0 == 2);
    assert!(
        place.is_some_and(|place| place > 0 && place <= 65),
        "{place:?}"
    );
    Ok(())
}

/// Degrades all events.
struct Degrades;

impl Controller for Degrades {
    fn name(&self) -> &'static str {
        "degrades"
    }
    fn owns(&self) -> Owns {
        Owns::ADMISSION
    }
    fn cadence(&self) -> Cadence {
        Cadence::every_ns(1_000_000_000)
    }
    fn sample(&mut self, _: &Sample<'_>, _: u64) -> Settings {
        Settings::default()
    }
    fn on_enqueue(&mut self, _: &Arrival) -> Admission {
        Admission::Degrade
    }
}

#[test]
fn events_that_wait_for_their_key_are_degraded_once() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("keyed");
        let came = Noted::default();
        let note = came.clone();
        let stage = network
            .stage("stage")
            .controller(Degrades)
            .degrade(|n: &mut u32| *n /= 10)
            .keyed_by(|_: &u32| ())
            .key_queue(1)
            .handler(move |_| Ok(super::support::each(move |n: u32| note.add(n))))?;
        stage.pause();
        let sender = stage.sender();
        sender.try_send(1000).expect("it is let in");
        let error = sender.try_send(1000).expect_err("the key is full");
        assert_eq!((error.why, *error.event), (Refusal::KeyFull, 1000));
        let waiting = tussah::spawn(async move { sender.send(1000).await.is_ok() });
        idle().await;
        stage.resume();
        assert!(waiting.await.expect("no panic"));
        stage.drain().await;
        assert_eq!(came.take(), [100, 100]);
        Ok(())
    })
}

#[test]
fn try_send_reports_that_others_wait_for_the_key() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("keyed");
        let stage = network.stage("stage").keyed_by(|n: &u32| n % 2);
        let stage = stage.key_queue(1).handler(|_| Ok(each(|_: u32| ())))?;
        stage.pause();
        let sender = stage.sender();
        sender.try_send(1).expect("there is room");
        let waiting = sender.send(3);
        let error = sender.try_send(5).expect_err("the key is full");
        assert_eq!(error.why, Refusal::KeyFull);
        sender.try_send(2).expect("there is room for others");
        stage.resume();
        waiting.await.expect("there is room");
        stage.drain().await;
        adds_up(&stage);
        Ok(())
    })
}
