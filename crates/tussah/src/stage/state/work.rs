//! The events that a servlet takes out of a stage's queue, gives back and finishes.

use std::ops::Range;

use super::staff::WORTH_NS;
use super::{Kind, Run, State, WaitsFor};
use crate::stage::control::{Departure, Order, Verdict};
use crate::stage::event::{Batch, Class, Event, Reason, class_of, queued_ns};
use crate::stage::queue::{CHUNK_MAX, Queue};

/// The estimated time of a run, in nanoseconds.
const RUN_NS: f64 = 50_000.0;
/// If an event takes longer than this, in nanoseconds, a sent event carries its own send time.
pub(crate) const EXACT_NS: u64 = 1_000;
/// A run counts as at most this multiple of the mean.
const OUTLIER: f64 = 4.0;
/// A handler waits if its total time is more than this multiple of its computing time.
const WAITS: f64 = 2.0;
/// The weight of each new run in the mean time of an event.
const MEAN_PART: f64 = 0.125;

/// Describes an event of this class as it leaves the queue; `queue_len` is in credits.
pub(super) fn departure<E>(
    event: &Event<E>,
    class: usize,
    queue_len: u64,
    now_ns: u64,
) -> Departure {
    Departure {
        class: Class(class as u8),
        sojourn_ns: now_ns.saturating_sub(queued_ns(event.stamp())),
        queue_len,
        key: None,
        now_ns,
    }
}

impl<E> State<E> {
    /// Takes events for a servlet to work on. Returns false if there are none.
    pub(crate) fn take(&mut self, run: &mut Run<E>, now_ns: u64) -> bool {
        if !self.works() || !self.queue.is_ready() {
            return false;
        }
        let (limit, many) = self.share();
        let (many, order) = match self.numbers {
            Some(_) => (1, Order::Fifo),
            None => (many, self.order),
        };
        (run.limit, run.order) = (limit, order);
        run.exact = self.mean_ns > EXACT_NS as f64;
        run.one_by_one = self.bounds.batch_max == 1 && matches!(self.queue, Queue::Lanes(_));
        let plain = self.extras == 0
            && self.classes == 1
            && run.order == Order::Fifo
            && !self.controllers.looks_at_departures();
        match &mut self.queue {
            Queue::Lanes(lanes) if plain => {
                lanes.take(&mut run.ahead, limit.max(many));
                self.left_queue(0, run.ahead.len() as u64);
            }
            Queue::Lanes(_) => self.take_each(run, limit.max(many), now_ns),
            // The next event of a key may be of a higher class than those of the other keys.
            Queue::Keyed(_) if self.classes > 1 => self.take_keys(run, 1, plain, now_ns),
            Queue::Keyed(_) => self.take_keys(run, many, plain, now_ns),
        }
        if self.buried > 0 {
            self.sweep();
        }
        if self.numbers.is_some() {
            self.number(&mut run.ahead);
        }
        run.taken = run.ahead.len() as u64;
        (run.begun_ns, run.resumed_ns) = (now_ns, now_ns);
        self.in_service += run.taken;
        if run.taken == 0 {
            // The controllers dropped all of the events.
            self.end_busy(now_ns);
        }
        run.taken > 0
    }

