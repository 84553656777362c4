//! Changes of a running graph: the parts that stay, and the changes that are refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tussah::flow::{Args, AsyncOut, Dropped, Graph, Module, Out, Running, Via, Wake, module};
use tussah::sync::Semaphore;

use super::{Below, Note, Notes, in_time, settled, turns};
use crate::{by_hand, runtime};

fn add<M: Module>(graph: &mut Graph, name: &str, args: Args) {
    graph.add::<M>(name, args).expect("the name is free");
}

fn connect(graph: &mut Graph, from: &str, to: &str) {
    graph.connect(from, to).expect("both exist");
}

async fn send(running: &Running, to: &str, numbers: impl IntoIterator<Item = u64>) {
    let input = running.input(to).expect("it takes numbers");
    for number in numbers {
        input.send(number).await;
    }
}

/// Passes numbers on.
#[derive(Default)]
struct Pass;

#[module]
impl Pass {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

/// May pass numbers on.
#[derive(Default)]
struct MayPass;

#[module]
impl MayPass {
    fn run(&self, number: u64, out: Option<&impl Out<u64>>) {
        if let Some(out) = out {
            out.send(number);
        }
    }
}

/// Passes numbers on, on an OS thread.
#[derive(Default)]
struct Blocks;

#[module(blocking)]
impl Blocks {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

#[test]
fn what_else_cannot_be_swapped() {
    runtime(1).block_on(async {
        let notes = Notes::default();
        let mut graph = Graph::new("g");
        add::<MayPass>(&mut graph, "may", Args::new());
        add::<Pass>(&mut graph, "pass", Args::new());
        add::<Blocks>(&mut graph, "blocks", Args::new());
        add::<Below>(&mut graph, "below", Args::new().with("below", 0_u64));
        add::<Note<u64>>(&mut graph, "note", notes.args());
        for from in ["pass", "blocks", "below"] {
            connect(&mut graph, from, "note");
        }
        let running = graph.start().expect("it is whole");
        let to_pass = async |name| {
            let swapped = running.swap::<Pass>(name, Args::new()).await;
            swapped.expect_err("it cannot be swapped").to_string()
        };
        assert_eq!(to_pass("may").await, "the port `may.out` has no edge");
        assert_eq!(
            to_pass("blocks").await,
            "the module of `blocks` cannot be swapped to `Pass`: a module that blocks its OS \
             thread is not swapped"
        );
        assert_eq!(
            to_pass("below").await,
            "the module of `below` cannot be swapped to `Pass`: a source keeps its module"
        );
        let blocks = running.swap::<Blocks>("pass", Args::new()).await;
        assert_eq!(
            blocks.expect_err("it blocks").to_string(),
            "the module of `pass` cannot be swapped to `Blocks`: a module that blocks its OS \
             thread is not swapped"
        );
        running.drain().await;
    });
}

/// Has numbers in hand until it may go on.
struct Hold(Arc<Semaphore>);

#[module]
impl Hold {
    fn init(go: Arc<Semaphore>) -> Self {
        Self(go)
    }

    async fn run(&self, number: u64, out: &impl AsyncOut<u64>) {
        self.0.acquire().await.forget();
        out.send(number).await;
    }
}

/// Sends as many numbers at once.
#[derive(Default)]
struct Burst;

#[module]
impl Burst {
    fn run(&self, count: u64, out: &impl Out<u64>) {
        (0..count).for_each(|number| out.send(number));
    }
}

/// Notes numbers, and has them in hand until it may go on.
struct NoteHold(Notes, Arc<Semaphore>);

#[module]
impl NoteHold {
    fn init(notes: Notes, go: Arc<Semaphore>) -> Self {
        Self(notes, go)
    }

    async fn run(&self, number: u64, _out: Option<&impl AsyncOut<u64>>) {
        self.0.add(number);
        self.1.acquire().await.forget();
    }
}

/// A plain module takes several items at once, but an async one handles each in a servlet of its
/// own.
#[test]
fn the_items_of_a_batch_do_not_wait_for_each_other_after_a_swap() {
    let (notes, go) = (Notes::default(), Arc::new(Semaphore::new(0)));
    runtime(1).block_on_spawned(async move {
        let mut graph = Graph::new("g");
        add::<Burst>(&mut graph, "burst", Args::new());
        add::<MayPass>(&mut graph, "module", Args::new());
        connect(&mut graph, "burst", "module");
        let running = graph.start().expect("it is whole");
        let args = notes.args().with("go", Arc::clone(&go));
        let swapped = running.swap::<NoteHold>("module", args).await;
        swapped.expect("it fits");
        send(&running, "burst", [10]).await;
        turns().await;
        assert_eq!(notes.take().len(), 10);
        go.add_permits(10);
        running.drain().await;
    });
}

/// Sends numbers when the flow's alarm goes off.
#[derive(Default)]
struct AtAlarm;

#[module]
impl AtAlarm {
    fn run(&self, _number: u64, _state: &mut u64, wake: &Wake) {
        wake.after(Duration::from_secs(1));
    }

