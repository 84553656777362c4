//! TCP.

mod accept;
mod connect;
mod extra;
mod listen;
mod listener;
mod options;
mod stream;
mod transfer;

pub use connect::ConnectOptions;
pub use listen::ListenOptions;
pub use listener::{AcceptStats, TcpListener};
pub use options::KeepAlive;
pub use stream::TcpStream;
