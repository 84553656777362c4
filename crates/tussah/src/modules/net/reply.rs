//! A module that sends messages to their peers.

use std::time::Duration;

use crate::flow::{AsyncOut, module};
use crate::modules::{Attempt, Message};

/// Sends each message to its peer. If the peer is a connection that [`TcpListen`](super::TcpListen)
/// accepted, the module sends a line or a frame, depending on the `framing` of `TcpListen`. If the
/// peer comes from [`UdpListen`](super::UdpListen), the module sends a datagram from the socket of
/// `UdpListen`.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `patience` | duration, default 10 s | the maximum time until a peer takes a message |
///
/// | port | items | meaning |
/// |---|---|---|
/// | input `run` | [`Message`] | a message to send |
/// | output `sent`, optional | [`Message`] | a message that the system has accepted |
/// | output `failed` | [`Attempt<Message>`] | a message that could not be sent |
///
/// The items that the module sends to its outputs stay in the flow of the message. The module
/// writes the messages of a flow one at a time, in order. The module does not escape line feeds in
/// a message, even if the framing of the connection is `lines`.
///
/// If a connection does not accept a message within `patience`, the module closes the connection.
/// With a `patience` of zero, the module closes the connection as soon as the system's buffers are
/// full. The module also closes a connection if a write fails, or if the graph is stopped during a
/// write. Whenever the module closes a connection, the peer may already have received part of the
/// message.
#[module]
pub struct Reply {
    patience: Duration,
}

/// The time within which a peer takes a message, if the graph does not set it.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

#[module]
impl Reply {
    fn init(patience: Option<Duration>) -> Self {
        let patience = patience.unwrap_or(PATIENCE);
        Self { patience }
    }

    // The state is empty: it keeps the messages of a flow in order.
    async fn run(
        &self,
        message: Message,
        _order: &mut (),
        sent: Option<&impl AsyncOut<Message>>,
    ) -> Result<(), Attempt<Message>> {
        match message.peer.send(&message.bytes, self.patience).await {
            Ok(()) => report(message, sent).await,
            Err(why) => return Err(Attempt::first(message, why)),
        }
        Ok(())
    }
}

/// Sends an item that was sent over a network to the port `sent`.
pub(super) async fn report<T: Send>(item: T, sent: Option<&impl AsyncOut<T>>) {
    if let Some(sent) = sent {
        sent.send(item).await;
    }
}
