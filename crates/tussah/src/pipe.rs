//! Pipes: one-way byte streams within one machine.
//!
//! Each operation is first tried immediately. If the operation would block, it waits until the
//! driver reports that the pipe is ready. Operations take `&self`, so several threads can share an
//! end. A single [`Writer::write`] of up to 4,096 bytes is never interleaved with other writes.
//!
//! The piped standard streams of a child process use the types of this module; see
//! [`process`](crate::process).

mod writer;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::AsyncRead;
use rustix::buffer::spare_capacity;
use rustix::pipe::PipeFlags;
use tussah_core::Handle;
use tussah_core::io::{Direction, Source, spend_bytes};

use crate::io_error::context;
use crate::net::socket::ready;
pub use writer::Writer;

/// The initial room that `read_to_end` reserves, in bytes; it doubles from there.
const ROOM: usize = 8 * 1024;

/// Creates a pipe in the current runtime. Bytes written to one end are read from the other.
///
/// Both ends are close-on-exec. By default, the kernel buffers up to 64 KiB between the two ends.
/// The pipe does not use packet mode (`O_DIRECT`); to use that mode, pass your own descriptors to
/// [`Reader::from_fd`].
///
/// # Errors
/// Returns the system's error, for example if the process has no descriptors left.
///
/// # Panics
/// Panics if called outside a runtime.
///
/// # Examples
/// ```
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let (reader, writer) = tussah::pipe::pipe()?;
/// writer.write_all(b"hello").await?;
/// drop(writer);
/// let mut text = Vec::new();
/// reader.read_to_end(&mut text).await?;
/// assert_eq!(text, b"hello");
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
#[track_caller]
pub fn pipe() -> io::Result<(Reader, Writer)> {
    let handle = Handle::current();
    let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
    let (read, write) =
        rustix::pipe::pipe_with(flags).map_err(|error| context(error.into(), "make", "a pipe"))?;
    let end = |fd| End {
        source: Source::new_in(&handle, fd),
        name: "a pipe",
    };
    let (reader, writer) = (end(read), end(write));
    let writer = Writer { end: Some(writer) };
    Ok((Reader { end: reader }, writer))
}

/// One end of a pipe.
#[derive(Debug)]
struct End {
    source: Source,
    /// The name used in error messages.
    name: &'static str,
}

impl End {
    fn from_fd(handle: &Handle, fd: OwnedFd, name: &'static str) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)
            .map_err(|error| context(error.into(), "make non-blocking", name))?;
        Ok(Self {
            source: Source::new_in(handle, fd),
            name,
        })
    }

    /// Transfers once, and retries if a signal interrupts it. A short transfer does not mean that
    /// the pipe is empty: in packet mode, which the other end may choose, each read ends at a
    /// packet boundary.
    fn transfer(system_call: impl FnMut() -> rustix::io::Result<usize>) -> io::Result<usize> {
        let len = rustix::io::retry_on_intr(system_call)?;
        spend_bytes(len);
        Ok(len)
    }

    fn read_now(&self, fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
        Self::transfer(|| rustix::io::read(fd, &mut *buffer))
    }

    fn write_now(&self, fd: BorrowedFd<'_>, data: &[u8]) -> io::Result<usize> {
        Self::transfer(|| rustix::io::write(fd, data))
    }

    /// Waits until an attempt would not block.
    async fn wait_ready(&self, direction: Direction) -> io::Result<()> {
        self.source.io(direction, |fd| ready(fd, direction)).await
    }

    fn read_error(&self, error: io::Error) -> io::Error {
        context(error, "read from", self.name)
    }

    fn write_error(&self, error: io::Error) -> io::Error {
        context(error, "write to", self.name)
    }

    fn into_blocking_fd(self) -> io::Result<OwnedFd> {
        let fd = self.source.into_fd();
        rustix::io::ioctl_fionbio(&fd, false)
            .map_err(|error| context(error.into(), "make blocking", self.name))?;
        Ok(fd)
    }
}

/// The reading end of a pipe. Dropping the reader closes this end, and writers then get
/// `BrokenPipe`.
///
/// The reader also implements `AsyncRead` of `futures_io`, for use by one thread at a time.
#[derive(Debug)]
pub struct Reader {
    end: End,
}

impl Reader {
    /// Creates a reader on the current runtime from a readable descriptor that epoll supports (a
    /// pipe, a FIFO, a terminal), and takes ownership of the descriptor.
    ///
    /// The call puts the descriptor into non-blocking mode, which affects all processes that share
    /// its open file description.
    ///
    /// # Errors
    /// Returns the system's error.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    ///
    /// # Examples
    /// ```
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let (reader, mut writer) = std::io::pipe()?;
    /// std::io::Write::write_all(&mut writer, b"hello")?;
    /// let reader = tussah::pipe::Reader::from_fd(reader.into())?;
    /// let mut text = [0; 5];
    /// reader.read_exact(&mut text).await?;
    /// assert_eq!(&text, b"hello");
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn from_fd(fd: OwnedFd) -> io::Result<Self> {
        Self::from_fd_in(&Handle::current(), fd, "a pipe")
    }

