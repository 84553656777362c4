//! Files: io_uring where the kernel has it, the blocking pool where not.
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
//! An operation (`op/`, one a file) has a form for the ring and one for the pool, and one way to make a result of what either
//! says. Its state, and the rules by which it keeps what the kernel was shown, are in `cell.rs`.
//!
//! # Rings
//!
//! Each worker has a ring of its own, made with its first operation, so that what its events push is handed over with one
//! system call for all. Nothing about a ring is private to its worker: an OS thread outside of the runtime pushes to it and
//! flushes it, and a peer of a worker that is held by a long event takes its completions. So no flag that ties a ring to one OS thread
//! is used.
//!
//! What an OS thread has submitted the kernel gives up when that OS thread ends (`ECANCELED`, `EFAULT`). An operation that nobody has
//! cancelled is then submitted again, by who takes the completion.
//!
//! Neither descriptors nor buffers are registered with a ring: a file lives on any worker, and a buffer is the user's.

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

/// What operations end with that the end of their runtime has left over.
fn ended() -> io::Error {
    io::Error::other("the runtime is shut down")
}

/// Has the worker of a place wait for a ring's completions too.
fn register(shared: &Arc<Shared>, place: usize, ring: &Arc<Ring>) -> io::Result<()> {
    ring.set_home(Arc::downgrade(shared), place);
    shared.driver_of(place).add_ring(ring.fd(), place)
}
