//! Attempts with messages: batches of datagrams, and bytes with descriptors.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::io::retry_on_intr;
use rustix::net::{
    self, MMsgHdr, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrAny,
};
use tussah_core::io::{Direction, spend_bytes};

use super::{Socket, TRANSFER_MAX};

/// Bound, in datagrams: the most that one call sends, so that the headers fit on the stack. The
/// call returns the number sent, and the next call sends the rest.
pub(crate) const BATCH_MAX: usize = 32;

/// Bound, in descriptors: the most that one message can carry. The system allows no more
/// (`SCM_MAX_FD`).
pub(crate) const DESCRIPTORS_MAX: usize = 253;

/// A received message.
pub(crate) struct Message {
    pub(crate) len: usize,
    pub(crate) descriptors: Vec<OwnedFd>,
    /// True if descriptors arrived for which there was no room; they are closed.
    pub(crate) descriptors_lost: bool,
    /// True if the datagram was longer than the buffer.
    pub(crate) is_cut: bool,
}

impl Socket {
    /// Receives from a Unix stream. Descriptors that arrive with the bytes are closed.
    pub(crate) fn receive_some(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(TRANSFER_MAX);
        self.receive_slices(&mut [IoSliceMut::new(&mut buffer[..wanted])], wanted)
    }

    /// Does the same as [`receive_some`](Self::receive_some) with several buffers.
    pub(crate) fn receive_some_vectored(
        &self,
        buffers: &mut [IoSliceMut<'_>],
    ) -> io::Result<usize> {
        let run = super::run(buffers.iter().map(|buffer| buffer.len()), TRANSFER_MAX);
        let run = &mut buffers[run];
        let wanted = run.iter().map(|buffer| buffer.len()).sum();
        match run {
            [only] => self.receive_some(only),
            run => self.receive_slices(run, wanted),
        }
    }

    /// Receives from a Unix stream. A short, nonempty read has drained the stream, unless it ended
    /// after bytes that came with descriptors, as the flags of `recvmsg` show.
    fn receive_slices(&self, slices: &mut [IoSliceMut<'_>], wanted: usize) -> io::Result<usize> {
        let Self::Os(source) = self;
        let before = source.marker();
        let received = retry_on_intr(|| {
            let mut control = RecvAncillaryBuffer::default();
            net::recvmsg(source.as_fd(), slices, &mut control, RecvFlags::empty())
        })?;
        let len = received.bytes;
        if 0 < len && len < wanted && !received.flags.contains(ReturnFlags::CTRUNC) {
            source.came_short(Direction::Read, before);
        }
        spend_bytes(len);
        Ok(len)
    }

    /// Receives a datagram. Returns its length before truncation to the buffer.
    pub(crate) fn receive_datagram(
        &self,
        buffer: &mut [u8],
        flags: RecvFlags,
    ) -> io::Result<(usize, Option<SocketAddrAny>)> {
        let flags = flags | RecvFlags::TRUNC;
        let (len, whole_len, peer) =
            retry_on_intr(|| net::recvfrom(self.as_fd(), &mut *buffer, flags))?;
        spend_bytes(len);
        Ok((whole_len, peer))
    }

    /// Receives bytes or a datagram with up to `descriptors_max` descriptors, which are
    /// close-on-exec.
    pub(crate) fn receive_message(
        &self,
        buffer: &mut [u8],
        descriptors_max: usize,
    ) -> io::Result<Message> {
        let descriptors_max = descriptors_max.min(DESCRIPTORS_MAX);
        let mut space =
            vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(descriptors_max))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut slices = [IoSliceMut::new(buffer)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = net::recvmsg(self.as_fd(), &mut slices, &mut control, flags)?;
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(some) = message {
                descriptors.extend(some);
            }
        }
        // The space is rounded up, so it may have held one descriptor more.
        let too_many = descriptors.len() > descriptors_max;
        descriptors.truncate(descriptors_max);
        spend_bytes(received.bytes);
        Ok(Message {
            len: received.bytes,
            descriptors,
            descriptors_lost: too_many || received.flags.contains(ReturnFlags::CTRUNC),
            is_cut: received.flags.contains(ReturnFlags::TRUNC),
        })
    }

    /// Sends bytes or a datagram with descriptors.
    pub(crate) fn send_message(
        &self,
        buffer: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<usize> {
        let mut space =
            vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(descriptors.len()))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            let fits = control.push(SendAncillaryMessage::ScmRights(descriptors));
            assert!(fits, "the space was made for them");
        }
        let slices = [IoSlice::new(buffer)];
        let len = net::sendmsg(self.as_fd(), &slices, &mut control, SendFlags::NOSIGNAL)?;
        spend_bytes(len);
        Ok(len)
    }

    /// Sends datagrams, each to its address or to the peer, with one system call. Returns the
    /// number of datagrams sent.
    pub(crate) fn send_many<'a>(
        &self,
        datagrams: impl Iterator<Item = (&'a [u8], Option<SocketAddrAny>)>,
    ) -> io::Result<usize> {
        let some: Vec<_> = datagrams
            .take(BATCH_MAX)
            .map(|(data, address)| ([IoSlice::new(data)], address))
            .collect();
        let mut controls: [_; BATCH_MAX] = std::array::from_fn(|_| SendAncillaryBuffer::default());
        let pairs = some.iter().zip(&mut controls);
        let mut headers: Vec<_> = pairs
            .map(|((slices, address), control)| match address {
                Some(address) => MMsgHdr::new_with_addr(address, slices, control),
                None => MMsgHdr::new(slices, control),
            })
            .collect();
        let count = net::sendmmsg(self.as_fd(), &mut headers, SendFlags::NOSIGNAL)?;
        spend_bytes(headers[..count].iter().map(MMsgHdr::bytes_sent).sum());
        Ok(count)
    }

    /// Returns the PID, user ID and group ID of a Unix socket's peer, at the time of connecting.
    ///
    /// This does not use rustix, whose type cannot represent PID 0, the PID of a process in another
    /// container.
    pub(crate) fn peer_credentials(&self) -> io::Result<(i32, u32, u32)> {
        let peer = getsockopt(&self.as_fd(), PeerCredentials)?;
        Ok((peer.pid(), peer.uid(), peer.gid()))
    }
}
