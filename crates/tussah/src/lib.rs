//! tussah is a concurrency runtime for network services. Everything that runs in tussah is an
//! *event* with a *color*.
//!
//! A color is a serialization domain. Events of one color run one at a time, in the order in which
//! they were posted. Events of different colors run in parallel, on one worker per CPU, and idle
//! workers steal whole colors from busy ones. Shared state therefore needs neither a lock nor an
//! actor: give it a color, and only events of that color touch it.
//!
//! # Four ways to write a service
//!
//! The following four interfaces use one scheduler, and a program can mix them freely.
//!
//! - **Threads** ([`spawn`], [`scope()`]) are `async` computations. A thread runs as a sequence of
//!   events, each of which extends from one await to the next.
//! - **Colored state** ([`Colored`]) is a value with a color of its own. `value.with(|v| ..).await`
//!   runs a closure on the value: immediately if the value is idle, otherwise after the events
//!   already queued. No reference to the value leaves the closure, and no OS thread blocks.
//! - **Events** ([`post_in`], [`after`], [`every`], [`Callback`]) are closures that run in a color
//!   that you choose. The module [`events`] also provides callbacks for descriptors, signals and
//!   child processes.
//! - **Stages** ([`stage::Network`]) are handlers behind bounded queues. Controllers adjust each
//!   stage to its load, and reject events that the stage cannot serve in time. A [graph](flow)
//!   builds stages from modules, and runs each module in parallel as far as the signatures of its
//!   methods allow.
//!
//! [`net`], [`fs`], [`process`], [`signal`] and [`time`] provide I/O and timers; [`sync`] provides
//! locks and channels.
//!
//! # Guarantees
//!
//! - Colors cannot deadlock: a thread leaves its color while it awaits.
//! - A panic ends only the event in which it happens, and poisons nothing.
//! - Every queue is bounded. If a queue is full, the caller waits for free space or gets the item
//!   back.
//!
//! # A first program
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
//! [`#[tussah::main]`](main) starts a runtime with one worker per CPU. [`Runtime::builder`]
//! provides all settings, such as the scheduling policy. The functions of this crate use the
//! current runtime; the corresponding methods of [`Handle`] work on any OS thread.
//!
//! # Stream adapters
//! Byte streams implement the traits of `futures_io`, and item streams implement `Stream` of
//! `futures_core`. Adapters such as `lines`, `BufReader` and `take` come from
//! [`futures-lite`](https://docs.rs/futures-lite/2) 2. `futures-lite` also provides `future::or`,
//! which races two futures: the first to complete wins, and the other is dropped.
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
//! # Platform
//! Linux only.
//!
//! # Cargo features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `dns` | yes | the module `dns`: name resolution, and connecting by host name |
//! | `cli` | no | the module `flow::cli`: the command line of programs that run graphs; includes `standard-modules` |
//! | `standard-modules` | no | `modules::standard`: the standard modules for graphs that are interpreted |
//!
//! # Other executors
//! Most futures of this crate also work in another executor, or outside any runtime. The workers of
//! tussah call the wakers of the other executor, so these wakers must not block.
//!
//! # Further reading
//! The repository contains:
//!
//! - `crates/tussah/examples`: a TCP server, a stage in 30 lines, a custom scheduler, a proxy in
//!   three styles, and one colored structure inside a tokio program.
//! - `docs/guide`: a guide for newcomers, with one program per chapter.
//! - `docs/promises.md`: the promises of tussah and the tests that check them.
//! - `docs/overload.md`: how stages behave under overload.
//! - `docs/bounds.md`: the limits that users can meet or set.
#![forbid(unsafe_code)]

// The expansions of the macros use this name for the crate, also in `modules`.
extern crate self as tussah;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod console;
#[cfg(feature = "dns")]
pub mod dns;
pub mod events;
pub mod flow;
pub mod fs;
mod io_error;
pub mod local;
pub mod modules;
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
pub use scope::{Nursery, Scope, ScopedJoinHandle, scope, scope_in};
pub use thread::{named, spawn, spawn_blocking, spawn_in, thread_name, try_spawn_blocking};
pub use tussah_core::colored;
pub use tussah_core::heap;
pub use tussah_core::time::{AdvanceHook, Clock, ManualClock};
pub use tussah_core::{
    AbortHandle, AsColor, BlockingHandle, BlockingPool, BlockingStats, Builder, CANDIDATES_MAX,
    Candidate, Color, ColorName, ColorRef, ColorStats, Colored, DriverReport, DropReason,
    FileDriver, Handle, JoinError, JoinHandle, NoRuntime, PASSED_OVER_MAX, Policy, PoolPolicy,
    PostError, Priorities, Runtime, ShutdownOutcome, ShutdownReport, Stats, Stuck, SubmitError,
    WorkerStats, YieldNow, consume_budget, with_all, yield_now,
};
pub use tussah_macros::{main, test};

/// Reports which driver and which file backend the current runtime uses, and why. The report can be
/// printed or logged.
///
/// # Panics
/// Panics if called outside a runtime; [`Handle::driver`] works anywhere.
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

/// The chapters of the guide whose programs need no other crate; `tussah-services` contains the
/// others.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../../docs/guide/tour.md")]
    struct Tour;
    #[doc = include_str!("../../../docs/guide/colors.md")]
    struct Colors;
    #[doc = include_str!("../../../docs/guide/threads.md")]
    struct Threads;
    #[doc = include_str!("../../../docs/guide/tcp-server.md")]
    struct TcpServer;
    #[doc = include_str!("../../../docs/guide/graphs.md")]
    struct Graphs;
    #[doc = include_str!("../../../docs/guide/stages.md")]
    struct Stages;
    #[doc = include_str!("../../../docs/guide/overload.md")]
    struct Overload;
    #[doc = include_str!("../../../docs/guide/operations.md")]
    struct Operations;
    #[doc = include_str!("../../../docs/graphs.md")]
    struct GraphsInDetail;
    #[doc = include_str!("../../../docs/modules.md")]
    struct StandardModules;
}
