//! The queue of the blocking pool, and the OS threads that serve it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;
use std::{fmt, io, mem};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::handle::BlockingHandle;
use super::inner::Inner;
use super::nesting::{self, EXTRA_STACKS_MAX, INLINE_DEPTH_MAX};
use super::policy::PoolPolicy;
use super::slot::{Counters, Job, Slot};
use super::submit_error::SubmitError;
use crate::color::held::assert_may_wait;
use crate::join_error::JoinError;

/// A pool of OS threads for blocking work, such as file operations without io_uring, name
/// resolution, calls to foreign libraries, and long computations.
///
/// A [`PoolPolicy`] determines when the pool adds and removes OS threads. Jobs start in order of
/// submission, except that a queued job runs immediately if `join` or a blocking job waits for it.
/// Dropping the pool shuts it down immediately.
///
/// # Examples
/// ```
/// # use tussah_core as tussah;
/// use tussah::{BlockingPool, PoolPolicy};
///
/// let pool = BlockingPool::new("files", PoolPolicy::default());
/// let job = pool.submit(|| 6 * 7).expect("the pool is open and not full");
/// assert_eq!(job.join().expect("the job neither panics nor is aborted"), 42);
/// ```
pub struct BlockingPool {
    shared: Arc<Shared>,
}

/// The current state of a pool, and its counters.
///
/// Except for a moment when its state changes, each job is counted in exactly one of `queued`,
/// `running`, `completed`, `panicked` and `cancelled`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BlockingStats {
    /// The number of the pool's OS threads.
    pub threads: usize,
    /// The number of idle OS threads.
    pub idle: usize,
    /// The number of additional OS threads for joins that are too deeply nested for one stack.
    pub extra_stacks: usize,
    /// The number of queued jobs.
    pub queued: usize,
    /// The number of running jobs, on OS threads of the pool or inside a join.
    pub running: usize,
    /// The number of jobs that have returned without a panic.
    pub completed: u64,
    /// The number of jobs that panicked.
    pub panicked: u64,
    /// The number of jobs that never ran, because they were aborted, still queued at the shutdown,
    /// or nested too deeply.
    pub cancelled: u64,
    /// The number of times that the system refused to start an OS thread.
    pub starts_failed: u64,
}

/// The jobs that a shutdown did not finish.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[must_use = "jobs may have been dropped"]
pub struct ShutdownOutcome {
    /// The number of queued jobs that were dropped without being run; their handles return a
    /// cancellation error.
    pub cancelled: usize,
    /// The number of jobs that were still running at the deadline; their handles return the results
    /// when the jobs end.
    pub running: usize,
}

impl BlockingPool {
    /// Creates a pool without OS threads; the first job starts one. The pool's OS threads are named
    /// `<name>-blocking-<number>`.
    ///
    /// # Panics
    /// Panics if the name contains a NUL byte.
    #[must_use]
    pub fn new(name: impl Into<String>, policy: PoolPolicy) -> Self {
        Self::with_starter(
            name,
            policy,
            Box::new(|builder, work| builder.spawn(work).map(drop)),
        )
    }

