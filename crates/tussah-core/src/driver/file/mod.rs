//! File operations, through io_uring if the kernel supports it, and otherwise on the blocking pool.
//!
//! ```text
//!  first poll ─► turn in the file's queue (order.rs; writes only) ─► route (launch.rs)
//!                                                          ┌──────────┴──────────┐
//!                                                 a worker's ring (ring.rs)   the blocking pool
//!                                                          │ push, flush, reap    │ block
//!                                                          └──────────┬──────────┘
//!                              completion: the result, or the next part; wake; the next of the file's queue
//! ```
//!
//! Each operation has its own source file in `op/`, with a version for the ring, a version for the
//! pool, and one function that converts the result of either version. The file `cell.rs` contains
//! the state of an operation, and the rules that keep memory alive while the kernel may access it.
//!
//! # Rings
//!
//! Each worker has its own ring, which is created for the worker's first operation. One system call
//! submits all operations that the worker's events have pushed. A ring is not private to its
//! worker: an OS thread outside the runtime may push operations to a ring and flush it, and another
//! worker takes the completions of a worker that is stuck in a long event. Therefore, no ring is
//! set up with a flag that ties it to one OS thread.
//!
//! When an OS thread ends, the kernel aborts the operations that this OS thread has submitted
//! (`ECANCELED`, `EFAULT`). The receiver of such a completion submits the operation again, unless
//! the operation was cancelled.
//!
//! Neither descriptors nor buffers are registered with a ring, because any worker may use a file,
//! and because a buffer belongs to the user.

mod aligned;
mod buffer;
mod cached;
mod cell;
mod choice;
mod launch;
mod metadata;
mod names;
mod op;
mod open_file;
mod open_how;
mod operation;
mod order;
mod ring;
mod run;
mod slots;
#[cfg(all(test, not(loom)))]
mod tests;

use std::io;
use std::sync::Arc;

pub use aligned::AlignedBuf;
pub use buffer::{IoBuf, IoBufMut};
pub use choice::FileDriver;
pub(crate) use choice::Files;
pub(crate) use launch::RingPlace;
pub use metadata::{FileType, Metadata};
pub use names::{create_dir, hard_link, metadata, remove_dir, remove_file, rename, symlink};
pub use op::write::At;
pub use open_file::{OpenFile, open};
pub use open_how::OpenHow;
pub(crate) use ring::Ring;
pub use run::call;

use crate::runtime::Shared;

/// The error of operations that were incomplete when their runtime ended.
fn ended() -> io::Error {
    io::Error::other("the runtime is shut down")
}

/// Makes the worker of a place also wait for a ring's completions.
fn register(shared: &Arc<Shared>, place: usize, ring: &Arc<Ring>) -> io::Result<()> {
    ring.set_home(Arc::downgrade(shared), place);
    shared.driver_of(place).add_ring(ring.fd(), place)
}
