//! Waiting for room in a stage's queue: a refused sender is woken, and sends with the room handed
//! to it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::here;
use super::outgoing::Outgoing;
use crate::stage::event::{Class, Event, NotTaken, Refusal};
use crate::stage::queue::{
    Lacks, Next, PATIENCE, PATIENCE_LONG, PATIENCE_MAX, Senders, Waiter, Wanted,
};
use crate::stage::run::{Inner, Shared};
use crate::stage::state::{Gate, How, State, WaitsFor};

impl<E: Send + 'static> Shared<E> {
    /// Queues a refused sender for room, and returns its number.
    pub(crate) fn wait_for_room(
        self: &Arc<Self>,
        from: u32,
        event: &Event<E>,
        why: NotTaken,
    ) -> u64 {
        let mut inner = self.lock();
        inner.state.queue.look_at(event);
        let wanted = inner.state.wanted(event);
        let number = inner.add_sender(from, wanted, why);
        self.release(inner);
        number
    }

    /// Waits until a sender is woken.
    pub(crate) async fn called(self: &Arc<Self>, number: u64) {
        let mut turns = 0;
        poll_fn(|cx| {
            loop {
                let mut inner = self.lock();
                match inner.poll_sender(number, cx.waker()) {
                    Next::Send => return Poll::Ready(()),
                    Next::LetOthers(most) if turns >= most => {
                        inner.begin_round();
                        self.release(inner);
                        continue;
                    }
                    Next::LetOthers(_) => {
                        drop(inner);
                        turns += 1;
                        cx.waker().wake_by_ref();
                    }
                    Next::Wait => {}
                }
                here::note_wait(WaitsFor::Room);
                return Poll::Pending;
            }
        })
        .await;
    }

    /// Queues the event of a woken sender. If the queue is full again, the sender keeps its place
    /// and continues to wait; otherwise it stops waiting.
    pub(crate) fn offer_called(
        self: &Arc<Self>,
        (from, number): (u32, u64),
        event: Event<E>,
        how: How,
    ) -> Result<(), (Event<E>, NotTaken)> {
        let mut inner = self.lock();
        if inner.is_proxied(from) {
            drop(inner);
            self.give_up(number);
            return Err((event, NotTaken::Proxied));
        }
        // If this panics, the event ends with the sender, and dropping the sender returns its
        // reserved room.
        inner.state.queue.look_at(&event);
        let now_ns = self.time.now_ns();
        let reserved = inner.senders.take_reserved(number);
        inner.state.unreserve(reserved);
        let offered = inner.state.offer(event, how, now_ns);
        match &offered {
            Err((event, why)) if why.is_full() => {
                let wanted = inner.state.wanted(event);
                inner.refuse_called(number, wanted, *why);
            }
            // The sender tries again immediately.
            Err((_, NotTaken::Degrade)) => inner.call_again(number, reserved),
            _ => {
                // Another sender with this key may find room, too, and so may any other sender if
                // this one did not use its room.
                inner.state.freed |= offered.is_err() || inner.senders.lacked_key(number);
                inner.senders.remove(number);
            }
        }
        self.offered(inner, now_ns);
        match offered {
            Err((mut event, NotTaken::Degrade)) => {
                self.make_smaller(&mut event);
                let how = How { asked: true, ..how };
                self.offer_called((from, number), event, how)
            }
            offered => offered.map_err(|(event, why)| (event.refused(), why)),
        }
    }

    /// Ends a sender's wait: its room goes to the next sender.
    pub(crate) fn give_up(self: &Arc<Self>, number: u64) {
        let mut inner = self.lock();
        let reserved = inner.senders.remove(number);
        inner.state.unreserve(reserved);
        inner.state.freed = true;
        self.release(inner);
    }

    /// Reserves a sender's share of the free room when it is its turn.
    pub(crate) fn reserve_share(&self, class: Class, begun_ns: u64) -> Outgoing<E> {
        let mut inner = self.lock();
        let mut outgoing = Outgoing {
            class,
            ..Outgoing::default()
        };
        if inner.proxies.is_empty() && !inner.senders.any_waits() {
            let sharing = inner.senders.sharing();
            (outgoing.granted, outgoing.then) = inner.state.reserve(class, sharing, begun_ns);
        }
        if outgoing.granted > 0 {
            outgoing.chunk = inner.state.queue.spare().into();
        }
        outgoing
    }
}

impl<E> State<E> {
    /// Returns whether a class has no more room.
    fn lacks_class(&self, class: usize) -> bool {
        self.queued_by_class()[class] >= self.bounds.class_max[class]
    }

    fn has_room(&self, credits: u64) -> bool {
        let used = self.credits();
        used == 0 || used + credits <= self.threshold
    }

    /// Starts handing out room until there is none left, if enough is free: one wake-up then pays
    /// for much room.
    fn begin_filling(&self, senders: &mut Senders, freed: bool) {
        let half = self.threshold / 2;
        // Events in a cycle may keep the queue full, but waiting senders must still get room.
        let served = self.counts.finished.saturating_sub(senders.full_at);
        senders.filling |= self.credits() <= half
            || served > half
            // If no servlet computes, there may be no more room until the senders continue.
            || self.computing() == 0
            || senders.any_unlike && freed;
    }

    /// Returns whether the stage has so much to do that new events are not urgent.
    fn has_enough(&self) -> bool {
        self.credits() + self.in_service() > self.threshold / 4
    }

    /// Returns whether the stage has enough to do and is computing, so that its servlets check the
    /// senders again.
    fn keeps_on(&self) -> bool {
        self.has_enough() && self.computing() > 0
    }
}

