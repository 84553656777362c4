//! Limits: a bound on the number of items inside a set of instances.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tussah::flow::{
    Args, AsyncOut, Batch, Dropped, Graph, Modules, Out, Params, Via, Wake, WhenFull, module,
};
use tussah::sync::Semaphore;

use super::{Below, Note, Notes, in_time, turns};
use crate::{by_hand, runtime};

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

/// Opens and closes a flow for each number.
#[derive(Default)]
struct Open;

#[module]
impl Open {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.to(number, number);
        out.close(number);
    }
}

/// Sends numbers at the end of a flow.
#[derive(Default)]
struct AtEnd;

#[module]
impl AtEnd {
    fn run(&self, _number: u64, _state: &mut u64) {}

    fn end(&self, state: u64, out: &impl Out<u64>) {
        out.send(state);
    }
}

/// Sends numbers when the flow's alarm goes off.
#[derive(Default)]
struct AtAlarm;

#[module]
impl AtAlarm {
    fn run(&self, _number: u64, _state: &mut u64, wake: &Wake) {
        wake.after(Duration::from_secs(1));
    }

    fn wake(&self, state: &mut u64, out: &impl Out<u64>) {
        out.send(*state);
    }
}

/// Sends a number periodically.
#[derive(Default)]
struct AtTick;

#[module]
impl AtTick {
    fn run(&self, _number: u64) {}

    fn tick(&self, out: &impl Out<u64>) {
        out.send(0);
    }
}

/// Runs a module that sends more than it gets, before a module that holds all of that, in a limit
/// of one item. Returns the greatest number of items that were held.
fn held<M: tussah::flow::Module>(args: Args) -> u64 {
    let (clock, runtime) = by_hand();
    let go = Arc::new(Semaphore::new(0));
    runtime.block_on_spawned(async move {
        let mut graph = Graph::new("g");
        graph.add::<Open>("open", Args::new()).expect("free");
        graph.add::<M>("module", args).expect("free");
        let args = Args::new().with("go", Arc::clone(&go));
        graph.add::<Hold>("hold", args).expect("free");
        graph.connect("open", "module").expect("both exist");
        graph.connect("module", "hold").expect("both exist");
        graph.limit(1, &["module", "hold"]).expect("both exist");
        let running = graph.start().expect("it is whole");
        let input = running.input("open").expect("it takes numbers");
        let mut most = 0;
        for number in 0..5u64 {
            input.send(number).await;
            turns().await;
        }
        for _ in 0..10 {
            clock.advance(Duration::from_secs(1));
            turns().await;
            let stats = running.stats("hold").expect("it exists");
            most = most.max(stats.in_service + stats.queued);
            go.add_permits(1);
            turns().await;
        }
        go.add_permits(1000);
        running.stop().await;
        most
    })
}

#[test]
fn what_an_end_an_alarm_and_a_tick_send_counts_in_a_limit() {
    assert_eq!(held::<AtEnd>(Args::new()), 1);
    let every = Args::new().with("every", Duration::from_millis(100));
    assert_eq!(held::<AtTick>(every), 1);
    assert_eq!(held::<AtAlarm>(Args::new()), 1);
}

#[test]
fn an_alarm_that_is_set_holds_no_place() {
    let (clock, runtime) = by_hand();
    runtime.block_on_spawned(async move {
        let mut graph = Graph::new("g");
        graph.add::<AtAlarm>("alarm", Args::new()).expect("free");
        graph
            .add::<Below>("below", Args::new().with("below", 10u64))
            .expect("free");
        graph
            .add::<Note<u64>>("note", Notes::default().args())
            .expect("free");
        graph.connect("below", "alarm").expect("both exist");
        graph.connect("alarm", "note").expect("both exist");
        graph.limit(1, &["alarm"]).expect("it exists");
        let running = graph.start().expect("it is whole");
        turns().await;
        assert_eq!(running.stats("alarm").expect("it exists").finished, 10);
        in_time(&clock, running.stop()).await;
    });
}

/// Passes numbers on.
#[derive(Default)]
struct Next;

#[module]
impl Next {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

#[test]
fn items_in_an_outbox_are_inside() {
    let go = Arc::new(Semaphore::new(0));
    runtime(1).block_on_spawned(async move {
        let mut graph = Graph::new("g");
        graph
            .add::<Below>("below", Args::new().with("below", 3000u64))
            .expect("free");
        graph.add::<Next>("next", Args::new()).expect("free");
        let args = Args::new().with("go", Arc::clone(&go));
        graph.add::<HoldOne>("hold", args).expect("free");
        graph.connect("below", "next").expect("both exist");
        graph
            .connect_via("next", "hold", Via::queue(1))
            .expect("both exist");
        graph.limit(1, &["next"]).expect("it exists");
        let running = graph.start().expect("it is whole");
        while running.stats("hold").expect("it exists").queued == 0 {
            tussah::yield_now().await;
        }
        turns().await;
        let stats = running.stats("next").expect("it exists");
        assert_eq!(stats.in_service + stats.queued, 1);
        go.add_permits(3000);
        running.drain().await;
    });
}

/// Holds one number at a time.
struct HoldOne(Arc<Semaphore>);

#[module]
impl HoldOne {
    fn init(go: Arc<Semaphore>) -> Self {
        Self(go)
    }

    async fn run(&mut self, _number: u64) {
        self.0.acquire().await.forget();
    }
}

/// Sends the first number in a flow, and the others in all flows of the port.
#[derive(Default)]
struct ToFlow;

#[module]
impl ToFlow {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        match number {
            0 => out.to(0, 0),
            _ => out.each_flow(number),
        }
    }
}

/// Sends the first number in a flow, and the others in all flows of the port.
#[derive(Default)]
struct ToFlowLater;

#[module]
impl ToFlowLater {
    async fn run(&self, number: u64, out: &impl AsyncOut<u64>) {
        match number {
            0 => out.to(0, 0).await,
            _ => out.each_flow(number).await,
        }
    }
}

/// Sends the first number in a flow, and the others in all flows of the port.
#[derive(Default)]
struct ToFlowInTurn;

#[module(ordered)]
impl ToFlowInTurn {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        match number {
            0 => out.to(0, 0),
            _ => out.each_flow(number),
        }
    }
}

/// Sends the first number in a flow, and the others in all flows of the port.
#[derive(Default)]
struct ToFlowBatched;

#[module]
impl ToFlowBatched {
    async fn run(&self, numbers: &mut Batch<'_, u64>, out: &impl AsyncOut<u64>) {
        match numbers.next() {
            Some(0) => out.to(0, 0).await,
            Some(number) => out.each_flow(number).await,
            None => {}
        }
    }
}

#[test]
fn what_is_sent_to_another_flow_counts_in_a_limit() {
    assert_eq!(held::<ToFlow>(Args::new()), 1);
    assert_eq!(held::<ToFlowLater>(Args::new()), 1);
    assert_eq!(held::<ToFlowInTurn>(Args::new()), 1);
    assert_eq!(held::<ToFlowBatched>(Args::new()), 1);
}
