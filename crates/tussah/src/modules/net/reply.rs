//! A module that sends messages to their peers.

use std::time::Duration;

use crate::flow::{AsyncOut, module};
use crate::modules::{Attempt, Message};

/// Sends each message to its peer. For a connection from [`TcpListen`](super::TcpListen), it sends
/// a line or a frame, according to the framing of that source. For a peer of
/// [`UdpListen`](super::UdpListen), it sends a datagram from that socket.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `patience` | duration, default 10 s | the maximum time until a peer takes a message |
///
/// Input: `run` takes [`Message`]. Outputs: `sent`, optional: the [`Message`], once the system has
/// accepted it; `failed`, [`Attempt<Message>`] for a message whose peer has gone. Both are in the
/// flow of the message. The module writes one message of each flow at a time, in order. It does not
/// escape line feeds in messages for a connection with lines.
///
/// If a connection does not take a message within `patience`, it is closed; if `patience` is zero,
/// it is closed as soon as the system's buffers are full. It is also closed if writing fails, or if
/// the graph is stopped meanwhile, because the peer may have a part of the message.
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
