//! Events that are cancelled: in a queue they end at once, and nowhere twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tussah::stage::observe::StageStats;
use tussah::stage::{Batch, BuildError, CancelHandle, Class, Event, Network, Reason, Stage};

use super::support::{Door, Noted, adds_up, by, each};
use crate::runtime;

/// An event that can be cancelled, and tells of its end.
fn cancellable(n: u32, told: &Noted<(u32, Reason)>) -> (Event<u32>, CancelHandle) {
    let told = told.clone();
    Event::new(n)
        .on_drop(move |why| told.add((n, why)))
        .cancellable()
}

/// Each kind of stage, which notes what comes.
fn kinds(came: &Noted<u32>) -> Result<Vec<Stage<u32>>, BuildError> {
    let network = Network::new("cancelled");
    let note = || {
        let came = came.clone();
        move |n: u32| came.add(n)
    };
    let keyed = network.stage("keyed").classes(2).keyed_by(|n: &u32| n % 2);
    let (plain, blocking) = (note(), note());
    network.stage("plain").handler(move |_| Ok(each(plain)))?;
    let classes = note();
    network
        .stage("classes")
        .classes(2)
        .handler(move |_| Ok(each(classes)))?;
    let by_key = note();
    keyed.handler(move |_| Ok(each(by_key)))?;
    let note = note();
    network
        .stage("serial")
        .serial(move |_| Ok(each(note.clone())))?;
    network
        .stage("blocking")
        .blocking(move |_| Ok(move |batch: &mut Batch<u32>| batch.drain().for_each(&blocking)))?;
    ["plain", "classes", "keyed", "serial", "blocking"]
        .into_iter()
        .map(|name| network.find::<u32>(name))
        .collect()
}

fn queued(stats: &StageStats) -> (u64, u64, u64) {
    (stats.queued, stats.queue_len, stats.cancelled)
}

#[test]
fn a_queued_event_ends_at_once_in_every_kind_of_stage() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let (told, came) = (Noted::default(), Noted::default());
        for stage in kinds(&came)? {
            stage.pause();
            let sender = stage.sender();
            let mut handles = Vec::new();
            for n in 0..4 {
                let (event, handle) = cancellable(n, &told);
                let event = event.class(Class((n % 2) as u8)).credits(10);
                sender.try_send(event).expect("there is room");
                handles.push(handle);
            }
            assert_eq!(queued(&stage.stats()), (4, 40, 0));
            assert!(handles[1].cancel());
            assert_eq!(told.take(), [(1, Reason::Cancelled)]);
            assert_eq!(queued(&stage.stats()), (3, 30, 1));
            assert!(!handles[1].cancel() && handles[1].is_cancelled());
            drop(handles.remove(2));
            assert_eq!(told.take(), [(2, Reason::Cancelled)]);
            adds_up(&stage);
            stage.resume();
            stage.drain().await;
            let mut came = came.take();
            came.sort_unstable();
            assert_eq!(came, [0, 3], "{stage:?}");
            assert!(!handles[0].cancel() && !handles[0].is_cancelled());
            drop(handles);
            assert_eq!(told.len(), 0);
            assert_eq!(queued(&stage.stats()), (0, 0, 2));
            assert_eq!(stage.stats().response.count, 2);
            adds_up(&stage);
        }
        Ok(())
    })
}

#[test]
fn the_room_of_a_cancelled_event_goes_to_a_sender_that_waits() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let (told, came) = (Noted::default(), Noted::default());
        let network = Network::new("cancelled");
        for keyed in [false, true] {
            let builder = network.stage(if keyed { "keyed" } else { "plain" });
            let builder = if keyed {
                // Of each key, two.
                builder.keyed_by(|_: &u32| ()).key_queue(2)
            } else {
                builder.queue(2)
            };
            let note = came.clone();
            let stage = builder.handler(move |_| Ok(each(move |n: u32| note.add(n))))?;
            stage.pause();
            let sender = stage.sender();
            let (first, cancel) = cancellable(1, &told);
            sender.try_send(first).expect("there is room");
            sender.try_send(2).expect("there is room");
            assert!(sender.try_send(3).is_err());
            let waiting = tussah::spawn(async move { sender.send(4).await.is_ok() });
            crate::idle().await;
            drop(cancel);
            assert!(waiting.await.expect("no panic"));
            stage.resume();
            stage.drain().await;
            assert_eq!(came.take(), [2, 4]);
            assert_eq!(told.take(), [(1, Reason::Cancelled)]);
            adds_up(&stage);
        }
        Ok(())
    })
}

