//! Policies: the choice of the color that a worker runs next.

use crate::quietly::quietly;

/// A policy's view of a runnable color.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Candidate {
    /// The color's priority; larger values are more urgent. If a thread has its own color, that
    /// color has priority 0.
    pub priority: i8,
    /// True if the color was the last to run on this worker, so its data is probably in the cache.
    pub ran_last: bool,
    /// The mean length of the color's measured turns, in nanoseconds; 0 if none was measured.
    pub turn_ns: u64,
    /// The number of times that the policy chose another candidate instead of this one; 0 to
    /// [`PASSED_OVER_MAX`].
    pub passed_over: u32,
}

/// Bound, in candidates: a policy sees at most this many runnable colors, namely those that became
/// runnable first, so the cost of a choice does not depend on the length of the queue.
pub const CANDIDATES_MAX: usize = 16;

/// Bound, in turns of other colors: a candidate that the policy has passed over for this many turns
/// runs next, regardless of the policy's choice, so no color starves.
pub const PASSED_OVER_MAX: u32 = 64;

/// A scheduling policy, which chooses the next runnable color for a worker to run.
///
/// Each worker has its own policy, created by the function passed to
/// [`Builder::policy`](crate::Builder::policy). A policy cannot break the guarantees of the
/// runtime: events of one color keep their order, and a color that was passed over
/// [`PASSED_OVER_MAX`] times runs next.
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
    /// Returns the index of the candidate to run next. There is at least one candidate, and
    /// candidates are in the order in which they became runnable. An index out of range selects the
    /// last candidate.
    fn choose(&mut self, candidates: &[Candidate]) -> usize;
}

/// The default policy: first in, first out, unless colors have priorities.
///
/// The policy chooses the candidate with the largest weight. The weight of a candidate is its
/// priority, plus one if the color was the last to run on this worker. Among candidates of equal
/// weight, the policy chooses the one that became runnable first (the thesis on libasync-mp, §3.4).
/// While no color of the runtime has a priority, the policy ignores the weights, and the queue is
/// first in, first out.
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

/// Returns the policy's candidate, or one that has been passed over too often. If the policy
/// panics, returns the oldest.
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
