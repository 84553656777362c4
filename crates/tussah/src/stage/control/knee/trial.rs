//! Trials of another number in service.

use super::pace::{Pace, Verdict};
use super::{CUT, CUT_LATER, Knee, OLD_MIN, Phase, RATE_SOON, REST_MAX, REST_MIN};
use crate::stage::control::{Sample, Why};

impl Knee {
    /// Changes the number in service, to compare the throughput.
    pub(super) fn turn(&mut self, servlets: f64, known: Option<Pace>, max: f64) {
        let before = self.servlets;
        if matches!(self.phase, Phase::Free) {
            self.pause.try_fewer(self.history.total().at_ns, before);
        }
        self.servlets = servlets.clamp(1.0, max).round();
        self.phase = Phase::Turn {
            before,
            known,
            old: Pace::default(),
            from: self.history.total(),
        };
        self.pace = Pace::default();
        self.why = if self.servlets < before {
            Why::TriesFewer
        } else {
            Why::TriesMore
        };
    }

    /// Waits until the events that started before the change have ended.
    pub(super) fn turns(&mut self, sample: &Sample<'_>, max: f64) {
        let Phase::Turn {
            before,
            known,
            mut old,
            from,
        } = self.phase
        else {
            return;
        };
        old.add(sample);
        self.phase = Phase::Turn {
            before,
            known,
            old,
            from,
        };
        if !self.shown && self.history.fades(&from) {
            if self.history.is_left_over(&from) {
                self.unloaded.suppose(old.pending_ns());
            } else {
                self.unloaded.at_least(old.pending_ns());
            }
            return self.set_free(false);
        }
        // Old events that take long may hold the servlets.
        if let Some(known) = known.filter(|known| self.falls(before, known)) {
            return self.compare(before, &known, max);
        }
        let turned = sample.servlets.busy as f64 == self.servlets && sample.fresh_batches > 0;
        if turned && old.batches >= OLD_MIN {
            let steady = known.filter(|known| !known.only_begins(&old));
            let pace = steady.unwrap_or(old);
            self.phase = Phase::Probe { before, pace };
            self.pace = Pace::default();
        }
    }

    /// Restores the number after an unsuccessful trial, and doubles the pause before the next.
    pub(super) fn take_back(&mut self, before: f64, why: Why) {
        self.rest = self.rest_next;
        self.rest_next = (2.0 * self.rest_next).min(REST_MAX);
        self.hold(before, why);
    }

    /// Ends an unsuccessful trial of the free phase.
    fn set_free(&mut self, sure: bool) {
        self.pause.start(self.history.total().at_ns, sure);
        self.free(Why::FewerDoLess);
    }

    /// Returns whether fewer servlets than `before` do far less.
    pub(super) fn falls(&self, before: f64, old: &Pace) -> bool {
        self.servlets < before && self.pace.falls(old)
    }

    /// Ends a trial and returns true if permits are known to be scarce.
    pub(super) fn finds_permits(&mut self) -> bool {
        let pace = self.pace;
        let is_trial = matches!(self.phase, Phase::Turn { .. } | Phase::Probe { .. });
        if !is_trial || pace.batches < RATE_SOON || !pace.lacks_permits() {
            return false;
        }
        (self.rate, self.shown) = (pace.per_ns(), true);
        self.unloaded.at_most(pace.mean_ns());
        let wanted = self.wanted_beyond(pace.mean_ns());
        self.hold(wanted.min(self.servlets).ceil(), Why::PermitsInUse);
        true
    }

    /// Compares the throughput with the throughput of `before` servlets.
    pub(super) fn compare(&mut self, before: f64, old: &Pace, max: f64) {
        let pace = self.pace;
        let falls = self.falls(before, old);
        let scarce = match pace.compare(old) {
            _ if falls => false,
            Verdict::Unknown => return,
            // Twice the number shows as much as all of it, and costs less if a resource is scarce.
            Verdict::OldUnsure => {
                return self.turn(before.min(2.0 * self.servlets), Some(pace), max);
            }
            Verdict::Scarce => true,
            Verdict::Proportional => false,
        };
        self.rate = pace.per_ns();
        self.shown |= scarce;
        if scarce {
            self.pause.reset();
            self.refusing_rest = REST_MIN;
        }
        let more = self.servlets > before;
        match (scarce, more) {
            (false, _) => {
                if falls {
                    self.unloaded.suppose(pace.pending_ns());
                } else {
                    self.unloaded.at_least(pace.mean_ns());
                }
                if more {
                    self.turn(2.0 * self.servlets, Some(pace), max);
                } else if self.shown {
                    self.take_back(before, Why::FewerDoLess);
                } else {
                    // Services take longer now. That alone does not mean scarcity.
                    self.set_free(falls);
                }
            }
            (true, true) => self.take_back(before, Why::MoreDoNoMore),
            (true, false) => {
                self.unloaded.at_most(self.servlets / self.rate);
                let wanted = self.wanted();
                if wanted < CUT.1 * self.servlets {
                    self.turn(wanted.max(CUT_LATER * self.servlets), Some(pace), max);
                } else {
                    self.rest = self.rest_next;
                    self.hold(self.servlets, Why::MoreDoNoMore);
                }
            }
        }
    }
}
