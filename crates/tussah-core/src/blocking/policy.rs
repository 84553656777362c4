//! The bounds of a blocking pool, and the rule by which it adds OS threads.

use std::time::Duration;

/// Bound, in OS threads: the default maximum of a pool, enough to keep a disk or a name server
/// busy. More OS threads would only wait for the same device.
const THREADS_MAX: usize = 64;

/// Bound, in jobs: the default maximum length of a pool's queue. At 100 µs per job on 64 OS
/// threads, the last job starts after a tenth of a second.
const QUEUE_MAX: usize = 65_536;

/// The idle time after which OS threads end; SEDA's value (SOSP 2001, figure 8).
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// The bounds within which a blocking pool grows and shrinks.
///
/// If a job finds no idle OS thread, the pool starts one, up to `threads_max`. SEDA's pools (Welsh,
/// Culler, Brewer, SOSP 2001, section 3.4) add an OS thread only when the queue is long. SEDA's
/// pools run the handlers of one stage, where another OS thread helps only if work accumulates.
/// Jobs of a blocking pool, in contrast, are unrelated and block in the kernel, so no job has a
/// reason to wait behind another.
///
/// # Examples
/// ```
/// # use tussah_core as tussah;
/// use tussah::{PoolPolicy, Runtime};
///
/// let few = PoolPolicy { threads_max: 4, ..PoolPolicy::default() };
/// let runtime = Runtime::builder().blocking(few).build()?;
/// # drop(runtime);
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolPolicy {
    /// Bound, in OS threads: the maximum number of OS threads in the pool. Each OS thread costs a
    /// stack, and more OS threads than the device can serve in parallel bring no gain. Zero counts
    /// as 1.
    pub threads_max: usize,
    /// The length of a period: at its end, as many OS threads end as were idle throughout it. So a
    /// thread that is no longer needed ends after one to two periods.
    pub idle_timeout: Duration,
    /// Bound, in jobs: the maximum number of jobs in the queue, because queued closures take
    /// memory. If the queue is full, submitting a job fails and returns the closure. Zero counts as
    /// 1.
    pub queue_max: usize,
}

impl Default for PoolPolicy {
    /// Returns up to 64 OS threads, which end after 5 to 10 s in which they were not needed.
    fn default() -> Self {
        Self {
            threads_max: THREADS_MAX,
            idle_timeout: IDLE_TIMEOUT,
            queue_max: QUEUE_MAX,
        }
    }
}

impl PoolPolicy {
    /// Returns whether the pool needs another OS thread. Of its `threads`, `idle` run no job,
    /// including those that were woken for a job and have not fetched it yet.
    ///
    /// A queue without an OS thread always gets one, whatever the bound: the pool's promise that no
    /// job is forgotten depends on this.
    pub(super) fn needs_thread(&self, queued: usize, threads: usize, idle: usize) -> bool {
        queued > idle && threads < self.threads_max.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_os_thread_is_added_when_none_is_idle() {
        // Queued jobs, OS threads, idle OS threads, and the expected decision.
        let rows = [
            (0, 0, 0, false),
            (0, 5, 0, false),
            (1, 0, 0, true),
            (1, 1, 1, false),
            (2, 1, 1, true), // The idle one was already woken for the first job.
            (1, 1, 0, true),
            (1, 63, 0, true),
            (1, 64, 0, false),
            (60_000, 64, 0, false),
        ];
        let policy = PoolPolicy::default();
        for (queued, threads, idle, expected) in rows {
            let needs = policy.needs_thread(queued, threads, idle);
            assert_eq!(needs, expected, "{queued} {threads} {idle}");
        }
    }

    #[test]
    fn a_maximum_of_zero_counts_as_one() {
        let policy = PoolPolicy {
            threads_max: 0,
            ..PoolPolicy::default()
        };
        assert!(policy.needs_thread(1, 0, 0));
        assert!(!policy.needs_thread(9, 1, 0));
    }
}
