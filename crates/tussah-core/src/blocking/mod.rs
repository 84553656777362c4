//! The blocking pool: OS threads for calls that block.
//!
//! # No job is forgotten
//!
//! *Whenever the queue is not empty the pool has an OS thread; and as many of its OS threads as jobs are queued, or else all
//! that run no job, are awake or about to be woken.*
//!
//! - `submit` puts the job into the queue and asks the policy under the same lock. If there is no OS thread the answer is
//!   `Add`, whatever the threshold and the time ([`PoolPolicy::decide`]). The OS thread is started under the lock, so
//!   `threads` counts only those that exist; nobody relies on one whose start then fails. If the system refuses to start
//!   the first one, the job leaves the queue again and the caller gets the closure back.
//! - An OS thread ends only under the lock and only if the queue is empty, also when its idle time is over and also in
//!   a shutdown.
//! - An OS thread goes to sleep only if it has seen the queue empty, and gives up the lock in going to sleep. So a
//!   job that comes later finds it asleep, and `submit` wakes one sleeper per job. One that wakes, or has ended its job,
//!   looks at the queue before it sleeps or ends, also if its time was over just then.
//!
//! Jobs leave the queue in the order of their submission, so a job waits for ever only if every OS thread of the pool is
//! inside of a job that never ends.
//!
//! # Nested joins do not deadlock
//!
//! Let every job wait for nothing but handles of other jobs, with no cycle among them. Then all of them end. Who waits
//! for a job that is still queued takes it out of the queue and runs it on the spot, and runs no other. So a job that
//! somebody waits for is running (or done), and what lies above it on its stack is what it waits for itself. Follow "waits for"
//! from any job: without a cycle the path ends at a job that waits for nothing; that one is running, and ends.
//!
//! Polling a handle inside of a blocking job counts as waiting, because the poll may run the job: a `select` over a
//! handle and something else is busy with the job until it has ended. This holds for the jobs of all pools and not only
//! of the handle's: two pools of one OS thread each, whose jobs wait for each other's queued jobs, would otherwise stand
//! still without a cycle.
//!
//! An operation on a file that goes to the pool counts as a job: who waits for it inside of a job runs it on the spot, and those that
//! come before it in its file's queue (`driver/file/order.rs`).
//!
//! What remains: a cycle of joins, and jobs that wait for a queued job by other means than its handle (a channel, a
//! lock), which need as many OS threads as there are such jobs. With the default policy they have up to `threads_max`. With
//! [`PoolPolicy::seda`] a short queue stays with the OS threads that there are, so don't use it for such jobs.
//!
//! # Stacks
//!
//! At most `INLINE_DEPTH_MAX` jobs lie on one stack. The next one is run on an OS thread of its own, which is not one of the
//! pool's `threads_max`: it does not add to what runs in parallel, as the OS thread that started it only waits. After
//! `EXTRA_STACKS_MAX` such stacks, or if the system refuses one, the job is not run and its join returns an
//! error ([`JoinError::is_too_deep`](crate::JoinError::is_too_deep)). To wait instead could wait for ever: in a pool
//! of one OS thread the waiter is the only one that could run the job.
//!
//! # Locks
//!
//! The pool's lock and a slot's lock are never held together, and no code of the user runs under either.

mod handle;
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
pub use policy::{PoolDecision, PoolPolicy, PoolSample};
pub use pool::{BlockingPool, BlockingStats, ShutdownOutcome};
pub use submit_error::SubmitError;