    pub(super) fn with_starter(
        name: impl Into<String>,
        policy: PoolPolicy,
        start: Starter,
    ) -> Self {
        let name = name.into();
        assert!(!name.contains('\0'), "a name has no NUL byte");
        let shared = Shared {
            name,
            policy,
            start,
            inner: Mutex::default(),
            work: Condvar::new(),
            drained: Condvar::new(),
            counters: Counters::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Queues a closure to run on an OS thread of the pool. Never blocks, but may start an OS
    /// thread. If the pool cannot start another OS thread, an existing one runs the job later (see
    /// `starts_failed`).
    ///
    /// # Errors
    /// Returns the closure if the queue is full, if the pool has shut down, or if the pool has no
    /// OS thread and the system refuses to start one.
    pub fn submit<F, T>(&self, f: F) -> Result<BlockingHandle<T>, SubmitError<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let shared = &self.shared;
        let slot = Arc::new(Slot::new(f));
        let job = Arc::clone(&slot) as Arc<dyn Job>;
        match shared.enqueue(job) {
            Ok(ticket) => Ok(BlockingHandle::new(slot, Arc::clone(shared), ticket)),
            Err(Refusal::ShutDown) => Err(SubmitError::shut_down(slot.reclaim())),
            Err(Refusal::Full) => Err(SubmitError::full(slot.reclaim(), shared.queue_max())),
            Err(Refusal::NoThread(error)) => Err(SubmitError::no_thread(slot.reclaim(), error)),
        }
    }

    /// Returns the maximum number of OS threads in the pool, at least 1.
    #[must_use]
    pub fn threads_max(&self) -> usize {
        self.shared.policy.threads_max.max(1)
    }

    /// Returns the current state of the pool, and its counters.
    #[must_use]
    pub fn stats(&self) -> BlockingStats {
        let counters = &self.shared.counters;
        let inner = self.shared.inner.lock();
        BlockingStats {
            threads: inner.threads,
            idle: inner.idle,
            extra_stacks: inner.extra_stacks,
            queued: inner.queue.len(),
            running: inner.running,
            completed: counters.completed.load(Ordering::Relaxed),
            panicked: counters.panicked.load(Ordering::Relaxed),
            cancelled: counters.cancelled.load(Ordering::Relaxed),
            starts_failed: inner.starts_failed,
        }
    }

    /// Rejects new jobs, runs the queued jobs until the deadline, and then drops the remaining
    /// ones.
    ///
    /// Blocks until every OS thread has left the pool, or until the deadline. A job that is running
    /// at the deadline continues, because blocking code cannot be interrupted. If a job shuts down
    /// its own pool, the call waits until the deadline.
    ///
    /// # Panics
    /// If the deadline is in the future, panics in the same cases as
    /// [`block_on`](crate::Handle::block_on).
    pub fn shutdown(&self, deadline: Instant) -> ShutdownOutcome {
        if Instant::now() < deadline {
            assert_may_wait("a blocking pool was shut down");
        }
        let shared = &self.shared;
        let (rest, running) = {
            let mut inner = shared.inner.lock();
            inner.closed = true;
            shared.work.notify_all();
            while !inner.is_drained() {
                if shared.drained.wait_until(&mut inner, deadline).timed_out() {
                    break;
                }
            }
            (mem::take(&mut inner.queue), inner.running)
        };
        let cancelled = rest.len();
        for job in rest.into_values() {
            job.cancel(JoinError::cancelled(), &shared.counters);
        }
        ShutdownOutcome { cancelled, running }
    }
}

impl Drop for BlockingPool {
    fn drop(&mut self) {
        let _ = self.shutdown(Instant::now()); // handles of cancelled jobs return that
    }
}

impl fmt::Debug for BlockingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingPool")
            .field("name", &self.shared.name)
            .field("policy", &self.shared.policy)
            .field("stats", &self.stats())
            .finish()
    }
}

/// Starts an OS thread. This is a parameter, so that tests can refuse to start one.
pub(super) type Starter =
    Box<dyn Fn(thread::Builder, Box<dyn FnOnce() + Send>) -> io::Result<()> + Send + Sync>;

enum Refusal {
    Full,
    ShutDown,
    NoThread(io::Error),
}

/// The state that the pool, its OS threads and its handles share.
pub(super) struct Shared {
    name: String,
    policy: PoolPolicy,
    start: Starter,
    inner: Mutex<Inner>,
    /// Signals a new job, or that the pool has closed.
    work: Condvar,
    /// Signals that the pool has closed, and the last OS thread has left or the last job has ended.
    drained: Condvar,
    counters: Counters,
}

impl Shared {
    fn queue_max(&self) -> usize {
        self.policy.queue_max.max(1)
    }

    fn enqueue(self: &Arc<Self>, job: Arc<dyn Job>) -> Result<u64, Refusal> {
        let mut inner = self.inner.lock();
        if inner.closed {
            return Err(Refusal::ShutDown);
        }
        if inner.queue.len() >= self.queue_max() {
            return Err(Refusal::Full);
        }
        let ticket = inner.next_ticket;
        inner.next_ticket += 1;
        inner.queue.insert(ticket, job);
        if let Err(error) = self.grow(&mut inner)
            && inner.threads == 0
        {
            inner.queue.remove(&ticket);
            return Err(Refusal::NoThread(error));
        }
        drop(inner);
        self.work.notify_one();
        Ok(ticket)
    }

