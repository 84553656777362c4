//! Stages by key whose keys panic: when they are hashed, compared or dropped.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use futures_lite::FutureExt;
use tussah::stage::{Batch, BuildError, Event, Network, Reason};

use super::support::{Noted, adds_up, by, each};
use crate::runtime;

/// Its hash panics.
const NO_HASH: u32 = 13;
/// The key panics when it is compared.
const NO_EQ: u32 = 15;
/// Its destructor panics.
const NO_DROP: u32 = 17;

/// A key that is found by comparing it with all others.
struct Key(u32);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        assert_ne!(self.0, NO_HASH, "expected: no hash");
        state.write_u8(0);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        assert!(
            self.0 != NO_EQ && other.0 != NO_EQ,
            "expected: not comparable"
        );
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Clone for Key {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        assert!(
            self.0 != NO_DROP || std::thread::panicking(),
            "expected: not to be dropped"
        );
    }
}

/// The event ends with its sender, under no lock: whoever is told of that may use the stage.
#[test]
fn a_panic_of_the_key_reaches_the_sender_or_caller() -> Result<(), BuildError> {
    for bad in [NO_HASH, NO_EQ] {
        runtime(1).block_on(async {
            let network = Network::new("keyed");
            let came = Noted::default();
            let note = came.clone();
            let stage = network.stage("stage").keyed_by(|n: &u32| Key(*n));
            let stage = stage
                .servlets(1)
                .handler(move |_| Ok(each(move |n| note.add(n))))?;
            let told = Noted::default();
            let event = || {
                let (told, stage) = (told.clone(), stage.clone());
                Event::new(bad).on_drop(move |why| told.add((why, stage.stats().queued)))
            };
            let sender = stage.sender();
            stage.pause();
            sender.try_send(1).expect("there is room");
            let sent = catch_unwind(AssertUnwindSafe(|| sender.try_send(event()).is_ok()));
            sent.expect_err("the key panics");
            let caller = network.stage::<u32>("caller").servlets(1);
            let caller = caller.handler(|edges| {
                let call = edges.to(&stage).call()?;
                Ok(by(move |batch: &mut Batch<u32>| {
                    let call = call.clone();
                    Box::pin(async move {
                        let called = AssertUnwindSafe(call.call(batch)).catch_unwind().await;
                        let left = batch.drain().count();
                        assert_eq!(left, 2, "nothing has been taken");
                        resume_unwind(called.expect_err("the key panics"));
                    })
                }))
            })?;
            caller.pause();
            caller.sender().try_send(event()).expect("there is room");
            caller.sender().try_send(2).expect("there is room");
            caller.resume();
            caller.settled().await;
            assert_eq!(told.take(), [(Reason::Panicked, 1), (Reason::Panicked, 1)]);
            sender.try_send(2).expect("there is room");
            assert_eq!(stage.stats().keys, 2);
            stage.resume();
            stage.settled().await;
            assert_eq!(came.take(), [1, 2]);
            assert_eq!(stage.stats().keys, 0);
            adds_up(&stage);
            Ok::<(), BuildError>(())
        })?;
    }
    Ok(())
}

/// An event without a key any more goes back to the key that it was taken from.
#[test]
fn events_given_back_stay_if_their_key_panics() -> Result<(), BuildError> {
    for bad in [NO_HASH, NO_EQ, NO_DROP] {
        runtime(1).block_on_spawned(async move {
            let network = Network::new("keyed");
            let came = Noted::default();
            let note = came.clone();
            let stage = network.stage("stage").keyed_by(|n: &u32| Key(*n));
            let stage = stage.manual().handler(move |_| {
                Ok(by(move |batch: &mut Batch<u32>| {
                    let note = note.clone();
                    Box::pin(async move {
                        if note.len() > 0 {
                            return batch.drain().for_each(|n| note.add(n));
                        }
                        note.add(0);
                        *batch.events_mut()[0] = bad;
                    })
                }))
            })?;
            stage.sender().try_send(1).expect("there is room");
            stage.settled().await;
            assert_eq!(came.take(), [0, bad]);
            assert_eq!(stage.stats().keys, 0);
            adds_up(&stage);
            Ok::<(), BuildError>(())
        })?;
    }
    Ok(())
}

/// Keys of one hash are told apart, whichever of them is forgotten first.
#[test]
fn keys_of_one_hash_come_and_go() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("keyed");
        let came = Noted::default();
        let note = came.clone();
        let stage = network.stage("stage").keyed_by(|n: &u32| Key(n % 100));
        let stage = stage
            .servlets(1)
            .handler(move |_| Ok(each(move |n| note.add(n))))?;
        for order in [[1, 2, 3], [3, 1, 2], [2, 3, 1]] {
            stage.pause();
            for n in [1, 2, 3] {
                stage.sender().try_send(n).expect("there is room");
            }
            assert_eq!(stage.stats().keys, 3);
            for n in order {
                stage.sender().try_send(100 + n).expect("there is room");
            }
            assert_eq!(stage.stats().keys, 3);
            stage.resume();
            stage.settled().await;
            assert_eq!(came.take(), [1, 101, 2, 102, 3, 103]);
            assert_eq!(stage.stats().keys, 0);
        }
        Ok(())
    })
}
