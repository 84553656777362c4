//! The peers of messages.

use std::fmt;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use crate::modules::framing::Framing;
use crate::net::{TcpStream, UdpSocket};
use crate::sync::{Mutex, oneshot};
use crate::time::timeout;

/// The other end of a connection, the sender of a datagram, or no one. A `Peer` is cheap to clone.
///
/// Two peers are equal if they refer to the same connection, or to the same address and the same
/// UDP socket.
#[derive(Clone)]
pub struct Peer(Kind);

#[derive(Clone)]
enum Kind {
    Nobody,
    Tcp(Arc<Connection>),
    Udp(Arc<UdpSocket>, SocketAddr),
}

/// A connection, which is closed when the last peer that names it is dropped.
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) framing: Framing,
    address: SocketAddr,
    /// Held while a message is written, so that messages do not mix.
    writing: Mutex<()>,
    /// Takes the connection if its next message is demanded, and is empty from then until the
    /// message is read; `None` if the connection is read without demand.
    demand: Option<parking_lot::Mutex<Option<oneshot::Sender<Arc<Connection>>>>>,
}

impl Connection {
    pub(super) fn new(
        stream: TcpStream,
        framing: Framing,
        address: SocketAddr,
        on_demand: bool,
    ) -> Self {
        Self {
            stream,
            framing,
            address,
            writing: Mutex::new(()),
            demand: on_demand.then(parking_lot::Mutex::default),
        }
    }

    /// Accepts a demand for the next message. The result fails when the connection is dropped
    /// without a demand; it is `None` if the connection is read without demand.
    pub(super) fn demanded(&self) -> Option<oneshot::AsyncReceiver<Arc<Self>>> {
        let demand = self.demand.as_ref()?;
        let (sender, demanded) = oneshot::async_channel();
        *demand.lock() = Some(sender);
        Some(demanded)
    }

    /// Writes a message. After an error, the peer is cut off.
    ///
    /// # Cancellation
    /// The peer is cut off.
    pub(super) async fn write(&self, message: &[u8], patience: Duration) -> Result<(), String> {
        let bytes = self.framing.encode(message)?;
        let _writing = self.writing.lock().await;
        let cut = CutOff(self);
        let written = timeout(patience, self.stream.write_all(&bytes)).await;
        let late = |_| format!("the peer did not take it within {patience:?}");
        written.map_err(late)?.map_err(|error| error.to_string())?;
        std::mem::forget(cut);
        Ok(())
    }

    /// Sends a part of a file: its first byte and its length. After an error, the peer is cut off.
    ///
    /// # Cancellation
    /// The peer is cut off.
    pub(super) async fn send_file(
        &self,
        file: BorrowedFd<'_>,
        part: (u64, u64),
        patience: Duration,
    ) -> Result<(), String> {
        let head = self.framing.head(part.1)?;
        let _writing = self.writing.lock().await;
        let cut = CutOff(self);
        self.send_pieces(&head, file, part, patience).await?;
        std::mem::forget(cut);
        Ok(())
    }

    async fn send_pieces(
        &self,
        head: &[u8],
        file: BorrowedFd<'_>,
        (from, len): (u64, u64),
        patience: Duration,
    ) -> Result<(), String> {
        let late = |_| format!("{PIECE_MAX} bytes were not sent within {patience:?}");
        let head = timeout(patience, self.stream.write_all(head)).await;
        head.map_err(late)?.map_err(|error| error.to_string())?;
        let mut sent = 0;
        while sent < len {
            let piece = (len - sent).min(PIECE_MAX);
            let piece_sent = self.stream.send_file(file, from + sent, piece);
            match timeout(patience, piece_sent).await.map_err(late)? {
                Ok(()) => sent += piece,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Err(format!("it was truncated while its {len} bytes were sent"));
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }
}

/// Cuts a peer off when dropped: it may have a part of a message, and would take the next message
/// for the rest.
struct CutOff<'a>(&'a Connection);

impl Drop for CutOff<'_> {
    fn drop(&mut self) {
        // This fails if the peer has gone in the meantime.
        let _ = self.0.stream.shutdown(Shutdown::Both);
    }
}

/// Bound, in bytes: the maximum length of a part of a file. Each part must be sent within the time
/// limit of the sender.
const PIECE_MAX: u64 = 64 << 10;

impl Peer {
    /// Returns a placeholder for messages that do not come from a network, such as the lines of a
    /// file.
    #[must_use]
    pub fn nobody() -> Self {
        Self(Kind::Nobody)
    }

    pub(super) fn tcp(connection: &Arc<Connection>) -> Self {
        Self(Kind::Tcp(Arc::clone(connection)))
    }

    pub(super) fn udp(socket: &Arc<UdpSocket>, address: SocketAddr) -> Self {
        Self(Kind::Udp(Arc::clone(socket), address))
    }

    /// Returns the address of the peer, or `None` for the placeholder [`nobody`](Self::nobody).
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.0 {
            Kind::Nobody => None,
            Kind::Tcp(connection) => Some(connection.address),
            Kind::Udp(_, address) => Some(*address),
        }
    }

    /// Returns the connection.
    pub(super) fn connection(&self) -> Result<&Arc<Connection>, String> {
        match &self.0 {
            Kind::Tcp(connection) => Ok(connection),
            _ => Err("the peer has no connection".to_owned()),
        }
    }

    /// Asks for the next message of the connection.
    pub(super) fn demand(&self) -> Result<(), String> {
        let connection = self.connection()?;
        let Some(demand) = &connection.demand else {
            let why = "the connection is read without demand: expected `on_demand: true`";
            return Err(why.to_owned());
        };
        // A demand that has not been met took the sender.
        let sender = demand.lock().take();
        if let Some(sender) = sender {
            // Fails if the connection is read no longer.
            let _ = sender.send(Arc::clone(connection));
        }
        Ok(())
    }

    /// Sends a message to the peer.
    pub(super) async fn send(&self, message: &[u8], patience: Duration) -> Result<(), String> {
        match &self.0 {
            Kind::Nobody => Err("the message has no peer".to_owned()),
            Kind::Tcp(connection) => connection.write(message, patience).await,
            Kind::Udp(socket, address) => whole(socket.send_to(message, *address).await, message),
        }
    }
}

/// Checks that a datagram was sent whole.
pub(super) fn whole(sent: io::Result<usize>, message: &[u8]) -> Result<(), String> {
    match sent {
        Ok(sent) if sent == message.len() => Ok(()),
        Ok(sent) => Err(format!("{sent} of {} bytes were sent", message.len())),
        Err(error) => Err(error.to_string()),
    }
}

impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Nobody, Kind::Nobody) => true,
            (Kind::Tcp(one), Kind::Tcp(other)) => Arc::ptr_eq(one, other),
            (Kind::Udp(one, from), Kind::Udp(other, to)) => Arc::ptr_eq(one, other) && from == to,
            _ => false,
        }
    }
}

impl Eq for Peer {}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Peer").field(&self.address()).finish()
    }
}
