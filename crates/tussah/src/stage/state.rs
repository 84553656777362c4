//! What a stage knows and decides, without its handler: a queue, who is let in, who goes to work, and what was counted.
//!
//! Nothing here waits, reads a clock or runs a handler: time is handed in. The stage proper ([`shared`](super::shared)) keeps one behind a lock; a
//! simulator runs the same on a virtual clock.

use std::sync::Arc;

use super::account::{Council, Counts, Now};
use super::batch::{Batch, Chunk};
use super::control::{Admission, Arrival, Departure, Order, Owns, Servlets, Settings, Verdict};
use super::digest::Digest;
use super::event::{CLASSES_MAX, Class, Event, Reason, queued_ns};
use super::outgoing::Outgoing;
use super::process::Process;
use super::queue::{CHUNK_MAX, Queue};
use super::sender::Why;

/// A queue that lasts longer than this is worth another servlet: what it takes to wake a worker, in nanoseconds.
const WORTH_NS: f64 = 10_000.0;
/// How long a servlet works, at a guess, before it looks at the queue again, in nanoseconds.
const RUN_NS: f64 = 50_000.0;
/// Where an event takes longer than this, in nanoseconds, what is sent bears the time of its sending, and not of the run.
const EXACT_NS: f64 = 1_000.0;
/// A run counts as at most so many times the mean.
const OUTLIER: f64 = 4.0;
/// Of each new run, what part goes into the mean time of an event.
const MEAN_PART: f64 = 0.125;

/// What bounds a stage, however its controllers set it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Credits in the queue.
    pub(crate) queue_max: u64,
    /// Events of each class in the queue.
    pub(crate) class_max: [u64; CLASSES_MAX],
    /// Events in a batch.
    pub(crate) batch_max: usize,
    /// Servlets at work.
    pub(crate) servlets_max: usize,
}

/// Whether a stage takes events, and works on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gate {
    Open,
    /// Events are queued, and none are taken.
    Paused,
    /// No event is let in; what is queued is worked off.
    Draining,
    /// Nothing is let in or taken.
    Closed,
}

/// Who is to be called to work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Summon {
    Nobody,
    Unpark,
    Spawn,
}

/// How much of a stage's time its servlets compute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A servlet computes unless it says that it waits.
    Async,
    /// A servlet has an OS thread of its own, and may always be waiting.
    Blocking,
}

/// What a servlet works on between two looks at the queue.
pub(crate) struct Run<E> {
    /// What has been taken, and is not in the servlet's batch yet.
    pub(crate) ahead: Batch<E>,
    /// How many events a batch may have.
    pub(crate) limit: usize,
    /// The busy key, in a stage by key.
    pub(crate) key: Option<usize>,
    /// What was shed or had expired: to be told under no lock.
    pub(crate) dropped: Vec<(Event<E>, Reason)>,
    pub(crate) begun_ns: u64,
    /// Since when the handler computes.
    pub(crate) resumed_ns: u64,
    /// What it computed before that.
    pub(crate) compute_ns: u64,
    pub(crate) batches: u64,
    pub(crate) finished: u64,
    /// Events take so long that what is sent bears the time of its sending, not of the run.
    pub(crate) exact: bool,
    /// The handler waits, and the stage knows.
    pub(crate) waits: bool,
    taken: u64,
}

impl<E> Default for Run<E> {
    fn default() -> Self {
        Self {
            ahead: Batch::default(),
            limit: 1,
            key: None,
            dropped: Vec::new(),
            begun_ns: 0,
            resumed_ns: 0,
            compute_ns: 0,
            batches: 0,
            finished: 0,
            exact: false,
            waits: false,
            taken: 0,
        }
    }
}

impl<E> Run<E> {
    /// Whether events have been taken that are not finished.
    pub(crate) fn is_open(&self) -> bool {
        self.taken > 0
    }

    /// Counts a batch that has ended.
    #[inline]
    pub(crate) fn ended(&mut self, events: u64) {
        self.batches += 1;
        self.finished += events;
    }
}

