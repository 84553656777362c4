//! Handlers that panic.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tussah::stage::control::{
    Cadence, Controller, Departure, Owns, Sample, Settings, Verdict, WhileAllWait,
};
use tussah::stage::{
    Batch, BuildError, Edges, Event, Network, Reason, Refusal, Restarts, SerialHandler, Stage,
};

use super::support::{Noted, adds_up, by, each, one};
use crate::stages_governor::{LOGS, Log};
use crate::{by_hand, idle, runtime};

/// Notes events with the number of the handler, and panics on zeros.
fn fragile(
    network: &Network,
    restarts: Restarts,
    came: &Noted<(usize, u32)>,
) -> Result<Stage<u32>, BuildError> {
    let (note, made) = (came.clone(), Arc::new(AtomicUsize::new(0)));
    let builder = network.stage("stage").restarts(restarts);
    builder.serial(move |_| {
        let (note, number) = (note.clone(), made.fetch_add(1, Ordering::Relaxed));
        Ok(one(move |batch: &mut Batch<u32>| {
            let note = note.clone();
            Box::pin(async move {
                while let Some(n) = batch.next() {
                    assert_ne!(n, 0, "expected: a zero");
                    note.add((number, n));
                }
            })
        }))
    })?;
    network.find("stage")
}

#[test]
fn a_serial_handler_is_made_anew() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let network = Network::new("panics");
        let came = Noted::default();
        let restarts = Restarts::new(2, Duration::from_secs(1));
        let stage = fragile(&network, restarts, &came)?;
        let sender = stage.sender();
        stage.pause();
        for n in [1, 0, 2, 0, 3] {
            sender.try_send(n).expect("there is room");
        }
        stage.resume();
        stage.settled().await;
        assert_eq!(came.take(), [(0, 1), (1, 2), (2, 3)]);
        // A period later there are two restarts more.
        clock.advance(Duration::from_secs(1));
        for n in [0, 4] {
            sender.try_send(n).expect("there is room");
        }
        stage.settled().await;
        assert_eq!(came.take(), [(3, 4)]);
        adds_up(&stage);
        Ok(())
    })
}

/// How often a handler may be made anew is the stage's, and not the handler's.
#[test]
fn a_serial_handler_that_is_swapped_in_is_made_anew_as_often() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let network = Network::new("panics");
        let builder = network.stage("stage");
        let restarts = Restarts::new(1, Duration::from_secs(1));
        let stage = builder
            .restarts(restarts)
            .handler(|_| Ok(each(|_: u32| ())))?;
        let zero = |n: u32| assert_ne!(n, 0, "expected: a zero");
        let stage = stage.swap_serial(move |_| Ok(each(zero))).await?;
        let sender = stage.sender();
        for (after, n) in [(0, 0), (0, 1), (1, 0), (0, 1), (0, 0)] {
            clock.advance(Duration::from_secs(after));
            sender.try_send(n).expect("it is open");
            stage.settled().await;
        }
        let refused = sender
            .try_send(1)
            .expect_err("it panicked twice in a second");
        assert_eq!(refused.why, Refusal::Closed);
        Ok(())
    })
}

#[test]
fn a_handler_that_panics_too_often_closes_its_stage() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("panics");
        let came = Noted::default();
        let restarts = Restarts::new(1, Duration::from_secs(3600));
        let stage = fragile(&network, restarts, &came)?;
        stage.pause();
        stage.set_queue_max(5);
        let sender = stage.sender();
        let told = Noted::default();
        for n in [0, 1, 0, 2, 3] {
            let told = told.clone();
            let event = Event::new(n).on_drop(move |why| told.add((n, why)));
            sender.try_send(event).expect("there is room");
        }
        let waiting = sender.clone();
        let waiting = tussah::spawn(async move {
            // It comes in when there is room, or is told.
            waiting.send(4).await.map_err(|error| error.why)
        });
        idle().await;
        stage.resume();
        stage.settled().await;
        told.until(5).await;
        let waited = waiting.await.expect("no panic");
        assert!(
            matches!(waited, Ok(()) | Err(Refusal::Closed)),
            "{waited:?}"
        );
        // One was handled, and yet taken by a handler that panicked then.
        assert_eq!(came.take(), [(1, 1)]);
        assert_eq!(told.take(), [0, 1, 0, 2, 3].map(|n| (n, Reason::Panicked)));
        assert_eq!(stage.stats().gate, "closed");
        assert_eq!(stage.stats().queued, 0);
        assert_eq!(sender.try_send(5).expect_err("closed").why, Refusal::Closed);
        stage.drain().await;
        Ok(())
    })
}

