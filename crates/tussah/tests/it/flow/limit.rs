//! Limits: a bound on the number of items inside a set of instances.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tussah::flow::{Args, AsyncOut, Dropped, Graph, Modules, Out, Params, Via, WhenFull, module};
use tussah::sync::Semaphore;

use super::{Note, Notes};
use crate::runtime;

/// Sends all numbers below its parameter.
struct Below(u64);

#[module]
impl Below {
    fn init(below: u64) -> Self {
        Self(below)
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        for number in 0..self.0 {
            out.send(number).await;
        }
    }
}

/// The number of items between two modules, and the most there have been.
#[derive(Clone, Default)]
struct Inside(Arc<(AtomicUsize, AtomicUsize)>);

/// Counts an item in.
struct Enter(Inside);

#[module]
impl Enter {
    fn init(inside: Inside) -> Self {
        Self(inside)
    }

    async fn run(&self, number: u64, out: &impl AsyncOut<u64>) {
        let (now, most) = &*self.0.0;
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        tussah::yield_now().await;
        out.send(number).await;
    }
}

/// Counts an item out.
struct Leave(Inside);

#[module]
impl Leave {
    fn init(inside: Inside) -> Self {
        Self(inside)
    }

    fn run(&mut self, number: u64, out: &impl Out<u64>) {
        self.0.0.0.fetch_sub(1, Ordering::SeqCst);
        out.send(number);
    }
}

#[test]
fn no_more_items_than_the_limit_are_inside() {
    let (notes, inside) = (Notes::default(), Inside::default());
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        let args = Args::new().with("below", 1000u64);
        graph.add::<Below>("below", args).expect("free");
        let args = Args::new().with("inside", inside.clone());
        graph.add::<Enter>("enter", args.clone()).expect("free");
        graph.add::<Leave>("leave", args).expect("free");
        graph.add::<Note<u64>>("note", notes.args()).expect("free");
        graph.connect("below", "enter").expect("both exist");
        graph.connect("enter", "leave").expect("both exist");
        graph.connect("leave", "note").expect("both exist");
        graph.limit(3, &["enter", "leave"]).expect("both exist");
        let error = graph.limit(3, &["leave"]).expect_err("it has a limit");
        assert!(error.to_string().contains("two limits"), "{error}");
        let error = graph.limit(0, &["note"]).expect_err("nothing could enter");
        assert!(error.to_string().contains("limit of 0"), "{error}");
        graph.start().expect("it is whole").drain().await;
    });
    assert_eq!(notes.take().len(), 1000);
    let (now, most) = &*inside.0;
    assert_eq!(now.load(Ordering::SeqCst), 0);
    // Without the limit, there are hundreds.
    assert!((1..=3).contains(&most.load(Ordering::SeqCst)));
}

/// An item, and the number of rounds that it still has to go.
struct Rounds(u64, u32);

/// Begins the rounds.
#[derive(Default)]
struct Begin;

#[module]
impl Begin {
    fn run(&self, number: u64, out: &impl Out<Rounds>) {
        out.send(Rounds(number, 3));
    }
}

/// Sends an item round again, or out.
#[derive(Default)]
struct Go;

#[module]
impl Go {
    fn run(&self, Rounds(number, left): Rounds, out: &impl Out<u64>, again: &impl Out<Rounds>) {
        match left {
            0 => out.send(number),
            left => again.send(Rounds(number, left - 1)),
        }
    }
}

/// Passes items on.
#[derive(Default)]
struct Pass;

#[module]
impl Pass {
    fn run(&self, item: Rounds, out: &impl Out<Rounds>) {
        out.send(item);
    }
}

#[test]
fn a_limit_bounds_a_cycle() {
    let text = "\
use Below, Begin, Go, Pass, Note
graph Cycle(notes: Notes, count: count = 3000) {
  below = Below(count)
  begin = Begin()
  go    = Go()
  pass  = Pass()
  note  = Note(notes)
  below -> begin -> go -> note
  go.again -> pass -> go via queue(1)
  limit 5 in { go, pass }
}
";
    type Noted = Note<u64>;
    let notes = Notes::default();
    let modules = Modules::new()
        .with::<Below>("Below")
        .with::<Begin>("Begin")
        .with::<Go>("Go")
        .with::<Pass>("Pass")
        .with::<Noted>("Note");
    runtime(2).block_on(async {
        let params = Params::new().typed("notes", notes.clone());
        let graph = modules.graph("cycle.weave", text, &params);
        let running = graph.expect("it is right").start().expect("it is whole");
        running.drain().await;
    });
    // Nothing was shed on the way back, and nothing stood still.
    assert_eq!(notes.take().len(), 3000);
}

/// Has a number in hand until it may go on.
struct Hold(Arc<Semaphore>);

#[module]
impl Hold {
    fn init(go: Arc<Semaphore>) -> Self {
        Self(go)
    }

    async fn run(&self, _number: u64) {
        self.0.acquire().await.forget();
    }
}

#[test]
fn an_edge_that_sheds_does_not_wait_for_a_limit() {
    let (notes, go) = (Notes::default(), Arc::new(Semaphore::new(0)));
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        let args = Args::new().with("below", 10u64);
        graph.add::<Below>("below", args).expect("free");
        let args = Args::new().with("go", Arc::clone(&go));
        graph.add::<Hold>("hold", args).expect("free");
        graph
            .add::<Note<Dropped<u64>>>("lost", notes.args())
            .expect("free");
        let sheds = Via::queue(100).when_full(WhenFull::Shed);
        graph
            .connect_via("below", "hold", sheds)
            .expect("both exist");
        graph.connect("hold.dropped", "lost").expect("both exist");
        graph.limit(1, &["hold"]).expect("it exists");
        let running = graph.start().expect("it is whole");
        // The first number has the only place.
        while running.stats("lost").expect("it exists").finished < 9 {
            tussah::yield_now().await;
        }
        go.add_permits(1);
        running.drain().await;
    });
    assert_eq!(notes.take().len(), 9);
}
