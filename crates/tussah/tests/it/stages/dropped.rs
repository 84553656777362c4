//! The callbacks and reasons of events that end without having been handled.

use std::time::Duration;

use tussah::stage::control::{
    Admission, Arrival, Cadence, Controller, Departure, Owns, Sample, Settings, Verdict,
};
use tussah::stage::{Batch, BuildError, Event, Network, Reason, Refusal, Stage};

use super::support::{Door, Noted, adds_up, by, each};
use crate::{by_hand, idle, runtime};

/// The reports of drop callbacks: reason, event and stage.
type Reports = Noted<(&'static str, u32, Reason)>;

/// An event that reports its end.
fn reporting(n: u32, reports: &Reports) -> Event<u32> {
    let reports = reports.clone();
    Event::new(n).on_drop(move |reason| reports.add(("event", n, reason)))
}

/// A callback for a stage.
fn stage_callback(reports: &Reports) -> impl Fn(u32, Reason) + Send + Sync + 'static {
    let reports = reports.clone();
    move |n, reason| reports.add(("stage", n, reason))
}

/// Sheds each event whose turn has come.
struct Sheds;

impl Controller for Sheds {
    fn name(&self) -> &'static str {
        "sheds"
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
        Admission::Admit
    }
    fn on_dequeue(&mut self, _: &Departure) -> Verdict {
        Verdict::Shed
    }
}

#[test]
fn events_that_a_controller_sheds_are_reported() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("dropped");
        let reports = Reports::default();
        let stage = network
            .stage("stage")
            .controller(Sheds)
            .on_drop(stage_callback(&reports))
            .handler(|_| Ok(each(|_: u32| unreachable!("all are shed"))))?;
        let sender = stage.sender();
        sender
            .try_send(reporting(1, &reports))
            .expect("there is room");
        sender.try_send(2).expect("there is room");
        stage.settled().await;
        reports.until(3).await;
        assert_eq!(
            reports.take(),
            [
                ("stage", 1, Reason::Shed),
                ("event", 1, Reason::Shed),
                ("stage", 2, Reason::Shed)
            ]
        );
        let stats = stage.stats();
        assert_eq!((stats.shed, stats.finished), (2, 0));
        adds_up(&stage);
        Ok(())
    })
}

#[test]
fn events_past_their_deadline_are_dropped() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let network = Network::new("dropped");
        let (reports, came) = (Reports::default(), Noted::default());
        let note = came.clone();
        let stage = network
            .stage("stage")
            .on_drop(stage_callback(&reports))
            .handler(move |_| Ok(each(move |n: u32| note.add(n))))?;
        stage.pause();
        let sender = stage.sender();
        let second = Duration::from_secs(1);
        let late = reporting(1, &reports).within(second);
        sender.try_send(late).expect("there is room");
        sender.try_send(2).expect("there is room");
        let in_time = reporting(3, &reports).within(2 * second);
        sender.try_send(in_time).expect("there is room");
        clock.advance(second);
        stage.resume();
        stage.drain().await;
        assert_eq!(came.take(), [2, 3]);
        reports.until(2).await;
        assert_eq!(
            reports.take(),
            [("stage", 1, Reason::Expired), ("event", 1, Reason::Expired)]
        );
        assert_eq!(stage.stats().expired, 1);
        adds_up(&stage);
        Ok(())
    })
}

#[test]
fn a_deadline_holds_through_a_pipeline() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let network = Network::new("dropped");
        let reports = Reports::default();
        let last = network
            .stage("last")
            .on_drop(stage_callback(&reports))
            .handler(|_| Ok(each(|_: u32| unreachable!("it is too late by now"))))?;
        last.pause();
        let next = last.clone();
        let first = network.stage("first").handler(move |edges| {
            let next = edges.to(&next).queue(1)?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let next = next.clone();
                Box::pin(async move {
                    while let Some(event) = batch.next_event() {
                        next.send(event.map(|n| n + 1)).await.expect("it is open");
                    }
                })
            }))
        })?;
        let event = reporting(1, &reports).within(Duration::from_secs(1));
        first.sender().try_send(event).expect("there is room");
        clock.advance(Duration::from_millis(999));
        first.drain().await;
        clock.advance(Duration::from_millis(1));
        last.drain().await;
        reports.until(2).await;
        assert_eq!(
            reports.take(),
            [("stage", 2, Reason::Expired), ("event", 1, Reason::Expired)]
        );
        Ok(())
    })
}

