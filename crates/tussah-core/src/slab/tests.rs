//! Tests of the slab. All of them run under Miri, too.

use super::class::{CLASSES, SLOT_BYTES_MAX, batch_slots, class_of, slot_bytes};
use super::span::{SPAN_BYTES, state_of};
use super::{Kind, Magazines, Slab, SlabStats, owner_of};
use proptest::prelude::*;
use std::alloc::Layout;
use std::collections::{BTreeMap, HashSet};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

const NONE: SlabStats = SlabStats { spans: 0, bytes: 0 };

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

/// A pointer that may move to another OS thread, like an event.
struct Sent(NonNull<u8>);
// SAFETY: the tests pass each object on, but do not share it.
unsafe impl Send for Sent {}

/// Creates a slab whose owner is not counted.
fn unowned() -> Slab {
    Slab::new(|_| {})
}

/// A slab with one worker's magazines, through which the tests allocate and free freely.
struct Rig {
    slab: Slab,
    magazines: Magazines,
}

impl Rig {
    fn new() -> Self {
        Self {
            slab: unowned(),
            magazines: Magazines::new(),
        }
    }

    fn alloc(&self, kind: Kind, layout: Layout, local: bool) -> NonNull<u8> {
        // SAFETY: each rig has one slab for its magazines and outlives the objects.
        unsafe {
            match local {
                true => self.magazines.alloc(&self.slab, kind, layout),
                false => self.slab.alloc(kind, layout),
            }
        }
    }

    fn free(&self, kind: Kind, slot: NonNull<u8>, layout: Layout, local: bool) {
        // SAFETY: the tests free what they allocated, once, with the same layout.
        unsafe {
            match local {
                true => self.magazines.free(&self.slab, kind, slot, layout),
                false => assert!(!Slab::free(&self.slab, kind, slot, layout)),
            }
        }
    }

    fn flush(&self) {
        // SAFETY: each rig has one slab for its magazines.
        unsafe { self.magazines.flush_all(&self.slab) }
    }

    /// Returns the sum of the state words of all thread slots.
    fn threads(&self) -> u64 {
        let mut threads = 0;
        self.slab.for_each_thread_slot(|slot| {
            // SAFETY: the visitor gets carved thread slots.
            threads += unsafe { state_of(slot) }.load(Ordering::Acquire);
        });
        threads
    }
}

#[test]
fn classes_fit_and_waste_little() {
    let mut last = 0;
    for class in 0..CLASSES {
        let bytes = slot_bytes(class);
        assert!(bytes > last, "classes grow");
        assert!(bytes <= 512 || bytes.is_multiple_of(64));
        assert!(
            bytes <= 512 || (bytes - last) * 8 <= last,
            "a step is at most 12.5 %"
        );
        assert_eq!(class_of(Kind::Event, layout(bytes, 1)), Some(class));
        if last > 0 {
            assert_eq!(class_of(Kind::Event, layout(last + 1, 8)), Some(class));
        }
        assert!((2..=64).contains(&batch_slots(class)));
        last = bytes;
    }
    assert_eq!(last, SLOT_BYTES_MAX);

    for size in (0..=SLOT_BYTES_MAX).step_by(if cfg!(miri) { 97 } else { 1 }) {
        let class = class_of(Kind::Event, layout(size, 16)).unwrap();
        assert!(slot_bytes(class) >= size && slot_bytes(class).is_multiple_of(16));
    }
    assert_eq!(class_of(Kind::Event, layout(SLOT_BYTES_MAX + 1, 8)), None);
    assert_eq!(class_of(Kind::Event, layout(8, 64)), Some(7));
    assert_eq!(class_of(Kind::Event, layout(128, 128)), None);
    assert_eq!(slot_bytes(class_of(Kind::Event, layout(0, 1)).unwrap()), 8);
    assert_eq!(
        slot_bytes(class_of(Kind::Thread, layout(0, 1)).unwrap()),
        24
    );
    assert_eq!(
        slot_bytes(class_of(Kind::Thread, layout(1, 16)).unwrap()),
        32
    );
    const FOLDED: Option<usize> = class_of(Kind::Event, Layout::new::<[u64; 8]>());
    assert_eq!(FOLDED, Some(7));
}

