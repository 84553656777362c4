//! Finite queues: what is refused, who waits, and who goes on.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_lite::future::poll_once;
use tussah::stage::control::{
    Admission, Arrival, AutoServlets, Cadence, Controller, Mode, Owns, Sample, Settings,
};
use tussah::stage::{Batch, BuildError, Class, Event, Network, Reason, Refusal, Stage, shed};

use super::support::{Door, Noted, adds_up, by, each, until};
use crate::{idle, runtime};

#[test]
fn a_full_queue_gives_the_event_back_and_says_why() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("bounds");
        let stage = network
            .stage("stage")
            .queue(2)
            .handler(|_| Ok(each(|_: String| ())))?;
        stage.pause();
        let sender = stage.sender();
        for text in ["one", "two"] {
            sender.try_send(text.to_owned()).expect("there is room");
        }
        let event = Event::new("three".to_owned()).credits(2);
        let error = sender.try_send(event).expect_err("it is full");
        assert_eq!(error.why, Refusal::Full);
        assert_eq!(error.event.into_inner(), "three");
        let mut sending = pin!(sender.send("four".to_owned()));
        assert!(poll_once(&mut sending).await.is_none());
        stage.resume();
        sending.await.expect("there is room again");
        stage.drain().await;
        let error = sender
            .try_send("five".to_owned())
            .expect_err("it is closed");
        assert_eq!(error.why, Refusal::Closed);
        let error = sender
            .send("six".to_owned())
            .await
            .expect_err("it is closed");
        assert_eq!((error.why, &**error.event), (Refusal::Closed, "six"));
        let stats = stage.stats();
        assert_eq!((stats.finished, stats.refused, stats.arrived), (3, 3, 6));
        Ok(())
    })
}

/// A sender that is handed room for the smaller cost is refused and called again without end.
#[test]
fn a_waiting_event_costs_more_after_the_queue_has_grown() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("bounds");
        let stage = network
            .stage("stage")
            .queue(1)
            .handler(|_| Ok(each(|_: u32| ())))?;
        stage.pause();
        let sender = stage.sender();
        sender.try_send(0).expect("there is room");
        // It costs one credit while the whole queue has one.
        let mut sending = pin!(sender.send(Event::new(1).credits(3)));
        assert!(poll_once(&mut sending).await.is_none());
        stage.set_queue_max(3);
        assert!(poll_once(&mut sending).await.is_none());
        stage.set_queue_max(4);
        sending.await.expect("there is room for three credits");
        assert_eq!(stage.stats().queue_len, 4);
        Ok(())
    })
}

#[test]
fn many_senders_share_a_queue_of_one() -> Result<(), BuildError> {
    for workers in [1, 2] {
        runtime(workers).block_on(async {
            let network = Network::new("bounds");
            let came = Noted::default();
            let note = came.clone();
            let stage = network
                .stage("stage")
                .queue(1)
                .handler(move |_| Ok(each(move |n: u32| note.add(n))))?;
            let senders: Vec<_> = (0..20)
                .map(|from| {
                    let sender = stage.sender();
                    tussah::spawn(async move {
                        for n in 0..50 {
                            sender.send(from * 50 + n).await.expect("it is open");
                        }
                    })
                })
                .collect();
            for sender in senders {
                sender.await.expect("no panic");
            }
            stage.drain().await;
            let mut came = came.take();
            came.sort_unstable();
            assert_eq!(came, (0..1000).collect::<Vec<_>>());
            adds_up(&stage);
            assert_eq!(
                stage.stats().arrived,
                1000,
                "a sender that waits is one arrival"
            );
            Ok::<_, BuildError>(())
        })?;
    }
    Ok(())
}

/// A stage with a queue of one, which is full and paused.
fn full(network: &Network, came: &Noted<u32>) -> Result<Stage<u32>, BuildError> {
    let note = came.clone();
    network
        .stage("stage")
        .queue(1)
        .handler(move |_| Ok(each(move |n: u32| note.add(n))))?;
    let stage = network.find::<u32>("stage")?;
    stage.pause();
    stage.sender().try_send(0).expect("there is room");
    Ok(stage)
}

