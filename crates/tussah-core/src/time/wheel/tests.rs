//! Tests of the wheel against an ordered map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A wheel with its entries, and its expected contents.
struct Rig {
    wheel: Wheel<usize>,
    entries: Vec<NonNull<Entry<usize>>>,
    /// The keys (effective tick, number of the insertion) of the entries in `model`.
    keys: Vec<Option<(u64, u64)>>,
    model: BTreeMap<(u64, u64), usize>,
    insertions: u64,
    fired: Vec<usize>,
    /// The effective tick of the entry that fired last.
    last_tick: u64,
}

impl Rig {
    fn new() -> Self {
        Self {
            wheel: Wheel::new(),
            entries: Vec::new(),
            keys: Vec::new(),
            model: BTreeMap::new(),
            insertions: 0,
            fired: Vec::new(),
            last_tick: 0,
        }
    }

    fn insert(&mut self, tick: u64) -> usize {
        let id = self.entries.len();
        self.entries
            .push(NonNull::from(Box::leak(Box::new(Entry::new(id)))));
        self.keys.push(None);
        self.link(id, tick);
        id
    }

    fn link(&mut self, id: usize, tick: u64) {
        assert!(self.keys[id].is_none());
        let key = (
            tick.min(MAX_TICK).max(self.wheel.elapsed()),
            self.insertions,
        );
        self.insertions += 1;
        self.model.insert(key, id);
        self.keys[id] = Some(key);
        // SAFETY: the entry is not linked, and it is freed after it has been unlinked, in `drop`.
        unsafe { self.wheel.insert(self.entries[id], tick) };
        self.check_next();
    }

    fn remove(&mut self, id: usize) {
        if let Some(key) = self.keys[id].take() {
            self.model.remove(&key);
            // SAFETY: the model knows that the entry is linked.
            unsafe { self.wheel.remove(self.entries[id]) };
            self.check_next();
        }
    }

    fn advance(&mut self, now: u64, limit: usize) -> bool {
        let mut fired = Vec::new();
        let done = self.wheel.advance(now, limit, &mut |entry| {
            // SAFETY: entries are freed only in `drop`.
            let entry = unsafe { entry.as_ref() };
            fired.push(entry.data);
        });
        assert!(fired.len() <= limit);
        let now = now.min(MAX_TICK);
        for &id in &fired {
            let key = self.keys[id]
                .take()
                .expect("an entry fires once, and not after it was removed");
            assert_eq!(self.model.remove(&key), Some(id));
            assert!(key.0 <= now.max(self.wheel.elapsed()), "never early");
            assert!(key.0 >= self.last_tick, "in the order of ticks");
            self.last_tick = key.0;
        }
        self.fired.extend(fired);
        if done {
            assert!(self.wheel.elapsed() >= now);
            assert!(
                self.earliest().is_none_or(|tick| tick > now),
                "nothing due is left"
            );
        } else {
            assert!(
                self.wheel.next_expiry().is_some_and(|tick| tick <= now),
                "the caller sees that more is due"
            );
        }
        self.check_next();
        done
    }

    fn earliest(&self) -> Option<u64> {
        self.model.first_key_value().map(|(key, _)| key.0)
    }

    fn check_next(&self) {
        let next = self.wheel.next_expiry();
        let earliest = self.earliest();
        assert_eq!(next.is_none(), earliest.is_none());
        if let (Some(next), Some(earliest)) = (next, earliest) {
            assert!(next <= earliest, "no entry is due before the next expiry");
            assert!(next >= self.wheel.elapsed());
            if self.model.len() == 1 {
                assert!(next == earliest || next == self.wheel.elapsed());
            }
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let mut left = 0;
        while self.wheel.pop_any().is_some() {
            left += 1;
        }
        if !std::thread::panicking() {
            assert_eq!(left, self.model.len());
            assert_eq!(self.wheel.next_expiry(), None);
        }
        for entry in self.entries.drain(..) {
            // SAFETY: leaked in `insert`, and no longer linked.
            drop(unsafe { Box::from_raw(entry.as_ptr()) });
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    /// Relative to the current time.
    Insert(u64),
    /// Absolute, mostly in the past.
    InsertAt(u64),
    Remove(prop::sample::Index),
    /// Takes an entry that has fired or was removed, or moves an entry that is linked.
    Reinsert(prop::sample::Index, u64),
    Advance(u64, usize),
    /// To the next expiry, like a worker.
    Step(usize),
}

fn delta() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..70_u64,
        4 => 0..5_000_u64,
        2 => 0..1_u64 << 30,
        1 => 0..=MAX_TICK,
        // Around the limits of the levels.
        2 => (0..48_u32, 0..3_u64).prop_map(|(shift, off)| (1_u64 << shift) + off - 1),
        1 => Just(u64::MAX),
    ]
}

fn op(limit: impl Strategy<Value = usize> + Clone) -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => delta().prop_map(Op::Insert),
        1 => (0..10_000_u64).prop_map(Op::InsertAt),
        3 => any::<prop::sample::Index>().prop_map(Op::Remove),
        2 => (any::<prop::sample::Index>(), delta()).prop_map(|(index, delta)| Op::Reinsert(index, delta)),
        3 => (delta(), limit.clone()).prop_map(|(delta, limit)| Op::Advance(delta, limit)),
        2 => limit.prop_map(Op::Step),
    ]
}

