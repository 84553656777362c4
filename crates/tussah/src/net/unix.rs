//! Unix sockets: streams and datagrams within a machine, which can carry descriptors.
//!
//! They have paths as addresses, or names that are in no file system (*abstract*: [`SocketAddrExt`]), or none.
//!
//! # Files of sockets
//!
//! Binding to a path makes a file, which nobody removes: not the drop, and not the end of the process. Binding to it again
//! fails with `AddrInUse`, whether anybody listens there or not. A server that owns its path removes the file before it
//! binds. Where another might be listening, connect first: `ConnectionRefused` says that the file was left behind.
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
