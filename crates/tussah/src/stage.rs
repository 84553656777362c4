//! Stages: handlers behind bounded queues, with controllers that keep each stage in its operating
//! range under any load.
//!
//! A service is a [`Network`] of stages. A stage has
//!
//! - a *handler*, which gets a batch of events at a time;
//! - an incoming *queue*, which is bounded;
//! - *servlets*: threads that each finish one batch before they take the next;
//! - *controllers*, which decide how many servlets there are, how large a batch is, and which
//!   events are admitted.
//!
//! Stages come from SEDA (Welsh, Culler and Brewer, SOSP 2001), servlets and their number from
//! Aspen (Upadhyaya, Pai and Midkiff, PPoPP 2007).
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
//! let parse = network.stage("parse");
//! let parse = parse.handler(|edges| Ok(Parse { sum: edges.to(&sum).queue(100)? }))?;
//! for text in ["1", "two", "3"] {
//!     parse.sender().send(text).await.expect("`parse` is open");
//! }
//! network.drain().await;
//! assert_eq!((parse.stats().finished, sum.stats().finished), (3, 2));
//! # Ok::<(), BuildError>(())
//! # }).expect("the network can be made");
//! ```
//!
//! # Kinds of handlers
//! | handler | the next batch begins | made by |
//! |---|---|---|
//! | [`Handler`] (`&self`) | immediately, on another servlet | [`StageBuilder::handler`] |
//! | the same, keyed | when no batch of its key runs; different keys run in parallel | [`StageBuilder::keyed_by`] |
//! | [`SerialHandler`] (`&mut self`) | when the future has ended, including its awaits | [`StageBuilder::serial`] |
//! | [`DirectHandler`] (`&self`, one event at a time, no awaiting) | immediately, on another servlet or in the sender | [`StageBuilder::direct`] |
//! | a plain function that blocks | on another OS thread of a pool | [`StageBuilder::blocking`] |
//!
//! A closure that takes one event becomes a handler by [`each`] or [`each_mut`].
//!
//! A stage that never awaits has at most one busy servlet for each worker, because further servlets
//! would only take turns.
//!
//! # Edges
//! A handler is made together with the [`Edges`] over which it sends. A queue decouples two stages.
//! A call is a function call: the callee runs in the caller's servlet, on the caller's batch, with
//! no queue and no admission. The choice is one word: `edges.to(&next).queue(100)` or
//! `edges.to(&next).call()`. If the callee is a [`DirectHandler`], [`direct`](To::direct) costs no
//! more than a function call.
//!
//! A cycle of awaited sends and calls can deadlock. A network therefore refuses the last edge of
//! such a cycle: one of its edges has to be an [`offer`](To::offer), which never waits.
//!
//! # Overload
//! While a queue is full, [`send`](Sender::send) waits, [`try_send`](Sender::try_send) returns the
//! event, and [`send_or`](Sender::send_or) calls a function with it. Waiting senders get free room
//! in order; a sender that only tries gets what is left. With a latency
//! [target](StageBuilder::target), the default controllers also reject events that would take
//! longer. Events have classes, deadlines, costs and drop callbacks ([`Event`]), and their senders
//! can [cancel](Event::cancellable) them. A sender that [asks](Sender::ask) waits for the value
//! that the handler returns, and cancels the event when it stops waiting. [`Stage::log`] returns
//! the controllers' decisions with their inputs.
//!
//! # Order
//! Events of one sender and class are taken in the order in which they were sent. Several servlets
//! then handle their batches in parallel. A serial stage, and each key of a keyed stage, handles
//! them in order.
//!
//! # Observing and changing a running network
//! A [`Network`] shows its stages and edges as a [graph](Network::graph), its statistics [at the
//! moment](Network::stats) or [over time](Network::record) as CSV, and the path of [single
//! events](Network::trace_one_in). A stage can be [paused](Stage::pause), [retuned](Stage::retune),
//! given [another handler](Stage::swap), put [between](Stage::between) two others, and found by its
//! [name](Network::find).
//!
//! # Shutdown
//! [`Network::drain`] closes all stages and waits until they have handled their admitted events:
//! first the stages at the beginning of the graph, then the stages to which they send.
//! [`Stage::drain`] does the same with one stage. Close and settle [sockets](net) before you drain.
//! A runtime that ends closes its stages: it drops queued events with their callbacks, and its
//! networks forget the stages. The runtime's [report](crate::ShutdownReport) does not count these
//! events.
//!
//! # When a handler is dropped
//! A closed stage drops its handler, and the maker of a serial handler, as soon as its last servlet
//! has ended. [`Stage::destroy`] and [`Network::close`] close stages, [`Network::drain`] closes
//! those that it has drained, and the end of the runtime closes all others.
//!
//! A stage that is never closed keeps its handler until nothing refers to the stage and it has
//! handled its admitted events. Its network, [`Stage`] handles, senders and other edges refer to
//! it; idle servlets do not. A network stays alive as long as its own handles or the handles of its
//! stages exist. When a network is dropped, its stages that are paused or have no handler are
//! closed, because nothing could resume them.
//!
//! Handlers and makers may hold stages and networks, even in a cycle. Such a cycle lasts until its
//! network is drained or closed, or until the runtime ends. A [`Stage`] that knows the type of its
//! handler keeps that handler alive; one from [`Network::find`] does not. A call edge of [`Edges`]
//! keeps the handler that it calls alive. The other parts of a stage, such as its drop callback and
//! its controllers, are dropped with the stage. A stage is dropped when its network has forgotten
//! it or was dropped, and no handle or sender is left.
//!
//! # What a handler sends
//! Events that a handler sends are collected while the servlet runs, and handed over in chunks: one
//! lock and one wake-up for many events. They are handed over
//!
//! - when the chunk is full;
//! - with an event that is sent while the receiver is idle;
//! - after each run of batches;
//! - before the handler waits for anything: at the latest when the handler's current poll ends.
//!
//! So a handler that computes for long after a send delays the sent events, unless it yields in
//! between ([`yield_now`](crate::yield_now)). Until then no count includes the sent event, and no
//! other sender gets the room that was reserved for the chunk: up to a batch. Events with a
//! deadline, a drop callback, a cancellation, credits, a cohort or a trace are handed over
//! immediately.

pub mod control;
mod error;
mod event;
pub mod net;
mod network;
pub mod observe;
mod queue;
mod run;
mod send;
pub mod sim;
mod state;

pub use self::error::BuildError;
pub use self::event::{
    Batch, CLASSES_MAX, CancelHandle, CancellationToken, Class, Event, Reason, Refusal,
};
pub use self::network::{Declared, Network, Stage, StageBuilder};
pub use self::run::{Handler, Restarts, SerialHandler, each, each_mut};
pub(crate) use self::run::{Shared, collected};
pub use self::send::{
    AnyCall, Ask, AskError, Between, Call, CallError, Direct, DirectHandler, Edges, ReplySender,
    SendError, Sender, Sending, To, TrySender, shed,
};
pub(crate) use self::send::{hand_over, trace};

pub mod host {
    //! The ways in which the servlets of a stage use its handler. A program names these types only
    //! where it stores a [`Stage`](super::Stage) whose handler can be called.

    pub use super::network::Any;
    pub use super::run::{Each, Host, Many, One};
    pub use super::send::DirectHost;
}
