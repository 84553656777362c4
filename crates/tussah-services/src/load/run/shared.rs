//! The state that the clients of a run share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tussah::Handle;
use tussah::sync::{Notify, Semaphore};

use super::client_tally::Record;
use super::connect::{Dial, Failure};
use super::requests::Requests;
use super::settings::Settings;
use crate::load::report::fairness::Slots;
use crate::load::report::tally::Tally;

/// Bound, in connections: the maximum number being established at the same time before the
/// measurement, so that the server's accept queue does not overflow.
const CONNECTING_MAX: usize = 16;

/// The pause after each connection, which limits them to 10,000 per second.
pub(in crate::load) const CONNECT_PAUSE: Duration = Duration::from_micros(1_500);

/// A run, as its clients see it. Times are nanoseconds since `epoch`.
pub(in crate::load) struct Run {
    pub(in crate::load) settings: Settings,
    pub(in crate::load) dial: Dial,
    pub(in crate::load) requests: Requests,
    pub(in crate::load) budget: Option<Budget>,
    pub(in crate::load) slots: Slots,
    pub(in crate::load) connecting: Semaphore,
    epoch: Instant,
    handle: Handle,
    /// The time at which clients begin, and the start and end of the measurement; `u64::MAX` while
    /// unknown.
    begun_ns: AtomicU64,
    from_ns: AtomicU64,
    until_ns: AtomicU64,
    /// The numbers of clients that have tried to connect, that have connected, and that have ended.
    arrived: AtomicUsize,
    connected: AtomicUsize,
    ended: AtomicUsize,
    /// Notified when clients may begin, when all have tried to connect, and when all have ended.
    begin: Notify,
    progress: Notify,
    tallies: Box<[Mutex<Tally>]>,
    records: Mutex<Vec<Record>>,
    /// One error message of each kind and the number of errors before the measurement.
    samples: Mutex<BTreeMap<&'static str, String>>,
    failed_before: Mutex<BTreeMap<&'static str, u64>>,
}

impl Run {
    pub(in crate::load) fn new(
        settings: Settings,
        dial: Dial,
        requests: Requests,
        handle: Handle,
    ) -> Self {
        let ns = |duration: Duration| duration.as_nanos() as u64;
        let slots = Slots::new(settings.window.map(ns), settings.duration.map(ns));
        Self {
            budget: settings.requests.map(Budget::new),
            slots,
            connecting: Semaphore::new(CONNECTING_MAX),
            epoch: Instant::now(),
            begun_ns: AtomicU64::new(u64::MAX),
            from_ns: AtomicU64::new(u64::MAX),
            until_ns: AtomicU64::new(u64::MAX),
            arrived: AtomicUsize::new(0),
            connected: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            begin: Notify::new(),
            progress: Notify::new(),
            tallies: (0..settings.workers)
                .map(|_| Mutex::new(Tally::new()))
                .collect(),
            records: Mutex::new(Vec::with_capacity(settings.connections)),
            samples: Mutex::default(),
            failed_before: Mutex::default(),
            settings,
            dial,
            requests,
            handle,
        }
    }
}

/// The run's clock.
impl Run {
    pub(in crate::load) fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    pub(in crate::load) fn instant(&self, ns: u64) -> Instant {
        self.epoch + Duration::from_nanos(ns)
    }

    /// Returns the time since the start of the measurement, if `ns` is within it.
    pub(in crate::load) fn since(&self, ns: u64) -> Option<u64> {
        let until_ns = self.until_ns.load(Ordering::Relaxed);
        let since_ns = ns.checked_sub(self.from_ns.load(Ordering::Relaxed))?;
        (ns <= until_ns).then_some(since_ns)
    }

    /// Returns the end of the measurement, or the current time.
    pub(in crate::load) fn end_ns(&self) -> u64 {
        self.until_ns.load(Ordering::Relaxed).min(self.now_ns())
    }

    /// Starts the measurement, up to a given end.
    pub(in crate::load) fn measure(&self, from_ns: u64, until_ns: u64) {
        self.until_ns.store(until_ns, Ordering::Relaxed);
        self.from_ns.store(from_ns, Ordering::Relaxed);
    }

    /// Ends the measurement at a time.
    pub(in crate::load) fn finish(&self, at_ns: u64) {
        self.until_ns.fetch_min(at_ns, Ordering::Relaxed);
    }
}