    fn wake(&self, _state: &mut u64, out: &impl Out<u64>) {
        out.send(7);
    }
}

/// Sends each number in a flow of its own.
#[derive(Default)]
struct Open;

#[module]
impl Open {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.to(number, number);
    }
}

#[test]
fn an_alarm_takes_a_place_in_its_limit_after_a_swap() {
    let (clock, runtime) = by_hand();
    let (notes, go) = (Notes::default(), Arc::new(Semaphore::new(0)));
    runtime.block_on_spawned(async move {
        let mut graph = Graph::new("g");
        add::<Open>(&mut graph, "open", Args::new());
        add::<AtAlarm>(&mut graph, "alarm", Args::new());
        let args = Args::new().with("go", Arc::clone(&go));
        add::<Hold>(&mut graph, "hold", args);
        add::<Note<u64>>(&mut graph, "note", notes.args());
        for (from, to) in [("open", "alarm"), ("alarm", "hold"), ("hold", "note")] {
            connect(&mut graph, from, to);
        }
        graph.limit(1, &["alarm", "hold"]).expect("both exist");
        let running = graph.start().expect("it is whole");
        let swapped = running.swap::<AtAlarm>("alarm", Args::new()).await;
        swapped.expect("it fits");
        send(&running, "open", 0..5).await;
        turns().await;
        clock.advance(Duration::from_secs(1));
        turns().await;
        let held = running.stats("hold").expect("it exists");
        assert_eq!(held.in_service + held.queued, 1);
        go.add_permits(5);
        while notes.0.lock().len() < 5 {
            tussah::yield_now().await;
        }
        running.drain().await;
    });
}

/// Passes numbers on, and counts its ticks.
#[derive(Default)]
struct Ticks;

static TICKS: AtomicU64 = AtomicU64::new(0);

#[module]
impl Ticks {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }

    fn tick(&self) {
        TICKS.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_proxy_that_is_removed_ticks_no_more() {
    let (clock, runtime) = by_hand();
    let notes = Notes::default();
    runtime.block_on_spawned(async move {
        let mut graph = Graph::new("g");
        add::<Pass>(&mut graph, "first", Args::new());
        add::<Note<u64>>(&mut graph, "note", notes.args());
        connect(&mut graph, "first", "note");
        let running = graph.start().expect("it is whole");
        let every = Args::new().with("every", Duration::from_secs(1));
        let proxy = running.proxy::<Ticks>("first -> note", "ticks", every);
        let proxy = proxy.await.expect("it fits");
        turns().await;
        clock.advance(Duration::from_secs(1));
        turns().await;
        assert_eq!(TICKS.load(Ordering::Relaxed), 1);
        proxy.remove().await;
        clock.advance(Duration::from_secs(1));
        turns().await;
        assert_eq!(TICKS.load(Ordering::Relaxed), 1);
        running.drain().await;
    });
}

/// A graph whose last instance has an edge for what it drops.
fn with_lost(lost: &Notes) -> Running {
    let mut graph = Graph::new("g");
    add::<Pass>(&mut graph, "first", Args::new());
    add::<MayPass>(&mut graph, "last", Args::new());
    add::<Note<Dropped<u64>>>(&mut graph, "lost", lost.args());
    let edge = graph.connect_via("first", "last", Via::queue(10));
    edge.expect("both exist");
    connect(&mut graph, "last.dropped", "lost");
    graph.start().expect("it is whole")
}

/// Some of the items are in front of the proxy, and one is in its hand.
#[test]
fn items_that_wait_at_a_proxy_are_dropped_by_the_receiver() {
    let (clock, runtime) = by_hand();
    let (lost, go) = (Notes::default(), Arc::new(Semaphore::new(0)));
    let notes = lost.clone();
    runtime.block_on_spawned(async move {
        let running = with_lost(&notes);
        let args = Args::new().with("go", Arc::clone(&go));
        let proxy = running.proxy::<Hold>("first -> last", "hold", args);
        let _stays = proxy.await.expect("it fits");
        send(&running, "first", 0..5).await;
        turns().await;
        in_time(&clock, running.stop()).await;
    });
    let lost = lost.sorted();
    assert_eq!(lost.len(), 5, "{lost:?}");
    for (number, lost) in lost.iter().enumerate() {
        let item = format!("item: Some({number}), reason: ShutDown");
        assert!(lost.contains(&item), "{lost}");
    }
}

/// Panics for each number.
#[derive(Default)]
struct Break;

#[module]
impl Break {
    fn run(&mut self, number: u64, _out: &impl Out<u64>) {
        panic!("{number} breaks");
    }
}

#[test]
fn items_that_break_a_proxy_are_dropped_by_the_receiver() {
    let lost = Notes::default();
    runtime(1).block_on(async {
        let running = with_lost(&lost);
        let proxy = running.proxy::<Break>("first -> last", "break", Args::new());
        let proxy = proxy.await.expect("it fits");
        send(&running, "first", 0..9).await;
        settled(&running).await;
        // The sixth panic has closed it.
        assert_eq!(running.stats("break").expect("it exists").gate, "closed");
        proxy.remove().await;
        send(&running, "first", [9]).await;
        running.drain().await;
        assert_eq!(running.stats("last").expect("it exists").finished, 1);
    });
    let lost = lost.sorted();
    assert_eq!(lost.len(), 9, "{lost:?}");
    for (number, lost) in lost.iter().enumerate() {
        let reason = if number < 6 { "Panicked" } else { "ShutDown" };
        let item = format!("item: Some({number}), reason: {reason}");
        assert!(lost.contains(&item), "{lost}");
    }
}
