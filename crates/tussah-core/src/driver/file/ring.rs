//! One io_uring behind a short lock, with the operations that the kernel has of it.
//!
//! The states of an operation's slot, and who may take it out:
//!
//! | state | where it is | leaves by |
//! |---|---|---|
//! | waiting | the backlog: the kernel has never seen it | the room that a completion makes; `cancel`; `close` |
//! | submitted | the submission queue, or the kernel | the kernel's completion, and nothing else |
//!
//! The lock covers both ends of both queues that are shared with the kernel, the slots and the backlog. `io_uring_enter` is called
//! without it, unless the submission queue is full: the kernel takes what is below the tail, whoever asks. Nothing of the
//! user's runs under the lock, and no other lock is taken under it.

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

/// Bound, in operations: the submission queue of a ring; a flush hands over as many at once, and a full queue is flushed.
const SUBMISSIONS_MAX: u32 = 256;

/// Bound, in operations: as many of a ring may be with the kernel, also of those that wait for somebody else, such as reads of a
/// terminal; some 32 MiB of its memory. Further ones wait in the backlog.
const IN_FLIGHT_MAX: usize = 65_536;

/// Bound, in completions: the completion queue of a ring; what has no room for the moment the kernel keeps.
const COMPLETIONS_MAX: u32 = 4096;

/// Bound, in OS threads of the kernel: as many of what one OS thread submits may block at once; opens of FIFOs do for as long as nobody
/// has the other end. The kernel's own bound, four a processor, is for what a disk does.
const BLOCKED_MAX: u32 = 256;

/// Bound, in completions: as many are taken by one `reap`, so that a worker comes back to its colors.
const REAP_MAX: usize = 256;

/// Bound, in tries: how often a flush asks again if the kernel is short of memory or of room for completions.
const FLUSH_TRIES_MAX: usize = 8;

/// The user data of a request to cancel, whose own completion nobody waits for.
const CANCEL: u64 = u64::MAX;

/// How large a ring is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Entries of the submission queue.
    pub(crate) submissions: u32,
    /// Entries of the completion queue.
    pub(crate) completions: u32,
    /// Operations that the kernel may have at once.
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

/// Makes an io_uring that may be used by any OS thread.
///
/// # Errors
/// What io_uring_setup(2) or mmap(2) said.
pub(super) fn make(size: Size) -> io::Result<IoUring> {
    let uring = IoUring::builder()
        .dontfork()
        .setup_clamp()
        .setup_cqsize(size.completions)
        .build(size.submissions)?;
    // Zero leaves the other bound, for what is no file on a disk, as it is. A kernel without this keeps both.
    let _ = uring
        .submitter()
        .register_iowq_max_workers(&mut [BLOCKED_MAX, 0]);
    Ok(uring)
}

/// An io_uring that any OS thread may push to, flush and reap.
pub(crate) struct Ring {
    uring: IoUring,
    inner: Mutex<Inner>,
    /// Entries that were pushed and that no flush has taken on itself.
    unflushed: AtomicUsize,
    /// Entries whose completion has not been taken: operations that the kernel has or that are on the way to it, and requests
    /// to cancel some.
    in_flight: AtomicUsize,
    in_flight_max: usize,
    outage: Outage,
    /// The kernel takes nothing, as if it had no memory.
    #[cfg(test)]
    refuses: std::sync::atomic::AtomicBool,
    /// The runtime and the place that it belongs to. A ring by itself has none.
    home: OnceLock<(Weak<Shared>, usize)>,
}

struct Inner {
    slots: Slots,
    /// Operations that wait for room, oldest first; those that were cancelled meanwhile have left their slot.
    backlog: VecDeque<Key>,
    /// Operations in the backlog that have not been cancelled.
    waiting: usize,
    phase: Phase,
    /// An empty list with room for what `reap` takes, unless somebody uses it.
    spare: Vec<Completion>,
}

