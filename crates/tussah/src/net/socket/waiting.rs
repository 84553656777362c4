//! Waiting for sockets.

use std::future::Future;
use std::io;
use std::task::{Context, Poll};

use super::{Direction, Hangup, Socket};

impl Socket {
    /// Repeats an attempt until it succeeds or fails.
    pub(crate) fn operate<'a, R, F>(
        &'a self,
        direction: Direction,
        mut attempt: F,
    ) -> impl Future<Output = io::Result<R>> + Unpin + use<'a, R, F>
    where
        F: FnMut() -> io::Result<R> + Unpin,
    {
        match self {
            Self::Os(source) => source.io(direction, move |_| attempt()),
        }
    }

    /// Does the same as [`operate`](Self::operate) for `poll_` functions. If several tasks wait for
    /// one direction this way, only the last caller is woken.
    pub(crate) fn poll_operate<R>(
        &self,
        context: &mut Context<'_>,
        direction: Direction,
        mut attempt: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        match self {
            Self::Os(source) => source.poll_io(context, direction, |_| attempt()),
        }
    }

    /// Makes an attempt without waiting. If it would block, callers of
    /// [`poll_hint`](Self::poll_hint) wait again.
    pub(crate) fn attempt<R>(
        &self,
        direction: Direction,
        attempt: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        let Self::Os(source) = self;
        let before = source.marker();
        let done = attempt();
        if matches!(&done, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            source.would_block(direction, before);
        }
        done
    }

    /// Waits until an attempt may succeed, according to the driver's last report.
    pub(crate) fn poll_hint(
        &self,
        context: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Os(source) => source.poll_ready(context, direction),
        }
    }

    /// Waits until the peer has hung up at least as far as `hangup`, according to the driver's last
    /// report.
    pub(crate) fn poll_hangup(
        &self,
        context: &mut Context<'_>,
        hangup: Hangup,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Os(source) => source.poll_hangup(context, hangup),
        }
    }

    /// Returns whether the peer has hung up at least as far as `hangup`, according to the driver's
    /// last report.
    pub(crate) fn has_hung_up(&self, hangup: Hangup) -> bool {
        match self {
            Self::Os(source) => source.has_hung_up(hangup),
        }
    }

    /// Waits until an attempt would not block.
    pub(crate) async fn wait_ready(&self, direction: Direction) -> io::Result<()> {
        self.operate(direction, || self.ready(direction)).await
    }
}
