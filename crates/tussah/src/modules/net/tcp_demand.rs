//! A module that asks for the next message of a connection.

use crate::flow::module;
use crate::modules::{Attempt, Message};

/// Asks for the next message of a connection that [`TcpListen`](super::TcpListen) accepted with
/// `on_demand: true`. `TcpListen` then reads one more message from the connection of the message
/// that arrived here.
///
/// | port | items | meaning |
/// |---|---|---|
/// | input `run` | [`Message`] | a message of the connection |
/// | output `failed` | [`Attempt<Message>`] | a message whose connection is not read on demand |
///
/// A demand that arrives before an earlier one has been met changes nothing.
///
/// In Aspen (§3 and §4), a module declares its interest in further data of a connection by a
/// message to `NetworkInput`. Here, a module of its own takes these messages, so that the graph has
/// no cycle.
#[module]
#[derive(Default)]
pub struct TcpDemand;

#[module]
impl TcpDemand {
    fn run(&self, message: Message) -> Result<(), Attempt<Message>> {
        let demanded = message.peer.demand();
        demanded.map_err(|why| Attempt::first(message, why))
    }
}
