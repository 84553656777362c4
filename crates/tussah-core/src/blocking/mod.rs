//! The blocking pool: OS threads for calls that block.
//!
//! # No job is forgotten
//!
//! *While the queue is not empty, the pool has at least one OS thread. Call an OS thread free if it
//! has no job, and active if it is awake or about to be woken. Let q be the number of queued jobs,
//! and f the number of free OS threads. Of the free OS threads, at least min(q, f) are active.*
//!
//! - `submit` queues the job and consults the policy under the same lock. If there is no OS thread,
//!   the policy adds one, regardless of the bound on OS threads. The OS thread is started under the
//!   lock, so `threads` counts only OS threads that exist. If the system refuses to start the first
//!   OS thread, `submit` removes the job from the queue and returns its closure to the caller.
//! - Even if it is spare (`Inner::has_spare`) and during a shutdown, an OS thread ends only while
//!   it holds the lock and the queue is empty.
//! - An OS thread goes to sleep only after it has found the queue empty under the lock, and it
//!   releases the lock as it falls asleep. A later `submit` therefore knows that this OS thread is
//!   asleep, and wakes one sleeping OS thread for the new job. An OS thread that wakes up or
//!   finishes its job checks the queue before it sleeps or ends, even if it is spare.
//!
//! Jobs leave the queue in order of submission. A job therefore waits forever only if every OS
//! thread of the pool is inside a job that never ends.
//!
//! # Nested joins do not deadlock
//!
//! Suppose that jobs wait only for handles of other jobs, without a cycle. Then all of these jobs
//! end. An OS thread that waits for a queued job takes that job, and only that job, from the queue
//! and runs it itself. Every awaited job is therefore running or done. Running a job on its
//! waiter's stack delays only jobs that wait for it anyway, because each job on a stack awaits the
//! job above it. Follow the relation "waits for" from any job: without a cycle, the path leads to a
//! running job that waits for nothing and therefore ends.
//!
//! Polling a handle inside a blocking job counts as waiting, because the poll may run the job: a
//! `select` over a handle and another future is then blocked until the job has ended. Polling
//! counts as waiting in the jobs of all pools, not only in those of the handle's pool. Otherwise,
//! two pools with one OS thread each would stall, even without a cycle, if each pool's running job
//! waited for a job that is queued in the other pool.
//!
//! A file operation on the pool counts as a job. A job that waits for a file operation runs that
//! operation on the job's own OS thread, together with the operations ahead of it in the file's
//! queue (`driver/file/order.rs`).
//!
//! Deadlocks remain possible in two cases: a cycle of joins, and jobs that wait for a queued job by
//! means other than its handle, such as a channel or a lock. A job that waits for a channel or a
//! lock occupies an OS thread; the pool provides up to `threads_max` OS threads.
//!
//! # Stacks
//!
//! One stack holds at most `INLINE_DEPTH_MAX` jobs. A job that is nested more deeply runs on a
//! separate OS thread. The separate OS thread does not count against the pool's `threads_max`: it
//! adds no parallelism, because the OS thread that started it only waits. If there are already
//! `EXTRA_STACKS_MAX` such OS threads, or if the system refuses to start one, the job does not run
//! and its join returns an error ([`JoinError::is_too_deep`](crate::JoinError::is_too_deep)). If a
//! join waited instead of returning this error, it could wait forever: in a pool of one OS thread,
//! only the waiter could run the job.
//!
//! # Locks
//!
//! The pool's lock and a slot's lock are never held at the same time, and no user code runs under
//! either.

mod handle;
mod inner;
mod nesting;
mod policy;
mod pool;
mod slot;
mod submit_error;
#[cfg(all(test, not(loom)))]
mod tests;

pub use handle::BlockingHandle;
#[cfg(not(loom))]
pub(crate) use nesting::in_job;
pub use policy::PoolPolicy;
pub use pool::{BlockingPool, BlockingStats, ShutdownOutcome};
pub use submit_error::SubmitError;
