//! Each item ends once: handled, failed, or dropped with the reason.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tussah::flow::{Args, AsyncOut, Dropped, Graph, Module, Out, Via, module};

use super::{Note, Notes};
use crate::runtime;

/// Handles even numbers, fails for 1, and panics for other odd ones.
struct Even(Notes);

#[module]
impl Even {
    fn init(notes: Notes) -> Self {
        notes.add("made");
        Self(notes)
    }

    fn run(&mut self, number: u64) -> Result<(), String> {
        match number {
            1 => Err("one".to_owned()),
            number if number % 2 == 1 => panic!("{number} is odd"),
            number => {
                self.0.add(number);
                Ok(())
            }
        }
    }
}

/// Notes the ends of items.
struct Ends<T>(Notes, std::marker::PhantomData<fn(T)>);

#[module]
impl<T: std::fmt::Debug + Send + 'static> Ends<T> {
    fn init(notes: Notes) -> Self {
        Self(notes, std::marker::PhantomData)
    }

    fn run(&mut self, dropped: Dropped<T>) {
        self.0
            .add(format!("dropped {:?}: {}", dropped.item, dropped.reason));
    }

    #[port]
    fn failed(&mut self, error: String) {
        self.0.add(format!("failed: {error}"));
    }
}

#[test]
fn an_item_fails_or_is_dropped() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Even>("even", notes.args())
            .expect("the name is free");
        graph
            .add::<Ends<u64>>("ends", notes.args())
            .expect("the name is free");
        graph.connect("even.dropped", "ends").expect("both exist");
        graph
            .connect("even.failed", "ends.failed")
            .expect("both exist");
        let running = graph.start().expect("it is whole");
        let input = running.input("even").expect("it takes numbers");
        for number in [0u64, 1, 2, 3, 4] {
            input.send(number).await;
        }
        let mut stats = running.stats("even").expect("it exists");
        while stats.finished < 5 {
            tussah::yield_now().await;
            stats = running.stats("even").expect("it exists");
        }
        assert_eq!((stats.finished, stats.failed, stats.panicked), (5, 2, 1));
        running.drain().await;
    });
    let expected = [
        "0",
        "2",
        "4",
        "dropped Some(3): its handler panicked",
        "failed: one",
        // A panic makes the module anew.
        "made",
        "made",
    ];
    assert_eq!(notes.sorted(), expected);
}

/// An item that cannot be cloned.
#[derive(Debug)]
struct Whole;

#[derive(Default)]
struct Break;

#[module]
impl Break {
    async fn run(&self, _item: Whole) {
        tussah::yield_now().await;
        panic!("broken");
    }
}

#[test]
fn the_item_of_a_panic_is_gone_if_it_cannot_be_cloned() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Break>("break", Args::new())
            .expect("the name is free");
        graph
            .add::<Ends<Whole>>("ends", notes.args())
            .expect("the name is free");
        graph.connect("break.dropped", "ends").expect("both exist");
        let running = graph.start().expect("it is whole");
        running
            .input("break")
            .expect("it takes items")
            .send(Whole)
            .await;
        running.drain().await;
    });
    assert_eq!(notes.take(), ["dropped None: its handler panicked"]);
}

/// An item whose clone panics.
#[derive(Debug)]
struct Fragile;

impl Clone for Fragile {
    fn clone(&self) -> Self {
        panic!("no copy");
    }
}

/// A state whose first value panics.
struct NoState;

impl Default for NoState {
    fn default() -> Self {
        panic!("no state");
    }
}

#[derive(Default)]
struct Handle;

#[module]
impl Handle {
    fn run(&self, _item: Fragile) {}
}

#[derive(Default)]
struct KeepNothing;

#[module]
impl KeepNothing {
    fn run(&self, _number: u64, _state: &mut NoState) {}
}

/// Sends an item through a module, and returns what is noted about its end.
fn end_of<M: Module, T: std::fmt::Debug + Send + 'static>(item: T) -> Vec<String> {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph.add::<M>("module", Args::new()).expect("it is new");
        graph
            .add::<Ends<T>>("ends", notes.args())
            .expect("it is new");
        graph.connect("module.dropped", "ends").expect("both exist");
        let running = graph.start().expect("it is whole");
        let input = running.input("module").expect("it takes items");
        input.send(item).await;
        running.drain().await;
    });
    notes.take()
}

#[test]
fn an_item_is_dropped_if_its_clone_or_the_state_of_its_flow_panics() {
    assert_eq!(
        end_of::<Handle, _>(Fragile),
        ["dropped None: its handler panicked"]
    );
    assert_eq!(
        end_of::<KeepNothing, _>(7u64),
        ["dropped Some(7): its handler panicked"]
    );
}

/// Sends and then panics.
#[derive(Default)]
struct SendAndBreak;

#[module]
impl SendAndBreak {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        (0..number).for_each(|number| out.send(number));
        panic!("after the last send");
    }
}

#[test]
fn what_was_sent_before_a_panic_arrives() {
    let notes = Notes::default();
    runtime(1).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<SendAndBreak>("send", Args::new())
            .expect("the name is free");
        graph
            .add::<Note<u64>>("note", notes.args())
            .expect("the name is free");
        graph.connect("send", "note").expect("both exist");
        let running = graph.start().expect("it is whole");
        running
            .input("send")
            .expect("it takes numbers")
            .send(1500u64)
            .await;
        running.drain().await;
    });
    assert_eq!(notes.take().len(), 1500);
}

