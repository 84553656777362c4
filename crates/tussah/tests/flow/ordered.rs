//! Ordered modules: the output leaves in the order of the input, whatever happens to the items.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tussah::AbortHandle;
use tussah::flow::{Args, AsyncOut, Dropped, Graph, Module, Out, Running, Via, WhenFull, module};
use tussah::stage::sim::Random;
use tussah::sync::Notify;

use super::flows::Sums;
use super::{Note, Notes};
use crate::runtime;

/// Bound, in items: as the engine's bound on the items that an ordered module handles at a time.
const AT_ONCE: u64 = 100;

/// A number that depends on an item and a seed only.
pub(super) fn random(seed: u64, number: u64) -> u64 {
    Random::new(seed << 32 ^ number).next() >> 32
}

/// The number of items that are sent for an item, and how the item ends.
pub(super) fn fate(seed: u64, number: u64) -> (u64, u64) {
    let random = random(seed, number);
    (random % 3, random / 3 % 5)
}

/// Sends items after a delay, and then fails or panics sometimes.
struct Plain(u64);

#[module(ordered)]
impl Plain {
    fn init(seed: u64) -> Self {
        Self(seed)
    }

    fn run(&self, number: u64, out: &impl Out<u64>) -> Result<(), u64> {
        let (sends, end) = fate(self.0, number);
        for _ in 0..random(self.0, number) % 2000 {
            std::hint::spin_loop();
        }
        for _ in 0..sends {
            out.send(number);
        }
        match end {
            0 => panic!("item {number}"),
            1 => Err(number),
            _ => Ok(()),
        }
    }
}

/// The same with waits.
struct Waits(u64);

#[module(ordered)]
impl Waits {
    fn init(seed: u64) -> Self {
        Self(seed)
    }

    async fn run(&self, number: u64, out: &impl AsyncOut<u64>) -> Result<(), u64> {
        let (sends, end) = fate(self.0, number);
        for sent in 0..=sends {
            for _ in 0..random(self.0, number) % 7 {
                tussah::yield_now().await;
            }
            if sent < sends {
                out.send(number).await;
            }
        }
        match end {
            0 => panic!("item {number}"),
            1 => Err(number),
            _ => Ok(()),
        }
    }
}

/// The same on OS threads.
struct Blocks(Plain);

#[module(ordered, blocking)]
impl Blocks {
    fn init(seed: u64) -> Self {
        Self(Plain(seed))
    }

    fn run(&self, number: u64, out: &impl Out<u64>) -> Result<(), u64> {
        std::thread::yield_now();
        self.0.run(number, out)
    }
}

/// Notes what arrives at each port.
struct Ends(Notes, Notes);

#[module]
impl Ends {
    fn init(failed: Notes, dropped: Notes) -> Self {
        Self(failed, dropped)
    }

    fn run(&mut self, number: u64) {
        self.0.add(number);
    }

    #[port]
    fn dropped(&mut self, dropped: Dropped<u64>) {
        self.1.add(dropped.item.expect("numbers can be cloned"));
    }
}

/// Sends items through a module, and returns what arrives at `out`, `failed` and `dropped`.
pub(super) fn through<M: Module>(seed: u64, items: u64, via: Via) -> [Vec<u64>; 3] {
    through_while::<M>(seed, items, via, |_| tussah::spawn(async {}).abort_handle())
}

/// The same while a thread of `with` runs.
pub(super) fn through_while<M: Module>(
    seed: u64,
    items: u64,
    via: Via,
    with: impl FnOnce(&Running) -> AbortHandle,
) -> [Vec<u64>; 3] {
    let notes = [(); 3].map(|()| Notes::default());
    let [out, failed, dropped] = notes.clone();
    runtime(3).block_on(async {
        let mut graph = Graph::new("g");
        let args = Args::new().with("seed", seed);
        graph
            .add::<Numbers>("numbers", Args::new().with("items", items))
            .expect("it is new");
        graph.add::<M>("module", args).expect("it is new");
        graph
            .add::<Note<u64>>("out", out.args())
            .expect("it is new");
        let args = Args::new().with("failed", failed).with("dropped", dropped);
        graph.add::<Ends>("ends", args).expect("it is new");
        graph
            .connect_via("numbers", "module", via)
            .expect("both exist");
        // Little room, so that the module waits for it, too.
        graph
            .connect_via("module", "out", Via::queue(3))
            .expect("both exist");
        graph.connect("module.failed", "ends").expect("both exist");
        // Sending to `dropped` never waits, so that port needs room for all items.
        let room = Via::queue(items.max(1));
        graph
            .connect_via("module.dropped", "ends.dropped", room)
            .expect("both exist");
        let running = graph.start().expect("it is whole");
        let thread = with(&running);
        running.drain().await;
        thread.abort();
    });
    notes.map(|notes| {
        notes
            .take()
            .iter()
            .map(|it| it.parse().expect("a number"))
            .collect()
    })
}

