//! The run queue of a worker: a growing ring that its owner fills and empties, and from which
//! thieves steal.
//!
//! The owner pushes at the tail. Both the owner and thieves take at the head: the owner one item, a
//! thief up to half of the ring. It has the shape of the deque of Chase and Lev ("Dynamic Circular
//! Work-Stealing Deque", SPAA 2005) with steal-half (Hendler and Shavit, "Non-Blocking Steal-Half
//! Work Queues", PODC 2002). Here, however, the owner works at both ends, because colors are served
//! in order. That makes it simpler: every taker uses the same compare-and-swap of the head.
//!
//! `head` and `tail` count the items ever taken and ever pushed. They are 64 bits wide and only
//! grow, so there is no ABA. The item with index `i` is in slot `i mod capacity`. Only the owner
//! writes `tail`, `buffer` and slots.
//!
//! When the ring is full, the owner copies its items to a buffer of twice the size. The old buffer
//! stays until the ring is dropped, since a thief may be reading it. The total size of all old
//! buffers is less than the size of the new one.
//!
//! # Why it is right
//!
//! *A thief's steps*, in this order: it reads `head`, giving `h`; `tail`, giving `t` (Acquire);
//! `buffer` (Acquire); the slots of `n ≤ t − h` items from `h` on. Then it exchanges `head` from
//! `h` to `h + n` (Release). If that fails, it discards what it has read.
//!
//! **(a) No item is lost or taken twice.** `head` changes only by compare-and-swap, from some `h`
//! to some `h + n`. So the successful exchanges cut the indices into successive ranges, and each
//! index is in one range. No range extends past the tail: a thief has read `t ≥ h + n` from it, and
//! the owner knows its own tail. The owner overwrites the slot of `i` only when `make_room` has
//! read a head above `i` (`limit` is a head that it has read, plus the capacity).
//!
//! **(b) A thief whose exchange succeeds has read the right items.** First a lemma: *the thief has
//! read nothing that the owner wrote after `make_room` had read a head above `h`.* The exchange
//! from `h` is the first step of `head` above `h`, so a head above `h` is the value of this
//! exchange or of a later one. All later exchanges are read-modify-writes, too. They are therefore
//! in the release sequence of the exchange, and `make_room` reads with Acquire. So the thief's
//! reads, which come before its exchange, happen before everything that the owner writes after such
//! a read, and cannot return those writes. The consequences:
//!
//! - The slot of an item `i`, `h ≤ i < h + n`, has not been overwritten in any buffer: that
//!   requires a head above `i`, and `i ≥ h`. If the slot ever held the item, it still holds it.
//! - It held the item, whichever buffer the thief has read. Since `tail` was read first, with
//!   Acquire, this is the buffer that was current when `t` was stored, or a newer one. The buffer
//!   that was current when the item was pushed received the item itself. Each buffer that was made
//!   later received a copy. Growing copies everything from a head on that the owner has read, and
//!   by the lemma this head was at most `h`.
//! - The thief sees the item, and not an older value of the slot. If the buffer is older than the
//!   store of `t`, it had the item by then (Release store of `tail`). If it is newer, it had the
//!   item before it became current (Release store of `buffer`).
//! - The contents behind the pointer were written before the push, and `t` was stored after it.
//!
//! After it has grown, the owner writes only to the new buffer. So a thief that still reads an old
//! buffer finds the old values in it as long as the ring lives.
//!
//! **(c) First in, first out.** Items receive their indices in the order in which they are pushed,
//! and by (a), indices are taken in order. A thief hands out its range in order.
//!
//! **The owner's own takes** need no ordering. It reads slots that it has written itself, and its
//! exchange continues the release sequences of the thieves' exchanges. By (a), it cannot take an
//! item that a thief takes.
//!
//! The loom models in `ring/loom_tests.rs` fail if an ordering on the way from the owner to a thief
//! is weakened. They cannot fail for the opposite direction, from a thief's exchange to
//! `make_room`. That ordering prevents a load from taking effect after a later store to another
//! location, and loom executes loads in program order. Only the lemma shows that this direction is
//! correct.

