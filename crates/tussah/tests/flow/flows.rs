//! Flows: their order, their state, and its end.

use std::sync::Arc;
use std::time::Duration;

use tussah::ManualClock;
use tussah::flow::{Args, AsyncOut, Flow, Graph, Out, Via, Wake, WhenFull, module};
use tussah::sync::{Barrier, Mutex};

use super::{Note, Notes, turns};
use crate::{by_hand, runtime};

/// Sends numbers in the flows 0, 1 and 2, and then ends these flows.
pub(super) struct Numbers(u64);

#[module]
impl Numbers {
    fn init(below: u64) -> Self {
        Self(below)
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        for number in 0..self.0 {
            out.to(number % 3, number).await;
        }
        (0..3u64).for_each(|flow| out.close(flow));
    }
}

/// Adds the numbers of each flow, and sends the sum at the end of the flow.
#[derive(Default)]
pub(super) struct Sums;

#[module]
impl Sums {
    fn run(&self, number: u64, sum: &mut Vec<u64>) {
        sum.push(number);
    }

    fn end(&self, sum: Vec<u64>, flow: &Flow, out: &impl Out<String>) {
        let key = flow.key().expect("it is the end of a flow");
        out.send(format!("{key}: {sum:?}"));
    }
}

/// Counts the items of each flow.
#[derive(Default)]
struct Counts;

#[module]
impl Counts {
    fn run(&self, text: String, count: &mut u64, out: &impl Out<String>) {
        *count += 1;
        out.send(text);
    }

    fn end(&self, count: u64, out: &impl Out<String>) {
        out.send(format!("ended after {count}"));
    }
}

#[test]
fn a_flow_ends_when_its_last_item_was_handled() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Numbers>("numbers", Args::new().with("below", 12u64))
            .expect("free");
        graph.add::<Sums>("sums", Args::new()).expect("free");
        graph.add::<Counts>("counts", Args::new()).expect("free");
        graph
            .add::<Note<String>>("note", notes.args())
            .expect("free");
        graph.connect("numbers", "sums").expect("both exist");
        graph.connect("sums", "counts").expect("both exist");
        graph.connect("counts", "note").expect("both exist");
        let running = graph.start().expect("it is whole");
        running.drain().await;
    });
    // Items that are sent at the end of a flow are still in it, and the next module ends later.
    let expected = [
        r#""0: [0, 3, 6, 9]""#,
        r#""1: [1, 4, 7, 10]""#,
        r#""2: [2, 5, 8, 11]""#,
        r#""ended after 1""#,
        r#""ended after 1""#,
        r#""ended after 1""#,
    ];
    assert_eq!(notes.sorted(), expected);
}

/// Waits for a lock with each item.
struct Locked(Arc<Mutex<()>>);

#[module]
impl Locked {
    fn init(lock: Arc<Mutex<()>>) -> Self {
        Self(lock)
    }

    async fn run(&self, number: u64, last: &mut Option<u64>) {
        let _turn = self.0.lock().await;
        assert!(last.is_none_or(|last| last < number), "in order");
        *last = Some(number);
    }
}

/// The room of an edge is for the items of any flow, even if all are of a few flows.
#[test]
fn flows_share_the_room_of_an_edge() {
    let lock = Arc::new(Mutex::new(()));
    runtime(1).block_on(async {
        let held = lock.lock_arc().await;
        let mut graph = Graph::new("g");
        graph
            .add::<Numbers>("numbers", Args::new().with("below", 900u64))
            .expect("free");
        graph
            .add::<Locked>("locked", Args::new().with("lock", lock.clone()))
            .expect("free");
        let via = Via::queue(1000).when_full(WhenFull::Shed);
        graph
            .connect_via("numbers", "locked", via)
            .expect("both exist");
        let running = graph.start().expect("it is whole");
        let stats = || running.stats("locked").expect("it exists");
        while stats().arrived < 900 {
            tussah::yield_now().await;
        }
        drop(held);
        running.drain().await;
        let stats = running.stats("locked").expect("it exists");
        // The ends of the flows are items, too.
        assert!(stats.finished >= 900, "{}", stats.finished);
        assert_eq!((stats.refused, stats.panicked), (0, 0));
    });
}