struct Numbers(u64);

#[module]
impl Numbers {
    fn init(items: u64) -> Self {
        Self(items)
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        for number in 0..self.0 {
            out.send(number).await;
        }
    }
}

fn keeps_the_order<M: Module>() {
    for seed in 0..20 {
        let items = 200;
        let [out, failed, mut dropped] = through::<M>(seed, items, Via::default());
        let all = || (0..items).map(|number| (number, fate(seed, number)));
        let sent = all().flat_map(|(number, (sends, _))| (0..sends).map(move |_| number));
        assert_eq!(out, sent.collect::<Vec<_>>(), "seed {seed}");
        let ended = |how| {
            all()
                .filter(move |(_, (_, end))| *end == how)
                .map(|(number, _)| number)
        };
        assert_eq!(failed, ended(1).collect::<Vec<_>>(), "seed {seed}");
        dropped.sort_unstable();
        assert_eq!(dropped, ended(0).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn plain_calls_keep_the_order() {
    keeps_the_order::<Plain>();
}

#[test]
fn async_calls_keep_the_order() {
    keeps_the_order::<Waits>();
}

#[test]
fn blocking_calls_keep_the_order() {
    keeps_the_order::<Blocks>();
}

#[test]
fn dropped_items_leave_no_gap() {
    for policy in [WhenFull::Shed, WhenFull::DropOldest] {
        let via = Via::queue(5).when_full(policy);
        let [out, failed, dropped] = through::<Waits>(7, 2000, via);
        assert!(out.is_sorted() && failed.is_sorted());
        let mut ends: Vec<_> = [&out, &failed, &dropped].into_iter().flatten().collect();
        ends.sort_unstable();
        ends.dedup();
        let silent = |number: &u64| fate(7, *number).0 > 0 || fate(7, *number).1 < 2;
        let missing = (0..2000)
            .filter(silent)
            .find(|number| !ends.contains(&number));
        assert_eq!(missing, None);
    }
}

/// Waits with the first item until the test says so.
#[derive(Clone, Default)]
struct Gate(Arc<(Notify, AtomicU64)>);

#[module(ordered)]
impl Gate {
    fn init(gate: Self) -> Self {
        gate
    }

    async fn run(&self, number: u64, out: &impl AsyncOut<u64>) {
        let (open, begun) = &*self.0;
        begun.fetch_add(1, Ordering::Relaxed);
        if number == 0 {
            open.notified().await;
        }
        out.send(number).await;
    }
}

#[test]
fn later_items_are_handled_while_an_earlier_item_waits_up_to_a_bound() {
    let (notes, gate) = (Notes::default(), Gate::default());
    runtime(1).block_on(async {
        let mut graph = Graph::new("g");
        let args = Args::new().with("items", 3 * AT_ONCE);
        graph.add::<Numbers>("numbers", args).expect("it is new");
        graph
            .add::<Gate>("gate", Args::new().with("gate", gate.clone()))
            .expect("it is new");
        graph
            .add::<Note<u64>>("note", notes.args())
            .expect("it is new");
        graph.connect("numbers", "gate").expect("both exist");
        graph.connect("gate", "note").expect("both exist");
        let running = graph.start().expect("it is whole");
        let begun = || gate.0.1.load(Ordering::Relaxed);
        while begun() < AT_ONCE {
            tussah::yield_now().await;
        }
        // The others would have begun by now.
        for _ in 0..1000 {
            tussah::yield_now().await;
        }
        assert_eq!((begun(), notes.take().len()), (AT_ONCE, 0));
        gate.0.0.notify_one();
        running.drain().await;
    });
    let expected: Vec<_> = (0..3 * AT_ONCE).map(|number| number.to_string()).collect();
    assert_eq!(notes.take(), expected);
}

/// Sends several copies at once. Each send has a waker of its own.
#[derive(Default)]
struct AtOnce;

#[module(ordered)]
impl AtOnce {
    async fn run(&self, number: u64, out: &impl AsyncOut<u64>) {
        if number.is_multiple_of(2) {
            tussah::yield_now().await;
        }
        let mut sends: FuturesUnordered<_> = (0..4).map(|_| out.send(number)).collect();
        while sends.next().await.is_some() {}
    }
}

#[test]
fn all_sends_of_an_item_have_their_turn() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        let args = Args::new().with("items", 50u64);
        graph.add::<Numbers>("numbers", args).expect("it is new");
        graph
            .add::<AtOnce>("module", Args::new())
            .expect("it is new");
        graph
            .add::<Note<u64>>("note", notes.args())
            .expect("it is new");
        graph.connect("numbers", "module").expect("both exist");
        graph.connect("module", "note").expect("both exist");
        graph.start().expect("it is whole").drain().await;
    });
    let expected = (0..50).flat_map(|number: u64| std::iter::repeat_n(number.to_string(), 4));
    assert_eq!(notes.take(), expected.collect::<Vec<_>>());
}

