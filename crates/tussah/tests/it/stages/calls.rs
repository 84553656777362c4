//! Call edges: the callee's handler in the caller's servlet.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_lite::future::poll_once;
use tussah::stage::{AnyCall, Batch, BuildError, CallError, Event, Network, Reason, Stage};

use super::support::{Door, Noted, adds_up, by, each, one};
use crate::{idle, runtime};

/// A stage that calls another by its name with each batch, and what comes of it.
fn caller(
    network: &Network,
    callee: &'static str,
    outcome: &Noted<Result<(), CallError>>,
) -> Result<Stage<u32>, BuildError> {
    let outcome = outcome.clone();
    network.stage("caller").servlets(1).handler(move |edges| {
        let call: AnyCall<u32> = edges.named(callee)?.call()?;
        Ok(by(move |batch: &mut Batch<u32>| {
            let (call, outcome) = (call.clone(), outcome.clone());
            Box::pin(async move { outcome.add(call.call(batch).await) })
        }))
    })?;
    network.find("caller")
}

#[test]
fn a_call_is_a_handler_on_the_callers_batch() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("calls");
        let came = Noted::default();
        let note = came.clone();
        let callee = network
            .stage("callee")
            .handler(move |_| Ok(each(move |n: u32| note.add(n))))?;
        let to = callee.clone();
        let typed = network.stage("typed").servlets(1).handler(move |edges| {
            let call = edges.to(&to).call()?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let call = call.clone();
                Box::pin(async move { call.call(batch).await.expect("it is open") })
            }))
        })?;
        let outcome = Noted::default();
        let named = caller(&network, "callee", &outcome)?;
        for stage in [network.find("typed")?, named.clone()] {
            stage.pause();
            for n in 0..3 {
                stage.sender().try_send(n).expect("there is room");
            }
            stage.resume();
            stage.drain().await;
            assert_eq!(came.take(), [0, 1, 2]);
            assert_eq!(stage.stats().finished, 3);
            adds_up(&stage);
        }
        assert_eq!(outcome.take(), [Ok(())]);
        drop(typed);
        let stats = callee.stats();
        assert_eq!((stats.called, stats.arrived), (6, 0));
        Ok(())
    })
}

#[test]
fn a_serial_callee_is_awaited_while_its_queue_is_served() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("calls");
        let (door, came) = (Door::new(), Noted::default());
        let (at, note) = (door.clone(), came.clone());
        let callee = network.stage("callee").serial(move |_| {
            let (at, note) = (at.clone(), note.clone());
            Ok(one(move |batch: &mut Batch<u32>| {
                let (at, note) = (at.clone(), note.clone());
                Box::pin(async move {
                    note.add(("in", batch.len()));
                    at.pass().await;
                    batch.drain().for_each(drop);
                    note.add(("out", 0));
                })
            }))
        })?;
        let outcome = Noted::default();
        let caller = caller(&network, "callee", &outcome)?;
        callee.sender().try_send(1).expect("there is room");
        door.until(1).await;
        caller.sender().try_send(2).expect("there is room");
        idle().await;
        assert_eq!(door.came(), 1);
        door.let_through(1);
        door.until(2).await;
        // And the other way round: the queue waits for the call.
        callee.sender().try_send(3).expect("there is room");
        idle().await;
        assert_eq!(door.came(), 2);
        door.let_through(2);
        caller.drain().await;
        callee.drain().await;
        let turns = [("in", 1), ("out", 0)];
        assert_eq!(came.take(), [turns, turns, turns].concat());
        let stats = callee.stats();
        assert_eq!((stats.called, stats.finished), (1, 2));
        Ok(())
    })
}

#[test]
fn a_keyed_callee_is_awaited_key_by_key() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("calls");
        let (door, came) = (Door::new(), Noted::default());
        let (at, note) = (door.clone(), came.clone());
        let callee = network
            .stage("callee")
            .keyed_by(|n: &u32| n % 10)
            .handler(move |_| {
                Ok(by(move |batch: &mut Batch<u32>| {
                    let (at, note) = (at.clone(), note.clone());
                    Box::pin(async move {
                        let events: Vec<_> = batch.drain().collect();
                        let slow = events.contains(&1);
                        note.add(events);
                        if slow {
                            at.pass().await;
                        }
                    })
                }))
            })?;
        let outcome = Noted::default();
        let caller = caller(&network, "callee", &outcome)?;
        callee.sender().try_send(1).expect("there is room");
        door.until(1).await;
        caller.pause();
        for n in [2, 11, 12, 3, 21] {
            caller.sender().try_send(n).expect("there is room");
        }
        caller.resume();
        idle().await;
        assert_eq!(came.take(), [vec![1], vec![2, 12]], "the key 1 is busy");
        door.let_through(1);
        caller.drain().await;
        assert_eq!(came.take(), [vec![11, 21], vec![3]]);
        assert_eq!(outcome.take(), [Ok(())]);
        assert_eq!(caller.stats().finished, 5);
        assert_eq!(caller.stats().response.count, 5);
        adds_up(&caller);
        assert_eq!(callee.stats().keys, 0);
        Ok(())
    })
}