impl<E> Inner<E> {
    /// Returns the reason why an event is refused because its room belongs to waiting senders. A
    /// final refusal is counted.
    #[cold]
    pub(crate) fn goes_behind(&mut self, event: &Event<E>, how: How) -> Option<Refusal> {
        let class = self.state.class(event);
        if self.state.has_own_room(how) || !self.is_promised(class, how.waits) {
            return None;
        }
        if how.waits {
            return Some(Refusal::Full);
        }
        self.state.refuse(event.class_of());
        let key = self.state.queue.key_hash();
        let for_key = self.senders.waits_for_key(key);
        Some(if for_key {
            Refusal::KeyFull
        } else {
            Refusal::Full
        })
    }

    /// Returns whether the room for an event is promised to waiting senders.
    pub(crate) fn is_promised(&mut self, class: usize, waits: bool) -> bool {
        if matches!(self.state.gate, Gate::Draining | Gate::Closed) {
            return false;
        }
        if self.state.credits() == 0 && self.senders.is_empty() {
            self.senders.round = 0;
        }
        let key = self.state.queue.key_hash();
        self.senders.is_promised(class, key, waits)
    }

    /// Queues a sender that was refused, and returns its number.
    pub(crate) fn add_sender(&mut self, from: u32, wanted: Wanted, why: NotTaken) -> u64 {
        let lacks_class = self.state.lacks_class(wanted.class);
        if self.senders.is_empty() {
            self.senders.full_at = self.state.counts.finished;
        }
        self.senders.add(from, wanted, lacks_class, why)
    }

    /// Notes that a woken sender is refused again.
    pub(crate) fn refuse_called(&mut self, number: u64, wanted: Wanted, why: NotTaken) {
        let lacks_class = self.state.lacks_class(wanted.class);
        self.senders
            .refused(number, wanted.credits, lacks_class, why);
    }

    /// Takes back unused room from senders that are no longer admitted and may never be polled
    /// again.
    pub(crate) fn take_back_room(&mut self) {
        for (_, reserved) in self.senders.called.values_mut() {
            self.state.unreserve(std::mem::take(reserved));
        }
    }

    /// Keeps the room that was reserved for a woken sender.
    pub(crate) fn call_again(&mut self, number: u64, credits: u64) {
        if let Some((_, reserved)) = self.senders.called.get_mut(&number) {
            *reserved = credits;
            self.state.reserve_for_sender(credits);
        }
    }

    /// Returns the next action of a sender. Its waker is called when that action changes.
    pub(crate) fn poll_sender(&mut self, number: u64, waker: &Waker) -> Next {
        let Self { state, senders, .. } = self;
        let over = senders.is_round_over();
        let Some(waiter) = senders.waiting.get_mut(&number) else {
            return Next::Send;
        };
        match &mut waiter.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        waiter.sleeps = waiter.lacks != Lacks::Room
            || !senders.filling
            || over
            || state.keeps_on()
            || !state.has_room(waiter.credits);
        if waiter.sleeps {
            return Next::Wait;
        }
        let each = if state.has_enough() {
            PATIENCE_LONG
        } else {
            PATIENCE
        };
        Next::LetOthers((each * senders.round).min(PATIENCE_MAX))
    }

    /// Begins the next round without the senders that have not come back.
    pub(crate) fn begin_round(&mut self) {
        self.senders.impatient = true;
    }

    /// Hands room to waiting senders in order; `wakers` gets their wakers.
    #[cold]
    pub(crate) fn hand_room(&mut self, wakers: &mut Vec<Waker>) {
        let Self { state, senders, .. } = self;
        let freed = std::mem::take(&mut state.freed);
        if matches!(state.gate, Gate::Draining | Gate::Closed) {
            // The senders will find that the stage is closed when they try.
            while let Some((&number, _)) = senders.waiting.first_key_value() {
                senders.call(number, 0, wakers);
            }
            return;
        }
        state.begin_filling(senders, freed);
        if !senders.filling {
            return;
        }
        let over = senders.is_round_over();
        let (mut handed, mut full, mut after) = (false, false, 0);
        let mut keys = Vec::new();
        while let Some((&number, waiter)) = senders.waiting.range_mut(after..).next() {
            after = number + 1;
            match waiter.lacks {
                Lacks::Room if !over => {
                    full = !state.has_room(waiter.credits);
                    if !full && !state.keeps_on() && std::mem::take(&mut waiter.sleeps) {
                        // The sender yields to other senders for a number of turns.
                        wakers.extend(waiter.waker.clone());
                    }
                    break;
                }
                Lacks::Key if !freed => continue,
                _ if state.lacks_class(waiter.class) => {
                    let waiter = senders.wait_no_longer(number).expect("it was just seen");
                    let lacks = Lacks::Class;
                    senders.wait(number, Waiter { lacks, ..waiter });
                    continue;
                }
                Lacks::Class if !freed => continue,
                _ => {}
            }
            // Only the first sender with a given key gets room.
            if waiter.lacks == Lacks::Key && keys.contains(&waiter.key) {
                continue;
            }
            keys.extend(waiter.key.is_some().then_some(waiter.key));
            let credits = waiter.credits;
            if !state.has_room(credits) {
                full = true;
                break;
            }
            state.reserve_for_sender(credits);
            senders.call(number, credits, wakers);
            handed = true;
        }
        if full {
            (senders.filling, senders.round, senders.impatient) = (false, 0, false);
            senders.full_at = state.counts.finished;
        } else if over && handed {
            // Missing senders may still return, so the count drops them gradually. Senders that
            // were woken but have not returned yet still count.
            let missed = senders.round - senders.round / 8;
            let least = if senders.impatient {
                missed.saturating_sub(1)
            } else {
                0
            };
            senders.round = senders.called.len().max(least);
            senders.impatient = false;
        }
    }
}
