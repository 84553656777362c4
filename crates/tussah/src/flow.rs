//! Flow graphs: a service consists of modules, written as serial code, and of a graph that connects
//! them.
//!
//! A *module* is a plain struct whose `impl` block has the attribute [`#[module]`](module). A
//! module receives items at its input ports and sends items to its output ports, without knowing
//! the modules at the other ends. A *graph* consists of *instances* of modules and of *edges*
//! between their ports. Each instance is a [stage](crate::stage), so it has a queue, controllers,
//! statistics and tracing.
//!
//! ```
//! use tussah::flow::{Args, Graph, Out, module};
//!
//! /// Parses numbers.
//! #[derive(Default)]
//! struct Parse;
//!
//! #[module]
//! impl Parse {
//!     fn run(&self, text: &'static str, out: &impl Out<u64>, bad: &impl Out<&'static str>) {
//!         match text.parse() {
//!             Ok(number) => out.send(number),
//!             Err(_) => bad.send(text),
//!         }
//!     }
//! }
//!
//! /// Adds numbers.
//! #[derive(Default)]
//! struct Sum(u64);
//!
//! #[module]
//! impl Sum {
//!     fn run(&mut self, number: u64) {
//!         self.0 += number;
//!     }
//! }
//!
//! /// Counts what it gets.
//! #[derive(Default)]
//! struct Count(u64);
//!
//! #[module]
//! impl Count {
//!     fn run(&mut self, _text: &'static str) {
//!         self.0 += 1;
//!     }
//! }
//!
//! # let runtime = tussah::Runtime::builder().workers(2).build().expect("a runtime");
//! # runtime.block_on(async {
//! let mut graph = Graph::new("numbers");
//! graph.add::<Parse>("parse", Args::new())?;
//! graph.add::<Sum>("sum", Args::new())?;
//! graph.add::<Count>("bad", Args::new())?;
//! graph.connect("parse", "sum")?;
//! graph.connect("parse.bad", "bad")?;
//! let running = graph.start()?;
//! let texts = running.input("parse")?;
//! for text in ["1", "two", "3"] {
//!     texts.send(text).await;
//! }
//! running.drain().await;
//! assert_eq!(running.stats("sum")?.finished, 2);
//! # Ok::<(), tussah::flow::GraphError>(())
//! # }).expect("the graph can be made");
//! ```
//!
//! # Parallelism
//! The borrow checker ensures that modules are free of data races. The signatures of a module's
//! methods determine how many items the module handles concurrently:
//!
//! | receiver and arguments | parallelism |
//! |---|---|
//! | `&self, item` | *element*: any number of items |
//! | `&self, item`, and `#[module(ordered)]` | element; the output leaves in the order of the items |
//! | `&self, flow: &mut State, item` | *flow*: one item of each flow at a time, in order |
//! | `&mut self, item` | *serial*: one item at a time, in order |
//!
//! Without `&mut`, two calls to a module can change shared data only through a lock or an atomic in
//! the module. Such sharing is free of data races, but its results may depend on the order of
//! calls.
//!
//! # Sending
//! An output port is an argument: `out: &impl Out<T>` in a plain `fn`, and `out: &impl AsyncOut<T>`
//! in an `async fn`. The name of the argument is the name of the port. [`Out::send`] never waits
//! and returns no error. If a receiver cannot accept an item yet, the item stays in the port's
//! outbox. The sending instance takes its next item only when all of its outboxes are empty.
//! [`AsyncOut::send`] waits until every receiver can accept the item.
//!
//! # Weave
//! [Weave](tussah_weave) is a language for graphs. [`Modules`] creates a [`Graph`] from source
//! text, and reports all errors in the text before anything starts. [`weave_file!`] compiles the
//! graphs of a file into a program, and rustc checks every edge and every argument.
//!
//! # Ends
//! Each item has exactly one outcome. If an item is shed or expires, or if the call that handles it
//! panics or is [stopped](Running::stop), the item becomes a [`Dropped`] and goes to the `dropped`
//! port of the instance that held it. If `run` returns an error, the error goes to the `failed`
//! port. Each item is delivered at most once. A send to `dropped` never waits: if a receiver cannot
//! accept the item at once, it discards the item and counts it as refused. An output port without
//! an edge discards its items.

mod args;
mod batch;
mod call;
#[cfg(feature = "cli")]
pub mod cli;
mod compiled;
mod delay;
mod describe;
mod dropped;
mod edge;
mod error;
mod fields;
mod flows;
mod graph;
mod install;
mod keepers;
mod kept;
mod limit;
mod module;
mod modules;
mod open_file;
mod open_flows;
mod order;
mod ordered;
mod out;
mod outbox;
mod outlet;
mod param;
mod probe;
mod proxy;
mod running;
mod shards;
mod swap;
mod tap;
#[cfg(feature = "cli")]
mod text;
mod turns;
mod unsent;
mod via;
mod wake;
mod way;

#[cfg(feature = "cli")]
pub use self::cli::run_tests;
#[cfg(feature = "cli")]
#[doc(inline)]
pub use crate::__flow_main as main;
pub use tussah_macros::{Fields, module, weave, weave_file};

pub use self::args::Args;
pub use self::batch::Batch;
pub use self::dropped::Dropped;
pub use self::error::{GraphError, WeaveError};
pub use self::fields::{FieldName, FieldValue, Fields};
pub use self::flows::{Flow, Key};
pub use self::graph::Graph;
pub use self::module::Module;
pub use self::modules::{Modules, Params};
pub use self::open_file::OpenFile;
pub use self::out::{AsyncOut, Out};
pub use self::param::{Param, Period, Rate, Share, Size};
pub use self::proxy::Proxy;
pub use self::running::{Input, Running};
pub use self::tap::{Tap, TappedItem};
pub use self::via::{Via, WhenFull};
pub use self::wake::Wake;
pub use tussah_weave::{Kind, Value};

#[doc(hidden)]
pub mod expansion {
    //! Names that the expansion of `#[module]` uses.

    pub use super::args::Args;
    pub use super::batch::{Batch, Current, Of, port_of, single, turn_of};
    pub use super::call::{NotPlain, PlainElement, PlainSerial};
    pub use super::compiled::ports::{
        Between, InputSpec, Joins, OutputSpec, needs_queue, unconnected, unknown_port, wrong_shards,
    };
    pub use super::compiled::{
        Argument, Given, ParamSpec, Takes, has_param, missing_arguments, wrong_argument,
    };
    pub use super::describe::Describe;
    pub use super::dropped::Unhandled;
    pub use super::edge::Entry;
    pub use super::flows::{Flow, Parcel};
    pub use super::install::{Installed, Node};
    pub use super::keepers::Sends;
    pub use super::module::{
        Begin, Element, Ended, HasInput, HasOutput, HasParam, Module, Never, PerFlow, Ports,
        Serial, Source, Tick, Woken,
    };
    pub use super::ordered::{InTurn, Later, flush_in_turn, handed_over};
    pub use super::out::{AsyncOut, Out};
    pub use super::outbox::{Held, Outbox};
    pub use super::outlet::Outlet;
    pub use super::param::Period;
    pub use super::probe::{Documented, Fails, NoProbe, Probe, call, unwound};
    pub use super::swap::Swap;
    pub use super::wake::Wake;
    pub use super::way::{Along, Each, Fork, Fuse, Way, port_number};
    pub use crate::stage::{Batch as Events, BuildError, Reason};
    pub use tussah_weave::{Body, Kind, Parallelism};
}
