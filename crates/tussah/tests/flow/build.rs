//! Graphs that cannot start, and why.

use tussah::flow::{Args, AsyncOut, Graph, GraphError, Out, Via, WhenFull, module};

use super::{Note, Notes, name_of};
use crate::{run, runtime};

#[derive(Default)]
struct Pass;

#[module]
impl Pass {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

/// A module whose name is that of a type parameter in traits of the macro.
#[derive(Default)]
struct At;

#[module]
impl At {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

/// A type that cannot be cloned.
#[derive(Debug)]
struct Whole;

#[derive(Default)]
struct Wrap;

#[module]
impl Wrap {
    fn run(&self, _number: u64, out: &impl Out<Whole>) {
        out.send(Whole);
    }
}

/// Notes that it is made.
struct Made;

#[module]
impl Made {
    fn init(notes: Notes) -> Self {
        notes.add("made");
        Self
    }

    fn run(&self, number: u64, out: Option<&impl Out<u64>>) {
        if let Some(out) = out {
            out.send(number);
        }
    }
}

/// Fails to be made if the number is odd.
struct Even;

#[module]
impl Even {
    fn init(number: u64, notes: Option<Notes>) -> Result<Self, String> {
        if let Some(notes) = notes {
            notes.add("made");
        }
        match number % 2 {
            0 => Ok(Self),
            _ => Err(format!("{number} is odd")),
        }
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        out.send(0).await;
    }
}

#[test]
fn a_name_can_be_taken_once() {
    let mut graph = Graph::new("g");
    let added = format!("{}:{}:24", file!(), line!() + 1);
    let result = graph.add::<At>("pass", Args::new());
    result.expect("the name is free");
    let error = graph
        .add::<Wrap>("pass", Args::new())
        .expect_err("it is taken");
    assert_eq!(
        error.to_string(),
        format!("there is an instance `pass` already, added at {added}: expected another name")
    );
}

#[test]
fn an_argument_needs_a_parameter() {
    let mut graph = Graph::new("g");
    let args = Args::new().with("nomber", 2u64);
    let error = graph.add::<Even>("even", args).expect_err("it is unknown");
    assert_eq!(
        error.to_string(),
        "the instance `even` could not be made: the argument `nomber` is unknown: expected `number`, `notes`"
    );
    let error = graph.add::<Pass>("pass", Args::new().with("a", 1));
    let error = error.expect_err("it is unknown").to_string();
    assert!(
        error.ends_with("the argument `a` is unknown: expected none"),
        "{error}"
    );
}

#[test]
fn an_edge_needs_two_instances() {
    let mut graph = Graph::new("g");
    graph
        .add::<Pass>("pass", Args::new())
        .expect("the name is free");
    let error = graph.connect("pass", "next").expect_err("there is none");
    assert_eq!(
        error.to_string(),
        "there is no instance `next`: expected one of `pass`"
    );
}

/// Starts a graph in a runtime, and returns its error.
fn error_of(
    make: impl FnOnce(&mut Graph) -> Result<(), GraphError> + Send + 'static,
) -> GraphError {
    run(async move {
        let mut graph = Graph::new("g");
        make(&mut graph).expect("its parts are known");
        graph.start().expect_err("it is wrong")
    })
}

#[test]
fn an_edge_needs_two_ports() {
    let error = error_of(|graph| {
        graph.add::<Pass>("pass", Args::new())?;
        graph.add::<Note<u64>>("note", Notes::default().args())?;
        graph.connect("pass.miss", "note")
    });
    assert_eq!(
        error.to_string(),
        "the instance `pass` has no port `miss`: expected one of `out`, `dropped`"
    );
    let error = error_of(|graph| {
        graph.add::<Pass>("pass", Args::new())?;
        graph.add::<Note<u64>>("note", Notes::default().args())?;
        graph.connect("pass", "note.loaded")
    });
    assert_eq!(
        error.to_string(),
        "the instance `note` has no port `loaded`: expected one of `run`"
    );
}

#[test]
fn the_ends_of_an_edge_have_one_type() {
    let error = error_of(|graph| {
        graph.add::<Wrap>("wrap", Args::new())?;
        graph.add::<Note<u64>>("note", Notes::default().args())?;
        graph.connect("wrap", "note")
    });
    let expected = GraphError::WrongType {
        from: "wrap.out".to_owned(),
        sends: name_of::<Whole>(),
        to: "note.run".to_owned(),
        takes: "u64",
    };
    assert_eq!(error, expected);
}

#[test]
fn items_of_several_edges_can_be_cloned() {
    let error = error_of(|graph| {
        graph.add::<Wrap>("wrap", Args::new())?;
        graph.add::<Note<Whole>>("one", Notes::default().args())?;
        graph.add::<Note<Whole>>("other", Notes::default().args())?;
        graph.connect("wrap", "one")?;
        graph.connect("wrap", "other")
    });
    let expected = GraphError::NotClone {
        from: "wrap.out".to_owned(),
        item: name_of::<Whole>(),
    };
    assert_eq!(error, expected);
}

#[test]
fn an_output_needs_an_edge() {
    let error = error_of(|graph| graph.add::<Pass>("pass", Args::new()));
    assert_eq!(error.to_string(), "the port `pass.out` has no edge");
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[test]
fn a_cycle_of_edges_that_wait_is_refused() {
    let error = error_of(|graph| {
        graph.add::<Pass>("one", Args::new())?;
        graph.add::<Pass>("other", Args::new())?;
        graph.connect("one", "other")?;
        graph.connect("other", "one")
    });
    assert_eq!(
        error.to_string(),
        "the edges close a cycle in which all could wait for each other: other -> one -> other; \
         let one of these edges drop items, with `WhenFull::Shed` or `WhenFull::DropOldest`"
    );
}

#[test]
fn a_cycle_with_an_edge_that_sheds_runs() {
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Pass>("one", Args::new())
            .expect("the name is free");
        graph
            .add::<Pass>("other", Args::new())
            .expect("the name is free");
        graph.connect("one", "other").expect("both exist");
        let back = Via::queue(10).when_full(WhenFull::Shed);
        graph.connect_via("other", "one", back).expect("both exist");
        let running = graph.start().expect("the cycle cannot stand still");
        running
            .input("one")
            .expect("it takes numbers")
            .send(1u64)
            .await;
        let mut stats = running.stats("other").expect("it exists");
        while stats.finished < 100 {
            tussah::yield_now().await;
            stats = running.stats("other").expect("it exists");
        }
        running.stop().await;
    });
}

#[test]
fn a_graph_that_cannot_start_leaves_nothing() {
    runtime(2).block_on(async {
        let notes = Notes::default();
        let mut graph = Graph::new("g");
        let args = Args::new()
            .with("number", 2u64)
            .with("notes", notes.clone());
        graph.add::<Even>("two", args).expect("the name is free");
        let args = Args::new().with("number", 3u64);
        let position = format!("{}:{}:15", file!(), line!() + 1);
        graph.add::<Even>("three", args).expect("the name is free");
        graph
            .add::<Note<u64>>("note", notes.args())
            .expect("the name is free");
        graph.connect("two", "note").expect("both exist");
        graph.connect("three", "note").expect("both exist");
        let error = graph.start().expect_err("three is odd").to_string();
        let expected = format!("the instance `three` at {position} could not be made: 3 is odd");
        assert_eq!(error, expected);
        // The module that was made is gone, and so is the copy of the notes that it held. The
        // source did not get to send anything.
        while std::sync::Arc::strong_count(&notes.0) > 1 {
            tussah::yield_now().await;
        }
        assert_eq!(notes.take(), ["made"]);
    });
}

#[test]
fn an_argument_has_the_type_of_its_parameter() {
    let place = format!("{}:{}:15", file!(), line!() + 2);
    let error = error_of(|graph| {
        graph.add::<Even>("even", Args::new().with("number", 2i32))?;
        graph.add::<Note<u64>>("note", Notes::default().args())?;
        graph.connect("even", "note")
    });
    assert_eq!(
        error.to_string(),
        format!(
            "the instance `even` at {place} could not be made: the argument `number` is a `i32`: \
             expected a `u64`"
        )
    );
    let place = format!("{}:{}:15", file!(), line!() + 2);
    let error = error_of(|graph| {
        graph.add::<Even>("even", Args::new())?;
        graph.add::<Note<u64>>("note", Notes::default().args())?;
        graph.connect("even", "note")
    });
    assert_eq!(
        error.to_string(),
        format!(
            "the instance `even` at {place} could not be made: the argument `number` is missing: \
             expected a `u64`"
        )
    );
}

#[test]
fn an_input_is_checked() {
    run(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Note<u64>>("note", Notes::default().args())
            .expect("the name is free");
        let running = graph.start().expect("it is whole");
        let error = running
            .input::<u32>("note")
            .expect_err("it takes u64")
            .to_string();
        assert_eq!(
            error,
            "`the caller` sends `u32`, but `note.run` takes `u64`"
        );
        let error = running
            .input::<u64>("note.a")
            .expect_err("there is none")
            .to_string();
        assert_eq!(
            error,
            "the instance `note` has no port `a`: expected one of `run`"
        );
        let error = running
            .input::<u64>("nota")
            .expect_err("there is none")
            .to_string();
        assert_eq!(error, "there is no instance `nota`: expected one of `note`");
        running.drain().await;
    });
}