/// Closes a stage, with a log that nobody reads. `tracing` then knows the place of the message, and
/// each new log gets it. If a test without a log came to the place first while there is a log,
/// `tracing` would skip the message for good.
fn close_one() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        std::mem::forget(tracing::subscriber::set_default(Log::default()));
        let network = Network::new("first");
        let stage = network.stage("first");
        let stage = stage.restarts(Restarts::new(0, Duration::from_secs(1)));
        let stage =
            stage.serial(|_| Ok(one(|_: &mut Batch<u32>| panic!("expected: the first"))))?;
        while stage.sender().try_send(0).is_ok() {
            stage.settled().await;
        }
        Ok(())
    })
}

/// Returns the log of a stage that panics with each event until it is closed, without the stage's
/// name and position. Its handler is made by `make`.
fn said<H: SerialHandler<Event = u32>>(
    restarts: Restarts,
    make: impl FnMut(&Edges<'_>) -> Result<H, BuildError> + Send + 'static,
) -> Result<Vec<String>, BuildError> {
    let _logs = LOGS.lock();
    close_one()?;
    let log = Log::default();
    let here = log.clone();
    runtime(1).block_on_spawned(async move {
        // It is the only worker's, and ends with it.
        std::mem::forget(tracing::subscriber::set_default(here));
        let network = Network::new("panics");
        let (file, line) = (file!(), line!() + 2);
        let at = format!("stage \"stage\" ({file}:{line}:29) is closed: ");
        let stage = network.stage("stage");
        let stage = stage.restarts(restarts).serial(make)?;
        while stage.sender().try_send(0).is_ok() {
            stage.settled().await;
        }
        // One that is closed by somebody says nothing.
        stage.destroy(Duration::ZERO).await;
        let said = log.0.lock();
        let ours = said.iter().filter(|text| text.contains("panic"));
        let ours = ours.map(|text| text.strip_prefix(&*at).expect("the position").to_owned());
        Ok(ours.collect())
    })
}

#[test]
fn a_stage_that_its_handler_closes_says_so() -> Result<(), BuildError> {
    let panics = || {
        one(|batch: &mut Batch<u32>| {
            batch.next();
            panic!("expected: a handler that panics")
        })
    };
    let hour = Duration::from_secs(3600);
    let check = |max, expected: &str| {
        let said = said(Restarts::new(max, hour), move |_| Ok(panics()))?;
        assert_eq!(said, [expected]);
        Ok::<(), BuildError>(())
    };
    check(0, "its handler panicked, and it may not be made anew")?;
    check(1, "its handler panicked 2 times within 3600s")?;
    let mut made = false;
    let said = said(Restarts::default(), move |edges| {
        if std::mem::replace(&mut made, true) {
            return Err(BuildError::Closed {
                stage: edges.from().to_owned(),
            });
        }
        Ok(panics())
    })?;
    let expected = "its handler panicked, and could not be made anew: the stage `stage` is closed";
    assert_eq!(said, [expected]);
    Ok(())
}

/// The program is told, and whoever looks at the stage.
#[test]
fn a_stage_that_its_handler_closes_notifies_the_program() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let network = Network::new("panics");
        let told = Noted::default();
        let tell = told.clone();
        let stage = network
            .stage("stage")
            .on_close(move |why| tell.add(why.to_owned()))
            .serial(|_| {
                Ok(one(|batch: &mut Batch<u32>| {
                    batch.next();
                    panic!("expected: a handler that panics")
                }))
            })?;
        for panics in 1..=5 {
            stage.sender().try_send(0).expect("it is open");
            stage.settled().await;
            assert_eq!(
                (stage.stats().panicked, stage.stats().closed),
                (panics, None)
            );
            clock.advance(Duration::from_secs(9));
        }
        // With the panic that is one too many it is closed, without another event.
        stage.sender().try_send(0).expect("it is open");
        stage.settled().await;
        let why = "its handler panicked 6 times within 60s";
        told.until(1).await;
        assert_eq!(told.take(), [why]);
        let stats = stage.stats();
        assert_eq!((stats.gate, stats.closed.as_deref()), ("closed", Some(why)));
        let graph = network.graph();
        assert!(graph.to_dot().contains(&format!("\\nclosed: {why}")));
        assert!(graph.to_json().contains(&format!(r#""closed":"{why}""#)));
        // One that is closed by somebody says nothing.
        network.close();
        assert_eq!(told.len(), 0);
        Ok(())
    })
}

/// A handler that cannot be made anew closes its stage with its panic: no event has to come first,
/// and none ends for it.
#[test]
fn a_handler_that_cannot_be_made_anew_closes_its_stage_at_once() -> Result<(), BuildError> {
    let check = |throws: bool, called: bool, expected: &str| {
        runtime(1).block_on(async {
            let network = Network::new("panics");
            let (told, made) = (Noted::default(), AtomicUsize::new(0));
            let tell = told.clone();
            let builder = network.stage("stage");
            let builder = builder.on_close(move |why| tell.add(why.to_owned()));
            let stage = builder.serial(move |edges| {
                if made.fetch_add(1, Ordering::Relaxed) > 0 {
                    assert!(!throws, "expected: a maker that panics");
                    let stage = edges.from().to_owned();
                    return Err(BuildError::Closed { stage });
                }
                Ok(each(|_: u32| panic!("expected: a handler that panics")))
            })?;
            let caller = network.stage("caller").handler(|edges| {
                let call = edges.to(&stage).call()?;
                Ok(by(move |batch: &mut Batch<u32>| {
                    let call = call.clone();
                    Box::pin(async move { call.call(batch).await.expect("it is open") })
                }))
            })?;
            let first = if called {
                caller.sender()
            } else {
                stage.sender()
            };
            first.try_send(0).expect("it is open");
            caller.settled().await;
            stage.settled().await;
            let expected = format!("its handler panicked, and could not be made anew: {expected}");
            told.until(1).await;
            assert_eq!(told.take(), std::slice::from_ref(&expected));
            let stats = stage.stats();
            assert_eq!(stats.closed.as_deref(), Some(&*expected));
            let refused = stage.sender().try_send(1).expect_err("it is closed");
            assert_eq!(refused.why, Refusal::Closed);
            Ok::<(), BuildError>(())
        })
    };
    for called in [false, true] {
        check(false, called, "the stage `stage` is closed")?;
        check(true, called, "its maker panicked")?;
    }
    Ok(())
}

/// Panics are counted, and apart from them the events that were lost by them.
#[test]
fn settled_events_survive_a_panic() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("panics");
        let stage = network.stage("stage").batch(10).handler(|_| {
            Ok(by(|batch: &mut Batch<u32>| {
                Box::pin(async move {
                    while let Some(n) = batch.next() {
                        assert!(n % 5 != 4, "expected: one in five");
                        if n % 5 != 3 {
                            batch.settle();
                        }
                    }
                })
            }))
        })?;
        stage.pause();
        for n in 0..50 {
            stage.sender().try_send(n).expect("there is room");
        }
        stage.resume();
        stage.drain().await;
        let stats = stage.stats();
        assert_eq!((stats.panicked, stats.lost, stats.finished), (10, 20, 50));
        Ok(())
    })
}

