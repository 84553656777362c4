//! Stages: handlers behind bounded queues, with controllers that adapt each stage to its load.
//!
//! A service is a [`Network`] of stages. A stage has
//!
//! - a *handler*, which processes one batch of events at a time;
//! - a bounded *queue* of incoming events;
//! - *servlets*: threads that each finish one batch before they take the next;
//! - *controllers*, which set the number of servlets and the batch size, and decide which events to
//!   admit.
//!
//! Stages come from SEDA (Welsh, Culler and Brewer, SOSP 2001). Servlets, and the rule for their
//! number, come from Aspen (Upadhyaya, Pai and Midkiff, PPoPP 2007).
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
//! | handler | when the next batch starts | created by |
//! |---|---|---|
//! | [`Handler`] (`&self`) | immediately, on another servlet | [`StageBuilder::handler`] |
//! | the same, keyed | when no batch of its key is running; different keys run in parallel | [`StageBuilder::keyed_by`] |
//! | [`SerialHandler`] (`&mut self`) | when the future has completed, including its awaits | [`StageBuilder::serial`] |
//! | [`DirectHandler`] (`&self`, one event at a time, never awaits) | immediately, on another servlet or in the sender | [`StageBuilder::direct`] |
//! | a plain function that blocks | immediately, on another OS thread of a pool | [`StageBuilder::blocking`] |
//!
//! [`each`] and [`each_mut`] turn a closure that takes one event into a handler.
//!
//! A stage whose handler never awaits has at most one busy servlet per worker, because additional
//! servlets would only wait for a worker.
//!
//! # Edges
//! A handler is created together with its outgoing edges ([`Edges`]). A queue decouples two stages.
//! A call edge works like a function call: the callee runs in the caller's servlet, on the caller's
//! batch, without a queue and without admission. One method call chooses the kind of edge:
//! `edges.to(&next).queue(100)` or `edges.to(&next).call()`. If the callee is a [`DirectHandler`],
//! [`direct`](EdgeBuilder::direct) costs no more than a function call.
//!
//! A cycle of awaited sends and calls can deadlock. A network therefore rejects an edge that would
//! close such a cycle. At least one edge of every cycle must be an [`offer`](EdgeBuilder::offer),
//! which never waits.
//!
//! # Overload
//! If a queue is full, [`send`](Sender::send) waits, [`try_send`](Sender::try_send) returns the
//! event, and [`send_or`](Sender::send_or) passes it to a function. Freed capacity goes to the
//! waiting senders in order of arrival; `try_send` gets only capacity that is left over. If the
//! stage has a latency [target](StageBuilder::target), the default controllers also reject events
//! that would miss it.
//!
//! An [`Event`] has a class and a cost, and can have a deadline and a drop callback. The sender can
//! [cancel](Event::cancellable) the event. With [`ask`](Sender::ask), the sender waits for a value
//! from the handler. If the sender stops waiting, its event is cancelled. [`Stage::log`] returns
//! the controllers' decisions and the inputs of these decisions.
//!
//! # Order
//! By default, servlets take events of the same sender and class in the order in which they were
//! sent. Several servlets handle their batches in parallel, so these events can finish in another
//! order. A serial stage handles all its events in order, and a keyed stage handles the events of
//! each key in order.
//!
//! # Observing and changing a running network
//! A [`Network`] provides a [graph](Network::graph) of its stages and edges, [current
//! statistics](Network::stats), [statistics over time](Network::record) as CSV, and
//! [traces](Network::trace_one_in) of individual events. You can [pause](Stage::pause) a stage,
//! [change its settings](Stage::retune), [swap](Stage::swap) its handler, insert it
//! [between](Stage::between) two others, and [find](Network::find) it by name.
//!
//! # Shutdown
//! [`Network::drain`] stops admission, waits until all stages have handled their admitted events,
//! and then closes the stages. Each stage is drained after the stages that send to it.
//! [`Stage::drain`] drains a single stage. Before you drain a network, close its [sockets](net),
//! and wait until all servers and connections have [ended](net::Sockets::settled).
//!
//! When a runtime ends, it closes its stages: it drops their queued events, calls the drop
//! callbacks of these events, and removes the stages from their networks. The runtime's
//! [report](crate::ShutdownReport) does not count these events.
//!
//! # When a handler is dropped
//! A closed stage drops its handler as soon as its last servlet has ended. A serial stage also
//! drops the function that creates the handler. [`Stage::destroy`] and [`Network::close`] close
//! stages, [`Network::drain`] closes the stages that it has drained, and the end of the runtime
//! closes all others.
//!
//! A stage that is never closed keeps its handler until the stage has handled its admitted events
//! and nothing refers to the stage any longer. The network, [`Stage`] handles, senders and other
//! edges refer to a stage; idle servlets do not. A network stays alive as long as there is a handle
//! to the network or to one of its stages. When a network is dropped, its paused stages and its
//! stages without a handler are closed, because no handle remains that could resume them or install
//! a handler.
//!
//! Handlers, and the functions that create them, can hold stages and networks, even in a cycle.
//! Such a cycle stays in memory until its network is drained or closed, or until the runtime ends.
//! A [`Stage`] whose type names its handler keeps that handler alive; a stage from
//! [`Network::find`] does not. A call edge keeps the called handler alive. The other parts of a
//! stage, such as its drop callback and its controllers, are dropped with the stage. A stage is
//! dropped when no network, handle, sender or other edge refers to it any longer.
//!
//! # What a handler sends
//! While a servlet runs, the stage collects the events that its handler sends, and hands them over
//! in chunks, so that many events need only one lock and one wake-up. A chunk is handed over in
//! each of these cases:
//!
//! - The chunk is full.
//! - The handler sends an event while the receiving stage is idle.
//! - The servlet has finished a run of batches, that is, batches that it took from the queue
//!   together.
//! - The current poll ends because the handler has to wait.
//!
//! A handler that computes for a long time after a send therefore delays the sent event. To avoid
//! this delay, call [`yield_now`](crate::yield_now) after the send. Until a chunk is handed over,
//! no counter includes its events, and other senders cannot use the queue capacity reserved for the
//! chunk. A chunk contains at most 128 events. An event is handed over immediately if it has a
//! deadline, a drop callback, a cancellation handle or a trace, if its cost or cohort was set
//! explicitly, or if it belongs to a [path](StageBuilder::whole_path).

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
pub(crate) use self::event::NotTaken;
pub use self::event::{
    Batch, CLASSES_MAX, CancelHandle, CancellationToken, Class, Event, Reason, Refusal,
};
pub use self::network::{Declared, Network, Stage, StageBuilder};
pub(crate) use self::network::{OS_THREADS_MAX, here};
pub use self::run::{Handler, Restarts, SerialHandler, each, each_mut};
pub(crate) use self::run::{Shared, collected};
pub use self::send::{
    AnyCall, Ask, AskError, Between, Call, CallError, Direct, DirectHandler, EdgeBuilder, Edges,
    ReplySender, SendError, Sender, Sending, TrySender, shed,
};
pub(crate) use self::send::{hand_over, note_permit, note_wait, trace, wait_for};
pub(crate) use self::state::WaitsFor;

pub mod host {
    //! The types through which servlets use a handler. You need to name these types only to store a
    //! [`Stage`](super::Stage) without losing the type of its handler.

    pub use super::network::ErasedHost;
    pub(crate) use super::run::Using;
    pub use super::run::{ConcurrentHost, Each, Host, SerialHost};
    pub use super::send::DirectHost;
}
