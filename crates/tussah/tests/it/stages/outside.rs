//! Deadlines and cancellations of events that are sent on, or called with, outside of the batch of
//! any servlet.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::poll_once;
use tussah::ManualClock;
use tussah::stage::{
    AnyCall, Batch, BuildError, CancelHandle, Event, Network, Reason, Sender, Stage,
};

use super::support::{Door, Noted, adds_up, by, each, notes, one, until, works};
use crate::by_hand;

const SECOND: Duration = Duration::from_secs(1);

type Reports = Noted<(u32, Reason)>;

/// An event that reports its end.
fn reporting(n: u32, reports: &Reports) -> Event<u32> {
    let reports = reports.clone();
    Event::new(n).on_drop(move |why| reports.add((n, why)))
}

/// Events with a deadline in a second, in a batch that no servlet has filled.
fn late_in_a_second(count: u32, reports: &Reports) -> Batch<u32> {
    Batch::of((0..count).map(|n| reporting(n, reports).within(SECOND)))
}

fn ended(events: impl IntoIterator<Item = u32>, why: Reason) -> Vec<(u32, Reason)> {
    events.into_iter().map(|n| (n, why)).collect()
}

/// A stage that notes what comes to it, and an edge to it.
fn last(network: &Network, came: &Noted<u32>) -> Result<(Stage<u32>, Sender<u32>), BuildError> {
    let note = came.clone();
    let last = network.stage("last");
    let last = last.handler(move |_| Ok(each(move |n: u32| note.add(n))))?;
    let mut edge = None;
    network.stage("first").handler(|edges| {
        edge = Some(edges.to(&last).queue(1000)?);
        Ok(each(|_: u32| ()))
    })?;
    Ok((network.find("last")?, edge.expect("it was made")))
}

/// A few go one by one, and many as a whole; their time begins as they are queued.
#[test]
fn events_forwarded_outside_of_a_batch_expire_in_the_queue() -> Result<(), BuildError> {
    for count in [2, 100] {
        let (clock, runtime) = by_hand();
        runtime.block_on(async {
            let (reports, came) = (Reports::default(), Noted::default());
            let (last, edge) = last(&Network::new("outside"), &came)?;
            last.pause();
            for sender in [edge, last.sender()] {
                let mut batch = late_in_a_second(count, &reports);
                clock.advance(SECOND);
                sender.forward(&mut batch).await.expect("it is open");
                clock.advance(SECOND - Duration::from_millis(1));
                crate::idle().await;
                assert_eq!(
                    (reports.len(), last.stats().queued),
                    (0, u64::from(count)),
                    "{count}"
                );
                clock.advance(Duration::from_millis(1));
                reports.until(count as usize).await;
                assert_eq!(reports.take(), ended(0..count, Reason::Expired));
            }
            last.resume();
            last.drain().await;
            assert_eq!(came.len(), 0);
            let stats = last.stats();
            assert_eq!((stats.expired, stats.finished), (2 * u64::from(count), 0));
            adds_up(&last);
            Ok::<(), BuildError>(())
        })?;
    }
    Ok(())
}

/// An event keeps its deadline when a handler gives it away, and its owner sends it on too late.
#[test]
fn events_forwarded_too_late_are_not_handled() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let (reports, came, kept) = (Reports::default(), Noted::default(), Noted::default());
        let network = Network::new("outside");
        let (last, edge) = last(&network, &came)?;
        let keep = kept.clone();
        let keeper = network.stage("keeper").handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                batch.drain_events().for_each(|event| keep.add(event));
                Box::pin(async {})
            }))
        })?;
        for sends_many in [false, true] {
            let count = if sends_many { 20 } else { 1 };
            for n in 0..count {
                let event = reporting(n, &reports).within(SECOND);
                keeper.sender().try_send(event).expect("there is room");
            }
            keeper.settled().await;
            clock.advance(SECOND);
            let mut batch = Batch::of(kept.take());
            assert_eq!(batch.len() as u32, count);
            edge.forward(&mut batch).await.expect("it is open");
            last.settled().await;
            assert_eq!(reports.take(), ended(0..count, Reason::Expired));
        }
        assert_eq!(came.len(), 0);
        assert_eq!((last.stats().expired, keeper.stats().finished), (21, 21));
        adds_up(&last);
        Ok(())
    })
}

