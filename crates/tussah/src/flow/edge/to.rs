//! The sending ends of edges to the queues of receivers.

use super::{Ends, Push, Wait, Wrap};
use crate::flow::dropped::reason;
use crate::flow::flows::{Flow, Parcel};
use crate::stage::{Event, Reason, Refusal, Sender};

/// An edge with all of its types.
pub(in crate::flow) struct To<S, I, W> {
    pub(in crate::flow) to: S,
    pub(in crate::flow) ends: Ends<I>,
    pub(super) wrap: W,
}

/// A sender that never waits.
pub(super) struct Offers<E>(pub(super) Sender<E>);

/// A sender that never waits, and makes room by ending the oldest item.
pub(super) struct Evicts<E>(pub(super) Sender<E>);

/// Bound, in items: the maximum number of the oldest items that are dropped to make room for one
/// newer item. Waiting senders may get the room; beyond the bound, the newer item is rejected.
const EVICTED_MAX: usize = 16;

impl<S, I, W> To<S, I, W> {
    #[inline(always)]
    pub(in crate::flow) fn parcel<T>(&self, flow: Flow, item: T) -> Parcel<I>
    where
        W: Wrap<T, I>,
    {
        Parcel {
            flow,
            item: (self.wrap)(item),
        }
    }

    fn refused(&self, event: Event<Parcel<I>>, why: Refusal) -> Option<Wait<'static>> {
        (self.ends)(event.into_inner(), reason(why))
    }
}

impl<T: Send + 'static, I: Send + 'static, W: Wrap<T, I>> Push<T> for To<Sender<Parcel<I>>, I, W> {
    fn push(&self, flow: Flow, item: T) -> Option<Wait<'_>> {
        let (event, why) = self.to.send_made(|| self.parcel(flow, item)).err()?;
        let sending = self.to.sending(event, why);
        Some(Box::pin(async move {
            if let Err(error) = sending.await
                && let Some(wait) = self.refused(error.event, error.why)
            {
                wait.await;
            }
        }))
    }

    fn offer(&self, flow: Flow, item: T) -> bool {
        self.to.try_send(self.parcel(flow, item)).is_ok()
    }

    fn end(&self, flow: Flow, item: T, why: Reason) -> Option<Wait<'static>> {
        (self.ends)(self.parcel(flow, item), why)
    }
}

impl<T: Send + 'static, I: Send + 'static, W: Wrap<T, I>> Push<T> for To<Offers<Parcel<I>>, I, W> {
    fn push(&self, flow: Flow, item: T) -> Option<Wait<'_>> {
        let parcel = self.parcel(flow, item);
        let mut wait = None;
        self.to
            .0
            .send_or(parcel, |event, why| wait = self.refused(event, why));
        wait
    }

    fn offer(&self, flow: Flow, item: T) -> bool {
        self.to.0.try_send(self.parcel(flow, item)).is_ok()
    }

    fn end(&self, flow: Flow, item: T, why: Reason) -> Option<Wait<'static>> {
        (self.ends)(self.parcel(flow, item), why)
    }
}

impl<T: Send + 'static, I: Send + 'static, W: Wrap<T, I>> Push<T> for To<Evicts<Parcel<I>>, I, W> {
    fn push(&self, flow: Flow, item: T) -> Option<Wait<'_>> {
        let mut event = Event::from(self.parcel(flow, item));
        let (mut evicted, mut waits) = (0, Vec::new());
        loop {
            let Err((back, why)) = self.to.0.send_at_once(event) else {
                return all(waits);
            };
            let evict = |old| waits.extend((self.ends)(old, Reason::Shed));
            let is_over = !why.is_full() || evicted == EVICTED_MAX;
            if is_over || !self.to.0.stage.shed_oldest(evict) {
                waits.extend(self.refused(back, why.refusal()));
                return all(waits);
            }
            (event, evicted) = (back, evicted + 1);
        }
    }

    fn offer(&self, flow: Flow, item: T) -> bool {
        // Nothing is evicted: what ends here may come from a queue that evicts.
        self.to.0.try_send(self.parcel(flow, item)).is_ok()
    }

    fn end(&self, flow: Flow, item: T, why: Reason) -> Option<Wait<'static>> {
        (self.ends)(self.parcel(flow, item), why)
    }
}

/// Returns one wait for all of these.
fn all(waits: Vec<Wait<'static>>) -> Option<Wait<'static>> {
    let is_any = !waits.is_empty();
    is_any.then(|| -> Wait<'static> {
        Box::pin(async move {
            for wait in waits {
                wait.await;
            }
        })
    })
}
