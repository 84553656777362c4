//! Shutdown of a runtime, and changes of the number of its workers.
//!
//! # Why nothing is lost at the end
//!
//! The claim: if no worker is left behind in its event, each node that is ever queued is run or
//! dropped, exactly once.
//!
//! *Not twice.* A node is in one queue. An OS thread takes it out by the swap of an injector, by
//! the exchange of a ring's head, or under a window's lock, and then owns it. Workers, the
//! shutdown, and posters that take nodes back (`rescue`) or drop them (`drop_queued`) take nodes in
//! no other way. So all of them may do so at the same time.
//!
//! *Not lost.* The three parties do this, in this order:
//!
//! ```text
//! poster (`inject`)               worker (`worker_ended`)           shutdown
//!   push to an injector             read its stop flag as set         store STOPPED
//!   fence(SeqCst)          (P)      fence(SeqCst)            (W)      fence(SeqCst)            (S)
//!   read the phase:                 hand over what is in              set the stop flags
//!     STOPPED: drop all that          its queues, by `inject`,        join the workers
//!     is queued anywhere              unless the phase is STOPPED     drop all that is queued anywhere
//!   else read the stop flag:
//!     take back, and inject
//! ```
//!
//! Fences have one order. If S comes before P, the poster reads `STOPPED` and drops the node that
//! it pushed, unless another party has already taken the node (see below). If P comes before S, the
//! shutdown's last look comes after the push and finds the node, unless another party has already
//! taken it.
//!
//! The same argument, with W in the place of S and the stop flag in the place of the phase, shows
//! that a removed worker leaves nothing in its injector. Either the worker sees the node, or the
//! poster sees the flag, which the worker has read as set before its fence. A poster may see the
//! flag that the shutdown has set, but not yet the new phase. It then takes the node back and
//! injects it again: its second fence comes after S, so it now reads `STOPPED`.
//!
//! A party that has taken a node runs it, drops it, or queues it again:
//!
//! - *A worker* has the node in its ring. If it does not run the node, it may leave it there when
//!   it sees `STOPPED`, and the shutdown finds it after the join. Otherwise the worker injects it,
//!   and is then a poster.
//! - *A poster* that takes the node back injects it again; a poster that drops the node has dropped
//!   it. A drop may queue more nodes: dropping a future wakes a thread, and the last ticket of a
//!   request releases its colors. These nodes are injected in turn. The outermost `drop_queued` of
//!   that OS thread continues until it sees every queue empty, and it sees its own pushes.
//!
//! The color of an inline entry is in no queue. Events posted to it in the meantime wait in the
//! inbox. The OS thread that leaves the color injects it, and is then a poster.
//!
//! If a worker ends because of the shutdown, W stands in for S, since it comes after the flag was
//! set and before the join. S alone covers posts to the place of a worker that has ended earlier.
//! The models in `shutdown_loom_tests.rs` fail if any one of P, W and S is removed.
//!
//! # Why the memory of a freed runtime is never used
//! The phase (`is_open`) only decides which calls are refused. An OS thread may stall after it has
//! read the phase, for as long as the whole shutdown takes. So the proof cannot rest on the phase.
//! It rests on the count of references to the runtime: every caller into the runtime holds
//! something that keeps the runtime until the call returns.
//!
//! | caller | what keeps the runtime until then |
//! |---|---|
//! | `Runtime`, `Handle`, `Idle`; a worker, including one that is left behind | a counted reference |
//! | `ColorRef`, `Source`, `Io` | a counted reference, released after the handle to the cell or to the slot |
//! | `Colored`, and `With` and `WithAll`, which borrow colored values | the value's counted reference, released when its last handle is gone and its color is left |
//! | `JoinHandle`, `AbortHandle`, a waker, wherever it is kept | the thread: the handle or waker has a reference to it, and releases that reference last |
//! | code that drops queued nodes, or releases colors, in one of these calls | the reference of the outermost call |
//! | a timer, a ring or a clock that has to wake a worker; the watchdog | a weak reference, counted for the length of the call |
//! | a job of the blocking pool, and its handle | nothing: they keep the pool, which has its own reference count |
//!
//! `slab/mod.rs` proves that an object in use keeps the runtime, whenever it was allocated. A
//! request that the phase should have refused is harmless by its own rules. The poster that injects
//! an event or a thread drops it (see above). A timer, a descriptor, a file operation and a job
//! find their shard, table, ring or pool closed. Each of them checks this under the lock under
//! which it was closed.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::shared::{DRAINING, OPEN, STOPPED, Shared};
use crate::color::held::{assert_may_wait, may_wait};
use crate::loom::atomic::{Ordering, fence};
use crate::loom::is_finished;
use crate::quietly::quietly;
use crate::thread::Header;

