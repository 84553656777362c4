//! The order in which events are handled: first in, first out for one sender and one class.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tussah::stage::{Batch, BuildError, Class, Event, Network, Sender};
use tussah::yield_now;

use super::support::{Noted, adds_up, by, each, one};
use crate::runtime;

/// How many events each sender sends.
const EACH: u32 = 500;

/// The sender, the class and the position of an event.
type Numbered = (u8, u8, u32);

/// The `n`-th event of a sender: of two classes, now and then one with a price.
fn numbered(from: u8, n: u32) -> Event<Numbered> {
    let class = u8::from(n % 3 == 1);
    let event = Event::new((from, class, n)).class(Class(class));
    if n % 7 == 3 { event.credits(2) } else { event }
}

/// Checks that of each sender and class everything came, in its order.
fn check_order(came: Vec<Numbered>, senders: usize) {
    let mut last = HashMap::new();
    assert_eq!(came.len(), senders * EACH as usize);
    for (from, class, n) in came {
        let before = last.insert((from, class), n);
        assert!(
            before.is_none_or(|before| before < n),
            "{n} after {before:?} of sender {from}, class {class}"
        );
    }
}

/// Sends on what it is told to, collected with what else its batch sends.
async fn produce(batch: &mut Batch<(u8, u32)>, next: &Sender<Numbered>) {
    for (from, n) in batch.drain() {
        next.send(numbered(from, n))
            .await
            .expect("the next stage is open");
    }
}

fn check(workers: usize, batch: usize, queue: u64) -> Result<(), BuildError> {
    runtime(workers).block_on(async {
        let network = Network::new("order");
        let came = Noted::default();
        let note = came.clone();
        let sink = network
            .stage("sink")
            .classes(2)
            .queue(queue)
            .batch(batch)
            .serial(move |_| {
                let note = note.clone();
                Ok(each(move |event| note.add(event)))
            })?;
        let mut sources = Vec::new();
        for from in 0..3 {
            let sink = sink.clone();
            let source = network
                .stage(format!("source {from}"))
                .batch(batch)
                .serial(move |edges| {
                    let next = edges.to(&sink).queue(1)?;
                    Ok(one(move |batch: &mut Batch<(u8, u32)>| {
                        let next = next.clone();
                        Box::pin(async move { produce(batch, &next).await })
                    }))
                })?;
            sources.push((from, source));
        }
        // A fourth sender is no stage.
        let direct = sink.sender();
        let fourth = tussah::spawn(async move {
            for n in 0..EACH {
                direct.send(numbered(3, n)).await.expect("the sink is open");
            }
        });
        let senders: Vec<_> = sources
            .iter()
            .map(|(from, source)| {
                let (from, sender) = (*from, source.sender());
                tussah::spawn(async move {
                    for n in 0..EACH {
                        sender.send((from, n)).await.expect("the source is open");
                    }
                })
            })
            .collect();
        for sender in senders.into_iter().chain([fourth]) {
            sender.await.expect("no panic");
        }
        for (_, source) in &sources {
            source.drain().await;
            adds_up(source);
        }
        sink.drain().await;
        adds_up(&sink);
        check_order(came.take(), 4);
        Ok(())
    })
}

#[test]
fn events_of_one_sender_and_class_are_handled_in_order() -> Result<(), BuildError> {
    for workers in [1, 2] {
        for batch in [1, 100] {
            for queue in [1, 7, 1024] {
                check(workers, batch, queue)?;
            }
        }
    }
    Ok(())
}

#[test]
fn the_first_class_is_served_first_and_the_last_is_not_starved() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("classes");
        let came = Noted::default();
        let note = came.clone();
        let stage = network
            .stage("stage")
            .classes(3)
            .batch(1)
            .serial(move |_| {
                let note = note.clone();
                Ok(each(move |class: u8| note.add(class)))
            })?;
        stage.pause();
        let sender = stage.sender();
        for class in [2, 1, 0] {
            for _ in 0..300 {
                sender
                    .try_send(Event::new(class).class(Class(class)))
                    .expect("there is room");
            }
        }
        assert_eq!(stage.stats().queued_by_class, [300, 300, 300]);
        stage.resume();
        stage.settled().await;
        let came = came.take();
        assert_eq!(came.len(), 900);
        assert!(came[..60].iter().all(|class| *class == 0), "{came:?}");
        // While the first class has events, each of the others gets its turn after 64 of those
        // above it.
        let first = |class| came.iter().position(|one| *one == class).expect("it came");
        assert!(first(1) <= 64, "{came:?}");
        assert!(first(2) <= 65 + 1, "{came:?}");
        let of_last = came[..300].iter().filter(|class| **class == 2).count();
        assert!(of_last >= 3, "{of_last}");
        Ok(())
    })
}

