//! The sending end of a stage's queue.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::batch::Batch;
use super::event::{Event, Reason};
use super::outgoing;
use super::shared::Shared;
use super::state::How;

/// A batch of so many events is handed over by itself, without being collected event by event.
const WHOLE_MIN: usize = 16;

/// Sends events to a stage. Cheap to clone.
pub struct Sender<E> {
    pub(crate) stage: Arc<Shared<E>>,
    /// The number of the stage that sends; 0 for others.
    pub(crate) from: u32,
    /// It is an edge that never waits.
    pub(crate) offers: bool,
}

/// Sends events to a stage, and never waits: an edge that may be part of a cycle. Cheap to clone.
pub struct Offerer<E>(pub(crate) Sender<E>);

impl<E> Clone for Offerer<E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<E: Send + 'static> Offerer<E> {
    /// As [`Sender::try_send`].
    ///
    /// # Errors
    /// With the event inside.
    #[inline]
    pub fn try_send(&self, event: impl Into<Event<E>>) -> Result<(), SendError<E>> {
        self.0.try_send(event)
    }

    /// As [`Sender::send_or`].
    pub fn send_or(&self, event: impl Into<Event<E>>, or: impl FnOnce(Event<E>, Why)) {
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

/// Why a stage did not take an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Why {
    /// The queue has no room for it, or none for its class.
    Full,
    /// Too many events with its key are queued.
    KeyFull,
    /// The controller with this name turned it away.
    Rejected(&'static str),
    /// The stage lets nothing in any more.
    Closed,
    #[doc(hidden)]
    Degrade,
    #[doc(hidden)]
    Proxied,
}

impl Why {
    pub(crate) fn is_full(self) -> bool {
        matches!(self, Why::Full | Why::KeyFull)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Full => f.write_str("its queue is full"),
            Why::KeyFull => f.write_str("the queue of its key is full"),
            Why::Rejected(name) => write!(f, "turned away by `{name}`"),
            Why::Closed => f.write_str("the stage is closed"),
            Why::Degrade => f.write_str("to be degraded"),
            Why::Proxied => f.write_str("its proxy's queue is full"),
        }
    }
}

/// An event that was not taken, and why. It can be shared between threads if the event's value can, whatever its drop callback is; so it fits into
/// `Box<dyn Error + Send + Sync>`.
pub struct SendError<E> {
    /// The event, as it was sent.
    pub event: Event<E>,
    /// The stage that did not take it.
    pub stage: Arc<str>,
    /// Why.
    pub why: Why,
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
    /// Sends an event if there is room for it that nobody waits for, and the stage's controllers let it in.
    ///
    /// # Errors
    /// With the event inside.
    #[inline]
    pub fn try_send(&self, event: impl Into<Event<E>>) -> Result<(), SendError<E>> {
        outgoing::send(self, event.into(), false).map_err(|(event, why)| self.refused(event, why))
    }

