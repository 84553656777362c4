//! The watchdog: reports an event, or a waker, that holds its worker for too long.
//!
//! An OS thread of its own, since a worker that is held can't look at itself, and all may be held. A waker of another executor is
//! called by a worker between two turns, when descriptors are ready, files are done or timers have run out, and may block there. It wakes twice per limit
//! and compares numbers that the workers write anyway. Where descriptors are waited for it wakes every 10 ms while anything
//! runs, since a worker that is held holds up its driver too: others see to that, or, if there are none who could, the watchdog itself. Once it finds all workers parked for long enough it sleeps until one
//! runs again, so that an idle runtime costs nothing.

use std::panic::Location;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::quietly::quietly;
use crate::runtime::Shared;
use crate::stats::Site;

/// An event that holds its worker, or a waker that does.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Stuck {
    /// Which worker.
    pub worker: usize,
    /// How long it has been in the event, at least.
    pub held: Duration,
    /// The type of the closure or future; its path names the function. `None`: no event holds the worker, but one of the wakers
    /// that it calls when descriptors are ready, files are done or timers have run out. One that blocks is another executor's.
    pub event: Option<&'static str>,
    /// Where the event was posted or spawned.
    pub location: Option<&'static Location<'static>>,
}

impl std::fmt::Display for Stuck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { worker, held, .. } = self;
        match self.event {
            Some(event) => write!(
                f,
                "worker {worker} has been in one event for {held:?}: {event}"
            )?,
            None => write!(f, "worker {worker} has been calling wakers for {held:?}")?,
        }
        match self.location {
            Some(location) => write!(f, ", from {location}"),
            None => Ok(()),
        }
    }
}

/// What is called with each event or waker that is found to hold its worker, once for each.
pub(crate) type Report = Box<dyn Fn(&Stuck) + Send + Sync>;

/// The running watchdog; dropping it ends it.
pub(crate) struct Watchdog {
    orders: Arc<(Mutex<Orders>, Condvar)>,
    os_thread: Option<std::thread::JoinHandle<()>>,
}

/// What the watchdog is told.
#[derive(Default)]
struct Orders {
    stop: bool,
    /// It sleeps without a limit.
    asleep: bool,
}

/// How often the watchdog looks while descriptors are waited for and something runs.
const LOOK: Duration = Duration::from_millis(10);

/// How long to wait until the next look: `LOOK` after one that found something running, then twice as long each time; `longest` where
/// nothing is waited for.
fn next_pause(before: Duration, longest: Duration, waits: bool, runs: bool) -> Duration {
    match (waits, runs) {
        (false, _) => longest,
        (true, true) => LOOK.min(longest),
        (true, false) => (before * 2).min(longest),
    }
}

