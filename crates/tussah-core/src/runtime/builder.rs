//! Makes a runtime.

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

/// Bound, in workers: as many as any machine we know of has CPUs; each place costs a pointer until it is used.
const WORKERS_MAX: usize = 1024;

/// How long an event may hold its worker before the watchdog reports it.
const STUCK_LIMIT: Duration = Duration::from_secs(1);

/// How long an event may wait behind another before stealing it always pays.
const STEAL_DELAY: Duration = Duration::from_millis(1);

/// Makes a [`Runtime`].
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

    /// How many workers to start with: 1 to 1,024. Default: one per CPU that the process may use, by its affinity mask
    /// and its cgroup's quota.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// The name of the runtime, which its OS threads carry. Default: `tussah`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Pins each worker to one of the CPUs that the process may use. Default: no.
    pub fn pin(mut self, pin: bool) -> Self {
        self.pin = pin;
        self
    }

    /// The seed of the runtime's random numbers (whom to steal from first, which turns are measured).
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Whether idle workers steal from others. Default: yes. Without, colors stay with the worker they came to.
    pub fn stealing(mut self, stealing: bool) -> Self {
        self.stealing = stealing;
        self
    }

    /// How long an event may wait before stealing it always pays. Default: 1 ms.
    pub fn steal_delay(mut self, delay: Duration) -> Self {
        self.steal_delay = delay.max(Duration::from_micros(1));
        self
    }

    /// Makes [`spawn`](crate::Handle::spawn) put threads in [`Color::DEFAULT`](crate::Color::DEFAULT) instead of a color
    /// of their own, so that a program written for one CPU keeps its assumptions and can be colored step by step.
    pub fn one_color(mut self, one_color: bool) -> Self {
        self.one_color = one_color;
        self
    }

    /// The clock of the runtime's timers. Default: the real one.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Which runnable color a worker takes next: a function that makes each worker's [`Policy`]. Default:
    /// [`Priorities`](crate::Priorities).
    pub fn policy<P: Policy + 'static>(
        mut self,
        make: impl Fn() -> P + Send + Sync + 'static,
    ) -> Self {
        self.policy = Some(Box::new(move || Box::new(make())));
        self
    }

    /// Has `report` called, on an OS thread of its own, with each event that holds its worker for longer than `limit`: once when it
    /// is found, and once, with its whole length, when it has ended. Default: 1 s, printed to the standard error. Wakers of other
    /// executors that a worker calls, and that block, are reported like events.
    ///
    /// The precision is one look: 10 ms, or a quarter of `limit` if that is shorter. An event that is shorter than `limit` is never
    /// reported. One that lasts a look longer than `limit` always is, unless the system does not run the OS thread of the watchdog
    /// meanwhile. The watchdog sleeps while no worker has anything to run.
    ///
    /// While an event holds its worker for longer than two looks, the timers that were set on that worker, its descriptors and its
    /// files are seen to by another one; if there is none that could, on the OS thread of the watchdog, so that who waits outside
    /// of the runtime does not wait for the event. So neither `report` nor wakers of other executors may block.
    ///
    /// With each look the watchdog has the workers end their turns and look at their timers. This bounds how long colors and timers wait for
    /// others whose events have become longer all at once: to one look and one event, and the time that the system takes to run
    /// the watchdog.
    pub fn watchdog(
        mut self,
        limit: Duration,
        report: impl Fn(&Stuck) + Send + Sync + 'static,
    ) -> Self {
        self.watchdog = Some((limit.max(Duration::from_millis(1)), Box::new(report)));
        self
    }

    /// No watchdog: an event that holds its worker may also hold up the timers that were set there, its descriptors and its files; and when
    /// events become longer all at once, a color may wait for 128 of another one, and a timer for 1,024.
    pub fn no_watchdog(mut self) -> Self {
        self.watchdog = None;
        self
    }

    /// The policy and the bounds of the blocking pool.
    pub fn blocking(mut self, policy: PoolPolicy) -> Self {
        self.blocking = policy;
        self
    }

    /// Which way files go: by io_uring, or by the blocking pool. Default: [`FileDriver::Auto`].
    pub fn files(mut self, driver: FileDriver) -> Self {
        self.files = driver;
        self
    }

    /// Starts the workers. Tells `tracing`, at the level of information, what the runtime waits on
    /// ([`Runtime::driver`](super::Handle::driver)).
    ///
    /// # Errors
    /// `InvalidInput` if the number of workers is not 1 to 1,024, or if `TUSSAH_FILES` is neither `io_uring` nor `pool`; what
    /// was tried and what the kernel said if io_uring is asked for and refused; else what the operating system said when an
    /// OS thread could not be started.
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