#[test]
fn a_freed_slot_is_the_next_one_allocated() {
    for kind in [Kind::Event, Kind::Thread] {
        let rig = Rig::new();
        let a = rig.alloc(kind, layout(64, 8), true);
        rig.free(kind, a, layout(64, 8), true);
        assert_eq!(rig.alloc(kind, layout(57, 8), true), a);
        rig.free(kind, a, layout(57, 8), true);
        let b = rig.alloc(kind, layout(64, 8), false);
        rig.free(kind, b, layout(64, 8), false);
        assert_eq!(rig.alloc(kind, layout(64, 8), false), b);
        rig.free(kind, b, layout(64, 8), false);
    }
}

#[test]
fn kinds_have_spans_of_their_own() {
    let rig = Rig::new();
    let event = rig.alloc(Kind::Event, layout(64, 8), false);
    let thread = rig.alloc(Kind::Thread, layout(64, 8), false);
    assert_eq!(
        rig.slab.stats(),
        SlabStats {
            spans: 2,
            bytes: 2 * SPAN_BYTES
        }
    );
    assert_ne!(
        event.addr().get() / SPAN_BYTES,
        thread.addr().get() / SPAN_BYTES
    );
    rig.free(Kind::Event, event, layout(64, 8), false);
    rig.free(Kind::Thread, thread, layout(64, 8), false);
}

#[test]
fn the_owner_is_found_from_any_object() {
    let rig = Rig::new();
    let owner = 0u64;
    let owner: *const () = (&raw const owner).cast();
    // SAFETY: the owner is not counted.
    unsafe { rig.slab.set_owner(owner) };
    let aligns = [
        1,
        8,
        16,
        32,
        64,
        128,
        4096,
        SPAN_BYTES / 2,
        SPAN_BYTES,
        2 * SPAN_BYTES,
    ];
    for kind in [Kind::Event, Kind::Thread] {
        for align in aligns {
            for size in [
                0,
                1,
                24,
                4096,
                SLOT_BYTES_MAX,
                SLOT_BYTES_MAX + 1,
                3 * SPAN_BYTES,
            ] {
                let layout = layout(size, align);
                let local = size % 2 == 0;
                let slot = rig.alloc(kind, layout, local);
                assert_eq!(slot.addr().get() % align, 0);
                // SAFETY: the object is in use.
                assert_eq!(unsafe { owner_of(slot) }, owner);
                // SAFETY: the first and the last byte belong to the object, which Miri checks.
                unsafe {
                    if size > 0 {
                        slot.write(1);
                    }
                    if size > 24 {
                        slot.add(size - 1).write(1);
                    }
                }
                rig.free(kind, slot, layout, local);
            }
        }
    }
}

#[test]
fn dedicated_spans_return_at_once() {
    let rig = Rig::new();
    for (size, align) in [
        (SLOT_BYTES_MAX + 1, 8),
        (100_000, 16),
        (8, 128),
        (8, SPAN_BYTES),
        (8, 2 * SPAN_BYTES),
    ] {
        for kind in [Kind::Event, Kind::Thread] {
            let slot = rig.alloc(kind, layout(size, align), true);
            assert_eq!(rig.slab.stats().spans, 1);
            assert!(rig.slab.stats().bytes >= size);
            rig.free(kind, slot, layout(size, align), true);
            assert_eq!(rig.slab.stats(), NONE);
        }
    }
}

#[test]
fn memory_returns_after_a_peak() {
    let rig = Rig::new();
    let count = if cfg!(miri) { 300 } else { 20_000 };
    let layout = layout(1024, 8);
    for local in [true, false] {
        let slots: Vec<_> = (0..count)
            .map(|_| rig.alloc(Kind::Event, layout, local))
            .collect();
        let peak = rig.slab.stats().spans;
        assert!(
            (count / 63..=count / 63 + 2).contains(&peak),
            "spans are filled: {peak}"
        );
        // Every second slot is freed first, so that spans pass through the list of partial spans in
        // a mixed order.
        for slot in slots
            .iter()
            .step_by(2)
            .chain(slots.iter().skip(1).step_by(2))
        {
            rig.free(Kind::Event, *slot, layout, local);
        }
        rig.flush();
        assert_eq!(
            rig.slab.stats(),
            SlabStats {
                spans: 1,
                bytes: SPAN_BYTES
            }
        );
    }
}

