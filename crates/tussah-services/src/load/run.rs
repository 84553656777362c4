//! What the clients of a run share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tussah::Handle;
use tussah::sync::{Notify, Semaphore};

use super::dial::{Dial, Failure};
use super::fairness::Slots;
use super::ledger::Record;
use super::requests::Requests;
use super::settings::Settings;
use super::tally::Tally;

/// Bound, in connections: how many are made at a time before the measurement, so that the server's queue of new ones does not overflow.
const CONNECTING_MAX: usize = 16;

/// How long each of these is followed by a pause, which makes them 10,000 a second.
pub(super) const CONNECT_PAUSE: Duration = Duration::from_micros(1_500);

/// A run, as its clients see it. Times are nanoseconds since `epoch`.
pub(super) struct Run {
    pub(super) settings: Settings,
    pub(super) dial: Dial,
    pub(super) requests: Requests,
    pub(super) budget: Option<Budget>,
    pub(super) slots: Slots,
    pub(super) connecting: Semaphore,
    epoch: Instant,
    handle: Handle,
    /// When clients began to make requests, and those that are counted begin and end; `u64::MAX` as long as it is not known.
    begun_ns: AtomicU64,
    from_ns: AtomicU64,
    until_ns: AtomicU64,
    /// Clients that have tried to connect, that could, and that have ended.
    arrived: AtomicUsize,
    connected: AtomicUsize,
    ended: AtomicUsize,
    /// Told when clients may begin; when all have tried to connect; when all have ended.
    begin: Notify,
    progress: Notify,
    tallies: Box<[Mutex<Tally>]>,
    records: Mutex<Vec<Record>>,
    /// One error of each kind, in words, and how many there were before the measurement.
    samples: Mutex<BTreeMap<&'static str, String>>,
    failed_before: Mutex<BTreeMap<&'static str, u64>>,
}

impl Run {
    pub(super) fn new(settings: Settings, dial: Dial, requests: Requests, handle: Handle) -> Self {
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

/// The clock.
impl Run {
    pub(super) fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    pub(super) fn instant(&self, ns: u64) -> Instant {
        self.epoch + Duration::from_nanos(ns)
    }

    /// How long after the beginning of the measurement a time is, if it is in it.
    pub(super) fn since(&self, ns: u64) -> Option<u64> {
        let until_ns = self.until_ns.load(Ordering::Relaxed);
        let since_ns = ns.checked_sub(self.from_ns.load(Ordering::Relaxed))?;
        (ns <= until_ns).then_some(since_ns)
    }

    /// When the measurement ends, or now.
    pub(super) fn end_ns(&self) -> u64 {
        self.until_ns.load(Ordering::Relaxed).min(self.now_ns())
    }

    /// Counts from now on, until a time.
    pub(super) fn measure(&self, from_ns: u64, until_ns: u64) {
        self.until_ns.store(until_ns, Ordering::Relaxed);
        self.from_ns.store(from_ns, Ordering::Relaxed);
    }

    /// Counts nothing that ends later.
    pub(super) fn finish(&self, at_ns: u64) {
        self.until_ns.fetch_min(at_ns, Ordering::Relaxed);
    }
}

/// The clients come and go.
impl Run {
    /// A client has connected, before the measurement.
    pub(super) fn connected(&self) {
        self.connected.fetch_add(1, Ordering::Relaxed);
    }

    /// None of the first clients could connect, nor any other.
    pub(super) fn is_hopeless(&self) -> bool {
        let first = CONNECTING_MAX.min(self.settings.connections);
        self.arrived_count() >= first && self.connected.load(Ordering::Relaxed) == 0
    }

    /// A client has tried to connect.
    pub(super) fn arrived(&self) {
        // Partner: `arrived_count`. Who has arrived is among the connected, if it is.
        self.arrived.fetch_add(1, Ordering::Release);
        self.progress.notify_one();
    }

    /// Lets the clients begin, unless they have.
    pub(super) fn start(&self) {
        if self.begun_ns.load(Ordering::Relaxed) == u64::MAX {
            // Partner: `begun`.
            self.begun_ns.store(self.now_ns(), Ordering::Release);
            self.begin.notify_waiters();
        }
    }

    /// Waits until clients may begin; says when that was.
    pub(super) async fn begun(&self) -> u64 {
        loop {
            let begin = self.begin.notified();
            // Partner: `start`.
            let begun_ns = self.begun_ns.load(Ordering::Acquire);
            if begun_ns != u64::MAX {
                return begun_ns;
            }
            begin.await;
        }
    }

    /// A client has ended.
    pub(super) fn close(&self, record: Record) {
        lock(&self.records).push(record);
        self.ended.fetch_add(1, Ordering::Relaxed);
        self.progress.notify_one();
    }

    /// Waits until something may have changed about how many clients have arrived or ended.
    pub(super) async fn progressed(&self) {
        self.progress.notified().await;
    }

    pub(super) fn arrived_count(&self) -> usize {
        // Partner: `arrived`.
        self.arrived.load(Ordering::Acquire)
    }

    pub(super) fn ended_count(&self) -> usize {
        self.ended.load(Ordering::Relaxed)
    }
}

/// What they have done.
impl Run {
    /// Counts something, where no other worker does.
    pub(super) fn tally<R>(&self, count: impl FnOnce(&mut Tally) -> R) -> R {
        let worker = self.handle.worker_here().unwrap_or(0);
        count(&mut lock(&self.tallies[worker % self.tallies.len()]))
    }

    /// Looks at the counts of all workers, one after the other.
    pub(super) fn tallies(&self, mut look: impl FnMut(&Tally)) {
        self.tallies.iter().for_each(|tally| look(&lock(tally)));
    }

    pub(super) fn records(&self) -> MutexGuard<'_, Vec<Record>> {
        lock(&self.records)
    }

    /// Keeps the words of the first error of its kind.
    pub(super) fn sample(&self, failure: &Failure) {
        let Some(error) = &failure.error else { return };
        let mut samples = lock(&self.samples);
        let sample = samples.entry(failure.fault.name());
        sample.or_insert_with(|| error.to_string());
    }

    pub(super) fn samples(&self) -> BTreeMap<&'static str, String> {
        lock(&self.samples).clone()
    }

    /// A client could not connect before the measurement.
    pub(super) fn failed_before(&self, failure: &Failure) {
        *lock(&self.failed_before)
            .entry(failure.fault.name())
            .or_default() += 1;
        self.sample(failure);
    }

    pub(super) fn failures_before(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.failed_before).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is counted is right even if another panicked while it counted.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many requests are still to be made.
#[derive(Debug)]
pub(super) struct Budget(AtomicU64);

impl Budget {
    fn new(count: u64) -> Self {
        Self(AtomicU64::new(count))
    }

    /// Takes a client's share of what is left, so that few clients ask at a time and all end together; 0: nothing is left.
    pub(super) fn claim(&self, clients: u64) -> u64 {
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
