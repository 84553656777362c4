//! Who is let into a stage's queue.

use super::{Gate, State};
use crate::stage::batch::{Batch, Chunk};
use crate::stage::control::{Admission, Arrival};
use crate::stage::event::{Class, Event, queued_ns};
use crate::stage::outgoing::Outgoing;
use crate::stage::queue::{CHUNK_MAX, KeyFull, Queue};
use crate::stage::sender::Why;
use crate::stage::senders::Wanted;

/// How an event is offered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct How {
    /// The controller has seen it already.
    pub(crate) asked: bool,
    /// Its sender waits if there is no room.
    pub(crate) waits: bool,
    /// The stage that offers it and never waits, by an edge that may be one back; 0 is none.
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
    /// Whether an event that costs so much may come in now.
    #[inline]
    fn admit(&mut self, class: usize, event: &Event<E>, how: How, now_ns: u64) -> Result<(), Why> {
        if matches!(self.gate, Gate::Draining | Gate::Closed) {
            return Err(Why::Closed);
        }
        let (used, cost) = (self.credits(), self.cost(event));
        if used > 0 && used + cost > self.threshold && used + cost > self.threshold_with(how) {
            return Err(Why::Full);
        }
        if self.queued[class] >= self.bounds.class_max[class] {
            return Err(Why::Full);
        }
        if how.asked || !self.council.admits() {
            return Ok(());
        }
        self.ask(class, event, used, now_ns)
    }

    /// Asks the controller, once for each event that there is room for.
    #[inline(never)]
    fn ask(&mut self, class: usize, event: &Event<E>, used: u64, now_ns: u64) -> Result<(), Why> {
        if let Queue::Keyed(keyed) = &self.queue
            && keyed.is_full()
        {
            return Err(Why::KeyFull);
        }
        let random = self.random.next();
        let cohort = event.more.as_ref().and_then(|more| more.cohort);
        let arrival = Arrival {
            class: Class(class as u8),
            credits: u32::try_from(self.cost(event)).unwrap_or(u32::MAX),
            cohort: cohort.unwrap_or((random >> 48) as u16),
            queue_len: used,
            ahead: self.ahead(class),
            in_service: self.in_service,
            now_ns,
            random,
        };
        match self.council.on_enqueue(&arrival) {
            Admission::Admit => Ok(()),
            Admission::Degrade => Err(Why::Degrade),
            Admission::Reject => Err(Why::Rejected(self.council.gatekeeper())),
        }
    }

    /// The threshold for an event that may come by an edge back.
    #[cold]
    fn threshold_with(&self, how: How) -> u64 {
        let mut rooms = self.back_rooms.iter();
        let room = rooms.find(|(stage, _)| how.offerer == *stage);
        self.threshold
            .saturating_add(room.map_or(0, |(_, room)| *room))
    }

    /// Whether an event comes by an edge back, for which there is room besides what all share.
    pub(crate) fn has_own_room(&self, how: How) -> bool {
        how.offerer != 0 && self.threshold_with(how) > self.threshold
    }

    /// Gives the edge back from a stage room of its own; 0 takes it away.
    pub(crate) fn set_back_room(&mut self, from: u32, credits: u64) {
        self.back_rooms.retain(|(stage, _)| *stage != from);
        if credits > 0 {
            self.back_rooms.push((from, credits));
        }
    }

    /// Queues an event that the [queue](Queue::look_at) has looked at, or says why not.
    #[inline(always)]
    pub(crate) fn offer(
        &mut self,
        event: Event<E>,
        how: How,
        now_ns: u64,
    ) -> Result<(), (Event<E>, Why)> {
        let class = self.class(&event);
        let refused = match self.admit(class, &event, how, now_ns) {
            Ok(()) => match self.insert(class, event, now_ns) {
                Ok(()) => {
                    self.arrived(class, 1);
                    return Ok(());
                }
                Err(event) => (event, Why::KeyFull),
            },
            Err(why) => (event, why),
        };
        let comes_again = how.waits && matches!(refused.1, Why::Full | Why::KeyFull);
        if !comes_again && refused.1 != Why::Degrade {
            self.refuse(refused.0.class_of());
        }
        Err(refused)
    }

    /// What a sender waits for with this event, which the queue has looked at.
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

    /// Reserves room for a sender that is called.
    pub(crate) fn reserve_for_sender(&mut self, credits: u64) {
        self.reserved += credits;
    }

    /// Takes back what was reserved for a sender.
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
        if let Err(KeyFull(mut event)) = self.queue.push(event) {
            event.not_queued(stamp, within);
            return Err(event);
        }
        self.begin_busy(now_ns);
        self.len += 1;
        self.queued[class] += 1;
        self.credits += cost;
        if extra {
            self.extras += 1;
            self.watch.queued(deadline_ns);
        }
        Ok(())
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
        }
    }

    /// Lets in as many plain events of a class ahead of time as make a chunk, so that they can be sent as one, and says what the controller has in mind
    /// for the next one, if that is something else. If several are `sharing` the room, no more than one's share. None in a stage whose events have to be looked at one by one.
    pub(crate) fn reserve(
        &mut self,
        class: Class,
        sharing: usize,
        now_ns: u64,
    ) -> (u64, Option<Why>) {
        let at = class.among(self.classes);
        let plain = matches!(self.queue, Queue::Lanes(_)) && self.bounds.class_max[at] == u64::MAX;
        if matches!(self.gate, Gate::Draining | Gate::Closed) || !plain {
            return (0, None);
        }
        let room = self.threshold.saturating_sub(self.credits()) / sharing as u64;
        let most = room.min(self.chunk_max() as u64);
        let (granted, then) = if self.council.admits() {
            self.let_in(at, most, now_ns)
        } else {
            (most, None)
        };
        self.reserved += granted;
        (granted, then)
    }

    /// Counts an event that was turned away by itself.
    pub(crate) fn refuse(&mut self, class: Class) {
        let at = class.among(self.classes);
        self.arrived(at, 1);
        self.counts.refused += 1;
        self.counts.classes[at].refused += 1;
    }

    /// Queues the next chunk of a batch, or as much of it as there is room for. False if there is no room, or events have to be looked at one by one.
    pub(crate) fn push_batch(&mut self, batch: &mut Batch<E>, sharing: usize, now_ns: u64) -> bool {
        let plain = matches!(self.queue, Queue::Lanes(_))
            && self.classes == 1
            && self.bounds.class_max[0] == u64::MAX;
        if matches!(self.gate, Gate::Draining | Gate::Closed) || !plain || batch.carries() {
            return false;
        }
        let mut room = self.threshold.saturating_sub(self.credits()) / sharing as u64;
        if self.council.admits() {
            room = room.min(batch.front().map_or(0, Chunk::len) as u64);
            // Where each is looked at, it is asked for by itself, and only once.
            let first = self.plain_arrival(0, 0, now_ns);
            room = self.council.on_enqueue_many(&first, room);
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

    /// How many events a chunk has: a batch, so that it can be taken whole; more where batches are small.
    fn chunk_max(&self) -> usize {
        if self.batch < CHUNK_MAX / 4 {
            CHUNK_MAX
        } else {
            self.batch.min(CHUNK_MAX)
        }
    }

    /// A plain event of a class, behind so many others that are let in with it.
    fn plain_arrival(&mut self, class: usize, behind: u64, now_ns: u64) -> Arrival {
        let random = self.random.next();
        Arrival {
            class: Class(class as u8),
            credits: 1,
            cohort: (random >> 48) as u16,
            queue_len: self.credits() + behind,
            ahead: self.ahead(class) + behind,
            in_service: self.in_service,
            now_ns,
            random,
        }
    }

    /// How many of `most` plain events of a class the controller lets in, and what it says of the next one if these are fewer.
    fn let_in(&mut self, class: usize, most: u64, now_ns: u64) -> (u64, Option<Why>) {
        if most == 0 {
            return (0, None);
        }
        let first = self.plain_arrival(class, 0, now_ns);
        let at_once = self.council.on_enqueue_many(&first, most);
        for granted in at_once..most {
            let arrival = self.plain_arrival(class, granted, now_ns);
            match self.council.on_enqueue(&arrival) {
                Admission::Admit => {}
                Admission::Degrade => return (granted, Some(Why::Degrade)),
                Admission::Reject => {
                    return (granted, Some(Why::Rejected(self.council.gatekeeper())));
                }
            }
        }
        (most, None)
    }

    /// Queues what was sent on a reservation, each event with the time at which it was sent, and gives back the rest.
    pub(crate) fn push_chunk(&mut self, outgoing: &mut Outgoing<E>) {
        let chunk = &mut outgoing.chunk;
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
        self.extras += std::mem::take(&mut outgoing.extras);
        self.watch.queued(std::mem::take(&mut outgoing.due_ns));
        match &mut self.queue {
            Queue::Lanes(lanes) => lanes.push_chunk(chunk),
            Queue::Keyed(_) => unreachable!("nothing is reserved in a stage by key"),
        }
    }

    /// An empty chunk for who sends next.
    pub(crate) fn spare(&mut self) -> Chunk<E> {
        match &mut self.queue {
            Queue::Lanes(lanes) => lanes.spare(),
            Queue::Keyed(_) => Chunk::new(),
        }
    }
}