#[test]
fn swinging_around_a_span_edge_keeps_one_empty_span() {
    let rig = Rig::new();
    let layout = layout(SLOT_BYTES_MAX, 8);
    let held: Vec<_> = (0..3)
        .map(|_| rig.alloc(Kind::Event, layout, false))
        .collect();
    assert_eq!(
        rig.slab.stats().spans,
        1,
        "three of the largest slots fit a span"
    );
    for _ in 0..4 {
        let one_more = rig.alloc(Kind::Event, layout, false);
        assert_eq!(rig.slab.stats().spans, 2);
        rig.free(Kind::Event, one_more, layout, false);
        assert_eq!(rig.slab.stats().spans, 2);
    }
    held.into_iter()
        .for_each(|slot| rig.free(Kind::Event, slot, layout, false));
    assert_eq!(rig.slab.stats().spans, 1);
}

#[test]
fn a_full_span_that_gets_a_slot_back_is_used_again() {
    let rig = Rig::new();
    let layout = layout(8192, 8);
    let slots: Vec<_> = (0..3 * 7)
        .map(|_| rig.alloc(Kind::Event, layout, false))
        .collect();
    assert_eq!(rig.slab.stats().spans, 3, "seven of these fit a span");
    for slot in &slots {
        rig.free(Kind::Event, *slot, layout, false);
        assert_eq!(rig.alloc(Kind::Event, layout, false), *slot);
    }
    for slot in slots {
        rig.free(Kind::Event, slot, layout, false);
    }
    assert_eq!(rig.slab.stats().spans, 1);
}

#[test]
fn magazines_hold_at_most_two_batches() {
    let rig = Rig::new();
    for layout in [layout(64, 8), layout(2048, 8), layout(SLOT_BYTES_MAX, 8)] {
        let class = class_of(Kind::Thread, layout).unwrap();
        let batch = batch_slots(class);
        let held = || rig.magazines.len(Kind::Thread, class);
        let mut slots = Vec::new();
        for _ in 0..5 * batch {
            slots.push(rig.alloc(Kind::Thread, layout, true));
            assert!(held() < batch);
        }
        for slot in slots {
            rig.free(Kind::Thread, slot, layout, true);
            assert!(held() <= 2 * batch);
        }
        assert!(held() > batch, "only what is too much goes to the depot");
        rig.flush();
        assert_eq!(held(), 0);
    }
    assert_eq!(rig.slab.stats().spans, 3, "one empty span per class");
}

#[test]
fn no_sequence_goes_to_the_depot_every_time() {
    let rig = Rig::new();
    let layout = layout(64, 8);
    let class = class_of(Kind::Event, layout).unwrap();
    let mut slots: Vec<_> = (0..3 * batch_slots(class))
        .map(|_| rig.alloc(Kind::Event, layout, true))
        .collect();
    let mut depot_visits = 0;
    let mut held = rig.magazines.len(Kind::Event, class);
    // Swings by two slots around each fill level in turn.
    while let Some(slot) = slots.pop() {
        for step in 0..5 {
            let before = held;
            match step % 2 {
                0 => rig.free(
                    Kind::Event,
                    if step == 0 {
                        slot
                    } else {
                        slots.pop().unwrap()
                    },
                    layout,
                    true,
                ),
                _ => slots.push(rig.alloc(Kind::Event, layout, true)),
            }
            held = rig.magazines.len(Kind::Event, class);
            depot_visits += u32::from(held.abs_diff(before) != 1);
        }
    }
    assert!(depot_visits <= 3, "{depot_visits}");
}

#[test]
fn a_full_magazine_passes_from_one_worker_to_another() {
    let (rig, other) = (Rig::new(), Magazines::new());
    let layout = layout(64, 8);
    let batch = batch_slots(class_of(Kind::Event, layout).unwrap()) as usize;
    let take = || {
        // SAFETY: the slab is that of the rig, and the objects are freed below.
        unsafe { other.alloc(&rig.slab, Kind::Event, layout) }
    };
    let slots: Vec<_> = (0..4 * batch).map(|_| take()).collect();
    let stats = rig.slab.stats();
    // The second and the third magazine push the first and the second out.
    for &slot in &slots[..3 * batch + 1] {
        rig.free(Kind::Event, slot, layout, true);
    }
    // The first magazine has been kept, last freed slot first; the second went into its spans.
    let again: Vec<_> = (0..batch).map(|_| take()).collect();
    assert!(again.iter().eq(slots[..batch].iter().rev()));
    for slot in again
        .into_iter()
        .chain(slots[3 * batch + 1..].iter().copied())
    {
        rig.free(Kind::Event, slot, layout, true);
    }
    assert_eq!(rig.slab.stats(), stats);
    rig.flush();
    // SAFETY: as above.
    unsafe { other.flush_all(&rig.slab) };
    assert!(rig.slab.stats().spans <= 1, "a kept magazine holds spans");
}

