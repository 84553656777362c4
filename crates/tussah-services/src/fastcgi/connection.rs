//! A connection to an application server.

use std::io;
use std::num::NonZeroU16;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures_io::{AsyncRead, AsyncWrite};
use tussah::net::{TcpStream, UnixStream};

use super::address::Address;

/// The maximum length, in bytes, of one read of a response, in the buffer that each connection has.
const INPUT_BYTES: usize = 32 * 1024;

/// A connection for one request at a time, because neither php-fpm nor fcgiwrap accepts more.
pub(super) struct Connection {
    stream: Stream,
    /// The bytes of the last read.
    input: Box<[u8]>,
    /// The number of the present request. Each request has its own, so that what an application
    /// sends after the end of a response is no part of the next one.
    id: NonZeroU16,
    /// True once a part of the present response has arrived.
    has_read: bool,
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Connection {
    /// Connects, for a request with this number.
    pub(super) async fn open(address: &Address, id: NonZeroU16) -> io::Result<Self> {
        let stream = match address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(*address).await?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
            Address::Unix(path) => Stream::Unix(UnixStream::connect(path).await?),
        };
        let input = vec![0; INPUT_BYTES].into();
        Ok(Self {
            stream,
            input,
            id,
            has_read: false,
        })
    }

    pub(super) fn id(&self) -> NonZeroU16 {
        self.id
    }

    /// Begins another request on this connection.
    pub(super) fn next_request(&mut self) {
        self.id = self.id.checked_add(1).unwrap_or(NonZeroU16::MIN);
        self.has_read = false;
    }

    /// Returns whether a connection that has been idle can be used: the peer has neither closed it
    /// nor sent anything. For a request that may be repeated, the driver's reports suffice.
    pub(super) fn is_fresh(&self, may_repeat: bool) -> bool {
        if may_repeat && self.is_quiet() {
            return true;
        }
        let mut byte = [0];
        let read = match &self.stream {
            Stream::Tcp(stream) => stream.try_read(&mut byte),
            Stream::Unix(stream) => stream.try_read(&mut byte),
        };
        matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Returns whether the driver has reported nothing to read, without a system call.
    fn is_quiet(&self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let readable = match &self.stream {
            Stream::Tcp(stream) => stream.poll_readable(&mut cx),
            Stream::Unix(stream) => stream.poll_readable(&mut cx),
        };
        readable.is_pending()
    }

    /// Returns a part of the bytes of the last read.
    pub(super) fn input(&self, range: Range<usize>) -> &[u8] {
        &self.input[range]
    }

    /// Reads more input in place of the last. Returns its length.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let input = &mut self.input;
        match &self.stream {
            Stream::Tcp(stream) => {
                let read = Pin::new(&mut &*stream).poll_read(cx, input);
                if read.is_pending() && self.has_read {
                    acknowledge(stream);
                }
                self.has_read |= read.is_ready();
                read
            }
            Stream::Unix(stream) => Pin::new(&mut &*stream).poll_read(cx, input),
        }
    }

    pub(super) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &self.stream {
            Stream::Tcp(stream) => Pin::new(&mut &*stream).poll_write(cx, bytes),
            Stream::Unix(stream) => Pin::new(&mut &*stream).poll_write(cx, bytes),
        }
    }
}

/// Acknowledges what has arrived. php-fpm leaves Nagle's algorithm on (RFC 896): after a part of a
/// response, it sends no short one before the acknowledgment, which this side would delay by 40 ms.
fn acknowledge(stream: &TcpStream) {
    // Without it, the response is late, but complete.
    let _ = rustix::net::sockopt::set_tcp_quickack(stream, true);
}
