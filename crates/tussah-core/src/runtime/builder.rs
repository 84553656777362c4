//! The builder of a runtime.

use std::io;
use std::time::Duration;

use super::handle::Runtime;
use super::shared::{Config, PolicyMaker, Shared};
use crate::blocking::{BlockingPool, PoolPolicy};
use crate::driver::file::{FileDriver, Files};
use crate::policy::Policy;
use crate::time::Clock;
use crate::watchdog::{Report, Stuck, Watchdog};
use crate::world::{Network, World};

/// Bound, in workers: the maximum of a runtime, and the largest number of CPUs of any known
/// machine. Each place costs a pointer until it is used.
const WORKERS_MAX: usize = 1024;

/// The length of an event after which the watchdog reports it.
const STUCK_LIMIT: Duration = Duration::from_secs(1);

/// The time that an event may wait behind another event before stealing it always pays off.
const STEAL_DELAY: Duration = Duration::from_millis(1);

/// A builder for a [`Runtime`].
///
/// # Examples
/// ```
/// # use tussah_core as tussah;
/// let runtime = tussah::Runtime::builder().workers(2).name("demo").build()?;
/// assert_eq!(runtime.block_on(async { 6 * 7 }), 42);
/// # std::io::Result::Ok(())
/// ```
#[must_use = "a builder makes nothing until `build` is called"]
pub struct Builder {
    workers: Option<usize>,
    name: String,
    pin: bool,
    seed: u64,
    stealing: bool,
    steal_delay: Duration,
    one_color: bool,
    clock: Clock,
    blocking: PoolPolicy,
    files: FileDriver,
    policy: Option<PolicyMaker>,
    watchdog: Option<(Duration, Report)>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            workers: None,
            name: "tussah".into(),
            pin: false,
            seed: 0x7A55_A400,
            stealing: true,
            steal_delay: STEAL_DELAY,
            one_color: false,
            clock: Clock::real(),
            blocking: PoolPolicy::default(),
            files: FileDriver::Auto,
            policy: None,
            watchdog: Some((STUCK_LIMIT, Box::new(|stuck| eprintln!("tussah: {stuck}")))),
        }
    }

    /// Sets the initial number of workers, 1 to 1,024. Default: one per CPU that the process may
    /// use, according to its affinity mask and the quota of its cgroup.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Sets the name of the runtime, which appears in the names of its OS threads. Default:
    /// `tussah`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets whether each worker is pinned to one of the CPUs that the process may use. Default: no.
    pub fn pin(mut self, pin: bool) -> Self {
        self.pin = pin;
        self
    }

    /// Sets the seed of the runtime's random numbers. The random numbers determine which worker an
    /// idle worker tries to steal from first, and which turns are measured.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets whether idle workers steal from other workers. Default: yes. Without stealing, a color
    /// stays with the worker that first queued it.
    pub fn stealing(mut self, stealing: bool) -> Self {
        self.stealing = stealing;
        self
    }

    /// Sets the steal delay. If a worker's current turn reaches this duration, or a color has
    /// waited in the worker's queue for this duration, other workers steal from that worker
    /// regardless of the cost. Default: 1 ms.
    pub fn steal_delay(mut self, delay: Duration) -> Self {
        self.steal_delay = delay.max(Duration::from_micros(1));
        self
    }

    /// Sets whether [`spawn`](crate::Handle::spawn) puts threads in
    /// [`Color::DEFAULT`](crate::Color::DEFAULT) instead of giving each its own color. If all
    /// threads run in the default color, a program that was written for one CPU remains correct,
    /// and can adopt other colors step by step.
    pub fn one_color(mut self, one_color: bool) -> Self {
        self.one_color = one_color;
        self
    }

    /// Sets the clock of the runtime's timers. Default: the system clock.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the function that creates each worker's [`Policy`], which chooses the next color to
    /// run. Default: [`Priorities`](crate::Priorities).
    pub fn policy<P: Policy + 'static>(
        mut self,
        make: impl Fn() -> P + Send + Sync + 'static,
    ) -> Self {
        self.policy = Some(Box::new(move || Box::new(make())));
        self
    }

    /// Sets the time limit above which an event counts as blocking its worker, and the function
    /// that reports such events. By default, the limit is 1 s, and reports are written to standard
    /// error.
    ///
    /// `report` runs on the watchdog's OS thread. For each event that runs for longer than `limit`,
    /// the watchdog calls `report` twice: once when the watchdog detects the event, and again, with
    /// the total duration, when the event has ended. If a worker calls a waker of another executor
    /// and that waker blocks, the watchdog reports the waker in the same way.
    ///
    /// The *check interval* of the watchdog is 10 ms, or a quarter of `limit` if that is shorter.
    /// An event that is shorter than `limit` is never reported. An event that exceeds `limit` by at
    /// least one check interval is always reported, as long as the system runs the watchdog's OS
    /// thread. The watchdog sleeps while no worker has anything to run.
    ///
    /// If an event runs for longer than two check intervals, another worker serves the timers,
    /// descriptors and files of the event's worker. If no worker is available, the watchdog's OS
    /// thread serves them, so that the event does not delay waiters outside of the runtime.
    /// Therefore neither `report` nor the wakers of other executors may block.
    ///
    /// At each check, the watchdog makes the workers end their turns and check their timers. If
    /// events suddenly take longer, other colors and timers therefore wait for at most one check
    /// interval, plus one event, plus the time that the system takes to run the watchdog.
    pub fn watchdog(
        mut self,
        limit: Duration,
        report: impl Fn(&Stuck) + Send + Sync + 'static,
    ) -> Self {
        self.watchdog = Some((limit.max(Duration::from_millis(1)), Box::new(report)));
        self
    }

    /// Disables the watchdog. Without the watchdog, an event that blocks its worker can also delay
    /// the timers, descriptors and files of that worker. If events suddenly take longer without a
    /// watchdog, a color can wait for up to 128 events of another color, and a timer for up to
    /// 1,024 events.
    pub fn no_watchdog(mut self) -> Self {
        self.watchdog = None;
        self
    }

    /// Sets the policy and the bounds of the blocking pool.
    pub fn blocking(mut self, policy: PoolPolicy) -> Self {
        self.blocking = policy;
        self
    }

    /// Sets how file operations run: through io_uring or in the blocking pool. Default:
    /// [`FileDriver::Auto`].
    ///
    /// With io_uring, an OS thread outside of the runtime that has started file operations may be
    /// interrupted once, some time after the runtime has ended. A blocking system call with a time
    /// limit then fails with EINTR, without a signal. The kernel does so to every OS thread that
    /// has used a ring.
    pub fn files(mut self, driver: FileDriver) -> Self {
        self.files = driver;
        self
    }

    /// Starts the workers, and logs the runtime's [drivers](super::Handle::driver) with `tracing`,
    /// at level `INFO`.
    ///
    /// # Errors
    /// Returns `InvalidInput` if the number of workers is not between 1 and 1,024. With
    /// [`FileDriver::Auto`], also returns `InvalidInput` if `TUSSAH_FILES` has a value other than
    /// `io_uring`, `pool` or the empty string. If io_uring is required but not available, returns
    /// an error whose message states the reason. Returns the system's error if an OS thread could
    /// not be started.
    pub fn build(self) -> io::Result<Runtime> {
        let workers = match self.workers {
            Some(workers) => workers,
            None => std::thread::available_parallelism().map_or(1, usize::from),
        };
        let shared = Shared::new(Config {
            world: World {
                network: Network::Os,
                files: Files::choose(self.files)?,
                clock: self.clock,
                seed: self.seed,
            },
            blocking: BlockingPool::new(&self.name, self.blocking),
            name: self.name,
            stealing: self.stealing,
            steal_delay: self.steal_delay,
            pin: self.pin,
            policy: self.policy,
            workers_max: WORKERS_MAX,
            one_color: self.one_color,
        });
        let runtime = Runtime::new(shared.clone());
        runtime.set_workers(workers)?;
        if let Some((limit, report)) = self.watchdog {
            *shared.watchdog.lock() = Some(Watchdog::start(&shared, limit, report)?);
        }
        #[cfg(not(loom))]
        tracing::info!(target: "tussah", name = %shared.name, workers, driver = %runtime.driver(), "runtime started");
        Ok(runtime)
    }
}
