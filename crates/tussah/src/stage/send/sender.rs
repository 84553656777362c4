//! The sending end of a stage's queue.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::{here, outgoing};
use crate::stage::event::{Batch, Event, NotTaken, Reason, Refusal};
use crate::stage::run::Shared;
use crate::stage::state::How;

/// The minimum length of a batch that is handed over as a whole instead of event by event.
const WHOLE_MIN: usize = 16;

/// The sending end of a stage's queue. A `Sender` is cheap to clone.
pub struct Sender<E> {
    pub(crate) stage: Arc<Shared<E>>,
    /// The number of the sending stage; 0 for other senders.
    pub(crate) from: u32,
    /// True if this is an edge that never waits.
    pub(crate) offers: bool,
}

/// A sender that never waits, for an edge that can be part of a cycle. A `TrySender` is cheap to
/// clone.
pub struct TrySender<E>(pub(crate) Sender<E>);

impl<E> Clone for TrySender<E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<E: Send + 'static> TrySender<E> {
    /// Sends an event, as [`Sender::try_send`] does.
    ///
    /// # Errors
    /// Returns an error with the event if the stage refuses it.
    #[inline]
    pub fn try_send(&self, event: impl Into<Event<E>>) -> Result<(), SendError<E>> {
        self.0.try_send(event)
    }

    /// Sends an event, as [`Sender::send_or`] does.
    pub fn send_or(&self, event: impl Into<Event<E>>, or: impl FnOnce(Event<E>, Refusal)) {
        self.0.send_or(event, or);
    }
}

impl<E> Clone for Sender<E> {
    fn clone(&self) -> Self {
        Self {
            stage: Arc::clone(&self.stage),
            from: self.from,
            offers: self.offers,
        }
    }
}

/// A refused event, with the reason for the refusal. This type is `Sync` if the event's value is
/// `Sync`, even if the drop callback is not, so a `SendError` converts to
/// `Box<dyn Error + Send + Sync>`.
pub struct SendError<E> {
    /// The refused event, unchanged.
    pub event: Event<E>,
    /// The name of the stage that refused the event.
    pub stage: Arc<str>,
    /// The reason for the refusal.
    pub why: Refusal,
}

impl<E> fmt::Debug for SendError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError")
            .field("stage", &self.stage)
            .field("why", &self.why)
            .finish_non_exhaustive()
    }
}

impl<E> fmt::Display for SendError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stage, why, .. } = self;
        write!(f, "the stage `{stage}` did not take the event: {why}")
    }
}

impl<E> std::error::Error for SendError<E> {}

