//! The policy by which the blocking pool adds and removes OS threads.

use std::time::Duration;

/// Bound, in OS threads: enough to keep a disk or a name server busy. More OS threads would only
/// wait for the same device.
const THREADS_MAX: usize = 64;

/// Bound, in jobs: at 100 µs per job on 64 OS threads, the last job starts after a tenth of a
/// second.
const QUEUE_MAX: usize = 65_536;

/// The idle time after which an OS thread ends; SEDA's value (SOSP 2001, figure 8).
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// Bound, in OS threads: SEDA's maximum for one stage (SOSP 2001, figure 8).
const SEDA_THREADS_MAX: usize = 20;

/// Bound, in jobs: the queue length that SEDA's controller tolerates (SOSP 2001, figure 8).
const SEDA_QUEUE_THRESHOLD: usize = 100;

/// The interval at which SEDA's controller samples the queue (SOSP 2001, figure 8).
const SEDA_SAMPLE_EVERY: Duration = Duration::from_secs(2);

/// The input of the policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolSample {
    /// The number of jobs in the queue.
    pub queued: usize,
    /// The number of the pool's OS threads.
    pub threads: usize,
    /// The number of idle OS threads, including those that have been woken for a job but have not
    /// fetched it yet.
    pub idle: usize,
    /// The time since the last OS thread was added; `Duration::MAX` if none has ever been added.
    pub since_last_added: Duration,
}

/// The decision of the policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolDecision {
    /// The OS threads are sufficient.
    Keep,
    /// Add one OS thread.
    Add,
}

/// The rules by which a blocking pool grows and shrinks: SEDA's thread pool controller (Welsh,
/// Culler, Brewer, SOSP 2001, section 3.4 and figure 8).
///
/// A sample is taken when a job is submitted and when an OS thread of the pool has ended a job,
/// because only then does the queue change. So there is no timer thread. In the paper a sample is
/// due every two seconds and adds at most one thread. Here, samples add at most one OS thread per
/// `sample_every`, as soon as one of them finds a reason. In one case only the paper's controller
/// adds a thread: the queue is long, no job is submitted, and every OS thread is inside a long job.
///
/// # Examples
/// ```
/// # use tussah_core as tussah;
/// use std::time::Duration;
/// use tussah::{PoolDecision, PoolPolicy, PoolSample};
///
/// let all_busy = PoolSample { queued: 1, threads: 3, idle: 0, since_last_added: Duration::ZERO };
/// assert_eq!(PoolPolicy::default().decide(&all_busy), PoolDecision::Add);
/// assert_eq!(PoolPolicy::seda().decide(&all_busy), PoolDecision::Keep);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolPolicy {
    /// Bound, in OS threads: each costs a stack, and more than the device's parallelism do not
    /// help. Zero counts as 1.
    pub threads_max: usize,
    /// Bound, in jobs: a queue longer than this is a reason to add an OS thread.
    pub queue_threshold: usize,
    /// The minimum time between two additions.
    pub sample_every: Duration,
    /// The idle time after which an OS thread ends.
    pub idle_timeout: Duration,
    /// Bound, in jobs: the memory of queued closures. A full queue returns the closure. Zero counts
    /// as 1.
    pub queue_max: usize,
}

impl Default for PoolPolicy {
    /// Adds an OS thread for every job if none is idle, up to 64. Idle OS threads end after 5 s.
    ///
    /// SEDA's pools ran the handlers of one stage, where another thread helps only if work
    /// accumulates. Here, jobs block in the kernel and are unrelated, so it is a waste to let a job
    /// wait behind another one.
    fn default() -> Self {
        Self {
            threads_max: THREADS_MAX,
            queue_threshold: 0,
            sample_every: Duration::ZERO,
            idle_timeout: IDLE_TIMEOUT,
            queue_max: QUEUE_MAX,
        }
    }
}

impl PoolPolicy {
    /// Returns the constants of SEDA's figure 8: one more thread every 2 s while more than 100 jobs
    /// are queued, up to 20 threads. A thread ends after 5 s without work.
    #[must_use]
    pub fn seda() -> Self {
        Self {
            threads_max: SEDA_THREADS_MAX,
            queue_threshold: SEDA_QUEUE_THRESHOLD,
            sample_every: SEDA_SAMPLE_EVERY,
            ..Self::default()
        }
    }

    /// Decides whether to add an OS thread.
    ///
    /// A queue without an OS thread always gets one, whatever the threshold and the time: the
    /// pool's promise that no job is forgotten depends on this.
    #[must_use]
    pub fn decide(&self, sample: &PoolSample) -> PoolDecision {
        let served = sample.queued <= sample.idle;
        let first = sample.queued > 0 && sample.threads == 0;
        let due = sample.queued > self.queue_threshold
            && !served
            && sample.threads < self.threads_max
            && sample.since_last_added >= self.sample_every;
        if first || due {
            PoolDecision::Add
        } else {
            PoolDecision::Keep
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PoolDecision::{Add, Keep};
    use super::*;

    /// Rows: queued, threads, idle, milliseconds since the last addition, expected decision.
    fn check(policy: &PoolPolicy, rows: &[(usize, usize, usize, u64, PoolDecision)]) {
        for &(queued, threads, idle, since_ms, expected) in rows {
            let since_last_added = Duration::from_millis(since_ms);
            let sample = PoolSample {
                queued,
                threads,
                idle,
                since_last_added,
            };
            assert_eq!(policy.decide(&sample), expected, "{sample:?}");
        }
    }

    #[test]
    fn seda_adds_one_above_the_threshold_when_a_sample_is_due() {
        check(
            &PoolPolicy::seda(),
            &[
                (0, 0, 0, 9_000, Keep),
                (1, 0, 0, 9_000, Add), // The first thread, far below the threshold,
                (1, 0, 0, 0, Add),     // and although one was added (and ended) just now.
                (100, 1, 0, 9_000, Keep),
                (101, 1, 0, 9_000, Add),
                (101, 1, 0, 2_000, Add),
                (101, 1, 0, 1_999, Keep),
                (101, 1, 1, 2_000, Add),
                (101, 19, 0, 2_000, Add),
                (101, 20, 0, 2_000, Keep),
                (60_000, 20, 0, 9_000, Keep),
            ],
        );
    }

    #[test]
    fn ours_adds_one_at_once_when_none_is_idle() {
        check(
            &PoolPolicy::default(),
            &[
                (0, 0, 0, 9_000, Keep),
                (0, 5, 0, 9_000, Keep),
                (1, 0, 0, 0, Add),
                (1, 1, 1, 0, Keep),
                (2, 1, 1, 0, Add), // The idle one was already woken for the first job.
                (1, 1, 0, 0, Add),
                (1, 63, 0, 0, Add),
                (1, 64, 0, 0, Keep),
                (60_000, 64, 0, 9_000, Keep),
            ],
        );
    }

    #[test]
    fn a_maximum_of_zero_counts_as_one() {
        let policy = PoolPolicy {
            threads_max: 0,
            ..PoolPolicy::default()
        };
        check(&policy, &[(1, 0, 0, 0, Add), (9, 1, 0, 0, Keep)]);
    }
}
