//! The source of time of a runtime: the operating system's monotonic clock, or a manual clock.

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::quietly::quietly;

/// One tick is `2^TICK_SHIFT` ns: 131 µs.
const TICK_SHIFT: u32 = 17;

/// The tick of a manual clock, in nanoseconds: one microsecond. Advancing the clock by a timer's
/// duration then reaches the timer's deadline exactly.
const MANUAL_TICK_NS: u64 = 1_000;

/// The nanoseconds in a tick.
const TICK_NS: u64 = 1 << TICK_SHIFT;

/// The distance, in years, of a deadline that `Instant` cannot hold, longer than any process lives.
const FAR_YEARS: u64 = 100;

const FAR: Duration = Duration::from_secs(FAR_YEARS * 365 * 24 * 60 * 60);

type Hook = Box<dyn Fn() + Send + Sync>;

/// A source of time. A clone is cheap to create, and shows the same time as the original.
///
/// All timers of a runtime follow its clock. By default, this is the monotonic clock of the
/// operating system ([`Clock::real`]). With [`Clock::manual`], time stands still until a
/// [`ManualClock`] advances it, which makes tests of timers fast and deterministic.
///
/// ```
/// # use tussah_core::time as tussah;
/// use std::time::Duration;
/// use tussah::Clock;
///
/// let manual = Clock::manual();
/// let clock = manual.clock();
/// let before = clock.now();
/// manual.advance(Duration::from_secs(3600));
/// assert_eq!(clock.now() - before, Duration::from_secs(3600));
/// ```
#[derive(Clone)]
pub struct Clock {
    inner: Arc<Inner>,
}

struct Inner {
    /// Tick 0; the initial time of a manual clock.
    start: Instant,
    /// The time of `start` on the clock of [`system_ns`]. It is read after `start`, so that no
    /// deadline, which is an `Instant`, is reached early.
    start_ns: u64,
    /// Present if the clock is manual.
    manual: Option<Manual>,
}

struct Manual {
    /// The nanoseconds by which the clock was advanced. Only grows.
    advanced_ns: AtomicU64,
    /// One hook for each live runtime that follows the clock.
    hooks: Mutex<Vec<Weak<Hook>>>,
}

impl Clock {
    /// Returns the operating system's monotonic clock.
    #[must_use]
    pub fn real() -> Self {
        Self::begin(None)
    }

    fn begin(manual: Option<Manual>) -> Self {
        let start = Instant::now();
        Self {
            inner: Arc::new(Inner {
                start,
                start_ns: system_ns(),
                manual,
            }),
        }
    }

    /// Creates a clock that stands still until it is advanced. To use it in a runtime, pass the
    /// result of [`ManualClock::clock`] to [`Builder::clock`](crate::Builder::clock).
    #[must_use]
    pub fn manual() -> ManualClock {
        let manual = Manual {
            advanced_ns: AtomicU64::new(0),
            hooks: Mutex::new(Vec::new()),
        };
        ManualClock {
            clock: Self::begin(Some(manual)),
        }
    }

    /// Returns the current time, which never decreases.
    #[must_use]
    pub fn now(&self) -> Instant {
        match &self.inner.manual {
            None => Instant::now(),
            Some(manual) => self.at_ns(manual.now_ns()),
        }
    }

    /// Returns the instant `duration` from now. If an `Instant` cannot hold the result, returns the
    /// instant a hundred years from now.
    #[must_use]
    pub fn after(&self, duration: Duration) -> Instant {
        let now = self.now();
        now.checked_add(duration)
            .unwrap_or_else(|| now.checked_add(FAR).unwrap_or(now))
    }

    /// Returns whether the clock is manual.
    #[must_use]
    pub fn is_manual(&self) -> bool {
        self.inner.manual.is_some()
    }

    /// Calls `hook` after each [`ManualClock::advance`], until the returned guard is dropped.
    ///
    /// A runtime registers a hook that unparks its workers. Hooks run on the OS thread that
    /// advances the clock, while no lock is held. A hook that was called earlier may still be
    /// running after the guard has been dropped. If a hook panics, the other hooks are still
    /// called. On a real clock, hooks are never called.
    #[must_use = "dropping the guard removes the hook"]
    pub fn on_advance(&self, hook: Box<dyn Fn() + Send + Sync>) -> AdvanceHook {
        let hook = Arc::new(hook);
        if let Some(manual) = &self.inner.manual {
            let mut hooks = manual.hooks.lock();
            hooks.retain(|hook| hook.strong_count() > 0);
            hooks.push(Arc::downgrade(&hook));
        }
        AdvanceHook { _hook: hook }
    }

