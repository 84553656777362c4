//! Edges `via call` in compiled graphs.

use std::any::type_name_of_val;

use tussah::flow::{Graph, Out, Params, module, weave};

use super::fused::Numbers;
use super::{Note as AnyNote, Notes};
use crate::runtime;

type Text = AnyNote<String>;

/// Sends the type of the port instead of each number: the even ones and the odd ones.
#[derive(Default)]
struct Divide;

#[module]
impl Divide {
    fn run(&self, number: u64, even: &impl Out<String>, odd: &impl Out<String>) {
        match number.is_multiple_of(2) {
            true => even.send(type_name_of_val(even).to_owned()),
            false => odd.send(type_name_of_val(odd).to_owned()),
        }
    }
}

/// Sends each text on, with the type of the port.
#[derive(Default)]
struct Tag;

#[module]
impl Tag {
    fn run(&self, text: String, out: &impl Out<String>) {
        out.send(format!("{text} {}", type_name_of_val(out)));
    }
}

/// Counts the texts, and panics at some of them.
#[derive(Default)]
struct Count(u64);

#[module]
impl Count {
    fn run(&mut self, text: String, out: &impl Out<String>) {
        self.0 += 1;
        assert!(self.0 != 900, "the count begins anew");
        out.send(format!("{} {text} {}", self.0, type_name_of_val(out)));
    }
}

/// Sends each number as a text.
#[derive(Default)]
struct Spell;

#[module]
impl Spell {
    fn run(&self, number: u64, out: &impl Out<String>) {
        out.send(number.to_string());
    }
}

weave! {
    use Numbers, Divide, Tag, Count, Spell, Text

    graph Joined(notes: Notes) {
        numbers = Numbers(1000)
        others = Numbers(500)
        divide = Divide()
        left = Tag()
        right = Tag()
        spell = Spell()
        count = Count()
        last = Tag()
        note = Text(notes)
        numbers -> divide
        others -> spell
        divide.even -> left via call -> count via call
        divide.odd -> right via call -> count via call
        spell -> count
        count -> last via call
        last -> note via queue(3)
    }
}

/// Runs a graph, and returns what it sends: the count and the rest of each text.
fn run(workers: usize, graph: impl FnOnce(&Params) -> Graph) -> Vec<(u64, String)> {
    let notes = Notes::default();
    runtime(workers).block_on(async {
        let params = Params::new().typed("notes", notes.clone());
        let running = graph(&params).start().expect("it is whole");
        running.drain().await;
        let stats = |name| running.stats(name).expect("it exists");
        let called = ["left", "right", "count", "last"].map(|name| stats(name).called);
        assert_eq!(called, [500, 500, 1000, 1499]);
        assert_eq!((stats("count").finished, stats("count").panicked), (500, 1));
    });
    let split = notes.take().into_iter().map(|note| {
        let text = note.trim_matches('"');
        let (count, rest) = text.split_once(' ').expect("it has a count");
        (count.parse().expect("a number"), rest.to_owned())
    });
    let mut split: Vec<_> = split.collect();
    split.sort();
    split
}

#[test]
fn the_compiler_knows_the_receivers_of_calls() {
    for workers in [1, 2] {
        let compiled = run(workers, |params| {
            Joined::graph(params).expect("the text is right")
        });
        let interpreted = run(workers, |params| {
            // The interpreter knows no types.
            let graph = Joined::modules().graph("g.weave", Joined::TEXT, params);
            graph.expect("the text is right")
        });
        // One item at a time: the count goes up to the panic, and begins anew.
        let counts = (1..900).chain(1..=600);
        let mut counts: Vec<u64> = counts.collect();
        counts.sort_unstable();
        for results in [&compiled, &interpreted] {
            assert!(results.iter().map(|it| it.0).eq(counts.iter().copied()));
        }
        let all = compiled.iter().filter(|it| it.1.contains("Fork<"));
        // Items that find the receiver in use take the edges.
        let known = all.filter(|it| it.1.matches("Fuse<").count() >= 6);
        assert!(known.count() > 500, "{compiled:?}");
        assert!(interpreted.iter().all(|it| !it.1.contains("Fuse<")));
    }
}