impl<E: Send + 'static> Sender<E> {
    /// Sends an event if the stage's controllers admit it and the queue has free capacity. Capacity
    /// counts as free only if no other sender waits for it or has
    /// [reserved](crate::stage#what-a-handler-sends) it.
    ///
    /// # Errors
    /// Returns an error with the event if the stage refuses it.
    #[inline]
    pub fn try_send(&self, event: impl Into<Event<E>>) -> Result<(), SendError<E>> {
        outgoing::send(self, event.into(), false)
            .map_err(|(event, why)| self.refused(event, why.refusal()))
    }

    /// Sends an event, and waits if the queue is full.
    ///
    /// Waiting senders proceed in order of arrival, one event at a time. The order of arrival does
    /// not guarantee equal shares: while a sender's OS thread is not scheduled on a CPU, the sender
    /// cannot begin its next wait.
    ///
    /// If the queue has free capacity, the call to `send` itself sends the event, and the future
    /// completes immediately. If the future is dropped, an event that has not been queued is
    /// dropped with it. A future that is neither polled nor dropped keeps its place among the
    /// waiting senders, and any capacity reserved for it, until the stage is drained or closed. If
    /// you have several futures, await them in the order in which you created them.
    ///
    /// # Errors
    /// Returns an error with the event if the stage is closed, or if a controller rejects the
    /// event.
    #[inline(always)]
    pub fn send(&self, event: impl Into<Event<E>>) -> Sending<'_, E> {
        match outgoing::send(self, event.into(), true) {
            Ok(()) => Sending(None),
            Err((event, why)) => self.sending(event, why),
        }
    }

    /// Sends a value as [`send`](Self::send) does, but returns it if it was not sent.
    #[inline(always)]
    pub(crate) fn send_made(&self, make: impl FnOnce() -> E) -> Result<(), (Event<E>, NotTaken)> {
        outgoing::send_made(self, make)
    }

    /// Sends an event as [`send`](Self::send) does, but returns it if it was not sent.
    #[inline(always)]
    pub(crate) fn send_at_once(&self, event: Event<E>) -> Result<(), (Event<E>, NotTaken)> {
        outgoing::send(self, event, true)
    }

    /// Sends a value that may not be lost: no controller is asked about it. Waits for room like
    /// [`send`](Self::send).
    pub(crate) async fn insist(&self, value: E) -> Result<(), SendError<E>> {
        let how = How {
            asked: true,
            ..How::WAITS
        };
        let Err((event, why)) = self.stage.offer(self.from, Event::from(value), how) else {
            return Ok(());
        };
        let waiting = self.waiting(&event, why);
        let mut place = Some(event);
        let sent = self.go_on(&mut place, how, why, waiting).await;
        sent.map_err(|why| {
            let event = place.take().expect("what is not sent is in its place");
            self.refused(event, why)
        })
    }

    #[cold]
    fn refused(&self, event: Event<E>, why: Refusal) -> SendError<E> {
        SendError {
            event,
            stage: Arc::clone(&self.stage.name),
            why,
        }
    }

    /// Waits for the room of an event that was refused at once, if it can get room.
    #[cold]
    #[inline(never)]
    pub(crate) fn sending(&self, event: Event<E>, why: NotTaken) -> Sending<'_, E> {
        let rest = if why.can_wait() {
            // The wait begins here, because the future may be dropped before it is polled.
            let waiting = self.waiting(&event, why);
            let mut place = Some(event);
            Rest::Waits(Box::pin(async move {
                let sent = self.go_on(&mut place, How::WAITS, why, waiting).await;
                sent.map_err(|why| {
                    let event = place.take().expect("what is not sent is in its place");
                    self.refused(event, why)
                })
            }))
        } else {
            Rest::Refused(Some(self.refused(event, why.refusal())))
        };
        Sending(Some(Box::new(rest)))
    }

    /// Sends all remaining events of a batch with their metadata. Waits while the queue is full.
    ///
    /// If no event needs an individual check, the events are handed over without copying. The
    /// fastest way to pass on events is to change them in place ([`Batch::events_mut`]) and then
    /// forward the batch.
    ///
    /// Returns the number of events that the stage's controllers rejected; these events are
    /// dropped, and their drop callbacks are called. If the future is dropped, events that have not
    /// been sent stay in the batch.
    ///
    /// # Errors
    /// Returns an error if the stage is closed. Events that have not been sent stay in the batch.
    pub async fn forward(&self, batch: &mut Batch<E>) -> Result<u64, Refusal> {
        let mut rejected = 0;
        let mut turn = false;
        while !batch.is_empty() {
            // A few events are collected together with other sent events. Each event that joins the
            // trace or the path of the handler's event is sent on its own.
            if batch.len() >= WHOLE_MIN && here::is_alone() {
                outgoing::hand_over_for(&self.stage);
                if self
                    .stage
                    .push_batch(self.from, batch, std::mem::take(&mut turn))
                {
                    continue;
                }
            }
            let Some(event) = batch.next_event() else {
                break;
            };
            let Err((event, why)) = outgoing::send(self, event, true) else {
                continue;
            };
            let waiting = self.waiting(&event, why);
            let mut unsent = Unsent {
                batch,
                event: Some(event),
            };
            match self
                .go_on(&mut unsent.event, How::WAITS, why, waiting)
                .await
            {
                Ok(()) => turn = true,
                Err(Refusal::Closed) => return Err(Refusal::Closed),
                Err(_) => {
                    rejected += 1;
                    if let Some(event) = unsent.event.take() {
                        event.end(Reason::Shed);
                    }
                }
            }
        }
        Ok(rejected)
    }

    /// Queues the sender for room, if it was refused because there was none.
    fn waiting(&self, event: &Event<E>, why: NotTaken) -> Option<Waiting<'_, E>> {
        why.is_full().then(|| Waiting {
            sender: self,
            number: Some(self.stage.wait_for_room(self.from, event, why)),
        })
    }

    /// Sends the event in `place`, which was just refused, when there is room. The event stays in
    /// its place until it is sent, even if the future is dropped.
    async fn go_on(
        &self,
        place: &mut Option<Event<E>>,
        how: How,
        why: NotTaken,
        waiting: Option<Waiting<'_, E>>,
    ) -> Result<(), Refusal> {
        match waiting {
            Some(waiting) => self.send_later(place, how, waiting).await,
            None if why == NotTaken::Proxied => self.send_by_proxy(place).await,
            None => Err(why.refusal()),
        }
    }

    /// Sends the event in `place`, and waits while the queue is full; otherwise the same as
    /// [`go_on`](Self::go_on).
    pub(crate) fn send_from<'a>(&'a self, place: &'a mut Option<Event<E>>) -> SendingFrom<'a> {
        Box::pin(async move {
            let event = place.take().expect("what is not sent is in its place");
            match outgoing::send(self, event, true) {
                Ok(()) => Ok(()),
                Err((event, why)) => {
                    let waiting = self.waiting(&event, why);
                    *place = Some(event);
                    self.go_on(place, How::WAITS, why, waiting).await
                }
            }
        })
    }

    /// Waits for room, and then sends the event in `place`.
    async fn send_later(
        &self,
        place: &mut Option<Event<E>>,
        how: How,
        mut waiting: Waiting<'_, E>,
    ) -> Result<(), Refusal> {
        let number = waiting.number.expect("it is taken here only");
        loop {
            self.stage.called(number).await;
            let event = place.take().expect("what is not sent is in its place");
            let (class, plain) = (event.class_of(), event.is_plain());
            let sent = self.stage.offer_called((self.from, number), event, how);
            let Err((event, why)) = sent else {
                waiting.number = None;
                if plain {
                    outgoing::take_share(&self.stage, class);
                }
                return Ok(());
            };
            *place = Some(event);
            if why.is_full() {
                continue;
            }
            waiting.number = None;
            if why == NotTaken::Proxied {
                return self.send_by_proxy(place).await;
            }
            return Err(why.refusal());
        }
    }

    /// Sends an event, or calls `or` with the event and the reason if the stage refuses it.
    pub fn send_or(&self, event: impl Into<Event<E>>, or: impl FnOnce(Event<E>, Refusal)) {
        if let Err((event, why)) = outgoing::send(self, event.into(), false) {
            or(event, why.refusal());
        }
    }
}