pub(crate) struct State<E> {
    pub(crate) queue: Queue<E>,
    pub(crate) council: Council,
    pub(crate) counts: Counts,
    pub(crate) responses: Digest,
    pub(crate) bounds: Bounds,
    pub(crate) servlets: Servlets,
    pub(crate) gate: Gate,
    pub(crate) threshold: u64,
    pub(crate) batch: usize,
    pub(crate) order: Order,
    pub(crate) workers: usize,
    kind: Kind,
    classes: usize,
    queued: [u64; CLASSES_MAX],
    len: u64,
    credits: u64,
    /// Credits that senders have reserved and not used yet.
    reserved: u64,
    /// Events in the queue that carry more than their value.
    extras: u64,
    in_service: u64,
    /// Busy servlets whose handlers wait.
    waiting: usize,
    /// The moving mean of the computing time of an event, in nanoseconds; 0 before the first.
    mean_ns: f64,
    busy_since_ns: u64,
    random: u64,
    process: Arc<Process>,
}

/// What a state is made of.
pub(crate) struct Parts<E> {
    pub(crate) queue: Queue<E>,
    pub(crate) council: Council,
    pub(crate) bounds: Bounds,
    pub(crate) classes: usize,
    pub(crate) kind: Kind,
    pub(crate) workers: usize,
    pub(crate) servlets: usize,
    pub(crate) batch: usize,
    pub(crate) seed: u64,
    pub(crate) process: Arc<Process>,
}

impl<E> State<E> {
    pub(crate) fn new(parts: Parts<E>) -> Self {
        Self {
            queue: parts.queue,
            council: parts.council,
            counts: Counts::default(),
            responses: Digest::default(),
            bounds: parts.bounds,
            servlets: Servlets {
                target: parts.servlets.clamp(1, parts.bounds.servlets_max),
                max: parts.bounds.servlets_max,
                ..Servlets::default()
            },
            gate: Gate::Open,
            threshold: parts.bounds.queue_max,
            batch: parts.batch.clamp(1, parts.bounds.batch_max),
            order: Order::Fifo,
            workers: parts.workers,
            kind: parts.kind,
            classes: parts.classes,
            queued: [0; CLASSES_MAX],
            len: 0,
            credits: 0,
            reserved: 0,
            extras: 0,
            in_service: 0,
            waiting: 0,
            mean_ns: 0.0,
            busy_since_ns: 0,
            random: parts.seed,
            process: parts.process,
        }
    }

    /// Events in the queue.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn in_service(&self) -> u64 {
        self.in_service
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(crate) fn credits(&self) -> u64 {
        self.credits + self.reserved
    }

    pub(crate) fn queued_by_class(&self) -> &[u64] {
        &self.queued[..self.classes]
    }

    /// The mean computing time of an event, in nanoseconds.
    pub(crate) fn mean_ns(&self) -> f64 {
        self.mean_ns
    }

    /// Whether nothing is queued or in service.
    pub(crate) fn is_empty(&self) -> bool {
        self.len + self.in_service + self.reserved == 0
    }

    /// A random number, by SplitMix64.
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    #[inline]
    fn class(&self, event: &Event<E>) -> usize {
        usize::from(event.class_of().0).min(self.classes - 1)
    }

    #[inline]
    fn cost(&self, event: &Event<E>) -> u64 {
        event.cost().min(self.bounds.queue_max)
    }

    /// What is in the queue and is served before an event of this class that comes now.
    fn ahead(&self, class: usize) -> u64 {
        if class + 1 == self.classes {
            return self.credits();
        }
        self.queued[..=class].iter().sum()
    }

    /// Whether an event that costs so much may come in now; `asked` is false if the controller has let it in already.
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
        let random = self.draw();
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

