//! A descriptor whose operations wait by readiness.

use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::slot::{Direction, Inner, Key, POLLED, Seen, Slot};
use super::table::token;
use crate::runtime::{Handle, Shared};
use crate::task::coop;
use crate::worker::Worker;

/// Bound, in bytes: a transfer of so many spends as much of a poll's budget as a small operation does.
const BYTES_PER_OPERATION: usize = 16 * 1024;

/// A descriptor of a socket, a pipe or the like, in non-blocking mode, that threads of a runtime wait for.
///
/// Operations are given as closures, tried first, and tried again whenever the driver reports that this may help. The
/// descriptor is registered with a driver when somebody has to wait for it for the first time. Any number of
/// threads may wait at the same time; all are woken, and try again. Futures may be polled by another executor too: its wakers are
/// called by a worker, and must not block there.
///
/// # Examples
/// ```
/// use std::os::unix::net::UnixDatagram;
/// use tussah_core::io::{Direction, Source};
/// # let runtime = tussah_core::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(async {
/// let (a, b) = UnixDatagram::pair()?;
/// a.set_nonblocking(true)?;
/// let a = Source::new(a.into());
/// b.send(b"hello")?;
/// let mut buffer = [0; 16];
/// let len = a.io(Direction::Read, |fd| Ok(rustix::io::read(fd, &mut buffer)?)).await?;
/// assert_eq!(&buffer[..len], b"hello");
/// # std::io::Result::Ok(())
/// # })?;
/// # std::io::Result::Ok(())
/// ```
pub struct Source {
    /// Always there, until `into_fd` or the drop.
    fd: Option<OwnedFd>,
    shared: Arc<Shared>,
    /// In the table of `shared`.
    slot: NonNull<Slot>,
    /// Which worker's driver has it first does not depend on who waits.
    spreads: bool,
}

// SAFETY: a slot is shared between OS threads by its own rules.
unsafe impl Send for Source {}
// SAFETY: as above.
unsafe impl Sync for Source {}