/// Sends the numbers from 1 to 9 in the flow of their tens, and closes it for the next ten.
#[derive(Default)]
struct Tens;

#[module(ordered)]
impl Tens {
    async fn run(&self, number: u64, out: &impl AsyncOut<u64>) {
        match number % 10 {
            0 => out.close((number / 10).wrapping_sub(1)),
            digit => {
                for _ in digit..20 {
                    tussah::yield_now().await;
                }
                out.to(number / 10, number).await;
            }
        }
    }
}

#[test]
fn a_flow_closes_in_turn() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        let args = Args::new().with("items", 51u64);
        graph.add::<Numbers>("numbers", args).expect("it is new");
        graph.add::<Tens>("tens", Args::new()).expect("it is new");
        graph.add::<Sums>("sums", Args::new()).expect("it is new");
        graph
            .add::<Note<String>>("note", notes.args())
            .expect("it is new");
        graph.connect("numbers", "tens").expect("both exist");
        graph.connect("tens", "sums").expect("both exist");
        graph.connect("sums", "note").expect("both exist");
        graph.start().expect("it is whole").drain().await;
    });
    let expected = (0..5u64).map(|tens| {
        let numbers: Vec<_> = (1..10).map(|digit| 10 * tens + digit).collect();
        format!("{:?}", format!("{tens}: {numbers:?}"))
    });
    assert_eq!(notes.sorted(), expected.collect::<Vec<_>>());
}

#[test]
fn a_halted_module_ends_all_items() {
    let (notes, gate) = (Notes::default(), Gate::default());
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        let args = Args::new().with("items", 10u64);
        graph.add::<Numbers>("numbers", args).expect("it is new");
        graph
            .add::<Gate>("gate", Args::new().with("gate", gate.clone()))
            .expect("it is new");
        graph
            .add::<Note<Dropped<u64>>>("dropped", notes.args())
            .expect("it is new");
        graph
            .add::<Note<u64>>("note", notes.args())
            .expect("it is new");
        graph.connect("numbers", "gate").expect("both exist");
        graph.connect("gate", "note").expect("both exist");
        graph
            .connect("gate.dropped", "dropped")
            .expect("both exist");
        let running = graph.start().expect("it is whole");
        while gate.0.1.load(Ordering::Relaxed) < 10 {
            tussah::yield_now().await;
        }
        running.drain_within(std::time::Duration::ZERO).await;
    });
    // Items that have their turn before they are stopped arrive.
    let notes = notes.take();
    assert_eq!(
        (
            notes.len(),
            notes.iter().any(|it| it.contains("item: Some(0)"))
        ),
        (10, true),
        "{notes:?}"
    );
}

/// Sends an item in a flow, and then in all flows.
#[derive(Default)]
struct OpenAndAll;

#[module(ordered)]
impl OpenAndAll {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.to(number, number);
        out.each_flow(10 * number);
    }
}

#[test]
fn each_flow_means_the_flows_at_the_items_turn() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        let args = Args::new().with("items", 4u64);
        graph.add::<Numbers>("numbers", args).expect("it is new");
        graph
            .add::<OpenAndAll>("all", Args::new())
            .expect("it is new");
        graph
            .add::<Note<u64>>("note", notes.args())
            .expect("it is new");
        graph.connect("numbers", "all").expect("both exist");
        graph.connect("all", "note").expect("both exist");
        graph.start().expect("it is whole").drain().await;
    });
    let all = |number: u64| {
        let copies = (0..=number).map(move |_| 10 * number);
        std::iter::once(number).chain(copies)
    };
    let expected = (0..4).flat_map(all).map(|number| number.to_string());
    assert_eq!(notes.take(), expected.collect::<Vec<_>>());
}
