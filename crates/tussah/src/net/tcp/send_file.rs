//! Sending files without copying them through the process.
//!
//! `sendfile` doesn't wait for the socket, but it does for the disk. So each piece is first looked for in the page cache (one byte
//! at each end of it is asked for with `RWF_NOWAIT`); if it is not there, the blocking pool reads it in, and then it is sent by
//! the worker. A file in the cache costs two short system calls for each 256 KiB, and no switch of OS threads.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use tussah_core::Handle;

use super::stream::TcpStream;
use super::transfer::{Limited as _, Verb};
use crate::net::socket::TRANSFER_MAX;

/// Bound, in bytes: the buffer with which a piece is read into the page cache.
const SCRATCH_BYTES: usize = 64 * 1024;

/// A file ended while it was sent: it was truncated, or it is shorter than the caller thought.
///
/// It is inside of the [`io::Error`] of [`TcpStream::send_file`], whose kind is `UnexpectedEof`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileTruncated {
    /// Bytes that were sent.
    pub sent: u64,
    /// Bytes that should have been sent.
    pub len: u64,
}

impl TcpStream {
    /// Sends `len` bytes of a file, from `offset` on. The file's own position is neither used nor changed.
    ///
    /// Other threads of the runtime don't wait for the disk: what is not in memory is read by the blocking pool first.
    /// Several pieces are sent one after the other, each in turn with what other threads write to the stream. Unlike the other
    /// operations, this one raises `SIGPIPE` if the peer is gone; a Rust program ignores that signal unless it was told otherwise.
    ///
    /// # Cancellation
    /// Part of it may have been sent when the future is dropped.
    ///
    /// # Errors
    /// `UnexpectedEof` with [`FileTruncated`] inside if the file ends first; as [`write`](Self::write); `InvalidInput` if it is
    /// neither a regular file nor a disk: a pipe or a device may have to be waited for, and reading is the way for that. What the
    /// system says of the file. Part of it may have been sent.
    ///
    /// # Examples
    /// ```
    /// use std::os::fd::AsFd;
    /// use tussah::net::{TcpListener, TcpStream};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// # let listener = TcpListener::bind("127.0.0.1:0")?;
    /// # let client = TcpStream::connect(listener.local_addr()?).await?;
    /// # let (server, _) = listener.accept().await?;
    /// let file = std::fs::File::open("Cargo.toml")?;
    /// server.send_file(file.as_fd(), 1, 7).await?;
    /// let mut buffer = [0; 7];
    /// client.read_exact(&mut buffer).await?;
    /// assert_eq!(&buffer, b"package");
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn send_file(&self, file: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
        check(file).map_err(|error| self.failed(Verb::SendFile, error))?;
        let (mut sent, mut warm) = (0, 0);
        while sent < len {
            if sent >= warm {
                let piece = (len - sent).min(TRANSFER_MAX as u64) as usize;
                if is_cold(file, offset.saturating_add(sent), piece) {
                    read_in(file, offset + sent, piece).await?;
                }
                warm = sent + piece as u64;
            }
            let piece = (warm - sent) as usize;
            let attempt = || {
                self.socket()
                    .send_file(file, offset + sent, piece)
                    .map(Some)
            };
            let len_sent = self.transfer(Verb::SendFile, attempt).await?;
            if len_sent == 0 {
                let truncated = FileTruncated { sent, len };
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, truncated));
            }
            sent += len_sent as u64;
        }
        Ok(())
    }
}

/// Refuses what could say `WouldBlock` by itself: that is taken for what the socket says.
fn check(file: BorrowedFd<'_>) -> io::Result<()> {
    match FileType::from_raw_mode(fstat(file)?.st_mode) {
        FileType::RegularFile | FileType::BlockDevice => Ok(()),
        _ => {
            let text = "expected a regular file or a disk";
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        }
    }
}

/// Whether the disk would have to be waited for. A file system that can't tell is taken for a fast one.
fn is_cold(file: BorrowedFd<'_>, offset: u64, len: usize) -> bool {
    [offset, offset.saturating_add(len as u64 - 1)]
        .into_iter()
        .any(|at| {
            let mut byte = [0];
            let read = preadv2(
                file,
                &mut [IoSliceMut::new(&mut byte)],
                at,
                ReadWriteFlags::NOWAIT,
            );
            read == Err(Errno::AGAIN)
        })
}

/// Has the blocking pool read a piece, so that it is in memory. If the pool is full, the worker will wait for the disk.
async fn read_in(file: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<()> {
    let Ok(handle) = Handle::try_current() else {
        return Ok(());
    };
    let file = File::from(file.try_clone_to_owned()?);
    let job = handle.blocking().submit(move || {
        let mut scratch = vec![0; SCRATCH_BYTES.min(len)];
        let mut done = 0;
        while done < len {
            match file.read_at(&mut scratch, offset + done as u64) {
                // What is wrong with the file is said when it is sent.
                Ok(0) | Err(_) => return,
                Ok(read) => done += read,
            }
        }
    });
    if let Ok(job) = job {
        let _ = job.await;
    }
    Ok(())
}

impl fmt::Display for FileTruncated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sent, len } = self;
        write!(f, "the file ended after {sent} of {len} bytes were sent")
    }
}

impl Error for FileTruncated {}