#[test]
fn a_deadline_counts_from_the_send_and_not_from_the_begin_of_the_run() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let network = Network::new("dropped");
        clock.advance(Duration::from_secs(1));
        let (came, door) = (Noted::default(), Door::new());
        let (note, at) = (came.clone(), door.clone());
        let last = network.stage("last").servlets(1).handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                let (note, at) = (note.clone(), at.clone());
                Box::pin(async move {
                    batch.drain().for_each(|n| note.add(n));
                    at.pass().await;
                })
            }))
        })?;
        let (next, passes) = (last.clone(), std::sync::Arc::new(clock));
        let first = network.stage("first").manual().serial(move |edges| {
            let (next, passes) = (edges.to(&next).queue(1)?, passes.clone());
            Ok(super::support::one(move |batch: &mut Batch<u32>| {
                let (next, passes) = (next.clone(), passes.clone());
                Box::pin(async move {
                    for n in batch.drain() {
                        let event = Event::new(n).within(Duration::from_secs(1));
                        next.send(event).await.expect("it is open");
                        passes.advance(Duration::from_millis(600));
                    }
                })
            }))
        })?;
        // As long as the next stage is at work, what is sent to it is collected.
        last.sender().try_send(100).expect("there is room");
        door.until(1).await;
        first.pause();
        for n in 0..4 {
            first.sender().try_send(n).expect("there is room");
        }
        first.resume();
        first.drain().await;
        door.let_through(2);
        last.drain().await;
        // 600 ms pass after each, so that the last alone is young enough.
        assert_eq!(came.take(), [100, 3]);
        assert_eq!(last.stats().expired, 3);
        Ok(())
    })
}

#[test]
fn events_taken_by_a_panicking_handler_are_reported_and_the_rest_is_handled()
-> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("dropped");
        let (reports, came) = (Reports::default(), Noted::default());
        let note = came.clone();
        let stage = network
            .stage("stage")
            .on_drop(stage_callback(&reports))
            .handler(move |_| {
                Ok(by(move |batch: &mut Batch<u32>| {
                    let note = note.clone();
                    Box::pin(async move {
                        while let Some(n) = batch.next() {
                            assert_ne!(n, 3, "expected: three is too much");
                            if n == 1 {
                                batch.settle();
                            }
                            note.add(n);
                        }
                    })
                }))
            })?;
        stage.pause();
        for n in 0..6 {
            stage
                .sender()
                .try_send(reporting(n, &reports))
                .expect("room");
        }
        stage.resume();
        stage.drain().await;
        assert_eq!(came.take(), [0, 1, 2, 4, 5]);
        assert_eq!(
            reports.take(),
            [
                ("event", 2, Reason::Panicked),
                ("event", 3, Reason::Panicked)
            ]
        );
        let stats = stage.stats();
        assert_eq!((stats.panicked, stats.lost, stats.finished), (1, 2, 6));
        adds_up(&stage);
        Ok(())
    })
}

#[test]
fn an_event_taken_with_its_envelope_reports_the_panic() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("dropped");
        let reports = Reports::default();
        let stage = network.stage("stage").servlets(1).handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                Box::pin(async move {
                    let dropped = batch.next_event();
                    drop(dropped);
                    let held = batch.next_event();
                    tussah::yield_now().await;
                    assert!(held.is_none(), "expected: it holds an event");
                })
            }))
        })?;
        stage.pause();
        for n in 0..2 {
            stage
                .sender()
                .try_send(reporting(n, &reports))
                .expect("room");
        }
        stage.resume();
        stage.drain().await;
        // The first was dropped by its owner.
        assert_eq!(reports.take(), [("event", 1, Reason::Panicked)]);
        Ok(())
    })
}

#[test]
fn destroying_a_stage_reports_its_queued_events() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        for keyed in [false, true] {
            let network = Network::new("dropped");
            let reports = Reports::default();
            let mut builder = network.stage("stage").on_drop(stage_callback(&reports));
            if keyed {
                builder = builder.keyed_by(|n: &u32| *n);
            }
            let stage = builder.handler(|_| Ok(each(|_: u32| unreachable!("it is paused"))))?;
            stage.pause();
            for n in 0..3 {
                stage
                    .sender()
                    .try_send(reporting(n, &reports))
                    .expect("room");
            }
            let kept = stage.clone();
            assert_eq!(stage.destroy(Duration::ZERO).await, 3);
            let mut reports = reports.take();
            reports.sort_by_key(|(_, n, _)| *n);
            let both = |n| ["stage", "event"].map(|who| (who, n, Reason::ShutDown));
            assert_eq!(reports, (0..3).flat_map(both).collect::<Vec<_>>());
            let stats = kept.stats();
            assert_eq!((stats.queued, stats.queue_len, stats.keys), (0, 0, 0));
            kept.settled().await;
        }
        Ok(())
    })
}

