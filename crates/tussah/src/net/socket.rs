//! The interface between the network types and the carrier of their bytes.
//!
//! No other part of `net` makes system calls on sockets. Each carrier is a variant of [`Socket`],
//! and a runtime is built with one carrier. Today, the operating system is the only one. A
//! simulator or a user-space TCP stack would be another variant, and the public types would not
//! change.
//!
//! # The contract
//!
//! There are three kinds of operations.
//!
//! - *Settings* (`make`, `bind`, `listen`, `shutdown`, addresses, and the options in
//!   `socket/options.rs`) take effect immediately and never wait.
//! - *Attempts* (`accept`, `receive…`, `send…`, `connected`, `ready`) do what is possible now, or
//!   return `WouldBlock`. An attempt that returns `WouldBlock` or `Interrupted` has had no effect.
//!   An attempt that moves bytes uses a part of the poll's budget in proportion to the bytes, and
//!   moves at most [`TRANSFER_MAX`] bytes.
//! - *Waiting* (`operate`, `poll_operate`) makes an attempt, and repeats it whenever it may
//!   succeed, until it returns anything other than `WouldBlock` or `Interrupted`. Each poll that
//!   makes attempts charges one operation to its budget. Dropping an `operate` leaves nothing
//!   behind: the waiter is removed, and an attempt that did not succeed has had no effect. Polling
//!   it after completion starts a new operation.
//!
//! Any number of threads may wait on one socket, in both directions.
//!
//! # Completion-based carriers
//!
//! A completion-based carrier (such as `io_uring`) owns the buffer while an operation runs, so it
//! cannot serve a borrowed buffer. It would implement the owned-buffer operations of the types
//! above. These operations already give the buffer away, and use an attempt with `operate` only
//! because this carrier has nothing better. A completion-based carrier would add the operations
//! `receive_owned(buffer) -> (io::Result<usize>, buffer)` and `send_owned`. When their future is
//! dropped, the buffer stays with the carrier until the operation has ended. For borrowed buffers
//! the carrier would continue to report readiness.

mod message;
mod multicast;
mod options;
mod run;
mod waiting;

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

pub(crate) use message::{BATCH_MAX, DESCRIPTORS_MAX, Message};
pub(crate) use options::packet_options;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    self, AddressFamily, Protocol, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown,
    SocketAddrAny, SocketFlags, SocketType, sockopt,
};
pub(crate) use tussah_core::io::{Direction, Hangup};
use tussah_core::io::{Source, spend_bytes};
use tussah_core::{Handle, Network};

use run::run;

/// Bound, in bytes: the most that one attempt to read or write moves, about 50 µs of copying, so
/// that a fast peer does not occupy a worker. The next attempt moves the rest.
pub(crate) const TRANSFER_MAX: usize = 256 * 1024;

/// Bound, in buffers: the most that one vectored read or write uses (`IOV_MAX`). The next call
/// takes the rest.
const BUFFERS_MAX: usize = 1024;

/// A non-blocking socket of any carrier.
#[derive(Debug)]
pub(crate) enum Socket {
    /// A socket of the operating system.
    Os(Source),
}