/// Panics while it is made.
pub(super) struct Unmade;

#[module]
impl Unmade {
    fn init() -> Self {
        panic!("it cannot be made")
    }

    fn run(&self, _number: u64) {}
}

/// Opens flows, and ticks.
#[derive(Default)]
struct Flowing;

#[module(flows)]
impl Flowing {
    fn run(&mut self, number: u64, out: &impl Out<u64>) {
        out.to(number, number);
    }

    fn tick(&mut self) {}
}

#[test]
fn arguments_are_checked_before_an_instance_is_made() {
    let check = |args: Args, expected: &str| {
        let error = error_of(|graph| {
            graph.add::<Unmade>("unmade", Args::new())?;
            graph.add::<Flowing>("flowing", args)?;
            graph.connect("flowing", "unmade")
        });
        let error = error.to_string();
        assert!(error.contains(expected), "{error}");
    };
    let every = |every: u64| Args::new().with("every", std::time::Duration::from_secs(every));
    check(Args::new(), "`every` is missing");
    check(every(0), "`every` is zero");
    check(every(1).with("flows", 0_usize), "`flows` is 0");
    check(every(1).with("flows", 1_u8), "`flows` is a `u8`");
    check(
        every(1).with("idle", std::time::Duration::ZERO),
        "`idle` is 0",
    );
}