    /// Queues an event, or says why not. `asked` is true if it has been degraded, and the controller need not be asked again; `waits` if
    /// its sender will come again when there is room.
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
            self.arrived(class, 1);
            self.counts.refused += 1;
            self.counts.classes[class].refused += 1;
        }
        Err(refused)
    }

    fn insert(&mut self, class: usize, mut event: Event<E>, now_ns: u64) -> Result<(), Event<E>> {
        event.queued(now_ns);
        let (cost, extra) = (self.cost(&event), event.more.is_some());
        self.queue.push(event).map_err(|full| full.0)?;
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

    /// Lets in as many plain events of a class ahead of time as make a chunk, so that they can be sent as one. None in a stage whose events have
    /// to be looked at one by one.
    pub(crate) fn reserve(&mut self, class: Class, now_ns: u64) -> u64 {
        let at = usize::from(class.0).min(self.classes - 1);
        let plain = matches!(self.queue, Queue::Lanes(_)) && self.bounds.class_max[at] == u64::MAX;
        if self.gate != Gate::Open || !plain {
            return 0;
        }
        let room = self.threshold.saturating_sub(self.credits());
        let most = room.min(self.chunk_max() as u64);
        let granted = if self.council.admits() {
            self.let_in(at, most, now_ns)
        } else {
            most
        };
        self.reserved += granted;
        granted
    }

    /// How many events a chunk has: a batch, so that it can be taken whole; more where batches are small.
    fn chunk_max(&self) -> usize {
        if self.batch < CHUNK_MAX / 4 {
            CHUNK_MAX
        } else {
            self.batch.min(CHUNK_MAX)
        }
    }

    /// How many of `most` plain events of a class the controller lets in.
    fn let_in(&mut self, class: usize, most: u64, now_ns: u64) -> u64 {
        for granted in 0..most {
            let random = self.draw();
            let arrival = Arrival {
                class: Class(class as u8),
                credits: 1,
                cohort: (random >> 48) as u16,
                queue_len: self.credits() + granted,
                ahead: self.ahead(class) + granted,
                in_service: self.in_service,
                now_ns,
                random,
            };
            if self.council.on_enqueue(&arrival) != Admission::Admit {
                return granted;
            }
        }
        most
    }

    /// Queues what was sent on a reservation, each event with the time at which it was sent, and gives back the rest.
    pub(crate) fn push_chunk(&mut self, outgoing: &mut Outgoing<E>) {
        let chunk = &mut outgoing.chunk;
        let count = chunk.len() as u64;
        let at = usize::from(outgoing.class.0).min(self.classes - 1);
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

    /// Who is to be called, so that what is queued is worked on; the servlet counts as busy from here on.
    pub(crate) fn summon(&mut self) -> Summon {
        let works = matches!(self.gate, Gate::Open | Gate::Draining);
        let servlets = &self.servlets;
        if !works || servlets.busy >= servlets.target || !self.queue.is_ready() {
            return Summon::Nobody;
        }
        let computing = match self.kind {
            Kind::Async => servlets.busy - self.waiting,
            Kind::Blocking => 0,
        };
        let lasts_ns = self.mean_ns * self.len as f64;
        let worth =
            computing == 0 || (computing < self.workers && lasts_ns > WORTH_NS * computing as f64);
        if !worth {
            return Summon::Nobody;
        }
        self.servlets.busy += 1;
        if self.servlets.parked > 0 {
            self.servlets.parked -= 1;
            Summon::Unpark
        } else {
            self.process.changed(1);
            Summon::Spawn
        }
    }

    /// Whether no servlet computes and one could be called: then an event that comes should be handed over at once.
    pub(crate) fn rests(&self) -> bool {
        let servlets = &self.servlets;
        servlets.busy == self.waiting && servlets.busy < servlets.target
    }

    /// A servlet that finds nothing to do parks; false if it is one too many, and ends.
    pub(crate) fn park(&mut self) -> bool {
        self.servlets.busy -= 1;
        let stays = self.servlets.busy + self.servlets.parked < self.servlets.target
            && self.gate != Gate::Closed;
        if stays {
            self.servlets.parked += 1;
        } else {
            self.process.changed(-1);
        }
        stays
    }

    /// A servlet ends that was busy.
    pub(crate) fn ended(&mut self) {
        self.servlets.busy -= 1;
        self.process.changed(-1);
    }

    /// A parked servlet ends.
    pub(crate) fn ended_parked(&mut self) {
        self.servlets.parked -= 1;
        self.process.changed(-1);
    }
}

// Taking, and what comes of it.
impl<E> State<E> {
    /// Takes events for a servlet to work on; false if there are none.
    pub(crate) fn take(&mut self, run: &mut Run<E>, now_ns: u64) -> bool {
        if !matches!(self.gate, Gate::Open | Gate::Draining) {
            return false;
        }
        if let Queue::Keyed(keyed) = &mut self.queue {
            run.key = keyed.open(self.order);
            if run.key.is_none() {
                return false;
            }
        }
        let (limit, most) = self.share();
        run.limit = limit;
        run.exact = self.mean_ns > EXACT_NS;
        let keyed = run.key.is_some();
        let plain = self.extras == 0
            && self.classes == 1
            && self.order == Order::Fifo
            && !keyed
            && !self.council.looks_at_departures();
        if plain {
            self.queue.take(&mut run.ahead, most);
            self.left_queue(0, run.ahead.len() as u64);
        } else {
            self.take_each(run, if keyed { limit } else { most }, now_ns);
        }
        run.taken = run.ahead.len() as u64;
        (run.begun_ns, run.resumed_ns) = (now_ns, now_ns);
        self.in_service += run.taken;
        if run.taken == 0 {
            // All were dropped.
            if let (Queue::Keyed(keyed), Some(key)) = (&mut self.queue, run.key.take()) {
                keyed.release(key);
            }
            self.end_busy(now_ns);
        }
        run.taken > 0
    }

    /// How many events a batch has, and how many a servlet takes at once: no more than its share if others could work too, and
    /// of short ones more than a batch, so that to take them costs little.
    fn share(&self) -> (usize, usize) {
        let len = usize::try_from(self.len).unwrap_or(usize::MAX);
        let able = match self.kind {
            Kind::Async => self.servlets.target.min(self.workers.max(1)),
            Kind::Blocking => self.servlets.target,
        };
        let shared = able > 1 && self.mean_ns * self.len as f64 > 2.0 * WORTH_NS;
        let fair = if shared { len.div_ceil(able) } else { len };
        let limit = self.batch.min(fair).max(1);
        if self.mean_ns == 0.0 || self.waiting > 0 || self.kind == Kind::Blocking {
            return (limit, limit);
        }
        let many = ((RUN_NS / self.mean_ns) as usize).clamp(1, CHUNK_MAX);
        (limit, limit.max(many.min(fair)))
    }

    #[inline]
    fn left_queue(&mut self, class: usize, count: u64) {
        self.len -= count;
        self.queued[class] -= count;
        self.credits -= count;
    }

    fn take_each(&mut self, run: &mut Run<E>, most: usize, now_ns: u64) {
        let asks = self.council.looks_at_departures();
        while run.ahead.len() < most {
            let Some(event) = self.queue.take_one(self.order) else {
                return;
            };
            let class = self.class(&event);
            self.len -= 1;
            self.queued[class] -= 1;
            self.credits -= self.cost(&event);
            if let Some(more) = &event.more {
                self.extras -= 1;
                if more.deadline_ns != 0 && more.deadline_ns <= now_ns {
                    self.counts.expired += 1;
                    run.dropped.push((event, Reason::Expired));
                    continue;
                }
            }
            let departure = Departure {
                class: Class(class as u8),
                sojourn_ns: now_ns.saturating_sub(queued_ns(event.stamp())),
                queue_len: self.credits,
                now_ns,
            };
            if asks && self.council.on_dequeue(&departure) == Verdict::Shed {
                self.counts.shed += 1;
                run.dropped.push((event, Reason::Shed));
                continue;
            }
            run.ahead.put_one(event);
        }
    }

    /// Puts back what a servlet has taken and will not use: what is left of its batch, and what lies behind it.
    pub(crate) fn give_back(&mut self, run: &mut Run<E>, batch: &mut Batch<E>) {
        let count = batch.len() + run.ahead.len();
        if count == 0 {
            return;
        }
        let mut back = Vec::with_capacity(count);
        for from in [batch, &mut run.ahead] {
            while let Some(event) = from.give_back() {
                back.push(event);
            }
        }
        self.in_service -= count as u64;
        run.taken -= count as u64;
        for event in back.into_iter().rev() {
            let class = self.class(&event);
            self.len += 1;
            self.queued[class] += 1;
            self.credits += self.cost(&event);
            self.extras += u64::from(event.more.is_some());
            self.queue.push_front(event);
        }
    }

    /// A handler waits for the first time in its run.
    pub(crate) fn waits(&mut self, run: &mut Run<E>) {
        run.waits = true;
        self.waiting += 1;
        self.give_back(run, &mut Batch::default());
    }

    /// A run has ended: all its events are finished or given back.
    pub(crate) fn finish(&mut self, run: &mut Run<E>, batch: &mut Batch<E>, now_ns: u64) {
        self.give_back(run, batch);
        if std::mem::take(&mut run.waits) {
            self.waiting -= 1;
        }
        for wave in batch.waves().drain(..) {
            let class = usize::from((wave.stamp & 0xff) as u8).min(self.classes - 1);
            let response_ns = now_ns.saturating_sub(queued_ns(wave.stamp));
            self.counts.classes[class].finished += wave.count;
            self.responses.add(response_ns, wave.count);
            self.council.responded(class, response_ns, wave.count);
        }
        let finished = std::mem::take(&mut run.finished);
        self.counts.runs += 1;
        self.counts.finished += finished;
        self.counts.failed += batch.take_failed();
        self.counts.batches += std::mem::take(&mut run.batches);
        self.counts.service_ns += now_ns.saturating_sub(run.begun_ns);
        let compute_ns =
            std::mem::take(&mut run.compute_ns) + now_ns.saturating_sub(run.resumed_ns);
        self.counts.compute_ns += compute_ns;
        if finished > 0 {
            let each_ns = compute_ns as f64 / finished as f64;
            if self.mean_ns == 0.0 {
                self.mean_ns = each_ns;
            }
            // One run in which the OS thread lost its CPU says nothing about the next.
            let likely_ns = each_ns.min(self.mean_ns * OUTLIER);
            self.mean_ns += (likely_ns - self.mean_ns) * MEAN_PART;
        }
        self.in_service -= std::mem::take(&mut run.taken);
        if let (Queue::Keyed(keyed), Some(key)) = (&mut self.queue, run.key.take()) {
            keyed.release(key);
        }
        self.end_busy(now_ns);
    }

    fn end_busy(&mut self, now_ns: u64) {
        if self.len + self.in_service == 0 {
            self.counts.busy_ns += now_ns.saturating_sub(self.busy_since_ns);
            self.busy_since_ns = now_ns;
        }
    }

    /// Takes out one event after the other, for a stage that is given up.
    pub(crate) fn take_out(&mut self) -> Option<Event<E>> {
        if let Queue::Keyed(keyed) = &mut self.queue {
            return keyed.take_out();
        }
        let event = self.queue.take_one(Order::Fifo)?;
        let class = self.class(&event);
        self.len -= 1;
        self.queued[class] -= 1;
        self.credits -= self.cost(&event);
        self.extras -= u64::from(event.more.is_some());
        Some(event)
    }
}

// Controllers.
impl<E> State<E> {
    /// Shows the controllers that are due how things are, and does what they say; `log` is told of each change.
    #[inline]
    pub(crate) fn decide(&mut self, now_ns: u64) {
        if self.council.is_due(&self.counts, now_ns) {
            self.decide_now(now_ns);
        }
    }

    #[cold]
    fn decide_now(&mut self, now_ns: u64) {
        if self.len + self.in_service > 0 {
            self.counts.busy_ns += now_ns.saturating_sub(self.busy_since_ns);
            self.busy_since_ns = now_ns;
        }
        let now = Now {
            now_ns,
            queue_len: self.credits(),
            queue_max: self.bounds.queue_max,
            threshold: self.threshold,
            in_service: self.in_service,
            batch_max: self.batch,
            servlets: self.servlets,
            workers: self.workers,
            blocking: self.kind == Kind::Blocking,
            process_servlets: self.process.servlets(),
            process_servlets_mean: self.process.mean(now_ns),
            random: self.draw(),
            queued: self.queued,
        };
        let mut target = Targets {
            servlets: self.servlets.target,
            batch: self.batch,
            threshold: self.threshold,
            order: self.order,
        };
        let bounds = self.bounds;
        self.council
            .decide(&self.counts, &now, |_name, owns, settings, _sample| {
                target.apply(owns, settings, &bounds);
            });
        self.servlets.target = target.servlets;
        (self.batch, self.threshold, self.order) = (target.batch, target.threshold, target.order);
    }
}

/// The settings of a stage.
struct Targets {
    servlets: usize,
    batch: usize,
    threshold: u64,
    order: Order,
}

impl Targets {
    /// Takes over what the controller owns, within the stage's bounds.
    fn apply(&mut self, owns: Owns, settings: Settings, bounds: &Bounds) {
        if let (true, Some(servlets)) = (owns.has(Owns::SERVLETS), settings.servlets) {
            self.servlets = servlets.clamp(1, bounds.servlets_max);
        }
        if let (true, Some(batch)) = (owns.has(Owns::BATCH), settings.batch) {
            self.batch = batch.clamp(1, bounds.batch_max);
        }
        if !owns.has(Owns::ADMISSION) {
            return;
        }
        if let Some(threshold) = settings.threshold {
            self.threshold = threshold.clamp(1, bounds.queue_max);
        }
        if let Some(order) = settings.order {
            self.order = order;
        }
    }
}
