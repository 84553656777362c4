//! Fused chains: the same results in the same order as with queues.

use std::any::type_name_of_val;
use std::sync::Arc;

use tussah::flow::expansion::{Along, Fuse, Module, port_number};
use tussah::flow::{AsyncOut, Dropped, Graph, Modules, Out, Params, module, weave};
use tussah::sync::Semaphore;

use super::{Note as AnyNote, Notes};
use crate::runtime;

pub(super) type Note = AnyNote<u64>;
pub(super) type NoteDropped = AnyNote<Dropped<u64>>;

pub(super) struct Numbers(u64);

#[module]
impl Numbers {
    fn init(items: u64) -> Self {
        Self(items)
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        for number in 0..self.0 {
            out.send(number).await;
        }
    }
}

/// The permits of a source.
#[derive(Clone)]
struct Go(Arc<Semaphore>);

/// Sends a number for each permit.
struct Late(Go);

#[module]
impl Late {
    fn init(go: Go) -> Self {
        Self(go)
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        for number in 0..20 {
            self.0.0.acquire().await.forget();
            out.send(number).await;
        }
    }
}

/// Adds a number, and sends some results twice or not at all.
struct Add(u64);

#[module]
impl Add {
    fn init(number: u64) -> Self {
        Self(number)
    }

    fn run(&self, number: u64, out: &impl Out<u64>, twice: &impl Out<u64>) {
        let sum = number + self.0;
        match sum % 7 {
            0 => {}
            1 => {
                out.send(sum);
                twice.send(sum);
                out.send(sum + 1);
            }
            _ => out.send(sum),
        }
    }
}

/// Fails for some numbers, and panics for others.
#[derive(Default)]
struct Check;

#[module]
impl Check {
    fn run(&self, number: u64, out: &impl Out<u64>) -> Result<(), u64> {
        out.send(number);
        assert!(number % 13 != 5, "{number}");
        if number.is_multiple_of(5) {
            Err(number)
        } else {
            Ok(())
        }
    }
}

/// Sends the sum of all numbers so far. It panics twice, and then begins anew.
#[derive(Default)]
struct Sum(u64);

#[module]
impl Sum {
    fn run(&mut self, number: u64, out: &impl Out<u64>) {
        assert!(number != 60 && number != 90, "{number}");
        self.0 += number;
        out.send(self.0);
    }
}

/// A module, with its number among the modules of chains.
trait Link: Module {
    const NUMBER: u64;
}

impl Link for Add {
    const NUMBER: u64 = 0;
}

impl Link for Check {
    const NUMBER: u64 = 2;
}

impl Link for Sum {
    const NUMBER: u64 = 3;
}

/// A chain of four modules, which a number chooses, and the ways that the compiler makes for it.
type Chain = (u64, fn(&mut Graph));

const OUT: u64 = port_number("out");

const fn chain<A: Link, B: Link, C: Link, D: Link>() -> Chain {
    let seed = A::NUMBER | B::NUMBER << 2 | C::NUMBER << 4 | D::NUMBER << 6;
    let fuse = |graph: &mut Graph| {
        graph.fuse::<A, Fuse<OUT, A, B, Fuse<OUT, A, C, Fuse<OUT, A, D, Along>>>>("a");
    };
    (seed, fuse)
}

/// The edges between the modules of a chain.
#[derive(Clone, Copy, Debug)]
enum Edges {
    Queued,
    /// Calls in an interpreted graph.
    Called,
    /// Calls in a compiled graph.
    Fused(fn(&mut Graph)),
}

/// The results of a chain.
#[derive(PartialEq, Eq, Debug)]
struct Results {
    /// The items that arrive at each port.
    notes: Vec<Vec<String>>,
    panicked: Vec<u64>,
    /// The numbers of calls, of items that failed, and of those that panics ended.
    calls: Vec<[u64; 3]>,
}

