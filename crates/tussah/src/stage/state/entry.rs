//! Admission to a stage's queue.

use std::sync::Arc;

use super::{Awaited, Gate, State};
use crate::stage::control::{Admission, Arrival, LimitUse};
use crate::stage::event::{Batch, Chunk, Class, Event, NotTaken, Refusal, queued_ns};
use crate::stage::queue::{CHUNK_MAX, KeyFull, Queue, Wanted};
use crate::stage::send::Outgoing;

/// The way in which an event is offered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct How {
    /// True if the controller has already decided about it.
    pub(crate) asked: bool,
    /// True if the sender waits when there is no room.
    pub(crate) waits: bool,
    /// The stage that offers it without ever waiting, over an edge that may be a back edge; 0 means
    /// none.
    pub(crate) offerer: u32,
}

impl How {
    pub(crate) const WAITS: Self = Self {
        asked: false,
        waits: true,
        offerer: 0,
    };
}

impl<E> State<E> {
    /// Decides whether the event may be queued now.
    #[inline]
    fn admit(
        &mut self,
        class: usize,
        event: &Event<E>,
        how: How,
        now_ns: u64,
    ) -> Result<(), NotTaken> {
        if matches!(self.gate, Gate::Draining | Gate::Closed) {
            return Err(Refusal::Closed.into());
        }
        let (used, cost) = (self.credits(), self.cost(event));
        if used > 0 && used + cost > self.threshold && used + cost > self.own(self.threshold, how) {
            return Err(Refusal::Full.into());
        }
        let (queued, max) = (self.queued[class], self.bounds.class_max[class]);
        if queued >= max && queued >= self.own(max, how) {
            return Err(Refusal::Full.into());
        }
        if how.asked || !self.controllers.admits() {
            return Ok(());
        }
        match self.ask(class, event, used, now_ns) {
            // The controller has counted the event, but does not decide on events of back edges.
            Err(NotTaken::Refused(Refusal::Rejected(_))) if self.has_own_room(how) => Ok(()),
            asked => asked,
        }
    }

    /// Asks the controller, once for each event that there is room for.
    #[inline(never)]
    fn ask(
        &mut self,
        class: usize,
        event: &Event<E>,
        used: u64,
        now_ns: u64,
    ) -> Result<(), NotTaken> {
        if let Queue::Keyed(keyed) = &self.queue
            && keyed.is_full()
        {
            return Err(Refusal::KeyFull.into());
        }
        let of_key = self.arrives_in_key(class);
        let ahead = of_key.map_or_else(|| self.ahead(class), |(ahead, _)| ahead);
        let random = self.random.next();
        let cohort = event.more.as_ref().and_then(|more| more.cohort);
        let arrival = Arrival {
            class: Class(class as u8),
            credits: u32::try_from(self.cost(event)).unwrap_or(u32::MAX),
            cohort: cohort.unwrap_or((random >> 48) as u16),
            queue_len: used,
            ahead,
            key: of_key.map(|(_, key)| key),
            in_service: self.in_service,
            now_ns,
            random,
        };
        match self.controllers.on_enqueue(&arrival) {
            Admission::Admit => Ok(()),
            Admission::Degrade => Err(NotTaken::Degrade),
            Admission::Reject => {
                if let Queue::Keyed(keyed) = &mut self.queue {
                    keyed.rejects();
                }
                Err(self.rejected())
            }
        }
    }

    fn rejected(&self) -> NotTaken {
        Refusal::Rejected(self.controllers.admission_name()).into()
    }

    /// Returns the bound for this event: over a back edge, the rooms of all back edges are added to
    /// the shared bound.
    #[cold]
    fn own(&self, bound: u64, how: How) -> u64 {
        if !self.has_own_room(how) {
            return bound;
        }
        let rooms = self.back_rooms.iter().map(|(_, room)| *room);
        rooms.fold(bound, u64::saturating_add)
    }

    /// Returns whether the event arrives over a back edge, which has its own room.
    pub(crate) fn has_own_room(&self, how: How) -> bool {
        how.offerer != 0
            && self
                .back_rooms
                .iter()
                .any(|(stage, _)| how.offerer == *stage)
    }

    /// Gives the back edge from a stage its own room; 0 takes the room away.
    pub(crate) fn set_back_room(&mut self, from: u32, credits: u64) {
        self.back_rooms.retain(|(stage, _)| *stage != from);
        if credits > 0 {
            self.back_rooms.push((from, credits));
        }
    }

