//! Which runnable color a worker takes next: the scheduler as an ordinary, replaceable piece of code.

use crate::quietly::quietly;

/// What a policy is told of a runnable color.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Candidate {
    /// The priority of the color; 0 for a thread that is its own color. Larger goes first.
    pub priority: i8,
    /// Whether the color is the one that ran last on this worker, so that its data are in the cache.
    pub ran_last: bool,
    /// The average length of the color's turns in nanoseconds, over the measured ones; 0 if none was.
    pub turn_ns: u64,
    /// How often another candidate was taken since this one became one: 0 to [`PASSED_OVER_MAX`].
    pub passed_over: u32,
}

/// Bound, in candidates: how many runnable colors a policy chooses among: the oldest of the queue, so that a choice costs the same however long the queue is.
pub const CANDIDATES_MAX: usize = 16;

/// Bound, in turns: a candidate that was passed over this often goes next, whatever the policy says, so that none starves.
pub const PASSED_OVER_MAX: u32 = 64;

/// Chooses which runnable color a worker takes next.
///
/// Each worker has a policy of its own, made by the function given to
/// [`Builder::policy`](crate::Builder::policy). A policy can't break a promise of the runtime: events of one color keep
/// their order, and a color that was passed over [`PASSED_OVER_MAX`] times goes next.
///
/// # Examples
/// ```
/// # use tussah_core as tussah;
/// use tussah::{Candidate, Policy};
///
/// /// The newest first.
/// struct Newest;
///
/// impl Policy for Newest {
///     fn choose(&mut self, candidates: &[Candidate]) -> usize {
///         candidates.len() - 1
///     }
/// }
///
/// let runtime = tussah::Runtime::builder().workers(1).policy(|| Newest).build()?;
/// assert_eq!(runtime.block_on(runtime.spawn(async { 1 })).unwrap(), 1);
/// # std::io::Result::Ok(())
/// ```
pub trait Policy: Send {
    /// The index of the candidate to take. There is at least one; they are in the order in which they became runnable. An
    /// index that is too large means the last one.
    fn choose(&mut self, candidates: &[Candidate]) -> usize;
}

/// The default: first in, first out, except for priorities.
///
/// Among the first candidates the one with the largest weight goes: its priority, and one more if it ran last on this
/// worker; ties go to the oldest (the thesis on libasync-mp, §3.4). While no color of the runtime has a priority, nothing
/// is weighed at all, and the queue is first in, first out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Priorities;

impl Policy for Priorities {
    fn choose(&mut self, candidates: &[Candidate]) -> usize {
        let weight =
            |candidate: &Candidate| i32::from(candidate.priority) + i32::from(candidate.ran_last);
        let mut best = 0;
        for (index, candidate) in candidates.iter().enumerate() {
            if weight(candidate) > weight(&candidates[best]) {
                best = index;
            }
        }
        best
    }
}

/// The candidate to take: the policy's, unless one has been passed over too often. A policy that panics chose the oldest.
pub(crate) fn choose(policy: &mut dyn Policy, candidates: &[Candidate]) -> usize {
    let overdue = candidates
        .iter()
        .position(|candidate| candidate.passed_over >= PASSED_OVER_MAX);
    if let Some(overdue) = overdue {
        return overdue;
    }
    let mut chosen = 0;
    quietly(|| chosen = policy.choose(candidates));
    chosen.min(candidates.len() - 1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn check(candidates: &[(i8, bool, u32)], expected: usize) {
        let candidates: Vec<_> = candidates
            .iter()
            .map(|&(priority, ran_last, passed_over)| Candidate {
                priority,
                ran_last,
                passed_over,
                turn_ns: 0,
            })
            .collect();
        assert_eq!(
            choose(&mut Priorities, &candidates),
            expected,
            "{candidates:?}"
        );
    }

    #[test]
    fn priorities_table() {
        check(&[(0, false, 0), (0, false, 0)], 0);
        check(&[(0, false, 0), (0, true, 0)], 1);
        check(&[(1, false, 0), (0, true, 0)], 0); // a tie goes to the oldest
        check(&[(0, false, 0), (2, false, 0), (2, false, 0)], 1);
        check(&[(-1, false, 0), (0, false, 0)], 1);
        check(&[(-128, false, 63), (127, true, 0)], 1);
        check(&[(-128, false, 64), (127, true, 0)], 0); // passed over often enough
    }

    #[test]
    fn a_policy_that_panics_means_the_oldest() {
        struct Broken;
        impl Policy for Broken {
            fn choose(&mut self, _: &[Candidate]) -> usize {
                panic!("no choice")
            }
        }
        assert_eq!(choose(&mut Broken, &[Candidate::default(); 3]), 0);
    }

    #[test]
    fn a_wild_index_means_the_last() {
        struct Wild;
        impl Policy for Wild {
            fn choose(&mut self, _: &[Candidate]) -> usize {
                usize::MAX
            }
        }
        assert_eq!(choose(&mut Wild, &[Candidate::default(); 3]), 2);
    }
}
