//! A named limit on concurrency, which counts its permits in use and the waiting futures.

mod state;
mod stats;

use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Instant;

use parking_lot::Mutex;
use tussah_core::{consume_budget, quietly};

use crate::stage::control::LimitUse;
use crate::stage::observe::Digest;
use crate::stage::{Class, WaitsFor, note_permit, note_wait, wait_for};
use crate::time::now;

use self::state::{Line, State};
pub use self::stats::{LimitClassStats, LimitStats};

/// A limit on concurrent use of a resource, such as a pool of connections or another server.
///
/// A limit has a name, and counts the permits in use and the futures that wait for a permit. Clones
/// share the permits. If the handlers of a [stage](crate::stage) wait for permits, the stage
/// measures these waits. This also applies to a blocking handler, whose OS thread waits with
/// `block_on(limit.acquire())`. If nearly all events of the stage need a permit, a stage with a
/// target therefore detects sooner, and more reliably, that the limited resource is scarce.
///
/// Waiters get permits in order of arrival: a returned permit goes to the future that has waited
/// longest. In contrast, waiters of a [`Semaphore`](super::Semaphore) may be overtaken. In a limit
/// [with shares](Self::with_shares), the order of arrival applies only within each class.
///
/// A limit works on any executor and across runtimes. A limit measures times with the clock of the
/// runtime in which its caller runs ([`now`]).
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
    /// The number of classes.
    classes: usize,
    /// Wakers are foreign code, which never runs under this lock.
    state: Mutex<State>,
}

