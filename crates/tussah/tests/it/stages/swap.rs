//! Another handler in the place of one, while events come.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_lite::future::poll_once;
use tussah::stage::{AnyCall, Batch, BuildError, Network, Stage};

use super::support::{Door, Noted, adds_up, by, each, one};
use crate::{idle, runtime};

/// How many events are sent, and how often the handler is swapped meanwhile.
const EVENTS: u32 = 3000;
const SWAPS: usize = 60;

/// Sends events while handlers are swapped by `swap`; checks that each is handled once.
fn check<S>(
    made: impl FnOnce(&Network, &Noted<u32>) -> Result<Stage<u32>, BuildError>,
    swap: impl Fn(Stage<u32>, Noted<u32>) -> S,
) -> Result<(), BuildError>
where
    S: Future<Output = Result<(), BuildError>>,
{
    runtime(2).block_on(async {
        let network = Network::new("swap");
        let came = Noted::default();
        let stage = made(&network, &came)?;
        let sender = stage.sender();
        let sending = tussah::spawn(async move {
            for n in 0..EVENTS {
                sender.send(n).await.expect("it is open");
            }
        });
        for _ in 0..SWAPS {
            swap(stage.clone(), came.clone()).await?;
            tussah::yield_now().await;
        }
        sending.await.expect("no panic");
        stage.drain().await;
        adds_up(&stage);
        let stats = stage.stats();
        assert_eq!((stats.panicked, stats.finished), (0, u64::from(EVENTS)));
        let mut came = came.take();
        came.sort_unstable();
        assert_eq!(came, (0..EVENTS).collect::<Vec<_>>());
        Ok(())
    })
}

#[test]
fn a_swap_loses_no_event_and_doubles_none() -> Result<(), BuildError> {
    check(
        |network, came| {
            let note = came.clone();
            network
                .stage("stage")
                .queue(20)
                .batch(3)
                .handler(move |_| Ok(each(move |n: u32| note.add(n))))?;
            network.find("stage")
        },
        |stage, note| async move {
            stage
                .swap(move |_| {
                    Ok(by(move |batch: &mut Batch<u32>| {
                        let note = note.clone();
                        Box::pin(async move {
                            while let Some(n) = batch.next() {
                                note.add(n);
                                tussah::yield_now().await;
                            }
                        })
                    }))
                })
                .await?;
            Ok(())
        },
    )
}

#[test]
fn a_serial_handler_is_swapped_when_its_batch_has_ended() -> Result<(), BuildError> {
    let inside = Arc::new(AtomicBool::new(false));
    let handler = move |note: Noted<u32>| {
        let inside = Arc::clone(&inside);
        one(move |batch: &mut Batch<u32>| {
            let (note, inside) = (note.clone(), Arc::clone(&inside));
            Box::pin(async move {
                while let Some(n) = batch.next() {
                    assert!(!inside.swap(true, Ordering::AcqRel), "one at a time");
                    tussah::yield_now().await;
                    inside.store(false, Ordering::Release);
                    note.add(n);
                }
            })
        })
    };
    let other = handler.clone();
    check(
        move |network, came| {
            let note = came.clone();
            let builder = network.stage("stage").queue(20).batch(3);
            builder.serial(move |_| Ok(handler(note.clone())))?;
            network.find("stage")
        },
        |stage, note| {
            let other = other.clone();
            async move {
                let made = move |_: &tussah::stage::Edges<'_>| Ok(other(note.clone()));
                stage.swap_serial(made).await?;
                Ok(())
            }
        },
    )
}

#[test]
fn two_swaps_at_once_both_happen() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("swap");
        let (door, came) = (Door::new(), Noted::default());
        let at = door.clone();
        network.stage("stage").serial(move |_| {
            let at = at.clone();
            Ok(one(move |batch: &mut Batch<u32>| {
                let at = at.clone();
                Box::pin(async move {
                    batch.next();
                    at.pass().await;
                })
            }))
        })?;
        let stage: Stage<u32> = network.find("stage")?;
        stage.sender().try_send(0).expect("there is room");
        door.until(1).await;
        let swaps: Vec<_> = (1..=3)
            .map(|number| {
                let (stage, note) = (stage.clone(), came.clone());
                tussah::spawn(async move {
                    let made = move |_: &tussah::stage::Edges<'_>| {
                        let note = note.clone();
                        Ok(each(move |n: u32| note.add((number, n))))
                    };
                    stage.swap_serial(made).await.map(drop)
                })
            })
            .collect();
        idle().await;
        stage.sender().try_send(1).expect("it queues meanwhile");
        assert_eq!(stage.stats().gate, "swapping");
        door.let_through(1);
        for swap in swaps {
            swap.await.expect("no panic")?;
        }
        stage.drain().await;
        let came = came.take();
        assert_eq!(came.len(), 1);
        Ok(())
    })
}