use std::ptr::{self, NonNull};

use super::Line;
use crate::loom::UnsafeCell;
use crate::loom::atomic::{AtomicPtr, AtomicU64, Ordering};

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;

/// Slots of a new ring: 2 KiB, enough that a lightly loaded worker never grows it. The number is
/// small in models, which grow the ring.
const CAPACITY_START: usize = if cfg!(loom) { 2 } else { 256 };

/// Bound, in slots: the length of a worker's run queue, 2 GiB of pointers; adding one more item
/// panics. Each pointer leads to a live color or thread, which takes many times that memory.
const CAPACITY_MAX: usize = 1 << 28;

/// The maximum number of items that one steal takes. Moving more items would cost more than the
/// steal itself, and the batch is on the thief's stack.
const STEAL_MAX: usize = 128;

/// After this many lost races for one victim, its queue is being served well, and the thief looks
/// elsewhere.
const STEAL_ATTEMPTS: usize = if cfg!(loom) { 2 } else { 4 };

/// A worker's run queue of pointers. The module's documentation explains the algorithm.
///
/// It does not own what the items point to: dropping the ring forgets them.
pub(crate) struct Ring<T> {
    /// Index of the next item to be taken: the number of items ever taken.
    head: Line<AtomicU64>,
    tail: Line<Tail<T>>,
}

/// The part that the owner writes.
struct Tail<T> {
    /// Index of the next item to be pushed: the number of items ever pushed.
    next: AtomicU64,
    /// The current buffer, for thieves.
    buffer: AtomicPtr<Buffer<T>>,
    owner: UnsafeCell<Owner<T>>,
}

/// The part that only the owner uses, so that a push reads neither the head nor the buffer.
struct Owner<T> {
    /// The current buffer.
    buffer: *mut Buffer<T>,
    /// The slots of the current buffer.
    slots: *const AtomicPtr<T>,
    /// The capacity of the current buffer minus one.
    mask: usize,
    /// The first index for which there may be no room: a head read earlier, plus the capacity.
    limit: u64,
}

struct Buffer<T> {
    /// The number of slots is a power of two.
    slots: Box<[AtomicPtr<T>]>,
    /// The previous buffer; null in the first buffer.
    older: *mut Buffer<T>,
}

// SAFETY: a ring holds pointers and never follows them. The pusher of an item agrees that another
// OS thread may take it. Only `push` and `pop`, which their callers never call at the same time,
// and `drop` use `owner`.
unsafe impl<T> Send for Ring<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Ring<T> {}

impl<T> Ring<T> {
    pub(crate) fn new() -> Self {
        Self::with_capacity(CAPACITY_START)
    }

    fn with_capacity(capacity: usize) -> Self {
        assert!(
            capacity.is_power_of_two(),
            "the capacity of a ring is a power of two"
        );
        let owner = Owner::new(Buffer::new(capacity, ptr::null_mut()), 0);
        let buffer = AtomicPtr::new(owner.buffer);
        let tail = Tail {
            next: AtomicU64::new(0),
            buffer,
            owner: UnsafeCell::new(owner),
        };
        Self {
            head: Line(AtomicU64::new(0)),
            tail: Line(tail),
        }
    }

