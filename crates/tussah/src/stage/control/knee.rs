//! The number of events that a stage with waiting handlers should have in service at once.
//!
//! Handlers may wait for a scarce resource that the stage cannot see, such as a pool, a lock or a
//! busy backend. Classes, deadlines and admission do not apply to a wait inside a handler. The
//! stage should therefore serve just enough events at once to keep the resource busy.
//!
//! # The model
//! By Little's law, N = X W: if N events are in service for W each, the stage completes X events
//! per unit of time. Let S be the *unloaded* service time, without scarcity, and let C be the
//! maximum rate of the scarce resource. Then X(N) = N / S while N < C S, and X(N) = C above. The
//! elasticity d ln X / d ln N is 1 below the knee at N = C S, and 0 above it. A long service time
//! alone proves nothing, since the backend may simply be slow.
//!
//! # The phases
//! - **Free.** No scarcity is known, and all events are in service at once. Without scarcity, the
//!   stage serves as many events as arrived within the last S; any further events are an *excess*.
//!   An excess indicates scarcity if working it off would take more than half of the target, if
//!   chance does not explain it, and if it does not shrink. In addition, services that succeed must
//!   have become longer, or have had no time to: an excess may consist of calls that will fail.
//! - **Turn and probe.** The controller reduces the number of events in service and measures the
//!   throughput again. If the throughput is unchanged, a resource is scarce and the reduction
//!   stays. If the throughput fell in proportion, nothing is scarce: all events are in service
//!   again, and S becomes the newly measured service time.
//! - **Held.** The stage keeps enough events in service to keep the resource busy for S, plus some
//!   slack. C and S may change, so the controller occasionally tries half or twice the number and
//!   compares again. After an unsuccessful trial, it waits twice as long before the next one.
//!
//! [`common`] describes the use of known waits, those for permits of a limit. All other decisions
//! count events over time. Only S uses service times, and only at almost no load: while most
//! services are still running, only the short ones have ended, so the mean of their times would be
//! too low. [`pace`] describes the comparison and related work.

mod asked;
mod common;
mod excess;
mod history;
mod learned;
mod pace;
#[cfg(test)]
mod tests;
mod unloaded;

pub(super) use self::asked::{Asked, Scarce};
use self::common::Common;
use self::history::History;
pub(super) use self::learned::Learned;
use self::pace::{Pace, Verdict};
use self::unloaded::Unloaded;
use super::{Sample, Why};

/// The number of completions over which a rate is measured, if it is needed soon and if it may take
/// longer.
const RATE_SOON: f64 = 16.0;
const RATE: f64 = 32.0;

/// The number of marks in an unloaded time or in a target. Arrivals are counted over an unloaded
/// time plus one mark, so that a burst is counted until it is done.
const MARKS: f64 = 16.0;

/// The number of events in service up to which a reduction has no visible effect.
const SERVLETS_MIN: f64 = 4.0;

/// The minimum and the maximum share that the first reduction leaves. The effect of a smaller
/// reduction would not be visible, and a larger one would starve a resource that is not scarce.
/// Later reductions are smaller, because less is in doubt.
const CUT: (f64, f64) = (0.2, 0.7);
const CUT_LATER: f64 = 0.4;

/// The share of the servlets that must be busy for the throughput to count. A short queue is
/// occasionally empty.
const FULL: f64 = 0.6;

/// The slack is S, limited to these shares of the target. Without slack, the scarce resource would
/// be idle whenever a servlet is between two events.
const SLACK: (f64, f64) = (1.0 / 32.0, 1.0 / 8.0);

/// Nothing is considered scarce after this many unloaded times without a waiting event, and after a
/// target if that is longer.
const CALM_SERVICES: f64 = 4.0;

/// The first pause after an unsuccessful trial and the longest, in windows of [`RATE`] completions.
const REST_MIN: f64 = 2.0;
const REST_MAX: f64 = 64.0;

/// The minimum number of completions, since a change, of events that were in service before.
const OLD_MIN: f64 = 4.0;

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Nothing is known to be scarce.
    Free,
    /// The number in service has changed from `before`, and some of the events that started before
    /// the change are still in service. `known` is the throughput with `before`, if it was
    /// measured, and `old` is the throughput in this phase.
    Turn {
        before: f64,
        known: Option<Pace>,
        old: Pace,
    },
    /// The throughput is being compared with the earlier throughput.
    Probe { before: f64, pace: Pace },
    /// A resource is scarce.
    Held,
}

