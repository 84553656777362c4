//! Models of the ring: an owner, thieves, and a buffer that is replaced while thieves read it.

// This is the standard `Arc`: the main thread joins all others and is the last to drop it, so it
// needs no model.
use std::sync::Arc;

use super::super::{TestNode, TestNodes};
use super::*;
use crate::loom::thread::{self, JoinHandle};
use crate::worker::model::explore;

/// The number of items that each model pushes at most.
const ITEMS: usize = 5;

/// The state that a model's OS threads share. The first OS thread only starts and joins the other
/// OS threads, since loom does not explore it well beside them. When they have ended it takes the
/// remaining items, as the owner.
struct Model {
    ring: Ring<TestNode>,
    nodes: TestNodes,
}

impl Model {
    /// Creates a ring with this many items.
    fn new(pushed: usize) -> Arc<Self> {
        let model = Arc::new(Self {
            ring: Ring::new(),
            nodes: TestNodes::new(0, ITEMS),
        });
        model.push(0..pushed);
        model
    }

    fn push(&self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            // SAFETY: only the owner calls this.
            unsafe { self.ring.push(self.nodes.get(number)) }
        }
    }

    fn pop(&self) -> Option<usize> {
        // SAFETY: only the owner calls this.
        unsafe { self.ring.pop() }.map(|node| TestNode::take(node).1)
    }

    /// Runs `f` as the owner. `f` returns the items that it has taken.
    fn owner(self: &Arc<Self>, f: impl FnOnce(&Self) -> Option<usize> + 'static) -> Taker {
        let model = Arc::clone(self);
        thread::spawn(move || f(&model).into_iter().collect())
    }

    fn thief(self: &Arc<Self>, max: usize) -> Taker {
        let model = Arc::clone(self);
        thread::spawn(move || {
            let mut taken = Vec::new();
            model
                .ring
                .steal(max, |node| taken.push(TestNode::take(node).1));
            taken
        })
    }

    /// Takes the remaining items, and checks that each of `pushed` items was taken once, by each
    /// taker in order.
    fn finish<const N: usize>(&self, pushed: usize, owner: Taker, thieves: [Taker; N]) {
        let mut own = owner.join().expect("no panic");
        let mut taken = Vec::from(thieves.map(|thief| thief.join().expect("no panic")));
        own.extend(std::iter::from_fn(|| self.pop()));
        taken.push(own);
        assert_eq!(self.ring.head(), pushed as u64);
        assert!(self.ring.is_empty());
        assert!(
            taken.iter().all(|taken| taken.is_sorted()),
            "out of order: {taken:?}"
        );
        let mut all = taken.concat();
        all.sort_unstable();
        assert!(
            all.into_iter().eq(0..pushed),
            "lost or taken twice: {taken:?}"
        );
    }
}

type Taker = JoinHandle<Vec<usize>>;

/// The first buffer has two slots, so the ring grows twice. If a thief was fast, slots are reused
/// instead.
#[test]
fn two_thieves_while_the_ring_grows() {
    explore(1, || {
        let model = Model::new(2);
        let owner = model.owner(|model| {
            model.push(2..5);
            model.pop()
        });
        let thieves = [model.thief(2), model.thief(2)];
        model.finish(5, owner, thieves);
    });
}

#[test]
fn a_thief_while_the_ring_grows() {
    explore(4, || {
        let model = Model::new(1);
        let owner = model.owner(|model| {
            let own = model.pop();
            model.push(1..5);
            own
        });
        let thief = model.thief(2);
        model.finish(5, owner, [thief]);
    });
}

/// The owner and two thieves compete for the same two items; nothing grows.
#[test]
fn a_race_for_the_last_items() {
    explore(4, || {
        let model = Model::new(2);
        let owner = model.owner(Model::pop);
        let thieves = [model.thief(1), model.thief(1)];
        model.finish(2, owner, thieves);
    });
}

/// Slots are reused while a thief reads them. The buffer stays the same, unless the thief is
/// faster.
#[test]
fn a_thief_while_the_ring_wraps() {
    explore(4, || {
        let model = Model::new(2);
        let owner = model.owner(|model| {
            let own = model.pop();
            model.push(2..3);
            own
        });
        let thief = model.thief(2);
        model.finish(3, owner, [thief]);
    });
}
