//! Rejected items: the sender waits until the receiver of the port `dropped` has room.

use tussah::flow::{Args, AsyncOut, Dropped, Graph, Out, Running, Via, WhenFull, module};

use super::Notes;
use super::change::add;
use crate::runtime;

/// The number of items that each test sends.
const ITEMS: u64 = 300;

/// Lets the other threads of the runtime run.
async fn turns() {
    for _ in 0..20 {
        tussah::yield_now().await;
    }
}

/// Sends the numbers below [`ITEMS`] as fast as it can.
#[derive(Default)]
struct Numbers;

#[module]
impl Numbers {
    async fn start(&self, out: &impl AsyncOut<u64>) {
        for number in 0..ITEMS {
            out.send(number).await;
        }
    }
}

/// Sends a number on, in a call that never waits.
#[derive(Default)]
struct Relay;

#[module]
impl Relay {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

/// Notes numbers, more slowly than they arrive.
struct Slow(Notes);

#[module]
impl Slow {
    fn init(notes: Notes) -> Self {
        Self(notes)
    }

    async fn run(&mut self, number: u64) {
        turns().await;
        self.0.add(number);
    }

    #[port]
    async fn rejected(&mut self, dropped: Dropped<u64>) {
        turns().await;
        self.0.add(dropped.item.expect("it was not handled"));
    }
}

/// Sends rejected numbers again.
#[derive(Default)]
struct Again;

#[module]
impl Again {
    fn run(&self, dropped: Dropped<u64>, out: &impl Out<u64>) {
        out.send(dropped.item.expect("it was not handled"));
    }
}

/// Returns all numbers that the instances noted, in order.
fn numbers(notes: &Notes) -> Vec<u64> {
    let notes = notes.take();
    let mut numbers: Vec<u64> = notes
        .iter()
        .map(|it| it.parse().expect("a number"))
        .collect();
    numbers.sort_unstable();
    numbers
}

/// Starts a graph in which `first` sends to `slow`, which rejects most numbers, and `lost` takes
/// one of them at a time.
fn start(notes: &Notes, first: &str, when_full: WhenFull, change: impl Fn(&mut Graph)) -> Running {
    let mut graph = Graph::new("g");
    add::<Numbers>(&mut graph, "numbers", Args::new());
    add::<Slow>(&mut graph, "slow", notes.args());
    add::<Slow>(&mut graph, "lost", notes.args());
    let drops = Via::queue(1).when_full(when_full);
    let connected = match first {
        "relay" => {
            add::<Relay>(&mut graph, "relay", Args::new());
            graph.connect("numbers", "relay")
        }
        _ => Ok(()),
    };
    let connected = connected
        .and_then(|()| graph.connect_via(first, "slow", drops))
        .and_then(|()| graph.connect_via("slow.dropped", "lost.rejected", Via::queue(1)));
    connected.expect("the ports exist");
    change(&mut graph);
    graph.start().expect("it is whole")
}

#[test]
fn each_rejected_item_arrives_although_the_receiver_is_slow() {
    let limits: [fn(&mut Graph); 2] = [
        |_| (),
        |graph| {
            graph.limit(2, &["slow"]).expect("it exists");
        },
    ];
    for first in ["numbers", "relay"] {
        for when_full in [WhenFull::Shed, WhenFull::DropOldest] {
            for limit in limits {
                let notes = Notes::default();
                runtime(2).block_on(async {
                    let running = start(&notes, first, when_full, limit);
                    running.drain().await;
                });
                let expected: Vec<u64> = (0..ITEMS).collect();
                assert_eq!(numbers(&notes), expected, "{first}, {when_full:?}");
            }
        }
    }
}

#[test]
fn a_port_whose_wait_could_close_a_cycle_loses_items_and_counts_them() {
    let notes = Notes::default();
    let refused = runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        add::<Numbers>(&mut graph, "numbers", Args::new());
        add::<Slow>(&mut graph, "slow", notes.args());
        add::<Again>(&mut graph, "again", Args::new());
        let drops = Via::queue(1).when_full(WhenFull::Shed);
        let connected = graph
            .connect_via("numbers", "slow", drops.clone())
            .and_then(|()| graph.connect_via("slow.dropped", "again", Via::queue(1)))
            .and_then(|()| graph.connect_via("again", "slow", drops));
        connected.expect("the ports exist");
        let running = graph.start().expect("it is whole");
        running.drain().await;
        running.stats("again").expect("it exists").refused
    });
    let handled = numbers(&notes).len() as u64;
    assert!(refused > 0, "the queue of `again` was full");
    assert_eq!(handled + refused, ITEMS);
}