/// Settings of a socket.
impl Socket {
    /// Creates a socket in the current runtime.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub(crate) fn make(
        family: AddressFamily,
        kind: SocketType,
        protocol: Option<Protocol>,
    ) -> io::Result<Self> {
        match Handle::with_current(Handle::network) {
            Network::Os => {
                let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
                let fd = net::socket_with(family, kind, flags, protocol)?;
                Ok(Self::Os(Source::new(fd)))
            }
        }
    }

    /// Takes over a descriptor for the current runtime, and makes it non-blocking.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub(crate) fn from_fd(fd: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Self::Os(Source::new(fd)))
    }

    /// Returns the socket's runtime.
    pub(crate) fn handle(&self) -> Handle {
        match self {
            Self::Os(source) => source.handle(),
        }
    }

    /// Returns the descriptor, in non-blocking mode.
    pub(crate) fn into_fd(self) -> OwnedFd {
        match self {
            Self::Os(source) => source.into_fd(),
        }
    }

    pub(crate) fn bind(&self, address: &SocketAddrAny) -> io::Result<()> {
        Ok(net::bind(self.as_fd(), address)?)
    }

    pub(crate) fn listen(&self, backlog: i32) -> io::Result<()> {
        Ok(net::listen(self.as_fd(), backlog)?)
    }

    /// Starts to connect. Returns true if connected. If false, wait for writability until
    /// [`connected`](Self::connected) completes, which may happen immediately on the same machine.
    ///
    /// `WouldBlock` is an error here, with nothing to wait for: a Unix socket's queue or a table of
    /// the system is full.
    pub(crate) fn connect(&self, address: &SocketAddrAny) -> io::Result<bool> {
        match net::connect(self.as_fd(), address) {
            Ok(()) => Ok(true),
            Err(Errno::INPROGRESS | Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        Ok(net::shutdown(self.as_fd(), how)?)
    }

    pub(crate) fn local_address(&self) -> io::Result<SocketAddrAny> {
        Ok(net::getsockname(self.as_fd())?)
    }

    /// Resets a TCP connection: unsent data is discarded, and the peer sees a reset. Other holders
    /// of the socket see the same.
    ///
    /// The socket then has no peer. Linux does this for `connect` to `AF_UNSPEC` (connect(2)).
    pub(crate) fn reset(&self) -> io::Result<()> {
        Ok(net::connect_unspec(self.as_fd())?)
    }

    /// Returns the peer's address, or `None` if it is unnamed, as a Unix socket may be.
    pub(crate) fn peer_address(&self) -> io::Result<Option<SocketAddrAny>> {
        Ok(net::getpeername(self.as_fd())?)
    }

    /// Returns and clears the socket's pending error, if any.
    pub(crate) fn take_error(&self) -> io::Result<Option<io::Error>> {
        let error = sockopt::socket_error(self.as_fd())?;
        Ok(error.err().map(io::Error::from))
    }
}

/// Attempts at operations. An interrupted attempt is repeated immediately.
impl Socket {
    /// Accepts a connection for the runtime of this socket. If `spread` is set, its events may go
    /// to any worker; otherwise they stay with the worker that first waits for it.
    pub(crate) fn accept(&self, spread: bool) -> io::Result<(Self, Option<SocketAddrAny>)> {
        let Self::Os(source) = self;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (fd, peer) = net::acceptfrom_with(source, flags)?;
        let accepted = Source::new_in(&source.handle(), fd);
        let accepted = if spread { accepted.spread() } else { accepted };
        Ok((Self::Os(accepted), peer))
    }

    /// Returns the result of a [`connect`](Self::connect) in progress.
    pub(crate) fn connected(&self) -> io::Result<()> {
        if let Some(error) = self.take_error()? {
            return Err(error);
        }
        match net::getpeername(self.as_fd()) {
            // The task was woken for another reason.
            Err(Errno::NOTCONN) => Err(io::ErrorKind::WouldBlock.into()),
            other => Ok(other.map(drop)?),
        }
    }

    /// Receives from a stream. Returns 0 at its end, or for an empty buffer.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(TRANSFER_MAX);
        self.take(wanted, |fd| {
            let flags = RecvFlags::empty();
            net::recv(fd, &mut buffer[..wanted], flags).map(|(len, _)| len)
        })
    }

    /// Receives from a stream into several buffers, one after the other, at most `bytes_max` bytes.
    pub(crate) fn receive_vectored(
        &self,
        buffers: &mut [IoSliceMut<'_>],
        bytes_max: usize,
    ) -> io::Result<usize> {
        let run = run(buffers.iter().map(|buffer| buffer.len()), bytes_max);
        match &mut buffers[run] {
            [only] => {
                let wanted = only.len().min(bytes_max);
                self.receive(&mut only[..wanted])
            }
            run => {
                let wanted = run.iter().map(|buffer| buffer.len()).sum();
                self.take(wanted, |fd| rustix::io::readv(fd, &mut *run))
            }
        }
    }

    /// Receives data without consuming it.
    pub(crate) fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(TRANSFER_MAX);
        let flags = RecvFlags::PEEK;
        let (len, _) = retry_on_intr(|| net::recv(self.as_fd(), &mut buffer[..wanted], flags))?;
        spend_bytes(len);
        Ok(len)
    }

    /// Sends to a stream, without ever raising `SIGPIPE`.
    pub(crate) fn send(&self, buffer: &[u8]) -> io::Result<usize> {
        let buffer = &buffer[..buffer.len().min(TRANSFER_MAX)];
        self.give(buffer.len(), |fd| {
            net::send(fd, buffer, SendFlags::NOSIGNAL)
        })
    }

    /// Sends several buffers to a stream, one after the other, without ever raising `SIGPIPE`.
    pub(crate) fn send_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        let run = run(buffers.iter().map(|buffer| buffer.len()), TRANSFER_MAX);
        match &buffers[run] {
            [only] => self.send(only),
            run => {
                let wanted = run.iter().map(|buffer| buffer.len()).sum();
                self.give(wanted, |fd| {
                    let mut control = SendAncillaryBuffer::default();
                    net::sendmsg(fd, run, &mut control, SendFlags::NOSIGNAL)
                })
            }
        }
    }

    /// Sends part of a file to a stream. Returns 0 at the end of the file.
    ///
    /// This may block on the disk; the caller must prevent that.
    pub(crate) fn send_file(
        &self,
        file: BorrowedFd<'_>,
        offset: u64,
        len: usize,
    ) -> io::Result<usize> {
        let len = len.min(TRANSFER_MAX);
        let sent =
            retry_on_intr(|| rustix::fs::sendfile(self.as_fd(), file, Some(&mut { offset }), len))?;
        spend_bytes(sent);
        Ok(sent)
    }

    /// Receives a datagram. Bytes that do not fit into the buffer are lost.
    pub(crate) fn receive_from(
        &self,
        buffer: &mut [u8],
        flags: RecvFlags,
    ) -> io::Result<(usize, Option<SocketAddrAny>)> {
        let (len, _, peer) = retry_on_intr(|| net::recvfrom(self.as_fd(), &mut *buffer, flags))?;
        spend_bytes(len);
        Ok((len, peer))
    }

    /// Sends a datagram to an address, or to the connected peer.
    pub(crate) fn send_to(
        &self,
        buffer: &[u8],
        address: Option<&SocketAddrAny>,
    ) -> io::Result<usize> {
        let fd = self.as_fd();
        let sent = retry_on_intr(|| match address {
            Some(address) => net::sendto(fd, buffer, SendFlags::NOSIGNAL, address),
            None => net::send(fd, buffer, SendFlags::NOSIGNAL),
        })?;
        spend_bytes(sent);
        Ok(sent)
    }

    /// Returns `WouldBlock` if an operation in this direction would block.
    pub(crate) fn ready(&self, direction: Direction) -> io::Result<()> {
        ready(self, direction)
    }

    /// Receives up to `wanted` bytes from a stream. A short, nonempty read has drained the stream.
    fn take(
        &self,
        wanted: usize,
        mut receive: impl FnMut(BorrowedFd<'_>) -> rustix::io::Result<usize>,
    ) -> io::Result<usize> {
        let Self::Os(source) = self;
        let before = source.marker();
        let len = retry_on_intr(|| receive(source.as_fd()))?;
        if 0 < len && len < wanted {
            source.came_short(Direction::Read, before);
        }
        spend_bytes(len);
        Ok(len)
    }

    /// Sends up to `wanted` bytes to a stream. A short write has filled the stream.
    fn give(
        &self,
        wanted: usize,
        mut send: impl FnMut(BorrowedFd<'_>) -> rustix::io::Result<usize>,
    ) -> io::Result<usize> {
        let Self::Os(source) = self;
        let before = source.marker();
        let len = retry_on_intr(|| send(source.as_fd()))?;
        if len < wanted {
            source.came_short(Direction::Write, before);
        }
        spend_bytes(len);
        Ok(len)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Os(source) => source.as_fd(),
        }
    }
}

/// Returns `WouldBlock` if an operation in this direction would block.
pub(crate) fn ready(fd: impl AsFd, direction: Direction) -> io::Result<()> {
    let flags = match direction {
        Direction::Read => PollFlags::IN | PollFlags::RDHUP,
        Direction::Write => PollFlags::OUT,
    };
    let now = Timespec::default();
    match retry_on_intr(|| poll(&mut [PollFd::new(&fd, flags)], Some(&now))) {
        Ok(0) => Err(io::ErrorKind::WouldBlock.into()),
        // If the system cannot tell, for lack of memory, an operation may still be tried.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Converts the system's form of an internet address.
///
/// # Errors
/// Returns an error if the address belongs to another family.
pub(crate) fn internet(address: SocketAddrAny) -> io::Result<SocketAddr> {
    Ok(SocketAddr::try_from(address)?)
}

/// Returns the family of an internet address.
pub(crate) fn family(address: &SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}