#[test]
fn a_sender_that_gives_up_passes_its_call_on() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("bounds");
        let came = Noted::default();
        let stage = full(&network, &came)?;
        let sender = stage.sender();
        let mut first = Box::pin(sender.send(1));
        assert!(poll_once(&mut first).await.is_none());
        let mut second = Box::pin(sender.send(2));
        assert!(poll_once(&mut second).await.is_none());
        // The first is called, and goes before it can come again.
        stage.resume();
        super::support::until(&stage, |stats| stats.queued == 0).await;
        drop(first);
        let sent = poll_once(&mut second).await;
        sent.expect("the first gives its room up")
            .expect("it is open");
        stage.drain().await;
        assert_eq!(came.take(), [0, 2]);
        // One that was never polled is as if it had not been.
        Ok(())
    })
}

#[test]
fn an_unawaited_send_is_withdrawn_and_does_not_block_others() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("bounds");
        let came = Noted::default();
        let stage = full(&network, &came)?;
        let sender = stage.sender();
        drop(sender.send(1));
        let mut second = Box::pin(sender.send(2));
        assert!(poll_once(&mut second).await.is_none());
        stage.resume();
        second.await.expect("there is room");
        stage.drain().await;
        assert_eq!(came.take(), [0, 2]);
        adds_up(&stage);
        Ok(())
    })
}

#[test]
fn waiting_senders_fail_when_the_stage_is_closed() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("bounds");
        let came = Noted::default();
        let stage = full(&network, &came)?;
        let waiting: Vec<_> = (1..5)
            .map(|n| {
                let sender = stage.sender();
                tussah::spawn(async move {
                    let error = sender.send(n).await.expect_err("it is closed");
                    (error.why, error.event.into_inner())
                })
            })
            .collect();
        idle().await;
        stage.drain().await;
        for (waiting, n) in waiting.into_iter().zip(1..) {
            assert_eq!(waiting.await.expect("no panic"), (Refusal::Closed, n));
        }
        Ok(())
    })
}

/// Sends an event for which the queue has no room, though it has room for others, and checks that
/// the waiting sender keeps no handler from running. An event that fits is queued at once, unless
/// it has to wait `behind` that sender.
fn waits_quietly(
    stage: impl FnOnce(&Network) -> Result<Stage<u32>, BuildError> + Send + 'static,
    queued: Vec<Event<u32>>,
    waits: Event<u32>,
    fits: Event<u32>,
    behind: bool,
) -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async move {
        let network = Network::new("bounds");
        let stage = stage(&network)?;
        stage.pause();
        let sender = stage.sender();
        let count = queued.len() as u64;
        for event in queued {
            sender.try_send(event).expect("there is room");
        }
        let waiting = stage.sender();
        let waiting = tussah::spawn(async move { waiting.send(waits).await.is_ok() });
        idle().await;
        assert_eq!(stage.stats().queued, count);
        let mut fitting = Box::pin(sender.send(fits));
        assert_eq!(poll_once(&mut fitting).await.is_none(), behind);
        stage.resume();
        if behind {
            fitting.await.expect("there is room");
        }
        assert!(waiting.await.expect("no panic"));
        stage.drain().await;
        adds_up(&stage);
        assert_eq!(stage.stats().finished, count + 2);
        Ok(())
    })
}

#[test]
fn a_sender_that_waits_for_much_room_does_not_stop_others() -> Result<(), BuildError> {
    let stage = |network: &Network| {
        let builder = network.stage("stage").queue(100);
        builder.handler(|_| Ok(each(|_: u32| ())))?;
        network.find("stage")
    };
    let queued = (0..30).map(Event::new).collect();
    // Else there would never be as much room at once.
    let (waits, fits) = (Event::new(30).credits(80), Event::new(31));
    waits_quietly(stage, queued, waits, fits, true)
}

