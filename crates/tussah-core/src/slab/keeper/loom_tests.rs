//! Models of the end of a slab: its owner is freed once, and is never used after that.

use std::sync::Arc;

use super::Keeper;
use crate::loom::atomic::{AtomicUsize, Ordering, fence};
use crate::loom::{Mutex, lock, thread};
use crate::worker::model::{Probe, explore};

const EVENT: usize = 0;
const THREAD: usize = 1;

/// An owner like that of an `Arc`. A freed owner stays in memory, so that the model can inspect it.
struct Owner {
    references: AtomicUsize,
    depots: [Mutex<Keeper>; 2],
    /// Read by each user of the owner, and touched by the code that frees it.
    memory: Probe,
}

impl Owner {
    /// Creates an owner with the reference of the open slab, and one reference for each handle.
    fn new(handles: usize) -> Arc<Self> {
        Arc::new(Self {
            references: AtomicUsize::new(1 + handles),
            depots: [(); 2].map(|()| Mutex::new(Keeper::new())),
            memory: Probe::new(),
        })
    }

    fn look(&self) {
        assert_eq!(self.memory.look(), 0, "it is freed");
    }

    fn retain(&self) {
        self.look();
        let before = self.references.fetch_add(1, Ordering::Relaxed);
        assert!(before > 0, "whoever retains has a reference");
    }

    fn release(&self) {
        self.look();
        if self.references.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            self.memory.touch();
        }
    }

    /// Does the same as `Slab::take`.
    fn alloc(&self, kind: usize) {
        self.look();
        let mut depot = lock(&self.depots[kind]);
        if depot.take(1) {
            self.retain();
        }
        self.look();
    }

    /// Does the same as `Slab::give` and its caller. The lock's release is the last use of an owner
    /// that others keep alive.
    fn free(&self, kind: usize) {
        self.look();
        let last = lock(&self.depots[kind]).give(1);
        if last {
            self.release();
        }
    }

    /// Does the same as `Slab::close` and its caller.
    fn close(&self) {
        for depot in &self.depots {
            self.look();
            let mut depot = lock(depot);
            if depot.close() {
                self.retain();
            }
            self.look();
        }
        self.release();
    }
}

fn run(owner: &Arc<Owner>, os_threads: Vec<fn(&Owner)>) {
    let os_threads: Vec<_> = os_threads
        .into_iter()
        .map(|f| {
            let owner = owner.clone();
            thread::spawn(move || f(&owner))
        })
        .collect();
    for os_thread in os_threads {
        os_thread.join().expect("no panic");
    }
    assert_eq!(owner.memory.look(), 1, "it is freed once");
}

/// A party with a handle creates a thread, and drops the handle before the thread.
#[test]
fn a_spawn_around_the_close() {
    explore(4, || {
        let owner = Owner::new(1);
        let spawn = |owner: &Owner| {
            owner.alloc(THREAD);
            owner.release();
            owner.look();
            owner.free(THREAD);
        };
        run(&owner, vec![spawn, Owner::close]);
    });
}

/// Two parties create threads at the same time: the number of objects in use may reach zero more
/// than once.
#[test]
fn two_spawns_around_the_close() {
    explore(3, || {
        let owner = Owner::new(2);
        let spawn = |owner: &Owner| {
            owner.alloc(THREAD);
            owner.release();
            owner.free(THREAD);
        };
        run(&owner, vec![spawn, spawn, Owner::close]);
    });
}

/// Only an object keeps the owner alive while a party allocates another object, of the other kind,
/// through it.
#[test]
fn an_object_makes_another_around_the_close() {
    explore(3, || {
        let owner = Owner::new(0);
        owner.alloc(THREAD);
        owner.alloc(EVENT);
        let first = |owner: &Owner| {
            owner.alloc(EVENT);
            owner.free(THREAD);
            owner.look();
            owner.free(EVENT);
        };
        run(&owner, vec![first, |owner| owner.free(EVENT), Owner::close]);
    });
}