/// Waits until items of two flows are being handled.
struct Meet(Arc<Barrier>);

#[module]
impl Meet {
    fn init(barrier: Arc<Barrier>) -> Self {
        Self(barrier)
    }

    async fn run(&self, number: u64, last: &mut Option<u64>) {
        assert!(last.is_none_or(|last| last < number), "in order");
        self.0.wait().await;
        *last = Some(number);
    }
}

#[test]
fn flows_run_side_by_side_and_in_order() {
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Numbers>("numbers", Args::new().with("below", 300u64))
            .expect("free");
        let args = Args::new().with("barrier", Arc::new(Barrier::new(3)));
        graph.add::<Meet>("meet", args).expect("free");
        graph.connect("numbers", "meet").expect("both exist");
        let running = graph.start().expect("it is whole");
        while running.stats("meet").expect("it exists").finished < 300 {
            tussah::yield_now().await;
        }
        assert_eq!(running.stats("meet").expect("it exists").panicked, 0);
        running.drain().await;
    });
}

/// The state of a flow; it notes when it is dropped.
#[derive(Default)]
struct State(Option<Notes>);

impl Drop for State {
    fn drop(&mut self) {
        if let Some(notes) = &self.0 {
            notes.add("dropped");
        }
    }
}

struct Keep(Notes);

#[module]
impl Keep {
    fn init(notes: Notes) -> Self {
        Self(notes)
    }

    fn begin(&self) -> State {
        self.0.add("begun");
        State(Some(self.0.clone()))
    }

    fn run(&self, number: u64, _state: &mut State) {
        assert!(number != 4, "the state of flow 1 ends here");
        self.0.add(number);
    }
}

#[test]
fn a_panic_ends_the_state_of_its_flow() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Numbers>("numbers", Args::new().with("below", 9u64))
            .expect("free");
        graph.add::<Keep>("keep", notes.args()).expect("free");
        graph.connect("numbers", "keep").expect("both exist");
        let running = graph.start().expect("it is whole");
        running.drain().await;
    });
    let mut expected = vec!["0", "1", "2", "3", "5", "6", "7", "8"];
    // Flow 1 begins anew with item 7.
    expected.extend(["begun"; 4]);
    expected.extend(["dropped"; 4]);
    assert_eq!(notes.sorted(), expected);
}

/// Collects the numbers of each flow, and panics for a 4.
#[derive(Default)]
struct Break;

#[module]
impl Break {
    fn run(&self, number: u64, numbers: &mut Vec<u64>) {
        assert!(number != 4, "the state of flow 1 ends here");
        numbers.push(number);
    }

    fn end(&self, numbers: Vec<u64>, out: &impl Out<Vec<u64>>) {
        out.send(numbers);
    }
}

#[test]
fn the_end_of_a_flow_is_that_of_its_state_since_the_last_panic() {
    let ends = |below: u64| {
        let notes = Notes::default();
        runtime(2).block_on(async {
            let mut graph = Graph::new("g");
            let args = Args::new().with("below", below);
            graph.add::<Numbers>("numbers", args).expect("free");
            graph.add::<Break>("break", Args::new()).expect("free");
            graph
                .add::<Note<Vec<u64>>>("note", notes.args())
                .expect("free");
            graph.connect("numbers", "break").expect("both exist");
            graph.connect("break", "note").expect("both exist");
            graph.start().expect("it is whole").drain().await;
        });
        notes.sorted()
    };
    assert_eq!(ends(9), ["[0, 3, 6]", "[2, 5, 8]", "[7]"]);
    // The last item of flow 1 panics, so the flow has no state that could end.
    assert_eq!(ends(5), ["[0, 3]", "[2]"]);
}

/// Items without a flow have a state, too.
#[test]
fn items_outside_of_flows_share_a_state() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph.add::<Keep>("keep", notes.args()).expect("free");
        let running = graph.start().expect("it is whole");
        let input = running.input("keep").expect("it takes numbers");
        input.send(1u64).await;
        input.send(2u64).await;
        running.drain().await;
    });
    let mut notes = notes.take();
    notes.truncate(3);
    assert_eq!(notes, ["begun", "1", "2"]);
}

