//! What a servlet takes out of a stage's queue, gives back and finishes.

use super::staff::WORTH_NS;
use super::{Kind, State};
use crate::stage::batch::Batch;
use crate::stage::control::{Departure, Order, Verdict};
use crate::stage::event::{Class, Event, Reason, class_of, queued_ns};
use crate::stage::queue::{CHUNK_MAX, Queue};

/// How long a servlet works, at a guess, before it looks at the queue again, in nanoseconds.
const RUN_NS: f64 = 50_000.0;
/// Where an event takes longer than this, in nanoseconds, what is sent bears the time of its sending, and not of the run.
const EXACT_NS: f64 = 1_000.0;
/// A run counts as at most so many times the mean.
const OUTLIER: f64 = 4.0;
/// A handler that takes so many times as long as it computes waits.
const WAITS: f64 = 2.0;
/// Of each new run, what part goes into the mean time of an event.
const MEAN_PART: f64 = 0.125;

/// What a servlet works on between two looks at the queue.
pub(crate) struct Run<E> {
    /// What has been taken, and is not in the servlet's batch yet.
    pub(crate) ahead: Batch<E>,
    /// How many events a batch may have.
    pub(crate) limit: usize,
    /// Which end of the queue it was taken from.
    pub(crate) order: Order,
    /// The busy key, in a stage by key.
    pub(crate) key: Option<usize>,
    /// What was shed or had expired: to be told under no lock.
    pub(crate) dropped: Vec<(Event<E>, Reason)>,
    /// How many of these the stage waits for to be told.
    pub(crate) untold: u64,
    pub(crate) begun_ns: u64,
    /// Since when the handler computes.
    pub(crate) resumed_ns: u64,
    /// What it computed before that.
    pub(crate) compute_ns: u64,
    /// It waits for room in another stage, and has waited so long for that.
    pub(crate) held_up: bool,
    pub(crate) held_up_ns: u64,
    /// It is ready, and has waited so long for its turn after it let others have theirs.
    pub(crate) yielded: bool,
    pub(crate) ready_ns: u64,
    /// It has done nothing but that since it counts as one that waits.
    pub(crate) only_yields: bool,
    pub(crate) batches: u64,
    /// Events take so long that what is sent bears the time of its sending, not of the run.
    pub(crate) exact: bool,
    /// The handler waits, and the stage knows.
    pub(crate) waits: bool,
    /// The trace of the event that the handler, which waits, took last; 0 is none.
    pub(crate) trace: u64,
    taken: u64,
}