#[test]
fn events_that_a_callee_leaves_stay_in_the_batch() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        for keyed in [false, true] {
            let network = Network::new("calls");
            let left = Noted::default();
            let mut builder = network.stage("callee");
            if keyed {
                builder = builder.keyed_by(|n: &u32| n % 2);
            }
            builder.handler(|_| {
                Ok(by(|batch: &mut Batch<u32>| {
                    Box::pin(async move {
                        batch.next();
                    })
                }))
            })?;
            let note = left.clone();
            let caller = network.stage("caller").batch(6).servlets(1);
            let caller = caller.handler(move |edges| {
                let call: AnyCall<u32> = edges.named("callee")?.call()?;
                Ok(by(move |batch: &mut Batch<u32>| {
                    let (call, note) = (call.clone(), note.clone());
                    Box::pin(async move {
                        call.call(batch).await.expect("it is open");
                        let rest: Vec<_> = batch.drain().collect();
                        note.add(rest);
                    })
                }))
            })?;
            caller.pause();
            for n in 0..6 {
                caller.sender().try_send(n).expect("there is room");
            }
            caller.resume();
            caller.drain().await;
            let mut left = left.take();
            assert_eq!(left.len(), 1);
            left[0].sort_unstable();
            let expected = if keyed {
                vec![2, 3, 4, 5]
            } else {
                vec![1, 2, 3, 4, 5]
            };
            assert_eq!(left, [expected]);
            assert_eq!(caller.stats().finished, 6);
            adds_up(&caller);
        }
        Ok(())
    })
}

#[test]
fn a_panic_in_a_callee_is_the_callers() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        for keyed in [false, true] {
            let network = Network::new("calls");
            let (told, came) = (Noted::default(), Noted::default());
            let (note, made) = (came.clone(), Arc::new(AtomicUsize::new(0)));
            let count = Arc::clone(&made);
            let mut builder = network.stage("callee");
            if keyed {
                builder = builder.keyed_by(|n: &u32| *n == 9);
            }
            let callee = builder.serial(move |_| {
                count.fetch_add(1, Ordering::Relaxed);
                let note = note.clone();
                Ok(one(move |batch: &mut Batch<u32>| {
                    let note = note.clone();
                    Box::pin(async move {
                        while let Some(n) = batch.next() {
                            tussah::yield_now().await;
                            assert_ne!(n, 2, "expected: two");
                            note.add(n);
                        }
                    })
                }))
            })?;
            let outcome = Noted::default();
            let caller = caller(&network, "callee", &outcome)?;
            caller.pause();
            for n in 0..5 {
                let told = told.clone();
                let event = Event::new(n).on_drop(move |why| told.add((n, why)));
                caller.sender().try_send(event).expect("there is room");
            }
            caller.resume();
            caller.drain().await;
            assert_eq!(came.take(), [0, 1, 3, 4], "keyed: {keyed}");
            let mut told = told.take();
            told.sort_by_key(|(n, _)| *n);
            assert_eq!(told, [0, 1, 2].map(|n| (n, Reason::Panicked)));
            assert_eq!(made.load(Ordering::Relaxed), 2, "it was made anew");
            let (stats, callee) = (caller.stats(), callee.stats());
            assert_eq!((stats.panicked, stats.lost, callee.panicked), (1, 3, 0));
            assert_eq!(stats.finished, 5);
            assert_eq!(callee.keys, 0);
            adds_up(&caller);
        }
        Ok(())
    })
}

#[test]
fn a_single_called_event_reports_a_panic() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("calls");
        let told = Noted::default();
        let callee = network
            .stage("callee")
            .handler(|_| Ok(each(|_: u32| panic!("expected: always"))))?;
        let tell = told.clone();
        let caller = network.stage("caller").handler(move |edges| {
            let call = edges.to(&callee).call()?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let (call, tell) = (call.clone(), tell.clone());
                Box::pin(async move {
                    let n = batch.next().expect("an event");
                    let event = Event::new(n).on_drop(move |why| tell.add(why));
                    call.send(event).await.expect("it is open");
                })
            }))
        })?;
        caller.sender().try_send(1).expect("there is room");
        caller.drain().await;
        assert_eq!(told.take(), [Reason::Panicked]);
        Ok(())
    })
}