#[test]
fn one_of_two_swaps_may_be_cancelled() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("swap");
        let (door, came) = (Door::new(), Noted::default());
        let at = door.clone();
        let stage = network.stage("stage").batch(1).serial(move |_| {
            let at = at.clone();
            Ok(one(move |batch: &mut Batch<u32>| {
                let at = at.clone();
                Box::pin(async move {
                    batch.next();
                    at.pass().await;
                })
            }))
        })?;
        for n in 0..3 {
            stage.sender().try_send(n).expect("there is room");
        }
        door.until(1).await;
        let unused = |_: &tussah::stage::Edges<'_>| Ok(each(|_: u32| unreachable!("given up")));
        let mut first = Box::pin(stage.swap_serial(unused));
        assert!(poll_once(&mut first).await.is_none());
        let note = came.clone();
        let mut second = Box::pin(stage.swap_serial(move |_| {
            let note = note.clone();
            Ok(each(move |n: u32| note.add(n)))
        }));
        assert!(poll_once(&mut second).await.is_none());
        drop(first);
        door.let_through(3);
        second.await?;
        stage.sender().try_send(3).expect("there is room");
        stage.drain().await;
        assert_eq!(door.came() + came.len(), 4);
        assert!(came.take().contains(&3), "the second has happened");
        Ok(())
    })
}

#[test]
fn after_a_cancelled_swap_the_earlier_handler_takes_every_event() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("swap");
        let door = Door::new();
        let at = door.clone();
        let stage = network.stage("stage").batch(1).serial(move |_| {
            let at = at.clone();
            Ok(one(move |batch: &mut Batch<u32>| {
                let at = at.clone();
                Box::pin(async move {
                    batch.next();
                    at.pass().await;
                })
            }))
        })?;
        for n in 0..3 {
            stage.sender().try_send(n).expect("there is room");
        }
        door.until(1).await;
        let unused = |_: &tussah::stage::Edges<'_>| Ok(each(|_: u32| unreachable!("given up")));
        let mut swap = Box::pin(stage.swap_serial(unused));
        assert!(poll_once(&mut swap).await.is_none());
        drop(swap);
        door.let_through(3);
        stage.drain().await;
        assert_eq!(stage.stats().finished, 3);
        Ok(())
    })
}

/// An action on a stage in the middle of a swap.
#[derive(Clone, Copy, PartialEq)]
enum Meanwhile {
    Resume,
    Pause,
    Drain,
}

/// A serial stage is given another handler while a call holds the present one; until that ends,
/// `meanwhile` is done. Returns what came to the new handler, and whether the swap was refused.
fn in_the_middle(meanwhile: Meanwhile) -> Result<(Vec<u32>, bool), BuildError> {
    runtime(1).block_on_spawned(async move {
        let network = Network::new("swap");
        let (door, came) = (Door::new(), Noted::default());
        let (at, note) = (door.clone(), came.clone());
        let callee = network.stage("callee").serial(move |_| {
            let (at, note) = (at.clone(), note.clone());
            Ok(one(move |batch: &mut Batch<u32>| {
                let (at, note) = (at.clone(), note.clone());
                Box::pin(async move {
                    at.pass().await;
                    batch.drain().for_each(|n| note.add(n));
                })
            }))
        })?;
        let caller = network.stage("caller").handler(|edges| {
            let call: AnyCall<u32> = edges.named("callee")?.call()?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let call = call.clone();
                Box::pin(async move { call.call(batch).await.expect("it is open") })
            }))
        })?;
        caller.sender().try_send(0).expect("there is room");
        door.until(1).await;
        if meanwhile == Meanwhile::Resume {
            callee.pause();
        }
        let note = came.clone();
        let mut swap = Box::pin(callee.swap_serial(move |_| {
            let note = note.clone();
            Ok(each(move |n: u32| note.add(n + 100)))
        }));
        assert!(
            poll_once(&mut swap).await.is_none(),
            "the call holds the handler"
        );
        callee.sender().try_send(1).expect("it queues meanwhile");
        let mut drained = Box::pin(callee.drain());
        match meanwhile {
            Meanwhile::Resume => callee.resume(),
            Meanwhile::Pause => callee.pause(),
            Meanwhile::Drain => assert!(poll_once(&mut drained).await.is_none()),
        }
        idle().await;
        door.let_through(2);
        let refused = swap.await.is_err();
        idle().await;
        if meanwhile == Meanwhile::Pause {
            assert_eq!(came.take(), [0], "it is paused");
            assert_eq!(callee.stats().gate, "paused");
        }
        drained.await;
        caller.drain().await;
        assert_eq!(caller.stats().panicked, 0);
        adds_up(&callee);
        assert_eq!(callee.stats().finished, 1, "nothing is lost");
        Ok((came.take(), refused))
    })
}

