//! Modules that produce items beside those that they handle.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tussah::flow::{
    Args, AsyncOut, Batch, Flow, Graph, Modules, Out, Params, Running, Value, Via, module,
};
use tussah::sync::Semaphore;
use tussah::yield_now;

use super::{Below, Note, Notes, in_time, settled, turns};
use crate::{by_hand, runtime};

/// Passes numbers on, counts them, and produces the count when it gets a permit.
struct Count {
    count: AtomicU64,
    go: Arc<Semaphore>,
}

#[module]
impl Count {
    fn init(go: Arc<Semaphore>) -> Self {
        let count = AtomicU64::new(0);
        Self { count, go }
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        loop {
            self.go.acquire().await.forget();
            out.send(1000 + self.count.load(Ordering::Relaxed)).await;
        }
    }

    fn run(&self, number: u64, out: &impl Out<u64>) {
        self.count.fetch_add(1, Ordering::Relaxed);
        out.send(number);
    }
}

fn add<M: tussah::flow::Module>(graph: &mut Graph, name: &str, args: Args) {
    graph.add::<M>(name, args).expect("the name is free");
}

fn connect(graph: &mut Graph, from: &str, to: &str) {
    graph.connect(from, to).expect("both exist");
}

/// A graph of one module that a note follows.
fn one<M: tussah::flow::Module>(args: Args, notes: &Notes) -> Running {
    let mut graph = Graph::new("g");
    add::<M>(&mut graph, "module", args);
    add::<Note<u64>>(&mut graph, "note", notes.args());
    connect(&mut graph, "module", "note");
    graph.start().expect("it is whole")
}

async fn send(running: &Running, numbers: impl IntoIterator<Item = u64>) {
    let input = running.input("module").expect("it takes numbers");
    for number in numbers {
        input.send(number).await;
    }
    settled(running).await;
}

async fn noted(notes: &Notes, count: usize) {
    while notes.0.lock().len() < count {
        yield_now().await;
    }
}

fn failures(running: &Running) -> Vec<String> {
    let failures = running.failures();
    failures.iter().map(ToString::to_string).collect()
}

#[test]
fn start_shares_the_module_with_run() {
    let (notes, go) = (Notes::default(), Arc::new(Semaphore::new(0)));
    runtime(1).block_on(async {
        let running = one::<Count>(Args::new().with("go", Arc::clone(&go)), &notes);
        send(&running, [7, 8]).await;
        go.add_permits(1);
        noted(&notes, 3).await;
        send(&running, [9]).await;
        // Nothing ends `start` but the stop.
        running.stop().await;
        assert_eq!(failures(&running), [""; 0]);
    });
    assert_eq!(notes.take(), ["7", "8", "1002", "9"]);
    assert_eq!(Arc::strong_count(&go), 1, "the module is gone");
}

/// Sends numbers below 100 in flows, and passes on what it gets.
#[derive(Default)]
struct Flows;

#[module]
impl Flows {
    async fn start(&self, out: &impl AsyncOut<u64>) {
        for number in 0..100 {
            out.to(number % 10, number).await;
        }
        for key in 0..10_u64 {
            out.close(key);
        }
    }

    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

/// Adds the numbers of each flow.
#[derive(Default)]
struct Sums;

#[module]
impl Sums {
    fn run(&self, number: u64, sum: &mut u64) {
        *sum += number;
    }

    fn end(&self, sum: u64, out: &impl Out<u64>) {
        out.send(sum);
    }
}

#[test]
fn a_drain_waits_for_start_and_its_flows() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        add::<Flows>(&mut graph, "module", Args::new());
        add::<Sums>(&mut graph, "sums", Args::new());
        add::<Note<u64>>(&mut graph, "note", notes.args());
        let narrow = graph.connect_via("module", "sums", Via::queue(3));
        narrow.expect("both exist");
        connect(&mut graph, "sums", "note");
        graph.start().expect("it is whole").drain().await;
    });
    let sums: Vec<_> = (0..10).map(|flow| (450 + 10 * flow).to_string()).collect();
    assert_eq!(notes.sorted(), sums);
}

/// Waits forever, and passes on what it gets.
#[derive(Default)]
struct Forever;