/// A stage by its name, and how it is called.
type Called = (&'static str, Stage<u32>, AnyCall<u32>);

/// Called stages, each with an edge by its name. They note their events, and take half a second for
/// each.
fn callees(
    network: &Network,
    came: &Noted<u32>,
    clock: &Arc<ManualClock>,
) -> Result<Vec<Called>, BuildError> {
    let (note, passes) = (came.clone(), Arc::clone(clock));
    let handle = works(move |batch| {
        let (note, passes) = (note.clone(), Arc::clone(&passes));
        Box::pin(async move {
            while let Some(n) = batch.next() {
                note.add(n);
                passes.advance(SECOND / 2);
                tussah::yield_now().await;
            }
        })
    });
    let (first, second) = (handle.clone(), handle.clone());
    network.stage("plain").handler(|_| Ok(by(first)))?;
    let keyed = network.stage("keyed").keyed_by(|n: &u32| n % 2);
    keyed.handler(|_| Ok(by(second)))?;
    let serial = network.stage("serial");
    serial.serial(move |_| Ok(one(handle.clone())))?;
    calls_to(network, &["plain", "keyed", "serial"])
}

/// These stages, and calls of them.
fn calls_to(network: &Network, names: &[&'static str]) -> Result<Vec<Called>, BuildError> {
    let mut calls: Vec<Called> = Vec::new();
    network.stage("caller").handler(|edges| {
        for name in names {
            calls.push((*name, network.find(name)?, edges.named(name)?.call()?));
        }
        Ok(each(|_: u32| ()))
    })?;
    Ok(calls)
}

/// The time of an event begins with the call, and the callee has a batch of several.
#[test]
fn late_events_in_a_called_batch_are_skipped() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    let clock = Arc::new(clock);
    runtime.block_on(async {
        let (reports, came) = (Reports::default(), Noted::default());
        for (name, stage, call) in callees(&Network::new("outside"), &came, &clock)? {
            let mut batch = late_in_a_second(6, &reports);
            clock.advance(SECOND);
            call.call(&mut batch).await.expect("it is open");
            assert!(batch.is_empty());
            let (begun, late) = if name == "keyed" {
                ([0, 2], [4, 1, 3, 5])
            } else {
                ([0, 1], [2, 3, 4, 5])
            };
            assert_eq!(came.take(), begun, "{name}");
            assert_eq!(reports.take(), ended(late, Reason::Expired), "{name}");
            let stats = stage.stats();
            assert_eq!((stats.called, stats.expired, stats.queued), (6, 4, 0));
            adds_up(&stage);
        }
        Ok(())
    })
}

fn cancellable(n: u32, reports: &Reports) -> (Event<u32>, CancelHandle) {
    reporting(n, reports).cancellable()
}

/// Before the call, or while it waits for its turn.
#[test]
fn events_cancelled_before_their_call_begins_are_skipped() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    let clock = Arc::new(clock);
    runtime.block_on(async {
        let (reports, came) = (Reports::default(), Noted::default());
        for (name, stage, call) in callees(&Network::new("outside"), &came, &clock)? {
            let (event, cancel) = cancellable(1, &reports);
            drop(cancel);
            call.send(event).await.expect("it is open");
            assert_eq!(reports.take(), ended([1], Reason::Cancelled), "{name}");
            // Of several, the others are handled.
            let (events, mut handles): (Vec<_>, Vec<_>) =
                (0..4).map(|n| cancellable(n, &reports)).unzip();
            let mut batch = Batch::of(events);
            handles.drain(1..3).for_each(drop);
            call.call(&mut batch).await.expect("it is open");
            assert_eq!(came.take(), [0, 3], "{name}");
            let mut cancelled = reports.take();
            cancelled.sort_unstable_by_key(|(n, _)| *n);
            assert_eq!(cancelled, ended([1, 2], Reason::Cancelled), "{name}");
            // The others end with the batch.
            drop(batch);
            assert!(!handles[0].cancel());
            let stats = stage.stats();
            assert_eq!((stats.called, stats.cancelled), (5, 3), "{name}");
            adds_up(&stage);
        }
        Ok(())
    })
}