    /// Returns the last tick that has begun: the current time, rounded down.
    #[inline]
    pub(crate) fn now_tick(&self) -> u64 {
        self.tick_of(self.now_ns())
    }

    fn tick_ns(&self) -> u64 {
        if self.is_manual() {
            MANUAL_TICK_NS
        } else {
            TICK_NS
        }
    }

    /// Returns the tick that contains a time, given in nanoseconds since the clock began.
    #[inline]
    pub(crate) fn tick_of(&self, ns: u64) -> u64 {
        if self.is_manual() {
            ns / MANUAL_TICK_NS
        } else {
            ns >> TICK_SHIFT
        }
    }

    /// Returns the number of nanoseconds since the clock was created. The call is cheaper than
    /// subtracting two [`Instant`]s.
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        match &self.inner.manual {
            None => system_ns().saturating_sub(self.inner.start_ns),
            Some(manual) => manual.now_ns(),
        }
    }

    /// Returns the instant at which [`now_ns`](Self::now_ns) returns `ns`. If an `Instant` cannot
    /// hold the result, returns the instant a hundred years after the clock was created.
    #[must_use]
    pub fn at_ns(&self, ns: u64) -> Instant {
        super::add(self.inner.start, Duration::from_nanos(ns))
    }

    /// Returns the first tick that does not begin before `deadline`: rounded up, so that no timer
    /// fires early.
    #[inline]
    pub(crate) fn deadline_tick(&self, deadline: Instant) -> u64 {
        self.ns_since_start(deadline).div_ceil(self.tick_ns())
    }

    /// Returns how long a worker may wait if the earliest tick of its shard is `tick`.
    ///
    /// `None` means forever: either there is no timer (`u64::MAX`), or the clock is manual and only
    /// [`on_advance`](Self::on_advance) ends the wait. `Some(Duration::ZERO)` means that a timer is
    /// due.
    pub(crate) fn park_timeout(&self, tick: u64) -> Option<Duration> {
        if tick == u64::MAX {
            return None;
        }
        let due_ns = tick.saturating_mul(self.tick_ns());
        match &self.inner.manual {
            None => Some(Duration::from_nanos(due_ns.saturating_sub(self.now_ns()))),
            Some(manual) => (due_ns <= manual.now_ns()).then_some(Duration::ZERO),
        }
    }

    /// Saturates at both ends: 0 for an instant before the start, `u64::MAX` from 584 years after
    /// it.
    #[inline]
    fn ns_since_start(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.inner.start);
        since
            .as_secs()
            .saturating_mul(1_000_000_000)
            .saturating_add(u64::from(since.subsec_nanos()))
    }
}

/// Reads the system's monotonic clock, in nanoseconds. `Instant` reads the same clock, but the
/// difference of two `Instant`s costs more than a reading.
// This reads the clock through the C library: rustix finds the kernel's function in a way that does
// not work under Valgrind.
#[inline]
fn system_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time is written to a local variable. Every test that reads a real clock covers
    // this, under Miri, too.
    let read = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    assert!(read == 0, "each Linux has a monotonic clock");
    // The clock starts with the system, so it is neither negative nor near the limit of 64 bits.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock")
            .field("manual", &self.is_manual())
            .field("now", &self.now())
            .finish()
    }
}

impl Manual {
    #[inline]
    fn now_ns(&self) -> u64 {
        // Acquire pairs with the Release in `ManualClock::advance`: a reader of the new time sees
        // everything done before the clock was advanced.
        self.advanced_ns.load(Ordering::Acquire)
    }
}

/// The controller of a manual clock, created by [`Clock::manual`].
#[derive(Clone, Debug)]
pub struct ManualClock {
    clock: Clock,
}

impl ManualClock {
    /// Returns the clock that this controller advances.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Advances the clock by `duration`, and then calls the hooks of the runtimes that use it.
    ///
    /// Timers that become due fire on their workers; this call does not wait for them. The clock
    /// stops 584 years after its start. If a hook panics, the panic is caught, and the other hooks
    /// are called.
    pub fn advance(&self, duration: Duration) {
        let Some(manual) = &self.clock.inner.manual else {
            return;
        };
        let step_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let moved = manual.advanced_ns.fetch_update(
            // Release pairs with the Acquire in `Manual::now_ns`.
            Ordering::Release,
            Ordering::Relaxed,
            |now_ns| Some(now_ns.saturating_add(step_ns)),
        );
        debug_assert!(moved.is_ok(), "the update always gives a value");
        // The hooks are foreign code and may add or drop hooks, so they run without the lock.
        let hooks: Vec<Arc<Hook>> = manual
            .hooks
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        for hook in hooks {
            quietly(|| hook());
            quietly(|| drop(hook));
        }
    }
}

