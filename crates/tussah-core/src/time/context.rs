//! The shard that the running code uses for its timers: the only connection between timers and
//! workers.

use std::time::Instant;
use std::{cell::RefCell, fmt, sync::Arc};

use super::shard::Shard;
use crate::runtime::Handle;

/// The shard for timers that are first polled here.
#[derive(Clone)]
pub(crate) struct TimerContext {
    /// The shard; its clock is the runtime's.
    pub(crate) shard: Arc<Shard>,
    /// True if this OS thread is the worker that fires the shard. The worker checks the shard
    /// before it parks, so no other OS thread has to wake it.
    pub(crate) local: bool,
}

impl fmt::Debug for TimerContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerContext")
            .field("local", &self.local)
            .finish_non_exhaustive()
    }
}

crate::loom::thread_local! {
    static CURRENT: RefCell<Option<TimerContext>> = const { RefCell::new(None) };
}

/// Calls `f` with the context of this OS thread, or with `None` outside of a runtime.
///
/// `f` must not [`enter`] another context.
#[inline]
pub(crate) fn with_current<R>(f: impl FnOnce(Option<&TimerContext>) -> R) -> R {
    let mut f = Some(f);
    let mut call = |context: Option<&TimerContext>| f.take().map(|f| f(context));
    // The thread-local no longer exists while the OS thread is being torn down; no runtime is
    // current then.
    let result = CURRENT.try_with(|current| call(current.borrow().as_ref()));
    match result.unwrap_or_else(|_| call(None)) {
        Some(result) => result,
        None => unreachable!("`call` ran once: either in `try_with` or after it failed"),
    }
}

/// Makes `context` the current one of this OS thread until the guard is dropped. Contexts nest.
pub(crate) fn enter(context: TimerContext) -> Entered {
    // `None` while the OS thread is torn down: no context is current then.
    let previous = CURRENT.try_with(|current| current.replace(Some(context)));
    Entered {
        previous: previous.ok().flatten(),
    }
}

/// Restores the context that was current before [`enter`].
#[must_use = "dropping the guard leaves the context"]
pub(crate) struct Entered {
    previous: Option<TimerContext>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let previous = self.previous.take();
        // The shard may be dropped here, after the borrow, since its unpark hook is the runtime's
        // code.
        drop(CURRENT.try_with(|current| current.replace(previous)));
    }
}

/// Returns the current time of the current runtime's clock, which may be a manual clock. Outside of
/// a runtime, returns the operating system's time.
pub fn now() -> Instant {
    with_current(|context| context.map_or_else(Instant::now, |context| context.shard.clock().now()))
}

impl Handle {
    /// Returns the clock of the runtime's timers.
    pub fn clock(&self) -> crate::time::Clock {
        self.shared.world.clock.clone()
    }

    /// Returns the seed of the runtime's random numbers.
    #[doc(hidden)]
    pub fn seed(&self) -> u64 {
        self.shared.world.seed
    }

    /// Returns the current time of the runtime's clock, which may be a manual clock. Inside the
    /// runtime, [`now`] returns the same time.
    ///
    /// # Examples
    /// ```
    /// # mod tussah { pub use tussah_core::{Runtime, time::Clock}; }
    /// use std::time::Duration;
    /// use tussah::{Clock, Runtime};
    /// let manual = Clock::manual();
    /// let runtime = Runtime::builder().workers(1).clock(manual.clock()).build()?;
    /// let before = runtime.now();
    /// manual.advance(Duration::from_secs(3600));
    /// assert_eq!(runtime.now() - before, Duration::from_secs(3600));
    /// # std::io::Result::Ok(())
    /// ```
    #[must_use]
    pub fn now(&self) -> Instant {
        self.shared.world.clock.now()
    }
}
