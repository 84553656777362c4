//! Several datagrams by one operation.

use std::io;
use std::net::SocketAddr;

use rustix::net::RecvFlags;

use super::UdpSocket;
use crate::net::socket::{BATCH_MAX, Direction};

/// Room for a datagram, and what has come into it, for [`UdpSocket::recv_batch`].
#[derive(Debug)]
pub struct RecvSlot<'a> {
    buffer: &'a mut [u8],
    received: Option<(usize, bool, SocketAddr)>,
}

impl<'a> RecvSlot<'a> {
    /// An empty slot.
    #[must_use]
    pub fn new(buffer: &'a mut [u8]) -> Self {
        let received = None;
        Self { buffer, received }
    }

    /// The datagram, as far as there was room for it; empty if none came.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        let len = self.received.map_or(0, |(len, ..)| len);
        &self.buffer[..len]
    }

    /// Who has sent it; `None` if none came.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.received.map(|(.., peer)| peer)
    }

    /// Whether there was not enough room, so that the end of the datagram is lost.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.received.is_some_and(|(_, truncated, _)| truncated)
    }
}

impl UdpSocket {
    /// Receives as many datagrams as are there, once there is one, and at most one for each slot; says how many. An error
    /// behind the first is left for the next operation.
    ///
    /// At most 32 come at once. It is a loop of system calls, which saves what is around them.
    ///
    /// # Cancellation
    /// Dropping the future receives nothing.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    ///
    /// # Examples
    /// ```
    /// use tussah::net::{RecvSlot, UdpSocket};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let (server, client) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    /// let to = Some(server.local_addr()?);
    /// let sent = client.send_batch(&[(b"one", to), (b"three", to)]).await?;
    /// assert_eq!(sent, 2);
    /// let mut buffers = [[0; 4]; 3];
    /// let mut slots = buffers.each_mut().map(|buffer| RecvSlot::new(buffer));
    /// assert_eq!(server.recv_batch(&mut slots).await?, 2);
    /// assert_eq!((slots[0].data(), slots[0].is_truncated()), (&b"one"[..], false));
    /// assert_eq!((slots[1].data(), slots[1].is_truncated()), (&b"thre"[..], true));
    /// assert_eq!(slots[2].peer(), None);
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn recv_batch(&self, slots: &mut [RecvSlot<'_>]) -> io::Result<usize> {
        for slot in &mut *slots {
            slot.received = None;
        }
        if slots.is_empty() {
            return Ok(0);
        }
        let received = self
            .socket
            .operate(Direction::Read, || self.receive_many(slots));
        received
            .await
            .map_err(|error| self.failed("receive at", error))
    }

    fn receive_many(&self, slots: &mut [RecvSlot<'_>]) -> io::Result<usize> {
        let mut count = 0;
        for slot in slots.iter_mut().take(BATCH_MAX) {
            match self.attempt(slot.buffer, RecvFlags::empty()) {
                Ok(received) => slot.received = Some(received),
                Err(error) if count == 0 => return Err(error),
                Err(error) => {
                    if !matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) {
                        self.keep(&error);
                    }
                    break;
                }
            }
            count += 1;
        }
        Ok(count)
    }

    /// Sends datagrams, each to its address, or to the peer if it has none; says how many the system took: the first
    /// ones, at least one unless there are none.
    ///
    /// At most 32 go at once, by one system call (`sendmmsg`). An error behind the first is met by whoever sends the rest.
    ///
    /// # Cancellation
    /// Dropping the future sends nothing.
    ///
    /// # Errors
    /// As [`send`](Self::send), of the first.
    ///
    /// # Examples
    /// See [`recv_batch`](Self::recv_batch).
    pub async fn send_batch(&self, datagrams: &[(&[u8], Option<SocketAddr>)]) -> io::Result<usize> {
        if datagrams.is_empty() {
            return Ok(0);
        }
        let all = || {
            let datagrams = datagrams.iter();
            datagrams.map(|&(data, address)| (data, address.map(Into::into)))
        };
        let sent = self
            .socket
            .operate(Direction::Write, || self.socket.send_many(all()));
        sent.await.map_err(|error| self.failed("send from", error))
    }
}