/// The search for the knee.
#[derive(Debug)]
pub(super) struct Knee {
    /// The effective target, in nanoseconds.
    target_ns: f64,
    common: Common,
    history: History,
    unloaded: Unloaded,
    phase: Phase,
    /// The highest number in service, unless the phase is free.
    servlets: f64,
    /// Batches per nanosecond that the scarce resource completes.
    rate: f64,
    /// The throughput with all servlets busy, since the phase began; in the free phase, since an
    /// excess began.
    pace: Pace,
    /// The windows until the next trial, and the pause after the next unsuccessful trial.
    rest: f64,
    rest_next: f64,
    /// True if a comparison has shown that a resource is scarce, since the first reduction.
    shown: bool,
    /// True if the last trial used more servlets, not fewer.
    tried_more: bool,
    /// The time without a waiting event, in nanoseconds.
    calm_ns: f64,
    why: Why,
}

impl Knee {
    pub(super) fn new(target_ns: u64) -> Self {
        Self {
            target_ns: target_ns as f64,
            common: Common::default(),
            history: History::default(),
            unloaded: Unloaded::new(target_ns as f64),
            phase: Phase::Free,
            servlets: 0.0,
            rate: 0.0,
            pace: Pace::default(),
            rest: 0.0,
            rest_next: 0.0,
            shown: false,
            tried_more: true,
            calm_ns: 0.0,
            why: Why::Unsaid,
        }
    }

    /// Returns the effective target, in nanoseconds: one that can be met even if the service alone
    /// takes most of the configured target.
    pub(super) fn target_ns(&self) -> u64 {
        self.target_ns as u64
    }

    /// Records a sample while other controllers decide.
    pub(super) fn watch(&mut self, sample: &Sample<'_>) {
        self.note(sample);
        self.phase = Phase::Free;
        self.pace = Pace::default();
        self.unloaded.restart(&self.history);
    }

    /// Records a sample, and returns the wanted number in service.
    pub(super) fn sample(&mut self, sample: &Sample<'_>) -> Asked {
        let sample = &self.note(sample);
        self.target_ns = self.unloaded.effective_target_ns();
        let max = sample.servlets.max.max(1) as f64;
        let busy = sample.servlets.busy as f64;
        if matches!(self.phase, Phase::Free) && !self.finds_excess(sample) {
            return self.asked(sample);
        }
        let full = busy >= FULL * self.servlets;
        if self.is_calm(sample, full) {
            self.free(Why::NobodyWaits);
            return self.asked(sample);
        }
        if full {
            self.pace.add(sample);
        }
        match self.phase {
            Phase::Turn {
                before,
                known,
                mut old,
            } => {
                old.add(sample);
                self.phase = Phase::Turn { before, known, old };
                // Old events that take long may hold the servlets.
                if let Some(known) = known.filter(|known| self.falls(before, known)) {
                    self.compare(before, &known, max);
                    return self.asked(sample);
                }
                let turned = busy == self.servlets && sample.fresh_batches > 0;
                if turned && old.batches >= OLD_MIN {
                    let steady = known.filter(|known| !known.only_begins(&old));
                    let pace = steady.unwrap_or(old);
                    self.phase = Phase::Probe { before, pace };
                    self.pace = Pace::default();
                }
            }
            Phase::Probe { before, pace } if full => self.compare(before, &pace, max),
            Phase::Held => self.follow(max),
            Phase::Free | Phase::Probe { .. } => {}
        }
        self.asked(sample)
    }

    fn asked(&self, sample: &Sample<'_>) -> Asked {
        let free = matches!(self.phase, Phase::Free);
        let max = sample.servlets.max.max(1);
        let held = (self.servlets as usize).clamp(1, max);
        Asked {
            servlets: if free { max } else { held },
            scarce: (!free).then(|| Scarce {
                per_ns: self.rate * self.history.events_per_batch(),
                service_ns: self.unloaded.mean_ns() + self.slack_ns(),
            }),
            why: self.why,
        }
    }

