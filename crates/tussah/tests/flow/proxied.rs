//! Items at proxies: their order, their ends, and their place in a limit.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_lite::future::{or, poll_once};
use tussah::flow::{Args, Dropped, Graph, Out, Running, Via, module};
use tussah::sync::Semaphore;
use tussah::yield_now;

use super::change::{Burst, Hold, MayPass, Pass, add, connect, send};
use super::{Below, Note, Notes, in_time, settled, turns};
use crate::{by_hand, runtime};

/// Passes numbers on, and counts its ticks.
struct Ticks(Arc<AtomicU64>);

#[module]
impl Ticks {
    fn init(ticks: Arc<AtomicU64>) -> Self {
        Self(ticks)
    }

    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }

    fn tick(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The arguments of a proxy that ticks once a second.
fn each_second(ticks: &Arc<AtomicU64>) -> Args {
    let every = Args::new().with("every", Duration::from_secs(1));
    every.with("ticks", Arc::clone(ticks))
}

#[test]
fn a_proxy_that_is_removed_ticks_no_more() {
    let (clock, runtime) = by_hand();
    let (notes, ticks) = (Notes::default(), Arc::default());
    runtime.block_on_spawned(async move {
        let mut graph = Graph::new("g");
        add::<Pass>(&mut graph, "first", Args::new());
        add::<Note<u64>>(&mut graph, "note", notes.args());
        connect(&mut graph, "first", "note");
        let running = graph.start().expect("it is whole");
        let proxy = running.proxy::<Ticks>("first -> note", "ticks", each_second(&ticks));
        let proxy = proxy.await.expect("it fits");
        turns().await;
        clock.advance(Duration::from_secs(1));
        turns().await;
        assert_eq!(ticks.load(Ordering::Relaxed), 1);
        proxy.remove().await;
        clock.advance(Duration::from_secs(1));
        turns().await;
        assert_eq!(ticks.load(Ordering::Relaxed), 1);
        running.drain().await;
    });
}

#[test]
fn a_proxy_ticks_no_more_while_its_graph_drains() {
    let (clock, runtime) = by_hand();
    let (notes, ticks) = (Notes::default(), Arc::default());
    let go = Arc::new(Semaphore::new(0));
    runtime.block_on_spawned(async move {
        let mut graph = Graph::new("g");
        add::<Pass>(&mut graph, "first", Args::new());
        let args = Args::new().with("go", Arc::clone(&go));
        add::<Hold>(&mut graph, "hold", args);
        add::<Note<u64>>(&mut graph, "note", notes.args());
        connect(&mut graph, "first", "hold");
        connect(&mut graph, "hold", "note");
        let running = graph.start().expect("it is whole");
        let proxy = running.proxy::<Ticks>("first -> hold", "ticks", each_second(&ticks));
        let _stays = proxy.await.expect("it fits");
        send(&running, "first", [7]).await;
        turns().await;
        let mut drained = pin!(running.drain());
        for _ in 0..100 {
            assert!(poll_once(&mut drained).await.is_none(), "an item is held");
            yield_now().await;
        }
        clock.advance(Duration::from_secs(1));
        turns().await;
        assert_eq!(ticks.load(Ordering::Relaxed), 0);
        go.add_permits(1);
        drained.await;
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

/// Inserts and removes proxies until all items have arrived, and drains the graph.
async fn come_and_go(running: &Running, edge: &str, items: u64) {
    while running.stats("note").expect("it exists").finished < items {
        let proxy = running.proxy::<Pass>(edge, "pass", Args::new());
        let proxy = proxy.await.expect("it fits");
        turns().await;
        proxy.remove().await;
    }
    running.drain().await;
}

#[test]
fn proxies_keep_the_order_of_a_sender() {
    const ITEMS: u64 = 5_000;
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        add::<Below>(&mut graph, "below", Args::new().with("below", ITEMS));
        add::<Note<u64>>(&mut graph, "note", notes.args());
        let edge = graph.connect_via("below", "note", Via::queue(3));
        edge.expect("both exist");
        let running = graph.start().expect("it is whole");
        come_and_go(&running, "below -> note", ITEMS).await;
    });
    let numbers: Vec<_> = (0..ITEMS).map(|number| number.to_string()).collect();
    assert_eq!(notes.take(), numbers);
}

/// Passes numbers on, one after the other.
#[derive(Default)]
struct InOrder;

#[module]
impl InOrder {
    fn run(&mut self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }

    #[port]
    fn other(&mut self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

/// Sends even numbers to one port, and odd ones to the other.
#[derive(Default)]
struct ByPort;

#[module]
impl ByPort {
    fn run(&mut self, number: u64, even: &impl Out<u64>, odd: &impl Out<u64>) {
        match number % 2 {
            0 => even.send(number),
            _ => odd.send(number),
        }
    }
}

/// Items of both ports of a receiver arrive by calls, and the proxy is in front of one port.
#[test]
fn proxies_keep_the_order_of_calls() {
    const ITEMS: u64 = 20_000;
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        add::<Below>(&mut graph, "below", Args::new().with("below", ITEMS));
        add::<ByPort>(&mut graph, "by_port", Args::new());
        add::<InOrder>(&mut graph, "in_order", Args::new());
        add::<Note<u64>>(&mut graph, "note", notes.args());
        for (from, to, via) in [
            ("below", "by_port", Via::default()),
            ("by_port.even", "in_order", Via::call()),
            ("by_port.odd", "in_order.other", Via::call()),
            ("in_order", "note", Via::queue(3)),
        ] {
            graph.connect_via(from, to, via).expect("both exist");
        }
        let running = graph.start().expect("it is whole");
        come_and_go(&running, "by_port.even", ITEMS).await;
    });
    let numbers: Vec<_> = (0..ITEMS).map(|number| number.to_string()).collect();
    assert_eq!(notes.take(), numbers);
}

/// The second item arrives while the first one is at the proxy. If calls overlapped there, they
/// could keep the proxy forever.
#[test]
fn a_proxy_before_a_called_instance_gets_no_new_items_while_it_is_removed() {
    let (notes, go) = (Notes::default(), Arc::new(Semaphore::new(0)));
    let noted = notes.clone();
    runtime(1).block_on_spawned(async move {
        let mut graph = Graph::new("g");
        add::<Pass>(&mut graph, "first", Args::new());
        add::<MayPass>(&mut graph, "last", Args::new());
        add::<Note<u64>>(&mut graph, "note", notes.args());
        let edge = graph.connect_via("first", "last", Via::call());
        edge.expect("both exist");
        connect(&mut graph, "last", "note");
        let running = graph.start().expect("it is whole");
        let args = Args::new().with("go", Arc::clone(&go));
        let proxy = running.proxy::<Hold>("first -> last", "hold", args);
        let proxy = proxy.await.expect("it fits");
        send(&running, "first", [1]).await;
        turns().await;
        let mut removed = pin!(proxy.remove());
        assert!(poll_once(&mut removed).await.is_none(), "it has an item");
        send(&running, "first", [2]).await;
        turns().await;
        go.add_permits(1);
        let removes = async {
            removed.await;
            true
        };
        let is_removed = or(removes, async {
            turns().await;
            false
        });
        assert!(is_removed.await, "the second item is at the proxy");
        running.drain().await;
    });
    assert_eq!(noted.take(), ["1", "2"]);
}

#[test]
fn a_receiver_of_calls_and_of_queued_items_takes_no_proxy() {
    let notes = Notes::default();
    runtime(1).block_on(async {
        let mut graph = Graph::new("g");
        add::<ByPort>(&mut graph, "by_port", Args::new());
        add::<InOrder>(&mut graph, "in_order", Args::new());
        add::<Note<u64>>(&mut graph, "note", notes.args());
        let edge = graph.connect_via("by_port.even", "in_order", Via::call());
        edge.expect("both exist");
        connect(&mut graph, "by_port.odd", "in_order.other");
        connect(&mut graph, "in_order", "note");
        let running = graph.start().expect("it is whole");
        let proxy = running.proxy::<Pass>("by_port.even", "pass", Args::new());
        let error = proxy.await.expect_err("the order would be lost");
        assert_eq!(
            error.to_string(),
            "`Pass` cannot be a proxy on `by_port.even -> in_order`: `by_port` reaches `in_order` \
             both by a call and by a queue"
        );
        running.drain().await;
    });
}

/// The item in the hand of a proxy keeps the next one outside.
#[test]
fn an_item_at_a_proxy_is_inside_the_limit() {
    let (notes, go) = (Notes::default(), Arc::new(Semaphore::new(0)));
    runtime(1).block_on_spawned(async move {
        let mut graph = Graph::new("g");
        add::<Burst>(&mut graph, "burst", Args::new());
        add::<Pass>(&mut graph, "first", Args::new());
        add::<Note<u64>>(&mut graph, "note", notes.args());
        connect(&mut graph, "burst", "first");
        connect(&mut graph, "first", "note");
        graph.limit(1, &["first", "note"]).expect("both exist");
        let running = graph.start().expect("it is whole");
        let args = Args::new().with("go", Arc::clone(&go));
        let proxy = running.proxy::<Hold>("first -> note", "hold", args);
        let _stays = proxy.await.expect("it fits");
        send(&running, "burst", [3]).await;
        turns().await;
        assert_eq!(running.stats("first").expect("it exists").finished, 1);
        go.add_permits(3);
        running.drain().await;
        assert_eq!(notes.take(), ["0", "1", "2"]);
    });
}
