//! Modules of flow graphs that panic in each of their methods, and in the destructors of what they
//! own.

use std::time::Duration;

use tussah::Runtime;
use tussah::flow::{Args, AsyncOut, Graph, Module, Wake, module};

use super::{Count, Row, Shouts, throw};

/// The number of items in each row.
const ITEMS: usize = 12;

pub(super) const ROWS: &[Row] = &[
    Row {
        place: "a module: the method `run`, and itself",
        run: |runtime| {
            let (called, dropped) = (Count::default(), Count::default());
            drained::<Runs>(runtime, args(&called, &dropped));
            assert_eq!(called.get(), ITEMS);
            dropped.until(1);
        },
    },
    Row {
        place: "a serial module: the method `run`, itself, and its maker",
        run: |runtime| {
            let (called, dropped) = (Count::default(), Count::default());
            drained::<RunsSerially>(runtime, args(&called, &dropped));
            // It may be made anew five times a minute, and its fourth maker panics.
            assert_eq!(called.get(), 3);
            dropped.until(3);
        },
    },
    Row {
        place: "a module with flows: its methods, and the destructors of the states",
        run: |runtime| {
            let (ended, dropped) = (Count::default(), Count::default());
            drained::<Flows>(runtime, args(&ended, &dropped));
            assert_eq!(dropped.get(), ITEMS);
            assert!(ended.get() >= ITEMS / 3, "{}", ended.get());
        },
    },
    Row {
        place: "a module: the methods `start` and `tick`",
        run: |runtime| {
            let (called, dropped) = (Count::default(), Count::default());
            let args = args(&called, &dropped).with("every", Duration::from_millis(1));
            let mut graph = Graph::new("graph");
            graph.add::<Produces>("module", args).expect("it is new");
            runtime.block_on(async {
                let running = graph.start().expect("it is whole");
                while called.get() < 3 {
                    tussah::yield_now().await;
                }
                running.drain().await;
                assert_eq!(running.failures().len(), 1);
            });
        },
    },
    Row {
        place: "the items of a graph: their destructors, after a module has panicked and as it stops",
        run: |runtime| {
            let (called, dropped) = (Count::default(), Count::default());
            let mut graph = Graph::new("graph");
            let module = graph.add::<Takes>("module", args(&called, &Count::default()));
            module.expect("it is new");
            runtime.block_on(async {
                let running = graph.start().expect("it is whole");
                let input = running.input("module").expect("it takes items");
                for _ in 0..ITEMS {
                    input.send(Item(dropped.shouts())).await;
                }
                running.stop_within(Duration::ZERO).await;
            });
            dropped.until(ITEMS);
        },
    },
];

fn args(called: &Count, dropped: &Count) -> Args {
    let args = Args::new().with("called", called.clone());
    args.with("dropped", dropped.clone())
}

/// Sends all items through a module, and drains the graph.
fn drained<M: Module>(runtime: &Runtime, args: Args) {
    let mut graph = Graph::new("graph");
    let numbers = graph.add::<Numbers>("numbers", Args::new());
    numbers.expect("it is new");
    graph.add::<M>("module", args).expect("it is new");
    graph.connect("numbers", "module").expect("both exist");
    runtime.block_on(async { graph.start().expect("it is whole").drain().await });
}

/// Sends each number in a flow of its own.
#[derive(Default)]
struct Numbers;

#[module]
impl Numbers {
    async fn start(&self, out: &impl AsyncOut<u64>) {
        for number in 0..ITEMS as u64 {
            out.to(number, number).await;
            out.close(number);
        }
    }
}

/// Panics at each item, and when it is dropped.
struct Runs(
    Count,
    #[expect(dead_code, reason = "its destructor matters")] Shouts,
);

#[module]
impl Runs {
    fn init(called: Count, dropped: Count) -> Self {
        Self(called, dropped.shouts())
    }

    fn run(&self, _number: u64) {
        self.0.add();
        throw()
    }
}

/// Panics at each item, when it is dropped, and when it is made for the fourth time.
struct RunsSerially(
    Count,
    #[expect(dead_code, reason = "its destructor matters")] Shouts,
);

#[module]
impl RunsSerially {
    fn init(called: Count, dropped: Count) -> Self {
        if called.get() == 3 {
            throw();
        }
        Self(called, dropped.shouts())
    }

    fn run(&mut self, _number: u64) {
        self.0.add();
        throw()
    }
}

/// A state that panics when it is dropped.
#[derive(Default)]
struct State(#[expect(dead_code, reason = "its destructor matters")] Option<Shouts>);

/// Panics at a third of the items, at the alarm for another third, and at the end of other flows.
struct Flows {
    ended: Count,
    dropped: Count,
}

#[module]
impl Flows {
    fn init(called: Count, dropped: Count) -> Self {
        Self {
            ended: called,
            dropped,
        }
    }

    fn run(&self, number: u64, state: &mut State, wake: &Wake) {
        *state = State(Some(self.dropped.shouts()));
        match number % 3 {
            0 => throw(),
            1 => wake.after(Duration::ZERO),
            _ => {}
        }
    }

    fn wake(&self, _state: &mut State) {
        throw()
    }

    fn end(&self, state: State) {
        self.ended.add();
        // The next line panics. Two panics of one call would abort the process.
        drop(state);
    }
}

/// Panics at its start, and at each tick.
struct Produces(Count);

#[module]
impl Produces {
    fn init(called: Count, dropped: Count) -> Self {
        drop(dropped);
        Self(called)
    }

    async fn start(&self) {
        throw()
    }

    fn run(&self, _number: u64) {}

    fn tick(&self) {
        self.0.add();
        throw()
    }
}

/// An item that panics when it is dropped.
struct Item(#[expect(dead_code, reason = "its destructor matters")] Shouts);

/// Panics at each item, because it drops the item.
struct Takes(Count);

#[module]
impl Takes {
    fn init(called: Count, dropped: Count) -> Self {
        drop(dropped);
        Self(called)
    }

    fn run(&self, item: Item) {
        self.0.add();
        drop(item);
    }
}
