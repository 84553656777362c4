//! The one interface between the network types and what carries their bytes.
//!
//! Nothing else in `net` makes a system call on a socket. There is one variant for each carrier, of which a runtime is built with one: today the operating system;
//! a simulator or a TCP stack in user space is a further variant, and the types above it don't change.
//!
//! # The contract
//!
//! There are three kinds of verbs.
//!
//! - *Settings* (`make`, `bind`, `listen`, `shutdown`, addresses, and the options in `socket/options.rs`) act at once and never wait.
//! - *Attempts* (`accept`, `receive…`, `send…`, `connected`, `ready`) do what can be done now, or say `WouldBlock`. An attempt
//!   that says `WouldBlock` or `Interrupted` has done nothing. One that moves bytes spends what they are worth of the poll's budget,
//!   and moves at most [`TRANSFER_MAX`] of them.
//! - *Waiting* (`operate`, `poll_operate`) makes an attempt, and again whenever it may succeed, until it says something else
//!   than `WouldBlock` or `Interrupted`; it spends an operation of the poll's budget for each try that it begins with. Dropping
//!   an `operate` leaves nothing behind: who waited is forgotten, and an attempt that has not succeeded has done nothing. Polling
//!   one again after it has completed begins a new operation.
//!
//! Any number of threads may wait on one socket, in both directions.
//!
//! # Operations by completion
//!
//! A carrier that is told of an operation first and says later that it is done (as `io_uring` does) owns the buffer meanwhile,
//! so it can't serve a borrowed one. The owned-buffer operations of the types above are the place for it: they give the buffer away
//! already, and are made of an attempt and `operate` only because this carrier has nothing better. Such a carrier adds the
//! verbs `receive_owned(buffer) -> (io::Result<usize>, buffer)` and `send_owned`, with the rule that a dropped future leaves the
//! buffer with the carrier until the operation is done; for borrowed buffers it goes on telling when a socket is ready.

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
pub(crate) use tussah_core::io::Direction;
use tussah_core::io::{Source, spend_bytes};
use tussah_core::{Handle, Network};

use run::run;

/// Bound, in bytes: what one attempt moves at most, about 50 µs of copying, so that a fast peer doesn't hold a worker.
pub(crate) const TRANSFER_MAX: usize = 256 * 1024;

/// Bound, in buffers: what the system takes in one vectored call (`IOV_MAX`); the rest is for the next.
const BUFFERS_MAX: usize = 1024;

/// A socket in non-blocking mode, of whichever carrier.
#[derive(Debug)]
pub(crate) enum Socket {
    /// The operating system's.
    Os(Source),
}

/// Settings.
impl Socket {
    /// Makes a socket in the runtime that the caller runs in.
    ///
    /// # Panics
    /// Outside of a runtime.
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

    /// Takes a descriptor for the runtime that the caller runs in, and makes it non-blocking.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub(crate) fn from_fd(fd: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Self::Os(Source::new(fd)))
    }

    /// The runtime that it belongs to.
    pub(crate) fn handle(&self) -> Handle {
        match self {
            Self::Os(source) => source.handle(),
        }
    }

    /// Gives the descriptor back, in non-blocking mode.
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

    /// Begins to connect. True: it is connected; false: wait for writing until [`connected`](Self::connected) says so, which on the
    /// same machine it may do at once.
    ///
    /// `WouldBlock` is an error here, for which there is nothing to wait: a Unix socket's queue is full, or a table of the
    /// system's.
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

    /// Ends a TCP connection at once: what is on its way is thrown away, and the peer sees that it was reset. Whoever still has the
    /// socket sees the same.
    ///
    /// The socket has no peer then, which for Linux is what `connect` to `AF_UNSPEC` asks for (connect(2)).
    pub(crate) fn reset(&self) -> io::Result<()> {
        Ok(net::connect_unspec(self.as_fd())?)
    }

    /// The peer; `None` if it has no name, as a Unix socket may.
    pub(crate) fn peer_address(&self) -> io::Result<Option<SocketAddrAny>> {
        Ok(net::getpeername(self.as_fd())?)
    }

    /// Takes the error that the socket has been left with, if any.
    pub(crate) fn take_error(&self) -> io::Result<Option<io::Error>> {
        let error = sockopt::socket_error(self.as_fd())?;
        Ok(error.err().map(io::Error::from))
    }
}

