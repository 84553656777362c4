//! Reads of one packet: what has come, up to 16 KB, in a buffer of its own length.

use std::cell::RefCell;
use std::future::Future;
use std::io;

use super::tcp::{Limited as _, Verb, transfer};
use super::{TcpStream, UnixStream};

/// Bound, in bytes: what one packet has at most (SEDA, SOSP 2001, section 4.1): so much of one socket before it is another's turn.
pub(crate) const PACKET_MAX: usize = 16 * 1024;

thread_local! {
    /// What is read stands here until its length is known. So a connection that waits has no buffer, and a short packet a short one.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; PACKET_MAX].into());
}

fn packet(
    len_max: usize,
    receive: impl FnOnce(&mut [u8]) -> io::Result<usize>,
) -> io::Result<Option<Vec<u8>>> {
    SCRATCH.with_borrow_mut(|scratch| {
        let len = receive(&mut scratch[..len_max.clamp(1, PACKET_MAX)])?;
        Ok(Some(scratch[..len].to_vec()))
    })
}

impl TcpStream {
    /// Reads what is there, once there is anything; nothing is the end. Dropping the future reads nothing.
    pub(crate) fn read_packet(
        &self,
        len_max: usize,
    ) -> impl Future<Output = io::Result<Vec<u8>>> + Send + Unpin + use<'_> {
        transfer(self, Verb::Read, move || {
            packet(len_max, |scratch| self.receive(scratch))
        })
    }
}

impl UnixStream {
    /// As [`TcpStream::read_packet`].
    pub(crate) fn read_packet(
        &self,
        len_max: usize,
    ) -> impl Future<Output = io::Result<Vec<u8>>> + Send + Unpin + use<'_> {
        transfer(self, Verb::Read, move || {
            packet(len_max, |scratch| self.socket().receive_some(scratch))
        })
    }
}
