//! The room of queues: the edge with the most room determines it.

use tussah::flow::{Args, Graph, Out, Via, WhenFull, module};

use super::change::{Pass, add};
use crate::runtime;

/// Takes numbers at two ports.
#[derive(Default)]
struct Both;

#[module]
impl Both {
    fn run(&self, number: u64, out: Option<&impl Out<u64>>) {
        if let Some(out) = out {
            out.send(number);
        }
    }

    #[port]
    fn other(&self, _number: u64) {}
}

/// Returns the bound of the queue of `stage` in a graph with these edges.
fn bound(stage: &str, edges: &[(&str, &str, Via)]) -> u64 {
    runtime(1).block_on(async {
        let mut graph = Graph::new("g");
        add::<Pass>(&mut graph, "first", Args::new());
        add::<Pass>(&mut graph, "second", Args::new());
        add::<Both>(&mut graph, "to", Args::new());
        let added = graph.add_shards::<Both>("shards", 2, None, Args::new());
        let connected = edges
            .iter()
            .try_for_each(|(from, to, via)| graph.connect_via(from, to, via.clone()));
        added.and(connected).expect("the names are right");
        let running = graph.start().expect("it is whole");
        let bound = running.stats(stage).expect("it exists").queue_max;
        running.drain().await;
        bound
    })
}

#[test]
fn the_edge_with_the_most_room_bounds_the_queue() {
    let (default, call) = (Via::default, Via::call);
    let of = Via::queue;
    let cases = [
        ([of(1), of(1)], 1),
        ([of(0), of(0)], 1),
        ([of(2), of(7)], 7),
        ([of(7), of(2).when_full(WhenFull::Shed)], 7),
        ([of(2), of(3).when_full(WhenFull::DropOldest)], 3),
        ([of(2), call()], 2),
        ([of(2), default()], 1024),
        ([of(2000), default()], 2000),
        // Ticks, alarms and items from outside of the graph have the usual room.
        ([call(), call()], 1024),
    ];
    for ([first, second], room) in cases {
        let edges = [("first", "to", first), ("second", "to.other", second)];
        assert_eq!(bound("to", &edges), room, "{edges:?}");
    }
}

#[test]
fn each_shard_has_the_room_of_the_edge() {
    let edges = [
        ("first", "shards", Via::queue(3)),
        ("second", "to", Via::call()),
    ];
    assert_eq!(bound("shards#1", &edges), 3);
}
