//! The network: sockets whose operations wait without holding a worker.
//!
//! An operation is tried at once; only if it would block does its thread wait, until the worker's driver reports that
//! trying again may help. Then the thread goes on where its color is. So a thread for each connection is the way to write a server,
//! and a connection that waits costs its thread and some 140 bytes.
//!
//! ```
//! use tussah::net::{TcpListener, TcpStream};
//! # let runtime = tussah::Runtime::builder().workers(2).build()?;
//! # runtime.block_on(runtime.spawn(async move {
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! let address = listener.local_addr()?;
//! tussah::spawn(async move {
//!     while let Ok((stream, _peer)) = listener.accept().await {
//!         tussah::spawn(async move {
//!             let mut buffer = [0; 1024];
//!             while let Ok(len @ 1..) = stream.read(&mut buffer).await {
//!                 stream.write_all(&buffer[..len]).await?;
//!             }
//!             std::io::Result::Ok(())
//!         });
//!     }
//! });
//! let stream = TcpStream::connect(address).await?;
//! stream.write_all(b"echo").await?;
//! let mut buffer = [0; 4];
//! stream.read_exact(&mut buffer).await?;
//! assert_eq!(&buffer, b"echo");
//! # std::io::Result::Ok(())
//! # })).expect("no panic")?;
//! # std::io::Result::Ok(())
//! ```
//!
//! # A server that ends in order
//!
//! It stops accepting at Ctrl-C or SIGTERM, lets the connections end for up to ten seconds, and does not wait for the rest. Who presses
//! Ctrl-C again does not wait at all. A panic of one connection ends them all, as in every [`scope`](crate::scope()).
//!
//! ```no_run
//! use std::io;
//! use std::pin::pin;
//!
//! use futures_lite::future::or;
//! use tussah::net::{TcpListener, TcpStream};
//! use tussah::signal::{Signal, signal};
//! use tussah::sync::Notify;
//! use tussah::time::{Duration, timeout};
//! use tussah::{Scope, scope};
//!
//! async fn echo(stream: TcpStream) -> io::Result<()> {
//!     let mut buffer = [0; 1024];
//!     while let len @ 1.. = stream.read(&mut buffer).await? {
//!         stream.write_all(&buffer[..len]).await?;
//!     }
//!     Ok(())
//! }
//!
//! async fn accept(listener: TcpListener, connections: Scope<io::Error>) -> io::Result<()> {
//!     loop {
//!         let (stream, peer) = listener.accept().await?;
//!         connections.spawn(async move {
//!             if let Err(error) = echo(stream).await {
//!                 eprintln!("{peer}: {error}");
//!             }
//!             Ok(()) // an error would end the other connections too
//!         });
//!     }
//! }
//!
//! #[tussah::main]
//! async fn main() -> io::Result<()> {
//!     let (interrupt, terminate) = (signal(Signal::INT)?, signal(Signal::TERM)?);
//!     let told = || or(interrupt.recv(), terminate.recv());
//!     let stop = Notify::new();
//!     let listener = TcpListener::bind("127.0.0.1:7013")?;
//!     let stopped = async {
//!         stop.notified().await;
//!         Ok(())
//!     };
//!     // It ends after its connections. Dropping it ends them.
//!     let mut server = pin!(scope(|connections| or(accept(listener, connections), stopped)));
//!     or(server.as_mut(), told()).await?;
//!
//!     stop.notify_one(); // which closes the listener
//!     let drained = async { timeout(Duration::from_secs(10), server).await.is_ok() };
//!     let told_again = async { told().await.is_err() };
//!     if !or(drained, told_again).await {
//!         eprintln!("connections were cut off");
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # What holds for all of it
//!
//! - Operations take `&self`: any number of threads may use a socket at the same time.
//! - Dropping the future of an operation never loses what has arrived; each operation says what it may have done.
//! - Errors say what was tried and with whom: [`OpError`](crate::OpError). Those of the `try_` functions are bare.
//! - Signals interrupt nothing: an operation that the system interrupts is tried again.
//! - A socket belongs to the runtime that it was made in. Its operations may be awaited elsewhere, unless they need a timer: those with
//!   a time limit, and those of a stream with a rate limit. At the end of the runtime they fail.
//! - A socket that is always ready doesn't starve others: what is moved spends the budget of its thread's poll.

mod address;
#[cfg(feature = "dns")]
mod eyeballs;
mod outgoing;
mod packet;
#[cfg(feature = "dns")]
mod race;
mod rate;
pub(crate) mod socket;
mod tcp;
mod udp;
pub mod unix;

pub use address::{Addresses, Target, ToAddresses};
pub use outgoing::{BreakOff, Outgoing, OutgoingOptions, OutgoingStats, PushError, WhenFull};
pub(crate) use packet::PACKET_MAX;
pub use rate::RateLimit;
pub use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, SocketAddrV4, SocketAddrV6};
#[cfg(feature = "dns")]
pub use tcp::ConnectError;
pub(crate) use tcp::Verdict;
pub use tcp::{
    AcceptStats, ConnectOptions, FileTruncated, KeepAlive, ListenOptions, OwnedReadHalf,
    OwnedWriteHalf, ReadHalf, ReuniteError, TcpListener, TcpStream, WriteHalf, connect,
};
pub use udp::{RecvSlot, UdpSocket};
pub use unix::{UnixDatagram, UnixListener, UnixStream};
