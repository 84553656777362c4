//! The log of controller decisions and their inputs.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use super::{LimitUse, Order, Rule, Sample, Settings, Why};
use crate::stage::event::{CLASSES_MAX, Class};

/// Bound, in decisions per stage: the length of the log. A full log takes about 64 KiB, and drops
/// its oldest decision for each new one.
pub const DECISIONS_MAX: usize = 256;

/// The most recent controller decisions of one stage.
///
/// # Examples
/// ```
/// use tussah::stage::control::{Settings, log::Log};
///
/// # use tussah::stage::control::Sample;
/// # fn sample() -> Sample<'static> {
/// #     Sample { interval_ns: 1_000_000, queue_len: 150, ..Default::default() }
/// # }
/// let mut log = Log::default();
/// let before = Settings { servlets: Some(1), ..Settings::default() };
/// let after = Settings { servlets: Some(2), ..Settings::default() };
/// log.note(2_000_000_000, "seda-servlets", &before, &after, &sample());
/// let why = log.iter().next().expect("one decision").to_string();
/// assert!(why.starts_with("2.000000 s: seda-servlets: servlets 1 -> 2: "));
/// assert!(why.contains("0 of 0 servlets at work, 150 queued"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Log {
    decisions: VecDeque<Decision>,
    forgotten: u64,
    /// One entry for each class.
    courses: [Option<Course>; CLASSES_MAX],
    /// The effective target that was last logged, or the first target.
    target: Option<Duration>,
    /// The limit or stage that events wait for, if one is scarce.
    limit: Option<LimitUse>,
}

/// The changes of a class's rule since it was last logged.
#[derive(Clone, Copy, Debug)]
struct Course {
    noted: Rule,
    lowest: Rule,
    highest: Rule,
}

impl Course {
    fn from(rule: Rule) -> Self {
        Self {
            noted: rule,
            lowest: rule,
            highest: rule,
        }
    }

    /// Moves to another rule. If that is far enough from the last logged rule to be logged, returns
    /// the rule from which it changed: the turning point, or else the last logged rule.
    fn go_on(&mut self, before: Rule, to: Rule) -> Option<Rule> {
        let (far, rises) = match (self.noted.number(), to.number()) {
            (Some((noted, near)), Some((number, _))) if self.noted.is_like(&to) => {
                let away = noted.abs_diff(number);
                (away > near && away >= noted / 10, number > noted)
            }
            _ => {
                *self = Self::from(to);
                return Some(before);
            }
        };
        if !far {
            let number = |rule: &Rule| rule.number();
            self.lowest = [self.lowest, to].into_iter().min_by_key(number)?;
            self.highest = [self.highest, to].into_iter().max_by_key(number)?;
            return None;
        }
        let from = if rises { self.lowest } else { self.highest };
        *self = Self::from(to);
        Some(from)
    }
}

/// A change of one setting by a controller.
#[derive(Clone, PartialEq, Debug)]
pub struct Decision {
    /// The time of the decision, in nanoseconds since the process created its first network.
    pub at_ns: u64,
    /// The controller's name.
    pub controller: &'static str,
    /// The setting that changed, with its old and new values.
    pub change: Change,
    /// The reason for the decision, if the controller gave one.
    pub why: Why,
    /// The effective latency target that was logged last, if the stage has a target.
    pub target: Option<Duration>,
    /// The resource for which the most events waited on average: a limit, or a later stage of the
    /// path. `None` if hardly any events waited for such a resource.
    pub limit: Option<LimitUse>,
    /// The main values of the sample on which the decision was based.
    pub inputs: Inputs,
}

/// A changed setting, with its old and its new value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// The number of servlets that may be busy at the same time.
    Servlets(usize, usize),
    /// The maximum number of events in a batch.
    Batch(usize, usize),
    /// The maximum number of credits in the queue.
    Threshold(u64, u64),
    /// The order in which events of one class are served.
    Order(Order, Order),
    /// The minimum time between two reads from sockets, in nanoseconds.
    Pace(u64, u64),
    /// The maximum number of bytes in the write queue of each socket; `u64::MAX` if no controller
    /// has set a bound.
    Outgoing(u64, u64),
    /// The rule by which the controller admits events of a class.
    Rule(Class, Rule, Rule),
    /// The effective latency target.
    Target(Duration, Duration),
}

