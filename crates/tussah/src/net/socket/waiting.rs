//! How a socket is waited for.

use std::future::Future;
use std::io;
use std::task::{Context, Poll};

use super::{Direction, Socket};

impl Socket {
    /// Has an attempt succeed, or fail.
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

    /// The same for `poll_` functions. Of those who wait for a direction by it, the last one to call is woken.
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

    /// Makes an attempt without waiting; one that would block has who asks for a [hint](Self::poll_hint) wait.
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

    /// Waits until an attempt may succeed, as far as is known without a look.
    pub(crate) fn poll_hint(
        &self,
        context: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Os(source) => source.poll_ready(context, direction),
        }
    }

    /// Waits until an attempt would not block.
    pub(crate) async fn wait_ready(&self, direction: Direction) -> io::Result<()> {
        self.operate(direction, || self.ready(direction)).await
    }
}