#[test]
fn thread_state_survives_reuse_and_is_visited() {
    let rig = Rig::new();
    let small = layout(40, 8);
    let large = layout(100_000, 64);
    let visit = || {
        let (mut carved, mut live) = (0, 0);
        rig.slab.for_each_thread_slot(|slot| {
            // SAFETY: the visitor gets carved thread slots.
            let state = unsafe { state_of(slot) };
            carved += 1;
            live += u32::from(
                state
                    .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| {
                        (n > 0).then_some(n + 1)
                    })
                    .is_ok(),
            );
        });
        (carved, live)
    };
    assert_eq!(visit(), (0, 0));
    let mut slots: Vec<_> = (0..10)
        .map(|i| (rig.alloc(Kind::Thread, small, i % 2 == 0), small))
        .collect();
    slots.push((rig.alloc(Kind::Thread, large, true), large));
    let event = rig.alloc(Kind::Event, small, true);
    let (carved, live) = visit();
    assert!(carved >= 11 && live == 0, "slots start as free");
    for (slot, _) in &slots {
        // SAFETY: thread slots in use.
        unsafe {
            assert_eq!(state_of(*slot).load(Ordering::Relaxed), 0);
            state_of(*slot).store(1, Ordering::Release);
            slot.write_bytes(0xff, 16);
            slot.add(24).write_bytes(0xff, 16);
        }
    }
    assert_eq!(visit(), (carved, 11));
    for (slot, layout) in slots.drain(5..) {
        // SAFETY: thread slots in use.
        let count = unsafe { state_of(slot) }.swap(0, Ordering::AcqRel);
        assert_eq!(count, 2, "visited once");
        rig.free(Kind::Thread, slot, layout, true);
    }
    assert_eq!(
        visit(),
        (carved - 1, 5),
        "the dedicated span is gone, the other slots are free"
    );
    rig.flush();
    assert_eq!(
        visit(),
        (carved - 1, 5),
        "the slab does not touch the state of what it links"
    );
    for _ in 0..5 {
        let slot = rig.alloc(Kind::Thread, small, true);
        // SAFETY: a thread slot in use.
        assert_eq!(unsafe { state_of(slot) }.load(Ordering::Relaxed), 0);
        slots.push((slot, small));
    }
    for (slot, layout) in slots {
        // SAFETY: thread slots in use.
        unsafe { state_of(slot) }.store(0, Ordering::Release);
        rig.free(Kind::Thread, slot, layout, false);
    }
    rig.free(Kind::Event, event, small, true);
}

#[test]
fn a_slot_is_written_only_in_its_first_word_while_free() {
    let rig = Rig::new();
    let layout = layout(64, 8);
    let slot = rig.alloc(Kind::Thread, layout, false);
    // SAFETY: everything except the state word may be written here, and only written bytes are
    // read.
    unsafe {
        slot.write_bytes(0xab, 16);
        slot.add(24).write_bytes(0xab, 40);
        rig.free(Kind::Thread, slot, layout, true);
        rig.flush();
        assert_eq!(rig.alloc(Kind::Thread, layout, true), slot);
        for byte in (8..16).chain(24..64) {
            assert_eq!(slot.add(byte).read(), 0xab);
        }
    }
    rig.free(Kind::Thread, slot, layout, true);
}