impl<E> Default for Run<E> {
    fn default() -> Self {
        Self {
            ahead: Batch::default(),
            limit: 1,
            order: Order::Fifo,
            key: None,
            dropped: Vec::new(),
            untold: 0,
            begun_ns: 0,
            resumed_ns: 0,
            compute_ns: 0,
            held_up: false,
            held_up_ns: 0,
            yielded: false,
            ready_ns: 0,
            only_yields: false,
            batches: 0,
            exact: false,
            waits: false,
            trace: 0,
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
    pub(crate) fn ended(&mut self) {
        self.batches += 1;
    }
}

/// An event of this class, as it leaves a queue of so many credits.
fn departure<E>(event: &Event<E>, class: usize, queue_len: u64, now_ns: u64) -> Departure {
    Departure {
        class: Class(class as u8),
        sojourn_ns: now_ns.saturating_sub(queued_ns(event.stamp())),
        queue_len,
        now_ns,
    }
}

impl<E> State<E> {
    /// Takes events for a servlet to work on; false if there are none.
    pub(crate) fn take(&mut self, run: &mut Run<E>, now_ns: u64) -> bool {
        if !self.works() {
            return false;
        }
        if let Queue::Keyed(keyed) = &mut self.queue {
            run.key = keyed.open(self.order);
            if run.key.is_none() {
                return false;
            }
        }
        let (limit, most) = self.share();
        (run.limit, run.order) = (limit, self.order);
        run.exact = self.mean_ns > EXACT_NS;
        let plain = self.extras == 0
            && self.classes == 1
            && self.order == Order::Fifo
            && !self.council.looks_at_departures();
        match &mut self.queue {
            Queue::Lanes(lanes) if plain => {
                lanes.take(&mut run.ahead, most);
                self.left_queue(0, run.ahead.len() as u64);
            }
            Queue::Lanes(_) => self.take_each(run, most, now_ns),
            Queue::Keyed(_) => self.take_each(run, limit, now_ns),
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
        // What stands behind an event that waits could have been begun by another servlet.
        let waits = self.kind == Kind::Blocking || self.service_mean_ns > WAITS * self.mean_ns;
        let able = if waits {
            self.allowed()
        } else {
            self.allowed().min(self.workers.max(1))
        };
        let lasts_ns = self.service_mean_ns * self.len as f64;
        let shared = able > 1 && lasts_ns > 2.0 * WORTH_NS;
        let fair = if shared { len.div_ceil(able) } else { len };
        let limit = self.batch.min(fair).max(1);
        if self.mean_ns == 0.0 || self.waiting > 0 || waits {
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
        self.freed = true;
    }

    /// Sheds what has been passed over by higher classes for so long that it would be shed if it were its turn.
    fn shed_passed_over(&mut self, run: &mut Run<E>, now_ns: u64) {
        for class in 1..self.classes {
            let Queue::Lanes(lanes) = &mut self.queue else {
                return;
            };
            while let Some(event) = lanes.oldest(class) {
                let departure = departure(event, class, self.credits, now_ns);
                if !self.council.is_overdue(&departure) {
                    break;
                }
                let event = lanes.take_oldest(class).expect("it was just seen");
                self.len -= 1;
                self.queued[class] -= 1;
                self.credits -= event.charged();
                self.freed = true;
                self.extras -= u64::from(event.more.is_some());
                self.counts.shed += 1;
                run.dropped.push((event, Reason::Shed));
            }
        }
    }

    fn take_each(&mut self, run: &mut Run<E>, most: usize, now_ns: u64) {
        let asks = self.council.looks_at_departures();
        if asks {
            self.shed_passed_over(run, now_ns);
        }
        while run.ahead.len() < most {
            let Some(event) = self.queue.take_one(self.order) else {
                return;
            };
            let class = self.class(&event);
            self.len -= 1;
            self.queued[class] -= 1;
            self.credits -= event.charged();
            self.freed = true;
            if let Some(more) = &event.more {
                self.extras -= 1;
                if more.deadline_ns != 0 && more.deadline_ns <= now_ns {
                    self.counts.expired += 1;
                    run.dropped.push((event, Reason::Expired));
                    continue;
                }
            }
            let departure = departure(&event, class, self.credits, now_ns);
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
        // A handler may leave events of its own.
        let known = run.taken.min(count as u64);
        self.in_service -= known;
        run.taken -= known;
        self.counts.arrived += count as u64 - known;
        for event in back.into_iter().rev() {
            let class = self.class(&event);
            self.len += 1;
            self.queued[class] += 1;
            self.credits += event.charged();
            self.extras += u64::from(event.more.is_some());
            self.watch.queued(event.deadline_ns());
            self.queue.put_back(event, run.order, run.key);
        }
    }

    /// A handler waits for the first time in its run.
    pub(crate) fn waits(&mut self, run: &mut Run<E>) {
        run.waits = true;
        self.waiting += 1;
        run.only_yields = run.yielded;
        self.yielding += usize::from(run.yielded);
        self.give_back(run, &mut Batch::default());
    }

    /// One that has only let others have their turn so far waits for something else.
    pub(crate) fn waits_after_all(&mut self, run: &mut Run<E>) {
        self.yielding -= usize::from(std::mem::take(&mut run.only_yields));
    }

    /// A run has ended: all its events are finished or given back.
    pub(crate) fn finish(&mut self, run: &mut Run<E>, batch: &mut Batch<E>, now_ns: u64) {
        self.give_back(run, batch);
        if std::mem::take(&mut run.waits) {
            self.waiting -= 1;
            self.waits_after_all(run);
        }
        for wave in batch.waves().drain(..) {
            let class = class_of(wave.stamp).among(self.classes);
            let response_ns = now_ns.saturating_sub(queued_ns(wave.stamp));
            self.counts.classes[class].finished += wave.count;
            self.responses.add(response_ns, wave.count);
            self.council.responded(class, response_ns, wave.count);
        }
        let expired = batch.take_expired().min(run.taken);
        run.taken -= expired;
        self.in_service -= expired;
        self.counts.expired += expired;
        // All that was not given back, also if the handler has taken the batch away.
        let finished = std::mem::take(&mut run.taken);
        self.counts.finished += finished;
        self.counts.failed += batch.take_failed();
        self.counts.batches += std::mem::take(&mut run.batches);
        let service_ns = now_ns.saturating_sub(run.begun_ns);
        self.counts.service_ns += service_ns;
        let held_up_ns = std::mem::take(&mut run.held_up_ns);
        self.counts.held_up_ns += held_up_ns;
        run.yielded = false;
        let ready_ns = std::mem::take(&mut run.ready_ns);
        self.counts.ready_ns += ready_ns;
        let compute_ns =
            std::mem::take(&mut run.compute_ns) + now_ns.saturating_sub(run.resumed_ns);
        self.counts.compute_ns += compute_ns;
        if finished > 0 {
            follow(&mut self.mean_ns, compute_ns as f64 / finished as f64);
            let own_ns = service_ns.saturating_sub(held_up_ns + ready_ns);
            follow(&mut self.service_mean_ns, own_ns as f64 / finished as f64);
        }
        self.in_service -= finished;
        if let (Queue::Keyed(keyed), Some(key)) = (&mut self.queue, run.key.take()) {
            keyed.release(key);
        }
        self.end_busy(now_ns);
    }

    /// An event has been taken out of the queue since its deadline has passed.
    pub(crate) fn is_late(&mut self, event: &Event<E>) {
        let class = self.class(event);
        self.len -= 1;
        self.queued[class] -= 1;
        self.credits -= event.charged();
        self.freed = true;
        self.extras -= 1;
        self.counts.expired += 1;
    }

    pub(crate) fn end_busy(&mut self, now_ns: u64) {
        if self.len + self.in_service == 0 {
            self.counts.busy_ns += now_ns.saturating_sub(self.busy_since_ns);
            self.busy_since_ns = now_ns;
        }
    }

    /// Takes out one event after the other, for a stage that is given up.
    pub(crate) fn take_out(&mut self) -> Option<Event<E>> {
        let event = match &mut self.queue {
            Queue::Lanes(lanes) => lanes.take_one(Order::Fifo),
            Queue::Keyed(keyed) => keyed.take_out(),
        }?;
        let class = self.class(&event);
        self.len -= 1;
        self.queued[class] -= 1;
        self.credits -= event.charged();
        self.freed = true;
        self.extras -= u64::from(event.more.is_some());
        self.counts.shut_down += 1;
        Some(event)
    }
}

/// Moves a moving mean.
fn follow(mean_ns: &mut f64, each_ns: f64) {
    if *mean_ns == 0.0 {
        *mean_ns = each_ns;
    }
    // One run in which the OS thread lost its CPU says nothing about the next.
    let likely_ns = each_ns.min(*mean_ns * OUTLIER);
    *mean_ns += (likely_ns - *mean_ns) * MEAN_PART;
}
