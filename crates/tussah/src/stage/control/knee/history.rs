//! The recent arrivals and completions of a stage.

use std::collections::VecDeque;

use super::pace::Pace;
use crate::stage::control::Sample;
use crate::stage::control::predict::waiting;

/// The maximum number of marks kept, for four unloaded times or four targets, whichever is longer.
const MARKS_MAX: usize = 64;

/// The evidence above which a throughput that has not grown with the number in service shows
/// scarcity, and above which a throughput that falls with this number shows that nothing is scarce,
/// in standard errors.
const STAGNATES: f64 = 0.5;
const FADES: f64 = 1.5;

/// In a flood, this many times as many events begin as end, and this many standard deviations more.
const FLOOD: f64 = 4.0;
const FLOOD_ERRORS: f64 = 3.0;

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    pub(super) at_ns: f64,
    /// The number of admitted events, not counting those that were shed.
    admitted: f64,
    /// The number of events that servlets have taken from the queue.
    taken: f64,
    /// Finished events.
    finished: f64,
    /// Finished and failed events.
    ended: f64,
    pub(super) batches: f64,
    /// The total time of batches, without their waits for room in other stages and for permits of
    /// limits.
    pub(super) service_ns: f64,
    /// The total time for which batches waited for permits, if the permits are those of all events,
    /// and in any case.
    pub(super) limited_ns: f64,
    pub(super) permits_ns: f64,
    /// The part of that time that the batches computed.
    pub(super) compute_ns: f64,
    /// The sum of the squares of the service times, in square nanoseconds.
    pub(super) squares: f64,
    /// The number of batches in service, and the integral of this number over time.
    pub(super) in_service: f64,
    pub(super) in_service_ns: f64,
}

/// Counts since the start, and their values at some times in the past.
#[derive(Debug, Default)]
pub(super) struct History {
    marks: VecDeque<Mark>,
    total: Mark,
}

impl History {
    /// Records a sample whose batches have waited for permits for `permits_ns`, with a mark every
    /// `spacing_ns` nanoseconds.
    pub(super) fn note(&mut self, sample: &Sample<'_>, permits_ns: f64, spacing_ns: f64) {
        let total = &mut self.total;
        total.at_ns += sample.interval_ns as f64;
        total.admitted += sample.admitted as f64 - sample.shed as f64;
        total.taken = total.admitted - waiting(sample);
        total.finished += sample.finished as f64;
        total.ended += sample.finished as f64 + sample.failed as f64;
        total.batches += sample.batches as f64;
        total.service_ns += own_ns(sample);
        total.limited_ns += sample.limited_ns as f64;
        total.permits_ns += permits_ns;
        total.compute_ns += sample.compute_ns as f64;
        total.squares += sample.service_squares * 1e18;
        total.in_service = sample.servlets.busy as f64;
        total.in_service_ns += total.in_service * sample.interval_ns as f64;
        let last = self.marks.back();
        if last.is_none_or(|last| total.at_ns >= last.at_ns + spacing_ns) {
            self.marks.push_back(*total);
            if self.marks.len() > MARKS_MAX {
                self.marks.pop_front();
            }
        }
    }

    /// Returns the counts now.
    pub(super) fn total(&self) -> Mark {
        self.total
    }

    /// Returns the two halves of the time since a mark, as nearly as the marks allow.
    fn halves(&self, from: &Mark) -> (Pace, Pace) {
        let middle_ns = f64::midpoint(from.at_ns, self.total.at_ns);
        let after = self.marks.partition_point(|mark| mark.at_ns < middle_ns);
        let later = self.marks.get(after).unwrap_or(&self.total);
        let earlier = after.checked_sub(1).map_or(later, |at| &self.marks[at]);
        let is_nearer = middle_ns - earlier.at_ns < later.at_ns - middle_ns;
        let middle = if is_nearer { earlier } else { later };
        let newer = Pace::between(middle, &self.total);
        (Pace::between(from, middle), newer)
    }

    /// Returns whether the throughput has not grown since a mark, although the number in service
    /// has. That is evidence of scarcity.
    pub(super) fn stagnates(&self, from: &Mark) -> bool {
        let (older, newer) = self.halves(from);
        newer.growth(&older) < -STAGNATES
    }