    /// Starts an OS thread if the policy asks for one. Needs the lock (`mod.rs`).
    fn grow(self: &Arc<Self>, inner: &mut Inner) -> io::Result<()> {
        let queued = inner.queue.len();
        if self.policy.needs_thread(queued, inner.threads, inner.idle) {
            let shared = Arc::clone(self);
            self.start_thread(inner, Box::new(move || shared.serve()))?;
            inner.threads += 1;
            inner.idle += 1;
        }
        Ok(())
    }

    fn start_thread(&self, inner: &mut Inner, work: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        let name = format!("{}-blocking-{}", self.name, inner.threads_started);
        let started = (self.start)(thread::Builder::new().name(name), work);
        match &started {
            Ok(()) => inner.threads_started += 1,
            Err(_) => inner.starts_failed += 1,
        }
        started
    }

    /// Runs an OS thread of the pool, which its starter has counted as idle.
    fn serve(self: Arc<Self>) {
        let mut inner = self.inner.lock();
        loop {
            if let Some((_, job)) = inner.queue.pop_first() {
                inner.takes_job();
                drop(inner);
                nesting::deeper(|| job.run(&self.counters));
                drop(job);
                inner = self.inner.lock();
                inner.idle += 1;
                self.end_of_job(&mut inner);
                // A refusal is counted, and this OS thread continues to serve the queue.
                let _ = self.grow(&mut inner);
            } else if inner.closed || inner.has_spare(self.policy.idle_timeout) {
                break;
            } else {
                self.wait_for_work(&mut inner);
            }
        }
        assert!(inner.queue.is_empty(), "an OS thread left a queue behind");
        inner.idle -= 1;
        inner.threads -= 1;
        if inner.closed {
            self.drained.notify_all();
        }
    }

    /// Sleeps once, at most until the end of the period.
    fn wait_for_work(&self, inner: &mut MutexGuard<'_, Inner>) {
        let begun = inner.period.expect("an idle OS thread has begun a period");
        match begun.checked_add(self.policy.idle_timeout) {
            Some(end) => {
                let _ = self.work.wait_until(inner, end); // the caller checks the time
            }
            None => self.work.wait(inner),
        }
    }

    fn end_of_job(&self, inner: &mut Inner) {
        inner.running -= 1;
        if inner.closed && inner.running == 0 {
            self.drained.notify_all();
        }
    }

    /// Runs a job on this stack, or on another if this one is full, unless the job was taken.
    pub(super) fn run_here(self: &Arc<Self>, ticket: u64) {
        let job = {
            let mut inner = self.inner.lock();
            let Some(job) = inner.queue.remove(&ticket) else {
                return;
            };
            inner.running += 1;
            job
        };
        if nesting::depth() < INLINE_DEPTH_MAX {
            nesting::deeper(|| job.run(&self.counters));
            drop(job);
            self.end_of_job(&mut self.inner.lock());
        } else if self.run_on_extra_stack(&job).is_err() {
            job.cancel(JoinError::too_deep(), &self.counters);
            self.end_of_job(&mut self.inner.lock());
        }
    }

    /// Starts an OS thread for this one job. The calling OS thread only waits for the new one.
    fn run_on_extra_stack(self: &Arc<Self>, job: &Arc<dyn Job>) -> io::Result<()> {
        let mut inner = self.inner.lock();
        if inner.extra_stacks >= EXTRA_STACKS_MAX {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let shared = Arc::clone(self);
        let job = Arc::clone(job);
        let work = move || {
            nesting::deeper(|| job.run(&shared.counters));
            drop(job);
            let mut inner = shared.inner.lock();
            inner.extra_stacks -= 1;
            shared.end_of_job(&mut inner);
        };
        self.start_thread(&mut inner, Box::new(work))?;
        inner.extra_stacks += 1;
        Ok(())
    }

    /// Cancels a job unless it has been taken. Returns true if this call cancelled it.
    pub(super) fn abort(&self, ticket: u64) -> bool {
        let job = self.inner.lock().queue.remove(&ticket);
        if let Some(job) = &job {
            job.cancel(JoinError::cancelled(), &self.counters);
        }
        job.is_some()
    }
}
