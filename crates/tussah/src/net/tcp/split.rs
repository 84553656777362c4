//! The two halves of a TCP stream.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::stream::TcpStream;

/// The borrowed reading half of a stream, returned by [`TcpStream::split`].
#[derive(Debug)]
pub struct ReadHalf<'a>(&'a TcpStream);

/// The borrowed writing half of a stream, returned by [`TcpStream::split`].
#[derive(Debug)]
pub struct WriteHalf<'a>(&'a TcpStream);

/// The owned reading half of a stream, returned by [`TcpStream::into_split`].
#[derive(Debug)]
pub struct OwnedReadHalf(Arc<TcpStream>);

/// The owned writing half of a stream, returned by [`TcpStream::into_split`].
///
/// Dropping this half shuts down the writing direction of the connection, and the peer then sees
/// end-of-file. [`forget`](Self::forget) prevents that.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    stream: Arc<TcpStream>,
    /// True if dropping the half leaves the direction open.
    forgotten: bool,
}

/// The error returned by an attempt to join two halves that belong to different streams.
#[derive(Debug)]
pub struct ReuniteError(
    /// The reading half.
    pub OwnedReadHalf,
    /// The writing half.
    pub OwnedWriteHalf,
);

impl TcpStream {
    /// Splits the stream into two borrowed halves, without allocating memory.
    ///
    /// # Examples
    /// ```
    /// use futures_lite::{future, io};
    /// use tussah::net::{TcpListener, TcpStream};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// # let listener = TcpListener::bind("127.0.0.1:0")?;
    /// # let client = TcpStream::connect(listener.local_addr()?).await?;
    /// # let (mut server, _) = listener.accept().await?;
    /// # client.write_all(b"hello").await?;
    /// # client.shutdown(tussah::net::Shutdown::Write)?;
    /// let (mut read, mut write) = server.split();
    /// let echoed = io::copy(&mut read, &mut write).await?;
    /// # assert_eq!(echoed, 5);
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        (ReadHalf(self), WriteHalf(self))
    }

    /// Splits the stream into two owned halves, which can be moved to different threads. The
    /// connection closes when both halves are dropped.
    ///
    /// # Examples
    /// ```
    /// use tussah::net::{TcpListener, TcpStream};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// # let listener = TcpListener::bind("127.0.0.1:0")?;
    /// # let client = TcpStream::connect(listener.local_addr()?).await?;
    /// # let (server, _) = listener.accept().await?;
    /// let (read, write) = client.into_split();
    /// let writer = tussah::spawn(async move { write.write_all(b"hello").await });
    /// writer.await.expect("it does not panic")?; // has dropped its half
    /// # let mut buffer = [0; 16];
    /// assert_eq!(server.read(&mut buffer).await?, 5);
    /// assert_eq!(server.read(&mut buffer).await?, 0); // the end
    /// # drop(read);
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    #[must_use]
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        let stream = Arc::new(self);
        let write = OwnedWriteHalf {
            stream: stream.clone(),
            forgotten: false,
        };
        (OwnedReadHalf(stream), write)
    }
}

impl OwnedReadHalf {
    /// Joins the two halves into a stream.
    ///
    /// # Errors
    /// Returns both halves if they belong to different streams.
    pub fn reunite(self, write: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
        if !Arc::ptr_eq(&self.0, &write.stream) {
            return Err(ReuniteError(self, write));
        }
        write.forget();
        Ok(Arc::into_inner(self.0).expect("the other half was just dropped"))
    }
}

impl OwnedWriteHalf {
    /// Joins the two halves into a stream.
    ///
    /// # Errors
    /// Returns both halves if they belong to different streams.
    pub fn reunite(self, read: OwnedReadHalf) -> Result<TcpStream, ReuniteError> {
        read.reunite(self)
    }

    /// Drops the half without shutting down the writing direction. The peer sees end-of-file only
    /// after the other half is dropped.
    pub fn forget(mut self) {
        self.forgotten = true;
    }

    /// Shuts down one or both directions; see [`TcpStream::shutdown`].
    ///
    /// # Errors
    /// Same as [`TcpStream::shutdown`].
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.stream.shutdown(how)
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if !self.forgotten {
            // If the connection is broken, the peer already knows.
            let _ = self.stream.finish();
        }
    }
}

