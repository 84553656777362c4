//! A module that asks for the next message of a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tussah_core::Handle;

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
pub struct TcpDemand {
    demanders: Arc<Demanders>,
}

/// The number of instances of [`TcpDemand`] on a runtime.
#[derive(Default)]
pub(super) struct Demanders(AtomicUsize);

impl Demanders {
    fn current() -> Arc<Self> {
        Handle::current().extension(Self::default)
    }

    /// Returns whether the current runtime has an instance. All instances of a graph exist before
    /// its sources start.
    pub(super) fn exist() -> bool {
        Self::current().0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for TcpDemand {
    fn drop(&mut self) {
        self.demanders.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[module]
impl TcpDemand {
    fn init() -> Self {
        let demanders = Demanders::current();
        demanders.0.fetch_add(1, Ordering::Relaxed);
        Self { demanders }
    }

    fn run(&self, message: Message) -> Result<(), Attempt<Message>> {
        let demanded = message.peer.demand();
        demanded.map_err(|why| Attempt::first(message, why))
    }
}