    /// Returns whether the throughput has fallen since a mark, with the number in service. That is
    /// evidence against scarcity.
    pub(super) fn fades(&self, from: &Mark) -> bool {
        let (older, newer) = self.halves(from);
        older.growth(&newer) > FADES
    }

    /// Returns whether the services that have ended since a mark are more and more those left over
    /// by the short ones.
    pub(super) fn is_left_over(&self, from: &Mark) -> bool {
        let (older, newer) = self.halves(from);
        older.is_left_by(newer.mean_ns())
    }

    /// Returns the number of events in a batch, on average.
    pub(super) fn events_per_batch(&self) -> f64 {
        (self.total.finished / self.total.batches.max(1.0)).max(1.0)
    }

    /// Returns two counts for the last `ns` nanoseconds: the events admitted and the events
    /// finished.
    pub(super) fn within(&self, ns: f64) -> (f64, f64) {
        let came = self.since(ns, |mark| mark.admitted);
        (came, self.since(ns, |mark| mark.finished))
    }

    /// Returns the increase of a count in the last `ns` nanoseconds.
    fn since(&self, ns: f64, count: fn(&Mark) -> f64) -> f64 {
        let at_ns = self.total.at_ns - ns;
        let after = self.marks.partition_point(|mark| mark.at_ns <= at_ns);
        let newer = self.marks.get(after).unwrap_or(&self.total);
        let older = after.checked_sub(1).map_or(newer, |at| &self.marks[at]);
        let part = (at_ns - older.at_ns) / (newer.at_ns - older.at_ns).max(1.0);
        let then = count(older) + (count(newer) - count(older)) * part.clamp(0.0, 1.0);
        count(&self.total) - then
    }

    /// Returns the mean duration of about the last `batches` batches without their waits for
    /// permits, and the mean of these waits, in nanoseconds. Failed events do not count.
    pub(super) fn recent_ns(&self, batches: f64) -> (f64, f64) {
        let from = self.before(batches).copied().unwrap_or_default();
        let batches = (self.total.batches - from.batches).max(1.0);
        let own_ns = self.total.service_ns - from.service_ns;
        let limited_ns = self.total.limited_ns - from.limited_ns;
        (own_ns / batches, limited_ns / batches)
    }

    /// Returns whether far more events have begun in the last `ns` nanoseconds than have ended.
    pub(super) fn is_flooded(&self, ns: f64) -> bool {
        let begun = self.since(ns, |mark| mark.taken);
        let ended = self.since(ns, |mark| mark.ended);
        begun - FLOOD * ended > FLOOD_ERRORS * begun.max(0.0).sqrt()
    }

    /// Returns the batches per nanosecond, over about the last `batches` batches.
    pub(super) fn rate(&self, batches: f64) -> f64 {
        let Some(from) = self.before(batches) else {
            return 0.0;
        };
        (self.total.batches - from.batches) / (self.total.at_ns - from.at_ns).max(1.0)
    }

    /// Returns the newest mark before the last `batches` batches, or the oldest mark if it is
    /// newer.
    fn before(&self, batches: f64) -> Option<&Mark> {
        let enough = self.total.batches - batches;
        let after = self.marks.partition_point(|mark| mark.batches <= enough);
        self.marks.get(after.saturating_sub(1))
    }
}

/// Returns the total time of a sample's batches, without their waits for room in other stages and
/// for permits of limits.
pub(super) fn own_ns(sample: &Sample<'_>) -> f64 {
    let known_ns = sample.held_up_ns.saturating_add(sample.limited_ns);
    sample.service_ns.saturating_sub(known_ns) as f64
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{MS, quiet};
    use super::*;

    #[test]
    fn arrivals_within_a_time_are_interpolated() {
        let mut history = History::default();
        for _ in 0..1000 {
            let sample = Sample {
                admitted: 3,
                shed: 1,
                finished: 4,
                batches: 2,
                ..quiet()
            };
            history.note(&sample, 0.0, 10.0 * MS as f64);
        }
        let (came, gone) = history.within(25.5 * MS as f64);
        assert!((came - 51.0).abs() < 0.1 && (gone - 102.0).abs() < 0.1);
        assert!((history.rate(100.0) * MS as f64 - 2.0).abs() < 1e-6);
        assert_eq!(history.events_per_batch(), 2.0);
        // The kept marks limit the time.
        let (came, _) = history.within(f64::INFINITY);
        assert!((1260.0..=2000.0).contains(&came), "{came}");
    }
}
