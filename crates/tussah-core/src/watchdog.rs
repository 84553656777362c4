//! The watchdog: reports an event, or a waker, that blocks its worker for too long.
//!
//! It has its own OS thread, because a stuck worker cannot check itself, and all workers may be
//! stuck. Between two turns, when descriptors are ready, file operations have completed or timers
//! are due, a worker calls wakers of other executors. These may block there.
//!
//! While anything runs, the watchdog looks at all workers once per `LOOK`, and compares numbers
//! that the workers write for other reasons. It also serves the timers and descriptors of a stuck
//! worker, since no other worker may be able to. It also interrupts all workers, so that no worker
//! stays in one turn, or ignores its timers, for much longer. If all workers are parked at a look,
//! and have hardly run since the look before, the watchdog sleeps until one runs again. An idle
//! runtime therefore costs nothing.
//!
//! # Precision
//!
//! An event begins between two looks. The watchdog counts the event's time from the second look, so
//! a reported length is at most one look too short. It reports when the counted time reaches the
//! limit. So a report is never early. It is late by at most one look and the time that the system
//! takes to run an OS thread. An event that exceeds the limit by at least one look is therefore
//! always reported. Its end, with its whole length, is reported at the next look.

use std::panic::Location;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::named::named;
use crate::quietly::{Guarded, abort_on_panic, quietly};
use crate::runtime::Shared;
use crate::stats::Site;

/// An event or a waker that blocks a worker.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Stuck {
    /// The number of the worker.
    pub worker: usize,
    /// The time that the worker has spent in the event or in wakers, accurate to one check
    /// interval: 10 ms, or a quarter of the limit if that is shorter.
    pub held: Duration,
    /// True if the event or waker has ended; `held` is then its total duration. This field is false
    /// in the first report. If the event or waker is still running when the runtime stops its
    /// workers, there is no second report.
    pub ended: bool,
    /// The type of the closure or future; its path contains the name of the function. `None` if the
    /// worker is not in an event, but is calling wakers because descriptors are ready, file
    /// operations have completed, or timers have expired. A waker that blocks always belongs to
    /// another executor.
    pub event: Option<&'static str>,
    /// The source location at which the closure was posted or the future was spawned.
    pub location: Option<&'static Location<'static>>,
}

impl std::fmt::Display for Stuck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { worker, held, .. } = self;
        match (self.event, self.ended) {
            (Some(event), false) => {
                write!(
                    f,
                    "worker {worker} has been in one event for {held:?} so far: {event}"
                )?;
            }
            (Some(event), true) => {
                write!(f, "worker {worker} was in one event for {held:?}: {event}")?
            }
            (None, false) => write!(
                f,
                "worker {worker} has been calling wakers for {held:?} so far"
            )?,
            (None, true) => write!(f, "worker {worker} was calling wakers for {held:?}")?,
        }
        match self.location {
            Some(location) => write!(f, ", from {location}"),
            None => Ok(()),
        }
    }
}

/// The user's function, called for each event or waker that blocks its worker: once when it is
/// found, and once when it has ended.
pub(crate) type Report = Box<dyn Fn(&Stuck) + Send + Sync>;

/// The running watchdog. Dropping it ends it.
pub(crate) struct Watchdog {
    orders: Arc<(Mutex<Orders>, Condvar)>,
    os_thread: Option<std::thread::JoinHandle<()>>,
}

/// The commands to the watchdog.
#[derive(Default)]
struct Orders {
    stop: bool,
    /// True if the watchdog sleeps without a time limit.
    asleep: bool,
}

/// The watchdog's interval between two looks while anything runs, if the limit is not short.
const LOOK: Duration = Duration::from_millis(10);

/// With this many parks of workers or fewer between two looks, the watchdog sleeps if all workers
/// are parked. More frequent events need not wake it. Waking it costs as much as a look.
const FEW_PARKS: u64 = 8;

/// Returns the interval between two looks while anything runs, which is the precision of the
/// reports.
fn look_every(limit: Duration) -> Duration {
    LOOK.min(limit / 4)
}

/// The result of [`Idle::all_parked`](crate::worker::Idle::all_parked) at the last look. It stays
/// valid while the watchdog sleeps.
#[derive(Default)]
struct Quiet {
    parks: Option<u64>,
}

impl Quiet {
    /// Notes the result at a look. Returns whether the watchdog may sleep.
    fn look(&mut self, parks: Option<u64>) -> bool {
        let before = std::mem::replace(&mut self.parks, parks);
        let few = |before| parks.is_some_and(|parks| parks - before <= FEW_PARKS);
        before.is_some_and(few)
    }
}