#[test]
fn events_left_in_a_batch_of_a_destroyed_stage_are_reported() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        for keyed in [false, true] {
            let network = Network::new("dropped");
            let (reports, door) = (Reports::default(), Door::new());
            let at = door.clone();
            let mut builder = network
                .stage("stage")
                .on_drop(stage_callback(&reports))
                .servlets(1);
            if keyed {
                builder = builder.keyed_by(|_: &u32| 0);
            }
            let stage = builder.handler(move |_| {
                Ok(by(move |batch: &mut Batch<u32>| {
                    let at = at.clone();
                    Box::pin(async move {
                        batch.next();
                        at.pass().await;
                    })
                }))
            })?;
            stage.pause();
            for n in 0..3 {
                stage
                    .sender()
                    .try_send(reporting(n, &reports))
                    .expect("room");
            }
            stage.resume();
            door.until(1).await;
            let kept = stage.clone();
            assert_eq!(
                stage.destroy(Duration::ZERO).await,
                0,
                "all are in the batch"
            );
            door.let_through(1);
            kept.settled().await;
            idle().await;
            let both = |n| ["stage", "event"].map(|who| (who, n, Reason::ShutDown));
            assert_eq!(reports.take(), (1..3).flat_map(both).collect::<Vec<_>>());
            assert_eq!(kept.stats().queued, 0);
        }
        Ok(())
    })
}

#[test]
fn events_collected_for_a_destroyed_stage_are_reported() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("dropped");
        let (reports, door) = (Reports::default(), Door::new());
        let at = door.clone();
        let last = network
            .stage("last")
            .on_drop(stage_callback(&reports))
            .servlets(1)
            .handler(move |_| {
                Ok(by(move |batch: &mut Batch<u32>| {
                    let at = at.clone();
                    Box::pin(async move {
                        batch.next();
                        at.pass().await;
                    })
                }))
            })?;
        // One is in service, so that what is sent next is collected.
        last.sender().try_send(0).expect("there is room");
        door.until(1).await;
        let (next, report) = (last.clone(), reports.clone());
        let ends: std::sync::Arc<parking_lot::Mutex<Option<Stage<u32>>>> =
            std::sync::Arc::new(parking_lot::Mutex::new(network.find("last").ok()));
        let first = network.stage("first").handler(move |edges| {
            let next = edges.to(&next).queue(1)?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let (next, report, ends) = (next.clone(), report.clone(), ends.clone());
                Box::pin(async move {
                    let n = batch.next().expect("an event");
                    next.send(reporting(n, &report)).await.expect("it is open");
                    let stage = ends.lock().take().expect("once");
                    stage.destroy(Duration::ZERO).await;
                })
            }))
        })?;
        first.sender().try_send(7).expect("there is room");
        first.drain().await;
        door.let_through(1);
        last.settled().await;
        idle().await;
        assert_eq!(
            reports.take(),
            [
                ("stage", 7, Reason::ShutDown),
                ("event", 7, Reason::ShutDown)
            ]
        );
        Ok(())
    })
}

#[test]
fn a_runtime_that_ends_reports_queued_events() -> Result<(), BuildError> {
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let (reports, door) = (Reports::default(), Door::new());
        let at = door.clone();
        let network = Network::on(runtime.handle(), "dropped");
        let stage = network
            .stage("stage")
            .batch(2)
            .servlets(1)
            .on_drop(stage_callback(&reports))
            .handler(move |_| {
                Ok(by(move |batch: &mut Batch<u32>| {
                    let at = at.clone();
                    Box::pin(async move {
                        batch.next();
                        at.pass().await;
                    })
                }))
            })?;
        stage.pause();
        let sender = stage.sender();
        for n in 0..5 {
            sender
                .try_send(reporting(n, &reports))
                .expect("there is room");
        }
        stage.resume();
        runtime.block_on(door.until(1));
        drop(runtime);
        // The first was with the handler, whose future was dropped; the others were queued.
        let mut ended = reports.take();
        ended.sort_by_key(|(_, n, _)| *n);
        let both = |n| ["stage", "event"].map(|who| (who, n, Reason::ShutDown));
        let expected: Vec<_> = (0..5).flat_map(both).skip(1).collect();
        assert_eq!(ended, expected);
        assert_eq!(stage.stats().in_service, 0);
        // Nobody is left to handle what comes now.
        sender.send_or(reporting(6, &reports), |event, _| drop(event));
        assert_eq!(stage.stats().queued, 0);
    }
    Ok(())
}