#[test]
fn a_sender_that_waits_for_its_class_does_not_stop_others() -> Result<(), BuildError> {
    let stage = |network: &Network| {
        let builder = network.stage("stage").classes(2).class_queue(Class(1), 3);
        builder.handler(|_| Ok(each(|_: u32| ())))?;
        network.find("stage")
    };
    let queued = (0..3).map(|n| Event::new(n).class(Class(1))).collect();
    let waits = Event::new(3).class(Class(1));
    waits_quietly(stage, queued, waits, Event::new(4), false)
}

#[test]
fn a_class_has_a_bound_of_its_own() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("bounds");
        let stage = network
            .stage("stage")
            .classes(2)
            .class_queue(Class(1), 2)
            .handler(|_| Ok(each(|(): ()| ())))?;
        stage.pause();
        let sender = stage.sender();
        let of = |class| Event::new(()).class(Class(class));
        for _ in 0..2 {
            sender.try_send(of(1)).expect("there is room");
        }
        assert_eq!(sender.try_send(of(1)).expect_err("full").why, Refusal::Full);
        sender.try_send(of(0)).expect("the other class has room");
        assert_eq!(stage.stats().queued_by_class, [1, 2]);
        stage.drain().await;
        adds_up(&stage);
        Ok(())
    })
}

#[test]
fn an_event_may_cost_several_credits_and_more_than_there_are() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("bounds");
        let stage = network
            .stage("stage")
            .queue(10)
            .handler(|_| Ok(each(|(): ()| ())))?;
        stage.pause();
        let sender = stage.sender();
        let of = |credits| Event::new(()).credits(credits);
        sender.try_send(of(4)).expect("there is room");
        sender.try_send(of(6)).expect("there is room");
        assert_eq!(stage.stats().queue_len, 10);
        assert_eq!(sender.try_send(of(1)).expect_err("full").why, Refusal::Full);
        stage.resume();
        stage.settled().await;
        assert_eq!(stage.stats().queue_len, 0);
        stage.pause();
        sender.try_send(of(1000)).expect("an empty queue takes it");
        assert_eq!(stage.stats().queue_len, 10, "it counts as the whole queue");
        assert_eq!(sender.try_send(of(1)).expect_err("full").why, Refusal::Full);
        // What it was charged is what it gives back, though the bound is another by then.
        stage.set_queue_max(100);
        sender.try_send(of(90)).expect("there is room");
        stage.set_queue_max(5);
        assert_eq!(stage.stats().queue_len, 100);
        stage.resume();
        stage.settled().await;
        assert_eq!(stage.stats().queue_len, 0);
        adds_up(&stage);
        Ok(())
    })
}

#[test]
fn a_larger_bound_lets_waiting_senders_in() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("bounds");
        let came = Noted::default();
        let stage = full(&network, &came)?;
        let sender = stage.sender();
        let mut sending: Vec<_> = (1..4).map(|n| Box::pin(sender.send(n))).collect();
        for sending in &mut sending {
            assert!(poll_once(sending).await.is_none());
        }
        stage.set_queue_max(10);
        for sending in sending {
            sending.await.expect("there is room");
        }
        assert_eq!(stage.stats().queued, 4);
        stage.drain().await;
        Ok(())
    })
}

#[test]
fn a_sender_with_a_large_cost_goes_on_when_no_more_room_can_come() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("bounds");
        let door = Door::new();
        let at = door.clone();
        let stage = network
            .stage("stage")
            .queue(4)
            .servlets(1)
            .batch(1)
            .manual();
        let stage = stage.handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                let at = at.clone();
                Box::pin(async move {
                    batch.next();
                    at.pass().await;
                })
            }))
        })?;
        let sender = stage.sender();
        sender.try_send(0).expect("there is room");
        door.until(1).await;
        for n in 1..5 {
            sender.try_send(n).expect("there is room");
        }
        let mut sending: Vec<_> = (5..8).map(|n| Box::pin(sender.send(n))).collect();
        for sending in &mut sending {
            assert!(poll_once(sending).await.is_none());
        }
        // The next event's handler waits as well, perhaps for what the sender does then.
        door.let_through(1);
        door.until(2).await;
        let mut sending = sending.into_iter();
        sending
            .next()
            .expect("the first")
            .await
            .expect("it is open");
        stage.set_queue_max(5);
        sending
            .next()
            .expect("the second")
            .await
            .expect("it is open");
        assert_eq!(stage.stats().queued, 5);
        door.let_through(100);
        sending.next().expect("the last").await.expect("it is open");
        stage.drain().await;
        Ok(())
    })
}

