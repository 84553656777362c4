//! Reading from a TCP stream.

use std::future::Future;
use std::io::{self, IoSliceMut};
use std::mem;
use std::task::{Context, Poll};

use super::stream::TcpStream;
use super::transfer::{Limited as _, Verb};
use crate::net::Hangup;
use crate::net::socket::Direction;

/// Operations that read.
impl TcpStream {
    /// Waits for data and reads it into `buffer`. Returns 0 at the end of the stream, or if
    /// `buffer` is empty.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been read.
    ///
    /// # Errors
    /// Returns `ConnectionReset` if the peer reset the connection. Returns `TimedOut` after the
    /// [read timeout](Self::set_read_timeout), or when the operating system has given up on the
    /// peer. Otherwise, returns any error from the operating system.
    pub fn read<'a>(
        &'a self,
        buffer: &'a mut [u8],
    ) -> impl Future<Output = io::Result<usize>> + Send + Unpin + use<'a> {
        self.transfer(Verb::Read, move || self.receive(buffer).map(Some))
    }

    /// Fills `buffer`.
    ///
    /// # Cancellation
    /// If the future is dropped, the bytes read so far are in `buffer`, but their number is lost.
    ///
    /// # Errors
    /// Returns `UnexpectedEof` if the stream ends before `buffer` is full, or any error from
    /// [`read`](Self::read).
    pub fn read_exact<'a>(
        &'a self,
        buffer: &'a mut [u8],
    ) -> impl Future<Output = io::Result<()>> + Send + Unpin + use<'a> {
        let mut rest = buffer;
        self.transfer(Verb::Read, move || {
            let len = self.receive(rest)?;
            if len == 0 && !rest.is_empty() {
                let text = format!("the stream ended {} bytes early", rest.len());
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
            }
            rest = &mut mem::take(&mut rest)[len..];
            Ok(rest.is_empty().then_some(()))
        })
    }

    /// Reads into several buffers, one after the other. Otherwise works like [`read`](Self::read).
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been read.
    ///
    /// # Errors
    /// Same as [`read`](Self::read).
    pub fn read_vectored<'a, 'b: 'a>(
        &'a self,
        buffers: &'a mut [IoSliceMut<'b>],
    ) -> impl Future<Output = io::Result<usize>> + Send + Unpin + use<'a, 'b> {
        self.transfer(Verb::Read, move || self.receive_vectored(buffers).map(Some))
    }

    /// Waits for data, and copies it into `buffer` without removing it from the stream.
    ///
    /// # Cancellation
    /// Dropping the future has no effect on the stream.
    ///
    /// # Errors
    /// Same as [`read`](Self::read).
    pub fn peek<'a>(
        &'a self,
        buffer: &'a mut [u8],
    ) -> impl Future<Output = io::Result<usize>> + Send + Unpin + use<'a> {
        self.transfer(Verb::Peek, move || match buffer.len() {
            0 => Ok(Some(0)),
            _ => self.socket().peek(buffer).map(Some),
        })
    }

    /// Reads the available data into `buffer` without waiting.
    ///
    /// # Errors
    /// Returns `WouldBlock` if no data is available, or if the rate limit has been reached.
    /// Otherwise, returns any error from the operating system.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.extra() {
            Some(extra) if extra.delay(Direction::Read, false).is_some() => {
                Err(io::ErrorKind::WouldBlock.into())
            }
            _ => self
                .socket()
                .attempt(Direction::Read, || self.receive(buffer)),
        }
    }

    /// Waits until the stream is readable, that is, until data, the end of the stream or an error
    /// is pending.
    ///
    /// # Cancellation
    /// Dropping the future has no effect on the stream.
    ///
    /// # Errors
    /// Same as [`read`](Self::read).
    ///
    /// # Examples
    /// ```
    /// # use tussah::net::{TcpListener, TcpStream};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// # let listener = TcpListener::bind("127.0.0.1:0")?;
    /// # let client = TcpStream::connect(listener.local_addr()?).await?;
    /// # let (server, _) = listener.accept().await?;
    /// client.write_all(b"hello").await?;
    /// server.readable().await?;
    /// let mut buffer = [0; 1024]; // not needed while waiting
    /// assert_eq!(server.try_read(&mut buffer)?, 5);
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn readable(&self) -> impl Future<Output = io::Result<()>> + Send + Unpin + use<'_> {
        self.transfer(Verb::Read, || {
            self.socket().ready(Direction::Read).map(Some)
        })
    }

    /// Waits until the driver has reported that the stream is readable. To avoid holding a buffer
    /// during the wait, allocate it after this function has returned `Ready`.
    ///
    /// Only the first wait costs a system call. The function ignores timeouts and rate limits, and
    /// continues to return `Ready` until a read finds no data. If several tasks wait with this
    /// function or `poll_read`, only the last caller is woken.
    ///
    /// # Errors
    /// Returns the system's error if the descriptor cannot be registered, or `Other` if the runtime
    /// ends.
    ///
    /// # Examples
    /// ```
    /// use std::future::poll_fn;
    /// # use tussah::net::{TcpListener, TcpStream};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// # let listener = TcpListener::bind("127.0.0.1:0")?;
    /// # let client = TcpStream::connect(listener.local_addr()?).await?;
    /// # let (server, _) = listener.accept().await?;
    /// client.write_all(b"hello").await?;
    /// poll_fn(|cx| server.poll_readable(cx)).await?;
    /// let mut buffer = [0; 1024]; // not needed while waiting
    /// assert_eq!(server.read(&mut buffer).await?, 5);
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = self.socket().poll_hint(context, Direction::Read);
        done.map_err(|error| self.failed(Verb::Read, error))
    }

    /// Waits until the driver reports that the peer has hung up. With [`Hangup::Half`], a peer also
    /// counts as having hung up once it has finished sending.
    ///
    /// Unlike a read, this function detects a hang-up even if there is unread data. Only the first
    /// wait costs a system call. If several tasks wait at once, whether with this function, with
    /// [`poll_readable`](Self::poll_readable) or with `poll_read`, only the last caller is woken.
    ///
    /// A peer that loses power or network access does not hang up, and only a timeout detects the
    /// failure.
    ///
    /// # Errors
    /// Same as [`poll_readable`](Self::poll_readable).
    ///
    /// # Examples
    /// ```
    /// use std::future::poll_fn;
    /// use tussah::net::Hangup;
    /// # use tussah::net::{TcpListener, TcpStream};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// # let listener = TcpListener::bind("127.0.0.1:0")?;
    /// # let client = TcpStream::connect(listener.local_addr()?).await?;
    /// # let (server, _) = listener.accept().await?;
    /// client.write_all(b"hello").await?;
    /// drop(client);
    /// poll_fn(|cx| server.poll_hangup(cx, Hangup::Half)).await?;
    /// let mut buffer = [0; 1024];
    /// assert_eq!(server.read(&mut buffer).await?, 5, "earlier data can still be read");
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn poll_hangup(&self, context: &mut Context<'_>, hangup: Hangup) -> Poll<io::Result<()>> {
        let done = self.socket().poll_hangup(context, hangup);
        done.map_err(|error| self.failed(Verb::Read, error))
    }

    /// Returns whether the peer has hung up, as defined by [`poll_hangup`](Self::poll_hangup). The
    /// function makes no system call. Before the first wait on the stream, the function returns
    /// false, because the driver has not reported anything yet.
    #[must_use]
    #[inline]
    pub fn has_hung_up(&self, hangup: Hangup) -> bool {
        self.socket().has_hung_up(hangup)
    }

    /// Waits for data, reads it into an owned buffer, and returns the buffer. Otherwise works like
    /// [`read`](Self::read).
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been read, and the buffer is
    /// dropped.
    ///
    /// # Errors
    /// Same as [`read`](Self::read). The buffer is returned even after an error.
    ///
    /// # Examples
    /// ```
    /// # use tussah::net::{TcpListener, TcpStream};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// # let listener = TcpListener::bind("127.0.0.1:0")?;
    /// # let client = TcpStream::connect(listener.local_addr()?).await?;
    /// # let (server, _) = listener.accept().await?;
    /// let (written, _buffer) = client.write_all_owned(b"hello".to_vec()).await;
    /// written?;
    /// let (len, buffer) = server.read_owned(vec![0; 16]).await;
    /// assert_eq!(&buffer[..len?], b"hello");
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn read_owned<B>(&self, mut buffer: B) -> (io::Result<usize>, B)
    where
        B: AsMut<[u8]> + Send + 'static,
    {
        let read = self.read(buffer.as_mut()).await;
        (read, buffer)
    }

    #[inline]
    pub(in crate::net) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let Some(extra) = self.extra() else {
            return self.socket().receive(buffer);
        };
        let len = extra.allowed(buffer.len());
        let received = self.socket().receive(&mut buffer[..len]);
        extra.count(&received);
        received
    }

    pub(super) fn receive_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        if buffers.iter().all(|buffer| buffer.is_empty()) {
            return Ok(0);
        }
        let Some(extra) = self.extra() else {
            return self.socket().receive_vectored(buffers, usize::MAX);
        };
        let bytes_max = extra.allowed(usize::MAX);
        let received = self.socket().receive_vectored(buffers, bytes_max);
        extra.count(&received);
        received
    }
}