impl Source {
    /// Takes a descriptor for the runtime that the caller runs in.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn new(fd: OwnedFd) -> Self {
        Handle::with_current(|handle| Self::new_in(handle, fd))
    }

    /// Takes a descriptor for a runtime.
    pub fn new_in(handle: &Handle, fd: OwnedFd) -> Self {
        let shared = handle.shared.clone();
        let slot = NonNull::from(shared.sources.take());
        Self {
            fd: Some(fd),
            shared,
            slot,
            spreads: false,
        }
    }

    /// Has this and others like it registered with one worker after the other, not with the one that waits first. For connections that one worker has accepted: so the workers share
    /// the load from the beginning, and need not steal.
    #[must_use]
    pub fn spread(mut self) -> Self {
        self.spreads = true;
        self
    }

    /// The runtime that the descriptor belongs to.
    pub fn handle(&self) -> Handle {
        Handle {
            shared: self.shared.clone(),
        }
    }

    /// Gives the descriptor back, in non-blocking mode as it is. Who waits is woken.
    #[must_use]
    pub fn into_fd(mut self) -> OwnedFd {
        self.leave();
        self.fd.take().expect("it is there until now")
    }

    /// Has an operation done: tries it, and again whenever it may succeed, until it says something else than `WouldBlock`.
    /// `Interrupted` is tried again at once.
    ///
    /// # Cancellation
    /// Dropping the future leaves an operation that has not been done undone.
    ///
    /// # Errors
    /// What the operation says; what the system says when the descriptor can't be registered; `Other` when the runtime
    /// ends.
    pub fn io<R, F>(&self, direction: Direction, operation: F) -> Io<'_, F>
    where
        F: FnMut(BorrowedFd<'_>) -> io::Result<R> + Unpin,
    {
        Io {
            source: self,
            direction,
            key: 0,
            operation,
        }
    }

    /// The same for `poll_` functions. Of those who wait for a direction by this function, the last one to call is woken.
    ///
    /// # Errors
    /// As [`io`](Self::io).
    pub fn poll_io<R>(
        &self,
        context: &mut Context<'_>,
        direction: Direction,
        mut operation: impl FnMut(BorrowedFd<'_>) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.poll_with(context, direction, &mut { POLLED }, &mut operation)
    }

    /// Waits until an operation may succeed, as far as the driver has reported; makes none, and asks the system nothing, but for the first time to have the
    /// descriptor registered. Of those who wait for
    /// a direction by this function or [`poll_io`](Self::poll_io), the last one to call is woken.
    ///
    /// # Errors
    /// What the system says when the descriptor can't be registered; `Other` when the runtime ends.
    pub fn poll_ready(
        &self,
        context: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<io::Result<()>> {
        ready!(coop::poll_budget(context));
        let seen = self.slot().seen();
        // What is not registered seems to be ready for ever: nobody would report otherwise.
        let is_known = seen.is_reported() || self.slot().is_registered();
        let is_ready = is_known && seen.is_ready(direction);
        if is_ready || self.wait(context, direction, seen, &mut { POLLED })? {
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
    }

    /// Tries an operation once; `Interrupted` is tried again at once.
    ///
    /// # Errors
    /// What it says; `WouldBlock` without a try if the driver has reported nothing since an operation said so.
    pub fn try_io<R>(
        &self,
        direction: Direction,
        mut operation: impl FnMut(BorrowedFd<'_>) -> io::Result<R>,
    ) -> io::Result<R> {
        let seen = self.slot().seen();
        if !seen.is_ready(direction) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let result = loop {
            match operation(self.as_fd()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        if let Err(error) = &result
            && error.kind() == io::ErrorKind::WouldBlock
        {
            self.slot().exhausted(direction, seen);
        }
        result
    }

    #[inline]
    pub(super) fn slot(&self) -> &Slot {
        // SAFETY: slots are neither moved nor freed before the table, which `shared` keeps. Each test of a source reads its slot.
        unsafe { self.slot.as_ref() }
    }

    #[inline]
    fn poll_with<R>(
        &self,
        context: &mut Context<'_>,
        direction: Direction,
        key: &mut Key,
        operation: &mut impl FnMut(BorrowedFd<'_>) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        ready!(coop::poll_budget(context));
        loop {
            let seen = self.slot().seen();
            if seen.is_ready(direction) {
                // Whoever waited for this was taken out of the slot by the report of it.
                if *key != POLLED {
                    *key = 0;
                }
                match operation(self.as_fd()) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    result => return Poll::Ready(result),
                }
            }
            if !self.wait(context, direction, seen, key)? {
                return Poll::Pending;
            }
        }
    }

    /// Waits for a report, unless there was one since `seen`. True: try again.
    fn wait(
        &self,
        context: &Context<'_>,
        direction: Direction,
        seen: Seen,
        key: &mut Key,
    ) -> io::Result<bool> {
        self.slot()
            .wait(direction, seen, key, context.waker(), |inner| {
                if self.shared.sources.is_closed() {
                    return Err(io::Error::other("the runtime is shut down"));
                }
                self.register(inner)
            })
    }

    /// Sees to it that the descriptor is registered: with the worker that runs here if that is one of our runtime, unless it is to be spread.
    fn register(&self, inner: &mut Inner) -> io::Result<()> {
        let here = Worker::with(|worker| {
            let worker = worker.filter(|worker| worker.is_of(&self.shared));
            worker.map(|worker| worker.index)
        });
        let token = token(inner.generation, self.slot().index);
        if inner.home == 0 {
            let here = here.filter(|_| !self.spreads);
            let place = here.unwrap_or_else(|| self.shared.any_place());
            self.shared.driver_of(place).add(self.as_fd(), token)?;
            inner.moved(place);
        } else if let Some(place) = here
            && inner.is_foreign(place)
        {
            // It is well where it is: nobody need hear of it if it can't move.
            if self
                .shared
                .driver_of(place)
                .add(self.as_fd(), token)
                .is_ok()
            {
                let before = inner.moved(place).expect("it was registered");
                self.shared.driver_of(before).remove(self.as_fd());
            } else {
                inner.stays();
            }
        }
        Ok(())
    }

    /// Whoever asked for some bytes got fewer: nothing more is there, or there is no more room, until the driver says so.
    /// `seen_before` is [`marker`](Self::marker) from before the operation.
    ///
    /// For TCP only, and for writing to a Unix stream: a reading also comes short at the end of a packet, of a message with
    /// descriptors, and at the mark of urgent data that was read out of band, with more behind it of which nothing will be reported.
    #[inline]
    pub fn came_short(&self, direction: Direction, seen_before: Marker) {
        self.slot().came_short(direction, seen_before.0);
    }

    /// An operation that was made without [`io`](Self::io) and the like said `WouldBlock`: nothing is there, or there is no room, until the driver says so.
    pub fn would_block(&self, direction: Direction, seen_before: Marker) {
        self.slot().exhausted(direction, seen_before.0);
    }

    /// What [`came_short`](Self::came_short) and [`would_block`](Self::would_block) have to know.
    #[must_use]
    #[inline]
    pub fn marker(&self) -> Marker {
        Marker(self.slot().seen())
    }

    fn leave(&mut self) {
        let (wakers, home) = self.slot().reset();
        if let Some(home) = home {
            self.shared.driver_of(home).remove(self.as_fd());
        }
        self.shared.sources.give_back(self.slot().index);
        wakers.wake();
    }
}

/// A descriptor's state at some moment.
#[derive(Clone, Copy)]
pub struct Marker(Seen);

/// Spends of the running poll's budget what a transfer of so many bytes is worth beyond a small one, so that a descriptor that
/// is always ready lets others have their turn.
#[inline]
pub fn spend_bytes(bytes: usize) {
    if bytes >= BYTES_PER_OPERATION {
        spend_many(bytes);
    }
}

#[cold]
fn spend_many(bytes: usize) {
    Worker::with(|worker| {
        if let Some(worker) = worker {
            worker.spend_more((bytes / BYTES_PER_OPERATION) as u32);
        }
    });
}

impl AsFd for Source {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        let fd = self.fd.as_ref();
        fd.expect("it is there until the drop").as_fd()
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        if self.fd.is_some() {
            self.leave();
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Source").field(&self.fd).finish()
    }
}

/// The future of [`Source::io`].
#[must_use = "futures do nothing unless they are polled"]
pub struct Io<'a, F> {
    source: &'a Source,
    direction: Direction,
    key: Key,
    operation: F,
}

impl<R, F> Future for Io<'_, F>
where
    F: FnMut(BorrowedFd<'_>) -> io::Result<R> + Unpin,
{
    type Output = io::Result<R>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<R>> {
        let this = &mut *self;
        let source = this.source;
        source.poll_with(context, this.direction, &mut this.key, &mut this.operation)
    }
}

impl<F> Drop for Io<'_, F> {
    fn drop(&mut self) {
        if self.key != 0 {
            self.source.slot().cancel(self.direction, self.key);
        }
    }
}

impl<F> fmt::Debug for Io<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Io")
            .field("source", self.source)
            .field("direction", &self.direction)
            .finish_non_exhaustive()
    }
}
