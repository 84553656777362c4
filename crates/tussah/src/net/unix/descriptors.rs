//! Descriptors that travel through Unix sockets.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::stream::UnixStream;
use crate::net::socket::{DESCRIPTORS_MAX, Direction, Message, Socket};
use crate::net::tcp::{Limited as _, Verb, transfer};

/// What came with a message that may carry descriptors.
///
/// The descriptors are closed in programs that are executed, and when this is dropped.
#[derive(Debug)]
pub struct ReceivedFds {
    /// How many bytes are in the buffer. 0: the end of a stream, or an empty datagram.
    pub len: usize,
    /// The descriptors, in the order in which they were sent.
    pub fds: Vec<OwnedFd>,
    /// Whether there were more descriptors than were asked for, or than this process may have; those are closed.
    pub fds_lost: bool,
    /// Whether a datagram was longer than the buffer, so that its end is lost. Never for a stream.
    pub is_truncated: bool,
}

impl From<Message> for ReceivedFds {
    fn from(message: Message) -> Self {
        Self {
            len: message.len,
            fds: message.descriptors,
            fds_lost: message.descriptors_lost,
            is_truncated: message.is_cut,
        }
    }
}

impl UnixStream {
    /// Sends bytes with descriptors, which the peer gets with the first of the bytes; says how many bytes were taken. The
    /// descriptors stay open here.
    ///
    /// # Cancellation
    /// Dropping the future sends nothing.
    ///
    /// # Errors
    /// `InvalidInput` if there are no bytes, or more than 253 descriptors; else as [`write`](Self::write).
    ///
    /// # Examples
    /// ```
    /// use std::os::fd::AsFd;
    /// use tussah::net::UnixStream;
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let (a, b) = UnixStream::pair()?;
    /// let (reader, mut writer) = std::io::pipe()?;
    /// a.send_fds(b"a pipe", &[reader.as_fd()]).await?;
    /// let mut buffer = [0; 16];
    /// let received = b.recv_fds(&mut buffer, 1).await?;
    /// assert_eq!((received.len, received.fds.len(), received.fds_lost), (6, 1, false));
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn send_fds(&self, data: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
        let checked = if data.is_empty() {
            // The system would take them and forget them.
            let text = "expected a byte at least, to send descriptors with";
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        } else {
            check(fds)
        };
        checked.map_err(|error| self.failed(Verb::SendFds, error))?;
        let send = || self.socket().send_message(data, fds).map(Some);
        transfer(self, Verb::SendFds, send).await
    }

    /// Reads bytes and up to `fds_max` descriptors that came with them; those beyond are closed, and this is told.
    ///
    /// The bytes end where the next descriptors begin.
    ///
    /// # Cancellation
    /// Dropping the future reads nothing, and no descriptor.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    ///
    /// # Examples
    /// See [`send_fds`](Self::send_fds).
    pub async fn recv_fds(&self, buffer: &mut [u8], fds_max: usize) -> io::Result<ReceivedFds> {
        let receive = || self.socket().receive_message(buffer, fds_max).map(Some);
        Ok(transfer(self, Verb::ReceiveFds, receive).await?.into())
    }
}

/// Refuses more descriptors than the system takes.
pub(super) fn check(fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    if fds.len() > DESCRIPTORS_MAX {
        let text = format!(
            "expected {DESCRIPTORS_MAX} descriptors at most, got {}",
            fds.len()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(())
}

/// Sends bytes with descriptors.
pub(super) async fn send(
    socket: &Socket,
    data: &[u8],
    fds: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    check(fds)?;
    let send = || socket.send_message(data, fds);
    socket.operate(Direction::Write, send).await
}

/// Receives bytes with descriptors.
pub(super) async fn receive(
    socket: &Socket,
    buffer: &mut [u8],
    fds_max: usize,
) -> io::Result<ReceivedFds> {
    let receive = || socket.receive_message(buffer, fds_max);
    let message = socket.operate(Direction::Read, receive).await?;
    Ok(message.into())
}
