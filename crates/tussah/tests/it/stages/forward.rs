//! Forwarding whole batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tussah::stage::control::{Admission, Arrival, Cadence, Controller, Owns, Sample, Settings};
use tussah::stage::{Batch, BuildError, Event, Network, Refusal};

use super::support::{adds_up, by, each};
use crate::{by_hand, idle, runtime};

/// Rejects every other event, and counts how often it was asked.
struct Alternates(Arc<AtomicU64>);

impl Controller for Alternates {
    fn name(&self) -> &'static str {
        "alternates"
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
        if self.0.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            Admission::Reject
        } else {
            Admission::Admit
        }
    }
}

/// Counts how often it is asked for many at once.
struct ManyAtOnce(Arc<AtomicU64>);

impl Controller for ManyAtOnce {
    fn name(&self) -> &'static str {
        "many at once"
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
    fn on_enqueue_many(&mut self, _: &Arrival, most: u64) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed);
        most
    }
}

#[test]
fn events_after_a_traced_one_are_sent_in_batches_again() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let asked = Arc::new(AtomicU64::new(0));
        let network = Network::new("forward");
        let last = network.stage("last").manual();
        let last = last.controller(ManyAtOnce(Arc::clone(&asked)));
        let last = last.handler(|_| Ok(each(|_: u32| ())))?;
        let first = network.stage("first").servlets(1).manual();
        let first = first.handler(|edges| {
            let next = edges.to(&last).queue(100)?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let next = next.clone();
                Box::pin(async move {
                    next.forward(batch).await.expect("it is open");
                })
            }))
        })?;
        for trace in [0, 7, 0] {
            asked.store(0, Ordering::Relaxed);
            first.pause();
            for n in 0..50 {
                let trace = if n == 0 { trace } else { 0 };
                let event = Event::new(n).traced(trace);
                first.sender().try_send(event).expect("there is room");
            }
            first.resume();
            first.settled().await;
            last.settled().await;
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        Ok(())
    })
}

#[test]
fn a_controller_is_asked_once_for_each_event_that_is_collected() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let (asked, refused) = <(Arc<AtomicU64>, Arc<AtomicU64>)>::default();
        let network = Network::new("collect");
        let stage = network
            .stage("stage")
            .controller(Alternates(Arc::clone(&asked)))
            .handler(|_| Ok(each(|_: u64| ())))?;
        let (sender, counter) = (stage.sender(), Arc::clone(&refused));
        let first = network.stage("first").handler(|_| {
            Ok(each(move |event| {
                if sender.try_send(event).is_err() {
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            }))
        })?;
        for event in 0..100u64 {
            first.sender().send(event).await.expect("it is open");
        }
        first.drain().await;
        stage.drain().await;
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        // Turned away is every other; the last one that was asked for may not have come.
        assert_eq!(count(&refused), 50);
        assert!((100..=101).contains(&count(&asked)), "{}", count(&asked));
        assert_eq!((stage.stats().finished, stage.stats().refused), (50, 50));
        adds_up(&stage);
        Ok(())
    })
}

#[test]
fn a_controller_is_asked_for_each_event_once() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let asked = Arc::new(AtomicU64::new(0));
        let network = Network::new("forward");
        let stage = network
            .stage("stage")
            .controller(Alternates(Arc::clone(&asked)))
            .handler(|_| Ok(each(|_: u64| ())))?;
        let mut batch = Batch::of(0..100u64);
        let rejected = stage.sender().forward(&mut batch).await;
        assert_eq!((rejected, asked.load(Ordering::Relaxed)), (Ok(50), 100));
        stage.drain().await;
        assert_eq!((stage.stats().finished, stage.stats().refused), (50, 50));
        adds_up(&stage);
        Ok(())
    })
}

#[test]
fn unsent_events_stay_in_the_batch_when_the_future_is_dropped() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("forward");
        let stage = network
            .stage("stage")
            .queue(1)
            .handler(|_| Ok(each(|_: u32| ())))?;
        stage.pause();
        stage.sender().try_send(0).expect("there is room");
        let mut batch = Batch::of([1, 2, 3]);
        let sender = stage.sender();
        let forwarding = sender.forward(&mut batch);
        let given_up = tussah::time::timeout(Duration::from_millis(1), forwarding).await;
        assert!(given_up.is_err());
        assert_eq!(batch.drain().collect::<Vec<_>>(), [1, 2, 3]);
        Ok(())
    })
}

#[test]
fn an_event_that_waited_for_its_key_is_returned_unchanged() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on_spawned(async move {
        let network = Network::new("forward");
        let stage = network.stage("stage").keyed_by(|_: &u32| ()).key_queue(1);
        let stage = stage.handler(|_| Ok(each(|_: u32| ())))?;
        stage.pause();
        let sender = stage.sender();
        sender.try_send(0).expect("there is room");
        clock.advance(Duration::from_secs(1));
        let forwarding = tussah::spawn(async move {
            let mut batch = Batch::of([1, 2]);
            let why = sender.forward(&mut batch).await;
            (why, batch.len())
        });
        idle().await;
        stage.destroy(Duration::ZERO).await;
        let left = forwarding.await.expect("no panic");
        assert_eq!(left, (Err(Refusal::Closed), 2));
        Ok(())
    })
}

#[test]
fn a_deadline_does_not_begin_with_a_refusal() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on_spawned(async move {
        let network = Network::new("forward");
        let stage = network.stage("stage").keyed_by(|_: &u32| ()).key_queue(1);
        let stage = stage.handler(|_| Ok(each(|_: u32| ())))?;
        stage.pause();
        let sender = stage.sender();
        sender.try_send(0).expect("there is room");
        let event = Event::new(1).within(Duration::from_secs(1));
        let refused = sender.try_send(event).expect_err("the key is full");
        clock.advance(Duration::from_secs(2));
        stage.resume();
        stage.settled().await;
        sender.try_send(refused.event).expect("there is room");
        stage.drain().await;
        assert_eq!((stage.stats().finished, stage.stats().expired), (2, 0));
        Ok(())
    })
}