/// Sends each text in the flow of its first letter, and a text that begins with `!` in all flows.
#[derive(Default)]
struct Rooms;

#[module]
impl Rooms {
    fn run(&self, text: &'static str, out: &impl Out<&'static str>) {
        match text.strip_prefix('!') {
            Some(text) => out.each_flow(text),
            None => out.to(&text[..1], text),
        }
    }
}

#[derive(Default)]
struct Talk;

#[module]
impl Talk {
    fn run(&self, text: &'static str, flow: &Flow, said: &mut u64, out: &impl Out<String>) {
        *said += 1;
        let key = flow.key().expect("it is in a flow");
        out.send(format!("{key}{said} {text}"));
    }
}

#[test]
fn a_module_names_the_flow_of_what_it_sends() {
    let notes = Notes::default();
    runtime(1).block_on(async {
        let mut graph = Graph::new("g");
        graph.add::<Rooms>("rooms", Args::new()).expect("free");
        graph.add::<Talk>("talk", Args::new()).expect("free");
        graph
            .add::<Note<String>>("note", notes.args())
            .expect("free");
        graph.connect("rooms", "talk").expect("both exist");
        graph.connect("talk", "note").expect("both exist");
        let running = graph.start().expect("it is whole");
        let input = running.input("rooms").expect("it takes texts");
        for text in ["ab", "bc", "ac", "!x"] {
            input.send(text).await;
        }
        running.drain().await;
    });
    let expected = [
        r#""a1 ab""#,
        r#""a2 ac""#,
        r#""a3 x""#,
        r#""b1 bc""#,
        r#""b2 x""#,
    ];
    assert_eq!(notes.sorted(), expected);
}

/// Sends what a flow has sent in one second as one item.
#[derive(Default)]
struct Gather;

#[module]
impl Gather {
    fn run(&self, number: u64, numbers: &mut Vec<u64>, wake: &Wake) {
        numbers.push(number);
        wake.after(Duration::from_secs(1));
    }

    fn wake(&self, numbers: &mut Vec<u64>, out: &impl Out<Vec<u64>>) {
        out.send(std::mem::take(numbers));
    }
}

#[test]
fn a_flow_sleeps_until_its_alarm() {
    let (clock, runtime) = by_hand();
    let notes = Notes::default();
    runtime.block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Numbers>("numbers", Args::new().with("below", 6u64))
            .expect("free");
        graph.add::<Gather>("gather", Args::new()).expect("free");
        graph
            .add::<Note<Vec<u64>>>("note", notes.args())
            .expect("free");
        graph.connect("numbers", "gather").expect("both exist");
        graph.connect("gather", "note").expect("both exist");
        let running = graph.start().expect("it is whole");
        while running.stats("gather").expect("it exists").finished < 6 {
            tussah::yield_now().await;
        }
        clock.advance(Duration::from_millis(999));
        for _ in 0..100 {
            tussah::yield_now().await;
        }
        assert_eq!(notes.take(), [""; 0]);
        clock.advance(Duration::from_millis(1));
        while notes.0.lock().len() < 3 {
            tussah::yield_now().await;
        }
        running.drain().await;
    });
    // An alarm that was set again does not go off twice.
    assert_eq!(notes.sorted(), ["[0, 3]", "[1, 4]", "[2, 5]"]);
}

/// Sets an alarm for the number 0, and lets its time pass for another number.
struct Passes(Notes, ManualClock);

#[module]
impl Passes {
    fn init(notes: Notes, clock: ManualClock) -> Self {
        Self(notes, clock)
    }

    fn run(&self, number: u64, _state: &mut u64, wake: &Wake) {
        match number {
            0 => wake.after(Duration::from_secs(1)),
            _ => self.1.advance(Duration::from_secs(1)),
        }
    }

    fn wake(&self, _state: &mut u64) {
        self.0.add("woken");
    }
}

