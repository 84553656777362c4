//! The two halves of a Unix stream.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};

use super::stream::UnixStream;

/// The owned reading half of a stream, returned by [`UnixStream::into_split`].
#[derive(Debug)]
pub struct OwnedReadHalf(Arc<UnixStream>);

/// The owned writing half of a stream, returned by [`UnixStream::into_split`]. Dropping this half
/// shuts down the writing direction, and the peer then sees end-of-file.
#[derive(Debug)]
pub struct OwnedWriteHalf(Option<Arc<UnixStream>>);

impl UnixStream {
    /// Splits the stream into two owned halves, which can be moved to different threads. The
    /// connection closes when both halves are dropped.
    ///
    /// # Examples
    /// ```
    /// use tussah::net::UnixStream;
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let (a, b) = UnixStream::pair()?;
    /// let (read, write) = a.into_split();
    /// write.write_all(b"hello").await?;
    /// drop(write);
    /// let mut buffer = [0; 16];
    /// assert_eq!(b.read(&mut buffer).await?, 5);
    /// assert_eq!(b.read(&mut buffer).await?, 0); // the end
    /// # drop(read);
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    #[must_use]
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        let stream = Arc::new(self);
        (OwnedReadHalf(stream.clone()), OwnedWriteHalf(Some(stream)))
    }
}

impl OwnedReadHalf {
    /// Reads data, as [`UnixStream::read`] does.
    ///
    /// # Errors
    /// Same as [`UnixStream::read`].
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).await
    }

    /// Fills a buffer, as [`UnixStream::read_exact`] does.
    ///
    /// # Errors
    /// Same as [`UnixStream::read_exact`].
    pub async fn read_exact(&self, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact(buffer).await
    }

    /// Joins the two halves into a stream.
    ///
    /// # Errors
    /// Returns both halves if they belong to different streams.
    pub fn reunite(self, mut write: OwnedWriteHalf) -> Result<UnixStream, (Self, OwnedWriteHalf)> {
        if !Arc::ptr_eq(&self.0, write.stream()) {
            return Err((self, write));
        }
        drop(write.0.take());
        Ok(Arc::into_inner(self.0).expect("the other half was just dropped"))
    }
}

impl OwnedWriteHalf {
    /// Writes data, as [`UnixStream::write`] does.
    ///
    /// # Errors
    /// Same as [`UnixStream::write`].
    pub async fn write(&self, data: &[u8]) -> io::Result<usize> {
        self.stream().write(data).await
    }

    /// Writes a whole buffer, as [`UnixStream::write_all`] does.
    ///
    /// # Errors
    /// Same as [`UnixStream::write_all`].
    pub async fn write_all(&self, data: &[u8]) -> io::Result<()> {
        self.stream().write_all(data).await
    }

    fn stream(&self) -> &Arc<UnixStream> {
        self.0.as_ref().expect("it is there until the drop")
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if let Some(stream) = &self.0 {
            // If the connection is broken, the peer already knows.
            let _ = stream.shutdown(Shutdown::Write);
        }
    }
}

macro_rules! forward_read {
    ($($type:ty: |$this:ident| $stream:expr;)*) => {
        $(impl AsyncRead for $type {
            fn poll_read(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                buffer: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                let $this = &*self;
                Pin::new(&mut { $stream }).poll_read(context, buffer)
            }

            fn poll_read_vectored(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                buffers: &mut [IoSliceMut<'_>],
            ) -> Poll<io::Result<usize>> {
                let $this = &*self;
                Pin::new(&mut { $stream }).poll_read_vectored(context, buffers)
            }
        })*
    };
}

macro_rules! forward_write {
    ($($type:ty: |$this:ident| $stream:expr;)*) => {
        $(impl AsyncWrite for $type {
            fn poll_write(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                data: &[u8],
            ) -> Poll<io::Result<usize>> {
                let $this = &*self;
                Pin::new(&mut { $stream }).poll_write(context, data)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                buffers: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                let $this = &*self;
                Pin::new(&mut { $stream }).poll_write_vectored(context, buffers)
            }

            fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                let $this = &*self;
                Pin::new(&mut { $stream }).poll_flush(context)
            }

            fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                let $this = &*self;
                Pin::new(&mut { $stream }).poll_close(context)
            }
        })*
    };
}

forward_read! {
    UnixStream: |this| this;
    OwnedReadHalf: |this| &*this.0;
}

forward_write! {
    UnixStream: |this| this;
    OwnedWriteHalf: |this| &**this.stream();
}