/// What the kernel said of an operation.
type Completion = (Arc<dyn Operate>, i32);

impl Ring {
    /// Makes a ring.
    ///
    /// # Errors
    /// As [`make`].
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

    /// Says whose ring this is, before anybody uses it.
    pub(super) fn set_home(&self, shared: Weak<Shared>, place: usize) {
        let set = self.home.set((shared, place));
        assert!(set.is_ok(), "a ring is made for one place");
    }

    /// What is readable when something has completed.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.uring.as_fd()
    }

    /// Operations that the kernel has or that are on the way to it, and requests to cancel some; without what is in the backlog.
    #[inline]
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Takes an operation. Whoever pushes from outside of the ring's worker flushes too.
    ///
    /// # Errors
    /// Gives it back if the ring is closed to it.
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

    /// Hands an operation to the kernel's queue if there is room.
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

    /// Puts an entry into the submission queue, which is flushed if it is full.
    fn queue(&self, _locked: &mut Inner, entry: &squeue::Entry) -> bool {
        for _ in 0..2 {
            // SAFETY: the queue's end is ours while the lock is held, which `_locked` shows. What the entry points at belongs to
            // the operation in its slot, which leaves that only by its completion (the table above; tested by
            // `the_kernel_keeps_what_a_dropped_future_has_left` and by `Slots`).
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

    /// Asks the kernel to give an operation up, or takes it out of the backlog. What the kernel has ends with a completion all the same.
    pub(super) fn cancel(&self, key: Key) {
        let mut inner = self.inner.lock();
        match inner.slots.is_submitted(key) {
            None => {}
            Some(true) => {
                let entry = opcode::AsyncCancel::new(key.0).build().user_data(CANCEL);
                // Without room it is not cancelled, and ends when it ends.
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
                // What it owns is the user's.
                drop(operation);
            }
        }
    }

    /// Hands over all that is queued. Costs a load if there is nothing. False if the kernel did not take all of it: the caller
    /// tries again before it sleeps.
    #[inline]
    pub(crate) fn flush(&self) -> bool {
        self.unflushed.load(Ordering::Relaxed) == 0 || self.flush_queued()
    }

    /// The same for who does not try again: what the kernel did not take is left to the worker that flushes this ring before it
    /// sleeps. It may be asleep, with nothing to flush as far as it could see while somebody else tried, and is told; unless it
    /// is the caller, who would never sleep.
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
                // No memory, or no room for completions: taking some may help.
                Err(_) => {
                    if self.reap_some() == 0 {
                        std::thread::yield_now();
                    }
                }
            }
        }
        false
    }

    /// One io_uring_enter(2) for all that is queued; more if the kernel refuses an entry, which ends its batch.
    ///
    /// An error is one that passes, or a filter's, which may hold for this OS thread alone: the ring's worker tries again. Any other
    /// ends the process: what was queued, and what the kernel has, would never complete.
    fn enter(&self) -> Result<(), Errno> {
        let mut left = self.unflushed.swap(0, Ordering::Relaxed);
        loop {
            match self.submit_queued() {
                // Somebody else may have handed over what we took on ourselves.
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

    /// Takes completions and wakes who waits for them; at most `REAP_MAX`. Costs a load if nothing is under way, and no system
    /// call if nothing has completed.
    ///
    /// More may be left: [`fd`](Ring::fd) is readable then.
    #[inline]
    pub(crate) fn reap(&self) -> usize {
        if self.in_flight() == 0 {
            return 0;
        }
        let reaped = self.reap_some();
        // Operations that had waited for room, or go on.
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
            // The kernel holds back what had no room; an error shows again with the next flush.
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

    /// True if the kernel has more for which there was no room.
    fn take_completions(&self, inner: &mut Inner, completions: &mut Vec<Completion>) -> bool {
        // SAFETY: the queue's end is ours while the lock is held, which `inner` shows.
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

    /// Submits what has waited for room.
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