#[test]
fn a_stage_whose_handlers_panic_goes_on() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let network = Network::new("panics");
        let came = Noted::default();
        let note = came.clone();
        let stage = network.stage("stage").batch(7).handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                let note = note.clone();
                Box::pin(async move {
                    while let Some(n) = batch.next() {
                        if n % 2 == 0 {
                            tussah::yield_now().await;
                        }
                        assert!(n % 50 != 0, "expected: a round number");
                        note.add(n);
                    }
                })
            }))
        })?;
        let sender = stage.sender();
        for n in 0..500 {
            sender.send(n).await.expect("it is open");
        }
        stage.drain().await;
        let mut came = came.take();
        came.sort_unstable();
        let expected: Vec<_> = (0..500).filter(|n| n % 50 != 0).collect();
        assert_eq!(came, expected);
        let stats = stage.stats();
        assert_eq!((stats.finished, stats.in_service), (500, 0));
        assert_eq!(stats.panicked, 10);
        adds_up(&stage);
        Ok(())
    })
}

#[test]
fn a_keyed_handler_that_panics_frees_its_key() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("panics");
        let came = Noted::default();
        let note = came.clone();
        let stage = network
            .stage("stage")
            .keyed_by(|n: &u32| n % 2)
            .handler(move |_| {
                Ok(by(move |batch: &mut Batch<u32>| {
                    let note = note.clone();
                    Box::pin(async move {
                        while let Some(n) = batch.next() {
                            assert_ne!(n, 2, "expected: two");
                            note.add(n);
                        }
                    })
                }))
            })?;
        stage.pause();
        for n in 0..8 {
            stage.sender().try_send(n).expect("there is room");
        }
        stage.resume();
        stage.drain().await;
        let mut came = came.take();
        came.sort_unstable();
        assert_eq!(came, [0, 1, 3, 4, 5, 6, 7]);
        assert_eq!(stage.stats().keys, 0);
        Ok(())
    })
}

