//! A limited resource with a name, which counts the holders of its permits and the waiting futures.

use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Instant;

use parking_lot::Mutex;
use tussah_core::{consume_budget, quietly};

use crate::stage::observe::Digest;
use crate::time::now;

/// A limit on concurrent use of a scarce resource: a pool of connections, licenses, another server.
///
/// It has a name, and counts how many futures hold a permit and how many wait for one. Clones share
/// the permits.
///
/// Waiters get permits in order of arrival, and no later arrival overtakes them: a returned permit
/// is handed to the longest waiter. Waiters of a [`Semaphore`](super::Semaphore) may be overtaken.
///
/// A limit works on any executor and across runtimes. Times are measured by the clock of the
/// runtime in which a permit is acquired and dropped ([`now`]).
///
/// # Examples
///
/// ```
/// use tussah::sync::Limit;
///
/// # futures_lite::future::block_on(async {
/// let connections = Limit::new("db", 8);
/// let permit = connections.acquire().await;
/// // ask the database
/// assert_eq!(connections.stats().in_use, 1);
/// drop(permit);
/// let stats = connections.stats();
/// assert_eq!((stats.in_use, stats.waiting, stats.acquired), (0, 0, 1));
/// assert!(stats.hold.percentile(990) < std::time::Duration::from_secs(60));
/// # });
/// ```
#[derive(Clone)]
pub struct Limit {
    shared: Arc<Shared>,
}

struct Shared {
    name: Arc<str>,
    /// Wakers are foreign code, which never runs under this lock.
    state: Mutex<State>,
}

/// While any future waits, no permit is free.
struct State {
    permits: usize,
    /// Permits that are held, or have been handed to a future that has not been polled since. This
    /// exceeds `permits` after `permits` was lowered.
    in_use: usize,
    /// The wakers of waiting futures, one for each, by tickets in order of arrival. A future whose
    /// ticket is missing has been handed a permit.
    queue: BTreeMap<u64, Waker>,
    next_ticket: u64,
    acquired: u64,
    wait: Digest,
    hold: Digest,
}

impl State {
    /// Takes a permit for a waiter that arrived at `begun`, if one is free.
    fn acquire(&mut self, begun: Instant, now: Instant) -> bool {
        let is_taken = self.take();
        if is_taken {
            self.count(begun, now);
        }
        is_taken
    }

    /// Counts a permit for a waiter that arrived at `begun`.
    fn count(&mut self, begun: Instant, now: Instant) {
        self.acquired += 1;
        self.wait.add(ns_between(begun, now), 1);
    }

    /// Takes a permit, if one is free.
    fn take(&mut self) -> bool {
        let is_free = self.in_use < self.permits;
        self.in_use += usize::from(is_free);
        is_free
    }

    /// Hands a free permit to the longest waiter.
    fn hand_over(&mut self) -> Option<Waker> {
        if self.queue.is_empty() || !self.take() {
            return None;
        }
        self.queue.pop_first().map(|(_, waker)| waker)
    }
}

