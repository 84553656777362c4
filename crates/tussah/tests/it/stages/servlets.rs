//! How many batches are handled at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_lite::future::{block_on, zip};
use parking_lot::Mutex;
use tussah::stage::control::{
    AutoServlets, AutoTarget, Cadence, Controller, Owns, Sample, Settings, WhileAllWait, Why,
};
use tussah::stage::{Batch, BuildError, Network, Stage, StageBuilder};
use tussah::sync::Limit;

use super::support::{Door, adds_up, by, comes, each, one};
use crate::{by_hand, idle, runtime};

#[test]
fn servlets_bound_the_batches_in_flight() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("servlets");
        let door = Door::new();
        let at = door.clone();
        let stage = network.stage("waits").batch(1).servlets(3).manual();
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
        for n in 0..8 {
            sender.try_send(n).expect("there is room");
        }
        door.until(3).await;
        idle().await;
        let stats = stage.stats();
        assert_eq!(door.came(), 3);
        assert_eq!((stats.in_service, stats.queued), (3, 5));
        assert_eq!((stats.servlets.busy, stats.waiting), (3, 3));
        door.let_through(1);
        door.until(4).await;
        idle().await;
        assert_eq!((door.came(), stage.stats().in_service), (4, 3));
        door.let_through(7);
        stage.drain().await;
        adds_up(&stage);
        assert_eq!(stage.stats().finished, 8);
        Ok(())
    })
}

/// Without a target, and with one.
#[test]
fn a_new_stage_does_not_limit_handlers_that_wait() -> Result<(), BuildError> {
    runtime(2).block_on_spawned(async {
        let network = Network::new("servlets");
        for target in [None, Some(Duration::from_secs(1))] {
            let door = Door::new();
            let at = door.clone();
            let mut stage = network.stage(if target.is_some() { "in time" } else { "waits" });
            if let Some(target) = target {
                stage = stage.target(target);
            }
            let stage = stage.batch(1).handler(move |_| {
                Ok(by(move |batch: &mut Batch<u32>| {
                    let at = at.clone();
                    Box::pin(async move {
                        batch.next();
                        at.pass().await;
                    })
                }))
            })?;
            let sender = stage.sender();
            for n in 0..200 {
                sender.try_send(n).expect("there is room");
            }
            // None of them has finished.
            door.until(200).await;
            door.let_through(200);
            stage.drain().await;
            adds_up(&stage);
        }
        Ok(())
    })
}

#[test]
fn fewer_servlets_are_in_force_though_events_keep_coming() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("servlets");
        let door = Door::new();
        let at = door.clone();
        let stage = network.stage("waits").batch(1).servlets(4).manual();
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
        for n in 0..20 {
            sender.try_send(n).expect("there is room");
        }
        door.until(4).await;
        stage.retune(Settings {
            servlets: Some(1),
            ..Settings::default()
        });
        door.let_through(4);
        door.until(5).await;
        idle().await;
        assert_eq!((door.came(), stage.stats().in_service), (5, 1));
        // And more again.
        stage.retune(Settings {
            servlets: Some(2),
            ..Settings::default()
        });
        door.until(6).await;
        idle().await;
        assert_eq!((door.came(), stage.stats().in_service), (6, 2));
        door.let_through(16);
        stage.drain().await;
        Ok(())
    })
}

#[test]
fn a_handler_that_never_waits_computes_on_each_worker_once() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let network = Network::new("servlets");
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (inside, highest) = (Arc::clone(&now), Arc::clone(&most));
        let stage = network
            .stage("computes")
            .batch(1)
            .servlets(8)
            .manual()
            .handler(move |_| {
                Ok(each(move |rounds: u32| {
                    let here = inside.fetch_add(1, Ordering::AcqRel) + 1;
                    highest.fetch_max(here, Ordering::AcqRel);
                    for round in 0..rounds {
                        std::hint::black_box(round);
                    }
                    inside.fetch_sub(1, Ordering::AcqRel);
                }))
            })?;
        let sender = stage.sender();
        for _ in 0..2000 {
            sender.send(2000).await.expect("it is open");
            let servlets = stage.stats().servlets;
            assert!(servlets.busy <= 2, "{servlets:?}");
        }
        stage.drain().await;
        assert!(most.load(Ordering::Relaxed) <= 2);
        adds_up(&stage);
        Ok(())
    })
}

