//! File operations that never block a worker. The operations use io_uring or, on kernels without
//! it, the blocking pool.
//!
//! A [`File`] is read and written at byte offsets. Each operation owns its buffer until the kernel
//! has finished with it. A [`Cursor`] adds a position to a file, and implements the traits of
//! `futures_io`. The free functions take a path, and work like their counterparts in `std::fs`.
//! [`Handle::driver`](crate::Handle::driver) reports which backend a runtime uses.
//!
//! # Order
//! The operations that change or flush a [`File`] (`write_at`, `append`, `set_len`, `sync_all`,
//! `sync_data`) are called *changes* here. The changes to a `File` run one at a time, in the order
//! in which their futures were first polled. Reads run in no particular order. The same is true of
//! operations on different `File`s with the same path.
//!
//! # Cancellation
//! Dropping a future discards its result. The operation's buffer is dropped as soon as the kernel
//! no longer uses it.
//!
//! - If the future of a read is dropped, the runtime asks the kernel to cancel the read. A read on
//!   the blocking pool cannot be cancelled once it has started.
//! - Unless the runtime shuts down, a change that has started runs to completion. A change that is
//!   still waiting in the file's queue is discarded. To find out whether a change was made, await
//!   the future.
//! - When the runtime shuts down, it gives the changes in each worker's io_uring half a second to
//!   complete, and then cancels the rest. The runtime waits for operations on the blocking pool
//!   until the shutdown deadline, and then abandons them.
//!
//! An operation that outlives its future keeps its memory allocated until the operation ends. At
//! most one change per open file can outlive its future. The following operations can also outlive
//! their futures, in any number: reads whose cancellation is pending or impossible, calls to
//! `close`, and operations on paths, such as `rename`, `remove_file` and `copy`. A program that
//! starts many such operations and drops their futures must limit their number itself.
//!
//! # Errors
//! Each error names the operation and its object:
//! `open /x/y: No such file or directory (os error 2)`. The error has the
//! [`kind`](std::io::Error::kind) of the system's error, and [`OpError`](crate::OpError) provides
//! the error number. If the runtime shuts down during an operation, the operation fails with an
//! error that reports the shutdown. If the kernel neither completes nor cancels an operation within
//! a second of shutdown, for example because a network file system hangs, the operation's future
//! never completes.
//!
//! # Panics
//! All operations panic if they are first polled outside a runtime.
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
