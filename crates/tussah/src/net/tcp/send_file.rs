//! Sending files without copying them through the process.
//!
//! `sendfile` does not block on the socket, but it blocks on the disk. Each piece is therefore
//! first looked up in the page cache: one byte at each end is requested with `RWF_NOWAIT`. If it is
//! missing, the blocking pool reads it, and the worker then sends it. A cached file costs two short
//! system calls for each 256 KiB, and no switch of OS threads.
//!
//! A file that `sendfile` does not support is read and written instead, as sendfile(2) advises for
//! `EINVAL` and `ENOSYS`.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2, retry_on_intr};
use tussah_core::Handle;

use super::stream::TcpStream;
use super::transfer::{Limited as _, Verb};
use crate::net::socket::TRANSFER_MAX;

/// The maximum size, in bytes, of the buffer for reading a part of a file into the page cache, or
/// for copying it.
const SCRATCH_BYTES: usize = 64 * 1024;

/// The error returned when a file ends before all requested bytes have been sent. The file was
/// truncated, or is shorter than the caller assumed.
///
/// If a file ends early, [`TcpStream::send_file`] returns an [`io::Error`] of the kind
/// `UnexpectedEof` that contains this error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileTruncated {
    /// Number of bytes sent.
    pub sent: u64,
    /// Number of bytes that the caller requested.
    pub len: u64,
}

impl TcpStream {
    /// Sends `len` bytes of a file, starting at `offset`. The file's current position is neither
    /// used nor changed.
    ///
    /// The worker does not block on the disk: the blocking pool first reads data that is not in
    /// memory. If sendfile(2) does not support a file, for example one in `/proc`, this function
    /// reads and writes the data instead. The file is sent in parts, and other threads may write to
    /// the stream between two parts. Unlike the other operations of a stream, `send_file` raises
    /// `SIGPIPE` if the peer has closed the connection. Rust programs ignore `SIGPIPE` by default.
    ///
    /// # Cancellation
    /// If the future is dropped, part of the file may have been sent.
    ///
    /// # Errors
    /// If the file ends early, returns an error of the kind `UnexpectedEof` that contains a
    /// [`FileTruncated`]. Returns `InvalidInput` if the file is neither a regular file nor a block
    /// device, because a read from a pipe or another device can block. Otherwise, returns any error
    /// from [`write`](Self::write), or any error that the operating system reports for the file.
    /// After an error, part of the file may have been sent.
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
            let attempt = || match self.socket().send_file(file, offset + sent, piece) {
                Err(error) if cannot_send(&error) => Ok(Some(None)),
                sent => sent.map(|len| Some(Some(len))),
            };
            let len_sent = match self.transfer(Verb::SendFile, attempt).await? {
                Some(len) => len,
                None => self.copy(file, offset + sent, piece).await?,
            };
            if len_sent == 0 {
                let truncated = FileTruncated { sent, len };
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, truncated));
            }
            sent += len_sent as u64;
        }
        Ok(())
    }

    /// Reads a piece, or the start of a piece, and writes all of it. Returns 0 at the end of the
    /// file.
    async fn copy(&self, file: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<usize> {
        let read = read(file, offset, len).await;
        let bytes = read.map_err(|error| self.failed(Verb::SendFile, error))?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let attempt = || self.socket().send(rest).map(Some);
            let written = self.transfer(Verb::SendFile, attempt).await?;
            rest = &rest[written..];
        }
        Ok(bytes.len())
    }
}

/// Returns whether `sendfile` does not support this file. Any other problem appears when the file
/// is read.
fn cannot_send(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::INVAL | Errno::NOSYS))
}

/// Rejects files that could return `WouldBlock` themselves, which would be mistaken for that of the
/// socket.
fn check(file: BorrowedFd<'_>) -> io::Result<()> {
    match FileType::from_raw_mode(fstat(file)?.st_mode) {
        FileType::RegularFile | FileType::BlockDevice => Ok(()),
        _ => {
            let text = "expected a regular file or a block device";
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        }
    }
}

/// Returns whether reading would block on the disk. A file system that cannot tell counts as fast.
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

/// Reads a piece into memory on the blocking pool. If the pool is full, the worker will block on
/// the disk.
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
                // Sending the file reports this error.
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

/// Reads the start of a piece on the blocking pool, or on the worker if the pool is full.
async fn read(file: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let file = File::from(file.try_clone_to_owned()?);
    let job = move || {
        let mut bytes = vec![0; SCRATCH_BYTES.min(len)];
        let read = retry_on_intr(|| pread(&file, &mut bytes, offset))?;
        bytes.truncate(read);
        Ok(bytes)
    };
    let Ok(handle) = Handle::try_current() else {
        return job();
    };
    match handle.blocking().submit(job) {
        Ok(job) => job.await.map_err(io::Error::other)?,
        Err(refused) => refused.into_inner()(),
    }
}

impl fmt::Display for FileTruncated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sent, len } = self;
        write!(f, "the file ended after {sent} of {len} bytes were sent")
    }
}

impl Error for FileTruncated {}