#[test]
fn two_handlers_of_a_worker_take_turns_and_others_begin_when_they_wait() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("servlets");
        let door = Door::new();
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (at, inside, highest) = (door.clone(), Arc::clone(&now), Arc::clone(&most));
        let stage = network.stage("turns").batch(1).servlets(6).manual();
        let stage = stage.handler(move |_| {
            let (at, inside, highest) = (at.clone(), Arc::clone(&inside), Arc::clone(&highest));
            Ok(by(move |batch: &mut Batch<u32>| {
                let (at, inside, highest) = (at.clone(), Arc::clone(&inside), Arc::clone(&highest));
                Box::pin(async move {
                    batch.next();
                    let here = inside.fetch_add(1, Ordering::Relaxed) + 1;
                    highest.fetch_max(here, Ordering::Relaxed);
                    for _ in 0..10 {
                        tussah::yield_now().await;
                    }
                    inside.fetch_sub(1, Ordering::Relaxed);
                    at.pass().await;
                })
            }))
        })?;
        let sender = stage.sender();
        for n in 0..12 {
            sender.try_send(n).expect("there is room");
        }
        door.until(6).await;
        idle().await;
        assert_eq!((door.came(), stage.stats().in_service), (6, 6));
        door.let_through(12);
        stage.drain().await;
        adds_up(&stage);
        assert_eq!(stage.stats().finished, 12);
        assert_eq!(most.load(Ordering::Relaxed), 2);
        Ok(())
    })
}

#[test]
fn events_taken_ahead_are_given_back_when_the_handler_waits() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("servlets");
        let door = Door::new();
        let at = door.clone();
        // Short events at first, so that a servlet takes many batches at once; then one that waits.
        let stage = network.stage("stage").batch(4).servlets(2).manual();
        let stage = stage.handler(move |_| {
            Ok(by(move |batch: &mut Batch<bool>| {
                let at = at.clone();
                Box::pin(async move {
                    while let Some(waits) = batch.next() {
                        if waits {
                            at.pass().await;
                        }
                    }
                })
            }))
        })?;
        let sender = stage.sender();
        for _ in 0..500 {
            sender.send(false).await.expect("it is open");
        }
        stage.settled().await;
        stage.pause();
        sender.try_send(true).expect("there is room");
        for _ in 0..100 {
            sender.try_send(false).expect("there is room");
        }
        stage.resume();
        door.until(1).await;
        // The other servlet works off all but the batch of the one that waits.
        super::support::until(&stage, |stats| stats.in_service <= 4 && stats.queued == 0).await;
        assert_eq!(door.came(), 1);
        door.let_through(1);
        stage.drain().await;
        adds_up(&stage);
        Ok(())
    })
}

#[test]
fn a_serial_handler_takes_the_next_batch_when_its_future_has_ended() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("serial");
        let door = Door::new();
        let at = door.clone();
        let stage = network.stage("serial").batch(2).serial(move |_| {
            let at = at.clone();
            Ok(one(move |batch: &mut Batch<u32>| {
                let at = at.clone();
                Box::pin(async move {
                    batch.drain().for_each(drop);
                    at.pass().await;
                })
            }))
        })?;
        let sender = stage.sender();
        for n in 0..10 {
            sender.try_send(n).expect("there is room");
        }
        for batches in 1..=5 {
            door.until(batches).await;
            idle().await;
            let stats = stage.stats();
            assert_eq!(door.came(), batches);
            assert_eq!((stats.in_service, stats.servlets.busy), (2, 1));
            assert_eq!(stats.queued, 10 - 2 * batches as u64);
            door.let_through(1);
        }
        stage.drain().await;
        assert_eq!(stage.stats().batches, 5);
        adds_up(&stage);
        Ok(())
    })
}

/// Wants two servlets, as soon as it is asked.
struct Two;

impl Controller for Two {
    fn name(&self) -> &'static str {
        "two"
    }
    fn owns(&self) -> Owns {
        Owns::SERVLETS
    }
    fn cadence(&self) -> Cadence {
        Cadence::every_ns(1_000_000_000)
    }
    fn sample(&mut self, _: &Sample<'_>, _: u64) -> Settings {
        Settings {
            servlets: Some(2),
            ..Settings::default()
        }
    }
}