    /// Records a sample. Returns it with the waits for permits, if they are the waits of all
    /// events.
    fn note<'s>(&mut self, sample: &Sample<'s>) -> Sample<'s> {
        let sample = self.common.only(sample);
        let spacing_ns = self.unloaded.mean_ns().max(self.target_ns) / MARKS;
        self.history.note(&sample, spacing_ns);
        sample
    }

    fn slack_ns(&self) -> f64 {
        let (least, most) = (SLACK.0 * self.target_ns, SLACK.1 * self.target_ns);
        self.unloaded.mean_ns().clamp(least, most)
    }

    /// Returns the number in service that keeps the scarce resource busy.
    fn wanted(&self) -> f64 {
        self.rate * (self.unloaded.mean_ns() + self.slack_ns())
    }

    /// Returns the number in service that keeps the permits of a limit in use, if services take
    /// `own_ns` without the waits for permits. One more than these takes a returned permit
    /// immediately.
    fn wanted_beyond(&self, own_ns: f64) -> f64 {
        self.wanted().max(self.rate * own_ns + 1.0)
    }

    /// Returns whether no event has waited for long enough to conclude that nothing is scarce.
    fn is_calm(&mut self, sample: &Sample<'_>, full: bool) -> bool {
        if sample.queue_len > 0 || full {
            self.calm_ns = 0.0;
            let rate = self.history.rate(RATE);
            if self.why == Why::Remembered && self.history.total().batches < RATE_SOON {
                return false;
            }
            let part = if self.rate == 0.0 { 1.0 } else { 0.25 };
            self.rate += part * (rate - self.rate);
            return false;
        }
        self.calm_ns += sample.interval_ns as f64;
        self.calm_ns > self.target_ns.max(CALM_SERVICES * self.unloaded.mean_ns())
    }

    fn free(&mut self, why: Why) {
        self.phase = Phase::Free;
        self.pace = Pace::default();
        self.why = why;
        self.unloaded.restart(&self.history);
    }

    /// Changes the number in service, to compare the throughput.
    fn turn(&mut self, servlets: f64, known: Option<Pace>, max: f64) {
        let before = self.servlets;
        self.servlets = servlets.clamp(1.0, max).round();
        self.phase = Phase::Turn {
            before,
            known,
            old: Pace::default(),
        };
        self.pace = Pace::default();
        self.why = if self.servlets < before {
            Why::TriesFewer
        } else {
            Why::TriesMore
        };
    }

    fn hold(&mut self, servlets: f64, why: Why) {
        self.servlets = servlets;
        self.phase = Phase::Held;
        self.pace = Pace::default();
        self.why = why;
    }

    /// Restores the number after an unsuccessful trial, and doubles the pause before the next.
    fn take_back(&mut self, before: f64, why: Why) {
        self.rest = self.rest_next;
        self.rest_next = (2.0 * self.rest_next).min(REST_MAX);
        self.hold(before, why);
    }

    /// Returns whether fewer servlets than `before` do far less.
    fn falls(&self, before: f64, old: &Pace) -> bool {
        self.servlets < before && self.pace.falls(old)
    }

    /// Compares the throughput with the throughput of `before` servlets.
    fn compare(&mut self, before: f64, old: &Pace, max: f64) {
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
        let more = self.servlets > before;
        match (scarce, more) {
            (false, _) => {
                self.unloaded.at_least(if falls {
                    pace.pending_ns()
                } else {
                    pace.mean_ns()
                });
                if more {
                    self.turn(2.0 * self.servlets, Some(pace), max);
                } else if self.shown {
                    self.take_back(before, Why::FewerDoLess);
                } else {
                    // Services take longer now. That alone does not mean scarcity.
                    self.free(Why::FewerDoLess);
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

    /// Follows the rate of the scarce resource.
    fn follow(&mut self, max: f64) {
        let (pace, servlets) = (self.pace, self.servlets);
        if pace.batches < RATE.max(servlets) {
            return;
        }
        self.rate = pace.per_ns();
        let is_known = pace.lacks_permits();
        let (service_ns, why) = if is_known {
            (pace.mean_ns(), Why::PermitsInUse)
        } else {
            (servlets / self.rate, Why::MoreDoNoMore)
        };
        self.unloaded.lower(service_ns);
        let wanted = if is_known {
            self.wanted_beyond(service_ns)
        } else {
            self.wanted()
        };
        let doubt = 2.0 / pace.batches.sqrt();
        self.rest -= 1.0;
        if wanted > servlets * 1.05 {
            let servlets = wanted.min(1.5 * servlets).ceil().min(max);
            self.hold(servlets, why);
        } else if wanted < servlets * (1.0 - doubt).min(0.8) && servlets > 1.0 {
            let fewer = wanted.max(0.5 * servlets).round().min(servlets - 1.0);
            if is_known {
                self.hold(fewer, why);
            } else {
                self.turn(fewer, Some(pace), max);
            }
        } else if !is_known && self.rest <= 0.0 && pace.batches >= 2.0 * RATE {
            self.tried_more = !self.tried_more;
            let short = service_ns < self.unloaded.own_target_ns() / 4.0;
            if self.tried_more || short || servlets < SERVLETS_MIN {
                self.turn(2.0 * servlets, Some(pace), max);
            } else {
                self.turn(0.5 * servlets, Some(pace), max);
            }
        } else if pace.batches > pace::ENOUGH {
            self.hold(servlets, self.why);
        }
    }
}
