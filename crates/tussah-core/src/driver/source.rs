//! A descriptor whose operations wait by readiness.

use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;

use super::outage::log_removal;
use super::slot::{Direction, Inner, Key, POLLED, Seen, Slot};
use super::table::token;
use crate::runtime::{Handle, Shared};
use crate::thread::coop;
use crate::worker::Worker;

/// A non-blocking descriptor (such as a socket or a pipe) that threads of a runtime can wait for.
///
/// An operation is a closure that the source calls immediately, and again whenever the driver
/// reports that the operation may succeed. The descriptor is registered with a driver when a thread
/// first has to wait for it. Any number of threads may wait at the same time: when the driver
/// reports readiness, all of them wake up and try again. If another executor polls the futures, a
/// worker calls that executor's wakers, so these wakers must not block.
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
    /// Present until `into_fd` or the drop.
    fd: Option<OwnedFd>,
    shared: Arc<Shared>,
    /// A slot in the table of `shared`.
    slot: NonNull<Slot>,
    /// True if the first registration ignores which worker runs the waiting thread.
    spreads: bool,
}

// SAFETY: a slot is shared between OS threads under its own lock and atomics.
unsafe impl Send for Source {}
// SAFETY: as above.
unsafe impl Sync for Source {}

impl Source {
    /// Takes ownership of a descriptor, for use in the current runtime.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub fn new(fd: OwnedFd) -> Self {
        Handle::with_current(|handle| Self::new_in(handle, fd))
    }

    /// Takes ownership of a descriptor, for use in the given runtime.
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

    /// Assigns this descriptor to the next worker in rotation, instead of to the worker that first
    /// waits for it. Use this method for connections that are all accepted by one worker: all
    /// workers then share the load immediately, without stealing.
    #[must_use]
    pub fn spread(mut self) -> Self {
        self.spreads = true;
        self
    }

    /// Returns a handle to the runtime that the descriptor belongs to.
    pub fn handle(&self) -> Handle {
        Handle {
            shared: self.shared.clone(),
        }
    }

    /// Returns the descriptor, still in non-blocking mode, and wakes its waiters.
    #[must_use]
    pub fn into_fd(mut self) -> OwnedFd {
        self.leave();
        self.fd.take().expect("it is there until now")
    }

    /// Tries an operation, and tries it again whenever it may succeed, until it returns something
    /// other than `WouldBlock`. An operation that returns `Interrupted` is retried immediately.
    ///
    /// # Cancellation
    /// If the future is dropped, the operation is not tried again.
    ///
    /// # Errors
    /// Returns the operation's error, the system's error if the descriptor cannot be registered, or
    /// `Other` if the runtime has shut down.
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

    /// Tries an operation as [`io`](Self::io) does, for use in `poll_` functions. If several
    /// callers wait for the same direction, only the last one is woken.
    ///
    /// # Errors
    /// Returns the same errors as [`io`](Self::io).
    pub fn poll_io<R>(
        &self,
        context: &mut Context<'_>,
        direction: Direction,
        mut operation: impl FnMut(BorrowedFd<'_>) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.poll_with(context, direction, &mut { POLLED }, &mut operation)
    }

    /// Waits until the driver reports that an operation may succeed. This function tries no
    /// operation, and makes no system call except to register the descriptor once. If several
    /// callers wait for the same direction with this function or [`poll_io`](Self::poll_io), only
    /// the last one is woken.
    ///
    /// # Errors
    /// Returns the system's error if the descriptor cannot be registered, or `Other` if the runtime
    /// has shut down.
    pub fn poll_ready(
        &self,
        context: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<io::Result<()>> {
        ready!(coop::poll_budget(context));
        let seen = self.slot().seen();
        // A descriptor that is not registered always seems ready, because nothing reports
        // otherwise.
        let is_known = seen.is_reported() || self.slot().is_registered();
        let is_ready = is_known && seen.is_ready(direction);
        if is_ready || self.wait(context, direction, seen, &mut { POLLED })? {
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
    }

    /// Tries an operation once. An operation that returns `Interrupted` is retried immediately.
    ///
    /// # Errors
    /// Returns the operation's error. If an earlier operation has returned `WouldBlock` and the
    /// driver has reported nothing since, returns `WouldBlock` without trying this operation.
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
        // SAFETY: the table neither moves nor frees slots before its own drop, and `shared` keeps
        // it alive. Every test of a source reads its slot.
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
                // The report that made the direction ready has removed this waiter from the slot.
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

    /// Waits for a report, unless there was one since `seen`. Returns true if the caller has to try
    /// again.
    fn wait(
        &self,
        context: &Context<'_>,
        direction: Direction,
        seen: Seen,
        key: &mut Key,
    ) -> io::Result<bool> {
        let mut removed = Ok(());
        let register = |inner: &mut Inner| self.register_open(inner, &mut removed);
        let ready = self
            .slot()
            .wait(direction, seen, key, context.waker(), register);
        log_removal(removed);
        ready
    }

    /// Does the same as [`register`](Self::register), but fails if the runtime has ended, since
    /// nothing would be reported.
    pub(super) fn register_open(
        &self,
        inner: &mut Inner,
        removed: &mut Result<(), Errno>,
    ) -> io::Result<()> {
        if self.shared.sources.is_closed() {
            return Err(io::Error::other("the runtime is shut down"));
        }
        self.register(inner, removed)
    }

    /// Registers the descriptor if necessary: with the worker of our runtime on which the caller
    /// runs, if there is one and the descriptor is not to be spread. A descriptor that moves leaves
    /// its old driver; `removed` is the result of that removal.
    fn register(&self, inner: &mut Inner, removed: &mut Result<(), Errno>) -> io::Result<()> {
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
            // A descriptor that cannot move stays where it works, and no error is reported.
            if self
                .shared
                .driver_of(place)
                .add(self.as_fd(), token)
                .is_ok()
            {
                let before = inner.moved(place).expect("it was registered");
                *removed = self.shared.driver_of(before).remove(self.as_fd());
            } else {
                inner.stays();
            }
        }
        Ok(())
    }

    /// Records that an operation transferred fewer bytes than requested. The source then assumes
    /// that the descriptor is not ready until the driver reports that it is. `seen_before` is the
    /// [`marker`](Self::marker) that was obtained before the operation.
    ///
    /// Call this method only for TCP streams, and for writes to a Unix stream. A read from any
    /// other descriptor may also return fewer bytes because it stops at the end of a packet, at a
    /// message that carries descriptors, or at the mark of out-of-band data. More data may then be
    /// available without a new report.
    #[inline]
    pub fn came_short(&self, direction: Direction, seen_before: Marker) {
        self.slot().came_short(direction, seen_before.0);
    }

    /// Records `WouldBlock` from an operation that the caller performed without [`io`](Self::io) or
    /// its variants. The source then assumes that the descriptor is not ready until the driver
    /// reports that it is.
    pub fn would_block(&self, direction: Direction, seen_before: Marker) {
        self.slot().exhausted(direction, seen_before.0);
    }

    /// Returns the current state, to pass to [`came_short`](Self::came_short) or
    /// [`would_block`](Self::would_block) after the next operation.
    #[must_use]
    #[inline]
    pub fn marker(&self) -> Marker {
        Marker(self.slot().seen())
    }

    fn leave(&mut self) {
        let (wakers, home) = self.slot().reset();
        if let Some(home) = home {
            log_removal(self.shared.driver_of(home).remove(self.as_fd()));
        }
        self.shared.sources.give_back(self.slot().index);
        wakers.wake();
    }
}

/// A snapshot of the state of a descriptor.
#[derive(Clone, Copy)]
pub struct Marker(Seen);

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