#[test]
fn allocated_here_freed_there() {
    let slab = Arc::new(unowned());
    let count = if cfg!(miri) { 150 } else { 50_000u64 };
    let (to_there, from_here) = mpsc::sync_channel::<(Sent, Layout, u64)>(64);
    let there = Arc::clone(&slab);
    let there = thread::spawn(move || {
        let magazines = Magazines::new();
        for (slot, layout, tag) in from_here {
            let slot = slot.0;
            // SAFETY: the object was handed over; one slab for these magazines.
            unsafe {
                assert_eq!(slot.cast::<u64>().read(), tag);
                match tag % 3 {
                    0 => assert!(!Slab::free(&*there, Kind::Event, slot, layout)),
                    _ => magazines.free(&there, Kind::Event, slot, layout),
                }
                // Some memory is freed here again, so that slots move between the two.
                if tag % 5 == 0 {
                    let own = magazines.alloc(&there, Kind::Event, layout);
                    own.cast::<u64>().write(u64::MAX);
                    assert!(!Slab::free(&*there, Kind::Event, own, layout));
                }
            }
        }
        // SAFETY: one slab for these magazines.
        unsafe { magazines.flush_all(&there) };
    });
    let magazines = Magazines::new();
    for tag in 0..count {
        let layout = layout([48, 64, 1024, 20_000][tag as usize % 4], 8);
        // SAFETY: one slab for these magazines; it outlives the objects.
        let slot = unsafe { magazines.alloc(&slab, Kind::Event, layout) };
        // SAFETY: the slot is ours until it is sent.
        unsafe { slot.cast::<u64>().write(tag) };
        to_there.send((Sent(slot), layout, tag)).unwrap();
    }
    drop(to_there);
    there.join().unwrap();
    // SAFETY: one slab for these magazines.
    unsafe { magazines.flush_all(&slab) };
    assert_eq!(
        slab.stats().spans,
        3,
        "one empty span per class, none for the large objects"
    );
}

/// Marks a thread as free once no visitor holds it.
fn end_thread(state: &AtomicU64) {
    // Acquire pairs with the Release of the visitor's decrement, which follows its reads.
    while state
        .compare_exchange_weak(1, 0, Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        thread::yield_now();
    }
}

#[test]
fn visits_while_threads_come_and_go() {
    let slab = Arc::new(unowned());
    let rounds = if cfg!(miri) { 20 } else { 5_000 };
    let done = Arc::new(AtomicBool::new(false));
    let worker = {
        let (slab, done) = (Arc::clone(&slab), Arc::clone(&done));
        thread::spawn(move || {
            let magazines = Magazines::new();
            let mut live = Vec::new();
            for round in 0..rounds {
                let layout = layout([24, 512, 8192, 30_000][round % 4], 8);
                // SAFETY: one slab for these magazines; thread slots are used by their rules.
                unsafe {
                    let slot = magazines.alloc(&slab, Kind::Thread, layout);
                    slot.write_bytes(1, 16);
                    // Pairs with the visitor's Acquire: the first 16 bytes are written.
                    state_of(slot).store(1, Ordering::Release);
                    live.push((slot, layout));
                    if live.len() > 7 {
                        let (slot, layout) = live.swap_remove(round % 7);
                        end_thread(state_of(slot));
                        magazines.free(&slab, Kind::Thread, slot, layout);
                    }
                }
            }
            for (slot, layout) in live {
                // SAFETY: as above; `end_thread` returns when no visitor accesses more than the
                // state.
                unsafe {
                    end_thread(state_of(slot));
                    magazines.free(&slab, Kind::Thread, slot, layout);
                }
            }
            // SAFETY: one slab for these magazines.
            unsafe { magazines.flush_all(&slab) };
            // Pairs with the Acquire below.
            done.store(true, Ordering::Release);
        })
    };
    while !done.load(Ordering::Acquire) {
        slab.for_each_thread_slot(|slot| {
            // SAFETY: a carved thread slot. More than its state is read only while the count holds
            // it.
            unsafe {
                let state = state_of(slot);
                if state
                    .fetch_update(Ordering::Acquire, Ordering::Relaxed, |n| {
                        (n > 0).then_some(n + 1)
                    })
                    .is_ok()
                {
                    assert_eq!(slot.add(15).read(), 1);
                    state.fetch_sub(1, Ordering::Release);
                }
            }
        });
        thread::yield_now();
    }
    worker.join().unwrap();
    assert_eq!(slab.stats().spans, 3);
}

#[test]
fn dropping_the_slab_frees_what_lives() {
    let rig = Rig::new();
    for size in [8, 100, 5000, 70_000] {
        rig.alloc(Kind::Thread, layout(size, 8), true);
        rig.alloc(Kind::Event, layout(size, 8), false);
    }
    // Miri reports any leak.
    drop(rig);
}

