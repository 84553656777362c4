//! Stalls: all servlets that may be at work wait, perhaps for events that are still queued.
//!
//! The controllers set the number of servlets by what they measure at arrivals and ends of events.
//! While all servlets wait and senders have no room, nothing arrives and nothing ends. If the
//! handlers wait for queued events, they would wait forever. A stalled stage therefore gets further
//! servlets beyond the controllers' number. It gives them back as the waiting handlers end.

use super::{Kind, State};
use crate::stage::control::WhileAllWait;
use crate::stage::event::NEVER;

/// Bound, in nanoseconds: the shortest stall after which a stage gets further servlets, if handlers
/// wait for a scarce resource and otherwise. Controllers are sampled more often than the first.
const STALL_NS: u64 = 100_000_000;
const STALL_SOON_NS: u64 = 5_000_000;

/// A stall lasts this many mean times of an event, because the controllers expect waits of one. For
/// a short stall, only the computing times count.
const STALL_EVENTS: f64 = 8.0;

impl<E> State<E> {
    /// Returns whether events are queued, and all servlets that may take them wait for something
    /// other than a worker or room in another stage.
    fn is_stuck(&self) -> bool {
        let busy = self.servlets.busy;
        let all_wait = match self.kind {
            Kind::Async => self.waiting == busy && self.yielding + self.held_up == 0,
            // They may be waiting at any time.
            Kind::Blocking => true,
        };
        self.while_all_wait != WhileAllWait::Hold
            && all_wait
            && busy > 0
            && busy >= self.allowed()
            && busy < self.servlets.max.min(self.cap)
            && self.works()
            && !self.held_back
            && self.queue.is_ready()
    }

    /// Schedules a check if all servlets wait.
    #[inline]
    pub(crate) fn watch_stall(&mut self, now_ns: impl FnOnce() -> u64) {
        if self.watch.stall_ns == NEVER && self.is_stuck() {
            let (stall_ns, event_ns) = match self.kind {
                _ if !self.begins_soon() => (STALL_NS, self.service_mean_ns),
                Kind::Async => (STALL_SOON_NS, self.mean_ns),
                // The computing time of these handlers is unknown.
                Kind::Blocking => (STALL_SOON_NS, 0.0),
            };
            let stall_ns = stall_ns.max((STALL_EVENTS * event_ns) as u64);
            self.watch.stall_ns = now_ns().saturating_add(stall_ns);
            self.stall_ended = self.ended_events();
        }
    }

    /// Allows further servlets if all servlets have waited since the check was scheduled.
    pub(super) fn end_stall(&mut self) {
        if self.is_stuck() && self.stall_ended == self.ended_events() {
            // Without a scarce resource, those that wait leave the others their number of servlets.
            let least = if self.begins_soon() {
                self.servlets.busy
            } else {
                1
            };
            self.relief = (2 * self.relief).max(least).min(self.servlets.max);
        }
    }

    fn begins_soon(&self) -> bool {
        self.while_all_wait == WhileAllWait::BeginSoon
    }

    /// Gives back servlets when a handler has ended: the others that wait still need theirs.
    pub(super) fn ease_relief(&mut self) {
        let waiting = match self.kind {
            Kind::Async => self.waiting,
            Kind::Blocking => self.servlets.busy.saturating_sub(1),
        };
        self.relief = self.relief.min(waiting);
    }

    fn ended_events(&self) -> u64 {
        self.counts.finished + self.counts.failed + self.counts.cancelled
    }
}
