//! How many events a stage whose handlers wait has in service at once.
//!
//! Handlers may wait for something scarce that the stage cannot see: a pool of connections, a lock, a busy backend. As long as servlets are added, such a wait stands
//! inside of the handlers, where no class, no deadline and no admission reaches it. So the stage should have in service what keeps the scarce thing busy and no more; the
//! others wait in its queue.
//!
//! # What is known without looking inside
//! By Little's law ("A proof for the queuing formula L = λW", Operations Research 1961) N = X W: with N in service of which each takes W, X are completed in a time. Let S be the
//! *unloaded* time, which a service takes if nothing is scarce, and C the most that the scarce thing completes in a time. Then X(N) = N / S as long as N < C S, and X(N) = C above that.
//! The two are told apart by the elasticity d ln X / d ln N: it is 1 below the knee at N = C S, and 0 above it. A long service alone says nothing, since a backend may just be slow.
//!
//! # The phases
//! - **Free.** Nothing is known to be scarce: all that come are in service at once. If nothing is scarce, as many are in the system as came in within the last S. More than that
//!   are an *excess*. One that takes more than half of the target to work off, is no chance and is not becoming less says that something may be scarce.
//! - **Turn and probe.** The number in service is cut, and what gets done before and after is compared. Unchanged: it is scarce, and so it stays. Fallen with the number: nothing is
//!   scarce, the cut is taken back, and S becomes what was just seen.
//! - **Held.** As many are in service as the rate keeps busy for S and a slack. As C and S change and may have been wrong, now and then half as many are tried, or twice as
//!   many, and the same comparison says whether that is better. What was in vain is tried again after twice as long.
//!
//! Everything is judged by counts over time. Service times are used for S alone, near no load, since those that end first are the short ones: the mean of what has ended so far is too low as long as most
//! have not.
//!
//! # What others do
//! Welsh and Culler ("Adaptive overload control for busy Internet servers", USITS 2003) control the rate of admission by the 90th percentile of responses: no model, but slow. Breakwater
//! (Cho et al., OSDI 2020) issues credits by the queueing delay, which a server has to be able to measure. Netflix' gradient limit compares short times with long-term ones, which drift
//! up under lasting load. BBR (Cardwell et al., "BBR: Congestion-based congestion control", ACM Queue 2016) meets the same problem: the two sides of the knee show the
//! delay and the rate, one at a time, so it probes up and down by turns, as this does.

mod history;
mod pace;
#[cfg(test)]
mod tests;
mod unloaded;

use self::history::History;
use self::pace::{Pace, Spread, Verdict};
use self::unloaded::Unloaded;
use super::predict::waiting;
use super::{Sample, Why};

/// Completions from which a rate is taken where it has to be known at once, and where it may take longer.
const RATE_SOON: f64 = 16.0;
const RATE: f64 = 32.0;

/// Marks of the past in an unloaded time or in a target. What came is counted for one more than an unloaded time, so that a burst is not missing before it is done.
const MARKS: f64 = 16.0;

/// An excess is one if it is so many times its standard deviation, which is at most that of two independent counts.
const EXCESS_ERRORS: f64 = 3.0;

/// Below so many in service, nothing can be cut that shows.
const SERVLETS_MIN: f64 = 4.0;

/// The first cut leaves at least and at most these shares: a smaller one would not show, and a larger one would starve what is not scarce while that is found out. Later
/// ones are smaller, as less is in doubt.
const CUT: (f64, f64) = (0.2, 0.7);
const CUT_LATER: f64 = 0.4;

/// The share of the servlets that have to be at work for what gets done to count. A queue that is kept short is empty now and then.
const FULL: f64 = 0.6;

/// The slack is S, within these shares of the target: with none, the scarce thing would be idle whenever a servlet is between two events.
const SLACK: (f64, f64) = (1.0 / 32.0, 1.0 / 8.0);

/// Bound, in targets: after so long without anybody waiting, nothing is scarce any more; or after so many unloaded times, if these are more.
const CALM_SERVICES: f64 = 4.0;

/// Bound, in windows of [`RATE`] completions: how long nothing is tried after something was tried in vain, the first time and at most.
const REST_MIN: f64 = 2.0;
const REST_MAX: f64 = 64.0;

