//! TCP sockets.

mod accept;
#[cfg(feature = "dns")]
mod by_name;
mod connect;
mod extra;
mod limits;
mod listen;
mod listener;
mod options;
mod poll;
mod polled;
mod read;
mod send_file;
mod split;
mod stream;
mod transfer;
mod write;

pub(crate) use accept::Verdict;
pub(super) use accept::{Freed, Pauses};
#[cfg(feature = "dns")]
pub use by_name::ConnectError;
pub use connect::{ConnectOptions, connect};
pub(super) use extra::Extra;
pub(super) use limits::time_limits;
pub use listen::ListenOptions;
pub use listener::{AcceptStats, TcpListener};
pub use options::KeepAlive;
pub use send_file::FileTruncated;
pub use split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
pub use stream::TcpStream;
pub(super) use transfer::{Limited, Verb, poll_transfer, transfer};