#[test]
fn classes_with_shares_are_served_in_proportion() -> Result<(), BuildError> {
    for has_keys in [false, true] {
        let came = by_shares(has_keys)?;
        // While all of them have events.
        for (class, served) in [(0, 400), (1, 200), (2, 100)] {
            let of_class = |one: &&(u8, u32)| one.0 == class;
            let first = came[..700].iter().filter(of_class);
            assert_eq!(first.count(), served, "class {class}");
            let all = came.iter().filter(of_class).map(|one| one.1);
            assert!(all.eq(0..400), "class {class}");
        }
        // The first class has no more events, and the two others divide its share.
        let second = came[700..1000].iter().filter(|one| one.0 == 1).count();
        assert_eq!(second, 200);
    }
    Ok(())
}

/// Queues 400 events of each of three classes with shares, and returns the order in which they
/// were handled.
fn by_shares(has_keys: bool) -> Result<Vec<(u8, u32)>, BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("classes");
        let came = Noted::default();
        let note = came.clone();
        let mut builder = network
            .stage("stage")
            .class_shares(&[4, 2, 1])
            .queue(1200)
            .batch(1)
            .servlets(1);
        if has_keys {
            builder = builder.keyed_by(|event: &(u8, u32)| *event);
        }
        let stage = builder.handler(move |_| Ok(each(move |event| note.add(event))))?;
        stage.pause();
        let sender = stage.sender();
        for class in [2, 1, 0] {
            for n in 0..400 {
                let event = Event::new((class, n)).class(Class(class));
                sender.try_send(event).expect("there is room");
            }
        }
        stage.resume();
        stage.drain().await;
        adds_up(&stage);
        Ok(came.take())
    })
}

#[test]
fn a_class_pays_for_the_events_of_other_classes_that_its_keys_return() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("classes");
        let came = Noted::default();
        let note = came.clone();
        let builder = network.stage("stage").class_shares(&[3, 1]).batch(10);
        let builder = builder.keyed_by(|event: &(u8, u32)| event.1);
        // The handler takes one event, and the others return to their key.
        let stage = builder.servlets(1).handler(|_| {
            Ok(by(move |batch: &mut Batch<(u8, u32)>| {
                note.add(batch.next().expect("a batch has an event").0);
                Box::pin(async {})
            }))
        })?;
        stage.pause();
        let sender = stage.sender();
        for key in 0..40 {
            let first = [(0, key), (1, 100 + key)];
            for event in first.into_iter().chain([(1, key); 9]) {
                let event = Event::new(event).class(Class(event.0));
                sender.try_send(event).expect("there is room");
            }
        }
        stage.resume();
        stage.drain().await;
        adds_up(&stage);
        let first = came.take()[..40]
            .iter()
            .filter(|class| **class == 0)
            .count();
        assert_eq!(first, 30);
        Ok(())
    })
}

#[test]
fn a_class_pays_nothing_for_events_that_are_cancelled_in_a_batch() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("classes");
        let came = Noted::default();
        let note = came.clone();
        let mut handles = HashMap::new();
        let events = (0..100)
            .flat_map(|n| [(0, n), (1, n)])
            .map(|named: (u8, u32)| {
                let (event, handle) = Event::new(named).class(Class(named.0)).cancellable();
                handles.insert(named, handle);
                event
            });
        let events: Vec<_> = events.collect();
        let handles = Arc::new(Mutex::new(handles));
        // The handler takes one event of each batch, and cancels the other.
        let builder = network.stage("stage").class_shares(&[1, 1]).batch(2);
        let stage = builder.serial(move |_| {
            let (note, handles) = (note.clone(), Arc::clone(&handles));
            Ok(one(move |batch: &mut Batch<(u8, u32)>| {
                note.add(batch.next().expect("a batch has an event").0);
                for other in batch.events_mut() {
                    handles.lock()[&**other].cancel();
                }
                assert_eq!(batch.next(), None);
                Box::pin(yield_now())
            }))
        })?;
        stage.pause();
        for event in events {
            stage.sender().try_send(event).expect("there is room");
        }
        stage.resume();
        stage.drain().await;
        adds_up(&stage);
        let first = came.take()[..20]
            .iter()
            .filter(|class| **class == 1)
            .count();
        assert_eq!(first, 10);
        Ok(())
    })
}

#[test]
#[should_panic(expected = "a stage has 1 to 8 classes; asked were 0 shares")]
fn a_stage_has_at_least_one_share() {
    let runtime = runtime(1);
    runtime.block_on(async {
        drop(
            Network::new("classes")
                .stage::<()>("stage")
                .class_shares(&[]),
        )
    });
}

#[test]
fn a_class_that_the_stage_does_not_have_counts_as_the_last() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("classes");
        let stage = network
            .stage("stage")
            .classes(2)
            .handler(|_| Ok(each(|(): ()| ())))?;
        stage.pause();
        let event = Event::new(()).class(Class(200));
        stage.sender().try_send(event).expect("there is room");
        assert_eq!(stage.stats().queued_by_class, [0, 1]);
        stage.drain().await;
        Ok(())
    })
}
