//! Models of the ring: an owner, thieves, and a buffer that is replaced while they read it.

use super::super::TestNode;
use super::*;
use crate::loom::{Arc, thread};

type Shared = Arc<Ring<TestNode>>;

fn push(ring: &Shared, numbers: std::ops::Range<usize>) {
    for number in numbers {
        // SAFETY: the OS thread that made the ring is its owner.
        unsafe { ring.push(TestNode::new(0, number)) }
    }
}

fn pop(ring: &Shared) -> Option<usize> {
    // SAFETY: as in `push`.
    unsafe { ring.pop() }.map(|node| TestNode::take(node).1)
}

fn thief(ring: &Shared, max: usize) -> thread::JoinHandle<Vec<usize>> {
    let ring = Arc::clone(ring);
    thread::spawn(move || {
        let mut taken = Vec::new();
        ring.steal(max, |node| taken.push(TestNode::take(node).1));
        taken
    })
}

/// Takes what is left, and checks that each of `pushed` items was taken once, by each taker in order.
fn finish(
    ring: &Shared,
    pushed: usize,
    mut own: Vec<usize>,
    thieves: Vec<thread::JoinHandle<Vec<usize>>>,
) {
    let mut taken: Vec<_> = thieves
        .into_iter()
        .map(|thief| thief.join().expect("no panic"))
        .collect();
    own.extend(std::iter::from_fn(|| pop(ring)));
    assert_eq!(ring.head(), pushed as u64);
    assert!(ring.is_empty());
    taken.push(own);
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

fn model(preemptions: Option<usize>, f: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(preemptions);
    builder.check(f);
}

/// The first buffer has two slots: the ring grows twice, and slots are used again before that if a thief was fast.
#[test]
fn two_thieves_while_the_ring_grows() {
    model(Some(3), || {
        let ring = Arc::new(Ring::new());
        push(&ring, 0..2);
        let thieves = vec![thief(&ring, 2), thief(&ring, 2)];
        push(&ring, 2..5);
        let own = Vec::from_iter(pop(&ring));
        finish(&ring, 5, own, thieves);
    });
}

/// All of what one thief can see, with no bound on preemptions.
#[test]
fn a_thief_while_the_ring_grows() {
    model(None, || {
        let ring = Arc::new(Ring::new());
        push(&ring, 0..1);
        let thieves = vec![thief(&ring, 2)];
        let own = Vec::from_iter(pop(&ring));
        push(&ring, 1..5);
        finish(&ring, 5, own, thieves);
    });
}

/// The owner and two thieves want the same two items; nothing grows.
#[test]
fn a_race_for_the_last_items() {
    model(None, || {
        let ring = Arc::new(Ring::new());
        push(&ring, 0..2);
        let thieves = vec![thief(&ring, 1), thief(&ring, 1)];
        let own = Vec::from_iter(pop(&ring));
        finish(&ring, 2, own, thieves);
    });
}

/// Slots are used again while a thief reads them; the buffer stays the same.
#[test]
fn a_thief_while_the_ring_wraps() {
    model(None, || {
        let ring = Arc::new(Ring::new());
        push(&ring, 0..2);
        let thieves = vec![thief(&ring, 2)];
        let mut own = Vec::from_iter(pop(&ring));
        push(&ring, 2..3);
        own.extend(pop(&ring));
        push(&ring, 3..4);
        finish(&ring, 4, own, thieves);
    });
}