/// Completions of which what was in service before a change must have had some.
const OLD_MIN: f64 = 4.0;

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Nothing is known to be scarce.
    Free,
    /// The number in service was changed from `before`, and what began before that has not all ended. `known` is how things went with `before`, if that was measured, and
    /// `old` how they go meanwhile.
    Turn {
        before: f64,
        known: Option<Pace>,
        old: Pace,
    },
    /// How things go is compared with how they went.
    Probe { before: f64, pace: Pace },
    /// Something is scarce.
    Held,
}

/// What is known of the scarce thing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Scarce {
    /// Events completed a nanosecond.
    pub(super) per_ns: f64,
    /// What an event may take of a servlet, in nanoseconds: the unloaded time and the slack.
    pub(super) service_ns: f64,
}

/// What is asked for: servlets, and what is scarce.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Asked {
    pub(super) servlets: usize,
    pub(super) scarce: Option<Scarce>,
    pub(super) why: Why,
}

/// Finds the knee.
#[derive(Debug)]
pub(super) struct Knee {
    /// The effective target, in nanoseconds.
    target_ns: f64,
    history: History,
    unloaded: Unloaded,
    spread: Spread,
    phase: Phase,
    /// How many are in service at most, unless the phase is free.
    servlets: f64,
    /// Batches completed a nanosecond by what is scarce.
    rate: f64,
    /// How things have gone with all servlets at work since the phase began.
    pace: Pace,
    /// Windows until something is tried, and after the next time that it is in vain.
    rest: f64,
    rest_next: f64,
    /// Whether more were tried last, instead of fewer.
    tried_more: bool,
    /// For how long nobody has waited, in nanoseconds.
    calm_ns: f64,
    why: Why,
}

impl Knee {
    pub(super) fn new(target_ns: u64) -> Self {
        Self {
            target_ns: target_ns as f64,
            history: History::default(),
            unloaded: Unloaded::new(target_ns as f64),
            spread: Spread::default(),
            phase: Phase::Free,
            servlets: 0.0,
            rate: 0.0,
            pace: Pace::default(),
            rest: 0.0,
            rest_next: 0.0,
            tried_more: true,
            calm_ns: 0.0,
            why: Why::Unsaid,
        }
    }

    /// The effective target, in nanoseconds: what can be kept where the service alone takes most of the target.
    pub(super) fn target_ns(&self) -> u64 {
        self.target_ns as u64
    }

    /// Takes in what happened while others decide.
    pub(super) fn watch(&mut self, sample: &Sample<'_>) {
        self.note(sample);
        self.phase = Phase::Free;
        self.unloaded.restart(&self.history);
    }