#[test]
fn decisions_made_while_a_stage_is_inspected_take_effect() -> Result<(), BuildError> {
    let (clock, runtime) = crate::by_hand();
    runtime.block_on_spawned(async move {
        let network = Network::new("servlets");
        let door = Door::new();
        let at = door.clone();
        let one = Settings {
            servlets: Some(1),
            ..Settings::default()
        };
        let stage = network.stage("stage").batch(1).settings(one).manual();
        let stage = stage.controller(Two).handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                let at = at.clone();
                Box::pin(async move {
                    batch.next();
                    at.pass().await;
                })
            }))
        })?;
        for n in 0..2 {
            stage.sender().try_send(n).expect("there is room");
        }
        door.until(1).await;
        clock.advance(Duration::from_secs(1));
        assert_eq!(stage.stats().servlets.target, 2);
        door.until(2).await;
        door.let_through(2);
        stage.drain().await;
        Ok(())
    })
}

/// Decides as `AutoServlets` does, and adds up what that is shown.
struct Watched(AutoServlets, Arc<Mutex<Shown>>);

#[derive(Clone, Copy, Default, Debug)]
struct Shown {
    service_ns: u64,
    compute_ns: u64,
    ready_ns: u64,
    held_up_ns: u64,
    limited_ns: u64,
    /// The most servlets that waited for a permit at a time, and those in the last sample.
    limited_max: usize,
    limited: usize,
    /// The stage counts the handler as waiting.
    has_waited: bool,
}

impl Controller for Watched {
    fn name(&self) -> &'static str {
        "watched"
    }
    fn owns(&self) -> Owns {
        self.0.owns()
    }
    fn cadence(&self) -> Cadence {
        Cadence::every_ns(1_000_000)
    }
    fn sample(&mut self, sample: &Sample<'_>, now_ns: u64) -> Settings {
        let settings = self.0.sample(sample, now_ns);
        let mut shown = self.1.lock();
        shown.service_ns += sample.service_ns;
        shown.compute_ns += sample.compute_ns;
        shown.ready_ns += sample.ready_ns;
        shown.held_up_ns += sample.held_up_ns;
        shown.limited_ns += sample.limited_ns;
        shown.limited = sample.limited;
        shown.limited_max = shown.limited_max.max(sample.limited);
        shown.has_waited |= self.0.waits();
        settings
    }
}

/// Events of the stage that is watched.
const EVENTS: usize = 40;

/// The obstacle that an event meets after its computing.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Meets {
    Nothing,
    /// A door, at which the event waits.
    Door,
    /// A full stage, whose only servlet waits at eight doors for each event.
    FullStage,
    /// A limit with one permit, which the event holds at a door.
    Limit,
}

/// Returns the figures of a stage on one worker. Each of its events computes four times for 1 ms,
/// and lets others have their turn of 20 ms after each; then it meets `meets`. Nothing else
/// takes time.
fn shown(meets: Meets) -> Result<Shown, BuildError> {
    let (clock, runtime) = crate::by_hand();
    runtime.block_on_spawned(async move {
        let network = Network::new("servlets");
        let door = Door::new();
        let (at, turns) = (door.clone(), clock.clone());
        let next = network.stage("next").batch(1).queue(1).servlets(1);
        let next = next.manual().handler(move |_| {
            let at = at.clone();
            Ok(by(move |batch: &mut Batch<usize>| {
                let at = at.clone();
                Box::pin(async move {
                    batch.next();
                    for _ in 0..8 {
                        at.pass().await;
                    }
                })
            }))
        })?;
        let (at, room) = (door.clone(), next.sender().clone());
        let limit = Limit::new("one", 1);
        let shown = Arc::default();
        let watched = Watched(AutoServlets::default(), Arc::clone(&shown));
        let stage = network.stage("shares").batch(1).servlets(8).manual();
        let stage = stage.controller(watched).handler(move |_| {
            let (at, turns, room) = (at.clone(), turns.clone(), room.clone());
            let limit = limit.clone();
            Ok(by(move |batch: &mut Batch<usize>| {
                let (at, turns, room) = (at.clone(), turns.clone(), room.clone());
                let limit = limit.clone();
                Box::pin(async move {
                    batch.next();
                    for _ in 0..4 {
                        turns.advance(Duration::from_millis(1));
                        tussah::yield_now().await;
                    }
                    match meets {
                        Meets::Nothing => {}
                        Meets::Door => at.pass().await,
                        Meets::FullStage => room.send(0).await.expect("the stage is open"),
                        Meets::Limit => {
                            let _permit = limit.acquire().await;
                            at.pass().await;
                        }
                    }
                })
            }))
        })?;
        for n in 0..EVENTS {
            stage.sender().try_send(n).expect("there is room");
        }
        let mut through = 0;
        while stage.stats().finished < EVENTS as u64 {
            let came = door.came();
            clock.advance(Duration::from_millis(20));
            door.let_through(came - through);
            through = came;
            tussah::yield_now().await;
        }
        // The last of it is told when the stage is looked at next, which `adds_up` does.
        clock.advance(Duration::from_millis(1));
        adds_up(&stage);
        Ok(*shown.lock())
    })
}

