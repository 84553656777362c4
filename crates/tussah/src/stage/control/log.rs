//! What controllers decided, and on what grounds.

use std::collections::VecDeque;
use std::fmt;

use super::{Order, Rule, Sample, Settings};
use crate::stage::event::{CLASSES_MAX, Class};

/// Bound, in decisions of a stage: how many are kept, the newest; about 46 KiB.
pub const DECISIONS_MAX: usize = 256;

/// The last decisions about one stage.
///
/// # Examples
/// ```
/// use tussah::stage::control::{Log, Settings};
///
/// # fn sample() -> tussah::stage::control::Sample<'static> { tussah::stage::control::Sample { interval_ns: 1_000_000, queue_len: 150, ..Default::default() } }
/// let mut log = Log::default();
/// let before = Settings { servlets: Some(1), ..Settings::default() };
/// let after = Settings { servlets: Some(2), ..Settings::default() };
/// log.note(2_000_000_000, "seda-servlets", &before, &after, &sample());
/// let why = log.iter().next().expect("one decision").to_string();
/// assert!(why.starts_with("2.000000 s: seda-servlets: servlets 1 -> 2; queue 150"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Log {
    decisions: VecDeque<Decision>,
    forgotten: u64,
    /// By class.
    courses: [Option<Course>; CLASSES_MAX],
}

/// How the rule of a class has moved since it was last noted.
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

    /// Goes on to another rule; gives what it came from, if that is far enough to be noted: where it turned, or else what was noted last.
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

/// One setting that a controller changed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decision {
    /// When, in nanoseconds since the network's start.
    pub at_ns: u64,
    /// The controller's name.
    pub controller: &'static str,
    /// What was changed, from what and to what.
    pub change: Change,
    /// What the controller had seen.
    pub inputs: Inputs,
}

/// What was changed, from what and to what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// How many servlets may be at work at once.
    Servlets(usize, usize),
    /// The most events in a batch.
    Batch(usize, usize),
    /// How many credits the queue holds at most.
    Threshold(u64, u64),
    /// Which end of the queue is served next.
    Order(Order, Order),
    /// The shortest time between two reads of sockets, in nanoseconds.
    Pace(u64, u64),
    /// How many bytes may be queued to be written to each peer of sockets; `u64::MAX` if nobody has set it.
    Outgoing(u64, u64),
    /// By what events of a class are let in.
    Rule(Class, Rule, Rule),
}

/// The main numbers of a sample, as [`Sample`] has them.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Inputs {
    /// The time since the sample before, in nanoseconds.
    pub interval_ns: u64,
    /// Credits in the queue.
    pub queue_len: u64,
    /// Events offered in the interval.
    pub arrived: u64,
    /// Events refused in the interval.
    pub refused: u64,
    /// Events shed in the interval.
    pub shed: u64,
    /// Events finished in the interval.
    pub finished: u64,
    /// Of these, events that failed.
    pub failed: u64,
    /// Servlets at work.
    pub servlets_busy: usize,
    /// Of these, servlets whose handlers wait.
    pub waiting: usize,
    /// How long something was queued or in service, in nanoseconds.
    pub busy_ns: u64,
    /// The mean time of a batch, in nanoseconds; 0 if none ended.
    pub batch_mean_ns: u64,
    /// What an event takes of a servlet on average, in nanoseconds; 0 if none was finished.
    pub event_mean_ns: u64,
    /// Servlets of all stages of the process.
    pub process_servlets: usize,
    /// The moving average of that number.
    pub process_servlets_mean: f64,
    /// The longest 90th percentile of the responses of a class, in nanoseconds.
    pub response_p90_ns: u64,
}

impl Inputs {
    /// The main numbers of this sample.
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
    /// Notes what differs between the settings in force and those that a controller asked for. What either leaves open counts as
    /// unchanged.
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
                inputs: Inputs::of(sample),
            });
        }
    }

    /// Notes for which classes, from 0 on, a controller lets events in by something else than before. A rule that moves a little with each sample is noted when
    /// it is a tenth away from where it was noted last, and by more than one event, or one in a hundred of all; it is said to come from where it turned.
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
                    inputs: Inputs::of(sample),
                });
            }
        }
    }

    /// Notes one decision; the oldest goes if there are [`DECISIONS_MAX`].
    pub fn push(&mut self, decision: Decision) {
        if self.decisions.len() == DECISIONS_MAX {
            self.decisions.pop_front();
            self.forgotten += 1;
        }
        self.decisions.push_back(decision);
    }

    /// The decisions that are kept, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Decision> + ExactSizeIterator {
        self.decisions.iter()
    }

    /// How many older decisions are no longer kept.
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
        write!(f, "{seconds:.6} s: {controller}: {change}; {inputs}")
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
        }
    }
}

