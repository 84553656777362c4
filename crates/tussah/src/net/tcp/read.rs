//! Reading from a TCP stream.

use std::future::Future;
use std::io::{self, IoSliceMut};
use std::mem;
use std::task::{Context, Poll};

use super::stream::TcpStream;
use super::transfer::{Limited as _, Verb};
use crate::net::socket::Direction;

/// Reading.
impl TcpStream {
    /// Reads what is there into `buffer`, once there is anything; 0 is the end, or an empty buffer.
    ///
    /// # Cancellation
    /// Dropping the future reads nothing.
    ///
    /// # Errors
    /// `ConnectionReset` if the peer broke off; `TimedOut` after the [read timeout](Self::set_read_timeout), or when the system
    /// gave the peer up; what else the system says.
    pub fn read<'a>(
        &'a self,
        buffer: &'a mut [u8],
    ) -> impl Future<Output = io::Result<usize>> + Send + Unpin + use<'a> {
        self.transfer(Verb::Read, move || self.receive(buffer).map(Some))
    }

    /// Fills `buffer`.
    ///
    /// # Cancellation
    /// What was read before the future is dropped is in `buffer`, but not how much it is.
    ///
    /// # Errors
    /// `UnexpectedEof` if the end comes first; else as [`read`](Self::read).
    pub fn read_exact<'a>(
        &'a self,
        buffer: &'a mut [u8],
    ) -> impl Future<Output = io::Result<()>> + Send + Unpin + use<'a> {
        let mut rest = buffer;
        self.transfer(Verb::Read, move || {
            let len = self.receive(rest)?;
            if len == 0 && !rest.is_empty() {
                let text = format!("the end came {} bytes too early", rest.len());
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
            }
            rest = &mut mem::take(&mut rest)[len..];
            Ok(rest.is_empty().then_some(()))
        })
    }

    /// Reads into several buffers, one after the other; as [`read`](Self::read) otherwise.
    ///
    /// # Cancellation
    /// Dropping the future reads nothing.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_vectored<'a, 'b: 'a>(
        &'a self,
        buffers: &'a mut [IoSliceMut<'b>],
    ) -> impl Future<Output = io::Result<usize>> + Send + Unpin + use<'a, 'b> {
        self.transfer(Verb::Read, move || self.receive_vectored(buffers).map(Some))
    }

    /// Reads what is there, and leaves it there for the next to read.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn peek<'a>(
        &'a self,
        buffer: &'a mut [u8],
    ) -> impl Future<Output = io::Result<usize>> + Send + Unpin + use<'a> {
        self.transfer(Verb::Peek, move || match buffer.len() {
            0 => Ok(Some(0)),
            _ => self.socket().peek(buffer).map(Some),
        })
    }

    /// Reads what is there, without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there, or the rate limit allows nothing yet; else what the system says.
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

    /// Waits until there is something to read, or the end, or an error.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    /// As [`read`](Self::read).
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
    /// let mut buffer = [0; 1024]; // not there while it waits
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

    /// Waits until a read may find something, as far as has been reported; for who has nowhere to read to yet. It costs no system call, but for the first one that
    /// waits, and knows of no limits. It says so again until a reading has found nothing. Of those who wait by this function or by `poll_read`, the last one to call is woken.
    ///
    /// # Errors
    /// What the system says when the descriptor can't be registered; `Other` when the runtime ends.
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
    /// let mut buffer = [0; 1024]; // not there while it waits
    /// assert_eq!(server.read(&mut buffer).await?, 5);
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = self.socket().poll_hint(context, Direction::Read);
        done.map_err(|error| self.failed(Verb::Read, error))
    }

    /// Reads what is there into a buffer that is given away until then; as [`read`](Self::read) otherwise.
    ///
    /// # Cancellation
    /// Dropping the future reads nothing, and drops the buffer.
    ///
    /// # Errors
    /// As [`read`](Self::read); the buffer comes back in any case.
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