/// The main values of a [`Sample`].
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Inputs {
    /// The time since the previous sample, in nanoseconds.
    pub interval_ns: u64,
    /// The number of credits in the queue.
    pub queue_len: u64,
    /// The number of events offered in the interval.
    pub arrived: u64,
    /// The number of events rejected in the interval.
    pub refused: u64,
    /// The number of events shed in the interval.
    pub shed: u64,
    /// The number of events that finished in the interval.
    pub finished: u64,
    /// The number of events that failed in the interval.
    pub failed: u64,
    /// The number of busy servlets.
    pub servlets_busy: usize,
    /// The limit on busy servlets before the decision.
    pub servlets: usize,
    /// The number of busy servlets whose handlers have waited at least once since their batch
    /// began.
    pub waiting: usize,
    /// The part of the interval in which events were queued or in service, in nanoseconds.
    pub busy_ns: u64,
    /// The mean time per batch, in nanoseconds; 0 if no batch ended.
    pub batch_mean_ns: u64,
    /// The mean time that servlets spent per event, in nanoseconds; 0 if no event finished.
    pub event_mean_ns: u64,
    /// The number of servlets in all stages of the process.
    pub process_servlets: usize,
    /// The moving average of `process_servlets`.
    pub process_servlets_mean: f64,
    /// The highest 90th percentile of response times among the classes, in nanoseconds.
    pub response_p90_ns: u64,
}

impl Inputs {
    /// Extracts the main values of a sample.
    #[must_use]
    pub fn of(sample: &Sample<'_>) -> Self {
        let p90s = sample.classes.iter().map(|class| class.response_p90_ns);
        Self {
            interval_ns: sample.interval_ns,
            queue_len: sample.queue_len,
            arrived: sample.arrived,
            refused: sample.refused,
            shed: sample.shed,
            finished: sample.finished,
            failed: sample.failed,
            servlets_busy: sample.servlets.busy,
            servlets: sample.servlets.target,
            waiting: sample.waiting,
            busy_ns: sample.busy_ns,
            batch_mean_ns: sample.service_ns / sample.batches.max(1),
            event_mean_ns: sample.service_ns / sample.finished.max(1),
            process_servlets: sample.process_servlets,
            process_servlets_mean: sample.process_servlets_mean,
            response_p90_ns: p90s.max().unwrap_or(0),
        }
    }
}

impl Log {
    /// Sets the scarce limit, which further decisions show.
    pub(crate) fn sees(&mut self, limit: Option<LimitUse>) {
        self.limit = limit;
    }

    /// Logs each difference between the settings in force and the settings requested by a
    /// controller. A setting that is `None` before or after the change counts as unchanged.
    pub fn note(
        &mut self,
        at_ns: u64,
        controller: &'static str,
        before: &Settings,
        after: &Settings,
        sample: &Sample<'_>,
    ) {
        let changes = [
            differ(before.servlets, after.servlets, Change::Servlets),
            differ(before.batch, after.batch, Change::Batch),
            differ(before.threshold, after.threshold, Change::Threshold),
            differ(before.order, after.order, Change::Order),
            differ(before.pace_ns, after.pace_ns, Change::Pace),
            differ(before.outgoing_max, after.outgoing_max, Change::Outgoing),
        ];
        for change in changes.into_iter().flatten() {
            self.push(Decision {
                at_ns,
                controller,
                change,
                why: after.why,
                target: self.target,
                limit: self.limit.clone(),
                inputs: Inputs::of(sample),
            });
        }
    }

    /// Logs changes to the rules by which a controller admits events. `rules` contains the old and
    /// the new rule of each class, starting with class 0.
    ///
    /// A rule may change slightly with every sample. The log omits changes of less than a tenth of
    /// the last logged value. The log also omits changes of a limit or rate by at most 1, and of a
    /// share by less than one percentage point. For a rise, the logged old value is the lowest
    /// value since the last logged change; for a fall, it is the highest.
    pub fn note_rules(
        &mut self,
        at_ns: u64,
        controller: &'static str,
        rules: &[(Rule, Rule)],
        sample: &Sample<'_>,
    ) {
        for (at, (before, after)) in rules.iter().enumerate().take(CLASSES_MAX) {
            if before == after {
                continue;
            }
            let course = self.courses[at].get_or_insert(Course::from(*before));
            if let Some(from) = course.go_on(*before, *after) {
                self.push(Decision {
                    at_ns,
                    controller,
                    change: Change::Rule(Class(at as u8), from, *after),
                    why: Why::Unsaid,
                    target: self.target,
                    limit: self.limit.clone(),
                    inputs: Inputs::of(sample),
                });
            }
        }
    }