#[derive(Clone, Debug)]
enum Step {
    Alloc {
        thread: bool,
        size: usize,
        align: usize,
        local: bool,
    },
    Free {
        which: prop::sample::Index,
        local: bool,
    },
    Flush,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![
        8 => 0..600usize,
        8 => Just(48usize),
        4 => 600..SLOT_BYTES_MAX + 1,
        1 => SLOT_BYTES_MAX..3 * SPAN_BYTES,
    ];
    let align = prop_oneof![16 => 0..5u32, 1 => 5..18u32].prop_map(|log| 1 << log);
    let step = prop_oneof![
        12 => (any::<bool>(), size, align, any::<bool>())
            .prop_map(|(thread, size, align, local)| Step::Alloc { thread, size, align, local }),
        11 => (any::<prop::sample::Index>(), any::<bool>())
            .prop_map(|(which, local)| Step::Free { which, local }),
        1 => Just(Step::Flush),
    ];
    prop::collection::vec(step, 1..if cfg!(miri) { 60 } else { 600 })
}

/// The model's record of a live object.
struct Object {
    slot: NonNull<u8>,
    kind: Kind,
    layout: Layout,
    tag: u8,
}

impl Object {
    /// Returns the bytes that the object may use freely: without the state word, and not too many.
    fn bytes(&self) -> impl Iterator<Item = usize> {
        let (size, thread) = (self.layout.size(), self.kind == Kind::Thread);
        let ends = (0..size.min(64)).chain(size.max(128) - 64..size);
        ends.filter(move |byte| !(thread && (16..24).contains(byte)))
    }

    fn begin(&self) {
        // SAFETY: the object is in use and the bytes are its own.
        unsafe {
            if self.kind == Kind::Thread {
                assert_eq!(state_of(self.slot).swap(1, Ordering::AcqRel), 0);
            }
            self.bytes()
                .for_each(|byte| self.slot.add(byte).write(self.tag));
        }
    }

    fn end(&self) {
        // SAFETY: as in `begin`, which wrote the bytes.
        unsafe {
            self.bytes()
                .for_each(|byte| assert_eq!(self.slot.add(byte).read(), self.tag, "overlap"));
            if self.kind == Kind::Thread {
                assert_eq!(state_of(self.slot).swap(0, Ordering::AcqRel), 1);
            }
        }
    }
}

/// Enters a new object into the map from the beginning of each live object to its end.
fn enter(ends: &mut BTreeMap<usize, usize>, slot: NonNull<u8>, layout: Layout) {
    let begin = slot.addr().get();
    assert_eq!(begin % layout.align(), 0);
    let end = begin + layout.size().max(8);
    if let Some((_, before)) = ends.range(..end).next_back() {
        assert!(*before <= begin, "overlap");
    }
    ends.insert(begin, end);
}

/// Runs the steps against the model: a map from the beginning of each live object to its end.
fn run(steps: Vec<Step>) {
    let rig = Rig::new();
    let owner: *const () = (&raw const rig).cast();
    // SAFETY: the owner is not counted.
    unsafe { rig.slab.set_owner(owner) };
    let mut live: Vec<Object> = Vec::new();
    let mut ends = BTreeMap::new();
    let mut classes = HashSet::new();
    let free = |object: Object, local| {
        object.end();
        rig.free(object.kind, object.slot, object.layout, local);
    };
    for (at, step) in steps.into_iter().enumerate() {
        match step {
            Step::Alloc {
                thread,
                size,
                align,
                local,
            } => {
                let kind = if thread { Kind::Thread } else { Kind::Event };
                let layout = layout(size, align);
                let slot = rig.alloc(kind, layout, local);
                // SAFETY: the object is in use.
                assert_eq!(unsafe { owner_of(slot) }, owner);
                enter(&mut ends, slot, layout);
                classes.extend(class_of(kind, layout).map(|class| (thread, class)));
                let object = Object {
                    slot,
                    kind,
                    layout,
                    tag: at as u8,
                };
                object.begin();
                live.push(object);
            }
            Step::Free { which, local } if !live.is_empty() => {
                let object = live.swap_remove(which.index(live.len()));
                ends.remove(&object.slot.addr().get());
                free(object, local);
            }
            Step::Free { .. } => {}
            Step::Flush => rig.flush(),
        }
    }
    let threads = live.iter().filter(|object| object.kind == Kind::Thread);
    assert_eq!(rig.threads(), threads.count() as u64);
    live.into_iter().for_each(|object| free(object, true));
    rig.flush();
    let spans = classes.len();
    assert_eq!(
        rig.slab.stats(),
        SlabStats {
            spans,
            bytes: spans * SPAN_BYTES
        },
        "one empty span per class used"
    );
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 256 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn agrees_with_the_model(steps in steps()) {
        run(steps);
    }
}

