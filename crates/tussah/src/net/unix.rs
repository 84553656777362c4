//! Unix sockets: local streams and datagrams, which can also carry descriptors.
//!
//! An address is a path, or a name outside the file system (an *abstract* address, see
//! [`SocketAddrExt`]). A socket may also be unnamed.
//!
//! # Socket files
//!
//! Binding to a path creates a file. The file remains when the socket is dropped and when the
//! process ends. Binding to the same path again fails with `AddrInUse`, whether or not a process
//! still listens there. A server that owns its path should remove the file before binding to it. If
//! another process might be listening, connect first: `ConnectionRefused` means that no process
//! listens there any longer.
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