#[test]
fn the_sender_chooses_what_to_do_when_refused() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("bounds");
        let came = Noted::default();
        let stage = full(&network, &came)?;
        let other = network.stage("other").handler(|_| Ok(each(|_: u32| ())))?;
        let (sender, redirect) = (stage.sender(), other.sender());
        let told = Noted::default();
        let tell = told.clone();
        let event = Event::new(1).on_drop(move |why| tell.add(why));
        sender.send_or(event, shed);
        assert_eq!(told.take(), [Reason::Shed]);
        sender.send_or(2, |event, why| {
            assert_eq!(why, Refusal::Full);
            redirect.send_or(event, |_, _| unreachable!("there is room"));
        });
        other.drain().await;
        assert_eq!(other.stats().finished, 1);
        stage.drain().await;
        assert_eq!((came.take(), stage.stats().refused), (vec![0], 2));
        Ok(())
    })
}

/// Admits only one event.
struct Once(bool);

impl Controller for Once {
    fn name(&self) -> &'static str {
        "once"
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
        if std::mem::replace(&mut self.0, true) {
            Admission::Reject
        } else {
            Admission::Admit
        }
    }
}

#[test]
fn the_room_of_a_rejected_sender_goes_to_the_next() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("bounds");
        let stage = network
            .stage("stage")
            .queue(1)
            .class_queue(Class(0), 1)
            .controller(Once(false))
            .handler(|_| Ok(each(|_: u32| ())))?;
        stage.pause();
        let sender = stage.sender();
        sender.try_send(0).expect("there is room");
        let (mut first, mut second) = (pin!(sender.send(1)), pin!(sender.send(2)));
        assert!(poll_once(&mut first).await.is_none());
        assert!(poll_once(&mut second).await.is_none());
        stage.resume();
        for sending in [&mut first, &mut second] {
            until(&stage, |stats| stats.in_service + stats.queued == 0).await;
            let sent = poll_once(sending).await.expect("the sender was woken");
            assert!(matches!(
                sent.expect_err("it is rejected").why,
                Refusal::Rejected("once")
            ));
        }
        Ok(())
    })
}

/// Degrades what comes when something is queued already, and rejects when there are three.
struct Strict;

impl Controller for Strict {
    fn name(&self) -> &'static str {
        "strict"
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
    fn on_enqueue(&mut self, arrival: &Arrival) -> Admission {
        match arrival.queue_len {
            0 => Admission::Admit,
            1 | 2 => Admission::Degrade,
            _ => Admission::Reject,
        }
    }
}

#[test]
fn a_target_decides_only_observes_or_is_off() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("bounds");
        let target = Duration::from_millis(100);
        let stage = |name, mode| network.stage::<u32>(name).target(target).overload(mode);
        for (name, mode, expected) in [
            ("on", Mode::On, Some(target)),
            ("observe", Mode::Observe, Some(target)),
            ("off", Mode::Off, None),
        ] {
            let built = stage(name, mode).handler(|_| Ok(each(|_| ())))?;
            let stats = built.stats();
            let names: Vec<_> = stats.controllers.iter().map(|one| one.0).collect();
            assert_eq!(
                (&names[..], stats.target),
                (&["auto", "seda-batch"][..], expected)
            );
        }
        // With a controller of its own, a stage has only the modes on and off.
        for (name, mode, expected) in [
            ("own on", Mode::On, Some(target)),
            ("own observe", Mode::Observe, None),
            ("own off", Mode::Off, None),
        ] {
            let servlets = AutoServlets::default();
            let built = stage(name, mode).controller(servlets);
            let built = built.handler(|_| Ok(each(|_| ())))?;
            assert_eq!(built.stats().target, expected, "{name}");
        }
        Ok(())
    })
}

