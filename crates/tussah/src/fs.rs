//! Files that do not block: by io_uring, or by the blocking pool where the kernel has none.
//!
//! A [`File`] is read and written at offsets, with buffers that the operation owns until the kernel is done with them; a
//! [`Cursor`] has a position, and the traits of `futures_io`. The functions here do with a path what those of the same names in
//! `std::fs` do. Which way a runtime's files go says [`Handle::driver`](crate::Handle::driver).
//!
//! # Order
//! What changes one file (`write_at`, `append`, `set_len`, `sync_all`, `sync_data`) is carried out one at a time, in the order in which
//! the futures were first polled. Reads, and what is done through another `File` of the same path, have no order.
//!
//! # Cancellation
//! Dropping a future gives up the result and the buffer, which is dropped as soon as the kernel no longer uses it. Of what reads, the
//! kernel is told so. What changes something is carried out if it has begun, and not if it still waits for its turn
//! in the file's queue: await it to know. At the end of the runtime what has begun gets half a second more for each worker, or on the
//! blocking pool the deadline of the shutdown; what is not done by then is given up.
//!
//! What goes on after its future was dropped holds its memory until it has ended: at most one write of each open file, the reads that the
//! kernel has not given up yet, and every close and change of a name. So a program that begins many of these and drops their futures
//! has to limit them itself.
//!
//! # Errors
//! Each error says what was tried, and on what: `open /x/y: No such file or directory (os error 2)`. Its
//! [`kind`](std::io::Error::kind) is the system's, and [`OpError`](crate::OpError) has its number. If the runtime is shut down
//! meanwhile, that is the error; what the kernel does not give up within half a second then, as on a network's file system that
//! hangs, has no end.
//!
//! # Panics
//! Every operation panics if it is first polled outside of a runtime.
//!
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