    pub(crate) fn from_fd_in(handle: &Handle, fd: OwnedFd, name: &'static str) -> io::Result<Self> {
        let end = End::from_fd(handle, fd, name)?;
        Ok(Self { end })
    }

    /// Used by callbacks.
    pub(crate) fn handle(&self) -> Handle {
        self.end.source.handle()
    }

    /// Used by callbacks.
    pub(crate) async fn wait_ready(&self, direction: Direction) -> io::Result<()> {
        self.end.wait_ready(direction).await
    }

    /// Puts the descriptor into blocking mode and returns it.
    ///
    /// # Errors
    /// Returns the system's error; the descriptor is then closed.
    pub fn into_fd(self) -> io::Result<OwnedFd> {
        self.end.into_blocking_fd()
    }

    /// Waits for data and reads it into `buffer`. Returns the number of bytes read, which is 0 only
    /// if `buffer` is empty or all writers have closed the pipe.
    ///
    /// # Errors
    /// Returns the system's error, or `Other` if the runtime ends.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been read.
    ///
    /// # Examples
    /// ```
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let (reader, writer) = tussah::pipe::pipe()?;
    /// writer.write_all(b"hello").await?;
    /// let mut buffer = [0; 64];
    /// assert_eq!(reader.read(&mut buffer).await?, 5);
    /// drop(writer);
    /// assert_eq!(reader.read(&mut buffer).await?, 0);
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let end = &self.end;
        let read = end
            .source
            .io(Direction::Read, |fd| end.read_now(fd, buffer));
        read.await.map_err(|error| end.read_error(error))
    }

    /// Reads the available bytes without waiting. Returns `None` if no bytes are available.
    ///
    /// # Errors
    /// Same as [`read`](Self::read).
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let end = &self.end;
        match end.read_now(end.source.as_fd(), buffer) {
            Ok(len) => Ok(Some(len)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(end.read_error(error)),
        }
    }

    /// Fills the buffer.
    ///
    /// # Errors
    /// Returns `UnexpectedEof` if the stream ends before the buffer is full; the bytes read so far
    /// are in the buffer. Returns any error from [`read`](Self::read).
    ///
    /// # Cancellation
    /// If the future is dropped, the bytes read so far are in the buffer, but their number is lost.
    /// To keep track of the number of bytes read, call [`read`](Self::read) in a loop instead.
    ///
    /// # Examples
    /// See [`from_fd`](Self::from_fd).
    pub async fn read_exact(&self, buffer: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            match self.read(&mut buffer[done..]).await? {
                0 => {
                    let text = format!("expected {} bytes, got {done}", buffer.len());
                    let error = io::Error::new(io::ErrorKind::UnexpectedEof, text);
                    return Err(self.end.read_error(error));
                }
                len => done += len,
            }
        }
        Ok(())
    }

    /// Reads to the end of the stream, appends the bytes to `buffer`, and returns their number.
    ///
    /// The buffer can grow without limit.
    ///
    /// # Errors
    /// Returns any error from [`read`](Self::read). After an error, the bytes read so far are in
    /// the buffer.
    ///
    /// # Cancellation
    /// If the future is dropped, the bytes read so far are in the buffer, and reading can continue.
    ///
    /// # Examples
    /// See [`pipe`].
    pub async fn read_to_end(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        self.read_to_limit(buffer, usize::MAX).await
    }

    /// Reads to the end, or until the buffer holds more than `len_max` bytes. Returns the number of
    /// bytes read.
    pub(crate) async fn read_to_limit(
        &self,
        buffer: &mut Vec<u8>,
        len_max: usize,
    ) -> io::Result<usize> {
        let end = &self.end;
        let before = buffer.len();
        while buffer.len() <= len_max {
            if buffer.len() == buffer.capacity() {
                buffer.reserve(ROOM.max(buffer.len()));
            }
            let read = end.source.io(Direction::Read, |fd| {
                End::transfer(|| rustix::io::read(fd, spare_capacity(buffer)))
            });
            if read.await.map_err(|error| end.read_error(error))? == 0 {
                break;
            }
        }
        Ok(buffer.len() - before)
    }
}

impl AsyncRead for Reader {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let end = &self.end;
        let read = |fd: BorrowedFd<'_>| end.read_now(fd, buffer);
        let poll = end.source.poll_io(context, Direction::Read, read);
        poll.map_err(|error| end.read_error(error))
    }
}

impl AsFd for Reader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.source.as_fd()
    }
}
