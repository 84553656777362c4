//! Models of the ring: an owner, thieves, and a buffer that is replaced while they read it.

// The standard `Arc`: main joins everyone and is the last to drop it, so it needs no model.
use std::sync::Arc;

use super::super::{TestNode, TestNodes};
use super::*;
use crate::loom::thread::{self, JoinHandle};

/// Each model pushes at most this many items.
const ITEMS: usize = 5;

/// What a model's OS threads share; the one that makes it is the ring's owner.
struct Model {
    ring: Ring<TestNode>,
    nodes: TestNodes,
}

impl Model {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            ring: Ring::new(),
            nodes: TestNodes::new(0, ITEMS),
        })
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

    fn thief(self: &Arc<Self>, max: usize) -> JoinHandle<Vec<usize>> {
        let model = Arc::clone(self);
        thread::spawn(move || {
            let mut taken = Vec::new();
            model
                .ring
                .steal(max, |node| taken.push(TestNode::take(node).1));
            taken
        })
    }

    /// Takes what is left, and checks that each of `pushed` items was taken once, by each taker in order.
    fn finish<const N: usize>(
        &self,
        pushed: usize,
        own: Option<usize>,
        thieves: [JoinHandle<Vec<usize>>; N],
    ) {
        let mut taken = Vec::from(thieves.map(|thief| thief.join().expect("no panic")));
        taken.push(
            own.into_iter()
                .chain(std::iter::from_fn(|| self.pop()))
                .collect(),
        );
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

/// The first buffer has two slots, so the ring grows twice, unless a thief was fast: then slots are used again.
/// More than two preemptions would take minutes.
#[test]
fn two_thieves_while_the_ring_grows() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(|| {
        let model = Model::new();
        model.push(0..2);
        let thieves = [model.thief(2), model.thief(2)];
        model.push(2..5);
        let own = model.pop();
        model.finish(5, own, thieves);
    });
}

/// All that one thief can see.
#[test]
fn a_thief_while_the_ring_grows() {
    loom::model(|| {
        let model = Model::new();
        model.push(0..1);
        let thief = model.thief(2);
        let own = model.pop();
        model.push(1..5);
        model.finish(5, own, [thief]);
    });
}

/// The owner and two thieves want the same two items; nothing grows.
#[test]
fn a_race_for_the_last_items() {
    loom::model(|| {
        let model = Model::new();
        model.push(0..2);
        let thieves = [model.thief(1), model.thief(1)];
        let own = model.pop();
        model.finish(2, own, thieves);
    });
}

/// Slots are used again while a thief reads them; the buffer stays the same, unless the thief is faster.
#[test]
fn a_thief_while_the_ring_wraps() {
    loom::model(|| {
        let model = Model::new();
        model.push(0..2);
        let thief = model.thief(2);
        let own = model.pop();
        model.push(2..3);
        model.finish(3, own, [thief]);
    });
}