#[test]
fn a_controller_degrades_and_rejects() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("bounds");
        let came = Noted::default();
        let note = came.clone();
        let stage = network
            .stage("stage")
            .controller(Strict)
            .degrade(|n: &mut u32| *n /= 10)
            .handler(move |_| Ok(each(move |n: u32| note.add(n))))?;
        stage.pause();
        let sender = stage.sender();
        for n in [10, 20] {
            sender.try_send(n).expect("it is let in");
        }
        sender.send(30).await.expect("it is let in");
        let error = sender.try_send(40).expect_err("it is rejected");
        assert_eq!((error.why, *error.event), (Refusal::Rejected("strict"), 40));
        let error = sender
            .send(50)
            .await
            .expect_err("it does not wait for that");
        assert_eq!(error.why, Refusal::Rejected("strict"));
        stage.drain().await;
        assert_eq!(came.take(), [10, 2, 3]);
        adds_up(&stage);
        Ok(())
    })
}

#[test]
fn a_sender_goes_on_in_a_handler_when_the_next_stage_has_room() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("bounds");
        let (door, came) = (Door::new(), Noted::default());
        let (at, note) = (door.clone(), came.clone());
        let last = network
            .stage("last")
            .queue(2)
            .batch(1)
            .servlets(1)
            .handler(move |_| {
                Ok(by(move |batch: &mut Batch<u32>| {
                    let (at, note) = (at.clone(), note.clone());
                    Box::pin(async move {
                        at.pass().await;
                        batch.drain().for_each(|n| note.add(n));
                    })
                }))
            })?;
        let next = last.clone();
        let first = network.stage("first").handler(move |edges| {
            let next = edges.to(&next).queue(2)?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let next = next.clone();
                Box::pin(async move {
                    while let Some(n) = batch.next() {
                        next.send(n).await.expect("it is open");
                    }
                })
            }))
        })?;
        for n in 0..10 {
            first.sender().try_send(n).expect("there is room");
        }
        door.until(1).await;
        idle().await;
        assert!(last.stats().queued <= 2, "the bound holds");
        assert_eq!(first.stats().waiting, 1);
        door.let_through(10);
        first.drain().await;
        last.drain().await;
        assert_eq!(came.take(), (0..10).collect::<Vec<_>>());
        Ok(())
    })
}

#[test]
fn a_sender_works_in_another_runtime() -> Result<(), BuildError> {
    let (here, there) = (runtime(1), runtime(1));
    let network = Network::on(here.handle(), "here");
    let came = Noted::default();
    let note = came.clone();
    let stage = network
        .stage("stage")
        .queue(2)
        .handler(move |_| Ok(each(move |n: u32| note.add(n))))?;
    let elsewhere = Network::on(there.handle(), "there");
    let sender = stage.sender();
    let relay = elsewhere.stage("relay").serial(move |_| {
        let sender = sender.clone();
        Ok(super::support::one(move |batch: &mut Batch<u32>| {
            let sender = sender.clone();
            Box::pin(async move {
                while let Some(n) = batch.next() {
                    sender.send(n).await.expect("it is open");
                }
            })
        }))
    })?;
    let sender = relay.sender();
    let all: std::pin::Pin<Box<dyn Future<Output = ()>>> = Box::pin(async {
        for n in 0..200 {
            sender.send(n).await.expect("it is open");
        }
        relay.drain().await;
        stage.drain().await;
    });
    futures_lite::future::block_on(all);
    assert_eq!(came.take(), (0..200).collect::<Vec<_>>());
    Ok(())
}