macro_rules! reading {
    ($($type:ty),*) => {
        $(impl $type {
            /// Reads like [`TcpStream::read`].
            ///
            /// # Errors
            /// Same as [`TcpStream::read`].
            pub fn read<'s>(
                &'s self,
                buffer: &'s mut [u8],
            ) -> impl Future<Output = io::Result<usize>> + Send + Unpin {
                self.as_ref().read(buffer)
            }

            /// Fills a buffer like [`TcpStream::read_exact`].
            ///
            /// # Errors
            /// Same as [`TcpStream::read_exact`].
            pub fn read_exact<'s>(
                &'s self,
                buffer: &'s mut [u8],
            ) -> impl Future<Output = io::Result<()>> + Send + Unpin {
                self.as_ref().read_exact(buffer)
            }

            /// Reads into several buffers like [`TcpStream::read_vectored`].
            ///
            /// # Errors
            /// Same as [`TcpStream::read_vectored`].
            pub fn read_vectored<'s, 'b: 's>(
                &'s self,
                buffers: &'s mut [IoSliceMut<'b>],
            ) -> impl Future<Output = io::Result<usize>> + Send + Unpin {
                self.as_ref().read_vectored(buffers)
            }

            /// Reads into an owned buffer like [`TcpStream::read_owned`].
            ///
            /// # Errors
            /// Same as [`TcpStream::read_owned`].
            pub async fn read_owned<B>(&self, buffer: B) -> (io::Result<usize>, B)
            where
                B: AsMut<[u8]> + Send + 'static,
            {
                self.as_ref().read_owned(buffer).await
            }

            /// Peeks at the data like [`TcpStream::peek`].
            ///
            /// # Errors
            /// Same as [`TcpStream::peek`].
            pub fn peek<'s>(
                &'s self,
                buffer: &'s mut [u8],
            ) -> impl Future<Output = io::Result<usize>> + Send + Unpin {
                self.as_ref().peek(buffer)
            }

            /// Reads without waiting, like [`TcpStream::try_read`].
            ///
            /// # Errors
            /// Same as [`TcpStream::try_read`].
            pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
                self.as_ref().try_read(buffer)
            }

            /// Waits until the stream is readable, like [`TcpStream::readable`].
            ///
            /// # Errors
            /// Same as [`TcpStream::readable`].
            pub fn readable(&self) -> impl Future<Output = io::Result<()>> + Send + Unpin {
                self.as_ref().readable()
            }
        })*
    };
}

macro_rules! writing {
    ($($type:ty),*) => {
        $(impl $type {
            /// Writes like [`TcpStream::write`].
            ///
            /// # Errors
            /// Same as [`TcpStream::write`].
            pub fn write<'s>(
                &'s self,
                buffer: &'s [u8],
            ) -> impl Future<Output = io::Result<usize>> + Send + Unpin {
                self.as_ref().write(buffer)
            }

            /// Writes a whole buffer like [`TcpStream::write_all`].
            ///
            /// # Errors
            /// Same as [`TcpStream::write_all`].
            pub fn write_all<'s>(
                &'s self,
                buffer: &'s [u8],
            ) -> impl Future<Output = io::Result<()>> + Send + Unpin {
                self.as_ref().write_all(buffer)
            }

            /// Writes from several buffers like [`TcpStream::write_vectored`].
            ///
            /// # Errors
            /// Same as [`TcpStream::write_vectored`].
            pub fn write_vectored<'s, 'b: 's>(
                &'s self,
                buffers: &'s [IoSlice<'b>],
            ) -> impl Future<Output = io::Result<usize>> + Send + Unpin {
                self.as_ref().write_vectored(buffers)
            }

            /// Writes all of several buffers like [`TcpStream::write_all_vectored`].
            ///
            /// # Errors
            /// Same as [`TcpStream::write_all_vectored`].
            pub fn write_all_vectored<'s, 'b: 's>(
                &'s self,
                buffers: &'s mut [IoSlice<'b>],
            ) -> impl Future<Output = io::Result<()>> + Send + Unpin {
                self.as_ref().write_all_vectored(buffers)
            }

            /// Writes all of an owned buffer like [`TcpStream::write_all_owned`].
            ///
            /// # Errors
            /// Same as [`TcpStream::write_all_owned`].
            pub async fn write_all_owned<B>(&self, buffer: B) -> (io::Result<()>, B)
            where
                B: AsRef<[u8]> + Send + 'static,
            {
                self.as_ref().write_all_owned(buffer).await
            }

            /// Sends a file like [`TcpStream::send_file`].
            ///
            /// # Errors
            /// Same as [`TcpStream::send_file`].
            pub async fn send_file(
                &self,
                file: BorrowedFd<'_>,
                offset: u64,
                len: u64,
            ) -> io::Result<()> {
                self.as_ref().send_file(file, offset, len).await
            }

            /// Writes without waiting, like [`TcpStream::try_write`].
            ///
            /// # Errors
            /// Same as [`TcpStream::try_write`].
            pub fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
                self.as_ref().try_write(buffer)
            }

            /// Waits until the stream is writable, like [`TcpStream::writable`].
            ///
            /// # Errors
            /// Same as [`TcpStream::writable`].
            pub fn writable(&self) -> impl Future<Output = io::Result<()>> + Send + Unpin {
                self.as_ref().writable()
            }
        })*
    };
}

reading!(ReadHalf<'_>, OwnedReadHalf);
writing!(WriteHalf<'_>, OwnedWriteHalf);

impl AsRef<TcpStream> for ReadHalf<'_> {
    fn as_ref(&self) -> &TcpStream {
        self.0
    }
}

impl AsRef<TcpStream> for WriteHalf<'_> {
    fn as_ref(&self) -> &TcpStream {
        self.0
    }
}

impl AsRef<TcpStream> for OwnedReadHalf {
    fn as_ref(&self) -> &TcpStream {
        &self.0
    }
}

impl AsRef<TcpStream> for OwnedWriteHalf {
    fn as_ref(&self) -> &TcpStream {
        &self.stream
    }
}

impl AsRef<TcpStream> for TcpStream {
    fn as_ref(&self) -> &TcpStream {
        self
    }
}

impl fmt::Display for ReuniteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the halves belong to different streams")
    }
}

impl Error for ReuniteError {}
