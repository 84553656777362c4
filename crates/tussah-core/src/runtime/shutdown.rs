//! The end of a runtime, and changes of the number of its workers.
//!
//! # Why nothing is lost at the end
//!
//! The claim: if no worker is left behind in its event, each node that is ever queued is run or dropped, exactly once.
//!
//! *Not twice.* A node is in one queue, and whoever takes it out, by the swap of an injector, the exchange of a ring's head or
//! under a window's lock, owns it. Workers, posters that take back (`rescue`) or drop (`drop_queued`), and the shutdown take in
//! no other way, so it does not matter that they may do so at the same time.
//!
//! *Not lost.* The three who matter do this, in this order:
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
//! Fences have one order. If S comes before P, the poster reads `STOPPED` and drops what it has pushed, unless somebody has
//! taken it, of whom below. If P comes before S, the shutdown's last look comes after the push, and finds the node, unless
//! somebody has taken it. With W in the place of S and the stop flag in that of the phase the same shows that a worker that is
//! taken away leaves nothing in its injector: it sees the node, or the poster sees the flag, which the worker has read as set
//! before its fence. A poster that reads a flag that the shutdown has set, but not the phase, takes back and injects again: its
//! second fence comes after S, so it reads `STOPPED` then.
//!
//! Who has taken a node runs it, drops it, or queues it again:
//!
//! - *A worker* has it in its ring. If it does not come to run it, it leaves it there when it sees `STOPPED`, and the shutdown
//!   finds it after the join; or it injects it, and is a poster.
//! - *A poster* that takes back injects, and one that drops, drops. What a drop queues (a future's drop wakes a thread, the last
//!   ticket of a request lets its colors go) is injected in turn, and the outermost `drop_queued` of that OS thread goes on until
//!   it sees every queue empty; its own pushes it sees.
//!
//! An inline entry has its color in no queue. What is posted to it meanwhile waits in the inbox, and who leaves the color
//! injects it, and is a poster.
//!
//! If a worker ends because of the shutdown, W stands in for S, since it comes after the flag was set and before the join. S alone
//! carries what is posted to the place of a worker that has ended before. The models in `shutdown_loom_tests.rs` fail
//! without P, without W and without S.
//!
//! # Why nobody uses the memory of a runtime that is freed
//!
//! The phase (`is_open`) only says what is refused. An OS thread may stand still between its look at the phase and all that it
//! does then, for as long as the whole shutdown takes, so no proof of this can rest on the phase, and none does. It rests on the
//! count of references to the runtime: whoever calls into the runtime has something that keeps it until the call returns.
//!
//! | who calls | what keeps the runtime until then |
//! |---|---|
//! | `Runtime`, `Handle`, `Idle`; a worker, also one that is left behind | a counted reference |
//! | `ColorRef`, `Source`, `Io` | a counted reference, given back after the handle to the cell, or the slot |
//! | `Colored`, and `With` and `WithAll`, which borrow some | the value's counted reference, given back when its last handle is gone and its color is left |
//! | `JoinHandle`, `AbortHandle`, a waker, wherever it is kept | the thread, which is in use: they have a reference to it, and give that back last |
//! | who drops what is queued, or lets colors go, in one of these calls | what keeps it for the outermost call |
//! | a timer, a ring or a clock that has to wake a worker; the watchdog | a weak reference, counted for the length of the call |
//! | a job of the blocking pool, and its handle | nothing: they have the pool, which is counted by itself |
//!
//! That an object in use keeps the runtime, whenever it was allocated, is proved in `slab/mod.rs`. What is refused too late is
//! harmless by its own rules: an event or a thread is dropped by who injects it (above), a timer finds its shard closed, a
//! descriptor the table, an operation on a file the ring, a job the pool, each under the lock under which these were closed.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::shared::{DRAINING, OPEN, STOPPED, Shared};
use crate::color::held::{assert_may_wait, may_wait};
use crate::loom::atomic::{Ordering, fence};
use crate::loom::is_finished;
use crate::quietly::quietly;
use crate::task::Header;

/// How long the shutdown waits for an event that does not end.
const STUCK_LIMIT: Duration = Duration::from_secs(1);

/// How long the shutdown waits, for each worker, until the kernel has carried out or given up the file operations that are under way.
const FILES_LIMIT: Duration = Duration::from_secs(1);