    /// Returns the maximum number of events in a batch, and the number of events that are short
    /// enough for one run; 1 if they are not known to be short. Both are at most the servlet's
    /// share if other servlets could work, too.
    pub(super) fn share(&self) -> (usize, usize) {
        let len = usize::try_from(self.len).unwrap_or(usize::MAX);
        if self.counts.batches == 0 && !self.controllers.is_empty() && self.allowed() > 1 {
            // Events of unknown duration. Those behind the first one would wait for it, and their
            // time would pass for that of a service.
            return (1, 1);
        }
        // Another servlet could have started on the events behind a waiting event.
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
            return (limit, 1);
        }
        let many = ((RUN_NS / self.mean_ns) as usize).clamp(1, CHUNK_MAX);
        (limit, many.min(fair))
    }

    #[inline]
    fn left_queue(&mut self, class: usize, count: u64) {
        self.len -= count;
        self.queued[class] -= count;
        self.credits -= count;
        self.freed = true;
    }

    /// Takes events of one key, and of further keys while there are fewer than `many`. Short events
    /// of many keys cost less in one run than in a run for each key.
    /// `plain` is true if no event needs a check of its own.
    fn take_keys(&mut self, run: &mut Run<E>, many: usize, plain: bool, now_ns: u64) {
        let most = run.limit.max(many);
        while run.ahead.len() < many.max(1) {
            let Some(key) = self.queue.open(self.order) else {
                return;
            };
            let before = run.ahead.len();
            let upto = most.min(before + run.limit);
            match &mut self.queue {
                Queue::Keyed(keyed) if plain => {
                    keyed.take_many(&mut run.ahead, upto);
                    self.left_queue(0, (run.ahead.len() - before) as u64);
                }
                _ => self.take_each(run, upto, now_ns),
            }
            match run.ahead.len() - before {
                0 => self.release_key(key),
                events => run.keys.push((key, events)),
            }
        }
    }

    fn take_each(&mut self, run: &mut Run<E>, most: usize, now_ns: u64) {
        let asks = self.controllers.looks_at_departures();
        if asks {
            // Events that higher classes passed over until they are too late to be served.
            self.take_overdue(1, now_ns, &mut run.dropped);
        }
        while run.ahead.len() < most {
            let Some(event) = self.queue.take_one(run.order) else {
                return;
            };
            let class = self.class(&event);
            let Some(event) = self.count_out(event) else {
                self.queue.refund(class, None);
                continue;
            };
            if (1..=now_ns).contains(&event.deadline_ns()) {
                self.queue.refund(class, None);
                self.counts.expired += 1;
                run.dropped.push((event, Reason::Expired));
                continue;
            }
            let mut departure = departure(&event, class, self.credits, now_ns);
            departure.key = self.opened_key(asks);
            if asks && self.controllers.on_dequeue(&departure) == Verdict::Shed {
                self.queue.refund(class, None);
                self.counts.shed += 1;
                self.scarcity.reject();
                run.dropped.push((event, Reason::Shed));
                continue;
            }
            run.ahead.put_one(event);
        }
    }

    /// Returns unused events to the queue: the rest of the batch, and the events taken ahead.
    pub(crate) fn give_back(&mut self, run: &mut Run<E>, batch: &mut Batch<E>) {
        let (here, count) = (batch.len(), batch.len() + run.ahead.len());
        if count == 0 {
            return;
        }
        let mut back = Vec::with_capacity(count);
        for from in [batch, &mut run.ahead] {
            while let Some(event) = from.give_back() {
                back.push(event);
            }
        }
        let known = run.taken.min(count as u64);
        self.in_service -= known;
        run.taken -= known;
        let own = count - known as usize;
        let pays = run.paying_key();
        for (at, event) in back.iter().enumerate() {
            if !(here - own..here).contains(&at) {
                self.queue.refund(self.class(event), pays);
            }
        }
        if own > 0 {
            self.let_in_own(&mut back, here - own..here, run);
        }
        for &(key, events) in run.keys[run.begun..].iter().rev() {
            for event in back.drain(back.len() - events..).rev() {
                self.put_back(event, run.order, Some(key));
            }
        }
        let key = run.begun.checked_sub(1).map(|last| run.keys[last].0);
        for event in back.into_iter().rev() {
            self.put_back(event, run.order, key);
        }
        // Other servlets may take the events of keys that have not begun, before those of others.
        for (key, _) in run.keys.drain(run.begun..).rev() {
            self.unopen_key(key, run.order);
        }
    }

    /// Queues the events that the handler has added to its batch, as far as there is room.
    #[cold]
    fn let_in_own(&mut self, back: &mut Vec<Event<E>>, own: Range<usize>, run: &mut Run<E>) {
        self.counts.arrived += own.len() as u64;
        let others = back[..own.start].iter().chain(&back[own.end..]);
        let used = self.credits() + others.map(Event::charged).sum::<u64>();
        let mut room = self.bounds.queue_max.saturating_sub(used);
        let mut kept = Vec::with_capacity(back.len());
        for (at, mut event) in back.drain(..).enumerate() {
            if own.contains(&at) {
                let cost = self.cost(&event);
                event.charge(cost);
                if cost > room {
                    self.counts.shed += 1;
                    run.dropped.push((event, Reason::Shed));
                    continue;
                }
                room -= cost;
            }
            kept.push(event);
        }
        *back = kept;
    }

    /// Notes that a handler waits for the first time in its run.
    pub(crate) fn waits(&mut self, run: &mut Run<E>) {
        run.waits = true;
        self.waiting += 1;
        run.only_yields = run.yielded;
        self.yielding += usize::from(run.yielded);
        self.count_waits(run);
        self.give_back(run, &mut Batch::default());
        // Only the key of the batch stays busy.
        let last = run.keys.pop();
        self.release_keys(run);
        run.keys.extend(last);
        run.begun = run.keys.len();
    }

    pub(super) fn release_keys(&mut self, run: &mut Run<E>) {
        for (key, _) in run.keys.drain(..) {
            self.release_key(key);
        }
        run.begun = 0;
    }

    /// Notes that a handler now waits for something else: it had only yielded so far, or it begins
    /// or ends to wait for room in another stage or for a permit.
    pub(crate) fn waits_after_all(&mut self, run: &mut Run<E>) {
        self.yielding -= usize::from(std::mem::take(&mut run.only_yields));
        self.count_waits(run);
    }

    fn count_waits(&mut self, run: &mut Run<E>) {
        let was = std::mem::replace(&mut run.counted, run.waits_for);
        for (count, cause) in [
            (&mut self.held_up, WaitsFor::Room),
            (&mut self.limited, WaitsFor::Permit),
        ] {
            *count += usize::from(run.waits_for == cause);
            *count -= usize::from(was == cause);
        }
    }

    fn count_responses(&mut self, batch: &mut Batch<E>, now_ns: u64) {
        for wave in batch.waves().drain(..).filter(|wave| wave.count > 0) {
            let class = class_of(wave.stamp).among(self.classes);
            let response_ns = now_ns.saturating_sub(queued_ns(wave.stamp));
            self.counts.classes[class].finished += wave.count;
            self.responses.add(response_ns, wave.count);
            self.controllers.responded(class, response_ns, wave.count);
        }
    }

    /// Ends a run: all its events are finished or given back.
    pub(crate) fn finish(&mut self, run: &mut Run<E>, batch: &mut Batch<E>, now_ns: u64) {
        for class in batch.take_withheld() {
            let class = class.among(self.classes);
            self.queue.refund(class, run.paying_key());
        }
        self.give_back(run, batch);
        if std::mem::take(&mut run.waits) {
            self.waiting -= 1;
            run.waits_for = WaitsFor::Other;
            self.waits_after_all(run);
        }
        self.ease_relief();
        let (passed_over, cancelled) = batch.take_cancelled();
        self.count_responses(batch, now_ns);
        let expired = batch.take_expired().min(run.taken);
        run.taken -= expired;
        self.in_service -= expired;
        self.counts.expired += expired;
        let cancelled = cancelled.min(run.taken);
        let ended = cancelled + passed_over.min(run.taken - cancelled);
        run.taken -= ended;
        self.in_service -= ended;
        self.counts.cancelled += ended;
        // All events that were not given back, even if the handler has taken the batch away.
        let ended = std::mem::take(&mut run.taken);
        let failed = batch.take_failed().min(ended);
        let finished = ended - failed;
        self.in_service -= ended;
        self.counts.finished += finished;
        self.counts.failed += failed;
        // These events, and batches of only such events, contribute no time.
        let left_out = batch.take_left_out().min(finished);
        let (finished, lost) = (finished - left_out, cancelled + failed + left_out);
        let mut batches = std::mem::take(&mut run.batches);
        if finished == 0 && lost > 0 {
            batches = 0;
        }
        self.counts.batches += batches;
        // The finished events' part of a time.
        let share = |ns: u64| match lost {
            0 => ns,
            _ => (ns as f64 * finished as f64 / (finished + lost) as f64) as u64,
        };
        let service_ns = share(now_ns.saturating_sub(run.begun_ns));
        self.counts.service_ns += service_ns;
        let held_up_ns = share(std::mem::take(&mut run.held_up_ns));
        self.counts.held_up_ns += held_up_ns;
        self.counts.limited_ns += share(std::mem::take(&mut run.limited_ns));
        self.counts.permits += std::mem::take(&mut run.permits).min(finished);
        if batches > 0 {
            let own_s = service_ns.saturating_sub(held_up_ns) as f64 / 1e9;
            self.counts.service_squares += own_s * own_s / batches as f64;
            if run.begun_ns > self.retuned_ns {
                self.counts.fresh_batches += batches;
            }
        }
        run.yielded = false;
        let ready_ns = share(std::mem::take(&mut run.ready_ns));
        self.counts.ready_ns += ready_ns;
        let compute_ns =
            share(std::mem::take(&mut run.compute_ns) + now_ns.saturating_sub(run.resumed_ns));
        self.counts.compute_ns += compute_ns;
        if finished > 0 && lost == 0 {
            follow(&mut self.mean_ns, compute_ns as f64 / finished as f64);
            let own_ns = service_ns.saturating_sub(held_up_ns + ready_ns);
            follow(&mut self.service_mean_ns, own_ns as f64 / finished as f64);
        }
        self.served_keys(run, (finished, lost), service_ns);
        self.end_busy(now_ns);
    }

    pub(crate) fn end_busy(&mut self, now_ns: u64) {
        if self.len + self.in_service == 0 {
            self.counts.busy_ns += now_ns.saturating_sub(self.busy_since_ns);
            self.busy_since_ns = now_ns;
        }
    }

    /// Takes out one event after the other, for a stage that is being abandoned.
    pub(crate) fn take_out(&mut self) -> Option<Event<E>> {
        loop {
            let event = match &mut self.queue {
                Queue::Lanes(lanes) => lanes.take_one(Order::Fifo),
                Queue::Keyed(keyed) => keyed.take_out(),
            }?;
            if let Some(event) = self.count_out(event) {
                self.counts.shut_down += 1;
                return Some(event);
            }
        }
    }
}

/// Updates a moving mean.
fn follow(mean_ns: &mut f64, each_ns: f64) {
    if *mean_ns == 0.0 {
        *mean_ns = each_ns;
    }
    // One run in which the OS thread lost its CPU says nothing about the next run.
    let likely_ns = each_ns.min(*mean_ns * OUTLIER);
    *mean_ns += (likely_ns - *mean_ns) * MEAN_PART;
}