#[test]
fn only_waits_for_something_else_count_as_waiting() -> Result<(), BuildError> {
    let each_ns = |ms| EVENTS as u64 * ms * 1_000_000;
    let shares = shown(Meets::Nothing)?;
    assert_eq!(shares.compute_ns, each_ns(4), "{shares:?}");
    assert_eq!(
        shares.service_ns,
        each_ns(4) + shares.ready_ns,
        "{shares:?}"
    );
    assert!(shares.ready_ns > 0 && !shares.has_waited, "{shares:?}");
    let waits = shown(Meets::Door)?;
    assert_eq!(waits.compute_ns, each_ns(4), "{waits:?}");
    assert!(
        waits.service_ns >= each_ns(4 + 20) + waits.ready_ns,
        "{waits:?}"
    );
    assert!(waits.ready_ns > 0 && waits.has_waited, "{waits:?}");
    let full = shown(Meets::FullStage)?;
    assert!(full.held_up_ns > full.compute_ns, "{full:?}");
    assert!(!full.has_waited, "{full:?}");
    for other in [shares, waits, full] {
        assert_eq!((other.limited_ns, other.limited_max), (0, 0), "{other:?}");
    }
    let limited = shown(Meets::Limit)?;
    assert!(
        limited.limited_max > 0 && limited.limited == 0,
        "{limited:?}"
    );
    assert!(limited.limited_ns > each_ns(10), "{limited:?}");
    // The rest are the waits at the door.
    let known_ns = limited.compute_ns + limited.ready_ns + limited.limited_ns;
    let door_ns = limited.service_ns - known_ns;
    assert!((each_ns(20)..each_ns(30)).contains(&door_ns), "{limited:?}");
    assert!(limited.has_waited, "{limited:?}");
    Ok(())
}

/// An OS thread waits for a permit, and another one for two permits.
#[test]
fn waits_of_os_threads_for_permits_are_known() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on_spawned(async move {
        let network = Network::new("servlets");
        let shown = Arc::<Mutex<Shown>>::default();
        let watched = Watched(AutoServlets::default(), Arc::clone(&shown));
        let limit = Limit::new("one", 0);
        let of = limit.clone();
        let stage = network.stage("waits").batch(1).servlets(2).manual();
        let stage = stage.controller(watched).blocking(move |_| {
            Ok(move |batch: &mut Batch<u32>| {
                // A handler that waits for several permits counts once.
                let one = || of.acquire();
                match batch.next() {
                    Some(0) => drop(block_on(one())),
                    _ => drop(block_on(zip(one(), one()))),
                }
            })
        })?;
        let look = |stage: &Stage<u32>| {
            clock.advance(Duration::from_millis(1));
            adds_up(stage);
            *shown.lock()
        };
        for n in [0, 1] {
            stage.sender().try_send(n).expect("there is room");
        }
        comes(|| limit.stats().waiting == 3).await;
        clock.advance(Duration::from_millis(19));
        let waits = look(&stage);
        assert_eq!((waits.limited, waits.limited_ns), (2, 0), "{waits:?}");
        limit.set_permits(3);
        stage.drain().await;
        let waited = look(&stage);
        assert_eq!(waited.limited, 0, "{waited:?}");
        assert!(waited.limited_ns > 0, "{waited:?}");
        let sum_ns = waited.limited_ns + waited.compute_ns;
        assert_eq!(sum_ns, waited.service_ns, "{waited:?}");
        Ok(())
    })
}

