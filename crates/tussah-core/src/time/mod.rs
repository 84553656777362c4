//! Time: a real or manual clock, a timing wheel for each worker, and the `Sleep` future.
//!
//! | file | content |
//! |---|---|
//! | `clock.rs` | the source of time, and the tick, the unit of the wheels |
//! | `wheel.rs` | the hierarchical timing wheel: pure, without a clock and without locks |
//! | `timer.rs` | the objects that the wheels link: state and waker of one timer |
//! | `shard.rs` | one worker's wheel behind its lock, and the firing of entries |
//! | `context.rs` | the shard that the running code uses: the only connection to the workers |
//! | `sleep.rs` | the future that users await |
//!
//! # Firing
//!
//! A worker calls `Shard::fire` with the tick at which its turn began. Other OS threads call
//! `Shard::try_fire` if the worker is in a long event or has been removed. Both functions remove
//! due entries from the wheel under the shard's lock, and call the wakers after they have released
//! the lock.
//!
//! # Parking
//!
//! A worker that is about to park marks itself as parked, issues a `SeqCst` fence and then reads
//! `Shard::next_tick`. An OS thread whose new entry is due before all others stores the entry's
//! tick as the shard's earliest, issues a `SeqCst` fence and then calls the shard's unpark hook.
//! The hook can check whether the worker is parked (`Shard::notify`). Either the worker sees the OS
//! thread's store, or the OS thread sees the worker's, so no worker sleeps past a deadline. (The
//! workers' hook always unparks the worker, which suffices on its own; see `worker/README.md`.)

mod clock;
mod context;
mod shard;
mod sleep;
mod timer;
mod wheel;

pub use clock::{AdvanceHook, Clock, ManualClock};
pub use context::now;
pub(crate) use context::{TimerContext, enter};
pub(crate) use shard::Shard;
pub use sleep::Sleep;

use std::time::{Duration, Instant};

/// The distance, in years, of a deadline that `Instant` cannot hold, longer than any process lives.
const FAR_YEARS: u64 = 100;

const FAR: Duration = Duration::from_secs(FAR_YEARS * 365 * 24 * 60 * 60);

/// Returns the instant `duration` after `instant`. If an `Instant` cannot hold the result, returns
/// the instant a hundred years after `instant`.
#[doc(hidden)]
#[must_use]
pub fn add(instant: Instant, duration: Duration) -> Instant {
    instant
        .checked_add(duration)
        .or_else(|| instant.checked_add(FAR))
        .unwrap_or(instant)
}