#[test]
fn an_event_that_is_cancelled_before_it_is_sent_ends_as_it_is_queued() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let (told, came) = (Noted::default(), Noted::default());
        for stage in kinds(&came)? {
            let (event, cancel) = cancellable(1, &told);
            let token = event.cancellation();
            assert!(!token.is_cancelled());
            assert!(cancel.cancel());
            assert!(token.is_cancelled() && event.is_cancelled());
            token.cancelled().await;
            stage.sender().send(event).await.expect("it is taken");
            stage.settled().await;
            assert_eq!(told.take(), [(1, Reason::Cancelled)]);
            let (event, cancel) = cancellable(2, &told);
            cancel.detach();
            stage.sender().send(event).await.expect("it is taken");
            stage.drain().await;
            assert_eq!(came.take(), [2]);
            assert_eq!((told.len(), stage.stats().cancelled), (0, 1));
            adds_up(&stage);
        }
        Ok(())
    })
}

/// Events that a handler has not reached, because it computes or leaves them in its batch.
#[test]
fn a_handler_does_not_get_cancelled_events_of_its_batch() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("cancelled");
        for leaves in [false, true] {
            let (told, came) = (Noted::default(), Noted::default());
            let handles = Arc::new(Mutex::new(Vec::new()));
            let (note, cancels) = (came.clone(), Arc::clone(&handles));
            let stage = network.stage(if leaves { "leaves" } else { "drains" });
            let stage = stage.handler(move |_| {
                Ok(by(move |batch: &mut Batch<u32>| {
                    let (note, cancels) = (note.clone(), Arc::clone(&cancels));
                    Box::pin(async move {
                        while let Some(n) = batch.next() {
                            note.add(n);
                            if n < 2 {
                                let cancel: Option<CancelHandle> = cancels.lock().pop();
                                drop(cancel);
                            }
                            if leaves {
                                return;
                            }
                        }
                    })
                }))
            })?;
            stage.pause();
            for n in 0..5 {
                let (event, cancel) = cancellable(n, &told);
                stage.sender().try_send(event).expect("there is room");
                handles.lock().push(cancel);
            }
            stage.resume();
            stage.drain().await;
            assert_eq!(came.take(), [0, 1, 2]);
            let mut told = told.take();
            told.sort_unstable_by_key(|(n, _)| *n);
            assert_eq!(told, [3, 4].map(|n| (n, Reason::Cancelled)));
            assert_eq!((stage.stats().finished, stage.stats().cancelled), (3, 2));
            adds_up(&stage);
        }
        Ok(())
    })
}

#[test]
fn cancelled_events_are_reported_before_a_drain_or_shutdown_ends() -> Result<(), BuildError> {
    let runtime = runtime(1);
    let told = Noted::default();
    let stage = runtime.block_on(async {
        let door = Door::new();
        let at = door.clone();
        let network = Network::new("cancelled");
        let stage = network.stage("stage").batch(1).servlets(1).manual();
        let stage = stage.handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                let at = at.clone();
                Box::pin(async move {
                    while batch.next().is_some() {
                        at.pass().await;
                    }
                })
            }))
        })?;
        // One is being handled; of many, a few are cancelled, which stay in the queue for now.
        stage.sender().try_send(100).expect("there is room");
        door.until(1).await;
        let mut handles = Vec::new();
        for n in 0..30 {
            let (event, cancel) = cancellable(n, &told);
            stage.sender().try_send(event).expect("there is room");
            handles.push(cancel);
        }
        handles.drain(28..).for_each(drop);
        assert_eq!((told.len(), stage.stats().cancelled), (0, 2));
        // At last there are enough of them.
        handles.drain(20..).for_each(drop);
        assert_eq!(stage.stats().queued, 20);
        door.let_through(19);
        door.until(20).await;
        handles.pop();
        door.let_through(1);
        stage.settled().await;
        let mut all = told.take();
        all.sort_unstable_by_key(|(n, _)| *n);
        let cancelled: Vec<_> = (19..30).map(|n| (n, Reason::Cancelled)).collect();
        assert_eq!(all, cancelled);
        // What is left as the runtime ends.
        for n in 0..10 {
            let (event, cancel) = cancellable(n, &told);
            stage.sender().try_send(event).expect("there is room");
            if n == 4 {
                drop(cancel);
            } else {
                cancel.detach();
            }
        }
        Ok::<_, BuildError>(stage)
    })?;
    runtime.shutdown(std::time::Duration::ZERO);
    let mut all = told.take();
    all.sort_unstable_by_key(|(n, _)| *n);
    let end = |n| match n {
        4 => Reason::Cancelled,
        _ => Reason::ShutDown,
    };
    assert!(all.iter().all(|&(n, why)| why == end(n)), "{all:?}");
    assert_eq!(
        all.iter()
            .filter(|(_, why)| *why == Reason::Cancelled)
            .count(),
        1
    );
    adds_up(&stage);
    Ok(())
}

