//! Packet reads: the available data, up to 16 KB, in a buffer of exactly its length.

use std::cell::RefCell;
use std::future::Future;
use std::io;

use super::tcp::{Limited as _, Verb, transfer};
use super::{TcpStream, UnixStream};

/// Bound, in bytes: the largest packet that a stage receives (SEDA, SOSP 2001, section 4.1). After
/// that many bytes of one socket, another socket gets its turn.
pub(crate) const PACKET_MAX: usize = 16 * 1024;

thread_local! {
    /// Data is read here until its length is known. A waiting connection thus needs no buffer, and
    /// a short packet needs only a short one.
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
    /// Waits for data and reads it. An empty result is the end of the stream. If the future is
    /// dropped early, nothing has been read.
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
    /// Reads a packet, as [`TcpStream::read_packet`] does.
    pub(crate) fn read_packet(
        &self,
        len_max: usize,
    ) -> impl Future<Output = io::Result<Vec<u8>>> + Send + Unpin + use<'_> {
        transfer(self, Verb::Read, move || {
            packet(len_max, |scratch| self.socket().receive_some(scratch))
        })
    }
}