    /// Sends an event, and waits while the queue is full. Senders that wait take turns, in the order in which they came, with one event each.
    ///
    /// It is sent when this is called, if there is room; the future is for the case that there is none. Dropping the future drops an event that has
    /// not been queued.
    ///
    /// # Errors
    /// With the event inside, if the stage is closed or a controller turns it away.
    #[inline(always)]
    pub fn send(&self, event: impl Into<Event<E>>) -> Sending<'_, E> {
        match outgoing::send(self, event.into(), true) {
            Ok(()) => Sending(None),
            Err(refused) => self.not_sent(refused),
        }
    }

    #[cold]
    fn refused(&self, event: Event<E>, why: Why) -> SendError<E> {
        SendError {
            event,
            stage: Arc::clone(&self.stage.name),
            why,
        }
    }

    #[cold]
    #[inline(never)]
    fn not_sent(&self, (event, why): (Event<E>, Why)) -> Sending<'_, E> {
        let rest = if why.is_full() || why == Why::Proxied {
            // Made here, since the future may be dropped before it is polled.
            let waiting = self.waiting(&event, why);
            let mut place = Some(event);
            Rest::Waits(Box::pin(async move {
                let sent = self.go_on(&mut place, why, waiting).await;
                sent.map_err(|why| {
                    let event = place.take().expect("what is not sent is in its place");
                    self.refused(event, why)
                })
            }))
        } else {
            Rest::Refused(Some(self.refused(event, why)))
        };
        Sending(Some(Box::new(rest)))
    }

    /// Sends on all that is left of a batch, with what the events carry; waits while the queue is full. Where nothing has to be looked at event by event,
    /// they change hands without being copied: a handler that changes events in place ([`Batch::events_mut`]) and sends them on by this is the fastest there is.
    ///
    /// Returns how many events the stage's controllers turned away; these are dropped, and whom they want told is told so. Dropping the future
    /// leaves in the batch what has not been sent.
    ///
    /// # Errors
    /// If the stage is closed; what was not sent is still in the batch.
    pub async fn forward(&self, batch: &mut Batch<E>) -> Result<u64, Why> {
        let mut turned_away = 0;
        let mut turn = false;
        while !batch.is_empty() {
            // Few are collected with what else is sent.
            if batch.len() >= WHOLE_MIN {
                outgoing::hand_over_for(&self.stage);
                if self
                    .stage
                    .push_batch(self.from, batch, std::mem::take(&mut turn))
                {
                    continue;
                }
            }
            let event = batch.next_event().expect("it is not empty");
            let Err((event, why)) = outgoing::send(self, event, true) else {
                continue;
            };
            let waiting = self.waiting(&event, why);
            let mut unsent = Unsent {
                batch,
                event: Some(event),
            };
            match self.go_on(&mut unsent.event, why, waiting).await {
                Ok(()) => turn = true,
                Err(Why::Closed) => return Err(Why::Closed),
                Err(_) => {
                    turned_away += 1;
                    if let Some(event) = unsent.event.take() {
                        event.end(Reason::Shed);
                    }
                }
            }
        }
        Ok(turned_away)
    }

    /// The sender as one of those that wait for room, if it was refused for want of that.
    fn waiting(&self, event: &Event<E>, why: Why) -> Option<Waiting<'_, E>> {
        why.is_full().then(|| Waiting {
            sender: self,
            number: Some(self.stage.wait_for_room(self.from, event, why)),
        })
    }

    /// Sends the event in `place`, which has just been refused, when there is room. Until it is sent it is in its place, also if the future is dropped.
    async fn go_on(
        &self,
        place: &mut Option<Event<E>>,
        why: Why,
        waiting: Option<Waiting<'_, E>>,
    ) -> Result<(), Why> {
        match waiting {
            Some(waiting) => self.send_later(place, waiting).await,
            None if why == Why::Proxied => self.send_by_proxy(place).await,
            None => Err(why),
        }
    }

    /// Sends the event in `place`, and waits while the queue is full; as [`go_on`](Self::go_on) otherwise.
    pub(crate) fn send_from<'a>(&'a self, place: &'a mut Option<Event<E>>) -> SendingFrom<'a> {
        Box::pin(async move {
            let event = place.take().expect("what is not sent is in its place");
            match outgoing::send(self, event, true) {
                Ok(()) => Ok(()),
                Err((event, why)) => {
                    let waiting = self.waiting(&event, why);
                    *place = Some(event);
                    self.go_on(place, why, waiting).await
                }
            }
        })
    }

    /// Waits for room, and sends the event in `place` when it is handed some.
    async fn send_later(
        &self,
        place: &mut Option<Event<E>>,
        mut waiting: Waiting<'_, E>,
    ) -> Result<(), Why> {
        let number = waiting.number.expect("it is taken here only");
        loop {
            self.stage.called(number).await;
            let event = place.take().expect("what is not sent is in its place");
            let (class, plain) = (event.class_of(), event.is_plain());
            let sent = self
                .stage
                .offer_called((self.from, number), event, How::WAITS);
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
            if why == Why::Proxied {
                return self.send_by_proxy(place).await;
            }
            return Err(why);
        }
    }

    /// Sends an event; if the stage does not take it, `or` says what becomes of it.
    pub fn send_or(&self, event: impl Into<Event<E>>, or: impl FnOnce(Event<E>, Why)) {
        if let Err((event, why)) = outgoing::send(self, event.into(), false) {
            or(event, why);
        }
    }
}

/// What [`Sender::send`] returns.
// One word, so that it costs nothing to move where the event has been sent.
#[must_use = "an event that found no room is sent only while this is awaited"]
pub struct Sending<'a, E>(Option<Box<Rest<'a, E>>>);

/// What there is to do for an event that was not sent at once.
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

/// What [`Sender::send_from`] returns.
pub(crate) type SendingFrom<'a> = Pin<Box<dyn Future<Output = Result<(), Why>> + Send + 'a>>;

/// An event that was taken out of a batch to be sent on; what is not sent goes back when this is dropped.
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

/// One that waits for room, or has been handed some; when it is dropped, it gives that back.
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

/// Drops the event, and tells whoever it wants told: a policy for [`Sender::send_or`].
pub fn shed<E>(event: Event<E>, _why: Why) {
    event.end(Reason::Shed);
}
