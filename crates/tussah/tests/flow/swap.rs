//! Swapping the modules of a running graph.

use std::pin::pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_lite::future::poll_once;
use parking_lot::Mutex;
use tussah::flow::{
    Args, AsyncOut, Flow, Graph, GraphError, Modules, Out, Params, Running, Value, Via, Wake,
    module,
};

use super::{Note as AnyNote, Notes, settled};
use crate::{by_hand, runtime};

type Note = AnyNote<String>;

/// Writes a word before each number.
struct Say(&'static str);

#[module]
impl Say {
    fn init(word: &'static str) -> Self {
        Self(word)
    }

    fn run(&self, number: u64, out: &impl Out<String>) {
        out.send(format!("{} {number}", self.0));
    }
}

/// Does the same, after a wait.
struct SayLater(String);

#[module]
impl SayLater {
    fn init(word: String) -> Result<Self, String> {
        match word.is_empty() {
            true => Err("the word is empty".to_owned()),
            false => Ok(Self(word)),
        }
    }

    async fn run(&self, number: u64, out: &impl AsyncOut<String>) {
        tussah::yield_now().await;
        out.send(format!("{} {number}", self.0)).await;
    }
}

/// Cannot be made.
struct Unmade;

#[module]
impl Unmade {
    fn init() -> Self {
        panic!("expected: it cannot be made")
    }

    fn run(&self, _number: u64, _out: &impl Out<String>) {}
}

/// Numbers its items.
struct Count(u64);

#[module]
impl Count {
    fn init(from: u64) -> Self {
        Self(from)
    }

    fn run(&mut self, number: u64, out: &impl Out<String>) {
        self.0 += 1;
        out.send(format!("{}: {number}", self.0));
    }
}

/// Passes numbers on in flows of their remainders, and closes a flow with a number from 100 on.
#[derive(Default)]
struct Split;

#[module]
impl Split {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        let key = number % 10;
        match number {
            100.. => out.close(key),
            _ => out.to(key, number),
        }
    }
}

/// Adds the numbers of each flow. An alarm shows the sum.
struct Add(u64);

#[module]
impl Add {
    fn init(factor: u64) -> Self {
        Self(factor)
    }

    fn run(&self, number: u64, sum: &mut u64, wake: &Wake, out: &impl Out<String>) {
        *sum += number * self.0;
        wake.after(Duration::from_secs(1));
        out.send(format!("{sum}"));
    }

    fn wake(&self, sum: &mut u64, out: &impl Out<String>) {
        out.send(format!("{} wakes at {sum}", self.0));
    }

    fn end(&self, sum: u64, out: &impl Out<String>) {
        out.send(format!("{} ends at {sum}", self.0));
    }
}

/// Joins the numbers of each flow, with another type of state.
#[derive(Default)]
struct Join;

#[module]
impl Join {
    fn run(&self, number: u64, text: &mut String, _wake: &Wake, out: &impl Out<String>) {
        text.push_str(&number.to_string());
        out.send(text.clone());
    }

    fn wake(&self, _text: &mut String) {}

    fn end(&self, text: String, out: &impl Out<String>) {
        out.send(format!("ends as {text}"));
    }
}

fn say(word: &'static str) -> Args {
    Args::new().with("word", word)
}

/// A graph of one module that a note follows.
fn one<M: tussah::flow::Module>(args: Args, notes: &Notes) -> Running {
    let mut graph = Graph::new("g");
    graph.add::<M>("module", args).expect("it is new");
    graph.add::<Note>("note", notes.args()).expect("it is new");
    graph.connect("module", "note").expect("both exist");
    graph.start().expect("it is whole")
}

async fn send(running: &Running, numbers: impl IntoIterator<Item = u64>) {
    let input = running.input("module").expect("it takes numbers");
    for number in numbers {
        input.send(number).await;
    }
    settled(running).await;
}

