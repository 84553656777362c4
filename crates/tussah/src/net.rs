//! Sockets whose operations wait without blocking a worker.
//!
//! Each operation is first tried immediately. If the operation would block, its thread waits until
//! the worker's driver reports that the socket is ready. The thread then continues in its color. A
//! server can therefore use one thread per connection; an idle connection needs only this thread
//! and about 140 bytes of memory.
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
//! # A server with graceful shutdown
//!
//! On Ctrl-C or SIGTERM, this server stops accepting, gives its connections up to ten seconds to
//! finish, and then drops the rest. After a second signal, the server drops the remaining
//! connections immediately. A panic in the thread of one connection aborts all connections, as in
//! every [`scope`](crate::scope()).
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
//!     // Completes after its connections; dropping it ends them.
//!     let mut server = pin!(scope(|connections| or(accept(listener, connections), stopped)));
//!     or(server.as_mut(), told()).await?;
//!
//!     stop.notify_one(); // closes the listener
//!     let drained = async { timeout(Duration::from_secs(10), server).await.is_ok() };
//!     let told_again = async { told().await.is_err() };
//!     if !or(drained, told_again).await {
//!         eprintln!("connections were cut off");
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Common properties
//!
//! - Operations take `&self`, so any number of threads can use a socket at the same time.
//! - Dropping the future of an operation never loses data that has arrived. The documentation of
//!   each operation has a section "Cancellation", which states what may already have happened when
//!   the future is dropped.
//! - Errors name the operation and the peer: see [`OpError`](crate::OpError). The `try_` functions,
//!   except `try_accept`, return the system's errors unchanged.
//! - Interrupted system calls are retried.
//! - A socket belongs to the runtime in which it was created. Other executors can poll the futures
//!   of the socket's operations, except for the operations that need a timer: those with a timeout,
//!   and those of a stream with a rate limit. When the runtime ends, the socket's operations fail.
//! - A socket that is always ready does not starve others: each transfer uses up part of its
//!   thread's cooperative budget.

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
pub use outgoing::{BreakOff, Outgoing, OutgoingOptions, OutgoingStats, OverflowPolicy, PushError};
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
pub use tussah_core::io::Hangup;
pub use udp::{RecvSlot, UdpSocket};
pub use unix::{UnixDatagram, UnixListener, UnixStream};
