//! Passing descriptors through Unix sockets.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::stream::UnixStream;
use crate::net::socket::{DESCRIPTORS_MAX, Direction, Message, Socket};
use crate::net::tcp::{Limited as _, Verb, transfer};

/// A received message, which can carry descriptors.
///
/// The descriptors are close-on-exec. Dropping this value closes the descriptors.
#[derive(Debug)]
pub struct ReceivedFds {
    /// Number of bytes received into the buffer. Zero means the end of a stream, or an empty
    /// datagram.
    pub len: usize,
    /// The descriptors, in the order in which they were sent.
    pub fds: Vec<OwnedFd>,
    /// True if the peer sent more descriptors than the receiver requested, or more than this
    /// process was allowed to open. In this case, the system closed the additional descriptors.
    pub fds_lost: bool,
    /// True if a datagram was longer than the buffer, and its end was therefore lost. Always false
    /// for streams.
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
    /// Sends bytes and descriptors; the descriptors arrive with the first of the bytes. Returns the
    /// number of bytes sent. The descriptors stay open in this process.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been sent.
    ///
    /// # Errors
    /// Returns `InvalidInput` if there are no bytes to send, or if there are more than 253
    /// descriptors. Otherwise, returns any error from [`write`](Self::write).
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
            // The system would accept the descriptors and discard them.
            let text = "expected at least one byte to send with the descriptors";
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        } else {
            check(fds)
        };
        checked.map_err(|error| self.failed(Verb::SendFds, error))?;
        let send = || self.socket().send_message(data, fds).map(Some);
        transfer(self, Verb::SendFds, send).await
    }

    /// Reads bytes and up to `fds_max` descriptors. The system closes any additional descriptors,
    /// and [`ReceivedFds::fds_lost`] is then true.
    ///
    /// If later bytes carry further descriptors, the read stops before these bytes.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, neither bytes nor descriptors have been read.
    ///
    /// # Errors
    /// Same as [`read`](Self::read).
    ///
    /// # Examples
    /// See [`send_fds`](Self::send_fds).
    pub async fn recv_fds(&self, buffer: &mut [u8], fds_max: usize) -> io::Result<ReceivedFds> {
        let receive = || self.socket().receive_message(buffer, fds_max).map(Some);
        Ok(transfer(self, Verb::ReceiveFds, receive).await?.into())
    }
}

/// Rejects more descriptors than the system accepts.
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
