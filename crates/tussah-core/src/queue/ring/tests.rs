//! Tests of the ring with one OS thread, and under stress with several.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::super::{TestNode, TestNodes};
use super::*;

/// Items that no test dereferences.
fn item(number: usize) -> NonNull<u8> {
    NonNull::new(ptr::without_provenance_mut(number)).expect("numbers begin with 1")
}

fn push(ring: &Ring<u8>, number: usize) {
    // SAFETY: these tests have one OS thread.
    unsafe { ring.push(item(number)) }
}

fn pop(ring: &Ring<u8>) -> Option<usize> {
    // SAFETY: these tests have one OS thread.
    unsafe { ring.pop() }.map(|item| item.addr().get())
}

fn steal(ring: &Ring<u8>, max: usize) -> Vec<usize> {
    let mut stolen = Vec::new();
    let count = ring.steal(max, |item| stolen.push(item.addr().get()));
    assert_eq!(count, stolen.len());
    stolen
}

#[test]
fn first_in_first_out_across_growth() {
    let ring = Ring::new();
    assert_eq!(pop(&ring), None);
    assert_eq!(steal(&ring, 1), []);
    // Starts away from the beginning of the buffer, so that growing has to unroll it.
    for number in 1..=100 {
        push(&ring, number);
        assert_eq!(pop(&ring), Some(number));
    }
    for number in 101..=1_100 {
        push(&ring, number);
    }
    assert_eq!(ring.len(), 1_000);
    assert_eq!(ring.head(), 100);
    for number in 101..=1_100 {
        assert_eq!(pop(&ring), Some(number));
    }
    assert!(ring.is_empty());
    assert_eq!(ring.head(), 1_100);
    assert_eq!(pop(&ring), None);
}

#[test]
fn steal_takes_half_rounded_up() {
    let check = |len, max, expected: usize| {
        let ring = Ring::new();
        (1..=len).for_each(|number| push(&ring, number));
        assert!(
            steal(&ring, max).into_iter().eq(1..=expected),
            "{max} of {len}"
        );
        assert_eq!(ring.len(), len - expected);
        assert_eq!(ring.head(), expected as u64);
        assert_eq!(pop(&ring), Some(expected + 1).filter(|&next| next <= len));
    };
    check(0, 9, 0);
    check(1, 9, 1);
    check(2, 9, 1);
    check(3, 9, 2);
    check(9, 0, 0);
    check(9, 3, 3);
    check(9, usize::MAX, 5);
    check(1_000, usize::MAX, STEAL_MAX);
}

#[test]
fn out_may_use_the_ring() {
    let ring = Ring::with_capacity(1);
    (1..=4).for_each(|number| push(&ring, number));
    // SAFETY: there is one OS thread.
    assert_eq!(ring.steal(9, |item| unsafe { ring.push(item) }), 2);
    assert!(std::iter::from_fn(|| pop(&ring)).eq([3, 4, 1, 2]));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Push(usize),
    Pop(usize),
    Steal(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1..40_usize).prop_map(Step::Push),
        (1..30_usize).prop_map(Step::Pop),
        (0..20_usize).prop_map(Step::Steal),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 512 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn like_a_deque(
        capacity in (0..6_u32).prop_map(|log| 1 << log),
        steps in prop::collection::vec(step(), 0..64),
    ) {
        let ring = Ring::with_capacity(capacity);
        let mut model = VecDeque::new();
        let mut pushed = 0;
        for step in steps {
            match step {
                Step::Push(count) => for _ in 0..count {
                    pushed += 1;
                    push(&ring, pushed);
                    model.push_back(pushed);
                },
                Step::Pop(count) => for _ in 0..count {
                    prop_assert_eq!(pop(&ring), model.pop_front());
                },
                Step::Steal(max) => {
                    let count = max.min(model.len().div_ceil(2));
                    let expected: Vec<_> = model.drain(..count).collect();
                    prop_assert_eq!(steal(&ring, max), expected);
                }
            }
            prop_assert_eq!(ring.len(), model.len());
            prop_assert_eq!(ring.head(), (pushed - model.len()) as u64);
        }
    }
}

/// An owner fills and empties its ring beside two thieves. Each item is taken once, and each taker
/// takes items in order.
#[test]
fn stress() {
    const ITEMS: usize = if cfg!(miri) { 150 } else { 400_000 };
    const THIEVES: usize = 2;
    let nodes = TestNodes::new(0, ITEMS);
    let ring = Ring::with_capacity(2);
    let done = AtomicBool::new(false);
    let thief = || {
        let mut taken = Vec::new();
        // Acquire pairs with the Release below: the last steals see all pushes.
        while !(done.load(Ordering::Acquire) && ring.is_empty()) {
            let max = 1 + taken.len() % 7;
            if ring.steal(max, |node| taken.push(TestNode::take(node).1)) == 0 {
                std::thread::yield_now();
            }
        }
        taken
    };
    let taken: Vec<Vec<usize>> = std::thread::scope(|scope| {
        let thieves: Vec<_> = (0..THIEVES).map(|_| scope.spawn(thief)).collect();
        let mut own = Vec::new();
        let mut pushed = 0;
        let mut burst = 1;
        while pushed < ITEMS {
            // Bursts of 1 to 96 pushes, and somewhat fewer pops: the ring grows a few times, and is
            // often empty.
            burst = burst * 5 % 97;
            for _ in 0..burst.min(ITEMS - pushed) {
                // SAFETY: this is the only OS thread that pushes and pops.
                unsafe { ring.push(nodes.get(pushed)) };
                pushed += 1;
            }
            for _ in 0..burst / 2 + pushed % 64 {
                // SAFETY: as above.
                own.extend(unsafe { ring.pop() }.map(|node| TestNode::take(node).1));
            }
        }
        done.store(true, Ordering::Release);
        let joined = thieves
            .into_iter()
            .map(|thief| thief.join().expect("a thief failed"));
        std::iter::once(own).chain(joined).collect()
    });
    assert!(
        taken.iter().all(|taken| taken.is_sorted()),
        "somebody took items out of order"
    );
    let mut all = taken.concat();
    all.sort_unstable();
    assert!(
        all.into_iter().eq(0..ITEMS),
        "items were lost or taken twice"
    );
}
