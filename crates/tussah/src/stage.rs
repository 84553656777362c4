//! Stages: handlers behind finite queues, with controllers that keep each in its operating range under any load.
//!
//! A service is a [`Network`] of stages. A stage has a *handler*, which is given a batch of events at a time; an incoming *queue*, which is finite; *servlets*, each a
//! thread that runs one batch to its end before it takes the next; and *controllers*, which decide how many servlets there are, how large a batch is,
//! and who is let in. (Welsh, Culler and Brewer: SEDA, SOSP 2001; servlets and their number by Upadhyaya, Pai and Midkiff: Aspen, PPoPP 2007.)
//!
//! ```
//! use tussah::stage::{Batch, BuildError, Handler, Network, Sender, SerialHandler};
//!
//! /// Parses numbers; several batches at a time, so `&self`.
//! struct Parse {
//!     sum: Sender<u64>,
//! }
//!
//! impl Handler for Parse {
//!     type Event = &'static str;
//!     async fn handle(&self, batch: &mut Batch<&'static str>) {
//!         while let Some(text) = batch.next() {
//!             if let Ok(number) = text.parse::<u64>() {
//!                 self.sum.send(number).await.expect("`sum` is open");
//!             }
//!         }
//!     }
//! }
//!
//! /// Adds them up; one batch after the other, so `&mut self`.
//! struct Sum(u64);
//!
//! impl SerialHandler for Sum {
//!     type Event = u64;
//!     async fn handle(&mut self, batch: &mut Batch<u64>) {
//!         self.0 += batch.drain().sum::<u64>();
//!     }
//! }
//!
//! # let runtime = tussah::Runtime::builder().workers(2).build().expect("a runtime");
//! # runtime.block_on(async {
//! let network = Network::new("sums");
//! let sum = network.stage("sum").serial(|_| Ok(Sum(0)))?;
//! let parse = network.stage("parse").handler(|edges| Ok(Parse { sum: edges.to(&sum).queue(100)? }))?;
//! for text in ["1", "two", "3"] {
//!     parse.sender().send(text).await.expect("`parse` is open");
//! }
//! network.drain().await;
//! assert_eq!((parse.stats().finished, sum.stats().finished), (3, 2));
//! # Ok::<(), BuildError>(())
//! # }).expect("the network can be made");
//! ```
//!
//! # Which handler
//! | | the next batch begins | made by |
//! |---|---|---|
//! | [`Handler`] (`&self`) | at once, on another servlet | [`Builder::handler`] |
//! | the same, by key | when no batch of its key runs; keys run beside each other | [`Builder::keyed_by`] |
//! | [`SerialHandler`] (`&mut self`) | when the future has ended, awaits included | [`Builder::serial`] |
//! | [`DirectHandler`] (`&self`, one event at a time, no awaiting) | at once, on another servlet or where it is sent from | [`Builder::direct`] |
//! | a plain function that blocks | on another OS thread of a pool | [`Builder::blocking`] |
//!
//! A stage that never awaits has at most one servlet for each worker at work, since more would only take turns.
//!
//! # Edges
//! Handlers are made with the [`Edges`] that they send by. A queue decouples; a call is a function call: the callee runs in the caller's servlet, on the
//! caller's batch, with no queue and no admission. The choice is one word: `edges.to(&next).queue(100)` or `edges.to(&next).call()`.
//! Where the callee is a [`DirectHandler`], [`direct`](To::direct) costs no more than a function.
//! A cycle made only of queues that are waited for and of calls could come to a standstill; it is refused when its last edge is made, and one of its edges has to be an
//! [`offer`](To::offer), which never waits.
//!
//! # Overload
//! A full queue makes [`send`](Sender::send) wait, and [`try_send`](Sender::try_send) give the event back; [`send_or`](Sender::send_or) says
//! what becomes of it. Room is handed to senders that wait, in order; a sender that only tries gets what is left. With a latency [target](Builder::target) the default controllers also turn away what would take longer. Events have classes, deadlines,
//! costs and drop callbacks ([`Event`]). What controllers decided, and why, is in [`Stage::log`].
//!
//! # Order
//! Events of one sender and class are taken in the order in which they were sent. Several servlets then handle their batches side by side; a serial stage, or one key,
//! handles them in that order.
//!
//! # While it runs
//! A [`Network`] shows its stages and edges as a [graph](Network::graph), its numbers [at once](Network::stats) or [over time](Network::record) as CSV, and the way of
//! [single events](Network::trace_one_in). A stage can be [paused](Stage::pause), [retuned](Stage::retune), given [another handler](Stage::swap), and put
//! [between](Stage::between) two others; it can be found by its [name](Network::find).
//!
//! # The end
//! [`Network::drain`] closes all stages and waits for what they have let in: first those that the others get their events from, then those that these send to;
//! [`Stage::drain`] does it with one. With [sockets](net), these are closed and settled before. A runtime that ends drops what is still queued, with its callbacks; its
//! [report](crate::ShutdownReport) does not count that.
//!
//! # What a handler sends
//! is collected while the servlet runs, and handed over by the chunk: one lock and one wake-up for many events. It is handed over when the chunk is full, when the receiver has nothing to
//! do, after each run of batches, and before the handler waits for anything.

mod account;
mod batch;
mod blocking;
mod builder;
mod call;
pub mod control;
mod defaults;
mod digest;
mod direct;
mod drain;
mod edges;
mod error;
mod event;
mod expiry;
mod governing;
mod graph;
mod handle;
mod handler;
mod host;
mod inspect;
mod install;
mod json;
mod lifecycle;
mod making;
pub mod net;
mod network;
mod outgoing;
mod process;
mod proxy;
mod queue;
mod random;
mod record;
mod release;
mod restarts;
mod room;
mod sender;
mod senders;
mod servlet;
mod shared;
pub mod sim;
mod state;
mod stats;
mod table;
mod tally;
mod threads;
mod trace;
mod turn;

pub use batch::Batch;
pub use builder::Builder;
pub use call::{AnyCall, Call, CallError};
pub use direct::{Direct, DirectHandler, DirectHost, Directly};
pub use edges::{Edges, To};
pub use error::BuildError;
pub use event::{CLASSES_MAX, Class, Event, Reason};
pub use graph::{Graph, Node};
pub use handle::{Any, Stage};
pub use handler::{Handler, SerialHandler};
pub use host::{Host, Many, One};
pub use install::Declared;
pub use network::Network;
pub use proxy::Between;
pub use record::{COLUMNS, Recording};
pub use restarts::Restarts;
pub use sender::{Offerer, SendError, Sender, Sending, Why, shed};
pub use stats::{Responses, StageStats};
pub use table::{Edge, EdgeKind};
pub use threads::{Applicant, Permits, ThreadManager};
pub use trace::{End, SPANS_MAX, Span, Traces};