/// Runs a chain of four modules, which a number chooses. `room` is that of the queues at the ends.
fn results(seed: u64, edges: Edges, room: u64) -> Results {
    const MODULES: [&str; 4] = ["Add(1)", "Add(4)", "Check()", "Sum()"];
    let mut text = "use Numbers, Add, Check, Sum, Note, NoteDropped graph G(\n".to_owned();
    let (mut params, mut body) = (Params::new(), "numbers = Numbers(200)\n".to_owned());
    let mut all = Vec::new();
    let mut note = |port: &str, body: &mut String, module: &str| {
        let (notes, name) = (Notes::default(), format!("note_{}", all.len()));
        text.push_str(&format!("{name}_to: Notes,\n"));
        body.push_str(&format!("{name} = {module}({name}_to)\n"));
        // Sending to `dropped` never waits, so that port needs room for all items.
        match port.ends_with(".dropped") {
            true => body.push_str(&format!("{port} -> {name}\n")),
            false => body.push_str(&format!("{port} -> {name} via queue({room})\n")),
        }
        params = std::mem::take(&mut params).typed(&format!("{name}_to"), notes.clone());
        all.push(notes);
    };
    for (at, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
        let module = MODULES[(seed >> (2 * at) & 3) as usize];
        body.push_str(&format!("{name} = {module}\n"));
        note(&format!("{name}.dropped"), &mut body, "NoteDropped");
        match module {
            "Check()" => note(&format!("{name}.failed"), &mut body, "Note"),
            "Sum()" => {}
            _ => note(&format!("{name}.twice"), &mut body, "Note"),
        }
    }
    note("d", &mut body, "Note");
    let fuse = match edges {
        Edges::Queued => "",
        Edges::Called | Edges::Fused(_) => "fuse",
    };
    text.push_str(&format!(
        ") {{ {body} numbers -> a\n {fuse} a -> b -> c -> d }}"
    ));
    let modules = Modules::new().with::<Numbers>("Numbers").with::<Add>("Add");
    let modules = modules.with::<Check>("Check").with::<Sum>("Sum");
    let modules = modules
        .with::<Note>("Note")
        .with::<NoteDropped>("NoteDropped");
    // One worker, so that queues keep the order.
    runtime(1).block_on(async {
        let graph = modules.graph("g.weave", &text, &params);
        let mut graph = graph.expect("the text is right");
        if let Edges::Fused(fuse) = edges {
            fuse(&mut graph);
        }
        let running = graph.start().expect("it is whole");
        running.drain().await;
        let stats = ["b", "c", "d"].map(|name| running.stats(name).expect("it exists"));
        for stats in &stats {
            // Nothing has been in a queue.
            assert_eq!(
                stats.finished == 0,
                !matches!(edges, Edges::Queued),
                "{text}"
            );
        }
        let calls = stats.iter().map(|it| [it.called, it.failed, it.lost]);
        Results {
            notes: all.into_iter().map(|notes| notes.take()).collect(),
            panicked: stats.iter().map(|it| it.panicked).collect(),
            calls: calls.collect(),
        }
    })
}

#[test]
fn called_and_queued_chains_send_the_same() {
    for seed in (0..256).step_by(5) {
        let queued = results(seed, Edges::Queued, 1024);
        let called = results(seed, Edges::Called, 1024);
        assert_eq!(called.notes, queued.notes, "{seed}");
        assert_eq!(called.panicked, queued.panicked, "{seed}");
    }
}

#[test]
fn fused_and_queued_chains_send_the_same() {
    const CHAINS: &[Chain] = &[
        chain::<Add, Add, Check, Sum>(),
        chain::<Add, Sum, Check, Add>(),
        chain::<Check, Sum, Sum, Add>(),
        chain::<Sum, Add, Check, Sum>(),
        chain::<Sum, Sum, Add, Check>(),
        chain::<Sum, Check, Add, Add>(),
    ];
    for &(seed, fuse) in CHAINS {
        let called = results(seed, Edges::Called, 1024);
        assert_eq!(
            called.notes,
            results(seed, Edges::Queued, 1024).notes,
            "{seed}"
        );
        // With little room, what the modules send has to wait. While a call of another module than
        // `Sum` waits, that module handles the next number.
        let rooms: &[u64] = match seed & 3 == Sum::NUMBER {
            true => &[1, 3, 1024],
            false => &[1024],
        };
        for &room in rooms {
            assert_eq!(results(seed, Edges::Fused(fuse), room), called, "{seed}");
        }
    }
}

/// Sends the type of its port instead of each number.
#[derive(Default)]
struct TypeOfPort;

#[module]
impl TypeOfPort {
    fn run(&mut self, _number: u64, out: &impl Out<String>) {
        out.send(type_name_of_val(out).to_owned());
    }
}

#[derive(Default)]
struct Pass;

#[module]
impl Pass {
    fn run(&mut self, text: String, out: &impl Out<String>) {
        out.send(text);
    }
}

type Text = AnyNote<String>;

weave! {
    use Late, Sum, TypeOfPort, Pass, Text

    graph Inlined(go: Go, notes: Notes) {
        numbers = Late(go)
        sum = Sum()
        middle = TypeOfPort()
        pass = Pass()
        note = Text(notes)
        numbers -> sum
        fuse sum -> middle -> pass
        pass -> note
    }
}

/// Returns the parameters of `Inlined`, and the permits of its source.
fn inlined(notes: &Notes) -> (Params, Go) {
    let go = Go(Arc::new(Semaphore::new(0)));
    let params = Params::new().typed("notes", notes.clone());
    (params.typed("go", go.clone()), go)
}

