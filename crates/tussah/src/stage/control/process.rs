//! The distribution of a process's servlets among its stages, and the search for the stage that
//! causes an overload.
//!
//! Welsh, Culler and Brewer, "SEDA" (SOSP 2001), §3.4 and §6, mention these ideas but do not
//! develop them:
//!
//! - a global notion of stage priority;
//! - a bound on the threads of the whole system;
//! - a preference for stages that free resources over stages that consume them;
//! - a way to find the cause of an overload.

use std::fmt;

/// The state of one stage, as input to a [`Governor`].
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct StageLoad<'a> {
    /// The stage's name.
    pub name: &'a str,
    /// The stage's priority; 0 is the highest.
    pub priority: u8,
    /// True if handling the stage's events frees resources that other stages consume, for example
    /// because the stage writes responses, closes connections or returns buffers.
    pub frees_resources: bool,
    /// The number of busy servlets.
    pub busy: usize,
    /// The number of servlets that the stage's own controllers request.
    pub wanted: usize,
    /// The number of credits in the stage's queue.
    pub queue_len: u64,
    /// True if the stage is overloaded: its queue is longer than at the last plan, it has refused
    /// or dropped events since then, or senders are waiting for capacity in its queue.
    pub growing: bool,
    /// The utilisation of the stage's servlets since the last plan; from 0 to 1. The utilisation is
    /// the busy time of the servlets, divided by the elapsed time and by the number of servlets
    /// that the stage may have.
    pub utilisation: f64,
    /// The index of the stage whose full queue blocks this stage's servlets, if there is one.
    pub waits_for: Option<usize>,
}

/// A plan made by a [`Governor`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// The number of servlets that each stage may have, at least 1, in the order of the stages.
    pub caps: Vec<usize>,
    /// The cause of the overload, if there is one.
    pub cause: Option<Cause>,
}

/// The stage that causes an overload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cause {
    /// The stage's index.
    pub stage: usize,
    /// The stage's name.
    pub name: String,
    /// The reason why the stage cannot do more work.
    pub why: Constraint,
    /// The time that has passed since the stage became overloaded, in nanoseconds.
    pub since_ns: u64,
    /// The number of stages that wait for this stage, directly or indirectly.
    pub held_up: usize,
}

/// The reason why a stage cannot do more work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Constraint {
    /// All servlets that the stage requested are busy.
    Busy,
    /// The stage requests more servlets than the governor's plan gives it.
    Capped,
    /// The stage has events, but not all of its servlets are busy: something outside the stages
    /// blocks the stage.
    Stuck,
}

/// A policy that distributes the servlets of a process among its stages, and finds the cause of an
/// overload.
///
/// Each stage has at least one servlet. Stages that request more servlets get them in order of
/// priority. Among stages of the same priority, those that free resources come first. Stages that
/// are equal in both respects take turns, and get one servlet per turn. Any remaining servlets are
/// divided among all stages, so that a stage can use more servlets even before the next plan.
///
/// # Examples
/// ```
/// use tussah::stage::control::process::{Governor, StageLoad};
///
/// let mut governor = Governor::new(10);
/// let accept = StageLoad { name: "accept", wanted: 20, ..StageLoad::default() };
/// let write =
///     StageLoad { name: "write", wanted: 6, frees_resources: true, ..StageLoad::default() };
/// assert_eq!(governor.plan(&[accept, write], 0).caps, [4, 6]);
/// ```
#[derive(Debug)]
pub struct Governor {
    servlets_max: usize,
    overloaded_ns_min: u64,
    /// The time since which each stage has been overloaded.
    since_ns: Vec<Option<u64>>,
}

/// The utilisation from which a stage counts as busy: nine tenths, because even a servlet that is
/// always busy is occasionally between batches.
const UTILISATION_BUSY: f64 = 0.9;

impl Governor {
    /// Creates a governor that distributes `servlets_max` servlets. If there are more than
    /// `servlets_max` stages, each stage still gets one servlet, so the total exceeds
    /// `servlets_max`.
    #[must_use]
    pub fn new(servlets_max: usize) -> Self {
        Self {
            servlets_max,
            overloaded_ns_min: 100_000_000,
            since_ns: Vec::new(),
        }
    }

    /// Returns the maximum number of servlets of the process.
    #[must_use]
    pub fn servlets_max(&self) -> usize {
        self.servlets_max
    }

    /// Sets the time, in nanoseconds, for which a stage must be overloaded before the governor
    /// looks for a cause; 100 ms by default. Shorter overloads count as bursts.
    #[must_use]
    pub fn overloaded_after_ns(mut self, ns: u64) -> Self {
        self.overloaded_ns_min = ns;
        self
    }