/// The future of [`Sender::send`].
// The future takes one word, so that moving it costs nothing if the event has been sent.
#[must_use = "an event that found no room is sent only while this is awaited"]
pub struct Sending<'a, E>(Option<Box<Rest<'a, E>>>);

/// The remaining work for an event that was not sent immediately.
enum Rest<'a, E> {
    Refused(Option<SendError<E>>),
    Waits(Pin<Box<dyn Future<Output = Result<(), SendError<E>>> + Send + 'a>>),
}

impl<E> Unpin for Sending<'_, E> {}

impl<E: Send + 'static> Future for Sending<'_, E> {
    type Output = Result<(), SendError<E>>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            None => Poll::Ready(Ok(())),
            Some(rest) => rest.poll(cx),
        }
    }
}

impl<E: Send + 'static> Rest<'_, E> {
    #[cold]
    #[inline(never)]
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError<E>>> {
        match self {
            Rest::Refused(error) => match error.take() {
                Some(error) => Poll::Ready(Err(error)),
                None => Poll::Ready(Ok(())),
            },
            Rest::Waits(sending) => sending.as_mut().poll(cx),
        }
    }
}

/// The future of [`Sender::send_from`].
pub(crate) type SendingFrom<'a> = Pin<Box<dyn Future<Output = Result<(), Refusal>> + Send + 'a>>;

/// An event that was taken out of a batch to be sent on. Dropping this puts an unsent event back.
struct Unsent<'a, E> {
    batch: &'a mut Batch<E>,
    event: Option<Event<E>>,
}

impl<E> Drop for Unsent<'_, E> {
    fn drop(&mut self) {
        if let Some(event) = self.event.take() {
            self.batch.put_back(event);
        }
    }
}

/// A sender that waits for room or has been handed room. Dropping this gives up both the wait and
/// the room.
struct Waiting<'a, E: Send + 'static> {
    sender: &'a Sender<E>,
    number: Option<u64>,
}

impl<E: Send + 'static> Drop for Waiting<'_, E> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.sender.stage.give_up(number);
        }
    }
}

/// Drops the event and calls its drop callback. Use this function as a policy for
/// [`Sender::send_or`].
pub fn shed<E>(event: Event<E>, _why: Refusal) {
    event.end(Reason::Shed);
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use futures_lite::future::poll_once;

    use super::Refusal;
    use crate::stage::control::{Admission, Arrival, Cadence, Controller, Owns, Sample, Settings};
    use crate::stage::{Network, each};

    /// A controller that rejects every event.
    struct Rejects;

    impl Controller for Rejects {
        fn name(&self) -> &'static str {
            "rejects"
        }
        fn owns(&self) -> Owns {
            Owns::ADMISSION
        }
        fn cadence(&self) -> Cadence {
            Cadence::every_ns(1_000_000_000)
        }
        fn sample(&mut self, _sample: &Sample<'_>, _now_ns: u64) -> Settings {
            Settings::default()
        }
        fn on_enqueue(&mut self, _arrival: &Arrival) -> Admission {
            Admission::Reject
        }
    }

    #[test]
    fn a_sender_that_insists_passes_the_controllers_and_waits_for_room() {
        let runtime = crate::Runtime::builder().workers(1).build();
        let runtime = runtime.expect("a runtime");
        let network = Network::on(runtime.handle(), "n");
        let sum = Arc::new(AtomicU32::new(0));
        let stage = network.stage("s").queue(1).controller(Rejects);
        let stage = stage.handler(|_| {
            let sum = Arc::clone(&sum);
            Ok(each(move |n: u32| {
                sum.fetch_add(n, Ordering::Relaxed);
                async {}
            }))
        });
        let stage = stage.expect("a stage");
        let sender = stage.sender();
        runtime.block_on(async {
            stage.pause();
            assert!(sender.send(1).await.is_err());
            sender.insist(10).await.expect("there is room");
            let mut waits = pin!(sender.insist(100));
            assert!(poll_once(&mut waits).await.is_none(), "the queue is full");
            stage.resume();
            waits.await.expect("there is room now");
            network.drain().await;
            assert_eq!(sum.load(Ordering::Relaxed), 110);
            let refused = sender.insist(1000).await.expect_err("it is closed");
            assert_eq!(refused.why, Refusal::Closed);
            stage.destroy(Duration::ZERO).await;
        });
    }
}
