//! Detection of peers that hang up. `mod.rs` proves that no hang-up is missed.

use std::io;
use std::task::{Context, Poll};

use super::outage::log_removal;
use super::slot::{FULL, HALF, Inner, POLLED};
use super::source::Source;

/// The extent to which a peer has hung up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hangup {
    /// The peer will send no more data, but may still read: its FIN has arrived.
    Half,
    /// The connection is over: it was reset, it failed, or both sides have closed it.
    Full,
}

impl Hangup {
    fn flags(self) -> u32 {
        match self {
            Self::Half => HALF | FULL,
            Self::Full => FULL,
        }
    }
}

impl Source {
    /// Waits until the driver reports that the peer has hung up, at least to the extent of
    /// `hangup`.
    ///
    /// This function detects a hang-up even if there are unread bytes, and performs no I/O. This
    /// function shares one waker with [`poll_io`](Self::poll_io) and
    /// [`poll_ready`](Self::poll_ready) in the read direction, so only the last caller of the three
    /// functions is woken. Use this function for connected streams.
    ///
    /// # Errors
    /// Returns the same errors as [`poll_ready`](Self::poll_ready).
    pub fn poll_hangup(&self, context: &mut Context<'_>, hangup: Hangup) -> Poll<io::Result<()>> {
        loop {
            let seen = self.slot().seen();
            if seen.has(hangup.flags()) {
                return Poll::Ready(Ok(()));
            }
            let (key, waker) = (&mut { POLLED }, context.waker());
            let mut removed = Ok(());
            let register = |inner: &mut Inner| self.register_open(inner, &mut removed);
            let ready = self.slot().wait_report(seen, key, waker, register);
            log_removal(removed);
            if !ready? {
                return Poll::Pending;
            }
        }
    }

    /// Returns whether the driver has reported that the peer has hung up, at least to the extent of
    /// `hangup`.
    ///
    /// Returns false before the first wait for the descriptor, because the driver reports nothing
    /// about it until then.
    #[must_use]
    #[inline]
    pub fn has_hung_up(&self, hangup: Hangup) -> bool {
        self.slot().seen().has(hangup.flags())
    }
}
