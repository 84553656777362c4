//! The two directions of a TCP stream, for two owners.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::stream::TcpStream;

/// The reading half of a stream, for a while: [`TcpStream::split`].
#[derive(Debug)]
pub struct ReadHalf<'a>(&'a TcpStream);

/// The writing half of a stream, for a while: [`TcpStream::split`].
#[derive(Debug)]
pub struct WriteHalf<'a>(&'a TcpStream);

/// The reading half of a stream: [`TcpStream::into_split`].
#[derive(Debug)]
pub struct OwnedReadHalf(Arc<TcpStream>);

/// The writing half of a stream: [`TcpStream::into_split`]. Dropping it ends the writing, so that the peer reads the end, unless
/// [`forget`](Self::forget) is called.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    stream: Arc<TcpStream>,
    /// Whether dropping it leaves the direction open.
    forgotten: bool,
}

/// The halves are not of one stream.
#[derive(Debug)]
pub struct ReuniteError(
    /// The reading half, as it was given.
    pub OwnedReadHalf,
    /// The writing half, as it was given.
    pub OwnedWriteHalf,
);

impl TcpStream {
    /// Two halves for two futures of one thread, without an allocation.
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

    /// Two halves for two threads. The connection is closed when both are dropped.
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
    /// writer.await.expect("it does not panic")?; // the half is dropped there
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
    /// Puts the halves together again.
    ///
    /// # Errors
    /// Gives them back if they are not of one stream.
    pub fn reunite(self, write: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
        if !Arc::ptr_eq(&self.0, &write.stream) {
            return Err(ReuniteError(self, write));
        }
        write.forget();
        Ok(Arc::into_inner(self.0).expect("there are two halves of a stream, and one is gone"))
    }
}

impl OwnedWriteHalf {
    /// Puts the halves together again.
    ///
    /// # Errors
    /// Gives them back if they are not of one stream.
    pub fn reunite(self, read: OwnedReadHalf) -> Result<TcpStream, ReuniteError> {
        read.reunite(self)
    }

    /// Drops the half without ending the writing: the peer does not read the end before the other half is dropped.
    pub fn forget(mut self) {
        self.forgotten = true;
    }

    /// Ends the writing, and so that of both directions if `how` says so; see [`TcpStream::shutdown`].
    ///
    /// # Errors
    /// As [`TcpStream::shutdown`].
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.stream.shutdown(how)
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if !self.forgotten {
            // If the connection is broken the peer knows already.
            let _ = self.stream.finish();
        }
    }
}

macro_rules! reading {
    ($($type:ty),*) => {
        $(impl $type {
            /// As [`TcpStream::read`].
            ///
            /// # Errors
            /// As there.
            pub fn read<'s>(
                &'s self,
                buffer: &'s mut [u8],
            ) -> impl Future<Output = io::Result<usize>> + Send + Unpin {
                self.as_ref().read(buffer)
            }

            /// As [`TcpStream::read_exact`].
            ///
            /// # Errors
            /// As there.
            pub fn read_exact<'s>(
                &'s self,
                buffer: &'s mut [u8],
            ) -> impl Future<Output = io::Result<()>> + Send + Unpin {
                self.as_ref().read_exact(buffer)
            }

            /// As [`TcpStream::read_vectored`].
            ///
            /// # Errors
            /// As there.
            pub fn read_vectored<'s, 'b: 's>(
                &'s self,
                buffers: &'s mut [IoSliceMut<'b>],
            ) -> impl Future<Output = io::Result<usize>> + Send + Unpin {
                self.as_ref().read_vectored(buffers)
            }

            /// As [`TcpStream::read_owned`].
            ///
            /// # Errors
            /// As there.
            pub async fn read_owned<B>(&self, buffer: B) -> (io::Result<usize>, B)
            where
                B: AsMut<[u8]> + Send + 'static,
            {
                self.as_ref().read_owned(buffer).await
            }

            /// As [`TcpStream::peek`].
            ///
            /// # Errors
            /// As there.
            pub fn peek<'s>(
                &'s self,
                buffer: &'s mut [u8],
            ) -> impl Future<Output = io::Result<usize>> + Send + Unpin {
                self.as_ref().peek(buffer)
            }

            /// As [`TcpStream::try_read`].
            ///
            /// # Errors
            /// As there.
            pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
                self.as_ref().try_read(buffer)
            }

            /// As [`TcpStream::readable`].
            ///
            /// # Errors
            /// As there.
            pub fn readable(&self) -> impl Future<Output = io::Result<()>> + Send + Unpin {
                self.as_ref().readable()
            }
        })*
    };
}

macro_rules! writing {
    ($($type:ty),*) => {
        $(impl $type {
            /// As [`TcpStream::write`].
            ///
            /// # Errors
            /// As there.
            pub fn write<'s>(
                &'s self,
                buffer: &'s [u8],
            ) -> impl Future<Output = io::Result<usize>> + Send + Unpin {
                self.as_ref().write(buffer)
            }

            /// As [`TcpStream::write_all`].
            ///
            /// # Errors
            /// As there.
            pub fn write_all<'s>(
                &'s self,
                buffer: &'s [u8],
            ) -> impl Future<Output = io::Result<()>> + Send + Unpin {
                self.as_ref().write_all(buffer)
            }

            /// As [`TcpStream::write_vectored`].
            ///
            /// # Errors
            /// As there.
            pub fn write_vectored<'s, 'b: 's>(
                &'s self,
                buffers: &'s [IoSlice<'b>],
            ) -> impl Future<Output = io::Result<usize>> + Send + Unpin {
                self.as_ref().write_vectored(buffers)
            }

            /// As [`TcpStream::write_all_vectored`].
            ///
            /// # Errors
            /// As there.
            pub fn write_all_vectored<'s, 'b: 's>(
                &'s self,
                buffers: &'s mut [IoSlice<'b>],
            ) -> impl Future<Output = io::Result<()>> + Send + Unpin {
                self.as_ref().write_all_vectored(buffers)
            }

            /// As [`TcpStream::write_all_owned`].
            ///
            /// # Errors
            /// As there.
            pub async fn write_all_owned<B>(&self, buffer: B) -> (io::Result<()>, B)
            where
                B: AsRef<[u8]> + Send + 'static,
            {
                self.as_ref().write_all_owned(buffer).await
            }

            /// As [`TcpStream::send_file`].
            ///
            /// # Errors
            /// As there.
            pub async fn send_file(
                &self,
                file: BorrowedFd<'_>,
                offset: u64,
                len: u64,
            ) -> io::Result<()> {
                self.as_ref().send_file(file, offset, len).await
            }

            /// As [`TcpStream::try_write`].
            ///
            /// # Errors
            /// As there.
            pub fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
                self.as_ref().try_write(buffer)
            }

            /// As [`TcpStream::writable`].
            ///
            /// # Errors
            /// As there.
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
        f.write_str("the halves are not of one stream")
    }
}

impl Error for ReuniteError {}
