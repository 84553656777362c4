//! Sockets whose events go to the queues of stages.
//!
//! [`Sockets`] takes listeners, makes connections, and sends their events to a stage as
//! [`SocketEvent`]s. Such an event reports that a connection was accepted or made, a packet
//! arrived, packets were written, the peer has finished sending, or the connection is closed. The
//! stage responds on the [`Connection`] that each event carries. This is the *asyncSocket* layer of
//! SEDA (SOSP 2001, section 4.1).
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
//! - The events of one connection are sent one after the other, in the order in which they
//!   happened. A stage that is serial or [keyed](super::StageBuilder::keyed_by) by
//!   [`SocketEvent::id`] handles them in that order.
//! - [`Accepted`](SocketEvent::Accepted) or [`Connected`](SocketEvent::Connected) is the first
//!   event of a connection, and [`Closed`](SocketEvent::Closed) is the last. Each is sent once. The
//!   descriptor is closed before `Closed` is sent, even if a handler still holds the
//!   [`Connection`].
//! - A connection ends when both sides have finished sending. The peer finishes on its own
//!   ([`Ended`](SocketEvent::Ended)). This side finishes when it calls
//!   [`close`](Connection::close), or when the last [`Connection`] is dropped after the peer has
//!   finished.
//! - A connection ends immediately when an operation fails, when the peer is too slow, or when the
//!   connection is [aborted](Connection::break_off).
//!
//! # Everything is bounded
//!
//! | resource | bound | at the bound |
//! |---|---|---|
//! | connections | [`SocketOptions::connections_max`] | accepting waits, connecting fails |
//! | a packet | 16 KB | the rest is the next packet |
//! | packets that were read | one per connection, in addition to the stage's queue | reading stops, and then the peer's sending |
//! | bytes to be written to a peer | [`SocketOptions::outgoing_bytes_max`], [`outgoing_buffers_max`](SocketOptions::outgoing_buffers_max) | [`SocketOptions::when_full`]: the connection is closed |
//! | bytes to be written to all peers together | [`Sockets::control_writes`] | the bound of each peer shrinks |
//! | the time to write the rest | [`SocketOptions::finish_max`] | the connection is aborted |
//! | the time to wait for the peer to finish | [`SocketOptions::linger`] | the descriptor is closed |
//! | the input rate | [`Sockets::control_reads`], [`SocketOptions::limit_each`] | the next read is delayed |
//!
//! When the stage's queue is full, the connection waits with its packet and stops reading, so that
//! the TCP window closes. Queued bytes are still written in the meantime. So a stage that waits for
//! a peer and a connection that waits for the stage cannot deadlock. [`WhenRejected`] determines
//! what happens to an event that a controller of the stage rejects: it is dropped, it waits, or it
//! closes its connection.
//!
//! A stage that sheds events *from* its queue may shed any event of a socket, including the last
//! event of a connection. If the first event of a connection is shed, or lost in a handler's panic,
//! the connection is aborted.
//!
//! # Scheduling
//!
//! SEDA has three stages for all sockets (`readStage`, `writeStage`, `listenStage`). Each serves
//! its queue of requests and the system's queue of readiness alternately, switching after a
//! timeout.
//!
//! Here each connection is a thread that serves both: the bytes to write (requests) and the bytes
//! to read (readiness). Each poll begins with the direction that the previous poll served second,
//! and the bytes that it moves spend the budget of the poll, so neither direction starves the
//! other. Connections take turns like all threads; among those that become ready together, a random
//! one is first. [`SocketStats`] contains the numbers that the three stages would show. The
//! network's [graph](super::Network::graph) contains them, too: it shows the queues of the sockets
//! as stages with edges to the stages that receive the events.

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
