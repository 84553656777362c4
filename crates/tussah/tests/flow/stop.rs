//! The end of a graph whose modules wait, and items that could get lost on the way.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tussah::flow::{
    Args, AsyncOut, Batch, Dropped, Graph, Modules, Out, Running, Via, Wake, WhenFull, module,
};
use tussah::sync::Semaphore;
use tussah::yield_now;

use super::{Note, Notes, in_time, turns};
use crate::{by_hand, runtime};

/// Runs a future as a thread of a runtime with one worker.
fn run(future: impl Future<Output = ()> + Send + 'static) {
    runtime(1).block_on_spawned(future);
}

fn add<M: tussah::flow::Module>(graph: &mut Graph, name: &str, args: Args) {
    graph.add::<M>(name, args).expect("the name is free");
}

fn connect(graph: &mut Graph, from: &str, to: &str) {
    graph.connect(from, to).expect("both exist");
}

async fn until(running: &Running, name: &str, finished: u64) {
    while running.stats(name).expect("it exists").finished < finished {
        yield_now().await;
    }
}

/// Never ends an item.
#[derive(Default)]
struct Wait;

#[module]
impl Wait {
    async fn run(&self, _number: u64) {
        pending().await
    }
}

/// Never ends an item, and takes one at a time.
#[derive(Default)]
struct WaitOne;

#[module]
impl WaitOne {
    async fn run(&mut self, _number: u64) {
        pending().await
    }
}

/// Never ends an item of a flow.
#[derive(Default)]
struct WaitFlow;

#[module]
impl WaitFlow {
    async fn run(&self, _number: u64, _state: &mut u64) {
        pending().await
    }
}

#[test]
fn a_stop_ends_what_waits_forever() {
    let (clock, runtime) = by_hand();
    let notes = Notes::default();
    let noted = notes.clone();
    runtime.block_on_spawned(async move {
        let mut graph = Graph::new("g");
        add::<Wait>(&mut graph, "wait", Args::new());
        add::<WaitOne>(&mut graph, "one", Args::new());
        add::<WaitFlow>(&mut graph, "flow", Args::new());
        add::<Note<Dropped<u64>>>(&mut graph, "lost", noted.args());
        for name in ["wait", "one", "flow"] {
            connect(&mut graph, &format!("{name}.dropped"), "lost");
        }
        let running = graph.start().expect("it is whole");
        for name in ["wait", "one", "flow"] {
            let input = running.input(name).expect("it takes numbers");
            for number in [1u64, 2] {
                input.send(number).await;
            }
        }
        in_time(&clock, running.stop()).await;
    });
    let lost = notes.take();
    assert_eq!(lost.len(), 6);
    let shut_down = |note: &String| note.contains("ShutDown");
    assert!(lost.iter().all(shut_down), "{lost:?}");
}

#[test]
fn a_stop_can_leave_time_for_items_in_transit() {
    let (clock, runtime) = by_hand();
    let notes = Notes::default();
    let noted = notes.clone();
    runtime.block_on_spawned(async move {
        let go = Arc::new(Semaphore::new(1));
        let mut graph = Graph::new("g");
        // This source never ends by itself.
        add::<Late>(&mut graph, "late", Args::new().with("go", go));
        add::<Pass>(&mut graph, "pass", Args::new());
        add::<Note<u64>>(&mut graph, "note", noted.args());
        let delay = Via::default().after(Duration::from_secs(60));
        let edge = graph.connect_via("late", "pass", delay);
        edge.expect("both exist");
        connect(&mut graph, "pass", "note");
        let running = graph.start().expect("it is whole");
        turns().await;
        in_time(&clock, running.stop_within(Duration::from_secs(3600))).await;
    });
    assert_eq!(notes.take(), ["0"]);
}

/// Waits for more items than there are.
#[derive(Default)]
struct Hesitate;

#[module]
impl Hesitate {
    fn run(&self, _items: &mut Batch<u64>) {}
}

/// Does the same one at a time, after a while.
#[derive(Default)]
struct HesitateOne;

#[module]
impl HesitateOne {
    async fn run(&mut self, _items: &mut Batch<'_, u64>) {
        yield_now().await;
    }
}

/// Does the same in each flow.
#[derive(Default)]
struct HesitateFlow;

#[module]
impl HesitateFlow {
    fn run(&self, _items: &mut Batch<u64>, _state: &mut u64) {}
}

/// Does the same on an OS thread.
#[derive(Default)]
struct HesitateBlocking;

#[module(blocking)]
impl HesitateBlocking {
    fn run(&self, _items: &mut Batch<u64>) {}
}