    /// Logs the effective target if it differs from the last logged target by at least a tenth.
    pub fn note_target(
        &mut self,
        at_ns: u64,
        controller: &'static str,
        before: Duration,
        after: Duration,
        sample: &Sample<'_>,
    ) {
        let noted = *self.target.get_or_insert(before);
        if after.abs_diff(noted) < noted / 10 || after == noted {
            return;
        }
        self.target = Some(after);
        self.push(Decision {
            at_ns,
            controller,
            change: Change::Target(noted, after),
            why: Why::Unsaid,
            target: self.target,
            limit: self.limit.clone(),
            inputs: Inputs::of(sample),
        });
    }

    /// Logs one decision. If the log already holds [`DECISIONS_MAX`] decisions, the oldest is
    /// dropped first.
    pub fn push(&mut self, decision: Decision) {
        if self.decisions.len() == DECISIONS_MAX {
            self.decisions.pop_front();
            self.forgotten += 1;
        }
        self.decisions.push_back(decision);
    }

    /// Returns an iterator over the decisions in the log, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Decision> + ExactSizeIterator {
        self.decisions.iter()
    }

    /// Returns the number of older decisions that the log has dropped.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

fn differ<T: PartialEq>(
    before: Option<T>,
    after: Option<T>,
    change: impl Fn(T, T) -> Change,
) -> Option<Change> {
    let (before, after) = (before?, after?);
    (before != after).then(|| change(before, after))
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.forgotten > 0 {
            writeln!(f, "({} earlier decisions are not kept)", self.forgotten)?;
        }
        for decision in &self.decisions {
            writeln!(f, "{decision}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.at_ns as f64 / 1e9;
        let (controller, change, inputs) = (self.controller, self.change, &self.inputs);
        write!(f, "{seconds:.6} s: {controller}: {change}")?;
        if self.why != Why::Unsaid {
            write!(f, ", {}", self.why)?;
        }
        f.write_str(": ")?;
        if let Some(limit) = &self.limit {
            write!(f, "{limit}; ")?;
        }
        write!(
            f,
            "{} of {} servlets at work, {} queued",
            inputs.servlets_busy, inputs.servlets, inputs.queue_len
        )?;
        if inputs.event_mean_ns > 0 {
            let event_mean = Duration::from_nanos(inputs.event_mean_ns);
            write!(f, ", {event_mean:.1?} each")?;
        }
        if let Some(target) = self.target {
            write!(f, "; target {target:.1?}")?;
        }
        write!(f, "; {inputs}")
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Servlets(from, to) => write!(f, "servlets {from} -> {to}"),
            Change::Batch(from, to) => write!(f, "batch {from} -> {to}"),
            Change::Threshold(from, to) => write!(f, "threshold {from} -> {to}"),
            Change::Order(from, to) => write!(f, "order {from:?} -> {to:?}"),
            Change::Pace(from, to) => {
                let (from, to) = (*from as f64 / 1e6, *to as f64 / 1e6);
                write!(f, "pace of reads {from} ms -> {to} ms")
            }
            Change::Outgoing(u64::MAX, to) => write!(f, "outgoing bytes unbounded -> {to}"),
            Change::Outgoing(from, to) => write!(f, "outgoing bytes {from} -> {to}"),
            Change::Rule(Class(class), from, to) => {
                write!(f, "class {class} let in: {from} -> {to}")
            }
            Change::Target(from, to) => write!(f, "target {from:.1?} -> {to:.1?}"),
        }
    }
}

impl fmt::Display for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns as f64 / 1e6;
        write!(
            f,
            "{} handlers wait, {} servlets in all stages, {:.1} on average; in {} ms, {} of them busy: {} arrived, {} refused, {} shed, {} finished, {} failed, batch {} ms, p90 {} ms",
            self.waiting,
            self.process_servlets,
            self.process_servlets_mean,
            ms(self.interval_ns),
            ms(self.busy_ns),
            self.arrived,
            self.refused,
            self.shed,
            self.finished,
            self.failed,
            ms(self.batch_mean_ns),
            ms(self.response_p90_ns),
        )
    }
}

#[cfg(test)]
mod tests;