    /// Returns the number of items at some moment during the call. While other OS threads push and
    /// take, the result may also be slightly higher.
    ///
    /// Relaxed: a caller that must not miss an item, for example before it sleeps, needs its own
    /// fence before the call. An item that was pushed earlier is then counted, unless it was taken.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        let head = self.head();
        let tail = self.tail.0.next.load(Ordering::Relaxed);
        tail.saturating_sub(head) as usize
    }

    /// Returns whether there is no item, with the same limitations as [`len`](Self::len).
    #[inline]
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of items ever taken. If it does not change while the ring is not empty,
    /// the owner makes no progress.
    #[inline]
    pub(crate) fn head(&self) -> u64 {
        self.head.0.load(Ordering::Relaxed)
    }

    /// Queues an item behind all other items.
    ///
    /// # Panics
    /// Panics if the ring has grown to its bound and is full. In that case nothing has changed.
    ///
    /// # Safety
    /// The caller must be the owner: the only OS thread that calls `push` and `pop` on this ring,
    /// or the OS thread that took over this role. In the second case, the former owner's last call
    /// must happen before. It must be sound to pass the item to any OS thread that steals.
    #[inline]
    pub(crate) unsafe fn push(&self, item: NonNull<T>) {
        // Only this OS thread writes the tail, so Relaxed reads the newest value.
        let tail = self.tail.0.next.load(Ordering::Relaxed);
        self.tail.0.owner.with_mut(|owner| {
            // SAFETY: the caller is the owner, this part has no other user, and nothing below calls
            // this function again.
            let owner = unsafe { &mut *owner };
            if tail == owner.limit {
                self.make_room(owner, tail);
            }
            // Relaxed: published by the store of the tail.
            owner.slot(tail).store(item.as_ptr(), Ordering::Relaxed);
        });
        // Release pairs with the Acquire in `steal`: it publishes the slot, its buffer, and the
        // target of the item.
        self.tail.0.next.store(tail + 1, Ordering::Release);
    }

    /// Takes the oldest item.
    ///
    /// # Safety
    /// The caller must be the owner, as for [`push`](Self::push).
    #[inline]
    pub(crate) unsafe fn pop(&self) -> Option<NonNull<T>> {
        // Only this OS thread writes the tail, so Relaxed reads the newest value.
        let tail = self.tail.0.next.load(Ordering::Relaxed);
        let mut head = self.head.0.load(Ordering::Relaxed);
        // The head that was read may be old, and the exchange then fails, but it is never above the
        // tail.
        while head != tail {
            // SAFETY: the caller is the owner, and this part has no other user.
            let item = self
                .tail
                .0
                .owner
                .with(|owner| unsafe { &*owner }.slot(head).load(Ordering::Relaxed));
            // Relaxed: see "the owner's own takes" above.
            let taken =
                self.head
                    .0
                    .compare_exchange(head, head + 1, Ordering::Relaxed, Ordering::Relaxed);
            match taken {
                // SAFETY: the item is between head and tail, and `push` puts only non-null pointers
                // there.
                Ok(_) => return Some(unsafe { non_null(item) }),
                Err(now) => head = now,
            }
        }
        None
    }

    /// Takes up to `max` of the oldest items, but at most half of the ring, rounded up, and at most
    /// [`STEAL_MAX`]. Calls `out` with each item, oldest first. Any OS thread may call this, and
    /// `out` may use rings, including this one.
    ///
    /// Returns the number of items. Zero means that `max` is 0, that the ring was empty, or that
    /// every attempt lost its race. If `out` panics, the remaining items are forgotten.
    pub(crate) fn steal(&self, max: usize, mut out: impl FnMut(NonNull<T>)) -> usize {
        let max = max.min(STEAL_MAX);
        let mut batch = [ptr::null_mut(); STEAL_MAX];
        // Relaxed: an old head makes the exchange fail, but has no other effect.
        let mut head = self.head.0.load(Ordering::Relaxed);
        for _ in 0..STEAL_ATTEMPTS {
            // Acquire pairs with the Release in `push`.
            let tail = self.tail.0.next.load(Ordering::Acquire);
            // The tail may be older than the head.
            let len = tail.saturating_sub(head) as usize;
            let batch = &mut batch[..max.min(len.div_ceil(2))];
            if batch.is_empty() {
                return 0;
            }
            // This comes after the tail, so that the buffer is no older. Acquire pairs with the
            // Release in `grow`.
            let buffer = self.tail.0.buffer.load(Ordering::Acquire);
            // SAFETY: buffers live as long as the ring.
            let slots = unsafe { &(*buffer).slots };
            for (item, index) in batch.iter_mut().zip(head..) {
                // Relaxed: the value counts only if the exchange succeeds; see (b) above.
                *item = slots[index as usize & (slots.len() - 1)].load(Ordering::Relaxed);
            }
            let next = head + batch.len() as u64;
            // Release pairs with the Acquire in `make_room`: the slots have been read before they
            // are overwritten.
            match self
                .head
                .0
                .compare_exchange(head, next, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => {
                    for &mut item in &mut *batch {
                        // SAFETY: by (b), this is an item, and `push` takes only non-null pointers.
                        out(unsafe { non_null(item) });
                    }
                    return batch.len();
                }
                Err(now) => head = now,
            }
        }
        0
    }

    /// Makes room for the item with index `tail`.
    #[cold]
    fn make_room(&self, owner: &mut Owner<T>, tail: u64) {
        // Acquire pairs with the Release in `steal`: thieves have finished reading the slots that
        // are free now.
        let head = self.head.0.load(Ordering::Acquire);
        owner.limit = head + (owner.mask + 1) as u64;
        if owner.limit == tail {
            self.grow(owner, head, tail);
        }
    }

    /// Moves all items to a buffer of twice the size.
    fn grow(&self, owner: &mut Owner<T>, head: u64, tail: u64) {
        let capacity = owner.mask + 1;
        assert!(
            capacity < CAPACITY_MAX,
            "more than {CAPACITY_MAX} items in the run queue of one worker"
        );
        let new = Owner::new(Buffer::new(capacity * 2, owner.buffer), head);
        for index in head..tail {
            new.slot(index)
                .store(owner.slot(index).load(Ordering::Relaxed), Ordering::Relaxed);
        }
        *owner = new;
        // Release pairs with the Acquire in `steal`: it publishes the buffer and its copied items.
        self.tail.0.buffer.store(owner.buffer, Ordering::Release);
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: the ring no longer has any other user.
        let mut buffer = self
            .tail
            .0
            .owner
            .with_mut(|owner| unsafe { (*owner).buffer });
        while !buffer.is_null() {
            // SAFETY: `Buffer::new` made each buffer, and this loop reaches each of them once.
            buffer = unsafe { Box::from_raw(buffer) }.older;
        }
    }
}

