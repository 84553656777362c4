//! Changes of a running graph: the parts that stay, and the changes that are refused.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::poll_once;
use tussah::flow::{Args, AsyncOut, Graph, Module, OpenFile, Out, Running, Via, Wake, module};
use tussah::sync::Semaphore;

use super::{Below, Note, Notes, settled, turns};
use crate::{by_hand, runtime};

pub(super) fn add<M: Module>(graph: &mut Graph, name: &str, args: Args) {
    graph.add::<M>(name, args).expect("the name is free");
}

pub(super) fn connect(graph: &mut Graph, from: &str, to: &str) {
    graph.connect(from, to).expect("both exist");
}

pub(super) async fn send(running: &Running, to: &str, numbers: impl IntoIterator<Item = u64>) {
    let input = running.input(to).expect("it takes numbers");
    for number in numbers {
        input.send(number).await;
    }
}

/// Passes numbers on.
#[derive(Default)]
pub(super) struct Pass;

#[module]
impl Pass {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

/// May pass numbers on.
#[derive(Default)]
pub(super) struct MayPass;

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
            "the module of `blocks` cannot be swapped to `Pass`: only one of the two blocks its \
             OS thread"
        );
        assert_eq!(
            to_pass("below").await,
            "the module of `below` cannot be swapped to `Pass`: a source keeps its module"
        );
        let blocks = running.swap::<Blocks>("pass", Args::new()).await;
        assert_eq!(
            blocks.expect_err("it blocks").to_string(),
            "the module of `pass` cannot be swapped to `Blocks`: only one of the two blocks its \
             OS thread"
        );
        running.drain().await;
    });
}

/// Has numbers in hand until it may go on.
pub(super) struct Hold(Arc<Semaphore>);

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
pub(super) struct Burst;

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

/// Sends all numbers in one flow.
#[derive(Default)]
struct OneFlow;

#[module]
impl OneFlow {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.to(1_u64, number);
    }
}

/// Sets an alarm for each even number, and has each odd number in hand until it may go on.
struct Alarms(Arc<Semaphore>);

#[module]
impl Alarms {
    fn init(go: Arc<Semaphore>) -> Self {
        Self(go)
    }

    async fn run(&self, number: u64, _state: &mut u64, wake: &Wake) {
        match number % 2 {
            0 => wake.after(Duration::from_secs(1)),
            _ => self.0.acquire().await.forget(),
        }
    }

    fn wake(&self, _state: &mut u64, out: &impl Out<u64>) {
        out.send(7);
    }
}

/// The second alarm replaces the first one, which has gone off and is in the queue.
#[test]
fn an_alarm_after_a_swap_has_another_number() {
    let (clock, runtime) = by_hand();
    let (notes, go) = (Notes::default(), Arc::new(Semaphore::new(0)));
    runtime.block_on_spawned(async move {
        let mut graph = Graph::new("g");
        add::<OneFlow>(&mut graph, "one", Args::new());
        let args = Args::new().with("go", Arc::clone(&go));
        add::<Alarms>(&mut graph, "alarms", args.clone());
        add::<Note<u64>>(&mut graph, "note", notes.args());
        connect(&mut graph, "one", "alarms");
        connect(&mut graph, "alarms", "note");
        let running = graph.start().expect("it is whole");
        send(&running, "one", [0, 1, 2]).await;
        turns().await;
        clock.advance(Duration::from_secs(1));
        turns().await;
        {
            let mut swap = pin!(running.swap::<Alarms>("alarms", args));
            assert!(poll_once(&mut swap).await.is_none(), "a call runs");
            go.add_permits(1);
            swap.await.expect("it fits");
        }
        turns().await;
        assert_eq!(notes.take(), [""; 0]);
        clock.advance(Duration::from_secs(1));
        turns().await;
        assert_eq!(notes.take(), ["7"]);
        running.drain().await;
    });
}

/// Opens a file.
struct Opens(OpenFile);

#[module]
impl Opens {
    fn init(path: PathBuf, anew: bool) -> Result<Self, String> {
        match anew {
            true => OpenFile::create(path).map(Self),
            false => OpenFile::append(path).map(Self),
        }
    }

    fn run(&self, number: u64, out: &impl Out<u64>) {
        assert!(self.0.path().exists());
        out.send(number);
    }
}

#[test]
fn a_swapped_module_opens_files_in_the_name_of_its_instance() {
    let directory = tempfile::tempdir().expect("there is room for temporary files");
    let path = directory.path().join("file");
    runtime(1).block_on(async {
        let notes = Notes::default();
        let mut graph = Graph::new("g");
        add::<Pass>(&mut graph, "first", Args::new());
        add::<Pass>(&mut graph, "second", Args::new());
        add::<Note<u64>>(&mut graph, "note", notes.args());
        connect(&mut graph, "first", "note");
        connect(&mut graph, "second", "note");
        let running = graph.start().expect("it is whole");
        let args = |anew: bool| Args::new().with("path", path.clone()).with("anew", anew);
        let first = running.swap::<Opens>("first", args(false)).await;
        first.expect("the file is free");
        let second = running.swap::<Opens>("second", args(true)).await;
        let why = second.expect_err("the file is in use").to_string();
        let expected = "the instance `first` appends to it already, which conflicts with the \
                        instance `second`";
        assert!(why.ends_with(expected), "{why}");
        running.drain().await;
    });
}

