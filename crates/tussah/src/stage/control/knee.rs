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
//!   again, and S becomes the newly measured service time. [`pause`] delays the next trial.
//! - **Held.** The stage keeps enough events in service to keep the resource busy for S, plus some
//!   slack. C and S may change, so the controller occasionally tries half or twice the number and
//!   compares again. After an unsuccessful trial, it waits twice as long before the next one.
//!
//! # Doubts about S
//! The first services that end may be the short ones, and S is then too low. As long as many more
//! services have begun than ended, the estimate is *young*. In a new stage without scarcity, X
//! grows with N; with scarcity, X stays the same while N grows. So a young estimate leads to a
//! trial only if X stays the same, and is replaced when N is steady. In a trial, a throughput that
//! falls with N shows early that nothing is scarce.
//!
//! If a stage starts in overload, S may be too high instead, and hide all scarcity. So if the stage
//! refuses events for a while and nothing is known to be scarce, the controller tries half the
//! number, with pauses of its own.
//!
//! # Mixtures
//! If only some events need the scarce resource, they accumulate in service, while the others still
//! end quickly. After a reduction, those that wait for the resource are left over. The throughput
//! is then far lower, although a resource is scarce. The same happens if nothing is scarce, and
//! some services take long. In both cases, the controller takes the reduction back, because the
//! other events are served only with more in service. To avoid more trials, it *supposes* an S that
//! would explain the excess; but only measured times raise the target. If the throughput stays
//! above a third, the trial goes on, and it compares the mixture with the mixture.
//!
//! [`common`] describes the use of known waits, those for permits of a limit. S never includes
//! them. All other decisions count events over time. Only S uses service times, and only at almost
//! no load: while most services are still running, only the short ones have ended, so the mean of
//! their times would be too low. [`pace`] describes the comparison and related work.

mod asked;
mod common;
mod excess;
mod held;
mod history;
mod learned;
mod pace;
mod pause;
#[cfg(test)]
mod tests;
mod trial;
mod unloaded;

pub(super) use self::asked::{Asked, Scarce};
use self::common::Common;
use self::history::{History, Mark};
pub(super) use self::learned::Learned;
use self::pace::Pace;
use self::pause::Pause;
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
    /// measured, and `old` is the throughput in this phase, which begins at `from`.
    Turn {
        before: f64,
        known: Option<Pace>,
        old: Pace,
        from: Mark,
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
    /// The number of servlets that wait for permits, even if not all events need them.
    limited: usize,
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
    /// The throughput while events are refused in the free phase, and the windows until the next
    /// trial of whether fewer in service do as much.
    refusing: Pace,
    refusing_rest: f64,
    /// The pause between trials of an excess.
    pause: Pause,
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
            limited: 0,
            history: History::default(),
            unloaded: Unloaded::new(target_ns as f64),
            phase: Phase::Free,
            servlets: 0.0,
            rate: 0.0,
            pace: Pace::default(),
            rest: 0.0,
            rest_next: 0.0,
            refusing: Pace::default(),
            refusing_rest: REST_MIN,
            pause: Pause::default(),
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
        let is_free = matches!(self.phase, Phase::Free);
        if is_free && !self.finds_excess(sample) && !self.doubts(sample) {
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
        if self.finds_permits() {
            return self.asked(sample);
        }
        match self.phase {
            Phase::Turn { .. } => self.turns(sample, max),
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
        self.limited = sample.limited;
        let permits_ns = sample.limited_ns as f64;
        // If nothing begins, the events that end are those that take longest.
        let is_free = matches!(self.phase, Phase::Free);
        let begins = is_free || sample.servlets.busy as f64 <= self.servlets;
        let sample = self.common.only(sample, begins);
        let spacing_ns = self.unloaded.mean_ns().max(self.target_ns) / MARKS;
        self.history.note(&sample, permits_ns, spacing_ns);
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

    fn hold(&mut self, servlets: f64, why: Why) {
        self.servlets = servlets;
        self.phase = Phase::Held;
        self.pace = Pace::default();
        self.why = why;
    }
}