#[test]
fn events_sent_after_the_runtime_has_ended_are_refused_or_reported() -> Result<(), BuildError> {
    let runtime = runtime(1);
    let network = Network::on(runtime.handle(), "dropped");
    let reports = Reports::default();
    let stage = network
        .stage("stage")
        .on_drop(stage_callback(&reports))
        .handler(|_| Ok(each(|_: u32| ())))?;
    drop(runtime);
    let sender = stage.sender();
    let refused = sender.try_send(reporting(1, &reports)).is_err();
    let reports = reports.take();
    assert!(refused || reports.len() == 2, "{reports:?}");
    assert!(sender.try_send(2).is_err(), "by now it is known");
    Ok(())
}

#[test]
fn a_stage_that_cannot_get_a_handler_reports_its_queued_events() -> Result<(), BuildError> {
    let runtime = runtime(1);
    let network = Network::on(runtime.handle(), "dropped");
    let reports = Reports::default();
    let declared = network
        .stage("stage")
        .on_drop(stage_callback(&reports))
        .declare()?;
    let sender = declared.stage().sender();
    sender
        .try_send(reporting(1, &reports))
        .expect("there is room");
    drop(network);
    assert_eq!(reports.len(), 0);
    drop(declared);
    let both = ["stage", "event"].map(|who| (who, 1, Reason::ShutDown));
    assert_eq!(reports.take(), both);
    let late = sender
        .try_send(reporting(2, &reports))
        .expect_err("it is closed");
    assert_eq!(late.why, Refusal::Closed);
    Ok(())
}

#[test]
fn a_panic_in_a_drop_callback_is_contained() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("dropped");
        let reports = Reports::default();
        let stage = network
            .stage("stage")
            .on_drop(|_: u32, _| panic!("expected: a callback of a stage"))
            .handler(|_| Ok(each(|_: u32| ())))?;
        stage.pause();
        let event = Event::new(1).on_drop(|_| panic!("expected: a callback of an event"));
        stage.sender().try_send(event).expect("there is room");
        stage
            .sender()
            .try_send(reporting(2, &reports))
            .expect("room");
        assert_eq!(stage.destroy(Duration::ZERO).await, 2);
        assert_eq!(reports.take(), [("event", 2, Reason::ShutDown)]);
        Ok(())
    })
}

/// Panics when it is dropped.
struct Loud;

impl Drop for Loud {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "expected: a handler is dropped");
    }
}

#[test]
fn a_handler_that_panics_in_its_drop_does_not_suppress_reports() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("dropped");
        let (reports, loud) = (Reports::default(), Loud);
        let stage = network.stage("stage").on_drop(stage_callback(&reports));
        stage.handler(move |_| Ok(each(move |_: u32| assert!(size_of_val(&loud) == 0))))?;
        let stage = network.find::<u32>("stage")?;
        stage.pause();
        stage.sender().try_send(1).expect("there is room");
        assert_eq!(stage.destroy(Duration::ZERO).await, 1);
        assert_eq!(reports.take(), [("stage", 1, Reason::ShutDown)]);
        Ok(())
    })
}

/// A stage with one servlet, which waits with an event: what is sent to it is collected.
async fn held(network: &Network, name: &str) -> Result<(Stage<u32>, Door), BuildError> {
    let door = Door::new();
    let at = door.clone();
    let stage = network.stage(name).servlets(1).manual().batch(1);
    stage.handler(move |_| {
        Ok(by(move |batch: &mut Batch<u32>| {
            let at = at.clone();
            Box::pin(async move {
                batch.next();
                at.pass().await;
            })
        }))
    })?;
    let stage = network.find::<u32>(name)?;
    stage.sender().try_send(0).expect("there is room");
    door.until(1).await;
    Ok((stage, door))
}

#[test]
fn events_sent_by_a_drop_callback_during_a_hand_over_are_handed_over_too() -> Result<(), BuildError>
{
    runtime(1).block_on_spawned(async {
        let network = Network::new("dropped");
        let (last, _door) = held(&network, "last").await?;
        let (answers, door) = held(&network, "answers").await?;
        let (next, answer) = (last.clone(), answers.sender());
        let ends = std::sync::Arc::new(parking_lot::Mutex::new(Some(last)));
        let first = network.stage("first").handler(move |edges| {
            let next = edges.to(&next).queue(1)?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let (next, answer, ends) = (next.clone(), answer.clone(), ends.clone());
                Box::pin(async move {
                    let n = batch.next().expect("an event");
                    let event =
                        Event::new(n).on_drop(move |_| answer.try_send(n).expect("there is room"));
                    next.send(event).await.expect("it is open");
                    let stage = ends.lock().take().expect("once");
                    stage.destroy(Duration::ZERO).await;
                })
            }))
        })?;
        first.sender().try_send(7).expect("there is room");
        first.drain().await;
        let stats = answers.stats();
        assert_eq!((stats.queued, stats.queue_len), (1, 1));
        door.let_through(2);
        answers.drain().await;
        Ok(())
    })
}
