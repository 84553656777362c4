//! Rejected items: the sender waits until the receiver of the port `dropped` has room. The log
//! reports the items for which nobody can wait.

use std::collections::BTreeMap;
use std::sync::Once;
use std::time::Duration;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use tussah::flow::{Args, AsyncOut, Dropped, Graph, Out, Running, Via, WhenFull, module};

use super::change::add;
use super::{Notes, in_time};
use crate::{by_hand, runtime};

/// Collects the warnings of all tests of this program.
struct Log;

static WARNINGS: Mutex<Vec<BTreeMap<&str, String>>> = Mutex::new(Vec::new());

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut warning = Warning::default();
        event.record(&mut warning);
        WARNINGS.lock().push(warning.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The fields of a warning.
#[derive(Default)]
struct Warning(BTreeMap<&'static str, String>);

impl Visit for Warning {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

/// Collects warnings from now on.
fn collect_warnings() {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        tracing::subscriber::set_global_default(Log).expect("no other test sets one");
    });
}

/// Returns the warnings that have this value in a field.
fn warnings(field: &str, value: &str) -> Vec<BTreeMap<&'static str, String>> {
    let warnings = WARNINGS.lock();
    let found = warnings.iter();
    let found = found.filter(|warning| warning.get(field).is_some_and(|it| it == value));
    found.cloned().collect()
}

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
fn a_port_whose_wait_could_close_a_cycle_loses_items_and_reports_them() {
    collect_warnings();
    let notes = Notes::default();
    let refused = runtime(2).block_on(async {
        let mut graph = Graph::new("logged");
        add::<Numbers>(&mut graph, "numbers", Args::new());
        add::<Slow>(&mut graph, "reported", notes.args());
        add::<Again>(&mut graph, "again", Args::new());
        let drops = Via::queue(1).when_full(WhenFull::Shed);
        let connected = graph
            .connect_via("numbers", "reported", drops.clone())
            .and_then(|()| graph.connect_via("reported.dropped", "again", Via::queue(1)))
            .and_then(|()| graph.connect_via("again", "reported", drops));
        connected.expect("the ports exist");
        let running = graph.start().expect("it is whole");
        running.drain().await;
        running.stats("again").expect("it exists").refused
    });
    let handled = numbers(&notes).len() as u64;
    assert!(refused > 0, "the queue of `again` was full");
    assert_eq!(handled + refused, ITEMS);
    // The log reports the first lost item, and the number of all.
    let shown = |field: &str, value: &str| {
        let mut found = warnings(field, value);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    };
    let first = shown("instance", "reported");
    let expected = "an item was lost: the receiver of the port had no room; the end of the graph \
                    reports the number of lost items";
    assert_eq!(
        [&first["message"], &first["port"]],
        [expected, "dropped"].map(str::to_owned).each_ref()
    );
    let last = shown("graph", "logged");
    let expected = "items were lost: the receiver of the port had no room";
    assert_eq!(
        [&last["message"], &last["port"], &last["items"]],
        [expected, "reported.dropped", &refused.to_string()]
            .map(str::to_owned)
            .each_ref()
    );
}

#[test]
fn items_of_an_edge_with_a_delay_wait_too() {
    collect_warnings();
    for when_full in [WhenFull::Shed, WhenFull::DropOldest] {
        let notes = Notes::default();
        let (clock, runtime) = by_hand();
        runtime.block_on(async {
            let mut graph = Graph::new("delayed");
            add::<Numbers>(&mut graph, "numbers", Args::new());
            add::<Slow>(&mut graph, "slow", notes.args());
            add::<Slow>(&mut graph, "lost", notes.args());
            // The edge delays more items than the queue has room for.
            let drops = Via::queue(5).when_full(when_full);
            let connected = graph
                .connect_via("numbers", "slow", drops.after(Duration::from_millis(5)))
                .and_then(|()| graph.connect_via("slow.dropped", "lost.rejected", Via::queue(1)));
            connected.expect("the ports exist");
            let running = graph.start().expect("it is whole");
            in_time(&clock, running.drain()).await;
            let of_lost = running.stats("lost").expect("it exists");
            assert!(of_lost.finished > 0, "{of_lost:?}");
            assert_eq!(of_lost.refused, 0, "{of_lost:?}");
        });
        let expected: Vec<u64> = (0..ITEMS).collect();
        assert_eq!(numbers(&notes), expected, "{when_full:?}");
    }
    assert_eq!(warnings("graph", "delayed"), []);
}

/// The controller also removes items from the queue, and nobody can wait for these. All items that
/// it refuses on arrival must reach `lost`.
#[test]
fn senders_wait_for_items_that_a_controller_refuses() {
    collect_warnings();
    // The controller may find no overload in a fast run.
    let has_refused = (0..20).any(|run| {
        let name = format!("controlled {run}");
        let notes = Notes::default();
        let (slow, lost) = runtime(2).block_on(async {
            let mut graph = Graph::new(name.clone());
            add::<Numbers>(&mut graph, "numbers", Args::new());
            add::<Slow>(&mut graph, "slow", notes.args());
            add::<Slow>(&mut graph, "lost", notes.args());
            let connected = graph
                .connect_via("numbers", "slow", Via::queue(100))
                .and_then(|()| graph.connect_via("slow.dropped", "lost.rejected", Via::queue(1)))
                .and_then(|()| graph.target("slow", Duration::from_nanos(1)));
            connected.expect("the ports exist");
            let running = graph.start().expect("it is whole");
            running.drain().await;
            let stats = |instance| running.stats(instance).expect("it exists");
            (stats("slow"), stats("lost"))
        });
        let reported = warnings("graph", &name);
        let reported = reported.iter().map(|it| it["items"].parse::<u64>());
        let reported: u64 = reported.map(|items| items.expect("a number")).sum();
        assert!(lost.finished >= slow.refused, "{slow:?} {lost:?}");
        assert!(reported <= slow.shed, "{reported}: {slow:?}");
        assert_eq!(numbers(&notes).len() as u64 + reported, ITEMS, "{slow:?}");
        slow.refused > 0
    });
    assert!(has_refused, "the controller refused nothing");
}