fn run(rig: &mut Rig, op: Op) {
    match op {
        Op::Insert(delta) => {
            rig.insert(rig.wheel.elapsed().saturating_add(delta));
        }
        Op::InsertAt(tick) => {
            rig.insert(tick);
        }
        Op::Remove(index) if !rig.entries.is_empty() => rig.remove(index.index(rig.entries.len())),
        Op::Reinsert(index, delta) if !rig.entries.is_empty() => {
            let id = index.index(rig.entries.len());
            rig.remove(id);
            rig.link(id, rig.wheel.elapsed().saturating_add(delta));
        }
        Op::Advance(delta, limit) => {
            // If far jumps were common, no time would remain to test after them.
            let delta = if delta >= 1 << 40 { delta >> 20 } else { delta };
            rig.advance(rig.wheel.elapsed().saturating_add(delta), limit);
        }
        Op::Step(limit) => {
            if let Some(next) = rig.wheel.next_expiry() {
                rig.advance(next, limit);
            }
        }
        Op::Remove(_) | Op::Reinsert(..) => {}
    }
}

const OPS: usize = if cfg!(miri) { 40 } else { 150 };

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 1024 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    /// Without a limit, entries fire in the order of the model: by tick, then by insertion.
    #[test]
    fn fires_as_an_ordered_map_does(ops in prop::collection::vec(op(Just(usize::MAX)), 1..OPS)) {
        let mut rig = Rig::new();
        for op in ops {
            let before = rig.fired.len();
            let order: Vec<usize> = rig.model.values().copied().collect();
            run(&mut rig, op);
            let fired = &rig.fired[before..];
            prop_assert_eq!(fired, &order[..fired.len()]);
        }
        let order: Vec<usize> = rig.model.values().copied().collect();
        let before = rig.fired.len();
        prop_assert!(rig.advance(u64::MAX, usize::MAX));
        prop_assert_eq!(&rig.fired[before..], &order[..]);
        prop_assert!(rig.model.is_empty());
    }

    /// With a limit, every entry fires once, in the order of ticks, whatever the number of calls.
    #[test]
    fn an_advance_that_is_cut_short_goes_on(ops in prop::collection::vec(op(0..6_usize), 1..OPS)) {
        let mut rig = Rig::new();
        for op in ops {
            run(&mut rig, op);
        }
        // Each entry is moved at most once per level, and then fires.
        let calls_max = rig.model.len() * (LEVELS + 1) + 1;
        let calls = (1..=calls_max).find(|_| rig.advance(u64::MAX, 1));
        prop_assert!(calls.is_some());
        prop_assert!(rig.model.is_empty());
    }
}

#[test]
fn one_entry_at_each_border_fires_at_its_tick() {
    for shift in (0..48).step_by(if cfg!(miri) { 6 } else { 1 }) {
        for tick in [(1 << shift) - 1, 1 << shift, (1 << shift) + 1] {
            let mut rig = Rig::new();
            rig.insert(tick);
            if tick > 0 {
                rig.advance(tick - 1, usize::MAX);
                assert!(rig.fired.is_empty());
                assert_eq!(rig.wheel.next_expiry(), Some(tick));
            }
            rig.advance(tick, usize::MAX);
            assert_eq!(rig.fired, [0]);
            assert_eq!(rig.wheel.next_expiry(), None);
        }
    }
}

#[test]
fn a_worker_reaches_a_deadline_in_a_step_for_each_level() {
    let mut rig = Rig::new();
    let far = 0x0123_4567_89ab;
    rig.insert(far);
    rig.insert(far);
    let mut steps = 0;
    while let Some(next) = rig.wheel.next_expiry() {
        rig.advance(next, usize::MAX);
        steps += 1;
    }
    assert!(steps <= LEVELS);
    assert_eq!(rig.fired, [0, 1]);
}

#[test]
fn equal_ticks_fire_in_the_order_of_insertion_across_cascades() {
    let mut rig = Rig::new();
    rig.insert(5_000);
    rig.advance(4_000, usize::MAX);
    rig.insert(5_000);
    rig.advance(4_992, usize::MAX);
    rig.insert(5_000);
    rig.advance(5_000, usize::MAX);
    assert_eq!(rig.fired, [0, 1, 2]);
}

#[test]
fn late_entries_fire_at_once_and_time_never_goes_back() {
    let mut rig = Rig::new();
    rig.advance(1_000, usize::MAX);
    rig.insert(1_000);
    rig.insert(3);
    rig.insert(1_001);
    assert_eq!(rig.wheel.next_expiry(), Some(1_000));
    assert!(rig.advance(10, usize::MAX));
    assert_eq!(rig.fired, [0, 1]);
    assert_eq!(rig.wheel.elapsed(), 1_000);
    rig.advance(u64::MAX, usize::MAX);
    rig.insert(u64::MAX);
    rig.advance(0, usize::MAX);
    assert_eq!(rig.fired, [0, 1, 2, 3]);
}

#[test]
fn removing_the_rest_of_a_slot_that_was_cut_short() {
    let mut rig = Rig::new();
    for _ in 0..3 {
        rig.insert(100);
    }
    assert!(!rig.advance(100, 1), "moved one entry");
    assert_eq!(
        rig.wheel.next_expiry(),
        Some(64),
        "the slot is being drained"
    );
    rig.remove(1);
    rig.remove(2);
    assert_eq!(rig.wheel.next_expiry(), Some(100));
    rig.insert(64);
    assert!(rig.advance(100, 2));
    assert_eq!(rig.fired, [3, 0]);
}