#[test]
fn a_module_is_swapped_for_another() {
    let notes = Notes::default();
    runtime(1).block_on(async {
        let running = one::<Say>(say("a"), &notes);
        let edges = running.network().edges();
        send(&running, [1]).await;
        running.swap::<Say>("module", say("b")).await.expect("ok");
        send(&running, [2]).await;
        let later = Args::new().with("word", "c".to_owned());
        running.swap::<SayLater>("module", later).await.expect("ok");
        send(&running, [3]).await;
        assert_eq!(running.network().edges(), edges);
        assert_eq!(running.stats("module").expect("it is there").finished, 3);
        running.drain().await;
    });
    assert_eq!(notes.take(), [r#""a 1""#, r#""b 2""#, r#""c 3""#]);
}

#[test]
fn a_serial_module_begins_anew() {
    let notes = Notes::default();
    runtime(1).block_on(async {
        let from = |from: u64| Args::new().with("from", from);
        let running = one::<Count>(from(0), &notes);
        send(&running, [7, 8]).await;
        running.swap::<Count>("module", from(50)).await.expect("ok");
        send(&running, [9]).await;
        running.drain().await;
    });
    assert_eq!(notes.take(), [r#""1: 7""#, r#""2: 8""#, r#""51: 9""#]);
}

/// A graph with flows.
fn flows(notes: &Notes) -> Running {
    let mut graph = Graph::new("g");
    graph.add::<Split>("module", Args::new()).expect("new");
    let args = Args::new().with("factor", 1u64);
    graph.add::<Add>("add", args).expect("it is new");
    graph.add::<Note>("note", notes.args()).expect("it is new");
    graph.connect("module", "add").expect("both exist");
    graph.connect("add", "note").expect("both exist");
    graph.start().expect("it is whole")
}

#[test]
fn a_flow_keeps_its_state_and_its_alarm() {
    let notes = Notes::default();
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let running = flows(&notes);
        send(&running, [1, 2]).await;
        let args = Args::new().with("factor", 100u64);
        running.swap::<Add>("add", args).await.expect("ok");
        assert_eq!(notes.take(), [r#""1""#, r#""2""#]);
        clock.advance(Duration::from_secs(1));
        while notes.0.lock().len() < 2 {
            tussah::yield_now().await;
        }
        assert_eq!(
            notes.sorted(),
            [r#""100 wakes at 1""#, r#""100 wakes at 2""#]
        );
        send(&running, [11, 12]).await;
        assert_eq!(notes.sorted(), [r#""1101""#, r#""1202""#]);
        // The source of the flows is swapped, too, and its flows stay open.
        let split = running.swap::<Split>("module", Args::new());
        split.await.expect("ok");
        send(&running, [101, 102]).await;
        // An alarm keeps its flow.
        clock.advance(Duration::from_secs(1));
        while notes.0.lock().len() < 4 {
            tussah::yield_now().await;
        }
        let expected = [
            r#""100 ends at 1101""#,
            r#""100 ends at 1202""#,
            r#""100 wakes at 1101""#,
            r#""100 wakes at 1202""#,
        ];
        assert_eq!(notes.sorted(), expected);
        running.drain().await;
    });
}

#[test]
fn a_flow_begins_another_state_of_another_type() {
    let notes = Notes::default();
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let running = flows(&notes);
        send(&running, [1, 2]).await;
        running.swap::<Join>("add", Args::new()).await.expect("ok");
        send(&running, [11, 21, 101, 102]).await;
        // The alarms keep the flows.
        clock.advance(Duration::from_secs(1));
        running.drain().await;
    });
    // The second flow has no state at its end.
    let all = [
        r#""1""#,
        r#""2""#,
        r#""11""#,
        r#""1121""#,
        r#""ends as 1121""#,
    ];
    assert_eq!(notes.take(), all);
}

/// A chain, whose last module notes what arrives. The number is that of a test.
const CHAIN: &str = "
    use Idle, Pass, Block, Keep
    graph Chain(number: count) {
      idle   = Idle()
      module = Pass()
      block  = Block(number)
      last   = Pass()
      keep   = Keep(number)
      idle -> module
      fuse module -> block -> last
      last -> keep
    }";

mod compiled {
    use super::{Block, Idle, Keep, Pass};

    tussah::flow::weave! {
        use Idle, Pass, Block, Keep
        graph Chain(number: count) {
          idle   = Idle()
          module = Pass()
          block  = Block(number)
          last   = Pass()
          keep   = Keep(number)
          idle -> module
          fuse module -> block -> last
          last -> keep
        }
    }
}

/// The state of a test.
#[derive(Default)]
struct Gate {
    is_open: AtomicBool,
    /// The number of calls that have begun.
    calls: AtomicU64,
    kept: Mutex<Vec<String>>,
}

static GATES: LazyLock<[Gate; 2]> = LazyLock::new(Default::default);

/// Keeps texts.
struct Keep(usize);

#[module]
impl Keep {
    fn init(number: usize) -> Self {
        Self(number)
    }

    fn run(&self, text: String) {
        GATES[self.0].kept.lock().push(text);
    }
}

/// Sends nothing: the test sends texts.
#[derive(Default)]
struct Idle;

#[module]
impl Idle {
    async fn start(&self, _out: &impl AsyncOut<String>) {}
}

/// Passes on texts.
#[derive(Default)]
struct Pass;

#[module]
impl Pass {
    fn run(&self, text: String, out: &impl Out<String>) {
        out.send(text);
    }
}

/// Passes on texts when the gate is open.
struct Block(usize);

#[module]
impl Block {
    fn init(number: usize) -> Self {
        Self(number)
    }

    fn run(&self, text: String, out: &impl Out<String>) {
        let gate = &GATES[self.0];
        gate.calls.fetch_add(1, Ordering::Relaxed);
        while !gate.is_open.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        out.send(format!("old {text}"));
    }
}

/// Marks texts.
#[derive(Default)]
struct Mark;

#[module]
impl Mark {
    fn run(&self, text: String, out: &impl Out<String>) {
        out.send(format!("new {text}"));
    }
}

/// Swaps the middle of a chain while a call is in it.
fn drains_the_chain(number: usize, graph: Graph) {
    let gate = &GATES[number];
    runtime(2).block_on(async {
        let running = graph.start().expect("it is whole");
        let input = running.input::<String>("module").expect("texts");
        input.send("1".to_owned()).await;
        while gate.calls.load(Ordering::Relaxed) == 0 {
            tussah::yield_now().await;
        }
        {
            let mut swap = pin!(running.swap::<Mark>("block", Args::new()));
            for _ in 0..100 {
                assert!(poll_once(&mut swap).await.is_none(), "a call runs");
                tussah::yield_now().await;
            }
            input.send("2".to_owned()).await;
            gate.is_open.store(true, Ordering::Relaxed);
            swap.await.expect("ok");
        }
        input.send("3".to_owned()).await;
        running.drain().await;
    });
    let mut kept = gate.kept.lock().clone();
    // These modules keep no order.
    kept.sort();
    assert_eq!(kept, ["new 2", "new 3", "old 1"]);
}

#[test]
fn a_compiled_chain_is_drained_first() {
    let number = Params::new().with("number", Value::Count(0));
    let graph = compiled::Chain::graph(&number);
    drains_the_chain(0, graph.expect("the text is right"));
}

#[test]
fn an_interpreted_chain_is_drained_first() {
    let modules = Modules::new()
        .with::<Idle>("Idle")
        .with::<Pass>("Pass")
        .with::<Keep>("Keep");
    let number = Params::new().with("number", Value::Count(1));
    let graph = modules
        .with::<Block>("Block")
        .graph("a.weave", CHAIN, &number);
    drains_the_chain(1, graph.expect("the text is right"));
}

#[test]
fn what_cannot_be_swapped() {
    runtime(1).block_on(async {
        let notes = Notes::default();
        let running = one::<Say>(say("a"), &notes);
        let refused = |result: Result<(), GraphError>| {
            let error = result.expect_err("it cannot be swapped");
            error.to_string()
        };
        let none = running.swap::<Say>("modul", say("b")).await;
        assert_eq!(
            refused(none),
            "there is no instance `modul`: expected one of `module`, `note`"
        );
        let ports = refused(running.swap::<Pass>("module", Args::new()).await);
        assert!(ports.starts_with(
            "the module of `module` cannot be swapped to `Pass`: expected the ports `run: u64 -> out: "
        ), "{ports}");
        let serial = running.swap::<Count>("module", Args::new().with("from", 1u64));
        assert_eq!(
            refused(serial.await),
            "the module of `module` cannot be swapped to `Count`: it handles one item at a time, but \
             the present module any number of items"
        );
        let empty = Args::new().with("word", String::new());
        let failed = refused(running.swap::<SayLater>("module", empty).await);
        assert_eq!(failed, "the instance `module` could not be made: the word is empty");
        let unmade = refused(running.swap::<Unmade>("module", Args::new()).await);
        assert!(unmade.ends_with("`init` panicked: expected: it cannot be made"), "{unmade}");
        let unknown = say("b").with("sound", 1u64);
        let unknown = refused(running.swap::<Say>("module", unknown).await);
        assert!(unknown.contains("`sound`"), "{unknown}");
        send(&running, [1]).await;
        running.drain().await;
        assert_eq!(notes.take(), [r#""a 1""#]);
        let closed = refused(running.swap::<Say>("module", say("b")).await);
        assert!(closed.contains("closed"), "{closed}");
    });
}

#[test]
fn shards_are_swapped_one_by_one() {
    let notes = Notes::default();
    runtime(1).block_on(async {
        let mut graph = Graph::new("g");
        let added = graph.add_shards::<Say>("module", 2, None, say("a"));
        added.expect("it is new");
        graph.add::<Note>("note", notes.args()).expect("it is new");
        graph.connect("module", "note").expect("both exist");
        let running = graph.start().expect("it is whole");
        let all = running.swap::<Say>("module", say("b")).await;
        assert_eq!(
            all.expect_err("there are two").to_string(),
            "`module` has shards: expected one of `module#0`, `module#1`"
        );
        running.swap::<Say>("module#1", say("b")).await.expect("ok");
        send(&running, [1, 2]).await;
        running.drain().await;
    });
    assert_eq!(notes.sorted(), [r#""a 1""#, r#""b 2""#]);
}

/// Items pass through a chain whose members are swapped all the time: none is lost or passes
/// another of its flow.
#[test]
fn swaps_lose_no_item() {
    /// Adds a number, in the order of each flow.
    struct Plus;
    #[module]
    impl Plus {
        fn init() -> Self {
            Self
        }
        fn run(&self, number: u64, sum: &mut u64, flow: &Flow, out: &impl Out<u64>) {
            assert_eq!(flow.key(), Some(&(number % 10).into()));
            *sum += 1;
            out.send(number);
        }
    }
    const ITEMS: u64 = 20_000;
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Below>("source", Args::new().with("below", ITEMS))
            .expect("new");
        graph.add::<Plus>("plus", Args::new()).expect("new");
        graph.add::<Tens>("tens", Args::new()).expect("new");
        graph
            .add::<AnyNote<u64>>("note", notes.args())
            .expect("new");
        for (from, to) in [("source", "plus"), ("plus", "tens")] {
            graph
                .connect_via(from, to, Via::queue(10))
                .expect("both exist");
        }
        graph
            .connect_via("tens", "note", Via::call())
            .expect("both exist");
        let running = graph.start().expect("it is whole");
        // The items may arrive before this thread runs again.
        loop {
            running.swap::<Plus>("plus", Args::new()).await.expect("ok");
            running.swap::<Tens>("tens", Args::new()).await.expect("ok");
            let note = running.swap::<AnyNote<u64>>("note", notes.args());
            note.await.expect("ok");
            if running.stats("note").expect("it is there").called >= ITEMS {
                break;
            }
        }
        running.drain().await;
    });
    let numbers: Vec<u64> = notes
        .take()
        .iter()
        .map(|it| it.parse().expect("one"))
        .collect();
    for flow in 0..10 {
        let of_flow: Vec<_> = numbers.iter().filter(|it| *it % 10 == flow).collect();
        assert_eq!(of_flow.len() as u64, ITEMS / 10);
        assert!(of_flow.is_sorted());
    }
}

/// Numbers in the flows of their last digits.
struct Below(u64);

#[module]
impl Below {
    fn init(below: u64) -> Self {
        Self(below)
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        for number in 0..self.0 {
            out.to(number % 10, number).await;
        }
    }
}

/// Passes numbers on in order.
#[derive(Default)]
struct Tens;

#[module]
impl Tens {
    fn run(&mut self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}
