//! Delivery of a socket's events to a stage.

use std::time::Duration;

use super::event::SocketEvent;
use super::options::WhenRejected;
use crate::stage::{Event, Refusal, SendError, Sender};
use crate::time::sleep;

/// The first pause when a controller rejects an event that has to be queued; each further pause is
/// twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// Bound, in milliseconds: the longest pause before a rejected event is sent again, so that the
/// sender soon notices when the controller admits events again.
const PAUSE_MS_MAX: u64 = 100;

/// A sender to a stage. It waits while the stage's queue is full.
pub(super) struct EventSink<E> {
    pub(super) to: Sender<E>,
    pub(super) when_rejected: WhenRejected,
}

/// The reason why an event was not delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SinkError {
    /// A controller rejected the event.
    Rejected,
    /// The stage is closed.
    Gone,
}

impl<E> Clone for EventSink<E> {
    fn clone(&self) -> Self {
        Self {
            to: self.to.clone(),
            when_rejected: self.when_rejected,
        }
    }
}

impl<E: From<SocketEvent> + Send + 'static> EventSink<E> {
    /// Sends an event that the stage's controllers may reject.
    pub(super) async fn offer(&self, event: Event<E>) -> Result<(), SinkError> {
        if self.when_rejected == WhenRejected::Wait {
            return self.insist(event).await;
        }
        let sent = self.to.send(self.traced(event)).await;
        sent.map_err(|SendError { why, .. }| match why {
            Refusal::Closed => SinkError::Gone,
            _ => SinkError::Rejected,
        })
    }

    /// Sends an event that the stage must receive.
    pub(super) async fn tell(&self, event: SocketEvent) -> Result<(), SinkError> {
        self.insist(Event::new(E::from(event))).await
    }

    pub(super) async fn insist(&self, event: Event<E>) -> Result<(), SinkError> {
        let mut event = self.traced(event);
        let mut pause = PAUSE_MIN;
        loop {
            event = match self.to.send(event).await {
                Ok(()) => return Ok(()),
                Err(SendError {
                    why: Refusal::Closed,
                    ..
                }) => return Err(SinkError::Gone),
                Err(SendError { event, .. }) => event,
            };
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(PAUSE_MS_MAX));
        }
    }

    /// Makes the event part of a trace if the network chooses it. The event comes from outside,
    /// although the graph shows an edge to the stage.
    fn traced(&self, mut event: Event<E>) -> Event<E> {
        if let Some(trace) = self.to.stage.tracer.choose() {
            event.trace_on(trace);
        }
        event
    }
}
