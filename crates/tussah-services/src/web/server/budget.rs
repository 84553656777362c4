//! The share of the workers' time that rejections may take.
//!
//! A rejection is cheap, but clients may cause any number of them. Each rejection therefore uses up
//! a budget of CPU time. A client that is rejected when the budget is used up, and retries before
//! its time, has to wait: the server reads its next request when the budget allows another
//! rejection, or when its time to retry comes. In the meantime the request waits in the kernel, and
//! the client's sends fill the socket's buffer. If the first requests of connections are rejected,
//! the server also accepts connections more slowly.
//!
//! The budget is a virtual queue, as for [`Retry`](super::retry::Retry): each rejection moves the
//! next turn by the time in which the budget grows by the cost of one (the generic cell rate
//! algorithm, ITU-T I.371).

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use tussah::time::now;

/// The weight of a rejection in the mean cost, and the multiple of the mean that it counts at most:
/// one of them may have to wait for a page of memory.
const MEAN_PART: f64 = 1.0 / 16.0;
const OUTLIER: f64 = 4.0;

/// The ratio of the cost of a rejection to its measured part, which is the time from parsing a
/// request to writing the response. The server also waits for the connection and reads the request.
const WHOLE: f64 = 2.0;

/// The maximum time, in nanoseconds, for which the server continues to read from clients after the
/// budget is used up. A timer costs about as much as the rejections of a shorter time.
const BURST_NS: u64 = 2_000_000;

/// Bound, in nanoseconds: the longest wait before the server accepts another connection. The routes
/// have no new clients in the meantime, and must not become idle for long.
const ACCEPT_NS_MAX: u64 = 50_000_000;

/// The budget of a server.
pub(crate) struct Budget {
    /// The share of the workers' time, and the number of workers; `None` for no bound.
    cpus: Option<f64>,
    begun: Instant,
    /// True if a request was rejected in the current or the last second.
    rejects: AtomicBool,
    /// The mean cost of a rejection, in nanoseconds.
    cost_ns: AtomicU64,
    /// The next turn, in nanoseconds since the start: of a rejection, and of a new connection.
    next_ns: AtomicU64,
    accept_ns: AtomicU64,
}

/// A rejection on the stack of this OS thread.
#[derive(Clone, Copy)]
enum Rejected {
    /// The connection's first request for a route was rejected.
    First,
    Later,
}

thread_local! {
    /// Set while a connection's thread sends a request into the network, if the request is rejected
    /// before that returns.
    static REJECTED: Cell<Option<Rejected>> = const { Cell::new(None) };
}

/// Notes that a request is rejected on the stack of its connection's thread.
pub(crate) fn note_rejected(is_first: bool) {
    REJECTED.set(Some(if is_first {
        Rejected::First
    } else {
        Rejected::Later
    }));
}

impl Budget {
    /// Creates a budget of this percentage of the workers' time.
    pub(crate) fn new(percent: Option<usize>, workers: usize) -> Self {
        Self {
            cpus: percent.map(|percent| percent as f64 / 100.0 * workers as f64),
            begun: now(),
            rejects: AtomicBool::new(false),
            cost_ns: AtomicU64::new(0),
            next_ns: AtomicU64::new(0),
            accept_ns: AtomicU64::new(0),
        }
    }

    /// Returns the CPU time of this OS thread as a request begins, if requests are being rejected.
    #[inline]
    pub(crate) fn begin(&self) -> Option<Duration> {
        // This OS thread may have rejected a request for a front controller, which was sent on
        // after a search of the site.
        REJECTED.set(None);
        // Relaxed: only the cost of some rejections depends on it.
        let rejects = self.rejects.load(Ordering::Relaxed);
        rejects.then(cpu_time)
    }

    /// Notes that no request was rejected for a second.
    pub(crate) fn calm(&self) {
        self.rejects.store(false, Ordering::Relaxed);
    }

    /// Returns how long a client has to wait for its turn, if its request was rejected while it was
    /// sent into the network. `begun` is the CPU time at which the request began.
    #[inline]
    pub(crate) fn turn_after(&self, begun: Option<Duration>) -> Option<Duration> {
        REJECTED
            .take()
            .and_then(|rejected| self.spend(rejected, begun))
    }