    /// Takes in what happened, and says how many there should be in service.
    pub(super) fn sample(&mut self, sample: &Sample<'_>) -> Asked {
        self.note(sample);
        self.target_ns = self.unloaded.effective_target_ns();
        let (max, busy) = (
            sample.servlets.max.max(1) as f64,
            sample.servlets.busy as f64,
        );
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
            Phase::Free => {}
            Phase::Turn {
                before,
                known,
                mut old,
            } => {
                old.add(sample);
                self.phase = Phase::Turn { before, known, old };
                let turned = busy == self.servlets && sample.fresh_batches > 0;
                if turned && old.batches >= OLD_MIN {
                    let pace = known.unwrap_or(old);
                    self.phase = Phase::Probe { before, pace };
                    self.pace = Pace::default();
                }
            }
            Phase::Probe { before, pace } => self.compare(before, &pace, full, max),
            Phase::Held => self.follow(max),
        }
        self.asked(sample)
    }

    fn asked(&self, sample: &Sample<'_>) -> Asked {
        let free = matches!(self.phase, Phase::Free);
        let max = sample.servlets.max.max(1);
        Asked {
            servlets: if free {
                max
            } else {
                (self.servlets as usize).clamp(1, max)
            },
            scarce: (!free).then(|| Scarce {
                per_ns: self.rate * self.history.events_per_batch(),
                service_ns: self.unloaded.mean_ns() + self.slack_ns(),
            }),
            why: self.why,
        }
    }

    fn note(&mut self, sample: &Sample<'_>) {
        let spacing_ns = self.unloaded.mean_ns().max(self.target_ns) / MARKS;
        self.history.note(sample, spacing_ns);
        self.spread.note(sample);
    }

    fn slack_ns(&self) -> f64 {
        let (least, most) = (SLACK.0 * self.target_ns, SLACK.1 * self.target_ns);
        self.unloaded.mean_ns().clamp(least, most)
    }

    /// How many keep what is scarce busy.
    fn wanted(&self) -> f64 {
        self.rate * (self.unloaded.mean_ns() + self.slack_ns())
    }

    /// Whether something may be scarce, though nothing was until now; then it makes the first cut.
    fn finds_excess(&mut self, sample: &Sample<'_>) -> bool {
        self.unloaded
            .see(&self.history, sample.workers, sample.waiting);
        if self.unloaded.mean_ns() == 0.0 {
            return false;
        }
        let inside = waiting(sample) + sample.in_service as f64;
        let (came, gone) = self
            .history
            .within(self.unloaded.mean_ns_max() * (1.0 + 1.0 / MARKS));
        let excess = inside - came;
        let per_batch = self.history.events_per_batch();
        let rate = self.history.rate(RATE_SOON);
        let delay_ns = excess / (rate * per_batch).max(f64::MIN_POSITIVE);
        self.unloaded.learn(delay_ns, &self.history);
        // What came within an unloaded time is not less than what went, but for chance.
        let stays = came >= gone - gone.sqrt();
        let sure = excess > EXCESS_ERRORS * (inside + came).sqrt();
        let busy = sample.servlets.busy as f64;
        let found = rate > 0.0 && delay_ns > self.target_ns / 2.0;
        if !(found && sure && stays && busy > SERVLETS_MIN) {
            return false;
        }
        self.rate = rate;
        self.servlets = busy;
        let wanted = self.wanted().clamp(CUT.0 * busy, CUT.1 * busy);
        self.turn(wanted.max(2.0), None, sample.servlets.max.max(1) as f64);
        self.calm_ns = 0.0;
        (self.rest, self.rest_next) = (0.0, REST_MIN);
        true
    }

    /// Whether nobody has had to wait for long enough to say that nothing is scarce.
    fn is_calm(&mut self, sample: &Sample<'_>, full: bool) -> bool {
        if sample.queue_len > 0 || full {
            self.calm_ns = 0.0;
            let rate = self.history.rate(RATE);
            self.rate = if self.rate == 0.0 {
                rate
            } else {
                self.rate + 0.25 * (rate - self.rate)
            };
            return false;
        }
        self.calm_ns += sample.interval_ns as f64;
        self.calm_ns > self.target_ns.max(CALM_SERVICES * self.unloaded.mean_ns())
    }

    fn free(&mut self, why: Why) {
        self.phase = Phase::Free;
        self.why = why;
        self.unloaded.restart(&self.history);
    }

    /// Changes the number in service, to see what comes of it.
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

    /// What was tried was in vain: the number is as it was, and it takes longer to the next time.
    fn take_back(&mut self, before: f64, why: Why) {
        self.rest = self.rest_next;
        self.rest_next = (2.0 * self.rest_next).min(REST_MAX);
        self.hold(before, why);
    }

    /// Compares how things go with how they went with `before` in service.
    fn compare(&mut self, before: f64, old: &Pace, full: bool, max: f64) {
        let pace = self.pace;
        if !full {
            return;
        }
        let scarce = match pace.compare(old, &self.spread) {
            Verdict::Unknown => return,
            // What was in service before was seen for too short to be compared with.
            Verdict::OldUnsure => return self.turn(before, Some(pace), max),
            Verdict::Scarce => true,
            Verdict::Proportional => false,
        };
        self.rate = pace.per_ns();
        let more = self.servlets > before;
        match (scarce, more) {
            (false, _) => {
                self.unloaded.at_least(pace.service_ns());
                if more {
                    self.turn(2.0 * self.servlets, Some(pace), max);
                } else {
                    self.take_back(before, Why::FewerDoLess);
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

    /// Follows what is scarce.
    fn follow(&mut self, max: f64) {
        let (pace, servlets) = (self.pace, self.servlets);
        if pace.batches < RATE.max(servlets) {
            return;
        }
        self.rate = pace.per_ns();
        let service_ns = servlets / self.rate;
        self.unloaded.lower(service_ns);
        let wanted = self.wanted();
        let doubt = 2.0 / pace.batches.sqrt();
        self.rest -= 1.0;
        if wanted > servlets * 1.05 {
            let servlets = wanted.min(1.5 * servlets).ceil().min(max);
            self.hold(servlets, Why::MoreDoNoMore);
        } else if wanted < servlets * (1.0 - doubt).min(0.8) && servlets > 1.0 {
            self.turn(wanted.max(0.5 * servlets).floor(), Some(pace), max);
        } else if self.rest <= 0.0 && pace.batches >= 2.0 * RATE {
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