/// How often the shutdown looks whether the queues are empty.
const DRAIN_POLL: Duration = Duration::from_micros(200);

/// What a shutdown could not do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Whether all that was queued ran. What waits in the queues of stages does not count: it waits for their handlers, and is dropped with its callbacks. A
    /// network is drained before its runtime, by `Network::drain`.
    pub drained: bool,
    /// Threads whose futures were dropped before their end: they were waiting for something, were queued, or had not begun.
    pub threads_dropped: usize,
    /// Jobs of the blocking pool that did not run.
    pub jobs_dropped: usize,
    /// Workers that were in one event for more than a second after they were told to end, and were left behind. If there are
    /// any, what is queued and the threads that wait are not dropped unless they wait for a file, who joins one of the others waits
    /// for ever, and the runtime's memory is never given back.
    pub workers_stuck: usize,
}

/// See `Handle::set_workers`.
pub(crate) fn set_workers(shared: &Arc<Shared>, workers: usize) -> io::Result<()> {
    let most = shared.workers_max();
    if !(1..=most).contains(&workers) {
        let text = format!("expected 1 to {most} workers, got {workers}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    // An event must not wait for the lock: who has it may be waiting for this event's worker to end.
    let os_threads = if may_wait() {
        Some(shared.os_threads.lock())
    } else {
        shared.os_threads.try_lock()
    };
    let mut os_threads = os_threads.ok_or_else(|| busy("another change is going on"))?;
    if !shared.is_open() {
        return Err(ended());
    }
    let before = shared.workers.load(Ordering::Relaxed);
    for place in before..workers {
        // A worker that was taken away from this place may still be in its last event.
        if let Some(old) = os_threads.get_mut(place).and_then(Option::take) {
            if !may_wait() && !is_finished(&old) {
                os_threads[place] = Some(old);
                return Err(busy(
                    "a worker that was taken away is still in its last event",
                ));
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

/// See `Drop for Runtime`: without a second panic where the stack is unwound, which would end the process. Whoever can't wait then leaves the end
/// to an OS thread.
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
    // Without an OS thread the runtime goes on, as one that is leaked.
    drop(std::thread::Builder::new().name(name).spawn(ends));
}

/// See `Runtime::shutdown`. Does nothing the second time.
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
    // Not before: it sees to the timers of an event that holds its worker.
    drop(shared.watchdog.lock().take());
    shared.phase.store(STOPPED, Ordering::Release);
    // Pairs with the fence in `inject`; see the module.
    fence(Ordering::SeqCst);
    report.workers_stuck = stop_workers(shared);
    shared.sources.close();
    if report.workers_stuck == 0 {
        for place in 0..shared.places() {
            shared.place(place).shard.close();
        }
        shared.drop_queued();
        drop_threads(shared);
        close_files(shared);
        shared.close_slab();
    } else {
        // Also who is outside of the workers waits for operations on files. Whatever the worker's event owns, and all that
        // nobody has dropped, is in the runtime's memory: the slab stays open, so that is never given back.
        close_files(shared);
    }
    report.threads_dropped = shared.threads_dropped.load(Ordering::Relaxed);
    report
}

/// Ends what is under way on files.
fn close_files(shared: &Shared) {
    for place in 0..shared.places() {
        shared.place(place).files.close(FILES_LIMIT);
    }
}

/// Waits until nothing runs and nothing is queued.
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

/// Ends the workers; says how many did not end.
fn stop_workers(shared: &Shared) -> usize {
    // Under the lock, no worker is started that would not see the flag.
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
            // A worker's loop catches what events throw; a panic here would be a defect of ours, and was printed.
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
    // What is dropped may end others: a handle's drop aborts them. So until a round ends none. One whose color somebody
    // outside has entered ends when that one leaves.
    while dropped != Some(shared.threads_dropped.load(Ordering::Relaxed)) {
        dropped = Some(shared.threads_dropped.load(Ordering::Relaxed));
        let mut found = Vec::new();
        shared.slab.for_each_task_slot(|slot| {
            let thread = slot.cast::<Header>();
            // SAFETY: the slab says that the slot is mapped, and its state word is always one.
            let header = unsafe { thread.as_ref() };
            if header.retain_if_alive() {
                found.push(thread);
            }
        });
        for thread in found {
            Header::abort(thread);
            // SAFETY: we have a reference, and give it back.
            unsafe { Header::release(thread) }
        }
    }
}