#[test]
fn a_stage_is_resumed_paused_or_drained_in_the_middle_of_a_swap() -> Result<(), BuildError> {
    let (came, refused) = in_the_middle(Meanwhile::Resume)?;
    assert_eq!((came, refused), (vec![0, 101], false));
    let (came, refused) = in_the_middle(Meanwhile::Pause)?;
    assert_eq!((came, refused), (vec![101], false));
    // What was let in before the drain is handled by whichever handler is there.
    let (came, refused) = in_the_middle(Meanwhile::Drain)?;
    assert_eq!(came, if refused { [0, 1] } else { [0, 101] });
    Ok(())
}

#[test]
fn calls_follow_a_swap() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("swap");
        let came = Noted::default();
        let note = came.clone();
        let callee = network
            .stage("callee")
            .handler(move |_| Ok(each(move |n: u32| note.add((1, n)))))?;
        let to = callee.clone();
        let caller = network.stage("caller").batch(1).handler(move |edges| {
            let typed = edges.to(&to).call()?;
            let named: AnyCall<u32> = edges.named("callee")?.call()?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let (typed, named) = (typed.clone(), named.clone());
                Box::pin(async move {
                    let n = batch.next().expect("an event");
                    typed.send(n).await.expect("it is open");
                    named.send(n).await.expect("it is open");
                })
            }))
        })?;
        caller.sender().try_send(1).expect("there is room");
        caller.settled().await;
        let note = came.clone();
        let swapped = callee
            .swap(move |_| Ok(each(move |n: u32| note.add((2, n)))))
            .await?;
        caller.sender().try_send(2).expect("there is room");
        caller.settled().await;
        swapped.sender().try_send(3).expect("there is room");
        callee.drain().await;
        assert_eq!(came.take(), [(1, 1), (1, 1), (2, 2), (2, 2), (2, 3)]);
        Ok(())
    })
}

#[test]
fn no_call_fails_while_serial_handlers_are_swapped() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let network = Network::new("swap");
        let count = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&count);
        let callee = network.stage("callee").serial(move |_| {
            let counts = Arc::clone(&counts);
            Ok(each(move |_: u32| {
                counts.fetch_add(1, Ordering::Relaxed);
            }))
        })?;
        let to = callee.clone();
        let caller = network.stage("caller").batch(1).handler(move |edges| {
            let call = edges.to(&to).call()?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let call = call.clone();
                Box::pin(async move { call.call(batch).await.expect("it is open") })
            }))
        })?;
        let sender = caller.sender();
        let sending = tussah::spawn(async move {
            for n in 0..EVENTS {
                sender.send(n).await.expect("it is open");
            }
        });
        for _ in 0..300 {
            let counts = Arc::clone(&count);
            callee
                .swap_serial(move |_| {
                    let counts = Arc::clone(&counts);
                    Ok(each(move |_: u32| {
                        counts.fetch_add(1, Ordering::Relaxed);
                    }))
                })
                .await?;
        }
        sending.await.expect("no panic");
        caller.drain().await;
        assert_eq!(caller.stats().panicked, 0);
        assert_eq!(count.load(Ordering::Relaxed), EVENTS as usize);
        Ok(())
    })
}

#[test]
fn a_swap_to_a_serial_handler_waits_for_all_batches() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("swap");
        let door = Door::new();
        let at = door.clone();
        let stage = network.stage("stage").batch(1).servlets(3).manual();
        let stage = stage.handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                let at = at.clone();
                Box::pin(async move {
                    batch.next();
                    at.pass().await;
                })
            }))
        })?;
        for n in 0..5 {
            stage.sender().try_send(n).expect("there is room");
        }
        door.until(3).await;
        let seen: Arc<parking_lot::Mutex<HashSet<u32>>> = Arc::default();
        let note = Arc::clone(&seen);
        let mut swap = Box::pin(stage.swap_serial(move |_| {
            let note = Arc::clone(&note);
            Ok(each(move |n: u32| {
                note.lock().insert(n);
            }))
        }));
        assert!(poll_once(&mut swap).await.is_none());
        door.let_through(2);
        idle().await;
        assert!(poll_once(&mut swap).await.is_none(), "one batch still runs");
        assert!(seen.lock().is_empty());
        door.let_through(1);
        swap.await?;
        stage.drain().await;
        assert_eq!(*seen.lock(), HashSet::from([3, 4]));
        assert_eq!(stage.stats().servlets.max, 1);
        Ok(())
    })
}