    /// Queues an event that the [queue](Queue::look_at) has looked at, or returns it with the
    /// reason.
    #[inline(always)]
    pub(crate) fn offer(
        &mut self,
        event: Event<E>,
        how: How,
        now_ns: u64,
    ) -> Result<(), (Event<E>, NotTaken)> {
        let class = self.class(&event);
        let refused = match self.admit(class, &event, how, now_ns) {
            Ok(()) => match self.insert(class, event, now_ns) {
                Ok(()) => {
                    self.arrived(class, 1);
                    return Ok(());
                }
                Err(event) => (event, Refusal::KeyFull.into()),
            },
            Err(why) => (event, why),
        };
        let comes_again = how.waits && refused.1.is_full();
        if !comes_again && refused.1 != NotTaken::Degrade {
            self.refuse(refused.0.class_of());
        }
        if let NotTaken::Refused(Refusal::Rejected(_)) = refused.1 {
            self.scarcity.reject();
        }
        Err(refused)
    }

    /// Returns the room that a sender of this event waits for. The queue must have looked at the
    /// event.
    pub(crate) fn wanted(&self, event: &Event<E>) -> Wanted {
        let class = self.class(event);
        Wanted {
            class,
            credits: self.cost(event),
            key: self.queue.key_hash(),
            is_like_others: event.cost() == 1
                && matches!(self.queue, Queue::Lanes(_))
                && self.bounds.class_max[class] == u64::MAX,
        }
    }

    /// Reserves room for a waiting sender that is being woken.
    pub(crate) fn reserve_for_sender(&mut self, credits: u64) {
        self.reserved += credits;
    }

    /// Releases the room that was reserved for a sender.
    pub(crate) fn unreserve(&mut self, credits: u64) {
        self.reserved -= credits;
    }

    #[inline(always)]
    fn insert(&mut self, class: usize, mut event: Event<E>, now_ns: u64) -> Result<(), Event<E>> {
        let (stamp, within) = (event.stamp(), event.more.as_ref().and_then(|it| it.within));
        event.queued(now_ns);
        let (cost, extra) = (self.cost(&event), event.more.is_some());
        let deadline_ns = event.deadline_ns();
        event.charge(cost);
        if extra {
            self.waits_here(&mut event);
        }
        let cancel = event.cancel().cloned();
        let part = match self.queue.push(event) {
            Ok(part) => part,
            Err(KeyFull(mut event)) => {
                event.not_queued(stamp, within);
                return Err(event);
            }
        };
        self.begin_busy(now_ns);
        self.len += 1;
        self.queued[class] += 1;
        self.credits += cost;
        if extra {
            self.extras += 1;
            self.watch.queued(deadline_ns);
        }
        if let Some(cancel) = cancel {
            self.can_be_cancelled(&cancel, part, (class, cost));
            self.end_busy(now_ns);
        }
        Ok(())
    }

    /// Notes in the path of an event, if it has one, that the event is in this queue.
    #[inline]
    pub(crate) fn waits_here(&self, event: &mut Event<E>) {
        if let Some(hold) = event.hold()
            && let Some(name) = &self.named
        {
            let servlets = LimitUse {
                name: Arc::clone(name),
                permits: self.allowed(),
                in_use: self.servlets.busy,
                waiting: usize::try_from(self.len).unwrap_or(usize::MAX),
            };
            hold.queued(&Awaited::Stage(servlets));
        }
    }

    #[inline]
    fn arrived(&mut self, class: usize, count: u64) {
        self.counts.arrived += count;
        self.counts.classes[class].arrived += count;
    }

    #[inline]
    fn begin_busy(&mut self, now_ns: u64) {
        if self.len + self.in_service == 0 {
            self.busy_since_ns = now_ns;
            self.sweep_soon(now_ns);
        }
    }

    /// Reserves room for up to a chunk of plain events of a class, so that they can be sent as one.
    ///
    /// Returns the number of admitted events and, if the controller refuses the next event, also
    /// its answer. If several senders are `sharing` the room, the caller gets at most its share.
    /// Returns 0 in a stage that has to check events one by one.
    pub(crate) fn reserve(
        &mut self,
        class: Class,
        sharing: usize,
        now_ns: u64,
    ) -> (u64, Option<NotTaken>) {
        let at = class.among(self.classes);
        let plain = self.queue.is_plain() && self.bounds.class_max[at] == u64::MAX;
        if matches!(self.gate, Gate::Draining | Gate::Closed) || !plain {
            return (0, None);
        }
        let room = self.threshold.saturating_sub(self.credits()) / sharing as u64;
        let most = room.min(self.chunk_max() as u64);
        let (granted, then) = if self.controllers.admits() {
            self.let_in(at, most, now_ns)
        } else {
            (most, None)
        };
        self.reserved += granted;
        (granted, then)
    }