/// The time that the shutdown waits for an event that does not end.
const STUCK_LIMIT: Duration = Duration::from_secs(1);

/// The time that the shutdown waits, for each worker, until the kernel has completed or cancelled
/// the file operations in flight.
const FILES_LIMIT: Duration = Duration::from_secs(1);

/// The interval at which the shutdown checks whether the queues are empty.
const DRAIN_POLL: Duration = Duration::from_micros(200);

/// The work that a shutdown did not finish.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// True if every queued event ran. Events in the queues of stages do not count: they wait for
    /// their handlers, and the shutdown drops them and calls their drop callbacks. To let the
    /// handlers finish, call `Network::drain` before you shut the runtime down.
    pub drained: bool,
    /// The number of threads that did not end: their futures were dropped while the threads were
    /// waiting, queued, or not yet started.
    pub threads_dropped: usize,
    /// The number of jobs of the blocking pool that did not run.
    pub jobs_dropped: usize,
    /// The number of workers that were left behind because they stayed in one event for more than a
    /// second after the shutdown had asked them to stop.
    ///
    /// If any worker is left behind, queued events and waiting threads are not dropped, except for
    /// threads that wait for a file. If the shutdown did not drop a waiting thread, joining that
    /// thread never completes. The memory of a runtime that leaves a worker behind is never freed.
    pub workers_stuck: usize,
}