/// Attempts. One that a signal interrupts is made again at once.
impl Socket {
    /// Takes a connection, for the runtime of this socket; one that the worker keeps which waits for it first, or one that goes to any.
    pub(crate) fn accept(&self, spread: bool) -> io::Result<(Self, Option<SocketAddrAny>)> {
        let Self::Os(source) = self;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (fd, peer) = net::acceptfrom_with(source, flags)?;
        let accepted = Source::new_in(&source.handle(), fd);
        let accepted = if spread { accepted.spread() } else { accepted };
        Ok((Self::Os(accepted), peer))
    }

    /// Says how a [`connect`](Self::connect) that has begun has ended.
    pub(crate) fn connected(&self) -> io::Result<()> {
        if let Some(error) = self.take_error()? {
            return Err(error);
        }
        match net::getpeername(self.as_fd()) {
            // Woken for another reason.
            Err(Errno::NOTCONN) => Err(io::ErrorKind::WouldBlock.into()),
            other => Ok(other.map(drop)?),
        }
    }

    /// Receives from a stream. 0: its end, if the buffer is not empty.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(TRANSFER_MAX);
        self.take(wanted, |fd| {
            let flags = RecvFlags::empty();
            net::recv(fd, &mut buffer[..wanted], flags).map(|(len, _)| len)
        })
    }

    /// Receives from a stream into several buffers, one after the other, no more than so many bytes.
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

    /// Receives what stays to be received.
    pub(crate) fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(TRANSFER_MAX);
        let flags = RecvFlags::PEEK;
        let (len, _) = retry_on_intr(|| net::recv(self.as_fd(), &mut buffer[..wanted], flags))?;
        spend_bytes(len);
        Ok(len)
    }

    /// Sends to a stream; never raises `SIGPIPE`.
    pub(crate) fn send(&self, buffer: &[u8]) -> io::Result<usize> {
        let buffer = &buffer[..buffer.len().min(TRANSFER_MAX)];
        self.give(buffer.len(), |fd| {
            net::send(fd, buffer, SendFlags::NOSIGNAL)
        })
    }

    /// Sends several buffers to a stream, one after the other; never raises `SIGPIPE`.
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

    /// Sends a piece of a file to a stream; 0: the file ends there.
    ///
    /// The disk is waited for, if it must be: see who calls it.
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

    /// Receives a datagram. What does not fit into the buffer is lost.
    pub(crate) fn receive_from(
        &self,
        buffer: &mut [u8],
        flags: RecvFlags,
    ) -> io::Result<(usize, Option<SocketAddrAny>)> {
        let (len, _, peer) = retry_on_intr(|| net::recvfrom(self.as_fd(), &mut *buffer, flags))?;
        spend_bytes(len);
        Ok((len, peer))
    }

    /// Sends a datagram: to an address, or to the peer that the socket is connected with.
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

    /// Whether an operation of this direction would not block.
    pub(crate) fn ready(&self, direction: Direction) -> io::Result<()> {
        ready(self, direction)
    }

    /// Receives up to `wanted` bytes from a stream; fewer, but not none, are all that is there.
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

    /// Sends up to `wanted` bytes to a stream; fewer are all that there is room for.
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

/// Whether an operation of this direction would not block; `WouldBlock` if it would.
pub(crate) fn ready(fd: impl AsFd, direction: Direction) -> io::Result<()> {
    let flags = match direction {
        Direction::Read => PollFlags::IN | PollFlags::RDHUP,
        Direction::Write => PollFlags::OUT,
    };
    let now = Timespec::default();
    match retry_on_intr(|| poll(&mut [PollFd::new(&fd, flags)], Some(&now))) {
        Ok(0) => Err(io::ErrorKind::WouldBlock.into()),
        // A system that can't say, for want of memory, has said nothing of the descriptor: an operation may be tried.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The address of an internet socket.
///
/// # Errors
/// If the address is of another family.
pub(crate) fn internet(address: SocketAddrAny) -> io::Result<SocketAddr> {
    Ok(SocketAddr::try_from(address)?)
}

/// The family of an internet address.
pub(crate) fn family(address: &SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}