    /// Counts an event that was refused on its own.
    pub(crate) fn refuse(&mut self, class: Class) {
        let at = class.among(self.classes);
        self.arrived(at, 1);
        self.counts.refused += 1;
        self.counts.classes[at].refused += 1;
    }

    /// Returns whether an event is refused because of the controller's earlier rejection, and
    /// counts it if so.
    pub(crate) fn rejects(&mut self, class: Class, how: How) -> bool {
        let rejects = !self.has_own_room(how);
        if rejects {
            self.refuse(class);
            self.scarcity.reject();
        }
        rejects
    }

    /// Queues the next chunk of a batch, or as much of it as there is room for. Returns false if
    /// there is no room, or if events have to be checked one by one.
    pub(crate) fn push_batch(&mut self, batch: &mut Batch<E>, sharing: usize, now_ns: u64) -> bool {
        let plain = matches!(self.queue, Queue::Lanes(_))
            && self.classes == 1
            && self.bounds.class_max[0] == u64::MAX;
        if matches!(self.gate, Gate::Draining | Gate::Closed) || !plain || batch.carries() {
            return false;
        }
        let mut room = self.threshold.saturating_sub(self.credits()) / sharing as u64;
        if self.controllers.admits() {
            room = room.min(batch.front().map_or(0, Chunk::len) as u64);
            // A controller that looks at each event is asked about each event separately, and only
            // once.
            let first = self.plain_arrival(0, 0, now_ns);
            room = self.controllers.on_enqueue_many(&first, room);
        }
        if room == 0 {
            return false;
        }
        let (mut chunk, extras) = batch.pass(
            usize::try_from(room).unwrap_or(usize::MAX),
            now_ns,
            &mut self.watch,
        );
        let count = chunk.len() as u64;
        if let Queue::Lanes(lanes) = &mut self.queue {
            lanes.push_chunk(&mut chunk);
            lanes.keep(chunk);
        }
        self.begin_busy(now_ns);
        self.arrived(0, count);
        self.len += count;
        self.queued[0] += count;
        self.credits += count;
        self.extras += extras;
        true
    }

    /// Returns the length of a chunk: a batch, so that a servlet can take it whole, or more if
    /// batches are small.
    fn chunk_max(&self) -> usize {
        if self.batch < CHUNK_MAX / 4 {
            CHUNK_MAX
        } else {
            self.batch.min(CHUNK_MAX)
        }
    }

    /// Returns a plain arrival of a class, behind `behind` other events that are admitted with it.
    fn plain_arrival(&mut self, class: usize, behind: u64, now_ns: u64) -> Arrival {
        let random = self.random.next();
        Arrival {
            class: Class(class as u8),
            credits: 1,
            cohort: (random >> 48) as u16,
            queue_len: self.credits() + behind,
            ahead: self.ahead(class) + behind,
            key: None,
            in_service: self.in_service,
            now_ns,
            random,
        }
    }

    /// Returns how many of `most` plain events of a class the controller admits, and its answer to
    /// the next event if these are fewer.
    fn let_in(&mut self, class: usize, most: u64, now_ns: u64) -> (u64, Option<NotTaken>) {
        if most == 0 {
            return (0, None);
        }
        let first = self.plain_arrival(class, 0, now_ns);
        let at_once = self.controllers.on_enqueue_many(&first, most);
        for granted in at_once..most {
            let arrival = self.plain_arrival(class, granted, now_ns);
            match self.controllers.on_enqueue(&arrival) {
                Admission::Admit => {}
                Admission::Degrade => return (granted, Some(NotTaken::Degrade)),
                Admission::Reject => return (granted, Some(self.rejected())),
            }
        }
        (most, None)
    }

    /// Queues the events that were sent on a reservation, each with its own send time, and returns
    /// the rest of the reservation.
    pub(crate) fn push_chunk(&mut self, outgoing: &mut Outgoing<E>) {
        let mut chunk = Chunk::from(std::mem::take(&mut outgoing.chunk));
        let count = chunk.len() as u64;
        let at = outgoing.class.among(self.classes);
        self.freed |= outgoing.granted > 0;
        self.reserved -= count + std::mem::take(&mut outgoing.granted);
        if let Some(first) = chunk.front() {
            self.begin_busy(queued_ns(first.stamp()));
        }
        self.arrived(at, count);
        self.len += count;
        self.queued[at] += count;
        self.credits += count;
        self.queue.push_chunk(&mut chunk);
        outgoing.chunk = chunk.into();
    }
}