/// The last observation of a worker.
#[derive(Clone, Copy)]
struct Seen {
    begun: u64,
    since: Instant,
    /// The report on the worker's current event, if there was one.
    reported: Option<Stuck>,
    /// True if the worker has been stuck since the last look, outside waiters may need it, and no
    /// other worker would serve them.
    alone: bool,
}

impl Watchdog {
    pub(crate) fn start(
        shared: &Arc<Shared>,
        limit: Duration,
        report: Report,
    ) -> std::io::Result<Self> {
        let orders = Arc::new((Mutex::new(Orders::default()), Condvar::new()));
        let (weak, ordered) = (Arc::downgrade(shared), orders.clone());
        let os_thread = std::thread::Builder::new()
            .name(format!("{}-watchdog", shared.name))
            .spawn(move || abort_on_panic(|| watch(&weak, limit, &Guarded::new(report), &ordered)))
            .map_err(|error| named("cannot start the OS thread of the watchdog", error))?;
        Ok(Self {
            orders,
            os_thread: Some(os_thread),
        })
    }

    /// Wakes the watchdog because a worker runs again.
    #[cold]
    pub(crate) fn wake(&self) {
        self.orders.0.lock().asleep = false;
        self.orders.1.notify_all();
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.orders.0.lock().stop = true;
        self.orders.1.notify_all();
        // A report may end the runtime. In that case, the watchdog's OS thread cannot wait for
        // itself.
        let here = std::thread::current().id();
        if let Some(os_thread) = self.os_thread.take()
            && os_thread.thread().id() != here
        {
            // Any panic came from the report function, and has already been printed.
            drop(os_thread.join());
        }
    }
}

fn watch(
    shared: &Weak<Shared>,
    limit: Duration,
    report: &Report,
    (orders, changed): &(Mutex<Orders>, Condvar),
) {
    let every = look_every(limit);
    let (mut seen, mut quiet) = (Vec::<Seen>::new(), Quiet::default());
    let mut orders = orders.lock();
    let mut stop = false;
    while !stop {
        if orders.asleep && !orders.stop {
            changed.wait(&mut orders);
            // Observations from before the sleep do not show how long an event has run.
            seen.clear();
            continue;
        }
        if !orders.stop {
            changed.wait_for(&mut orders, every);
        }
        // The last look reports the ends of events.
        stop = orders.stop;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        if quiet.look(shared.idle.all_parked()) {
            // This happens under the lock that `wake` takes, so that `wake` comes afterwards.
            orders.asleep = shared.idle.sleep_watchdog();
        }
        // The lock is released, because the called function may end the runtime and therefore the
        // watchdog.
        MutexGuard::unlocked(&mut orders, || {
            for stuck in look(&shared, &mut seen, Instant::now(), limit) {
                quietly(|| report(&stuck));
            }
            for (place, _) in seen.iter().enumerate().filter(|(_, seen)| seen.alone) {
                quietly(|| shared.serve_held(place));
            }
            drop(shared);
        });
    }
}

/// Looks once at all workers. Returns the workers that have been in the same event since `limit`,
/// and those that have left such an event. Makes sure that some worker keeps watch over the timers
/// of a worker that has been in the same event since the last look.
fn look(shared: &Shared, seen: &mut Vec<Seen>, now: Instant, limit: Duration) -> Vec<Stuck> {
    let mut found = Vec::new();
    for worker in 0..shared.places() {
        let remote = shared.place(worker);
        // Its turn may have lasted long, and its timers may be due: see "No starvation" in
        // `worker/README.md`.
        remote.running.interrupt();
        let begun = remote.begun();
        let new = Seen {
            begun,
            since: now,
            reported: None,
            alone: false,
        };
        let Some(before) = seen.get_mut(worker) else {
            seen.push(new);
            continue;
        };
        let held = now - before.since;
        if before.begun != begun || remote.steps().is_multiple_of(2) {
            found.extend(before.reported.map(|stuck| Stuck {
                held,
                ended: true,
                ..stuck
            }));
            *before = new;
            continue;
        }
        let in_event = remote.is_in_event();
        let waits = shared.waits(worker) || remote.shard.next_tick() != u64::MAX;
        if !in_event || (waits && shared.idle.unwatched()) {
            // The watch also serves the timers and the driver. A worker that is stuck in a waker
            // may count as a searcher, so that the runtime seems to have a watch although it has
            // none.
            shared.call_watch();
        }
        before.alone = waits && !(shared.stealing && shared.idle.any_parked());
        if before.reported.is_none() && held >= limit {
            let site = in_event.then(|| remote.running.site()).flatten();
            let stuck = Stuck {
                worker,
                held,
                ended: false,
                event: site.map(|site: Site| site.name),
                location: site.and_then(|site| site.location),
            };
            before.reported = Some(stuck);
            found.push(stuck);
        }
    }
    found
}

#[cfg(all(test, not(loom)))]
mod tests;
