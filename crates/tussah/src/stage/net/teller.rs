//! How a stage is told of what happens on a socket.

use std::time::Duration;

use super::event::SocketEvent;
use super::options::WhenRejected;
use crate::stage::{Event, SendError, Sender, Why};
use crate::time::sleep;

/// How long the first wait is when a controller turns an event away that has to come in; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// Bound, in milliseconds: how long a wait gets, so that it is soon seen when the controller lets events in again.
const PAUSE_MS_MAX: u64 = 100;

/// Sends to a stage. It waits as long as the stage's queue is full.
pub(super) struct Teller<E> {
    pub(super) to: Sender<E>,
    pub(super) when_rejected: WhenRejected,
}

/// Why an event was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Untold {
    /// A controller turned it away.
    Rejected,
    /// The stage is closed.
    Gone,
}

impl<E> Clone for Teller<E> {
    fn clone(&self) -> Self {
        Self {
            to: self.to.clone(),
            when_rejected: self.when_rejected,
        }
    }
}

impl<E: From<SocketEvent> + Send + 'static> Teller<E> {
    /// Tells of what the stage's controllers may turn away.
    pub(super) async fn offer(&self, event: Event<E>) -> Result<(), Untold> {
        if self.when_rejected == WhenRejected::Wait {
            return self.insist(event).await;
        }
        let sent = self.to.send(self.traced(event)).await;
        sent.map_err(|SendError { why, .. }| match why {
            Why::Closed => Untold::Gone,
            _ => Untold::Rejected,
        })
    }

    /// Tells of what the stage has to know.
    pub(super) async fn tell(&self, event: SocketEvent) -> Result<(), Untold> {
        self.insist(Event::new(E::from(event))).await
    }

    pub(super) async fn insist(&self, event: Event<E>) -> Result<(), Untold> {
        let mut event = self.traced(event);
        let mut pause = PAUSE_MIN;
        loop {
            event = match self.to.send(event).await {
                Ok(()) => return Ok(()),
                Err(SendError {
                    why: Why::Closed, ..
                }) => return Err(Untold::Gone),
                Err(SendError { event, .. }) => event,
            };
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(PAUSE_MS_MAX));
        }
    }

    /// The event as part of a trace, if the network wants it traced: it comes from outside, though the graph shows an edge to it.
    fn traced(&self, mut event: Event<E>) -> Event<E> {
        if let Some(trace) = self.to.stage.tracer.choose() {
            event.trace_on(trace);
        }
        event
    }
}