/// Changes the number of workers; see `Handle::set_workers`.
pub(crate) fn set_workers(shared: &Arc<Shared>, workers: usize) -> io::Result<()> {
    let most = shared.workers_max();
    if !(1..=most).contains(&workers) {
        let text = format!("expected 1 to {most} workers, got {workers}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    // An event must not wait for the lock: its holder may be waiting for this event's worker to
    // end.
    let os_threads = if may_wait() {
        Some(shared.os_threads.lock())
    } else {
        shared.os_threads.try_lock()
    };
    let mut os_threads = os_threads.ok_or_else(|| busy("another change is in progress"))?;
    if !shared.is_open() {
        return Err(ended());
    }
    let before = shared.workers.load(Ordering::Relaxed);
    for place in before..workers {
        // The worker previously removed from this place may still be in its last event.
        if let Some(old) = os_threads.get_mut(place).and_then(Option::take) {
            if !may_wait() && !is_finished(&old) {
                os_threads[place] = Some(old);
                return Err(busy("a removed worker is still in its last event"));
            }
            while !is_finished(&old) {
                // The shutdown waits for the lock that we hold.
                if !shared.is_open() {
                    os_threads[place] = Some(old);
                    return Err(ended());
                }
                std::thread::sleep(DRAIN_POLL);
            }
            quietly(|| drop(old.join()));
        }
        let os_thread = shared.start_worker(place)?;
        if os_threads.len() == place {
            os_threads.push(None);
        }
        os_threads[place] = Some(os_thread);
        shared.workers.store(place + 1, Ordering::Release);
        shared.give_up(place);
    }
    for place in workers..before {
        if let Err(error) = shared.adopt(place) {
            (workers..place).for_each(|place| shared.give_up(place));
            return Err(error);
        }
    }
    if workers < before {
        shared.workers.store(workers, Ordering::Release);
        for place in workers..before {
            shared.place(place).stop.store(true, Ordering::Release);
            shared.unpark(place);
        }
    }
    Ok(())
}

fn ended() -> io::Error {
    io::Error::other("the runtime is shut down")
}

fn busy(why: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::WouldBlock,
        format!("the number of workers can't be changed now: {why}"),
    )
}

/// Shuts down a dropped runtime; see `Drop for Runtime`. Avoids a second panic during unwinding,
/// which would abort the process: a caller that must not wait then leaves the shutdown to a new OS
/// thread.
pub(crate) fn drop_runtime(shared: &Arc<Shared>) {
    if may_wait() || !std::thread::panicking() {
        shutdown(shared, Duration::ZERO);
        return;
    }
    let shared = shared.clone();
    let name = format!("{}-shutdown", shared.name);
    let ends = move || {
        shutdown(&shared, Duration::ZERO);
    };
    // Without an OS thread the runtime keeps running, as if it had been leaked.
    drop(std::thread::Builder::new().name(name).spawn(ends));
}

/// Shuts down a runtime; see `Runtime::shutdown`. Does nothing the second time.
#[track_caller]
pub(crate) fn shutdown(shared: &Arc<Shared>, drain: Duration) -> ShutdownReport {
    assert_may_wait("a runtime was shut down, or dropped,");
    let mut report = ShutdownReport::default();
    let open = shared
        .phase
        .compare_exchange(OPEN, DRAINING, Ordering::AcqRel, Ordering::Relaxed);
    if open.is_err() {
        return report;
    }
    let deadline = crate::time::add(Instant::now(), drain);
    report.drained = drain_queues(shared, deadline);
    report.jobs_dropped = shared.blocking.shutdown(deadline).cancelled;
    // The last jobs may have woken threads.
    report.drained = report.drained && drain_queues(shared, deadline);
    // Not earlier: the watchdog serves the timers of a worker that is stuck in an event.
    drop(shared.watchdog.lock().take());
    shared.phase.store(STOPPED, Ordering::Release);
    // Pairs with the fence in `inject`; see the module's documentation.
    fence(Ordering::SeqCst);
    report.workers_stuck = stop_workers(shared);
    shared.sources.close();
    if report.workers_stuck == 0 {
        for place in 0..shared.places() {
            shared.place(place).shard.close();
        }
        shared.drop_queued();
        drop_threads(shared);
        shared.extensions.end();
        close_files(shared);
        shared.close_slab();
    } else {
        // Callers outside of the workers also wait for file operations. The event of the stuck
        // worker may own part of the runtime's memory, and nothing was dropped: the slab stays
        // open, so the memory is never freed.
        close_files(shared);
    }
    report.threads_dropped = shared.threads_dropped.load(Ordering::Relaxed);
    report
}

/// Ends the file operations in flight.
fn close_files(shared: &Shared) {
    for place in 0..shared.places() {
        shared.place(place).files.close(FILES_LIMIT);
    }
}

/// Waits until nothing runs and nothing is queued. Returns false at the deadline.
fn drain_queues(shared: &Shared, deadline: Instant) -> bool {
    loop {
        if shared.is_at_rest() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(DRAIN_POLL);
    }
}

/// Ends the workers. Returns the number of workers that did not end.
fn stop_workers(shared: &Shared) -> usize {
    // This lock ensures that a worker started later would see the flag.
    let mut os_threads = shared.os_threads.lock();
    for place in 0..shared.places() {
        shared.place(place).stop.store(true, Ordering::Release);
        shared.unpark(place);
    }
    let limit = Instant::now() + STUCK_LIMIT;
    let mut stuck = 0;
    for os_thread in os_threads.drain(..).flatten() {
        while !is_finished(&os_thread) && Instant::now() < limit {
            std::thread::sleep(DRAIN_POLL);
        }
        if is_finished(&os_thread) {
            // A worker's loop catches the panics of events. A panic here would be a defect of ours,
            // and has already been printed.
            quietly(|| drop(os_thread.join()));
        } else {
            stuck += 1;
        }
    }
    stuck
}

/// Drops the futures of all threads, each as an event of its color.
fn drop_threads(shared: &Shared) {
    let mut dropped = None;
    // A drop may end other threads, because dropping a handle may abort its thread. So the loop
    // continues until a round ends no thread. A thread whose color an outside caller has entered
    // ends when that caller leaves.
    while dropped != Some(shared.threads_dropped.load(Ordering::Relaxed)) {
        dropped = Some(shared.threads_dropped.load(Ordering::Relaxed));
        let mut found = Vec::new();
        shared.slab.for_each_thread_slot(|slot| {
            let thread = slot.cast::<Header>();
            // SAFETY: the slab reports only mapped slots, and a slot's state word is always
            // initialized.
            let header = unsafe { thread.as_ref() };
            if header.retain_if_alive() {
                found.push(thread);
            }
        });
        for thread in found {
            Header::abort(thread);
            // SAFETY: the reference is ours, and ends here.
            unsafe { Header::release(thread) }
        }
    }
}
