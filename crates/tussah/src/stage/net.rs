//! Sockets whose events come to the queues of stages.
//!
//! [`Sockets`] takes listeners, makes connections, and sends what happens on them to a stage as [`SocketEvent`]s: a connection was accepted or
//! made, a packet came, packets were written, the peer has ended, the connection is closed. The stage answers on the [`Connection`] that each
//! event brings along. This is the *asyncSocket* layer of SEDA (SOSP 2001, section 4.1).
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
//!                 // A peer that does not read what it gets is cut off by the queue's bound.
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
//! # Order, and what comes once
//!
//! - The events of one connection are sent one after the other, in the order in which they happened. A stage that is
//!   [keyed](super::Builder::keyed_by) by [`SocketEvent::id`], or serial, handles them so.
//! - [`Accepted`](SocketEvent::Accepted) or [`Connected`](SocketEvent::Connected) is the first event of a connection, and
//!   [`Closed`](SocketEvent::Closed) the last; each comes once, and nothing comes after it. Then the descriptor is closed, whoever still has the
//!   [`Connection`].
//! - A connection ends when both sides have ended: the peer by itself ([`Ended`](SocketEvent::Ended)), and this one by
//!   [`close`](Connection::close), or because nobody has a [`Connection`] of it any more; or at once when something fails, is too slow, or is
//!   [broken off](Connection::break_off).
//!
//! # Everything is bounded
//!
//! | what | bound | then |
//! |---|---|---|
//! | connections | [`SocketOptions::connections_max`] | accepting waits, connecting fails |
//! | a packet | 16 KB | the rest is the next packet |
//! | packets that were read | one a connection, beside the stage's queue | reading stops, and the peer's sending with it |
//! | what is to be written to a peer | [`SocketOptions::outgoing_bytes_max`], [`outgoing_buffers_max`](SocketOptions::outgoing_buffers_max) | [`SocketOptions::when_full`]: the connection is closed |
//! | the same, of all peers together | [`Sockets::control_writes`] | each may have less |
//! | the time to write the rest | [`SocketOptions::finish_max`] | the connection is broken off |
//! | the time to wait for the peer's end | [`SocketOptions::linger`] | the descriptor is closed |
//! | the input rate | [`Sockets::control_reads`], [`SocketOptions::limit_each`] | the next read is delayed |
//!
//! When the stage's queue is full, the connection waits with its packet, and reads no further: the kernel's window closes. What is to be
//! written is written meanwhile, so that a stage that waits for a peer and a connection that waits for the stage never wait for each other.
//! What a controller of the stage turns away is dropped, or waits, or closes its connection: [`WhenRejected`].
//!
//! A stage that sheds events *from* its queue may shed any of these, the last of a connection as well; a connection whose first event is shed, or is
//! lost with a handler that panics, is broken off.
//!
//! # Who is served when
//!
//! SEDA has three stages for all sockets (`readStage`, `writeStage`, `listenStage`), each of which serves its queue of requests and the system's
//! queue of readiness alternately, by a timeout. Here each connection is a thread that serves both: each time it
//! is polled it begins with the other one of the two, what is to be written (requests) and what is to be read (readiness), and what it moves
//! spends the budget of the poll; so neither starves the other. Between connections the turn goes around as between all threads, and of
//! those that became ready together one at random is first. What the three stages would show is in
//! [`SocketStats`], and in the network's [graph](super::Network::graph), where they stand as stages with edges to those that are told.

mod address;
mod buffer;
mod connection;
mod desk;
mod event;
mod hub;
mod options;
mod server;
mod shown;
mod sockets;
mod stats;
mod stream;
mod teller;
mod thread;

pub use address::Address;
pub use buffer::Buffer;
pub use connection::Connection;
pub use event::{Closed, SocketEvent};
pub use options::{SocketOptions, WhenRejected};
pub use server::Server;
pub use sockets::Sockets;
pub use stats::{IoStats, SocketStats};
pub use stream::{Listener, Stream};