impl Limit {
    /// Creates a limit with `permits` permits. If `permits` is 0, each `acquire` waits until
    /// [`set_permits`](Self::set_permits) adds permits.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, permits: usize) -> Self {
        Self::with_shares(name, permits, &[1])
    }

    /// Creates a limit that divides its permits among classes of callers whenever callers of
    /// several classes wait. `shares` holds one weight per class, class 0 first.
    ///
    /// In the long run, the number of permits that a class has in use is proportional to its share,
    /// regardless of how long its callers hold their permits. If a class does not need its whole
    /// share, other classes with waiting callers use the rest. Class 0 can use all permits. One
    /// sixteenth of the permits, rounded down, is reserved for class 0: the other classes cannot
    /// use that part.
    ///
    /// The algorithm comes from Goyal, Vin and Cheng, "Start-time fair queueing" (SIGCOMM 1996).
    /// Where the algorithm uses the length of a packet, a limit uses the mean time for which a
    /// class holds a permit.
    ///
    /// A share of 0 counts as 1. Only the first [`CLASSES_MAX`](crate::stage::CLASSES_MAX) shares
    /// count. If `shares` is empty, the limit has one class.
    ///
    /// # Examples
    ///
    /// ```
    /// use tussah::stage::Class;
    /// use tussah::sync::Limit;
    ///
    /// # futures_lite::future::block_on(async {
    /// let connections = Limit::with_shares("db", 16, &[4, 1]);
    /// let mut reports = Vec::new();
    /// for _ in 0..15 {
    ///     reports.push(connections.acquire_for(Class(1)).await);
    /// }
    /// // The last permit is for class 0.
    /// let payment = connections.acquire_for(Class(0)).await;
    /// # drop(payment);
    /// # });
    /// ```
    #[must_use]
    pub fn with_shares(name: impl Into<Arc<str>>, permits: usize, shares: &[u32]) -> Self {
        let state = State::new(permits, shares);
        Self {
            shared: Arc::new(Shared {
                name: name.into(),
                classes: state.classes.len(),
                state: Mutex::new(state),
            }),
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Waits for a permit, on behalf of a caller in class 0. The future joins the queue when it is
    /// first polled.
    ///
    /// A thread that waits for a permit while it holds another permit of the same limit can
    /// deadlock.
    ///
    /// # Cancellation
    ///
    /// Dropping the future gives up its place in the queue. If a permit has already been granted to
    /// the future, the permit goes to the next future in the queue.
    pub async fn acquire(&self) -> LimitPermit {
        self.acquire_for(Class(0)).await
    }

    /// Waits for a permit, as [`acquire`](Self::acquire) does, on behalf of a caller in `class`. If
    /// the limit does not have this class, the caller joins the last class.
    pub async fn acquire_for(&self, class: Class) -> LimitPermit {
        consume_budget().await;
        let class = class.among(self.shared.classes);
        if let Some(permit) = self.try_acquire_in(class) {
            return permit;
        }
        note_permit();
        let mut place = Place {
            shared: &self.shared,
            class,
            begun: now(),
            ticket: None,
        };
        let _waiting = wait_for(self);
        let since = poll_fn(|cx| {
            let polled = place.poll(cx.waker());
            if polled.is_pending() {
                note_wait(WaitsFor::Permit);
            }
            polled
        })
        .await;
        LimitPermit {
            limit: self.clone(),
            class,
            since,
        }
    }

    /// Takes a permit if one is free, on behalf of a caller in class 0. This call does not overtake
    /// waiters of its class: while any of them waits, no permit is available to the class.
    #[must_use]
    pub fn try_acquire(&self) -> Option<LimitPermit> {
        self.try_acquire_in(0)
    }

    fn try_acquire_in(&self, class: usize) -> Option<LimitPermit> {
        let since = now();
        let mut state = self.shared.state.lock();
        let is_taken = state.acquire(class, since, since);
        let is_scarce = state.is_scarce(since);
        drop(state);
        if is_taken && is_scarce {
            note_permit();
        }
        is_taken.then(|| LimitPermit {
            limit: self.clone(),
            class,
            since,
        })
    }

    /// Sets the number of permits. Additional permits go to waiters. If more than `permits` permits
    /// are in use, their holders keep them. Waiters get no permit until fewer than `permits`
    /// permits are in use.
    pub fn set_permits(&self, permits: usize) {
        let mut state = self.shared.state.lock();
        state.permits = permits;
        while let Some(waker) = state.hand_over() {
            drop(state);
            quietly(|| waker.wake());
            state = self.shared.state.lock();
        }
    }

    /// Returns whether two limits share their permits.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns the current use of the permits.
    pub(crate) fn in_use(&self) -> LimitUse {
        let state = self.shared.state.lock();
        LimitUse {
            name: Arc::clone(&self.shared.name),
            permits: state.permits,
            in_use: state.in_use,
            waiting: state.waiting(),
        }
    }

    /// Returns the current state and the counters.
    #[must_use]
    pub fn stats(&self) -> LimitStats {
        let state = self.shared.state.lock();
        let mut stats = LimitStats {
            name: Arc::clone(&self.shared.name),
            permits: state.permits,
            in_use: state.in_use,
            waiting: state.waiting(),
            acquired: 0,
            wait: Digest::default(),
            hold: state.hold.clone(),
            classes: state.classes.iter().map(Line::stats).collect(),
        };
        drop(state);
        for class in &stats.classes {
            stats.acquired += class.acquired;
            stats.wait.merge(&class.wait);
        }
        stats
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (permits, in_use, waiting) = {
            let state = self.shared.state.lock();
            (state.permits, state.in_use, state.waiting())
        };
        f.debug_struct("Limit")
            .field("name", &self.name())
            .field("permits", &permits)
            .field("in_use", &in_use)
            .field("waiting", &waiting)
            .finish()
    }
}

/// A permit of a [`Limit`]. Dropping a permit returns it, even during a panic; a leaked permit
/// stays in use forever.
///
/// Move the permit into the closure or thread that does the work. The permit then stays in use
/// until the work has ended, even if the caller that waits for the result is cancelled.
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
    class: usize,
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
        self.limit.shared.release(self.class, Some(held_ns));
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
    fn release(&self, class: usize, held_ns: Option<u64>) {
        let next = {
            let mut state = self.state.lock();
            state.give_back(class, held_ns);
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
    class: usize,
    begun: Instant,
    ticket: Option<u64>,
}

impl Place<'_> {
    /// Completes with a permit, which then belongs to the caller.
    fn poll(&mut self, waker: &Waker) -> Poll<Instant> {
        let (waker, now) = (waker.clone(), now());
        let mut state = self.shared.state.lock();
        let (polled, unneeded) = match self.ticket {
            None if state.acquire(self.class, self.begun, now) => (Poll::Ready(now), waker),
            None => {
                let ticket = state.next_ticket;
                state.next_ticket += 1;
                state.classes[self.class].queue.insert(ticket, waker);
                self.ticket = Some(ticket);
                return Poll::Pending;
            }
            Some(ticket) => match state.classes[self.class].queue.get_mut(&ticket) {
                Some(known) => (Poll::Pending, mem::replace(known, waker)),
                None => {
                    state.count(self.class, self.begun, now);
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
        let waker = {
            let mut state = self.shared.state.lock();
            state.classes[self.class].queue.remove(&ticket)
        };
        match waker {
            Some(waker) => quietly(|| drop(waker)),
            None => self.shared.release(self.class, None),
        }
    }
}

fn ns_between(begin: Instant, end: Instant) -> u64 {
    let between = end.saturating_duration_since(begin);
    u64::try_from(between.as_nanos()).unwrap_or(u64::MAX)
}