#[module]
impl Forever {
    async fn start(&self) {
        pending().await
    }

    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

#[test]
fn a_drain_has_a_bound_for_a_start_that_never_ends() {
    let notes = Notes::default();
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let running = one::<Forever>(Args::new(), &notes);
        send(&running, [1]).await;
        in_time(&clock, running.drain_within(Duration::from_secs(9))).await;
        assert_eq!(failures(&running), [""; 0]);
    });
    assert_eq!(notes.take(), ["1"]);
}

/// Panics, or fails, and passes on what it gets.
struct Bad(&'static str);

#[module]
impl Bad {
    fn init(how: &'static str) -> Self {
        Self(how)
    }

    async fn start(&self) -> Result<(), String> {
        assert_ne!(self.0, "panic");
        Err(self.0.to_owned())
    }

    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

#[test]
fn the_items_go_on_after_a_bad_start() {
    for (how, expected) in [
        ("panic", "the source `module` failed: it panicked"),
        ("rain", "the source `module` failed: rain"),
    ] {
        let notes = Notes::default();
        runtime(1).block_on(async {
            let running = one::<Bad>(Args::new().with("how", how), &notes);
            turns().await;
            send(&running, [1, 2]).await;
            running.drain().await;
            assert_eq!(failures(&running), [expected]);
        });
        assert_eq!(notes.take(), ["1", "2"]);
    }
}

/// Defines a module that passes numbers on by these methods, and produces 100.
macro_rules! kind {
    ($name:ident($($option:ident)?) $($methods:tt)*) => {
        #[derive(Default)]
        struct $name;

        #[module($($option)?)]
        impl $name {
            async fn start(&self, more: &impl AsyncOut<u64>) {
                more.send(100).await;
            }

            $($methods)*
        }
    };
}

kind! { Serial(serial)
    async fn run(&self, number: u64, out: &impl AsyncOut<u64>) {
        out.send(number).await;
    }
}

kind! { Ordered(ordered)
    async fn run(&self, number: u64, out: &impl AsyncOut<u64>) {
        out.send(number).await;
    }
}

kind! { PerFlow()
    fn run(&self, number: u64, state: &mut u64, out: &impl Out<u64>) {
        *state += number;
        out.send(*state);
    }
}

kind! { Many()
    fn run(&self, numbers: &mut Batch<u64>, out: &impl Out<u64>) {
        numbers.for_each(|number| out.send(number));
    }
}

kind! { Ticks()
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }

    fn tick(&self, out: &impl Out<u64>) {
        out.send(50);
    }
}

fn starts<M: tussah::flow::Module>(args: Args) -> Vec<String> {
    let notes = Notes::default();
    let noted = notes.clone();
    let (clock, runtime) = by_hand();
    runtime.block_on_spawned(async move {
        let mut graph = Graph::new("g");
        add::<M>(&mut graph, "module", args);
        add::<Note<u64>>(&mut graph, "note", noted.args());
        connect(&mut graph, "module", "note");
        connect(&mut graph, "module.more", "note");
        let running = graph.start().expect("it is whole");
        send(&running, [1]).await;
        turns().await;
        clock.advance(Duration::from_secs(1));
        turns().await;
        running.drain().await;
    });
    notes.sorted()
}

#[test]
fn each_kind_of_module_can_have_a_start() {
    assert_eq!(starts::<Serial>(Args::new()), ["1", "100"]);
    assert_eq!(starts::<Ordered>(Args::new()), ["1", "100"]);
    assert_eq!(starts::<PerFlow>(Args::new()), ["1", "100"]);
    assert_eq!(starts::<Many>(Args::new()), ["1", "100"]);
    let every = Args::new().with("every", Duration::from_secs(1));
    assert_eq!(starts::<Ticks>(every), ["1", "100", "50"]);
}

#[test]
fn each_shard_has_a_start() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        let added = graph.add_shards::<Many>("module", 3, None, Args::new());
        added.expect("it is new");
        add::<Note<u64>>(&mut graph, "note", notes.args());
        connect(&mut graph, "module", "note");
        connect(&mut graph, "module.more", "note");
        graph.start().expect("it is whole").drain().await;
    });
    assert_eq!(notes.take(), ["100"; 3]);
}