/// Returns what the graph sends, with the edges of a text.
fn types(graph: impl FnOnce(&Params) -> Graph) -> Vec<String> {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let (params, go) = inlined(&notes);
        let running = graph(&params).start().expect("it is whole");
        go.0.add_permits(20);
        running.drain().await;
        let stats = ["middle", "pass"].map(|name| running.stats(name).expect("it exists"));
        assert_eq!(
            stats.map(|stats| (stats.called, stats.finished)),
            [(20, 0); 2]
        );
    });
    notes.take()
}

#[test]
fn the_compiler_knows_the_next_module_of_a_compiled_chain() {
    let compiled = types(|params| Inlined::graph(params).expect("the text is right"));
    assert_eq!(compiled.len(), 20);
    for of in compiled {
        assert!(of.contains("Fuse<") && of.contains("Pass"), "{of}");
    }
    let interpreted = types(|params| {
        let graph = Inlined::modules().graph("g.weave", Inlined::TEXT, params);
        graph.expect("the text is right")
    });
    assert!(interpreted.iter().all(|of| !of.contains("Fuse<")));
}

#[test]
fn a_tap_sees_the_items_of_a_fused_chain() {
    let notes = Notes::default();
    runtime(1).block_on(async {
        let (params, go) = inlined(&notes);
        let running = Inlined::graph(&params)
            .expect("the text is right")
            .start()
            .expect("it is whole");
        let mut tap = running.tap("sum -> middle").expect("the edge exists");
        go.0.add_permits(20);
        running.drain().await;
        let mut sum = 0;
        for number in 0..20_u64 {
            sum += number;
            let item = tap.try_next().expect("the tap has room for all items");
            assert_eq!(item.text, sum.to_string());
        }
        assert!(tap.try_next().is_none());
    });
    // A tapped edge is a call that the compiler does not know.
    let of = notes.take();
    assert_eq!(of.len(), 20);
    assert!(of.iter().all(|of| !of.contains("Fuse<")), "{of:?}");
}

#[test]
fn each_instance_of_a_fused_chain_notes_a_trace() {
    let notes = Notes::default();
    runtime(1).block_on(async {
        let (params, go) = inlined(&notes);
        let running = Inlined::graph(&params)
            .expect("the text is right")
            .start()
            .expect("it is whole");
        running.network().trace_one_in(2);
        go.0.add_permits(20);
        running.drain().await;
        let traces = running.network().traces();
        let of = |name| traces.spans.iter().filter(move |span| &*span.stage == name);
        let traced: Vec<_> = of("sum").map(|span| span.trace).collect();
        assert_eq!(traced.len(), 10);
        for name in ["middle", "pass", "note"] {
            let here: Vec<_> = of(name).map(|span| span.trace).collect();
            assert_eq!(here, traced, "{name}");
        }
    });
    // Items without a trace in the same batch take the static calls.
    let of = notes.take();
    assert_eq!(of.iter().filter(|of| of.contains("Fuse<")).count(), 10);
}

/// Sends each number on, several at a time.
#[derive(Default)]
pub(super) struct Shared;

#[module]
impl Shared {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

/// Adds a number to each type, and ticks.
#[derive(Default)]
struct Ticking(u64);

#[module]
impl Ticking {
    fn run(&mut self, text: String, out: &impl Out<String>) {
        self.0 += 1;
        out.send(format!("{} {text} {}", self.0, type_name_of_val(out)));
    }

    fn tick(&mut self) {}
}

weave! {
    use Numbers, Shared, Ticking, TypeOfPort, Pass, Text

    graph SharedHead(notes: Notes) {
        numbers = Numbers(2000)
        shared = Shared()
        middle = TypeOfPort()
        ticking = Ticking(every: 1 ms)
        pass = Pass()
        note = Text(notes)
        numbers -> shared
        fuse shared -> middle -> ticking -> pass
        pass -> note via queue(3)
    }
}

#[test]
fn the_compiler_knows_serial_modules_behind_one_that_is_not() {
    for workers in [1, 2] {
        let notes = Notes::default();
        runtime(workers).block_on(async {
            let graph = SharedHead::graph(&Params::new().typed("notes", notes.clone()));
            let running = graph
                .expect("the text is right")
                .start()
                .expect("it is whole");
            running.drain().await;
            let stats = ["middle", "ticking", "pass"].map(|name| running.stats(name));
            let called = stats.map(|stats| stats.expect("it exists").called);
            assert_eq!(called, [2000; 3]);
        });
        let of = notes.take();
        // One item at a time. Two workers may hand over what they sent in another order.
        let number = |text: &String| text[1..].split(' ').next().expect("it has one").parse();
        let mut numbers: Vec<u64> = of.iter().flat_map(number).collect();
        if workers > 1 {
            numbers.sort_unstable();
        }
        assert!(numbers.into_iter().eq(1..=2000), "{of:?}");
        let known = of.iter().filter(|of| of.matches("Fuse<").count() >= 2);
        // Items that find no room, or an instance in use, take the edges.
        assert!(known.count() > 0, "{of:?}");
    }
}
