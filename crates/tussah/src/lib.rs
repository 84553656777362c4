//! tussah: a concurrency runtime for network services, in which everything that runs is an event with a color.
//!
//! A *color* is a serialization domain. Events of one color run one at a time and in the order in which they were posted;
//! events of different colors run in parallel, on one worker per CPU, and idle workers steal whole colors. So shared
//! state needs no lock and no actor: it gets a color, and only events of that color touch it.
//!
//! - A *thread* ([`spawn`]) is an `async` computation: a sequence of events, from one await to the next.
//! - *Colored state* ([`Colored`]) is a value with a color of its own. `value.with(|v| ..).await` runs a closure on it: at once
//!   if nobody else is there, else in turn. No reference leaves the closure, and nobody blocks.
//! - *Events* ([`post_in`], [`after`], [`every`], [`Callback`]) are closures that run in a color that you name.
//! - A thread that awaits has left its color, so colors cannot deadlock; a panic stays in its event; every queue is
//!   bounded, and gives back what it cannot take.
//!
//! # The first program
//! ```
//! use tussah::{Colored, spawn};
//!
//! #[tussah::main]
//! async fn main() {
//!     let hits = Colored::new(0u64); // a value with a color of its own
//!     let threads: Vec<_> = (0..100)
//!         .map(|_| {
//!             let hits = hits.clone(); // the same value
//!             spawn(async move { hits.with(|hits| *hits += 1).await })
//!         })
//!         .collect();
//!     for thread in threads {
//!         thread.await.expect("no panic");
//!     }
//!     assert_eq!(hits.with(|hits| *hits).await, 100);
//! }
//! ```
//!
//! Elsewhere, and for all that can be chosen, begin with [`Runtime::builder`]. The methods of [`Handle`] do from any OS
//! thread what the functions here do inside of the runtime.
//!
//! # What goes with it
//! Streams of bytes implement the traits of `futures_io`, and streams of items `Stream` of `futures_core`. So adapters (lines,
//! `BufReader`, `take`) come from [`futures-lite`](https://docs.rs/futures-lite/2) 2, and so does `future::or`, which races two futures:
//! the first to be ready wins, and the other is dropped.
//!
//! ```
//! use futures_lite::{AsyncBufReadExt, StreamExt, future, io::BufReader};
//! use tussah::{net::UnixStream, time::{Duration, sleep}};
//! # let runtime = tussah::Runtime::builder().workers(1).build()?;
//! # runtime.block_on(runtime.spawn(async move {
//! let (ours, theirs) = UnixStream::pair()?;
//! theirs.write_all(b"one\ntwo\nthree\n").await?;
//! let mut lines = BufReader::new(ours).lines().take(2);
//! let too_late = async { sleep(Duration::from_secs(60)).await; None };
//! let first = future::or(lines.next(), too_late).await;
//! assert_eq!(first.expect("it came in time")?, "one");
//! assert_eq!(lines.next().await.expect("a second one")?, "two");
//! assert!(lines.next().await.is_none());
//! # std::io::Result::Ok(())
//! # })).expect("no panic")?;
//! # std::io::Result::Ok(())
//! ```
//!
//! # Where it runs
//! On Linux only.
//!
//! # Cargo features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `dns` | yes | the module `dns`: resolving names, and connecting by name |
//!
//! # Other executors
//! Most futures of this crate may be polled by other executors, and outside of any. The wakers that they are given are then called
//! by this runtime's workers, and must not block there.
#![forbid(unsafe_code)]

#[cfg(feature = "dns")]
pub mod dns;
pub mod events;
pub mod fs;
mod io_error;
pub mod local;
pub mod net;
pub mod pipe;
pub mod process;
pub mod scope;
pub mod signal;
pub mod stage;
pub mod sync;
pub mod thread;
pub mod time;

pub use events::{
    Callback, HandleExt, PostOptions, Refused, TimerHandle, after, every, post, post_in, post_with,
};
pub use io_error::OpError;
pub use scope::{Child, Nursery, Scope, scope, scope_in};
pub use thread::{named, spawn, spawn_blocking, spawn_in, thread_name, try_spawn_blocking};
pub use tussah_core::heap;
pub use tussah_core::time::{AdvanceHook, Clock, ManualClock};
pub use tussah_core::{
    AbortHandle, AllColored, AsColor, BlockingHandle, BlockingPool, BlockingStats, Builder,
    CANDIDATES_MAX, Candidate, Color, ColorName, ColorRef, ColorStats, Colored, DriverReport,
    DropReason, FileDriver, Handle, JoinError, JoinHandle, NoRuntime, Operation, PASSED_OVER_MAX,
    Policy, PoolDecision, PoolPolicy, PoolSample, PostError, Priorities, Read, Runtime,
    ShutdownOutcome, ShutdownReport, Stats, Stuck, SubmitError, With, WithAll, WorkerStats, Write,
    YieldNow, consume_budget, with_all, yield_now,
};
pub use tussah_macros::{main, test};

/// What the runtime that the caller runs in waits on, and which way its files go, with why: made to be printed or logged.
///
/// # Panics
/// Outside of a runtime; there is [`Handle::driver`] for callers elsewhere.
///
/// # Examples
/// ```
/// #[tussah::main]
/// async fn main() {
///     println!("{}", tussah::driver()); // "sockets: epoll; files: io_uring"
/// }
/// ```
#[track_caller]
#[must_use]
pub fn driver() -> DriverReport {
    Handle::with_current(Handle::driver)
}

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