#[test]
fn events_cancelled_while_their_call_waits_are_skipped() -> Result<(), BuildError> {
    let (_clock, runtime) = by_hand();
    runtime.block_on(async {
        let network = Network::new("outside");
        let (reports, came, door) = (Reports::default(), Noted::default(), Door::new());
        let handle = notes(&came, &door);
        let same = handle.clone();
        let keyed = network.stage("keyed").keyed_by(|_: &u32| ());
        keyed.handler(|_| Ok(by(same)))?;
        let serial = network.stage("serial");
        serial.serial(move |_| Ok(one(handle.clone())))?;
        let calls = calls_to(&network, &["keyed", "serial"])?;
        for (at, (name, stage, call)) in calls.into_iter().enumerate() {
            stage.sender().try_send(0).expect("there is room");
            door.until(at + 1).await;
            let (event, cancel) = cancellable(1, &reports);
            let mut calling = pin!(call.send(event));
            assert!(poll_once(&mut calling).await.is_none());
            assert!(cancel.cancel());
            assert_eq!(reports.len(), 0);
            door.let_through(1);
            calling.await.expect("it is open");
            assert_eq!(reports.take(), ended([1], Reason::Cancelled), "{name}");
            stage.settled().await;
            assert_eq!(came.take(), [0], "{name}");
            let stats = stage.stats();
            assert_eq!((stats.called, stats.cancelled), (1, 1), "{name}");
            adds_up(&stage);
        }
        Ok(())
    })
}

/// An event that its caller has taken counts as cancelled at both stages.
#[test]
fn events_cancelled_between_a_handler_and_its_call_are_skipped() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    let clock = Arc::new(clock);
    runtime.block_on(async {
        let (reports, came) = (Reports::default(), Noted::default());
        let network = Network::new("outside");
        for (name, stage, call) in callees(&network, &came, &clock)? {
            let door = Door::new();
            let at = door.clone();
            let caller = network.stage(format!("calls {name}")).serial(move |_| {
                let (call, at) = (call.clone(), at.clone());
                Ok(one(move |batch: &mut Batch<u32>| {
                    let (call, at) = (call.clone(), at.clone());
                    Box::pin(async move {
                        let event = batch.next_event().expect("there is one");
                        at.pass().await;
                        call.send(event).await.expect("it is open");
                    })
                }))
            })?;
            let caller = network.find::<u32>(caller.name())?;
            let (event, cancel) = cancellable(1, &reports);
            caller.sender().try_send(event).expect("there is room");
            door.until(1).await;
            drop(cancel);
            assert_eq!(reports.len(), 0);
            door.let_through(1);
            caller.drain().await;
            assert_eq!(reports.take(), ended([1], Reason::Cancelled));
            assert_eq!(came.len(), 0);
            let counts = [&caller, &stage].map(|stage| {
                let stats = stage.stats();
                (stats.cancelled, stats.finished, stats.called)
            });
            assert_eq!(counts, [(1, 0, 0), (1, 0, 1)]);
            adds_up(&caller);
            adds_up(&stage);
        }
        Ok(())
    })
}

#[test]
fn events_cancelled_before_forwarding_end_when_queued() -> Result<(), BuildError> {
    let (_clock, runtime) = by_hand();
    runtime.block_on(async {
        for count in [2, 100] {
            let (reports, came) = (Reports::default(), Noted::default());
            let (last, edge) = last(&Network::new("outside"), &came)?;
            last.pause();
            let (events, mut handles): (Vec<_>, Vec<_>) =
                (0..count).map(|n| cancellable(n, &reports)).unzip();
            drop(handles.remove(0));
            let mut batch = Batch::of(events);
            edge.forward(&mut batch).await.expect("it is open");
            assert_eq!(reports.take(), ended([0], Reason::Cancelled));
            assert_eq!(last.stats().queued, u64::from(count - 1));
            last.resume();
            last.settled().await;
            assert_eq!(came.take(), (1..count).collect::<Vec<_>>());
            assert_eq!(last.stats().cancelled, 1);
            adds_up(&last);
        }
        Ok(())
    })
}

