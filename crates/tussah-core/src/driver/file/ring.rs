//! An io_uring behind a short lock, with the operations that it has handed to the kernel.
//!
//! The states of an operation's slot, and the events that free it:
//!
//! | state | where it is | leaves by |
//! |---|---|---|
//! | waiting | the backlog: the kernel has never seen it | a completion, which makes room; `cancel`; `close` |
//! | submitted | the submission queue, or the kernel | the kernel's completion, and nothing else |
//!
//! The lock covers our ends of the two queues shared with the kernel, the slots and the backlog.
//! `io_uring_enter` is called without the lock, except when the submission queue is full: the
//! kernel accepts everything below the tail from any caller. No user code runs under the lock, and
//! no other lock is taken under it.

mod close;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use io_uring::{IoUring, opcode, squeue};
use parking_lot::Mutex;
use rustix::io::Errno;

use self::close::Phase;
use super::super::outage::Outage;
use super::operation::Operate;
use super::slots::{Key, Slots};
use crate::runtime::Shared;

/// The length of the submission queue of a ring. A full queue is flushed immediately.
const SUBMISSIONS_MAX: u32 = 256;

/// Bound, in operations: a worker's file operations in the kernel, including long waits such as
/// reads of a terminal: about 32 MiB of kernel memory. Further operations wait in the backlog.
const IN_FLIGHT_MAX: usize = 65_536;

/// The length of the completion queue of a ring. The kernel keeps the overflow.
const COMPLETIONS_MAX: u32 = 4096;

/// Bound, in OS threads of the kernel: submissions of one OS thread that may block at once, such as
/// opening a FIFO; further ones wait. The kernel's own bound, four per processor, suits disks.
const BLOCKED_MAX: u32 = 256;

/// The most completions that one `reap` takes, so that a worker soon returns to its colors.
const REAP_MAX: usize = 256;

/// The number of retries of a flush if the kernel lacks memory or room for completions.
const FLUSH_TRIES_MAX: usize = 8;

/// The user data of a cancellation request. Its own completion is ignored.
const CANCEL: u64 = u64::MAX;

/// The dimensions of a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Entries of the submission queue.
    pub(crate) submissions: u32,
    /// Entries of the completion queue.
    pub(crate) completions: u32,
    /// Operations that the kernel may have at the same time.
    pub(crate) in_flight: usize,
}

impl Default for Size {
    fn default() -> Self {
        Self {
            submissions: SUBMISSIONS_MAX,
            completions: COMPLETIONS_MAX,
            in_flight: IN_FLIGHT_MAX,
        }
    }
}

/// Makes an io_uring that any OS thread may use.
///
/// # Errors
/// Returns any error from io_uring_setup(2) or mmap(2).
pub(super) fn make(size: Size) -> io::Result<IoUring> {
    let uring = IoUring::builder()
        .dontfork()
        .setup_clamp()
        .setup_cqsize(size.completions)
        .build(size.submissions)?;
    // Zero keeps the bound for files that are not on a disk. An older kernel keeps both bounds.
    let _ = uring
        .submitter()
        .register_iowq_max_workers(&mut [BLOCKED_MAX, 0]);
    Ok(uring)
}

/// An io_uring that any OS thread may push to, flush and reap.
pub(crate) struct Ring {
    uring: IoUring,
    inner: Mutex<Inner>,
    /// Pushed entries that no flush has claimed yet.
    unflushed: AtomicUsize,
    /// Entries whose completion has not been taken: operations and cancellation requests.
    in_flight: AtomicUsize,
    in_flight_max: usize,
    outage: Outage,
    /// Makes the kernel appear to refuse everything, as if it had no memory.
    #[cfg(test)]
    refuses: std::sync::atomic::AtomicBool,
    /// The runtime and the place of the ring. A ring in a test has neither.
    home: OnceLock<(Weak<Shared>, usize)>,
}

struct Inner {
    slots: Slots,
    /// The operations that wait for room, oldest first. A cancelled one has already left its slot.
    backlog: VecDeque<Key>,
    /// The number of operations in the backlog that were not cancelled.
    waiting: usize,
    phase: Phase,
    /// An empty list with capacity for `reap`, unless a `reap` is using it.
    spare: Vec<Completion>,
}

/// An operation, and the kernel's result.
type Completion = (Arc<dyn Operate>, i32);