/// Adds the numbers of each flow.
#[derive(Default)]
struct Sum;

#[module]
impl Sum {
    fn run(&self, number: u64, sum: &mut u64, out: &impl Out<u64>) {
        *sum += number;
        out.send(*sum);
    }
}

#[test]
fn the_state_of_items_without_a_flow_stays() {
    let notes = Notes::default();
    runtime(1).block_on(async {
        let mut graph = Graph::new("g");
        add::<Sum>(&mut graph, "sum", Args::new());
        add::<Note<u64>>(&mut graph, "note", notes.args());
        connect(&mut graph, "sum", "note");
        let running = graph.start().expect("it is whole");
        send(&running, "sum", [1]).await;
        settled(&running).await;
        let swapped = running.swap::<Sum>("sum", Args::new()).await;
        swapped.expect("it fits");
        send(&running, "sum", [2]).await;
        running.drain().await;
    });
    assert_eq!(notes.take(), ["1", "3"]);
}

/// Has one number in hand until it may go on.
pub(super) struct HoldOne(Notes, Arc<Semaphore>);

#[module]
impl HoldOne {
    fn init(notes: Notes, go: Arc<Semaphore>) -> Self {
        Self(notes, go)
    }

    async fn run(&mut self, number: u64) {
        self.0.add(number);
        self.1.acquire().await.forget();
    }
}

/// A source is no caller that a swap can hold.
#[test]
fn a_swap_waits_for_the_call_of_a_source() {
    let (notes, go) = (Notes::default(), Arc::new(Semaphore::new(0)));
    let args = notes.args().with("go", Arc::clone(&go));
    runtime(1).block_on_spawned(async move {
        let mut graph = Graph::new("g");
        add::<Below>(&mut graph, "below", Args::new().with("below", 3_u64));
        add::<HoldOne>(&mut graph, "hold", args.clone());
        let edge = graph.connect_via("below", "hold", Via::call());
        edge.expect("both exist");
        let running = graph.start().expect("it is whole");
        turns().await;
        {
            let mut swap = pin!(running.swap::<HoldOne>("hold", args));
            for _ in 0..100 {
                assert!(poll_once(&mut swap).await.is_none(), "a call runs");
                tussah::yield_now().await;
            }
            // The source may begin another call before the swap has its turn.
            go.add_permits(3);
            swap.await.expect("it fits");
        }
        running.drain().await;
    });
    assert_eq!(notes.take(), ["0", "1", "2"]);
}

/// Sends texts.
#[derive(Default)]
struct Text;

#[module]
impl Text {
    fn run(&self, number: u64, out: &impl Out<String>) {
        out.send(number.to_string());
    }
}

/// Takes numbers at a port of another name.
#[derive(Default)]
struct Other;

#[module]
impl Other {
    #[port]
    fn other(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

#[test]
fn what_else_cannot_be_a_proxy() {
    runtime(1).block_on(async {
        let notes = Notes::default();
        let mut graph = Graph::new("g");
        let added = graph.add_shards::<Pass>("shards", 2, None, Args::new());
        added.expect("it is new");
        add::<Pass>(&mut graph, "first", Args::new());
        add::<Note<u64>>(&mut graph, "note", notes.args());
        connect(&mut graph, "shards", "note");
        connect(&mut graph, "first", "note");
        let running = graph.start().expect("it is whole");
        let ports = "expected one input port `run` and an output port `out`, both of `u64`";
        let text = running.proxy::<Text>("first -> note", "p", Args::new());
        assert_eq!(
            text.await
                .map(drop)
                .expect_err("it sends texts")
                .to_string(),
            format!("`Text` cannot be a proxy on `first -> note`: {ports}")
        );
        let other = running.proxy::<Other>("first -> note", "p", Args::new());
        assert_eq!(
            other.await.map(drop).expect_err("its port").to_string(),
            format!("`Other` cannot be a proxy on `first -> note`: {ports}")
        );
        let shards = running.proxy::<Pass>("shards -> note", "p", Args::new());
        assert_eq!(
            shards.await.map(drop).expect_err("two senders").to_string(),
            "`shards` has shards: expected one of `shards#0`, `shards#1`"
        );
        let unknown = Args::new().with("sound", 1_u64);
        let unknown = running.proxy::<Pass>("first -> note", "p", unknown);
        let unknown = unknown.await.map(drop).expect_err("no parameter");
        assert!(unknown.to_string().contains("`sound`"), "{unknown}");
        running.drain().await;
    });
}
