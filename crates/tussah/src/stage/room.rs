//! How senders wait for a stage's room: refused, called, and sending what they were handed room for.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::event::{Class, Event};
use super::outgoing::{self, Outgoing};
use super::sender::Why;
use super::senders::{Lacks, Next, PATIENCE, PATIENCE_LONG, PATIENCE_MAX, Senders, Waiter, Wanted};
use super::shared::{Inner, Shared};
use super::state::{Gate, How, State};

impl<E: Send + 'static> Shared<E> {
    /// Has a sender wait for room that was refused; gives its number.
    pub(crate) fn wait_for_room(self: &Arc<Self>, from: u32, event: &Event<E>, why: Why) -> u64 {
        let mut inner = self.lock();
        inner.state.queue.look_at(event);
        let wanted = inner.state.wanted(event);
        let number = inner.add_sender(from, wanted, why);
        self.release(inner);
        number
    }

    /// Waits until a sender has been called.
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
                outgoing::hold_up();
                return Poll::Pending;
            }
        })
        .await;
    }

    /// Queues the event of a sender that has been called. If it is full all the same, the sender waits on, where it was; in any other case it does not.
    pub(crate) fn offer_called(
        self: &Arc<Self>,
        (from, number): (u32, u64),
        event: Event<E>,
        how: How,
    ) -> Result<(), (Event<E>, Why)> {
        let mut inner = self.lock();
        if inner.is_proxied(from) {
            drop(inner);
            self.give_up(number);
            return Err((event, Why::Proxied));
        }
        // If this panics, the event ends with the sender, and what was reserved is given back by it.
        inner.state.queue.look_at(&event);
        let now_ns = self.time.now_ns();
        let reserved = inner.senders.take_reserved(number);
        inner.state.unreserve(reserved);
        let offered = inner.state.offer(event, how, now_ns);
        match &offered {
            Err((event, why)) if why.is_full() => {
                let class = inner.state.class(event);
                inner.refuse_called(number, class, *why);
            }
            // It comes again at once.
            Err((_, Why::Degrade)) => inner.call_again(number, reserved),
            _ => {
                // Another with its key may find room, too.
                inner.state.freed |= inner.senders.lacked_key(number);
                inner.senders.remove(number);
            }
        }
        self.offered(inner, now_ns);
        match offered {
            Err((mut event, Why::Degrade)) => {
                self.make_smaller(&mut event);
                let how = How { asked: true, ..how };
                self.offer_called((from, number), event, how)
            }
            offered => offered,
        }
    }

    /// A sender waits no longer: what it was handed goes to the next.
    pub(crate) fn give_up(self: &Arc<Self>, number: u64) {
        let mut inner = self.lock();
        let reserved = inner.senders.remove(number);
        inner.state.unreserve(reserved);
        inner.state.freed = true;
        self.release(inner);
    }

    /// Reserves for a sender whose turn it is its share of the room that there is.
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
            outgoing.chunk = inner.state.spare();
        }
        outgoing
    }
}

impl<E> State<E> {
    /// Whether there is no more room for a class.
    fn lacks_class(&self, class: usize) -> bool {
        self.queued_by_class()[class] >= self.bounds.class_max[class]
    }

    fn has_room(&self, credits: u64) -> bool {
        let used = self.credits();
        used == 0 || used + credits <= self.threshold
    }

    /// Has room handed out until there is none, if it is time for that: a wake-up then pays for much room.
    fn begin_filling(&self, senders: &mut Senders, freed: bool) {
        let half = self.threshold / 2;
        // What is served in a circle may keep the queue full, and yet those who wait must come in.
        let served = self.counts.finished.saturating_sub(senders.full_at);
        senders.filling |= self.credits() <= half
            || served > half
            // If nobody computes there may be no more room before they go on.
            || self.computing() == 0
            || senders.choosy && freed;
    }

    /// Whether the stage has so much to do that nobody need hurry.
    fn has_enough(&self) -> bool {
        self.credits() + self.in_service() > self.threshold / 4
    }

    /// Whether that is so, and it is at it, so that its servlets look at the senders again by themselves.
    fn keeps_on(&self) -> bool {
        self.has_enough() && self.computing() > 0
    }
}

impl<E> Inner<E> {
    /// Whether the room that an event may find is for others, who wait; if it is refused for good, that is counted.
    #[cold]
    pub(super) fn goes_behind(&mut self, event: &Event<E>, how: How) -> bool {
        let class = self.state.class(event);
        let behind = !self.state.has_own_room(how) && self.is_promised(class, how.waits);
        if behind && !how.waits {
            self.state.refuse(event.class_of());
        }
        behind
    }

    /// Whether the room that an event may find is promised to senders that wait.
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

    /// Has a sender wait that was refused; gives its number.
    pub(crate) fn add_sender(&mut self, from: u32, wanted: Wanted, why: Why) -> u64 {
        let lacks_class = self.state.lacks_class(wanted.class);
        if self.senders.is_empty() {
            self.senders.full_at = self.state.counts.finished;
        }
        self.senders.add(from, wanted, lacks_class, why)
    }

    /// A sender is refused that had been called.
    pub(crate) fn refuse_called(&mut self, number: u64, class: usize, why: Why) {
        let lacks_class = self.state.lacks_class(class);
        self.senders.refused(number, lacks_class, why);
    }

    /// Has a sender that was called keep what was reserved for it.
    pub(crate) fn call_again(&mut self, number: u64, credits: u64) {
        if let Some((_, reserved)) = self.senders.called.get_mut(&number) {
            *reserved = credits;
            self.state.reserve_for_sender(credits);
        }
    }

    /// What a sender is to do; it is called by its waker when that has changed.
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

    /// Begins the next round without those that have not come again.
    pub(crate) fn begin_round(&mut self) {
        self.senders.impatient = true;
    }

    /// Hands room to senders that wait, in order; they are called by these wakers.
    #[cold]
    pub(crate) fn hand_room(&mut self, wakers: &mut Vec<Waker>) {
        let Self { state, senders, .. } = self;
        let freed = std::mem::take(&mut state.freed);
        if matches!(state.gate, Gate::Draining | Gate::Closed) {
            // They are told so when they try.
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
                        // It lets others have their turn, so many times.
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
            // Of one key, the first alone.
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
            // Those that have not come may yet, and are given up little by little; those that were called before, and have not come, are waited for.
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