/// An owner like the runtime.
struct Owner {
    slab: Slab,
}

impl Owner {
    fn new() -> Arc<Self> {
        unsafe fn retain(owner: *const ()) {
            // SAFETY: the pointer is that of a counted `Owner`.
            unsafe { Arc::increment_strong_count(owner.cast::<Owner>()) }
        }
        let slab = Slab::new(retain);
        let owner = Arc::new(Self { slab });
        // SAFETY: the pointer is of the type that `retain` expects.
        unsafe { owner.slab.set_owner(Arc::as_ptr(&owner).cast()) };
        owner
    }

    fn alloc(&self, kind: Kind, layout: Layout) -> Sent {
        // SAFETY: the object is freed once.
        let slot = unsafe { self.slab.alloc_outside(kind, layout) };
        if kind == Kind::Event {
            // SAFETY: the slot is ours, and has room for a word.
            unsafe { slot.cast::<u64>().write(7) };
        }
        Sent(slot)
    }

    fn close(self: &Arc<Self>) {
        self.slab.close();
        // SAFETY: the reference of the open slab is ours now.
        unsafe { Arc::decrement_strong_count(Arc::as_ptr(self)) }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        assert!(self.slab.is_done(), "something is in use");
    }
}

/// Frees an object, which may be the only object that keeps its owner alive.
fn free(kind: Kind, slot: Sent, layout: Layout) {
    // SAFETY: the object is in use, and keeps its owner alive; it is freed once.
    unsafe {
        let owner = owner_of(slot.0).cast::<Owner>();
        if Slab::free(&raw const (*owner).slab, kind, slot.0, layout) {
            drop(Arc::from_raw(owner));
        }
    }
}

#[test]
fn objects_in_use_keep_their_owner() {
    let owner = Owner::new();
    let weak = Arc::downgrade(&owner);
    let (small, large) = (layout(32, 8), layout(100_000, 8));
    assert_eq!(weak.strong_count(), 2, "ours, and that of the open slab");
    let event = owner.alloc(Kind::Event, small);
    let thread = owner.alloc(Kind::Thread, large);
    free(Kind::Thread, owner.alloc(Kind::Thread, small), small);
    assert_eq!(weak.strong_count(), 2);
    owner.close();
    assert_eq!(weak.strong_count(), 3, "ours, and one of each kind");
    free(Kind::Event, event, small);
    free(Kind::Thread, thread, large);
    assert_eq!(weak.strong_count(), 1, "nothing is in use");
    // A late object keeps it alive, too, each time.
    for (kind, layout) in [
        (Kind::Thread, small),
        (Kind::Event, large),
        (Kind::Thread, large),
    ] {
        let [first, last] = [(); 2].map(|()| owner.alloc(kind, layout));
        assert_eq!(weak.strong_count(), 2);
        free(kind, first, layout);
        assert_eq!(weak.strong_count(), 2);
        free(kind, last, layout);
        assert_eq!(weak.strong_count(), 1);
    }
    let last = owner.alloc(Kind::Event, small);
    drop(owner);
    assert_eq!(weak.strong_count(), 1);
    free(Kind::Event, last, small);
    assert_eq!(weak.strong_count(), 0);
}

#[test]
fn allocations_meet_the_end() {
    let small = layout(32, 8);
    for round in 0..if cfg!(miri) { 20 } else { 3_000 } {
        let owner = Owner::new();
        let weak = Arc::downgrade(&owner);
        let os_threads = [(); 2].map(|()| {
            let owner = owner.clone();
            thread::spawn(move || {
                let mut last = None;
                for _ in 0..round % 8 {
                    let next = owner.alloc(Kind::Event, small);
                    if let Some(before) = last.replace(next) {
                        free(Kind::Event, before, small);
                    }
                }
                drop(owner);
                if let Some(last) = last {
                    free(Kind::Event, last, small);
                }
            })
        });
        owner.close();
        drop(owner);
        for os_thread in os_threads {
            os_thread.join().unwrap();
        }
        assert_eq!(weak.strong_count(), 0);
    }
}
