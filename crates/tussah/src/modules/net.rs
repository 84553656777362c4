//! Modules for networks.

mod peer;
mod reply;
mod send_file;
mod tcp_demand;
mod tcp_listen;
mod tcp_send;
mod udp;

pub use self::peer::Peer;
pub use self::reply::Reply;
pub use self::send_file::{FilePart, SendFile};
pub use self::tcp_demand::TcpDemand;
pub use self::tcp_listen::TcpListen;
pub use self::tcp_send::TcpSend;
pub use self::udp::{UdpListen, UdpSend};