/// The worker handles both numbers before it has time for the alarm.
#[test]
fn the_time_of_an_alarm_begins_with_the_call_that_sets_it() {
    let (clock, runtime) = by_hand();
    let notes = Notes::default();
    runtime.block_on_spawned(async move {
        let mut graph = Graph::new("g");
        let args = notes.args().with("clock", clock);
        graph.add::<Passes>("passes", args).expect("it is new");
        let running = graph.start().expect("it is whole");
        let input = running.input("passes").expect("it takes numbers");
        for number in [0u64, 1] {
            input.send(number).await;
        }
        turns().await;
        assert_eq!(notes.take(), ["woken"]);
        running.drain().await;
    });
}

/// Passes numbers on in a flow for each, and closes that at once.
#[derive(Default)]
struct Split;

#[module]
impl Split {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.to(number, number);
        out.close(number);
    }
}

#[test]
fn a_flow_that_a_module_closes_while_the_graph_drains_ends() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph.add::<Split>("split", Args::new()).expect("free");
        graph.add::<Sums>("sums", Args::new()).expect("free");
        graph
            .add::<Note<String>>("note", notes.args())
            .expect("free");
        graph.connect("split", "sums").expect("both exist");
        graph.connect("sums", "note").expect("both exist");
        let running = graph.start().expect("it is whole");
        let input = running.input("split").expect("it takes numbers");
        for number in 0..100u64 {
            input.send(number).await;
        }
        running.drain().await;
    });
    assert_eq!(notes.take().len(), 100);
}

/// An instance that was added before the one that sends to it also ends a flow once.
#[test]
fn a_flow_ends_in_the_order_of_the_edges() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Note<String>>("note", notes.args())
            .expect("free");
        graph.add::<Counts>("second", Args::new()).expect("free");
        graph.add::<Counts>("first", Args::new()).expect("free");
        graph.add::<Sums>("sums", Args::new()).expect("free");
        graph
            .add::<Numbers>("numbers", Args::new().with("below", 1u64))
            .expect("free");
        for (from, to) in [
            ("numbers", "sums"),
            ("sums", "first"),
            ("first", "second"),
            ("second", "note"),
        ] {
            graph.connect(from, to).expect("both exist");
        }
        graph.start().expect("it is whole").drain().await;
    });
    let expected = [r#""0: [0]""#, r#""ended after 1""#, r#""ended after 2""#];
    assert_eq!(notes.take(), expected);
}

/// Sends numbers of seconds in a flow, and 0 for a panic.
#[derive(Default)]
struct Seconds;

#[module]
impl Seconds {
    async fn start(&self, out: &impl AsyncOut<u64>) {
        for seconds in [5, 0, 1] {
            out.to(0, seconds).await;
        }
        out.close(0);
    }
}

/// Sets an alarm after a number of seconds.
struct Alarm(Notes);

#[module]
impl Alarm {
    fn init(notes: Notes) -> Self {
        Self(notes)
    }

    fn run(&self, seconds: u64, last: &mut u64, wake: &Wake) {
        assert!(seconds != 0, "the alarm ends here");
        *last = seconds;
        wake.after(Duration::from_secs(seconds));
    }

    fn wake(&self, last: &mut u64) {
        self.0.add(*last);
    }
}

#[test]
fn a_panic_ends_the_alarm_of_its_flow() {
    let (clock, runtime) = by_hand();
    let notes = Notes::default();
    runtime.block_on(async {
        let mut graph = Graph::new("g");
        graph.add::<Seconds>("seconds", Args::new()).expect("free");
        graph.add::<Alarm>("alarm", notes.args()).expect("free");
        graph.connect("seconds", "alarm").expect("both exist");
        let running = graph.start().expect("it is whole");
        while running.stats("alarm").expect("it exists").finished < 3 {
            tussah::yield_now().await;
        }
        while notes.0.lock().is_empty() {
            clock.advance(Duration::from_millis(1));
            tussah::yield_now().await;
        }
        clock.advance(Duration::from_secs(10));
        // The flow ends when no alarm of it is set.
        running.drain().await;
    });
    assert_eq!(notes.take(), ["1"]);
}

/// A state whose destructor panics.
#[derive(Default)]
struct Bomb(bool);

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.0, "the second panic");
    }
}

#[derive(Default)]
struct Bombs;