/// Holds notes as long as it is there.
struct Hold(Notes);

#[module]
impl Hold {
    fn init(notes: Notes) -> Self {
        Self(notes)
    }

    fn run(&self, number: u64, out: &impl Out<u64>) {
        self.0.add(number);
        out.send(number);
    }
}

/// Panics while it is made, with a value whose destructor panics.
struct Bomb;

#[module]
impl Bomb {
    fn init() -> Self {
        std::panic::panic_any(PanicsOnDrop)
    }

    fn run(&self, _number: u64) {}
}

struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("expected: a destructor that panics");
    }
}

#[test]
fn a_panic_of_init_is_an_error() {
    fn check<M: tussah::flow::Module>(expected: &str) {
        let error = error_of(|graph| graph.add::<M>("module", Args::new()));
        let error = error.to_string();
        assert!(error.ends_with(expected), "{error}");
    }
    check::<Unmade>(" could not be made: `init` panicked: it cannot be made");
    check::<Bomb>("`init` panicked with a value that is no text");
}

#[test]
fn a_graph_whose_instance_panics_leaves_nothing() {
    runtime(2).block_on(async {
        let notes = Notes::default();
        let mut graph = Graph::new("g");
        graph
            .add::<Hold>("hold", notes.args())
            .expect("the name is free");
        graph
            .add::<Unmade>("unmade", Args::new())
            .expect("the name is free");
        graph.connect("hold", "unmade").expect("both exist");
        graph.start().expect_err("an instance panics");
        while std::sync::Arc::strong_count(&notes.0) > 1 {
            tussah::yield_now().await;
        }
    });
}

/// Blocks its OS thread.
#[derive(Default)]
struct Block;

#[module(blocking)]
impl Block {
    fn run(&self, _number: u64) {}
}

#[test]
fn a_module_that_blocks_cannot_be_called() {
    runtime(1).block_on(async {
        let position = format!("`block` is created at {}:{}:", file!(), line!() + 6);
        for names in [["pass", "block"], ["block", "pass"]] {
            let mut graph = Graph::new("g");
            for name in names {
                match name {
                    "pass" => graph.add::<Pass>(name, Args::new()),
                    _ => graph.add::<Block>(name, Args::new()),
                }
                .expect("the name is free");
            }
            graph
                .connect_via("pass", "block", Via::call())
                .expect("both exist");
            let error = graph.start().expect_err("it blocks");
            let error = error.to_string();
            assert!(error.contains("`block` blocks"), "{error}");
            assert!(error.contains(&position), "{error}");
        }
    });
}

#[test]
fn wrong_edges_are_refused_before_an_instance_is_made() {
    type Connect = fn(&mut Graph) -> Result<(), GraphError>;
    let check = |connect: Connect, expected: &str| {
        let (notes, args) = (Notes::default(), Notes::args);
        let made = notes.clone();
        let error = error_of(move |graph| {
            for name in ["one", "two", "three"] {
                graph.add::<Made>(name, args(&made))?;
            }
            graph.add_shards::<Made>("shards", 2, None, args(&made))?;
            graph.add::<Block>("block", Args::new())?;
            connect(graph)
        });
        let error = error.to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(notes.take(), [""; 0]);
    };
    check(
        |graph| {
            graph.connect("one", "two")?;
            graph.connect("two", "three")?;
            graph.connect("three", "two")
        },
        "three -> two -> three",
    );
    check(
        |graph| {
            graph.connect_via("one", "two", Via::call())?;
            graph.connect("one", "three")?;
            graph.connect("two", "shards")?;
            graph.connect("shards", "one")
        },
        "shards#0 -> one -> two -> shards#0",
    );
    check(|graph| graph.connect("two", "two"), "two -> two");
    check(
        |graph| graph.connect_via("one", "block", Via::call()),
        "`block` blocks",
    );
}
