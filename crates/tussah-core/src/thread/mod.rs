//! Threads: futures that workers poll, each poll as one event.
//!
//! # The state word of a thread
//!
//! | bits | name | meaning | set by | cleared by |
//! |---|---|---|---|---|
//! | 0 | `SCHEDULED` | the thread is in a queue, or will be when the running poll ends | wakers, `abort`, the runner | the runner, before it polls |
//! | 1 | `RUNNING` | a worker is polling it | the runner | the runner |
//! | 2 | `COMPLETE` | the future is dropped; the output is in its place | the runner, once | nobody |
//! | 3 | `ABORTED` | the next poll drops the future instead | `abort` | nobody |
//! | 4 | `HANDLE` | the join handle is alive | the spawner | the handle |
//! | 5 | `JOINER` | the joiner slot holds a waker for the runner to call | the handle | the handle, before `COMPLETE` |
//! | 8–63 | references | the runtime (until complete), the handle, each waker | | |
//!
//! Rules for access to each field:
//!
//! 1. *The future* belongs to the worker that set `RUNNING`. Setting it needs `SCHEDULED`. A thread
//!    with `SCHEDULED` is in only one queue, because only the party that sets the bit while
//!    `RUNNING` is unset queues it.
//! 2. *The output* belongs to the handle once it sees `COMPLETE` while `HANDLE` is set; without
//!    `HANDLE`, it belongs to the runner.
//! 3. *The joiner slot* belongs to the handle while `JOINER` is unset. While `JOINER` is set the
//!    slot is read-only. Only the handle changes the bit, and only before `COMPLETE`; the runner
//!    wakes by reference.
//! 4. *The memory* is freed with the last reference. The slab never writes the state word, so the
//!    shutdown may look at every slot: a slot whose word has no reference is free.
//!
//! A thread that is pending forever lives until the shutdown, which drops its future.

pub(crate) mod coop;
mod header;
mod join;
#[cfg(all(test, loom))]
mod loom_tests;
mod raw;
pub(crate) mod waker;

pub use coop::{YieldNow, consume_budget, has_yielded, yield_now};
pub use join::{AbortHandle, JoinHandle};

pub(crate) use coop::again;
pub(crate) use header::Header;
pub(crate) use raw::spawn;