/// Passes on the numbers of a source, and produces numbers in one flow.
struct Both(u64);

#[module]
impl Both {
    fn init(from: u64) -> Self {
        Self(from)
    }

    async fn start(&self, flow: &Flow, out: &impl AsyncOut<u64>) {
        assert!(flow.key().is_none());
        for number in 0..1000 {
            out.send(self.0 + number).await;
        }
    }

    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

/// Passes numbers on, one at a time.
#[derive(Default)]
struct Pass;

#[module]
impl Pass {
    fn run(&mut self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

/// The first and the middle instance of a chain produce items, too.
const CHAIN: &str = "
    use Below, Both, Pass, Note
    graph Chain(below: count, notes: Notes) {
      source = Below(below)
      first  = Both(10000)
      second = Both(20000)
      third  = Pass()
      note   = Note(notes)
      source -> first
      fuse first -> second -> third
      third -> note
    }";

mod compiled {
    use super::{Below, Both, Notes, Pass};

    type Note = super::Note<u64>;

    tussah::flow::weave! {
        use Below, Both, Pass, Note
        graph Chain(below: count, notes: Notes) {
          source = Below(below)
          first  = Both(10000)
          second = Both(20000)
          third  = Pass()
          note   = Note(notes)
          source -> first
          fuse first -> second -> third
          third -> note
        }
    }
}

#[test]
fn members_of_a_chain_can_have_a_start() {
    type Noted = Note<u64>;
    let modules = Modules::new()
        .with::<Below>("Below")
        .with::<Both>("Both")
        .with::<Pass>("Pass")
        .with::<Noted>("Note");
    let notes = Notes::default();
    let params = Params::new().typed("notes", notes.clone());
    let params = params.with("below", Value::Count(1000));
    let compiled = compiled::Chain::graph(&params);
    let interpreted = modules.graph("a.weave", CHAIN, &params);
    for graph in [compiled, interpreted] {
        let graph = graph.expect("the text is right");
        runtime(2).block_on(async { graph.start().expect("it is whole").drain().await });
        let all = notes.take();
        let all: Vec<u64> = all.iter().map(|it| it.parse().expect("one")).collect();
        for from in [0, 10_000, 20_000] {
            let of: Vec<_> = all
                .iter()
                .filter(|it| **it / 10_000 == from / 10_000)
                .collect();
            assert_eq!(of.len(), 1000);
            // `start` sends one after the other, but `first` handles items side by side.
            assert!(from == 0 || of.is_sorted(), "{from}");
        }
    }
}

#[test]
fn a_module_with_a_start_keeps_its_place() {
    let (notes, go) = (Notes::default(), Arc::new(Semaphore::new(0)));
    runtime(1).block_on(async {
        let args = || Args::new().with("go", Arc::clone(&go));
        let running = one::<Count>(args(), &notes);
        let refused = running.swap::<Count>("module", args()).await;
        assert_eq!(
            refused.expect_err("it has `start`").to_string(),
            "the module of `module` cannot be swapped to `Count`: a module with `start` is not \
             swapped: `start` would go on"
        );
        let without = running.swap::<Plain>("module", Args::new()).await;
        without.expect_err("the present module has `start`");
        let proxy = running.proxy::<Count>("module -> note", "proxy", args());
        assert_eq!(
            proxy
                .await
                .map(drop)
                .expect_err("it has `start`")
                .to_string(),
            "`Count` cannot be a proxy on `module -> note`: it has the method `start`"
        );
        running.stop().await;
        let running = one::<Plain>(Args::new(), &notes);
        let with = running.swap::<Count>("module", args()).await;
        with.expect_err("the new module has `start`");
        running.drain().await;
        let mut graph = Graph::new("g");
        add::<Count>(&mut graph, "module", args());
        let limited = graph.limit(9, &["module"]);
        assert_eq!(
            limited.expect_err("it has `start`").to_string(),
            "the instance `module` could not be made: it has `start`, whose items a limit does not \
             count: expected a limit without it"
        );
    });
}

/// Passes numbers on.
#[derive(Default)]
struct Plain;

#[module]
impl Plain {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}
