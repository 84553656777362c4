//! Swaps of modules that block their OS threads.

use std::pin::pin;
use std::sync::Arc;

use futures_lite::future::poll_once;
use parking_lot::{Condvar, Mutex};
use tussah::flow::{Args, Batch, Graph, Module, Out, Running, Via, module};
use tussah::yield_now;

use super::change::{add, connect, send};
use super::{Below, Note, Notes};
use crate::runtime;

/// A gate that holds OS threads, with the number of those that have come to it.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<(bool, u64)>, Condvar)>);

impl Gate {
    fn open(&self) {
        self.0.0.lock().0 = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let mut gate = self.0.0.lock();
        gate.1 += 1;
        self.0.1.wait_while(&mut gate, |(is_open, _)| !*is_open);
    }

    async fn is_reached(&self) {
        while self.0.0.lock().1 == 0 {
            yield_now().await;
        }
    }
}

macro_rules! scale {
    ($name:ident, $($how:ident),*) => {
        /// Multiplies numbers while its gate is open.
        struct $name(u64, Gate);

        #[module($($how),*)]
        impl $name {
            fn init(by: u64, gate: Gate) -> Self {
                Self(by, gate)
            }

            fn run(&self, number: u64, out: &impl Out<u64>) {
                self.1.pass();
                out.send(number * self.0);
            }
        }
    };
}

scale!(Scale, blocking);
scale!(ScaleOne, blocking, serial);
scale!(ScaleInOrder, blocking, ordered);

fn by(factor: u64, gate: &Gate) -> Args {
    Args::new().with("by", factor).with("gate", gate.clone())
}

/// Starts a graph of a module, which multiplies by 10, and the notes behind it.
fn start<M: Module>(gate: &Gate, notes: &Notes) -> Running {
    let mut graph = Graph::new("g");
    add::<M>(&mut graph, "module", by(10, gate));
    add::<Note<u64>>(&mut graph, "note", notes.args());
    connect(&mut graph, "module", "note");
    graph.start().expect("it is whole")
}

/// Returns an open gate.
fn open() -> Gate {
    let gate = Gate::default();
    gate.open();
    gate
}

#[test]
fn a_running_call_ends_with_its_module() {
    let (notes, gate) = (Notes::default(), Gate::default());
    runtime(1).block_on(async {
        let running = start::<Scale>(&gate, &notes);
        send(&running, "module", [1]).await;
        gate.is_reached().await;
        let swapped = running.swap::<Scale>("module", by(100, &open())).await;
        swapped.expect("it fits");
        send(&running, "module", [2]).await;
        while notes.0.lock().is_empty() {
            yield_now().await;
        }
        gate.open();
        running.drain().await;
    });
    assert_eq!(notes.take(), ["200", "10"]);
}

#[test]
fn a_swap_waits_for_the_running_call_of_a_serial_module() {
    let (notes, gate) = (Notes::default(), Gate::default());
    runtime(1).block_on(async {
        let running = start::<ScaleOne>(&gate, &notes);
        send(&running, "module", [1, 2, 3]).await;
        gate.is_reached().await;
        {
            let mut swap = pin!(running.swap::<ScaleOne>("module", by(100, &open())));
            for _ in 0..100 {
                assert!(poll_once(&mut swap).await.is_none(), "a call runs");
                yield_now().await;
            }
            gate.open();
            swap.await.expect("it fits");
        }
        running.drain().await;
    });
    assert_eq!(notes.take(), ["10", "200", "300"]);
}

/// Passes numbers on, several in a call.
#[derive(Default)]
struct Many;

#[module(blocking)]
impl Many {
    fn run(&self, numbers: &mut Batch<u64>, out: &impl Out<u64>) {
        numbers.for_each(|number| out.send(number));
    }
}

#[test]
fn numbers_do_not_wait_for_others_of_a_batch_after_a_swap() {
    let notes = Notes::default();
    runtime(1).block_on(async {
        let mut graph = Graph::new("g");
        add::<Many>(&mut graph, "module", Args::new());
        add::<Note<u64>>(&mut graph, "note", notes.args());
        connect(&mut graph, "module", "note");
        let running = graph.start().expect("it is whole");
        let batch_max = || running.stats("module").expect("it exists").batch_max;
        assert!(batch_max() > 1);
        let swapped = running.swap::<Scale>("module", by(10, &open())).await;
        swapped.expect("it fits");
        assert_eq!(batch_max(), 1);
        send(&running, "module", [1]).await;
        running.drain().await;
    });
    assert_eq!(notes.take(), ["10"]);
}

#[test]
fn swaps_of_modules_that_block_lose_no_item() {
    const ITEMS: u64 = 2_000;
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        add::<Below>(&mut graph, "below", Args::new().with("below", ITEMS));
        add::<ScaleInOrder>(&mut graph, "module", by(1, &open()));
        add::<Note<u64>>(&mut graph, "note", notes.args());
        let edge = graph.connect_via("below", "module", Via::queue(10));
        edge.expect("both exist");
        connect(&mut graph, "module", "note");
        let running = graph.start().expect("it is whole");
        // The items may arrive before this thread runs again.
        loop {
            let swapped = running.swap::<ScaleInOrder>("module", by(1, &open())).await;
            swapped.expect("it fits");
            if running.stats("note").expect("it exists").finished >= ITEMS {
                break;
            }
        }
        running.drain().await;
    });
    let numbers: Vec<_> = (0..ITEMS).map(|number| number.to_string()).collect();
    assert!(notes.take() == numbers);
}