/// Sends two numbers through a module that takes none of them, and stops the graph.
fn stop_takes_what_is_left_by<M: tussah::flow::Module>() {
    let (clock, runtime) = by_hand();
    let notes = Notes::default();
    let noted = notes.clone();
    runtime.block_on_spawned(async move {
        let mut graph = Graph::new("g");
        add::<M>(&mut graph, "m", Args::new());
        add::<Note<Dropped<u64>>>(&mut graph, "lost", noted.args());
        connect(&mut graph, "m.dropped", "lost");
        let running = graph.start().expect("it is whole");
        let input = running.input("m").expect("it takes numbers");
        for number in [1u64, 2] {
            input.send(number).await;
        }
        in_time(&clock, running.stop()).await;
        let stats = running.stats("m").expect("it exists");
        assert_eq!((stats.finished, stats.failed), (2, 2));
    });
    let lost = notes.take();
    let shut_down = |note: &String| note.contains("ShutDown");
    assert!(lost.len() == 2 && lost.iter().all(shut_down), "{lost:?}");
}

#[test]
fn a_stop_ends_items_that_a_module_leaves_in_its_batch() {
    stop_takes_what_is_left_by::<Hesitate>();
    stop_takes_what_is_left_by::<HesitateOne>();
    stop_takes_what_is_left_by::<HesitateFlow>();
    stop_takes_what_is_left_by::<HesitateBlocking>();
}

/// Panics for each item.
#[derive(Default)]
struct Break;

#[module]
impl Break {
    fn run(&mut self, number: u64) {
        panic!("{number} breaks");
    }
}

#[test]
fn items_of_an_instance_that_panicked_too_often_are_dropped() {
    let notes = Notes::default();
    let noted = notes.clone();
    run(async move {
        let mut graph = Graph::new("g");
        add::<Break>(&mut graph, "break", Args::new());
        add::<Note<Dropped<u64>>>(&mut graph, "lost", noted.args());
        connect(&mut graph, "break.dropped", "lost");
        let running = graph.start().expect("it is whole");
        let input = running.input("break").expect("it takes numbers");
        for number in 0..6u64 {
            input.send(number).await;
        }
        turns().await;
        assert_eq!(running.stats("break").expect("it exists").gate, "closed");
        for number in 6..9u64 {
            input.send(number).await;
        }
        running.drain().await;
    });
    assert_eq!(notes.take().len(), 9);
}

/// Can be made once, and then panics for each item.
struct Once;

#[module]
impl Once {
    fn init(notes: Notes) -> Self {
        notes.add("made");
        assert!(notes.0.lock().len() == 1, "it was made before");
        Self
    }

    fn run(&mut self, number: u64) {
        panic!("{number} breaks");
    }
}

#[test]
fn an_instance_that_cannot_be_made_anew_closes_with_the_panic() {
    run(async {
        let mut graph = Graph::new("g");
        add::<Once>(&mut graph, "once", Notes::default().args());
        let running = graph.start().expect("it is whole");
        let input = running.input("once").expect("it takes numbers");
        input.send(1u64).await;
        turns().await;
        let closed = running.stats("once").expect("it exists").closed;
        let closed = closed.expect("it could not be made anew");
        assert!(
            closed.ends_with("`init` panicked: it was made before"),
            "{closed}"
        );
        running.drain().await;
    });
}

/// Sends as many numbers as it is told, and notes each before it sends it.
struct Burst(Notes);

#[module]
impl Burst {
    fn init(notes: Notes) -> Self {
        Self(notes)
    }

    fn run(&self, count: u64, out: &impl Out<u64>) {
        for number in 0..count {
            self.0.add(number);
            out.send(number);
        }
    }
}

#[test]
fn the_item_that_overflows_an_outbox_is_not_lost() {
    let (sent, notes) = (Notes::default(), Notes::default());
    runtime(1).block_on(async {
        let mut graph = Graph::new("g");
        add::<Burst>(&mut graph, "burst", sent.args());
        add::<Note<u64>>(&mut graph, "note", notes.args());
        let edge = graph.connect_via("burst", "note", Via::queue(8));
        edge.expect("both exist");
        let running = graph.start().expect("it is whole");
        let input = running.input("burst").expect("it takes numbers");
        input.send(10_000u64).await;
        running.drain().await;
        assert_eq!(running.stats("burst").expect("it exists").panicked, 1);
    });
    assert_eq!(notes.take(), sent.take());
}

/// Sets an alarm for the number 0, and waits for a permit with each other number.
struct Alarm(Notes, Arc<Semaphore>);

#[module]
impl Alarm {
    fn init(notes: Notes, go: Arc<Semaphore>) -> Self {
        Self(notes, go)
    }

    async fn run(&self, number: u64, _state: &mut u64, wake: &Wake) {
        match number {
            0 => wake.after(Duration::from_secs(1)),
            _ => self.1.acquire().await.forget(),
        }
    }

