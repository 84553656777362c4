//! Unix sockets: local streams and datagrams, which can also carry descriptors.
//!
//! An address is a path, or a name outside the file system (*abstract*: [`SocketAddrExt`]). A
//! socket may also be unnamed.
//!
//! # Socket files
//!
//! Binding to a path creates a file, which neither dropping the socket nor ending the process
//! removes. Binding to the same path again fails with `AddrInUse`, whether or not a process still
//! listens there. A server that owns its path removes the file before it binds. If another process
//! might be listening, connect first: `ConnectionRefused` means that the file was left behind.
//!
//! [`SocketAddrExt`]: std::os::linux::net::SocketAddrExt

mod address;
mod datagram;
mod descriptors;
mod halves;
mod listener;
mod poll;
mod stream;

pub(crate) use address::Shown;
pub use datagram::UnixDatagram;
pub use descriptors::ReceivedFds;
pub use halves::{OwnedReadHalf, OwnedWriteHalf};
pub use listener::UnixListener;
pub use std::os::unix::net::SocketAddr;
pub use stream::{Credentials, UnixStream};
