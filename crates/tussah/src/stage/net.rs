//! Sockets that send their events to the queues of stages.
//!
//! [`Sockets`] serves listeners, connects to peers, and sends the resulting [`SocketEvent`]s to a
//! stage. An event reports, for example, a new connection, a packet, the end of the peer's data, or
//! a closed connection. Most events carry a [`Connection`], through which the stage responds. This
//! module corresponds to the *asyncSocket* layer of SEDA (SOSP 2001, section 4.1).
//!
//! ```
//! use tussah::net::{TcpListener, TcpStream};
//! use tussah::stage::net::{SocketEvent, Sockets};
//! use tussah::stage::{Batch, Handler, Network};
//!
//! struct Echo;
//!
//! impl Handler for Echo {
//!     type Event = SocketEvent;
//!     async fn handle(&self, batch: &mut Batch<SocketEvent>) {
//!         while let Some(event) = batch.next() {
//!             match event {
//!                 // The bound of its queue disconnects a peer that does not read.
//!                 SocketEvent::Packet(connection, bytes) => drop(connection.try_send(bytes)),
//!                 SocketEvent::Ended(connection) => connection.close(),
//!                 _ => {}
//!             }
//!         }
//!     }
//! }
//!
//! # let runtime = tussah::Runtime::builder().workers(1).build()?;
//! # runtime.block_on(async {
//! let network = Network::new("echo");
//! let echo = network
//!     .stage("echo")
//!     .keyed_by(SocketEvent::id) // the packets of a connection stay in order
//!     .handler(|_| Ok(Echo))
//!     .expect("the name is free");
//! let sockets = Sockets::new(&network, "sockets").expect("the name is free");
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! let address = listener.local_addr()?;
//! sockets.listen(listener, &echo.sender())?;
//!
//! let stream = TcpStream::connect(address).await?;
//! stream.write_all(b"hello").await?;
//! let mut buffer = [0; 5];
//! stream.read_exact(&mut buffer).await?;
//! assert_eq!(&buffer, b"hello");
//! sockets.close();
//! sockets.settled().await;
//! # std::io::Result::Ok(())
//! # })?;
//! # std::io::Result::Ok(())
//! ```
//!
//! # Order of events
//!
//! - The events of a connection are sent one after the other, in the order in which they occurred.
//!   A stage handles these events in order if it is serial, or
//!   [keyed](super::StageBuilder::keyed_by) by [`SocketEvent::id`].
//! - [`Accepted`](SocketEvent::Accepted) or [`Connected`](SocketEvent::Connected) is the first
//!   event of a connection, and [`Closed`](SocketEvent::Closed) is the last. Each is sent once. The
//!   descriptor is closed before `Closed` is sent, even if a handler still holds the
//!   [`Connection`].
//! - A connection ends when both sides have finished sending. The end of the peer's data is
//!   reported as [`Ended`](SocketEvent::Ended). This side finishes sending when it calls
//!   [`close`](Connection::close), or when the last [`Connection`] is dropped after the peer has
//!   finished.
//! - A connection ends immediately if an operation fails, if the peer is too slow, or if the
//!   connection is [aborted](Connection::break_off).
//!
//! # Everything is bounded
//!
//! | resource | bound | at the bound |
//! |---|---|---|
//! | connections | [`SocketOptions::connections_max`] | further clients wait to be accepted; new outgoing connections fail |
//! | a packet | [`SocketOptions::packet_max`] | the rest forms the next packet |
//! | packets read and not yet queued | one per connection | reading stops, and then the peer must stop sending |
//! | write queue of a connection | [`SocketOptions::outgoing_bytes_max`], [`outgoing_buffers_max`](SocketOptions::outgoing_buffers_max) | [`SocketOptions::when_full`]: the connection is closed |
//! | all write queues together | [`Sockets::control_writes`] | the bound of each connection shrinks |
//! | time for writing the rest when closing | [`SocketOptions::finish_max`] | the connection is aborted |
//! | time for the peer to finish sending | [`SocketOptions::linger`] | the descriptor is closed |
//! | read rate | [`Sockets::control_reads`], [`SocketOptions::limit_each`] | the next read is delayed |
//!
//! If the stage's queue is full, a connection keeps the packet that it has read, and stops reading,
//! so the TCP window closes. The connection still writes queued bytes in the meantime. No deadlock
//! can therefore arise if a stage waits for a peer while a connection waits for the stage. If a
//! controller of the stage rejects an event, [`WhenRejected`] determines the effect: the event is
//! dropped, or it waits, or its connection is closed.
//!
//! A stage that sheds queued events may shed any event of a socket, including the last event of a
//! connection. If the first event of a connection is shed, or lost because the handler panics, the
//! connection is aborted.
//!
//! # Scheduling
//!
//! SEDA uses three stages for all sockets (`readStage`, `writeStage`, `listenStage`). Each of
//! SEDA's three socket stages alternates between its queue of requests and the system's queue of
//! readiness events, and switches after a timeout.
//!
//! In this module, each connection has one thread, which both reads and writes. Each poll starts
//! with the direction that came second in the previous poll, and both directions share the poll's
//! budget, so neither starves the other. Connections take turns like all threads; if several become
//! ready at once, they start in random order.
//!
//! [`SocketStats`] contains the counts that SEDA's three stages would show. The network's
//! [graph](super::Network::graph) also contains the counts in `SocketStats`: it shows the queues of
//! the sockets as stages, with edges to the stages that receive the events.

mod address;
mod buffer;
mod connection;
mod event;
mod options;
mod pacer;
mod server;
mod set;
mod shown;
mod sink;
mod sockets;
mod stats;
mod stream;
mod thread;

pub use address::Address;
pub use buffer::Buffer;
pub use connection::Connection;
pub use event::{CloseReason, SocketEvent};
pub use options::{SocketOptions, WhenRejected};
pub use server::Server;
pub use sockets::Sockets;
pub use stats::{IoStats, SocketStats};
pub use stream::{Listener, Stream};
