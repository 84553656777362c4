//! Proxies on the edges of a running graph.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_lite::future::poll_once;
use tussah::flow::{Args, AsyncOut, Graph, GraphError, Out, Running, Via, module};

use super::{Below, Note as AnyNote, Notes, settled};
use crate::{by_hand, runtime};

type Note = AnyNote<u64>;

/// Passes numbers on.
#[derive(Default)]
struct Pass;

#[module]
impl Pass {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

/// Passes numbers on, times ten. It panics at 13.
#[derive(Default)]
struct Tens;

#[module]
impl Tens {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        assert_ne!(number, 13);
        out.send(number * 10);
    }
}

/// The same, with waits, one at a time, and a tick.
#[derive(Default)]
struct SlowTens;

#[module(serial)]
impl SlowTens {
    async fn run(&self, number: u64, out: &impl AsyncOut<u64>) {
        tussah::yield_now().await;
        out.send(number * 10).await;
    }

    async fn tick(&self, out: &impl AsyncOut<u64>) {
        out.send(1).await;
    }
}

/// Adds the numbers of each flow, and has another port.
#[derive(Default)]
struct Sums;

#[module]
impl Sums {
    fn run(&self, number: u64, sum: &mut u64, out: &impl Out<u64>) {
        *sum += number;
        out.send(*sum);
    }

    #[port]
    fn more(&self, number: u64, sum: &mut u64, out: &impl Out<u64>) {
        *sum += 1000 * number;
        out.send(*sum);
    }

    fn end(&self, _sum: u64) {}
}

/// Sends each number to both ports, in one flow.
#[derive(Default)]
struct Both;

#[module]
impl Both {
    fn run(&self, number: u64, out: &impl Out<u64>, more: &impl Out<u64>) {
        out.to("flow", number);
        more.to("flow", number);
    }
}

fn graph(notes: &Notes) -> Graph {
    let mut graph = Graph::new("g");
    graph.add::<Pass>("first", Args::new()).expect("it is new");
    graph.add::<Note>("note", notes.args()).expect("it is new");
    graph
}

async fn send(running: &Running, numbers: impl IntoIterator<Item = u64>) {
    let input = running.input("first").expect("it takes numbers");
    for number in numbers {
        input.send(number).await;
    }
    settled(running).await;
}

fn names(running: &Running) -> Vec<String> {
    let names = running.network().names();
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn a_proxy_comes_and_goes() {
    let notes = Notes::default();
    runtime(1).block_on(async {
        let mut graph = graph(&notes);
        graph.connect("first", "note").expect("both exist");
        let running = graph.start().expect("it is whole");
        let (edges, stages) = (running.network().edges(), names(&running));
        send(&running, [1, 2]).await;
        let tens = running.proxy::<Tens>("first -> note", "tens", Args::new());
        let tens = tens.await.expect("it fits");
        send(&running, [3, 13, 4]).await;
        let stats = running.stats("tens").expect("it is there");
        assert_eq!((stats.called, stats.lost), (3, 1));
        tens.remove().await;
        send(&running, [5]).await;
        assert_eq!(
            (running.network().edges(), names(&running)),
            (edges, stages)
        );
        running.drain().await;
    });
    assert_eq!(notes.take(), ["1", "2", "30", "40", "5"]);
}

#[test]
fn a_graph_with_a_proxy_drains() {
    let notes = Notes::default();
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let mut graph = graph(&notes);
        graph.connect("first", "note").expect("both exist");
        let running = graph.start().expect("it is whole");
        let every = Args::new().with("every", Duration::from_secs(1));
        let proxy = running.proxy::<SlowTens>("first -> note", "slow", every);
        let _stays = proxy.await.expect("it fits");
        send(&running, [2, 3]).await;
        clock.advance(Duration::from_secs(1));
        while notes.0.lock().len() < 3 {
            tussah::yield_now().await;
        }
        running.drain().await;
    });
    assert_eq!(notes.take(), ["20", "30", "1"]);
}

#[test]
fn a_proxy_gets_the_items_of_its_port() {
    let notes = Notes::default();
    runtime(1).block_on(async {
        let mut graph = Graph::new("g");
        graph.add::<Both>("first", Args::new()).expect("it is new");
        graph.add::<Sums>("sums", Args::new()).expect("it is new");
        graph.add::<Note>("note", notes.args()).expect("it is new");
        for (from, to) in [
            ("first", "sums"),
            ("first.more", "sums.more"),
            ("sums", "note"),
        ] {
            graph.connect(from, to).expect("both exist");
        }
        let running = graph.start().expect("it is whole");
        send(&running, [1]).await;
        let edge = "first.more -> sums.more";
        let tens = running.proxy::<Tens>(edge, "tens", Args::new());
        let tens = tens.await.expect("it fits");
        send(&running, [2]).await;
        tens.remove().await;
        send(&running, [3]).await;
        running.drain().await;
    });
    // The items stay in the flow of their port.
    assert_eq!(notes.take(), ["1", "1000", "3", "21000", "6", "24000"]);
}