/// Produces numbers until it is stopped.
#[derive(Default)]
struct Endless;

#[module]
impl Endless {
    async fn start(&self, out: &impl AsyncOut<u64>) {
        let mut number = 0;
        loop {
            out.send(number).await;
            number += 1;
        }
    }
}

#[test]
fn a_stopped_graph_handles_what_was_sent() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Endless>("numbers", Args::new())
            .expect("the name is free");
        graph
            .add::<Note<u64>>("note", notes.args())
            .expect("the name is free");
        graph.connect("numbers", "note").expect("both exist");
        let running = graph.start().expect("it is whole");
        while notes.0.lock().len() < 1000 {
            tussah::yield_now().await;
        }
        running.stop().await;
    });
    let notes = notes.take();
    assert_eq!(
        notes,
        (0..notes.len()).map(|n| n.to_string()).collect::<Vec<_>>()
    );
}

#[test]
fn the_end_of_the_runtime_ends_a_graph() {
    let notes = Notes::default();
    let runtime = runtime(2);
    let running = runtime.block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Endless>("numbers", Args::new())
            .expect("the name is free");
        graph
            .add::<Note<u64>>("note", notes.args())
            .expect("the name is free");
        graph.connect("numbers", "note").expect("both exist");
        graph.start().expect("it is whole")
    });
    runtime.shutdown(Duration::ZERO);
    drop(running);
    assert_eq!(std::sync::Arc::strong_count(&notes.0), 1);
}

/// Waits for a message, and then sends 0.
struct Late(tussah::sync::Limit);

#[module]
impl Late {
    fn init(limit: tussah::sync::Limit) -> Self {
        Self(limit)
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        let _permit = self.0.acquire().await;
        out.send(0).await;
    }
}

#[test]
fn a_drain_after_a_cancelled_drain_waits_for_the_sources() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let limit = tussah::sync::Limit::new("late", 0);
        let mut graph = Graph::new("g");
        graph
            .add::<Late>("late", Args::new().with("limit", limit.clone()))
            .expect("the name is free");
        graph
            .add::<Note<u64>>("note", notes.args())
            .expect("the name is free");
        graph.connect("late", "note").expect("both exist");
        let running = graph.start().expect("it is whole");
        let cancelled = futures_lite::future::poll_once(running.drain()).await;
        assert_eq!(cancelled, None);
        let drained = futures_lite::future::zip(running.drain(), async {
            for _ in 0..100 {
                tussah::yield_now().await;
            }
            limit.set_permits(1);
        });
        drained.await;
    });
    assert_eq!(notes.take(), ["0"]);
}

#[derive(Default)]
struct Pass;

#[module]
impl Pass {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

/// The sender of a call goes on, so each of the two items ends once.
#[test]
fn a_panic_in_a_call_ends_the_item_of_the_receiver() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Pass>("pass", Args::new())
            .expect("the name is free");
        graph
            .add::<Even>("even", notes.args())
            .expect("the name is free");
        graph
            .add::<Ends<u64>>("ends", notes.args())
            .expect("the name is free");
        graph
            .connect_via("pass", "even", Via::call())
            .expect("both exist");
        graph.connect("pass.dropped", "ends").expect("both exist");
        graph.connect("even.dropped", "ends").expect("both exist");
        let running = graph.start().expect("it is whole");
        let input = running.input("pass").expect("it takes numbers");
        for number in [3u64, 4] {
            input.send(number).await;
        }
        while running.stats("pass").expect("it exists").finished < 2 {
            tussah::yield_now().await;
        }
        let panicked = |name| running.stats(name).expect("it exists").panicked;
        assert_eq!((panicked("pass"), panicked("even")), (0, 1));
        running.drain().await;
    });
    let expected = ["4", "dropped Some(3): its handler panicked", "made", "made"];
    assert_eq!(notes.sorted(), expected);
}

/// An item that can be cloned once.
#[derive(Debug)]
struct CloneOnce(Arc<AtomicBool>);

impl Clone for CloneOnce {
    fn clone(&self) -> Self {
        let is_second = self.0.swap(true, Ordering::Relaxed);
        assert!(!is_second, "no second copy");
        Self(Arc::clone(&self.0))
    }
}

#[derive(Default)]
struct BreakOnce;

#[module]
impl BreakOnce {
    fn run(&self, _item: CloneOnce) {
        panic!("broken");
    }
}

/// The copy for the first edge panics while the panic of the module unwinds.
#[test]
fn an_edge_from_dropped_whose_copy_panics_goes_without_it() {
    let (first, last) = (Notes::default(), Notes::default());
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<BreakOnce>("break", Args::new())
            .expect("it is new");
        for (name, notes) in [("first", &first), ("last", &last)] {
            graph
                .add::<Ends<CloneOnce>>(name, notes.args())
                .expect("it is new");
            graph.connect("break.dropped", name).expect("both exist");
        }
        let running = graph.start().expect("it is whole");
        let input = running.input("break").expect("it takes items");
        input.send(CloneOnce(Arc::default())).await;
        running.drain().await;
        let stats = running.stats("break").expect("it exists");
        assert_eq!((stats.finished, stats.panicked), (1, 1));
    });
    assert_eq!((first.take().len(), last.take().len()), (0, 1));
}
