//! A module that sends messages to their peers.

use std::time::Duration;

use crate::flow::module;
use crate::modules::{Attempt, Message};

/// Sends each message to its peer: over the connection that [`TcpListen`](super::TcpListen) has
/// accepted, as a line or a frame as it reads them, or as a datagram from the socket of
/// [`UdpListen`](super::UdpListen).
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `patience` | duration, default 10 s | the time within which a peer takes a message |
///
/// Input `run`: [`Message`]. Output `failed`: [`Attempt<Message>`] for a message whose peer has
/// gone. A connection that does not take a message in time is closed; with a patience of zero, that
/// is one whose buffers in the system are full. The module writes one message of each flow at a
/// time, in order. A line feed in a message for a connection of lines is not changed.
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
    async fn run(&self, message: Message, _order: &mut ()) -> Result<(), Attempt<Message>> {
        let sent = message.peer.send(&message.bytes, self.patience).await;
        sent.map_err(|why| Attempt::first(message, why))
    }
}