/// Panics when it is asked for the third time, be it for a departure or for settings.
struct Third(u64);

impl Third {
    fn count(&mut self) {
        self.0 += 1;
        assert!(self.0 != 3, "expected: the third time");
    }
}

impl Controller for Third {
    fn name(&self) -> &'static str {
        "third"
    }
    fn owns(&self) -> Owns {
        Owns::ADMISSION
    }
    fn cadence(&self) -> Cadence {
        Cadence::every_ns(1_000_000_000)
    }
    fn sample(&mut self, _: &Sample<'_>, _: u64) -> Settings {
        self.count();
        Settings::default()
    }
    fn on_dequeue(&mut self, _: &Departure) -> Verdict {
        self.count();
        Verdict::Serve
    }
}

#[test]
fn a_controller_that_panics_decides_nothing_any_more() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on_spawned(async move {
        // At a departure, and as it is shown a sample by the one who sends.
        for (keyed, samples) in [(false, 0), (true, 0), (false, 3)] {
            let network = Network::new("panics");
            let came = Noted::default();
            let note = came.clone();
            let mut stage = network.stage("stage").controller(Third(0)).manual();
            if keyed {
                stage = stage.keyed_by(|_: &u32| ());
            }
            let stage = stage.handler(move |_| Ok(each(move |n: u32| note.add(n))))?;
            stage.pause();
            for n in 0..5 {
                if n < samples {
                    clock.advance(Duration::from_secs(1));
                }
                stage.sender().try_send(n).expect("there is room");
            }
            stage.resume();
            stage.drain().await;
            assert_eq!(came.take(), [0, 1, 2, 3, 4]);
            adds_up(&stage);
        }
        Ok(())
    })
}

/// Panics when it is asked what happens while all handlers wait, and counts its samples.
struct Unasked(Arc<AtomicUsize>);

impl Controller for Unasked {
    fn name(&self) -> &'static str {
        "unasked"
    }
    fn owns(&self) -> Owns {
        Owns::SERVLETS
    }
    fn cadence(&self) -> Cadence {
        Cadence::every_ns(1)
    }
    fn while_all_wait(&self) -> WhileAllWait {
        panic!("expected: it is asked");
    }
    fn sample(&mut self, _: &Sample<'_>, _: u64) -> Settings {
        self.0.fetch_add(1, Ordering::Relaxed);
        Settings::default()
    }
}

#[test]
fn a_controller_that_panics_about_waits_decides_nothing_either() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on_spawned(async move {
        let network = Network::new("panics");
        let samples = Arc::new(AtomicUsize::new(0));
        let stage = network.stage("stage");
        let stage = stage.controller(Unasked(Arc::clone(&samples)));
        let stage = stage.handler(|_| Ok(each(|_: u32| ())))?;
        for n in 0..5 {
            clock.advance(Duration::from_secs(1));
            stage.sender().try_send(n).expect("there is room");
        }
        stage.drain().await;
        adds_up(&stage);
        assert_eq!(samples.load(Ordering::Relaxed), 0);
        Ok(())
    })
}