/// A guard, returned by [`Clock::on_advance`], that keeps a hook registered. Dropping the guard
/// removes the hook.
#[must_use = "dropping the guard removes the hook"]
pub struct AdvanceHook {
    _hook: Arc<Hook>,
}

impl fmt::Debug for AdvanceHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdvanceHook").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn a_deadline_is_rounded_up_and_the_present_down() {
        let manual = Clock::manual();
        let clock = manual.clock();
        let start = clock.now();
        let ns = Duration::from_nanos;
        let check = |after_ns: u64, expected: u64| {
            assert_eq!(clock.deadline_tick(start + ns(after_ns)), expected)
        };
        check(0, 0);
        check(1, 1);
        check(MANUAL_TICK_NS - 1, 1);
        check(MANUAL_TICK_NS, 1);
        check(MANUAL_TICK_NS + 1, 2);
        check(u64::MAX, u64::MAX.div_ceil(MANUAL_TICK_NS));
        assert_eq!(clock.now_tick(), 0);
        manual.advance(ns(MANUAL_TICK_NS - 1));
        assert_eq!(clock.now_tick(), 0);
        manual.advance(ns(1));
        assert_eq!(clock.now_tick(), 1);
        assert_eq!(clock.now() - start, ns(MANUAL_TICK_NS));
        assert_eq!(clock.deadline_tick(start), 0, "a deadline in the past");
    }

    #[test]
    fn a_real_clock_runs_on_and_is_never_behind_its_ticks() {
        let clock = Clock::real();
        let early = clock.now();
        assert!(clock.now() >= early);
        assert!(clock.deadline_tick(early) <= clock.now_tick() + 1);
        let mut last_ns = 0;
        for _ in 0..1000 {
            let now_ns = clock.now_ns();
            assert!(last_ns <= now_ns && now_ns <= clock.ns_since_start(clock.now()));
            last_ns = now_ns;
        }
        assert!(!clock.is_manual());
    }

    #[test]
    fn durations_too_long_saturate() {
        let manual = Clock::manual();
        let clock = manual.clock();
        assert_eq!(clock.after(Duration::MAX), clock.now() + FAR);
        manual.advance(Duration::MAX);
        manual.advance(Duration::MAX);
        assert_eq!(clock.now_tick(), u64::MAX / MANUAL_TICK_NS);
        assert!(clock.after(Duration::MAX) > clock.now());
    }

    #[test]
    fn park_timeouts() {
        let manual = Clock::manual();
        let clock = manual.clock();
        assert_eq!(clock.park_timeout(u64::MAX), None);
        assert_eq!(clock.park_timeout(1), None, "time stands still");
        assert_eq!(clock.park_timeout(0), Some(Duration::ZERO));
        manual.advance(Duration::from_nanos(MANUAL_TICK_NS));
        assert_eq!(clock.park_timeout(1), Some(Duration::ZERO));
        let real = Clock::real();
        assert_eq!(real.park_timeout(u64::MAX), None);
        assert_eq!(real.park_timeout(0), Some(Duration::ZERO));
        assert!(
            real.park_timeout(u64::MAX - 1)
                .is_some_and(|wait| wait > Duration::from_secs(1 << 30))
        );
    }

    #[test]
    fn hooks_are_called_until_their_guard_is_dropped() {
        let manual = Clock::manual();
        let clock = manual.clock();
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&calls);
        let inside = clock.clone();
        let guard = clock.on_advance(Box::new(move || {
            // The hook sees the new time and may register further hooks.
            assert!(inside.now_tick() > 0);
            drop(inside.on_advance(Box::new(|| ())));
            counter.fetch_add(1, Ordering::Relaxed);
        }));
        manual.advance(Duration::from_millis(1));
        manual.clone().advance(Duration::from_millis(1));
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        drop(guard);
        manual.advance(Duration::from_millis(1));
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        drop(Clock::real().on_advance(Box::new(|| ())));
    }
}