#[module]
impl Bombs {
    fn run(&self, number: u64, bomb: &mut Bomb) {
        bomb.0 = true;
        assert!(number != 4, "the first panic");
    }
}

#[test]
fn the_destructor_of_a_state_may_panic_in_a_panic() {
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Numbers>("numbers", Args::new().with("below", 9u64))
            .expect("free");
        graph.add::<Bombs>("bombs", Args::new()).expect("free");
        graph.connect("numbers", "bombs").expect("both exist");
        let running = graph.start().expect("it is whole");
        running.drain().await;
        let stats = running.stats("bombs").expect("it exists");
        assert_eq!((stats.finished, stats.panicked), (9, 1));
    });
}

/// Sends each number in a flow of its own.
#[derive(Default)]
struct Bounded;

#[module(flows)]
impl Bounded {
    fn run(&mut self, number: u64, out: &impl Out<u64>) {
        out.to(number, number);
    }
}

/// Makes a graph that sums up flows of a bounded port.
fn bounded(notes: &Notes, args: Args) -> Result<tussah::flow::Running, tussah::flow::GraphError> {
    let mut graph = Graph::new("g");
    graph.add::<Bounded>("bounded", args)?;
    graph.add::<Sums>("sums", Args::new())?;
    graph.add::<Note<String>>("note", notes.args())?;
    graph.connect("bounded", "sums")?;
    graph.connect("sums", "note")?;
    graph.start()
}

#[test]
fn the_flow_that_was_idle_longest_ends_for_one_too_many() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let running = bounded(&notes, Args::new().with("flows", 2usize)).expect("it is whole");
        let input = running.input("bounded").expect("it takes numbers");
        for number in [0u64, 1, 0, 2, 0, 3, 2] {
            input.send(number).await;
        }
        running.drain().await;
        let error = bounded(&notes, Args::new().with("flows", 0usize)).expect_err("no flows");
        assert!(error.to_string().contains("`flows` is 0"), "{error}");
    });
    // The flows of 3 and the second of 2 stay open.
    assert_eq!(
        notes.sorted(),
        [r#""0: [0, 0, 0]""#, r#""1: [1]""#, r#""2: [2]""#]
    );
}

#[test]
fn a_flow_without_items_ends_after_its_idle_time() {
    let (clock, runtime) = by_hand();
    let notes = Notes::default();
    let noted = notes.clone();
    runtime.block_on_spawned(async move {
        let step = async |ms| {
            clock.advance(Duration::from_millis(ms));
            for _ in 0..1000 {
                tussah::yield_now().await;
            }
            noted.take()
        };
        let args = Args::new().with("idle", Duration::from_secs(1));
        let running = bounded(&noted, args).expect("it is whole");
        let input = running.input("bounded").expect("it takes numbers");
        input.send(0u64).await;
        assert_eq!(step(0).await, [""; 0]);
        assert_eq!(step(600).await, [""; 0]);
        input.send(1u64).await;
        assert_eq!(step(0).await, [""; 0]);
        assert_eq!(step(399).await, [""; 0]);
        assert_eq!(step(1).await, [r#""0: [0]""#]);
        input.send(1u64).await;
        assert_eq!(step(0).await, [""; 0]);
        assert_eq!(step(999).await, [""; 0]);
        assert_eq!(step(1).await, [r#""1: [1, 1]""#]);
        running.drain().await;
    });
}

/// Sends each number in a flow of its own, and closes none of them.
struct LeaveOpen(u64);

#[module]
impl LeaveOpen {
    fn init(flows: u64) -> Self {
        Self(flows)
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        for number in 0..self.0 {
            out.to(number, number).await;
        }
    }
}

/// Sends the number of each flow for its item, and again at its end.
#[derive(Default)]
struct FlowNumbers;

#[module]
impl FlowNumbers {
    fn run(&self, _number: u64, _state: &mut (), flow: &Flow, out: &impl Out<u64>) {
        out.send(flow.number());
    }

    fn end(&self, _state: (), flow: &Flow, out: &impl Out<u64>) {
        out.send(flow.number());
    }
}

#[test]
fn the_end_of_a_source_closes_its_flows_which_keep_their_numbers() {
    let (notes, flows) = (Notes::default(), 500u64);
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        let args = Args::new().with("flows", flows);
        graph.add::<LeaveOpen>("source", args).expect("free");
        graph
            .add::<FlowNumbers>("numbers", Args::new())
            .expect("free");
        graph.add::<Note<u64>>("note", notes.args()).expect("free");
        graph.connect("source", "numbers").expect("both exist");
        graph.connect("numbers", "note").expect("both exist");
        graph.start().expect("it is whole").drain().await;
    });
    let notes = notes.sorted();
    assert_eq!(notes.len() as u64, 2 * flows);
    assert!(notes.chunks(2).all(|two| two[0] == two[1]), "{notes:?}");
}

/// Ends if a number does not follow the last one of its flow.
#[derive(Default)]
struct InOrder;

#[module]
impl InOrder {
    fn run(&self, number: u64, next: &mut u64) {
        assert_eq!(number / 3, *next, "in order");
        *next += 1;
    }
}

#[test]
fn an_edge_that_delays_keeps_the_order() {
    runtime(4).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Numbers>("numbers", Args::new().with("below", 9000u64))
            .expect("free");
        graph.add::<InOrder>("order", Args::new()).expect("free");
        let via = Via::queue(9000).after(Duration::from_micros(1));
        graph
            .connect_via("numbers", "order", via)
            .expect("both exist");
        let running = graph.start().expect("it is whole");
        running.drain().await;
        let stats = running.stats("order").expect("it exists");
        assert_eq!((stats.finished, stats.panicked), (9000, 0));
    });
}

