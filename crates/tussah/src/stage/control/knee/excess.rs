//! The search for an excess of events in service.

use super::pace::Pace;
use super::{CUT, Knee, MARKS, RATE, RATE_SOON, REST_MAX, REST_MIN, SERVLETS_MIN};
use crate::stage::control::{Sample, Why};

/// The number of standard deviations above which an excess is not due to chance. The deviation is
/// at most that of two independent counts.
const EXCESS_ERRORS: f64 = 3.0;

/// The ratio of service times to unloaded ones above which events may wait for each other.
const LONG: f64 = 2.0;

/// The share of an excess that must wait for permits, so that no test of its cause is needed.
const KNOWN: f64 = 0.5;

/// An excess has begun if working it off would take more than this share of the target.
const BEGUN: f64 = 1.0 / 8.0;

/// The share of the target above which an unloaded time is doubtful, if the stage refuses events.
const DOUBTFUL: f64 = 0.25;

impl Knee {
    /// Makes the first reduction and returns true if a resource may have become scarce.
    pub(super) fn finds_excess(&mut self, sample: &Sample<'_>) -> bool {
        self.unloaded
            .see(&self.history, sample.workers, sample.waiting);
        if self.unloaded.mean_ns() == 0.0 {
            return false;
        }
        // Only the workers hold back the queued events, and they need no reduction. Neither do
        // events that wait for others of their batch, so the counts are in batches.
        let busy = sample.servlets.busy as f64;
        let per_batch = (sample.in_service as f64 / busy.max(1.0)).max(1.0);
        let unloaded_ns = self.unloaded.mean_ns_max() * (1.0 + 1.0 / MARKS);
        let (came, gone) = self.history.within(unloaded_ns);
        let (came, gone) = (came / per_batch, gone / per_batch);
        let excess = busy - came;
        let rate = self.history.rate(RATE_SOON);
        let delay_ns = excess / rate.max(f64::MIN_POSITIVE);
        if delay_ns < BEGUN * self.target_ns {
            self.pace = Pace::default();
        }
        self.pace.add(sample);
        // Apart from chance, the excess does not shrink if at least as many events arrived as
        // finished.
        let stays = came >= gone - gone.sqrt();
        let sure = excess > EXCESS_ERRORS * (busy + came).sqrt();
        if sample.servlets.busy >= sample.servlets.max || sample.refused > 0 {
            self.unloaded.is_loaded(busy, &self.history);
        }
        self.unloaded
            .learn(delay_ns, sure.then_some(busy), &self.history);
        let is_pausing = self.pause.lasts(sample);
        let found = rate > 0.0 && delay_ns > self.target_ns / 2.0;
        if !(found && sure && stays && busy > SERVLETS_MIN) {
            return false;
        }
        // Waits for permits are known; others only show in the times.
        let limited = sample.limited.min(sample.servlets.busy) as f64;
        let is_known = limited > KNOWN * excess;
        let long_ns = (LONG * self.unloaded.mean_ns()).min(self.target_ns / 4.0);
        let (own_ns, limited_ns) = self.history.recent_ns(RATE);
        let are_long = own_ns + limited_ns > long_ns;
        let are_waits = is_known || are_long;
        if !are_waits && !self.history.is_flooded(self.unloaded.mean_ns_max()) {
            return false;
        }
        if !is_known && is_pausing {
            return false;
        }
        let may_lack_permits = self.limited as f64 > KNOWN * excess;
        if !may_lack_permits && self.unloaded.is_growing(&self.history) {
            return false;
        }
        self.unloaded.believe();
        (self.rate, self.servlets) = (rate, busy);
        (self.calm_ns, self.shown) = (0.0, is_known);
        (self.rest, self.rest_next) = (0.0, REST_MIN);
        if is_known {
            let wanted = self.wanted_beyond(own_ns).min(busy);
            self.hold(wanted.ceil(), Why::PermitsInUse);
            return true;
        }
        let wanted = self.wanted().clamp(CUT.0 * busy, CUT.1 * busy);
        // After a reduction, the long services end last, so the throughput is too low at first.
        let is_steady = self.pace.batches >= RATE_SOON && !self.pace.grows();
        let known = is_steady.then_some(self.pace);
        self.turn(wanted.max(2.0), known, sample.servlets.max.max(1) as f64);
        true
    }

    /// Makes a trial and returns true if the stage has refused events for a while, although nothing
    /// is known to be scarce. The unloaded time may come from an overload.
    pub(super) fn doubts(&mut self, sample: &Sample<'_>) -> bool {
        let busy = sample.servlets.busy as f64;
        if self.unloaded.mean_ns() < DOUBTFUL * self.unloaded.own_target_ns()
            || busy <= SERVLETS_MIN
        {
            return false;
        }
        if sample.refused == 0 && sample.shed == 0 {
            if sample.queue_len == 0 {
                self.refusing = Pace::default();
            }
            return false;
        }
        self.refusing.add(sample);
        let pace = self.refusing;
        let is_long = pace.ns > self.refusing_rest * self.unloaded.mean_ns();
        if pace.batches < self.refusing_rest * RATE || !is_long {
            return false;
        }
        self.refusing = Pace::default();
        self.refusing_rest = (2.0 * self.refusing_rest).min(REST_MAX);
        (self.rate, self.servlets) = (pace.per_ns(), busy);
        (self.calm_ns, self.shown) = (0.0, false);
        (self.rest, self.rest_next) = (0.0, REST_MIN);
        self.turn(busy / 2.0, Some(pace), sample.servlets.max.max(1) as f64);
        true
    }
}