    #[cold]
    fn spend(&self, rejected: Rejected, begun: Option<Duration>) -> Option<Duration> {
        let cpus = self.cpus?;
        self.rejects.store(true, Ordering::Relaxed);
        let cost_ns = self.mean(cpu_time().saturating_sub(begun?));
        let passed_ns = self.passed_ns();
        let step_ns = (cost_ns as f64 / cpus) as u64;
        let turn_ns = self.turn(passed_ns, step_ns);
        if matches!(rejected, Rejected::First) {
            let accept_ns = turn_ns.min(passed_ns.saturating_add(ACCEPT_NS_MAX));
            self.accept_ns.store(accept_ns, Ordering::Relaxed);
        }
        let wait_ns = turn_ns.saturating_sub(passed_ns);
        (wait_ns > BURST_NS).then(|| Duration::from_nanos(wait_ns))
    }

    /// Adds the measured part of a rejection to the mean, and returns the mean cost.
    fn mean(&self, measured: Duration) -> u64 {
        let cost_ns = measured.as_nanos() as f64 * WHOLE;
        let mean_ns = match self.cost_ns.load(Ordering::Relaxed) {
            0 => cost_ns,
            mean_ns => mean_ns as f64,
        };
        let mean_ns = mean_ns + (cost_ns.min(OUTLIER * mean_ns) - mean_ns) * MEAN_PART;
        // Relaxed: of two rejections at the same time, one may not count.
        self.cost_ns.store(mean_ns as u64, Ordering::Relaxed);
        mean_ns as u64
    }

    /// Takes the next turn, at this time since the start.
    fn turn(&self, passed_ns: u64, step_ns: u64) -> u64 {
        let next = |next_ns: u64| Some(next_ns.max(passed_ns).saturating_add(step_ns));
        let ordering = Ordering::Relaxed; // the turns publish nothing else
        let taken = self.next_ns.fetch_update(ordering, ordering, next);
        let (Ok(before_ns) | Err(before_ns)) = taken;
        before_ns.max(passed_ns).saturating_add(step_ns)
    }

    fn passed_ns(&self) -> u64 {
        now().saturating_duration_since(self.begun).as_nanos() as u64
    }

    /// Returns how long the server waits before it accepts another connection, if it has to.
    pub(crate) fn accepts_after(&self) -> Option<Duration> {
        let accept_ns = self.accept_ns.load(Ordering::Relaxed);
        if accept_ns == 0 {
            return None;
        }
        let wait_ns = accept_ns.saturating_sub(self.passed_ns());
        (wait_ns > BURST_NS).then(|| Duration::from_nanos(wait_ns))
    }
}

/// Returns the CPU time of this OS thread. In an overload, the time of the clock would include the
/// times for which other programs have the CPU.
fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    now.map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn rejections_take_no_more_than_their_share() {
        let budget = Budget::new(Some(25), 2);
        // A rejection costs 10 µs, so half a CPU can make 50,000 a second.
        let step_ns = 20_000;
        let turns: Vec<_> = (0..100_000).map(|_| budget.turn(7, step_ns)).collect();
        let within = |end_ns| turns.iter().filter(|&&turn_ns| turn_ns <= end_ns).count();
        assert_eq!(within(SECOND_NS + 7), 50_000);
        assert_eq!(within(2 * SECOND_NS + 7), 100_000);
        // What was not used is not saved.
        assert_eq!(
            budget.turn(10 * SECOND_NS, step_ns),
            10 * SECOND_NS + step_ns
        );
    }

    #[test]
    fn a_rejection_that_takes_far_longer_than_others_counts_little() {
        let budget = Budget::new(Some(25), 1);
        let us = Duration::from_micros;
        for _ in 0..100 {
            budget.mean(us(5));
        }
        assert_eq!(budget.mean(us(5)), 10_000);
        assert!((11_000..12_000).contains(&budget.mean(us(10_000))));
    }

    #[test]
    fn only_a_rejection_while_the_request_is_sent_counts() {
        let budget = Budget {
            cpus: Some(1e-6),
            ..Budget::new(None, 1)
        };
        budget.rejects.store(true, Ordering::Relaxed);
        note_rejected(true);
        let begun = budget.begin();
        assert_eq!(budget.turn_after(begun), None);
        let begun = budget.begin();
        note_rejected(true);
        assert!(budget.turn_after(begun).is_some());
    }

    #[test]
    fn without_a_bound_nobody_waits() {
        // All of the CPU time of this OS thread, at a millionth of a CPU.
        let spend = |budget: Budget| budget.spend(Rejected::First, Some(Duration::ZERO));
        assert_eq!(spend(Budget::new(None, 1)), None);
        let budget = Budget {
            cpus: Some(1e-6),
            ..Budget::new(None, 1)
        };
        assert!(spend(budget).is_some());
    }
}