/// A limit around both ends, and around the receiver alone: the proxy takes no second permit.
#[test]
fn a_proxy_inside_a_limit_keeps_the_permits() {
    for inside in [&["first", "note"][..], &["note"]] {
        let notes = Notes::default();
        runtime(1).block_on(async {
            let mut graph = graph(&notes);
            graph.connect("first", "note").expect("both exist");
            graph.limit(1, inside).expect("both exist");
            let running = graph.start().expect("it is whole");
            let tens = running.proxy::<Tens>("first -> note", "tens", Args::new());
            let tens = tens.await.expect("it fits");
            send(&running, [1, 13, 2]).await;
            tens.remove().await;
            send(&running, [3]).await;
            running.drain().await;
        });
        assert_eq!(notes.take(), ["10", "20", "3"]);
    }
}

static CALLS: AtomicU64 = AtomicU64::new(0);
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// Passes numbers on when it may.
#[derive(Default)]
struct Block;

#[module]
impl Block {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        CALLS.fetch_add(1, Ordering::Relaxed);
        while !IS_OPEN.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        out.send(number);
    }
}

#[test]
fn a_chain_is_drained_first() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = graph(&notes);
        graph.add::<Block>("block", Args::new()).expect("it is new");
        let edge = graph.connect_via("first", "block", Via::call());
        edge.expect("both exist");
        graph.connect("block", "note").expect("both exist");
        let running = graph.start().expect("it is whole");
        let input = running.input("first").expect("it takes numbers");
        input.send(1u64).await;
        while CALLS.load(Ordering::Relaxed) == 0 {
            tussah::yield_now().await;
        }
        let tens = {
            let mut tens = pin!(running.proxy::<Tens>("first", "tens", Args::new()));
            for _ in 0..100 {
                assert!(poll_once(&mut tens).await.is_none(), "a call runs");
                tussah::yield_now().await;
            }
            input.send(2).await;
            IS_OPEN.store(true, Ordering::Relaxed);
            tens.await.expect("it fits")
        };
        input.send(3).await;
        settled(&running).await;
        tens.remove().await;
        input.send(4).await;
        running.drain().await;
    });
    assert_eq!(notes.sorted(), ["1", "20", "30", "4"]);
}

#[test]
fn proxies_lose_no_item() {
    const ITEMS: u64 = 10_000;
    for via in [Via::queue(3), Via::call()] {
        let notes = Notes::default();
        runtime(2).block_on(async {
            let mut graph = graph(&notes);
            let below = Args::new().with("below", ITEMS);
            graph.add::<Below>("source", below).expect("it is new");
            graph.connect("source", "first").expect("both exist");
            graph.connect_via("first", "note", via).expect("both exist");
            let running = graph.start().expect("it is whole");
            let finished = || {
                let stats = running.stats("note").expect("it is there");
                stats.finished + stats.called
            };
            // The items may arrive before this thread runs again.
            loop {
                let proxy = running.proxy::<Pass>("first -> note", "proxy", Args::new());
                proxy.await.expect("it fits").remove().await;
                if finished() >= ITEMS {
                    break;
                }
            }
            running.drain().await;
        });
        let mut numbers: Vec<u64> = notes
            .take()
            .iter()
            .map(|it| it.parse().expect("one"))
            .collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..ITEMS).collect::<Vec<_>>());
    }
}

#[test]
fn what_cannot_be_a_proxy() {
    let notes = Notes::default();
    runtime(1).block_on(async {
        let mut graph = graph(&notes);
        graph.connect("first", "note").expect("both exist");
        let added = graph.add_shards::<Note>("shards", 2, None, notes.args());
        added.expect("it is new");
        let other = format!("{}:{}:15", file!(), line!() + 1);
        graph.add::<Pass>("other", Args::new()).expect("it is new");
        graph.connect("other", "shards").expect("both exist");
        let running = graph.start().expect("it is whole");
        let before = (running.network().edges(), names(&running));
        let refused = |result: Result<_, GraphError>| result.map(drop).expect_err("no").to_string();
        let args = Args::new;
        for (error, expected) in [
            (
                refused(running.proxy::<Tens>("first -> nota", "p", args()).await),
                "there is no edge `first -> nota`: did you mean `first -> note`?",
            ),
            (
                refused(running.proxy::<Tens>("other -> shards", "p", args()).await),
                "`shards` has shards: expected one of `shards#0`, `shards#1`",
            ),
            (
                refused(running.proxy::<Sums>("first -> note", "p", args()).await),
                "`Sums` cannot be a proxy on `first -> note`: it keeps state for each flow",
            ),
            (
                refused(
                    running
                        .proxy::<AnyNote<String>>("first -> note", "p", notes.args())
                        .await,
                ),
                "`Note` cannot be a proxy on `first -> note`: expected one input port `run` and an \
                 output port `out`, both of `u64`",
            ),
            (
                refused(
                    running
                        .proxy::<Tens>("first -> note", "other", args())
                        .await,
                ),
                &*format!(
                    "there is a stage `other` already, created at {other}: expected another name"
                ),
            ),
        ] {
            assert_eq!(error, expected);
        }
        let tens = running.proxy::<Tens>("first -> note", "tens", args());
        let tens = tens.await.expect("it fits");
        let twice = refused(
            running
                .proxy::<Tens>("first -> note", "again", args())
                .await,
        );
        assert!(twice.contains("proxy"), "{twice}");
        tens.remove().await;
        assert_eq!((running.network().edges(), names(&running)), before);
        running.drain().await;
    });
}