impl Ring {
    /// Makes a ring.
    ///
    /// # Errors
    /// Returns the same errors as [`make`].
    pub(crate) fn new(size: Size) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            uring: make(size)?,
            inner: Mutex::new(Inner {
                slots: Slots::new(),
                backlog: VecDeque::new(),
                waiting: 0,
                phase: Phase::Open,
                spare: Vec::new(),
            }),
            unflushed: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            in_flight_max: size.in_flight,
            outage: Outage::new(),
            #[cfg(test)]
            refuses: Default::default(),
            home: OnceLock::new(),
        }))
    }

    /// Sets the runtime and place of the ring, before anything uses it.
    pub(super) fn set_home(&self, shared: Weak<Shared>, place: usize) {
        let set = self.home.set((shared, place));
        assert!(set.is_ok(), "a ring is made for one place");
    }

    /// Returns the descriptor that is readable when an operation has completed.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.uring.as_fd()
    }

    /// Returns the number of operations and cancellation requests in flight, without the backlog.
    #[inline]
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Adds an operation. A caller other than the ring's worker must also flush.
    ///
    /// # Errors
    /// Returns the operation if the ring no longer accepts it.
    pub(super) fn push(&self, operation: Arc<dyn Operate>) -> Result<Key, Arc<dyn Operate>> {
        let mut inner = self.inner.lock();
        if !inner.phase.takes(&*operation) {
            return Err(operation);
        }
        let key = inner.slots.insert(operation);
        if inner.waiting > 0 || !self.submit(&mut inner, key) {
            inner.backlog.push_back(key);
            inner.waiting += 1;
        }
        Ok(key)
    }

    /// Moves an operation to the kernel's queue if there is room.
    fn submit(&self, inner: &mut Inner, key: Key) -> bool {
        if self.in_flight() >= self.in_flight_max {
            return false;
        }
        let entry = inner.slots.get(key).entry().user_data(key.0);
        let queued = self.queue(inner, &entry);
        if queued {
            inner.slots.set_submitted(key);
        }
        queued
    }

    /// Puts an entry into the submission queue, and flushes a full queue.
    fn queue(&self, _locked: &mut Inner, entry: &squeue::Entry) -> bool {
        for _ in 0..2 {
            // SAFETY: the lock, which `_locked` shows to be held, makes this end of the queue ours.
            // The operation in the slot owns what the entry points at, and leaves only by its
            // completion (table above; see `the_kernel_keeps_the_buffer_of_a_dropped_future` and
            // the tests of `Slots`).
            if unsafe { self.uring.submission_shared().push(entry) }.is_ok() {
                self.in_flight.fetch_add(1, Ordering::Relaxed);
                self.unflushed.fetch_add(1, Ordering::Relaxed);
                return true;
            }
            if self.enter().is_err() {
                return false;
            }
        }
        false
    }

    /// Removes an operation from the backlog, or asks the kernel to give it up and complete it.
    pub(super) fn cancel(&self, key: Key) {
        let mut inner = self.inner.lock();
        match inner.slots.is_submitted(key) {
            None => {}
            Some(true) => {
                let entry = opcode::AsyncCancel::new(key.0).build().user_data(CANCEL);
                // Without room the operation is not cancelled, and runs to its end.
                let _ = self.queue(&mut inner, &entry);
            }
            Some(false) => {
                let operation = inner.slots.remove(key);
                inner.waiting -= 1;
                if inner.backlog.len() > 2 * inner.waiting + 64 {
                    let Inner { backlog, slots, .. } = &mut *inner;
                    backlog.retain(|key| slots.is_submitted(*key) == Some(false));
                }
                drop(inner);
                // The user's data is dropped outside of the lock.
                drop(operation);
            }
        }
    }

    /// Hands all queued entries to the kernel. Costs one load if there are none. Returns false if
    /// the kernel did not take all of them: the caller tries again before it sleeps.
    #[inline]
    pub(crate) fn flush(&self) -> bool {
        self.unflushed.load(Ordering::Relaxed) == 0 || self.flush_queued()
    }

    /// Flushes for a caller that does not retry. The ring's worker retries entries that the kernel
    /// refused. This call wakes that worker, which may have gone to sleep while this caller held
    /// the entries. A worker's own flush wakes no worker, or it would never sleep.
    pub(super) fn flush_or_tell(&self) {
        if !self.flush()
            && let Some((shared, place)) = self.home.get()
            && let Some(shared) = shared.upgrade()
        {
            shared.unpark_for_files(*place);
        }
    }

    #[cold]
    fn flush_queued(&self) -> bool {
        for _ in 0..FLUSH_TRIES_MAX {
            match self.enter() {
                Ok(()) => return true,
                // No memory, or no room for completions: taking some completions may help.
                Err(_) => {
                    if self.reap_some() == 0 {
                        std::thread::yield_now();
                    }
                }
            }
        }
        false
    }

    /// Calls io_uring_enter(2) once for everything that is queued, and again if an entry that the
    /// kernel refuses ends its batch.
    ///
    /// A returned error is either transient, or comes from a filter that may apply to this OS
    /// thread alone: the ring's worker tries again. Any other error ends the process, since
    /// operations would never complete.
    fn enter(&self) -> Result<(), Errno> {
        let mut left = self.unflushed.swap(0, Ordering::Relaxed);
        loop {
            match self.submit_queued() {
                // Another caller may have handed over the entries that we claimed.
                Ok(taken) if taken == 0 || taken >= left => {
                    self.outage.is_over("io_uring_enter");
                    return Ok(());
                }
                Ok(taken) => left -= taken,
                Err(error) => match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
                    Errno::INTR => {}
                    error => {
                        match error {
                            Errno::PERM | Errno::ACCESS | Errno::NOSYS => {
                                self.outage.begin("io_uring_enter", error);
                            }
                            _ => self.outage.failed("io_uring_enter", error),
                        }
                        self.unflushed.fetch_add(left.max(1), Ordering::Relaxed);
                        return Err(error);
                    }
                },
            }
        }
    }

    fn submit_queued(&self) -> io::Result<usize> {
        #[cfg(test)]
        if self.refuses.load(Ordering::Relaxed) {
            return Err(Errno::AGAIN.into());
        }
        self.uring.submitter().submit()
    }

    #[cfg(test)]
    pub(super) fn refuse(&self, refuses: bool) {
        self.refuses.store(refuses, Ordering::Relaxed);
    }

    /// Takes at most `REAP_MAX` completions and wakes their waiters. If there are none, it costs
    /// one load while nothing is in flight, and never a system call. Keeps [`fd`](Ring::fd)
    /// readable if more are left.
    #[inline]
    pub(crate) fn reap(&self) -> usize {
        if self.in_flight() == 0 {
            return 0;
        }
        let reaped = self.reap_some();
        // For operations that waited for room or that continue.
        self.flush_or_tell();
        reaped
    }

    fn reap_some(&self) -> usize {
        let mut inner = self.inner.lock();
        let mut completions = std::mem::take(&mut inner.spare);
        let overflown = self.take_completions(&mut inner, &mut completions);
        self.refill(&mut inner);
        let phase = inner.phase;
        drop(inner);
        if overflown {
            // The kernel holds the overflow. An error will appear again at the next flush.
            self.unflushed.fetch_add(1, Ordering::Relaxed);
            let _ = self.enter();
        }
        let reaped = completions.len();
        for (operation, result) in completions.drain(..) {
            let result = match u32::try_from(result) {
                Ok(result) => Ok(result),
                Err(_)
                    if !phase.takes(&*operation) && result == -Errno::CANCELED.raw_os_error() =>
                {
                    operation.fail(super::ended());
                    continue;
                }
                Err(_) => Err(io::Error::from_raw_os_error(-result)),
            };
            operation.completed(result);
        }
        if completions.capacity() > 0 {
            self.inner.lock().spare = completions;
        }
        reaped
    }

    /// Returns true if the kernel holds completions that overflowed.
    fn take_completions(&self, inner: &mut Inner, completions: &mut Vec<Completion>) -> bool {
        // SAFETY: the lock makes this queue's end ours, and `inner` shows that it is held.
        let queue = unsafe { self.uring.completion_shared() };
        let mut finished = 0;
        for entry in queue.take(REAP_MAX) {
            finished += 1;
            if entry.user_data() == CANCEL {
                continue;
            }
            let operation = inner.slots.remove(Key(entry.user_data()));
            let operation = operation.expect("the kernel completes each operation once");
            completions.push((operation, entry.result()));
        }
        self.in_flight.fetch_sub(finished, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { self.uring.submission_shared() }.cq_overflow()
    }

    /// Submits operations that waited for room.
    fn refill(&self, inner: &mut Inner) {
        while inner.waiting > 0
            && let Some(key) = inner.backlog.pop_front()
        {
            if inner.slots.is_submitted(key) != Some(false) {
                continue; // It was cancelled.
            }
            if !self.submit(inner, key) {
                inner.backlog.push_front(key);
                return;
            }
            inner.waiting -= 1;
        }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd()
    }
}
