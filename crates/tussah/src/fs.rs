//! File operations that never block a worker: they use io_uring, or the blocking pool on kernels
//! without it.
//!
//! A [`File`] is read and written at offsets. Its operations own their buffers until the kernel has
//! finished with them. A [`Cursor`] adds a position and implements the traits of `futures_io`. The
//! free functions take a path and work like their namesakes in `std::fs`.
//! [`Handle::driver`](crate::Handle::driver) reports which backend a runtime uses.
//!
//! # Order
//! Operations that change a file (`write_at`, `append`, `set_len`, `sync_all`, `sync_data`) run one
//! at a time, in the order in which their futures were first polled. Reads have no order, and
//! neither do operations through another `File` of the same path.
//!
//! # Cancellation
//! Dropping a future discards its result. The operation's buffer is dropped as soon as the kernel
//! no longer uses it.
//!
//! - A read is cancelled in the kernel.
//! - A change that has started is carried out. A change that still waits in the file's queue is not
//!   carried out. To find out whether a change was carried out, await the future.
//! - When the runtime ends, operations that have started get more time: half a second per worker
//!   with io_uring, or the shutdown deadline on the blocking pool. Operations that have not ended
//!   by then are abandoned.
//!
//! An operation that outlives its future keeps its memory until it has ended. Such operations are
//! at most one write for each open file, reads that the kernel has not cancelled yet, and every
//! close or change of a name. A program that starts many such operations and drops their futures
//! must limit their number itself.
//!
//! # Errors
//! Each error names the operation and its object:
//! `open /x/y: No such file or directory (os error 2)`. Its [`kind`](std::io::Error::kind) is the
//! system's, and [`OpError`](crate::OpError) has the error number. If the runtime shuts down
//! meanwhile, the operation fails, and its error says so. An operation that the kernel does not
//! release within half a second, for example on a network file system that hangs, never completes.
//!
//! # Panics
//! Every operation panics if it is first polled outside a runtime.
//! # Examples
//! ```
//! use tussah::fs::{self, File};
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("greeting");
//! # let runtime = tussah::Runtime::builder().workers(1).build()?;
//! # runtime.block_on(runtime.spawn(async move {
//! let file = File::create(&path).await?;
//! let (written, _buffer) = file.write_all_at("hello", 0).await;
//! written?;
//! file.sync_all().await?;
//! assert_eq!(fs::read_to_string(&path).await?, "hello");
//! # std::io::Result::Ok(())
//! # })).expect("no panic")?;
//! # std::io::Result::Ok(())
//! ```

mod cursor;
mod dir;
mod file;
mod names;
mod options;
mod whole;

pub use cursor::Cursor;
pub use dir::{DirEntry, ReadDir, read_dir};
pub use file::File;
pub use names::{
    canonicalize, create_dir, create_dir_all, exists, hard_link, metadata, read_link, remove_dir,
    remove_dir_all, remove_file, rename, set_permissions, symlink, symlink_metadata,
};
pub use options::OpenOptions;
pub use tussah_core::file::{AlignedBuf, FileType, IoBuf, IoBufMut, Metadata};
pub use whole::{copy, read, read_to_string, write};
