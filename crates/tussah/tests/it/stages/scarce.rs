//! The resource for lack of which events are rejected, in the statistics and in the log.

use tussah::stage::control::{
    Admission, Arrival, Cadence, Controller, Owns, Resource, Sample, Settings,
};
use tussah::stage::{Batch, BuildError, Network, StageBuilder, shed};
use tussah::sync::Limit;

use super::support::{by, each, until};
use crate::runtime;

/// Rejects what finds three events in the stage, and changes the number of servlets each time.
pub(super) struct Three;

impl Controller for Three {
    fn name(&self) -> &'static str {
        "three"
    }

    fn owns(&self) -> Owns {
        Owns::SERVLETS | Owns::ADMISSION
    }

    fn cadence(&self) -> Cadence {
        Cadence {
            arrived: 1,
            ..Cadence::default()
        }
    }

    fn sample(&mut self, sample: &Sample<'_>, _now_ns: u64) -> Settings {
        Settings {
            servlets: Some(if sample.servlets.target == 7 { 8 } else { 7 }),
            ..Settings::default()
        }
    }

    fn on_enqueue(&mut self, arrival: &Arrival) -> Admission {
        match arrival.queue_len + arrival.in_service {
            ..3 => Admission::Admit,
            _ => Admission::Reject,
        }
    }
}

fn three(network: &Network, name: &str) -> StageBuilder<u32> {
    network.stage(name).batch(1).servlets(8).controller(Three)
}

#[test]
fn rejections_name_the_limit_that_handlers_wait_for() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let network = Network::new("scarce");
        let limit = Limit::new("db", 0);
        let used = limit.clone();
        let stage = three(&network, "query").handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                let limit = used.clone();
                Box::pin(async move {
                    // A wait of another thread is not one of the handler.
                    let other = limit.clone();
                    let other = tussah::spawn(async move { drop(other.acquire().await) });
                    let _permit = limit.acquire().await;
                    other.await.expect("it does not panic");
                    batch.drain().for_each(drop);
                })
            }))
        })?;
        let sender = stage.sender();
        for n in 0..3 {
            sender.try_send(n).expect("the controller admits three");
        }
        until(&stage, |stats| stats.waiting == 3).await;
        for n in 0..30 {
            sender.try_send(n).expect_err("there are three");
        }
        let by = stage.stats().rejected_by;
        let [(Resource::Unknown, first), (Resource::Limit(name), rest)] = &by[..] else {
            panic!("{by:?}");
        };
        assert_eq!((name.as_ref(), first + rest), ("db", 30));
        assert!(*rest > 20, "{by:?}");
        let log = stage.log();
        let last = log.iter().last().expect("servlets change each time");
        let limit_use = last.limit.as_ref().expect("one is scarce");
        assert_eq!(
            (&*limit_use.name, limit_use.permits, limit_use.in_use),
            ("db", 0, 0)
        );
        assert!(last.to_string().contains("0 of 0 in `db`, "), "{last}");
        // The first rejections were for lack of something unknown.
        assert!(log.iter().any(|decision| decision.limit.is_none()));
        // Once the permits are there, nobody waits for them.
        limit.set_permits(100);
        until(&stage, |stats| stats.finished == 3).await;
        for n in 0..60 {
            sender.send(n).await.expect("the stage is open");
            stage.settled().await;
        }
        assert_eq!(
            stage
                .log()
                .iter()
                .last()
                .and_then(|last| last.limit.clone()),
            None
        );
        Ok(())
    })
}

#[test]
fn rejections_name_workers_that_compute() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let network = Network::new("scarce");
        let stage = three(&network, "compute").handler(|_| {
            Ok(by(|batch: &mut Batch<u32>| {
                Box::pin(async move {
                    for n in batch.drain() {
                        std::hint::black_box((0..200_000 + n).fold(1_u32, u32::wrapping_mul));
                    }
                })
            }))
        })?;
        let sender = stage.sender();
        sender.send(1).await.expect("the stage is open");
        stage.settled().await;
        while stage.stats().refused < 10 {
            let _ = sender.try_send(1);
        }
        let by = stage.stats().rejected_by;
        assert!(
            by.iter()
                .all(|(resource, _)| *resource == Resource::Workers),
            "{by:?}"
        );
        Ok(())
    })
}

#[test]
fn rejections_name_what_events_wait_for_beyond_an_inner_path() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let (network, limit) = (Network::new("scarce"), Limit::new("db", 0));
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
        let inner = network.stage("inner").whole_path().handler(|edges| {
            let to = edges.to(&store).queue(10)?;
            Ok(each(move |n| to.send_or(n, shed)))
        })?;
        let outer = network
            .stage("outer")
            .whole_path()
            .servlets(8)
            .controller(Three)
            .handler(|edges| {
                let to = edges.to(&inner).queue(10)?;
                Ok(each(move |n| to.send_or(n, shed)))
            })?;
        let sender = outer.sender();
        for n in 0..3 {
            sender.try_send(n).expect("the controller admits three");
        }
        let rejects = |resource: &Resource| {
            for n in 0..30 {
                sender.try_send(n).expect_err("there are three");
            }
            let by = outer.stats().rejected_by;
            let found = by.iter().find(|(by, _)| by == resource);
            assert!(found.is_some_and(|(_, count)| *count > 20), "{by:?}");
        };
        until(&store, |stats| stats.queued == 3).await;
        rejects(&Resource::Stage("store".into()));
        store.resume();
        until(&store, |stats| stats.waiting == 3).await;
        rejects(&Resource::Limit("db".into()));
        limit.set_permits(1);
        outer.settled().await;
        assert_eq!(outer.stats().finished, 3);
        Ok(())
    })
}