impl<T> Owner<T> {
    /// Creates the owner's part for a new buffer and a head that was read.
    fn new(buffer: Box<Buffer<T>>, head: u64) -> Self {
        let capacity = buffer.slots.len();
        let slots = buffer.slots.as_ptr();
        Self {
            buffer: Box::into_raw(buffer),
            slots,
            mask: capacity - 1,
            limit: head + capacity as u64,
        }
    }

    #[inline]
    fn slot(&self, index: u64) -> &AtomicPtr<T> {
        // SAFETY: `mask` is the number of slots minus one, and `slots` lives as long as the ring.
        unsafe { &*self.slots.add(index as usize & self.mask) }
    }
}

impl<T> Buffer<T> {
    fn new(capacity: usize, older: *mut Self) -> Box<Self> {
        let slots = (0..capacity)
            .map(|_| AtomicPtr::new(ptr::null_mut()))
            .collect();
        Box::new(Self { slots, older })
    }
}

/// # Safety
/// The pointer must be an item that was pushed.
#[inline]
unsafe fn non_null<T>(item: *mut T) -> NonNull<T> {
    if cfg!(any(loom, debug_assertions)) {
        assert!(
            !item.is_null(),
            "a slot was taken that nothing was pushed to"
        );
    }
    // SAFETY: `push` takes only non-null pointers.
    unsafe { NonNull::new_unchecked(item) }
}