/// However many are cancelled, and in whatever order, the values that are still there are at most
/// an eighth more than those that wait.
#[test]
fn the_values_of_many_cancelled_events_leave() -> Result<(), BuildError> {
    const EVENTS: usize = 100_000;
    runtime(1).block_on(async {
        let network = Network::new("cancelled");
        for (name, keys) in [("plain", 0), ("one key", 1), ("keys", EVENTS)] {
            let builder = network.stage(name).queue(EVENTS as u64);
            let builder = match keys {
                0 => builder,
                keys => builder
                    .key_queue(EVENTS)
                    .keyed_by(move |(n, _): &(usize, Arc<()>)| n % keys),
            };
            let stage = builder.handler(|_| Ok(each(|_: (usize, Arc<()>)| ())))?;
            stage.pause();
            let value = Arc::new(());
            let mut handles = Vec::new();
            for n in 0..EVENTS {
                let (event, cancel) = Event::new((n, Arc::clone(&value))).cancellable();
                stage.sender().try_send(event).expect("there is room");
                handles.push(cancel);
            }
            // Every third, then the others from the front.
            let (first, rest): (Vec<_>, Vec<_>) = handles
                .into_iter()
                .enumerate()
                .partition(|(n, _)| n % 3 == 0);
            let mut left = EVENTS;
            for (_, cancel) in first.into_iter().chain(rest) {
                assert!(cancel.cancel());
                left -= 1;
                let values = Arc::strong_count(&value) - 1;
                let parts = keys.max(1);
                assert!(
                    values - left <= left / 7 + usize::from(parts > 1),
                    "{values} of {left}"
                );
            }
            assert_eq!(Arc::strong_count(&value), 1);
            assert_eq!(queued(&stage.stats()), (0, 0, EVENTS as u64));
            stage.drain().await;
            adds_up(&stage);
        }
        Ok(())
    })
}

/// OS threads cancel events while servlets take them: each is handled or told, and never both.
#[test]
fn the_first_of_handler_and_canceller_gets_the_event() -> Result<(), BuildError> {
    const EVENTS: usize = 20_000;
    let runtime = runtime(2);
    for keyed in [false, true] {
        let ends: Arc<Vec<AtomicUsize>> = Arc::new((0..EVENTS).map(|_| 0.into()).collect());
        let network = Network::on(runtime.handle(), "race");
        let builder = network.stage("stage").queue(100).batch(4);
        let builder = if keyed {
            builder.keyed_by(|n: &usize| n % 5)
        } else {
            builder
        };
        let handled = Arc::clone(&ends);
        let stage = builder.handler(move |_| {
            Ok(each(move |n: usize| {
                handled[n].fetch_add(1, Ordering::Relaxed);
            }))
        })?;
        let (to, from) = std::sync::mpsc::channel::<CancelHandle>();
        let cancels = std::thread::spawn(move || from.iter().filter(CancelHandle::cancel).count());
        let (sender, told) = (stage.sender(), Arc::clone(&ends));
        runtime.block_on(async move {
            for n in 0..EVENTS {
                let told = Arc::clone(&told);
                let event = Event::new(n).on_drop(move |why| {
                    assert_eq!(why, Reason::Cancelled);
                    told[n].fetch_add(1, Ordering::Relaxed);
                });
                let (event, cancel) = event.cancellable();
                to.send(cancel).expect("it is there to the end");
                sender.send(event).await.expect("it is open");
            }
        });
        let cancelled = cancels.join().expect("no panic") as u64;
        runtime.block_on(stage.drain());
        assert!(ends.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        let stats = stage.stats();
        // One that was being handled ended so.
        assert!(stats.cancelled <= cancelled);
        assert_eq!(stats.finished + stats.cancelled, EVENTS as u64);
        adds_up(&stage);
    }
    Ok(())
}