    /// Determines the number of servlets that each stage may have, and finds the cause of an
    /// overload. Stages must keep their indices between calls, and new stages must be added at the
    /// end.
    pub fn plan(&mut self, stages: &[StageLoad<'_>], now_ns: u64) -> Plan {
        let caps = self.divide(stages);
        self.since_ns.resize(stages.len(), None);
        for (since_ns, stage) in self.since_ns.iter_mut().zip(stages) {
            *since_ns = stage.growing.then(|| since_ns.unwrap_or(now_ns));
        }
        let cause = self.cause(stages, &caps, now_ns);
        Plan { caps, cause }
    }

    /// Removes the stage at the given index. The indices of later stages decrease by one.
    pub fn remove(&mut self, place: usize) {
        if place < self.since_ns.len() {
            self.since_ns.remove(place);
        }
    }

    fn divide(&self, stages: &[StageLoad<'_>]) -> Vec<usize> {
        let mut caps = vec![1; stages.len()];
        let mut left = self.servlets_max.saturating_sub(stages.len());
        let rank = |stage: &StageLoad<'_>| (stage.priority, !stage.frees_resources);
        let mut order: Vec<_> = (0..stages.len()).collect();
        order.sort_by_key(|place| rank(&stages[*place]));
        for equals in order.chunk_by(|a, b| rank(&stages[*a]) == rank(&stages[*b])) {
            left = fill(&mut caps, equals, left, |place| stages[place].wanted);
        }
        fill(&mut caps, &order, left, |_| usize::MAX);
        caps
    }

    fn cause(&self, stages: &[StageLoad<'_>], caps: &[usize], now_ns: u64) -> Option<Cause> {
        let long = |place: &usize| {
            let since_ns = self.since_ns[*place]?;
            let for_ns = now_ns.saturating_sub(since_ns);
            (for_ns >= self.overloaded_ns_min).then_some(for_ns)
        };
        let ends: Vec<_> = (0..stages.len()).map(|place| end(stages, place)).collect();
        let overloaded = (0..stages.len()).filter(|place| long(place).is_some());
        // The stage for which most other stages wait; if there are several, the one that was
        // overloaded first.
        let stage = overloaded.map(|place| ends[place]).max_by_key(|place| {
            let held_up = ends.iter().filter(|end| *end == place).count();
            (held_up, long(place).unwrap_or(0), usize::MAX - place)
        })?;
        let load = stages[stage];
        let why = if load.utilisation < UTILISATION_BUSY {
            Constraint::Stuck
        } else if load.wanted > caps[stage] {
            Constraint::Capped
        } else {
            Constraint::Busy
        };
        Some(Cause {
            stage,
            name: load.name.to_owned(),
            why,
            since_ns: long(&stage).unwrap_or(0),
            held_up: ends.iter().filter(|end| **end == stage).count() - 1,
        })
    }
}

/// Raises the caps of `places` one by one, up to the number that each asks for. Returns the number
/// that is left.
fn fill(
    caps: &mut [usize],
    places: &[usize],
    mut left: usize,
    wanted: impl Fn(usize) -> usize,
) -> usize {
    loop {
        let open: Vec<_> = places.iter().filter(|p| caps[**p] < wanted(**p)).collect();
        if open.is_empty() || left == 0 {
            return left;
        }
        // This raises all caps by as much as all can take; the first ones get the remainder.
        let room = open.iter().map(|p| wanted(**p) - caps[**p]).min();
        let each = room.unwrap_or(0).min(left / open.len());
        for place in &open {
            caps[**place] += each;
            left -= each;
        }
        if each == 0 {
            for place in open.into_iter().take(left) {
                caps[*place] += 1;
            }
            return 0;
        }
    }
}

/// Returns the stage that `place` ultimately waits for; in a cycle, the stage that closes it.
fn end(stages: &[StageLoad<'_>], mut place: usize) -> usize {
    for _ in 0..stages.len() {
        match stages[place].waits_for {
            Some(next) if next < stages.len() && next != place => place = next,
            _ => break,
        }
    }
    place
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.why {
            Constraint::Busy => "all its servlets are at work",
            Constraint::Capped => "it asks for more servlets than the process has for it",
            Constraint::Stuck => "its servlets wait for something that is no stage",
        };
        let ms = self.since_ns / 1_000_000;
        write!(
            f,
            "stage \"{}\" has been overloaded for {ms} ms: {why}",
            self.name
        )?;
        match self.held_up {
            0 => Ok(()),
            1 => f.write_str("; 1 stage waits for it"),
            more => write!(f, "; {more} stages wait for it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::MS;
    use super::*;

    fn stage(priority: u8, frees_resources: bool, wanted: usize) -> StageLoad<'static> {
        StageLoad {
            name: "s",
            priority,
            frees_resources,
            wanted,
            utilisation: 1.0,
            ..StageLoad::default()
        }
    }

    #[test]
    fn servlets_go_by_priority_then_to_stages_that_free_others_then_evenly() {
        let check = |max, stages: &[StageLoad<'_>], expected: &[usize]| {
            assert_eq!(Governor::new(max).plan(stages, 0).caps, expected);
        };
        let (high, low) = (stage(0, false, 8), stage(1, false, 8));
        check(10, &[low, high], &[2, 8]);
        check(10, &[stage(1, true, 8), low, high], &[1, 1, 8]);
        check(12, &[low, stage(1, true, 8), high], &[1, 3, 8]);
        check(11, &[high, high, stage(0, false, 2)], &[5, 4, 2]);
        // Fewer servlets than stages: each stage has one.
        check(0, &[low, high], &[1, 1]);
        // More servlets than all stages ask for.
        check(30, &[low, high], &[15, 15]);
        check(21, &[stage(0, false, 1), stage(0, false, 20)], &[1, 20]);
        check(usize::MAX, &[stage(0, false, usize::MAX)], &[usize::MAX]);
        check(5, &[], &[]);
    }

    #[test]
    fn the_cap_is_kept() {
        for max in 3..200 {
            let stages = [stage(2, false, 70), stage(0, true, max), stage(2, true, 9)];
            let caps = Governor::new(max).plan(&stages, 0).caps;
            assert_eq!(caps.iter().sum::<usize>(), max);
        }
    }

    #[test]
    fn the_cause_is_where_the_waiting_ends() {
        let mut governor = Governor::new(100);
        let growing = StageLoad {
            growing: true,
            ..stage(0, false, 1)
        };
        let held_up_by = |place| StageLoad {
            waits_for: Some(place),
            ..growing
        };
        let disk = StageLoad {
            name: "disk",
            ..growing
        };
        let stages = [held_up_by(1), held_up_by(2), disk, growing];
        assert_eq!(governor.plan(&stages, 0).cause, None);
        assert_eq!(governor.plan(&stages, 99 * MS).cause, None);
        let cause = governor.plan(&stages, 100 * MS).cause.expect("one");
        assert_eq!(
            (cause.stage, cause.why, cause.held_up),
            (2, Constraint::Busy, 2)
        );
        let said = cause.to_string();
        assert_eq!(
            said,
            "stage \"disk\" has been overloaded for 100 ms: all its servlets are at work; 2 stages wait for it"
        );
    }

    #[test]
    fn a_burst_is_no_overload() {
        let mut governor = Governor::new(10).overloaded_after_ns(50 * MS);
        let mut load = stage(0, false, 1);
        for ms in 0..1000 {
            load.growing = ms % 40 != 0;
            assert_eq!(governor.plan(&[load], ms * MS).cause, None);
        }
    }

    #[test]
    fn forgetting_a_stage_forgets_its_history() {
        let mut governor = Governor::new(10).overloaded_after_ns(50 * MS);
        let calm = stage(0, false, 1);
        let growing = StageLoad {
            growing: true,
            ..calm
        };
        assert_eq!(governor.plan(&[calm, growing], 0).cause, None);
        governor.remove(0);
        let cause = governor
            .plan(&[growing, growing], 50 * MS)
            .cause
            .expect("one");
        assert_eq!((cause.stage, cause.since_ns), (0, 50 * MS));
        governor.remove(7);
    }

    #[test]
    fn the_reason_is_named() {
        let check = |wanted, utilisation, expected| {
            let mut governor = Governor::new(4).overloaded_after_ns(0);
            let load = StageLoad {
                growing: true,
                utilisation,
                ..stage(0, false, wanted)
            };
            let cause = governor.plan(&[load], 0).cause.expect("one");
            assert_eq!(cause.why, expected);
        };
        check(4, 1.0, Constraint::Busy);
        check(5, 1.0, Constraint::Capped);
        check(5, 0.3, Constraint::Stuck);
    }

    #[test]
    fn stages_that_wait_for_each_other_end_somewhere() {
        let mut governor = Governor::new(4).overloaded_after_ns(0);
        let circle = |place| StageLoad {
            growing: true,
            waits_for: Some(place),
            ..stage(0, false, 1)
        };
        let cause = governor.plan(&[circle(1), circle(0), circle(9)], 0).cause;
        assert!(cause.is_some());
    }
}