/// A call has no queue, but its edge has room for the items that it delays.
#[test]
fn a_call_can_be_delayed() {
    let (clock, runtime) = by_hand();
    let notes = Notes::default();
    runtime.block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Numbers>("numbers", Args::new().with("below", 9u64))
            .expect("free");
        graph.add::<Note<u64>>("note", notes.args()).expect("free");
        let via = Via::call().after(Duration::from_secs(1));
        graph
            .connect_via("numbers", "note", via)
            .expect("both exist");
        let running = graph.start().expect("it is whole");
        let passes = async {
            loop {
                for _ in 0..100 {
                    tussah::yield_now().await;
                }
                clock.advance(Duration::from_secs(1));
            }
        };
        futures_lite::future::or(running.drain(), passes).await;
    });
    assert_eq!(notes.take().len(), 9);
}

/// Counts numbers, and sends nothing before the end of a flow.
#[derive(Default)]
struct CountsNumbers;

#[module]
impl CountsNumbers {
    fn run(&self, number: u64, count: &mut u64, out: &impl Out<u64>) {
        *count += 1;
        out.send(number);
    }

    fn end(&self, count: u64, out: &impl Out<u64>) {
        out.send(count);
    }
}

/// The instances are gone when the flow ends.
#[test]
fn a_flow_may_end_in_many_instances_that_are_gone() {
    const INSTANCES: usize = 500;
    let runtime = runtime(2);
    runtime.block_on(async {
        let mut graph = Graph::new("g");
        let args = Args::new().with("limit", tussah::sync::Limit::new("open", 0));
        graph.add::<KeepOpen>("source", args).expect("free");
        let mut from = "source".to_owned();
        for number in 0..INSTANCES {
            let name = format!("counts{number}");
            graph
                .add::<CountsNumbers>(&name, Args::new())
                .expect("free");
            graph.connect(&from, &name).expect("both exist");
            from = name;
        }
        let notes = Notes::default();
        graph.add::<Note<u64>>("note", notes.args()).expect("free");
        graph.connect(&from, "note").expect("both exist");
        let running = graph.start().expect("it is whole");
        while running.stats("note").expect("it exists").finished < 1 {
            tussah::yield_now().await;
        }
    });
    drop(runtime);
}

/// Sends a number in a flow that stays open.
struct KeepOpen(tussah::sync::Limit);

#[module]
impl KeepOpen {
    fn init(limit: tussah::sync::Limit) -> Self {
        Self(limit)
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        out.to(0, 0).await;
        let _permit = self.0.acquire().await;
    }
}