    async fn wake(&self, _state: &mut u64) {
        self.0.add("woken");
    }
}

/// Passes numbers on.
#[derive(Default)]
struct Pass;

#[module]
impl Pass {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

#[test]
fn an_alarm_that_is_shed_goes_off_later() {
    let (clock, runtime) = by_hand();
    let (notes, go) = (Notes::default(), Arc::new(Semaphore::new(0)));
    let noted = notes.clone();
    runtime.block_on_spawned(async move {
        let mut graph = Graph::new("g");
        add::<Pass>(&mut graph, "pass", Args::new());
        let args = noted.args().with("go", Arc::clone(&go));
        add::<Alarm>(&mut graph, "alarm", args);
        let drops = Via::queue(1).when_full(WhenFull::DropOldest);
        let edge = graph.connect_via("pass", "alarm", drops);
        edge.expect("both exist");
        let running = graph.start().expect("it is whole");
        let input = running.input("pass").expect("it takes numbers");
        input.send(0u64).await;
        until(&running, "alarm", 1).await;
        input.send(1u64).await;
        turns().await;
        // The alarm waits behind the number 1, until later numbers need its room.
        clock.advance(Duration::from_secs(1));
        turns().await;
        assert_eq!(running.stats("alarm").expect("it exists").queued, 1);
        let mut number = 2u64;
        while running.stats("alarm").expect("it exists").shed == 0 {
            input.send(number).await;
            turns().await;
            number += 1;
        }
        go.add_permits(10_000);
        for _ in 0..10 {
            clock.advance(Duration::from_millis(10));
            turns().await;
        }
        running.drain().await;
    });
    assert_eq!(notes.take(), ["woken"]);
}

/// Sends a number after a permit.
struct Late(Arc<Semaphore>);

#[module]
impl Late {
    fn init(go: Arc<Semaphore>) -> Self {
        Self(go)
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        loop {
            self.0.acquire().await.forget();
            out.send(0).await;
        }
    }
}

#[test]
fn a_source_begins_traces() {
    let (notes, go) = (Notes::default(), Arc::new(Semaphore::new(0)));
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        let args = Args::new().with("go", Arc::clone(&go));
        add::<Late>(&mut graph, "late", args);
        add::<Pass>(&mut graph, "pass", Args::new());
        add::<Note<u64>>(&mut graph, "note", notes.args());
        connect(&mut graph, "late", "pass");
        connect(&mut graph, "pass", "note");
        let running = graph.start().expect("it is whole");
        running.network().trace_one_in(2);
        go.add_permits(8);
        until(&running, "note", 8).await;
        running.stop().await;
        let traces = running.network().traces();
        let of = |name: &'static str| traces.spans.iter().filter(move |span| *span.stage == *name);
        assert_eq!((of("pass").count(), of("note").count()), (4, 4));
        let trace = of("pass").next().expect("it has spans").trace;
        assert_eq!(traces.of(trace).count(), 2);
    });
}

/// A source that panics.
#[module]
#[derive(Default)]
struct Panics;

#[module]
impl Panics {
    async fn start(&self, _out: Option<&impl AsyncOut<u64>>) {
        panic!("no items");
    }
}

/// A source that fails.
#[derive(Default)]
struct Fails;

#[module]
impl Fails {
    async fn start(&self, out: &impl AsyncOut<u64>) -> Result<(), std::num::ParseIntError> {
        let number = "one".parse()?;
        out.send(number).await;
        Ok(())
    }
}

#[test]
fn sources_that_fail_are_known_after_the_drain() {
    run(async {
        let mut graph = Graph::new("g");
        add::<Panics>(&mut graph, "panics", Args::new());
        add::<Fails>(&mut graph, "fails", Args::new());
        add::<Late>(
            &mut graph,
            "late",
            Args::new().with("go", Arc::new(Semaphore::new(0))),
        );
        add::<Wait>(&mut graph, "wait", Args::new());
        connect(&mut graph, "fails", "wait");
        connect(&mut graph, "late", "wait");
        let running = graph.start().expect("it is whole");
        turns().await;
        running.stop().await;
        let failures = running.failures();
        let mut failures: Vec<_> = failures.iter().map(ToString::to_string).collect();
        failures.sort();
        let expected = [
            "the source `fails` failed: invalid digit found in string",
            "the source `panics` failed: it panicked",
        ];
        assert_eq!(failures, expected);
    });
}

#[test]
fn the_documentation_of_a_module_can_be_at_its_type() {
    let modules = Modules::new()
        .with::<Panics>("Panics")
        .with::<Fails>("Fails");
    let doc = |name| modules.signatures().signatures[name].doc.as_str();
    assert_eq!((doc("Panics"), doc("Fails")), ("A source that panics.", ""));
}
