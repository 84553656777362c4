//! Sending and receiving batches of datagrams.

use std::io;
use std::net::SocketAddr;

use rustix::net::RecvFlags;

use super::UdpSocket;
use crate::net::socket::{BATCH_MAX, Direction};

/// A slot for one datagram that [`UdpSocket::recv_batch`] receives: a buffer, and the sender of the
/// datagram.
#[derive(Debug)]
pub struct RecvSlot<'a> {
    buffer: &'a mut [u8],
    received: Option<(usize, bool, SocketAddr)>,
}

impl<'a> RecvSlot<'a> {
    /// Creates an empty slot.
    #[must_use]
    pub fn new(buffer: &'a mut [u8]) -> Self {
        let received = None;
        Self { buffer, received }
    }

    /// Returns the part of the datagram that fit into the buffer, or an empty slice if no datagram
    /// was received.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        let len = self.received.map_or(0, |(len, ..)| len);
        &self.buffer[..len]
    }

    /// Returns the sender, or `None` if no datagram was received.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.received.map(|(.., peer)| peer)
    }

    /// Returns whether the datagram was longer than the buffer and was therefore truncated.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.received.is_some_and(|(_, truncated, _)| truncated)
    }
}

impl UdpSocket {
    /// Waits for a datagram, then receives the queued datagrams, at most one per slot. Returns the
    /// number of datagrams received. If receiving fails after the first datagram, the next
    /// operation reports the error.
    ///
    /// One call receives at most 32 datagrams. The call makes one system call per datagram, but
    /// avoids waiting and scheduling between datagrams.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been received.
    ///
    /// # Errors
    /// Same as [`recv`](Self::recv).
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

    /// Sends datagrams, each to its address or, if it has none, to the peer. The operating system
    /// accepts the datagrams in order, but possibly not all of them. Returns the number of accepted
    /// datagrams, which is at least 1, unless `datagrams` is empty.
    ///
    /// One call sends at most 32 datagrams, with one system call (`sendmmsg`). If sending a later
    /// datagram fails, call this method again with the remaining datagrams to get the error.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been sent.
    ///
    /// # Errors
    /// Returns an error only if the first datagram cannot be sent; see [`send`](Self::send) for the
    /// possible errors.
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