/// A handler gives the events of its batch deadlines, or cancels them, where they are, and calls
/// another stage with them.
#[test]
fn events_changed_in_place_before_a_call_are_checked() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    let clock = Arc::new(clock);
    runtime.block_on(async {
        let (reports, came) = (Reports::default(), Noted::default());
        let network = Network::new("outside");
        for (name, stage, call) in callees(&network, &came, &clock)? {
            let reports = reports.clone();
            let report = reports.clone();
            let caller = network.stage(format!("calls {name}")).manual();
            let caller = caller.serial(move |_| {
                let (call, reports) = (call.clone(), report.clone());
                Ok(one(move |batch: &mut Batch<u32>| {
                    let (call, reports) = (call.clone(), reports.clone());
                    Box::pin(async move {
                        let change = |event: &mut Event<u32>| match **event {
                            0 => {}
                            3 => {
                                let (dead, cancel) = cancellable(3, &reports);
                                *event = dead;
                                drop(cancel);
                            }
                            n => *event = reporting(n, &reports).within(SECOND / 2),
                        };
                        if name == "plain" {
                            batch.retain(|event| {
                                change(event);
                                true
                            });
                        } else {
                            batch.events_mut().iter_mut().for_each(change);
                        }
                        call.call(batch).await.expect("it is open");
                    })
                }))
            })?;
            caller.pause();
            for n in 0..4 {
                caller.sender().try_send(n).expect("there is room");
            }
            caller.resume();
            caller.drain().await;
            let mut reports = reports.take();
            reports.sort_unstable_by_key(|(n, _)| *n);
            let mut late = ended([1, 2], Reason::Expired);
            late.extend(ended([3], Reason::Cancelled));
            assert_eq!(reports, late, "{name}");
            assert_eq!(came.take(), [0], "{name}");
            let stats = caller.stats();
            assert_eq!(
                (stats.expired, stats.cancelled, stats.finished),
                (2, 1, 1),
                "{name}"
            );
            adds_up(&caller);
            adds_up(&stage);
        }
        Ok(())
    })
}

/// An event that a handler leaves, and has made itself, is queued by that: its time begins.
#[test]
fn events_that_a_handler_makes_and_leaves_get_their_deadline_then() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    clock.advance(SECOND * 10);
    runtime.block_on(async {
        let network = Network::new("outside");
        for keyed in [false, true] {
            let (reports, came, door) = (Reports::default(), Noted::default(), Door::new());
            let (note, report, at) = (came.clone(), reports.clone(), door.clone());
            let handle = works(move |batch| {
                let (note, report, at) = (note.clone(), report.clone(), at.clone());
                Box::pin(async move {
                    if at.came() == 0 {
                        let mut events: Vec<_> = (1..5).map(|n| reporting(n, &report)).collect();
                        let late = events.drain(1..).map(|event| event.within(SECOND));
                        let late: Vec<_> = late.collect();
                        *batch = Batch::of(events.into_iter().chain(late));
                        at.pass().await;
                    } else {
                        batch.drain().for_each(|n| note.add(n));
                    }
                })
            });
            let stage = network.stage(if keyed { "keyed" } else { "plain" });
            let stage = if keyed {
                stage.keyed_by(|_: &u32| ())
            } else {
                stage
            };
            stage.manual().handler(move |_| Ok(by(handle)))?;
            let stage = network.find::<u32>(if keyed { "keyed" } else { "plain" })?;
            stage.sender().try_send(0).expect("there is room");
            door.until(1).await;
            stage.pause();
            door.let_through(1);
            until(&stage, |stats| stats.queued == 4).await;
            clock.advance(SECOND - Duration::from_millis(1));
            crate::idle().await;
            assert_eq!(reports.len(), 0);
            clock.advance(Duration::from_millis(1));
            reports.until(3).await;
            assert_eq!(reports.take(), ended(2..5, Reason::Expired));
            stage.sender().try_send(5).expect("there is room");
            clock.advance(SECOND);
            stage.resume();
            stage.drain().await;
            assert_eq!(came.take(), [1, 5]);
            let stats = stage.stats();
            assert_eq!((stats.response.count, stats.expired), (2, 3));
            assert!(stats.response.p99 < SECOND * 5, "{stats:?}");
            adds_up(&stage);
        }
        Ok(())
    })
}