#[test]
fn a_call_to_a_destroyed_stage_leaves_the_batch_as_it_is() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        for keyed in [false, true] {
            let network = Network::new("calls");
            let mut builder = network.stage("callee");
            if keyed {
                builder = builder.keyed_by(|n: &u32| n % 2);
            }
            let callee = builder.handler(|_| Ok(each(|_: u32| unreachable!("it is gone"))))?;
            let (to, note) = (callee.clone(), Noted::default());
            let seen = note.clone();
            let caller = network.stage("caller").batch(4).handler(move |edges| {
                let typed = edges.to(&to).call()?;
                let named: AnyCall<u32> = edges.named("callee")?.call()?;
                Ok(by(move |batch: &mut Batch<u32>| {
                    let (typed, named, seen) = (typed.clone(), named.clone(), seen.clone());
                    Box::pin(async move {
                        assert_eq!(typed.call(batch).await, Err(CallError));
                        assert_eq!(named.call(batch).await, Err(CallError));
                        assert_eq!(typed.send(9).await, Err(CallError));
                        let rest: Vec<_> = batch.drain().collect();
                        seen.add(rest);
                    })
                }))
            })?;
            callee.destroy(Duration::ZERO).await;
            caller.pause();
            for n in 0..4 {
                caller.sender().try_send(n).expect("there is room");
            }
            caller.resume();
            caller.drain().await;
            assert_eq!(caller.stats().panicked, 0);
            let mut left = note.take().concat();
            // The order is that of each key.
            left.sort_by_key(|n| if keyed { n % 2 } else { 0 });
            let expected = if keyed { [0, 2, 1, 3] } else { [0, 1, 2, 3] };
            assert_eq!(left, expected, "keyed: {keyed}");
            adds_up(&caller);
        }
        Ok(())
    })
}

#[test]
fn a_callee_that_panics_too_often_is_closed_to_calls() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("calls");
        let restarts = tussah::stage::Restarts::new(0, Duration::from_secs(1));
        let closed = Noted::default();
        let tell = closed.clone();
        let callee = network
            .stage("callee")
            .restarts(restarts)
            .on_close(move |why| tell.add(why.to_owned()))
            .serial(|_| Ok(each(|n: u32| assert_ne!(n, 0, "expected: zero"))))?;
        let outcome = Noted::default();
        let caller = caller(&network, "callee", &outcome)?;
        for n in [1, 0] {
            caller.sender().try_send(n).expect("there is room");
            caller.settled().await;
        }
        assert_eq!(outcome.take(), [Ok(())]);
        let why = "its handler panicked, and it may not be made anew";
        assert_eq!(closed.take(), [why]);
        assert_eq!(callee.stats().closed.as_deref(), Some(why));
        // What the callee does not take goes back to the queue, so that the caller is asked again
        // and again.
        caller.sender().try_send(2).expect("there is room");
        super::support::until(&caller, |_| outcome.len() > 0).await;
        assert_eq!(outcome.take()[0], Err(CallError));
        caller.destroy(Duration::ZERO).await;
        Ok(())
    })
}

#[test]
fn calls_are_counted_on_all_workers_and_elsewhere() -> Result<(), BuildError> {
    let runtime = runtime(2);
    let network = Network::on(runtime.handle(), "calls");
    let callee = network.stage("callee").handler(|_| Ok(each(|_: u32| ())))?;
    let to = callee.clone();
    let caller = network.stage("caller").batch(3).handler(move |edges| {
        let call = edges.to(&to).call()?;
        Ok(by(move |batch: &mut Batch<u32>| {
            let call = call.clone();
            Box::pin(async move { call.call(batch).await.expect("it is open") })
        }))
    })?;
    runtime.block_on(async {
        let sender = caller.sender();
        for n in 0..1000 {
            sender.send(n).await.expect("it is open");
        }
        caller.drain().await;
    });
    assert_eq!(callee.stats().called, 1000);
    Ok(())
}

/// One that gives up calls again, and one whose events are left does too.
#[test]
fn an_event_counts_as_called_once() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("calls");
        let late = Noted::default();
        let callee = network.stage("callee").keyed_by(|n: &u32| n % 2);
        let callee = callee.handler(|_| {
            Ok(by(|batch: &mut Batch<u32>| {
                Box::pin(async move {
                    tussah::yield_now().await;
                    batch.next();
                })
            }))
        })?;
        let to = callee.clone();
        let caller = network.stage("caller").servlets(1).handler(move |edges| {
            let call = edges.to(&to).call()?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let call = call.clone();
                Box::pin(async move {
                    assert!(poll_once(Box::pin(call.call(batch))).await.is_none());
                    while !batch.is_empty() {
                        call.call(batch).await.expect("it is open");
                    }
                })
            }))
        })?;
        caller.pause();
        for n in 0..8 {
            caller.sender().try_send(n).expect("there is room");
        }
        let note = late.clone();
        let event = Event::new(8).within(Duration::ZERO);
        let event = event.on_drop(move |why| note.add(why));
        caller.sender().try_send(event).expect("there is room");
        caller.drain().await;
        assert_eq!(
            (late.take(), callee.stats().called),
            (vec![Reason::Expired], 8)
        );
        Ok(())
    })
}
