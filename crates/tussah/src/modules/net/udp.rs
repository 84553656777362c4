//! Modules for datagrams.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use super::peer::{Peer, whole};
use super::reply::report;
use crate::flow::{AsyncOut, module};
use crate::modules::{Attempt, Message};
use crate::net::UdpSocket;
use crate::time::sleep;

/// The maximum length of a datagram, in bytes. UDP does not allow longer ones.
const DATAGRAM_MAX: usize = 65_535;
/// The pause after an error of receiving, so that a lasting one does not take a whole CPU.
const PAUSE: Duration = Duration::from_millis(10);

/// Receives datagrams.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `listen` | address | the address; port 0 selects a free port |
///
/// | port | items | meaning |
/// |---|---|---|
/// | output `out` | [`Message`] | a received datagram, whose peer is the sender |
/// | output `listening`, optional | `SocketAddr` | the address of the socket, sent once |
///
/// Datagrams belong to no flow. While the graph cannot accept datagrams, the operating system keeps
/// those that fit into the socket's buffer, and drops the rest.
#[module]
pub struct UdpListen {
    socket: Arc<UdpSocket>,
    address: SocketAddr,
}

#[module]
impl UdpListen {
    fn init(listen: SocketAddr) -> Result<Self, String> {
        let socket = UdpSocket::bind(listen).map_err(|error| error.to_string())?;
        let address = socket.local_addr().map_err(|error| error.to_string())?;
        Ok(Self {
            socket: Arc::new(socket),
            address,
        })
    }

    async fn start(
        &self,
        out: &impl AsyncOut<Message>,
        listening: Option<&impl AsyncOut<SocketAddr>>,
    ) {
        if let Some(listening) = listening {
            listening.send(self.address).await;
        }
        let mut buffer = vec![0; DATAGRAM_MAX];
        loop {
            match self.socket.recv_from(&mut buffer).await {
                Ok((len, address)) => {
                    let peer = Peer::udp(&self.socket, address);
                    out.send(Message::new(peer, &buffer[..len])).await;
                }
                Err(error) => {
                    tracing::warn!(target: "tussah::modules", "cannot receive a datagram: {error}");
                    sleep(PAUSE).await;
                }
            }
        }
    }
}

/// Sends each message as a datagram.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `to` | address | the receiver |
///
/// | port | items | meaning |
/// |---|---|---|
/// | input `run` | [`Message`] | a message to send |
/// | output `sent`, optional | [`Message`] | a message that the system has accepted |
/// | output `failed` | [`Attempt<Message>`] | a message that the system has not accepted, such as one of more than 65,507 bytes |
///
/// The module handles any number of messages at a time.
#[module]
pub struct UdpSend {
    socket: UdpSocket,
    to: SocketAddr,
}

#[module]
impl UdpSend {
    fn init(to: SocketAddr) -> Result<Self, String> {
        let any: SocketAddr = match to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).map_err(|error| error.to_string())?;
        Ok(Self { socket, to })
    }

    async fn run(
        &self,
        message: Message,
        sent: Option<&impl AsyncOut<Message>>,
    ) -> Result<(), Attempt<Message>> {
        let len = self.socket.send_to(&message.bytes, self.to).await;
        match whole(len, &message.bytes) {
            Ok(()) => report(message, sent).await,
            Err(why) => return Err(Attempt::first(message, why)),
        }
        Ok(())
    }
}
