//! Descriptors that travel through Unix sockets.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::net::socket::{DESCRIPTORS_MAX, Direction, Message, Socket};

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

/// Sends bytes with descriptors.
pub(super) async fn send(
    socket: &Socket,
    data: &[u8],
    fds: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    if fds.len() > DESCRIPTORS_MAX {
        let text = format!(
            "expected {DESCRIPTORS_MAX} descriptors at most, got {}",
            fds.len()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
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
