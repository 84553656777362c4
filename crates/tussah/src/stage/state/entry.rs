//! Who is let into a stage's queue.

use super::{Gate, State};
use crate::stage::batch::{Batch, Chunk};
use crate::stage::control::{Admission, Arrival};
use crate::stage::event::{Class, Event, queued_ns};
use crate::stage::outgoing::Outgoing;
use crate::stage::queue::{CHUNK_MAX, KeyFull, Queue};
use crate::stage::sender::Why;

impl<E> State<E> {
    /// Whether an event that costs so much may come in now; `asked` is true if the controller has let it in already.
    #[inline]
    fn admit(
        &mut self,
        class: usize,
        event: &Event<E>,
        asked: bool,
        now_ns: u64,
    ) -> Result<(), Why> {
        if matches!(self.gate, Gate::Draining | Gate::Closed) {
            return Err(Why::Closed);
        }
        let used = self.credits();
        if used > 0 && used + self.cost(event) > self.threshold {
            return Err(Why::Full);
        }
        if self.queued[class] >= self.bounds.class_max[class] {
            return Err(Why::Full);
        }
        if asked || !self.council.admits() {
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

    /// Queues an event that the [queue](Queue::look_at) has looked at, or says why not. `asked` is true if it has been degraded, and the controller need not be asked again; `waits` if
    /// its sender will come again when there is room.
    #[inline(always)]
    pub(crate) fn offer(
        &mut self,
        event: Event<E>,
        asked: bool,
        waits: bool,
        now_ns: u64,
    ) -> Result<(), (Event<E>, Why)> {
        let class = self.class(&event);
        let refused = match self.admit(class, &event, asked, now_ns) {
            Ok(()) => match self.insert(class, event, now_ns) {
                Ok(()) => {
                    self.arrived(class, 1);
                    return Ok(());
                }
                Err(event) => (event, Why::KeyFull),
            },
            Err(why) => (event, why),
        };
        let comes_again = waits && matches!(refused.1, Why::Full | Why::KeyFull);
        if !comes_again && refused.1 != Why::Degrade {
            self.refuse(refused.0.class_of());
        }
        Err(refused)
    }

    /// Whether an event finds room when any other does.
    pub(crate) fn is_like_others(&self, event: &Event<E>) -> bool {
        event.cost() == 1
            && matches!(self.queue, Queue::Lanes(_))
            && self.bounds.class_max[self.class(event)] == u64::MAX
    }

    #[inline(always)]
    fn insert(&mut self, class: usize, mut event: Event<E>, now_ns: u64) -> Result<(), Event<E>> {
        let (stamp, within) = (event.stamp(), event.more.as_ref().and_then(|it| it.within));
        event.queued(now_ns);
        let (cost, extra) = (self.cost(&event), event.more.is_some());
        event.charge(cost);
        if let Err(KeyFull(mut event)) = self.queue.push(event) {
            event.not_queued(stamp, within);
            return Err(event);
        }
        self.begin_busy(now_ns);
        self.len += 1;
        self.queued[class] += 1;
        self.credits += cost;
        self.extras += u64::from(extra);
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
    /// for the next one, if that is something else. None in a stage whose events have to be looked at one by one.
    pub(crate) fn reserve(&mut self, class: Class, now_ns: u64) -> (u64, Option<Why>) {
        let at = class.among(self.classes);
        let plain = matches!(self.queue, Queue::Lanes(_)) && self.bounds.class_max[at] == u64::MAX;
        if matches!(self.gate, Gate::Draining | Gate::Closed) || !plain {
            return (0, None);
        }
        let room = self.threshold.saturating_sub(self.credits());
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
    pub(crate) fn push_batch(&mut self, batch: &mut Batch<E>, now_ns: u64) -> bool {
        let plain = matches!(self.queue, Queue::Lanes(_))
            && self.classes == 1
            && self.bounds.class_max[0] == u64::MAX;
        if matches!(self.gate, Gate::Draining | Gate::Closed) || !plain || batch.carries() {
            return false;
        }
        let mut room = self.threshold.saturating_sub(self.credits());
        if self.council.admits() {
            room = room.min(batch.front().map_or(0, Chunk::len) as u64);
            // Where each is looked at, it is asked for by itself, and only once.
            let first = self.plain_arrival(0, 0, now_ns);
            room = self.council.on_enqueue_many(&first, room);
        }
        if room == 0 {
            return false;
        }
        let (mut chunk, extras) = batch.pass(usize::try_from(room).unwrap_or(usize::MAX), now_ns);
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