/// What was seen of a worker.
#[derive(Clone, Copy)]
struct Seen {
    begun: u64,
    since: Instant,
    reported: bool,
    /// It has been held since the last look, something may come for those who wait outside, and no other worker would see that.
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
            .spawn(move || watch(&weak, limit, &report, &ordered))?;
        Ok(Self {
            orders,
            os_thread: Some(os_thread),
        })
    }

    /// Somebody runs again.
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
        // A report may end the runtime; its OS thread can't wait for itself.
        let here = std::thread::current().id();
        if let Some(os_thread) = self.os_thread.take()
            && os_thread.thread().id() != here
        {
            // What it could have thrown is the report function's, and was printed.
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
    let mut seen: Vec<Seen> = Vec::new();
    let mut pause = limit / 2;
    let mut orders = orders.lock();
    while !orders.stop {
        if orders.asleep {
            changed.wait(&mut orders);
            // What was seen before its sleep says nothing about how long an event has gone on.
            seen.clear();
            pause = Duration::ZERO;
            continue;
        }
        changed.wait_for(&mut orders, pause.max(LOOK.min(limit / 2)));
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let runs = shared.idle.all_parked().is_none();
        if !runs && pause >= limit / 2 {
            // With the lock, which `wake` takes: it comes after this.
            orders.asleep = shared.idle.sleep_watchdog();
        }
        pause = next_pause(pause, limit / 2, shared.waits_for_descriptors(), runs);
        // Without the lock: what is called may end the runtime, and so the watchdog.
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

/// One look at all workers: who has been in the same event since `limit`. Sees to it that somebody keeps watch over the timers
/// of a worker that has been in the same event since the last look.
fn look(shared: &Shared, seen: &mut Vec<Seen>, now: Instant, limit: Duration) -> Vec<Stuck> {
    let mut found = Vec::new();
    for worker in 0..shared.places() {
        let remote = shared.place(worker);
        let begun = remote.begun();
        let new = Seen {
            begun,
            since: now,
            reported: false,
            alone: false,
        };
        let Some(before) = seen.get_mut(worker) else {
            seen.push(new);
            continue;
        };
        if before.begun != begun || remote.steps().is_multiple_of(2) {
            *before = new;
            continue;
        }
        let in_event = remote.is_in_event();
        let waits = shared.waits(worker) || remote.shard.next_tick() != u64::MAX;
        if !in_event || (waits && shared.idle.unwatched()) {
            // Who keeps watch looks after the timers and the driver, too. A worker that is held by a waker may count as one who
            // searches, so that nobody keeps watch though the runtime seems to be watched.
            shared.call_watch();
        }
        before.alone = waits && !(shared.stealing && shared.idle.any_parked());
        if !before.reported && now - before.since >= limit {
            before.reported = true;
            let site = in_event.then(|| remote.running.site()).flatten();
            found.push(Stuck {
                worker,
                held: now - before.since,
                event: site.map(|site: Site| site.name),
                location: site.and_then(|site| site.location),
            });
        }
    }
    found
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::task::{Context, Wake, Waker};

    use super::*;
    use crate::time::{Sleep, now};

    struct Fired(AtomicBool);

    impl Wake for Fired {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }

    /// A runtime with an event that waits for its own timer, and tells when it has begun; nothing else is queued, and before it
    /// began all workers slept for good.
    fn held_by_a_timer() -> (crate::Runtime, crate::JoinHandle<()>, mpsc::Receiver<()>) {
        let runtime = crate::Runtime::builder()
            .workers(2)
            .watchdog(Duration::from_millis(5), |_| ())
            .build()
            .expect("workers start");
        let idle = &runtime.handle().shared.idle;
        while !(idle.all_parked().is_some() && idle.unwatched()) {
            std::thread::yield_now();
        }
        let (begin, begun) = mpsc::channel();
        let held = runtime.spawn(async move {
            let fired = Arc::new(Fired(AtomicBool::new(false)));
            let waker = Waker::from(fired.clone());
            let mut sleep = pin!(Sleep::new_until(now() + Duration::from_millis(1)));
            let polled = sleep.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending(), "the timer is set");
            let _ = begin.send(());
            while !fired.0.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        });
        (runtime, held, begun)
    }

    #[test]
    fn a_timer_of_a_worker_that_nobody_watches_fires() {
        let (runtime, held, _begun) = held_by_a_timer();
        runtime.block_on(held).expect("no panic");
    }

    #[test]
    fn a_timer_of_a_worker_that_nobody_watches_fires_while_the_runtime_drains() {
        let (runtime, _held, begun) = held_by_a_timer();
        begun.recv().expect("it runs");
        assert!(runtime.shutdown(Duration::from_secs(60)).drained);
    }

    /// The only worker is held until a timer of somebody outside has run out.
    #[test]
    fn a_timer_of_an_only_worker_that_is_held_fires() {
        let runtime = crate::Runtime::builder()
            .workers(1)
            .watchdog(Duration::from_millis(5), |_| ())
            .build()
            .expect("workers start");
        let (begin, begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let held = runtime.spawn(async move {
            begin.send(()).expect("the test listens");
            let _ = released.recv();
        });
        begun.recv().expect("it runs");
        runtime.block_on(Sleep::new_until(now() + Duration::from_millis(1)));
        drop(release);
        runtime.block_on(held).expect("no panic");
    }

    /// Once it sleeps because nothing runs, it is woken by the next event, which holds its worker until it is reported.
    #[test]
    fn an_event_after_a_time_without_any_is_reported() {
        let reported = Arc::new(AtomicBool::new(false));
        let told = reported.clone();
        let runtime = crate::Runtime::builder()
            .workers(1)
            .watchdog(Duration::from_millis(2), move |_| {
                told.store(true, Ordering::Release);
            })
            .build()
            .expect("workers start");
        for _ in 0..3 {
            while !runtime.handle().shared.idle.watchdog_sleeps() {
                std::thread::yield_now();
            }
            let reported = reported.clone();
            let held = runtime.spawn(async move {
                while !reported.swap(false, Ordering::AcqRel) {
                    std::thread::yield_now();
                }
            });
            runtime.block_on(held).expect("no panic");
        }
    }
}