/// A controller that has measured that one servlet is enough.
struct One(WhileAllWait);

impl Controller for One {
    fn name(&self) -> &'static str {
        "one"
    }

    fn owns(&self) -> Owns {
        Owns::SERVLETS
    }

    fn cadence(&self) -> Cadence {
        Cadence::every_ns(1)
    }

    fn while_all_wait(&self) -> WhileAllWait {
        self.0
    }

    fn sample(&mut self, _: &Sample<'_>, _: u64) -> Settings {
        ONE
    }
}

const ONE: Settings = Settings {
    servlets: Some(1),
    batch: None,
    threshold: None,
    order: None,
    pace_ns: None,
    outgoing_max: None,
    why: Why::Unsaid,
};

/// A stage with one servlet, three events that wait, and a fourth that lets them through.
fn waits_for_the_fourth(
    stage: StageBuilder<u32>,
) -> Result<(Stage<u32, impl Sized>, Door), BuildError> {
    let door = Door::new();
    let at = door.clone();
    let stage = stage.batch(1).settings(ONE).handler(move |_| {
        Ok(by(move |batch: &mut Batch<u32>| {
            let at = at.clone();
            Box::pin(async move {
                match batch.next() {
                    Some(3) => at.let_through(3),
                    _ => at.pass().await,
                }
            })
        }))
    })?;
    let sender = stage.sender();
    for n in 0..4 {
        sender.try_send(n).expect("there is room");
    }
    Ok((stage, door))
}

#[test]
fn an_event_may_wait_for_a_queued_event() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on_spawned(async move {
        let network = Network::new("servlets");
        let stage = network.stage("waits");
        let stage = stage.controller(One(WhileAllWait::BeginLater));
        let (stage, door) = waits_for_the_fourth(stage)?;
        idle().await;
        assert_eq!((door.came(), stage.stats().servlets.busy), (1, 1));
        // The number of servlets doubles twice.
        for came in [2, 3] {
            clock.advance(Duration::from_millis(99));
            idle().await;
            assert_eq!(door.came(), came - 1);
            clock.advance(Duration::from_millis(1));
            idle().await;
            assert_eq!(door.came(), came);
        }
        clock.advance(Duration::from_millis(100));
        stage.drain().await;
        adds_up(&stage);
        assert_eq!(stage.stats().finished, 4);
        Ok(())
    })
}

#[test]
fn default_controllers_let_no_handlers_hold_up_events_for_long() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on_spawned(async move {
        let network = Network::new("servlets");
        let target = Duration::from_millis(100);
        let stages = [
            network.stage("without a target"),
            network.stage("with one").target(target),
            network.stage("set").controller(AutoServlets::default()),
            network
                .stage("set with one")
                .controller(AutoTarget::new(target)),
        ];
        for stage in stages {
            let (stage, door) = waits_for_the_fourth(stage)?;
            idle().await;
            assert_eq!(door.came(), 1);
            // The number of servlets doubles twice.
            for _ in 0..3 {
                clock.advance(Duration::from_millis(5));
                idle().await;
            }
            assert_eq!(stage.stats().finished, 4);
            adds_up(&stage);
        }
        Ok(())
    })
}

#[test]
fn other_controllers_limit_handlers_that_wait() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on_spawned(async move {
        let network = Network::new("servlets");
        let stage = network.stage("waits").controller(One(WhileAllWait::Hold));
        let (stage, door) = waits_for_the_fourth(stage)?;
        for _ in 0..3 {
            idle().await;
            clock.advance(Duration::from_secs(10));
        }
        assert_eq!((door.came(), stage.stats().servlets.busy), (1, 1));
        door.let_through(3);
        stage.drain().await;
        adds_up(&stage);
        Ok(())
    })
}
