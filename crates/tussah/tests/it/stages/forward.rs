//! What is sent on by the batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tussah::stage::control::{Admission, Arrival, Cadence, Controller, Owns, Sample, Settings};
use tussah::stage::{Batch, BuildError, Network};

use super::support::{adds_up, each};
use crate::runtime;

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

#[test]
fn a_controller_is_asked_once_for_each_event_that_is_collected() -> Result<(), BuildError> {
    runtime(1).block_on(async {
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
        let turned_away = stage.sender().forward(&mut batch).await;
        assert_eq!((turned_away, asked.load(Ordering::Relaxed)), (Ok(50), 100));
        stage.drain().await;
        assert_eq!((stage.stats().finished, stage.stats().refused), (50, 50));
        adds_up(&stage);
        Ok(())
    })
}