impl fmt::Display for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns as f64 / 1e6;
        write!(
            f,
            "queue {}, {} busy, {} waiting, {} in all stages of {:.1} on average, in {} ms, busy {} ms: {} arrived, {} refused, {} shed, {} finished, {} failed, batch {} ms, event {} ms, p90 {} ms",
            self.queue_len,
            self.servlets_busy,
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
            ms(self.event_mean_ns),
            ms(self.response_p90_ns),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::quiet;
    use super::*;

    #[test]
    fn what_did_not_change_is_not_noted() {
        let settings = |servlets, batch, threshold| Settings {
            servlets,
            batch,
            threshold,
            order: Some(Order::Fifo),
            ..Settings::default()
        };
        let mut log = Log::default();
        let before = settings(Some(1), Some(10), Some(100));
        log.note(
            1,
            "a",
            &before,
            &settings(Some(1), None, Some(50)),
            &quiet(),
        );
        log.note(2, "b", &before, &Settings::default(), &quiet());
        let changes: Vec<_> = log.iter().map(|d| (d.controller, d.change)).collect();
        assert_eq!(changes, [("a", Change::Threshold(100, 50))]);
    }

    #[test]
    fn the_newest_are_kept() {
        let mut log = Log::default();
        for i in 0..DECISIONS_MAX as u64 + 3 {
            log.push(Decision {
                at_ns: i,
                controller: "c",
                change: Change::Threshold(i, i + 1),
                inputs: Inputs::default(),
            });
        }
        assert_eq!(log.iter().len(), DECISIONS_MAX);
        assert_eq!(log.iter().next().map(|d| d.at_ns), Some(3));
        assert!(log.to_string().starts_with("(3 earlier"));
        assert!(size_of::<Decision>() * DECISIONS_MAX <= 48 * 1024);
    }

    #[test]
    fn of_a_rule_that_keeps_moving_what_matters_is_noted() {
        let check = |rules: &[Rule], expected: &[(Rule, Rule)]| {
            let mut log = Log::default();
            for (at_ns, pair) in (1..).zip(rules.windows(2)) {
                // Each class for itself: the second one does not move.
                let still = (Rule::Below(7), Rule::Below(7));
                log.note_rules(at_ns, "c", &[(pair[0], pair[1]), still], &quiet());
            }
            let noted: Vec<_> = log
                .iter()
                .map(|decision| match decision.change {
                    Change::Rule(Class(0), from, to) => (from, to),
                    other => panic!("nothing else changed: {other}"),
                })
                .collect();
            assert_eq!(noted, expected);
        };
        let rate = Rule::Rate;
        // The first one, and another kind.
        check(
            &[Rule::All, rate(50), Rule::All],
            &[(Rule::All, rate(50)), (rate(50), Rule::All)],
        );
        // A tenth away from the last one that was noted, however small the steps were.
        let climbs: Vec<_> = (100..=125).map(rate).collect();
        check(&climbs, &[(rate(100), rate(110)), (rate(110), rate(121))]);
        // What stays near is not noted, but where it turned is.
        let turns = [100, 104, 97, 103, 109, 105, 95, 90].map(rate);
        check(&turns, &[(rate(109), rate(90))]);
        // Of small numbers, one more or less is nothing; nor is one percent of all.
        check(
            &[3, 4, 3, 2, 4, 5].map(Rule::Below),
            &[(Rule::Below(2), Rule::Below(5))],
        );
        check(&[0, 9, 0, 9].map(Rule::AllBut), &[]);
        check(
            &[0, 20].map(Rule::AllBut),
            &[(Rule::AllBut(0), Rule::AllBut(20))],
        );
    }

    #[test]
    fn a_decision_says_why() {
        let sample = Sample {
            queue_len: 7,
            arrived: 9,
            refused: 2,
            batches: 2,
            finished: 4,
            service_ns: 3_000_000,
            process_servlets: 5,
            process_servlets_mean: 2.5,
            ..quiet()
        };
        let decision = Decision {
            at_ns: 1_500_000_000,
            controller: "codel",
            change: Change::Order(Order::Fifo, Order::Lifo),
            inputs: Inputs::of(&sample),
        };
        assert_eq!(
            decision.to_string(),
            "1.500000 s: codel: order Fifo -> Lifo; queue 7, 0 busy, 0 waiting, 5 in all stages of 2.5 on average, in 1 ms, busy 0 ms: 9 arrived, 2 refused, 0 shed, 4 finished, 0 failed, batch 1.5 ms, event 0.75 ms, p90 0 ms"
        );
    }
}