impl Limit {
    /// Creates a limit with `permits` permits. With zero, every future waits until
    /// [`set_permits`](Self::set_permits) adds some.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, permits: usize) -> Self {
        let state = State {
            permits,
            in_use: 0,
            queue: BTreeMap::new(),
            next_ticket: 0,
            acquired: 0,
            wait: Digest::default(),
            hold: Digest::default(),
        };
        Self {
            shared: Arc::new(Shared {
                name: name.into(),
                state: Mutex::new(state),
            }),
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Waits for a permit. The future takes its place in the queue when it is first polled.
    ///
    /// A thread that holds a permit and waits for another permit of the same limit can deadlock.
    ///
    /// # Cancellation
    ///
    /// Dropping the future gives up its place in the queue. If the future had been handed a permit,
    /// the permit goes to the next future in the queue.
    pub async fn acquire(&self) -> LimitPermit {
        consume_budget().await;
        if let Some(permit) = self.try_acquire() {
            return permit;
        }
        let mut place = Place {
            shared: &self.shared,
            begun: now(),
            ticket: None,
        };
        let since = poll_fn(|cx| place.poll(cx.waker())).await;
        LimitPermit {
            limit: self.clone(),
            since,
        }
    }

    /// Takes a permit if one is free. It does not overtake waiters: while any future waits, no
    /// permit is free.
    #[must_use]
    pub fn try_acquire(&self) -> Option<LimitPermit> {
        let since = now();
        let is_taken = self.shared.state.lock().acquire(since, since);
        is_taken.then(|| LimitPermit {
            limit: self.clone(),
            since,
        })
    }

    /// Sets the number of permits. Additional permits go to waiters. If more than `permits` are in
    /// use, all holders keep theirs, and no waiter gets one until enough have been returned.
    pub fn set_permits(&self, permits: usize) {
        let mut state = self.shared.state.lock();
        state.permits = permits;
        while let Some(waker) = state.hand_over() {
            drop(state);
            quietly(|| waker.wake());
            state = self.shared.state.lock();
        }
    }

    /// Returns the current state and the counters.
    #[must_use]
    pub fn stats(&self) -> LimitStats {
        let state = self.shared.state.lock();
        LimitStats {
            name: Arc::clone(&self.shared.name),
            permits: state.permits,
            in_use: state.in_use,
            waiting: state.queue.len(),
            acquired: state.acquired,
            wait: state.wait.clone(),
            hold: state.hold.clone(),
        }
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (permits, in_use, waiting) = {
            let state = self.shared.state.lock();
            (state.permits, state.in_use, state.queue.len())
        };
        f.debug_struct("Limit")
            .field("name", &self.name())
            .field("permits", &permits)
            .field("in_use", &in_use)
            .field("waiting", &waiting)
            .finish()
    }
}

/// The state of a [`Limit`] at one moment, and its counters since it was created.
#[derive(Clone, Debug)]
pub struct LimitStats {
    /// The name of the limit.
    pub name: Arc<str>,
    /// The number of permits.
    pub permits: usize,
    /// Permits in use. This exceeds `permits` for a while after `permits` was lowered.
    pub in_use: usize,
    /// Futures waiting for a permit.
    pub waiting: usize,
    /// Permits acquired so far.
    pub acquired: u64,
    /// Times from arrival to the permit; zero for permits that were free. Futures that were dropped
    /// before they had a permit are not counted.
    pub wait: Digest,
    /// Times for which permits were held. Permits that are currently held are not counted.
    pub hold: Digest,
}

/// A permit of a [`Limit`]. Dropping it returns the permit, even during a panic; a leaked permit
/// stays in use forever.
///
/// Move the permit into the closure or thread that does the work. The permit then stays in use
/// until the work has really ended, even if the caller that waits for the result is cancelled.
///
/// ```
/// # tussah::Runtime::builder().workers(1).build().unwrap().block_on(async {
/// let limit = tussah::sync::Limit::new("converter", 1);
/// let permit = limit.acquire().await;
/// let work = tussah::spawn_blocking(move || {
///     let _permit = permit; // returned when the closure ends
/// });
/// work.await.unwrap();
/// assert_eq!(limit.stats().in_use, 0);
/// # });
/// ```
#[must_use = "dropping the permit returns it"]
pub struct LimitPermit {
    limit: Limit,
    since: Instant,
}

impl LimitPermit {
    /// Returns the limit that granted this permit.
    #[must_use]
    pub fn limit(&self) -> &Limit {
        &self.limit
    }
}

impl Drop for LimitPermit {
    fn drop(&mut self) {
        let held_ns = ns_between(self.since, now());
        self.limit.shared.release(Some(held_ns));
    }
}

impl fmt::Debug for LimitPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitPermit")
            .field("limit", &self.limit.name())
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Gives a permit back; `held_ns` is the time for which it was held, or `None` if it was never
    /// taken.
    fn release(&self, held_ns: Option<u64>) {
        let next = {
            let mut state = self.state.lock();
            state.in_use -= 1;
            if let Some(ns) = held_ns {
                state.hold.add(ns, 1);
            }
            state.hand_over()
        };
        if let Some(waker) = next {
            quietly(|| waker.wake());
        }
    }
}

/// A future's place in the queue, given up when this is dropped.
struct Place<'a> {
    shared: &'a Shared,
    begun: Instant,
    ticket: Option<u64>,
}

impl Place<'_> {
    /// Completes with a permit, which then belongs to the caller.
    fn poll(&mut self, waker: &Waker) -> Poll<Instant> {
        let (waker, now) = (waker.clone(), now());
        let mut state = self.shared.state.lock();
        let (polled, unneeded) = match self.ticket {
            None if state.acquire(self.begun, now) => (Poll::Ready(now), waker),
            None => {
                let ticket = state.next_ticket;
                state.next_ticket += 1;
                state.queue.insert(ticket, waker);
                self.ticket = Some(ticket);
                return Poll::Pending;
            }
            Some(ticket) => match state.queue.get_mut(&ticket) {
                Some(known) => (Poll::Pending, mem::replace(known, waker)),
                None => {
                    state.count(self.begun, now);
                    self.ticket = None;
                    (Poll::Ready(now), waker)
                }
            },
        };
        drop(state);
        quietly(|| drop(unneeded));
        polled
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let waker = self.shared.state.lock().queue.remove(&ticket);
        match waker {
            Some(waker) => quietly(|| drop(waker)),
            None => self.shared.release(None),
        }
    }
}

fn ns_between(begin: Instant, end: Instant) -> u64 {
    let between = end.saturating_duration_since(begin);
    u64::try_from(between.as_nanos()).unwrap_or(u64::MAX)
}