/// The start and end of clients.
impl Run {
    /// Records that a client has connected, before the measurement.
    pub(in crate::load) fn connected(&self) {
        self.connected.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether none of the first clients could connect, so that no other client will.
    pub(in crate::load) fn is_hopeless(&self) -> bool {
        let first = CONNECTING_MAX.min(self.settings.connections);
        self.arrived_count() >= first && self.connected.load(Ordering::Relaxed) == 0
    }

    /// Records that a client has tried to connect.
    pub(in crate::load) fn arrived(&self) {
        // Pairs with `arrived_count`. A client that has connected is counted there before it counts
        // as arrived.
        self.arrived.fetch_add(1, Ordering::Release);
        self.progress.notify_one();
    }

    /// Lets the clients begin, unless they have already begun.
    pub(in crate::load) fn start(&self) {
        if self.begun_ns.load(Ordering::Relaxed) == u64::MAX {
            // Pairs with `begun`.
            self.begun_ns.store(self.now_ns(), Ordering::Release);
            self.begin.notify_waiters();
        }
    }

    /// Waits until clients may begin, and returns that time.
    pub(in crate::load) async fn begun(&self) -> u64 {
        loop {
            let begin = self.begin.notified();
            // Pairs with `start`.
            let begun_ns = self.begun_ns.load(Ordering::Acquire);
            if begun_ns != u64::MAX {
                return begun_ns;
            }
            begin.await;
        }
    }

    /// Records that a client has ended.
    pub(in crate::load) fn close(&self, record: Record) {
        lock(&self.records).push(record);
        self.ended.fetch_add(1, Ordering::Relaxed);
        self.progress.notify_one();
    }

    /// Waits until the number of arrived or ended clients may have changed.
    pub(in crate::load) async fn progressed(&self) {
        self.progress.notified().await;
    }

    pub(in crate::load) fn arrived_count(&self) -> usize {
        // Pairs with `arrived`.
        self.arrived.load(Ordering::Acquire)
    }

    pub(in crate::load) fn ended_count(&self) -> usize {
        self.ended.load(Ordering::Relaxed)
    }
}

/// The counts of a run.
impl Run {
    /// Counts something in the worker's own tally, which no other worker changes.
    pub(in crate::load) fn tally<R>(&self, count: impl FnOnce(&mut Tally) -> R) -> R {
        let worker = self.handle.worker_here().unwrap_or(0);
        count(&mut lock(&self.tallies[worker % self.tallies.len()]))
    }

    /// Reads the tallies of all workers, one after the other.
    pub(in crate::load) fn tallies(&self, mut look: impl FnMut(&Tally)) {
        self.tallies.iter().for_each(|tally| look(&lock(tally)));
    }

    pub(in crate::load) fn records(&self) -> MutexGuard<'_, Vec<Record>> {
        lock(&self.records)
    }

    /// Keeps the message of the first error of its kind.
    pub(in crate::load) fn sample(&self, failure: &Failure) {
        let Some(error) = &failure.error else { return };
        let mut samples = lock(&self.samples);
        let sample = samples.entry(failure.fault.name());
        sample.or_insert_with(|| error.to_string());
    }

    pub(in crate::load) fn samples(&self) -> BTreeMap<&'static str, String> {
        lock(&self.samples).clone()
    }

    /// Records that a client could not connect before the measurement.
    pub(in crate::load) fn failed_before(&self, failure: &Failure) {
        *lock(&self.failed_before)
            .entry(failure.fault.name())
            .or_default() += 1;
        self.sample(failure);
    }

    pub(in crate::load) fn failures_before(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.failed_before).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The counts are valid even after a panic of a thread that held the lock.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of requests still to be made.
#[derive(Debug)]
pub(in crate::load) struct Budget(AtomicU64);

impl Budget {
    fn new(count: u64) -> Self {
        Self(AtomicU64::new(count))
    }

    /// Claims a share of the remaining requests for a client. Shares keep claims rare and still let
    /// all clients end together. Zero means that nothing remains.
    pub(in crate::load) fn claim(&self, clients: u64) -> u64 {
        let share = |left: u64| (left / (clients * 8)).max(1).min(left);
        let order = Ordering::Relaxed;
        let left = self
            .0
            .fetch_update(order, order, |left| Some(left - share(left)));
        share(left.expect("it always gives a new value"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_shared_and_spent() {
        let budget = Budget::new(1000);
        assert_eq!(budget.claim(10), 12);
        let mut left = 988;
        loop {
            match budget.claim(10) {
                0 => break,
                lot => left -= lot,
            }
        }
        assert_eq!(left, 0);
        assert_eq!(budget.claim(10), 0);
    }
}
