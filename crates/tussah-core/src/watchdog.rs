//! The watchdog: reports an event that holds its worker for too long.
//!
//! An OS thread of its own, since a worker that is held can't look at itself, and all may be held. It wakes twice per limit
//! and compares numbers that the workers write anyway.

use std::panic::Location;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::quietly::quietly;
use crate::runtime::Shared;
use crate::stats::Site;

/// An event that holds its worker.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Stuck {
    /// Which worker.
    pub worker: usize,
    /// How long it has been in the event, at least.
    pub held: Duration,
    /// The type of the closure or future; its path names the function.
    pub event: Option<&'static str>,
    /// Where the event was posted or spawned.
    pub location: Option<&'static Location<'static>>,
}

impl std::fmt::Display for Stuck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "worker {} has been in one event for {:?}",
            self.worker, self.held
        )?;
        if let Some(event) = self.event {
            write!(f, ": {event}")?;
        }
        match self.location {
            Some(location) => write!(f, ", from {location}"),
            None => Ok(()),
        }
    }
}

/// What is called with each event that is found to hold its worker, once an event.
pub(crate) type Report = Box<dyn Fn(&Stuck) + Send + Sync>;

/// The running watchdog; dropping it ends it.
pub(crate) struct Watchdog {
    stop: Arc<(Mutex<bool>, Condvar)>,
    os_thread: Option<std::thread::JoinHandle<()>>,
}

/// What was seen of a worker.
#[derive(Clone, Copy)]
struct Seen {
    events: u64,
    since: Instant,
    reported: bool,
}

impl Watchdog {
    pub(crate) fn start(
        shared: &Arc<Shared>,
        limit: Duration,
        report: Report,
    ) -> std::io::Result<Self> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let (weak, stopped) = (Arc::downgrade(shared), stop.clone());
        let os_thread = std::thread::Builder::new()
            .name(format!("{}-watchdog", shared.name))
            .spawn(move || watch(&weak, limit, &report, &stopped))?;
        Ok(Self {
            stop,
            os_thread: Some(os_thread),
        })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
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

fn watch(shared: &Weak<Shared>, limit: Duration, report: &Report, stop: &(Mutex<bool>, Condvar)) {
    let mut seen: Vec<Seen> = Vec::new();
    let mut stopped = stop.0.lock();
    while !*stopped {
        stop.1.wait_for(&mut stopped, limit / 2);
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let found = look(&shared, &mut seen, Instant::now(), limit);
        // Without the lock: what is called may end the runtime, and so the watchdog.
        MutexGuard::unlocked(&mut stopped, || {
            for stuck in found {
                quietly(|| report(&stuck));
            }
            drop(shared);
        });
    }
}

/// One look at all workers: who has been in the same event since `limit`.
fn look(shared: &Shared, seen: &mut Vec<Seen>, now: Instant, limit: Duration) -> Vec<Stuck> {
    let mut found = Vec::new();
    for worker in 0..shared.places() {
        let remote = shared.place(worker);
        let events = remote.running.events();
        let new = Seen {
            events,
            since: now,
            reported: false,
        };
        if seen.len() == worker {
            seen.push(new);
        }
        let before = &mut seen[worker];
        if before.events != events || !remote.is_in_event() {
            *before = new;
        } else if !before.reported && now - before.since >= limit {
            before.reported = true;
            let site = remote.running.site();
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
