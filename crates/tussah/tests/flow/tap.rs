//! Taps: the items of an edge, while a graph runs.

use std::collections::BTreeSet;
use std::fmt;

use tussah::flow::{Args, Graph, GraphError, Key, Out, Running, Tap, module};
use tussah::modules::Logger;

use crate::runtime;

/// Begins a flow with each number.
#[derive(Default)]
struct Begin;

#[module]
impl Begin {
    fn run(&self, item: Number, out: &impl Out<Number>) {
        let flow = item.number;
        out.to(flow, item);
        out.close(flow);
    }
}

#[derive(Clone, Debug)]
struct Number {
    number: u64,
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "number {}", self.number)
    }
}

/// Turns numbers into items of other types.
#[derive(Default)]
struct Turn;

/// Has only `Debug`, and fails to show a single letter.
struct Letters(usize);

impl fmt::Debug for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        assert!(self.0 != 1, "one letter");
        (0..self.0).try_for_each(|_| f.write_str("ä"))
    }
}

/// Has no text.
struct Silent;

#[module]
impl Turn {
    fn run(
        &self,
        item: Number,
        out: &impl Out<Number>,
        letters: &impl Out<Letters>,
        silent: &impl Out<Silent>,
    ) {
        letters.send(Letters(item.number as usize));
        silent.send(Silent);
        out.send(item);
    }
}

/// Takes all items.
struct Take<T>(std::marker::PhantomData<fn(T)>);

#[module]
impl<T: Send + 'static> Take<T> {
    fn init() -> Self {
        Self(std::marker::PhantomData)
    }

    fn run(&mut self, _item: T) {}
}

fn turned() -> Graph {
    let mut graph = Graph::new("turned");
    let add = |graph: &mut Graph| {
        graph.add::<Turn>("turn", Args::new())?;
        graph.add::<Take<Number>>("take", Args::new())?;
        graph.add::<Take<Letters>>("letters", Args::new())?;
        graph.add::<Take<Silent>>("silent", Args::new())?;
        graph.connect("turn", "take")?;
        graph.connect("turn.letters", "letters")?;
        graph.connect("turn.silent", "silent")
    };
    add(&mut graph).expect("all exist");
    graph
}

async fn send(running: &Running, end: &str, number: u64) {
    let input = running.input(end).expect("it takes numbers");
    input.send(Number { number }).await;
}

/// Returns the texts that a tap shows until the end of the graph.
async fn shown(tap: &mut Tap) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some(item) = tap.next().await {
        texts.push(item.text);
    }
    texts
}

#[test]
fn a_tap_shows_items_by_display_or_debug_or_the_name_of_their_type() {
    runtime(2).block_on(async {
        let running = turned().start().expect("it is whole");
        send(&running, "turn", 1).await;
        let mut numbers = running.tap("turn -> take").expect("it exists");
        let mut letters = running.tap("turn.letters").expect("it exists");
        let mut silent = running.tap("turn.silent -> silent.run").expect("it exists");
        for number in [3, 1, 5000] {
            send(&running, "turn", number).await;
        }
        running.drain().await;
        // The tap may show the first item, too.
        let numbers = shown(&mut numbers).await;
        for number in ["number 1", "number 3", "number 5000"] {
            assert!(numbers.iter().any(|it| it == number), "{numbers:?}");
        }
        let letters = shown(&mut letters).await;
        assert!(letters.iter().any(|it| it == "äää"), "{letters:?}");
        let panicked = |it: &String| it.ends_with("Letters: showing it panicked");
        assert!(letters.iter().any(panicked), "{letters:?}");
        let longest = letters.iter().map(String::len).max();
        assert_eq!(longest, Some(4096));
        let silent = shown(&mut silent).await;
        assert!(silent[0].ends_with("Silent"), "{silent:?}");
        // The panics of `Debug` have not lost items.
        assert_eq!(running.stats("letters").expect("it exists").finished, 4);
    });
}

#[test]
fn a_tap_that_nobody_reads_skips_items() {
    runtime(2).block_on(async {
        let running = turned().start().expect("it is whole");
        let mut tap = running.tap("turn").expect("it exists");
        let dropped = running.tap("turn").expect("it exists");
        drop(dropped);
        for number in 0..1000 {
            send(&running, "turn", number).await;
        }
        running.drain().await;
        assert_eq!(running.stats("take").expect("it exists").finished, 1000);
        assert_eq!(tap.skipped(), 1000 - 256);
        // The sender handles several numbers at a time, so they come in any order.
        let held: BTreeSet<_> = std::iter::from_fn(|| tap.try_next())
            .map(|item| item.text)
            .collect();
        assert_eq!((held.len(), tap.next().await), (256, None));
    });
}

#[test]
fn a_tap_of_shards_shows_the_items_of_all_with_their_flows() {
    let mut graph = Graph::new("sharded");
    let add = |graph: &mut Graph| {
        graph.add::<Begin>("numbers", Args::new())?;
        graph.add_shards::<Logger<Number>>("middle", 2, None, Args::new())?;
        graph.add_shards::<Take<Number>>("last", 2, None, Args::new())?;
        graph.connect("numbers", "middle")?;
        graph.connect("middle", "last")
    };
    add(&mut graph).expect("all exist");
    runtime(2).block_on(async {
        let running = graph.start().expect("it is whole");
        let mut tap = running.tap("middle -> last").expect("it exists");
        for number in 0..8 {
            send(&running, "numbers", number).await;
        }
        running.drain().await;
        let mut shown = Vec::new();
        while let Some(item) = tap.next().await {
            let Some(Key::Number(flow)) = item.flow else {
                panic!("it has a flow");
            };
            assert_eq!(item.text, format!("number {flow}"));
            shown.push(flow);
        }
        shown.sort_unstable();
        assert_eq!(shown, (0..8).collect::<Vec<_>>());
    });
}

#[test]
fn an_edge_that_does_not_exist_is_an_error_with_the_nearest_one() {
    let mut graph = turned();
    let add = |graph: &mut Graph| {
        graph.add::<Take<Number>>("other", Args::new())?;
        graph.connect("turn", "other")
    };
    add(&mut graph).expect("all exist");
    runtime(1).block_on(async {
        let running = graph.start().expect("it is whole");
        let error = |edge: &str| {
            running
                .tap(edge)
                .expect_err("it does not exist")
                .to_string()
        };
        assert_eq!(
            error("turn -> tkae"),
            "there is no edge `turn -> tkae`: did you mean `turn -> take`?"
        );
        assert_eq!(
            error("nothing"),
            "there is no edge `nothing`: known: `turn -> other`, `turn -> take`, \
             `turn.letters -> letters`, `turn.silent -> silent`"
        );
        assert_eq!(
            error("turn.out"),
            "`turn.out` has several edges: expected one of `turn -> take`, `turn -> other`"
        );
        assert!(running.tap("turn->other").is_ok());
        assert!(matches!(
            running.tap("turn.run -> take"),
            Err(GraphError::NoEdge { .. })
        ));
        running.stop().await;
    });
}
