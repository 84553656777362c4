//! The intrusive, doubly linked, first-in-first-out list of waiters.
//!
//! A node is inside the future that waits; the list owns nothing. Both are plain data: the user
//! keeps the list in a lock and the nodes pinned. All of the unsafe code here depends on three
//! rules, which the user of the list keeps:
//!
//! 1. *The lock*: from the moment at which a node is linked, every access to its fields is under
//!    the lock of its list. The owner may access them without the lock again once it has seen,
//!    under the lock, that the node is no longer linked.
//! 2. *The pin*: a linked node is neither moved nor freed. The owner unlinks it in its destructor.
//!    A pinned value that is leaked (`mem::forget` of a `Pin<Box<_>>`) is never dropped, and then
//!    `Pin` guarantees that its memory is not reused. The node stays linked, its waker may be
//!    called in vain, and no pointer dangles.
//! 3. *No foreign code*: nothing here clones, calls or drops a waker. Wakers are returned and
//!    called after the lock has been released.
//!
//! A list that is emptied all at once is detached: its nodes then form a ring with a node of the
//! code that detached them. Unlinking from a ring accesses neither end of a list, so a node need
//! not know where it is linked.

use std::ptr::{self, NonNull};

use crate::{loom::UnsafeCell, tiny_waker::TinyWaker};

/// A place in a list, with the waker of its waiter.
#[derive(Debug)]
#[repr(align(8))]
pub(super) struct Node(UnsafeCell<Fields>);

#[derive(Debug)]
struct Fields {
    /// Linked: the previous node, or null at the head. Unlinked: an address for the owner's use.
    prev: *const Node,
    /// Linked: the next node, or null at the tail. Notified: one of the two marks below.
    next: *const Node,
    waker: TinyWaker,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Node>() == 24);

/// No node has these addresses, because the smallest address with a node's alignment is 8.
const MARK_ONE: *const Node = ptr::without_provenance(1);
const MARK_ALL: *const Node = ptr::without_provenance(2);

/// The notification of a node that was unlinked by a notifier, not by its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notification {
    /// From `notify_one`; a waiter has to consume it.
    One,
    /// From `notify_waiters`, which goes to all waiters and need not be consumed.
    All,
}

impl Notification {
    fn mark(self) -> *const Node {
        match self {
            Self::One => MARK_ONE,
            Self::All => MARK_ALL,
        }
    }
}

impl Node {
    /// Creates a node that is not linked and carries `stamp` for its owner.
    #[inline]
    pub(super) fn new(stamp: usize) -> Self {
        let fields = Fields {
            prev: ptr::without_provenance(stamp),
            next: ptr::null(),
            waker: TinyWaker::NONE,
        };
        Self(UnsafeCell::new(fields))
    }

    /// Returns the stamp given to [`new`](Self::new).
    ///
    /// # Safety
    /// The node must never have been linked.
    #[inline]
    pub(super) unsafe fn stamp(&self) -> usize {
        // SAFETY: rule 1: the node has not been linked yet, so it belongs to its owner alone.
        self.0.with(|fields| unsafe { (*fields).prev.addr() })
    }

    /// Returns the node's notification; `None` as long as it is linked.
    ///
    /// # Safety
    /// The caller must hold the lock of the list to which the node was linked.
    #[inline]
    pub(super) unsafe fn notification(&self) -> Option<Notification> {
        // SAFETY: rule 1: the caller holds the lock.
        let next = self.0.with(|fields| unsafe { (*fields).next });
        if ptr::eq(next, MARK_ONE) {
            Some(Notification::One)
        } else if ptr::eq(next, MARK_ALL) {
            Some(Notification::All)
        } else {
            None
        }
    }

    /// Returns whether the node's waker wakes the same thread as `waker`.
    ///
    /// # Safety
    /// The caller must hold the lock of the list to which the node was linked.
    #[inline]
    pub(super) unsafe fn will_wake(&self, waker: &std::task::Waker) -> bool {
        // SAFETY: rule 1: the caller holds the lock.
        self.0
            .with(|fields| unsafe { (*fields).waker.will_wake(waker) })
    }

    /// Replaces the waker. Returns the old one, to be dropped after the lock has been released.
    ///
    /// # Safety
    /// The caller must hold the lock of the list to which the node is linked.
    #[inline]
    pub(super) unsafe fn replace_waker(&self, waker: TinyWaker) -> TinyWaker {
        // SAFETY: rule 1: the caller holds the lock.
        self.0
            .with_mut(|fields| unsafe { std::mem::replace(&mut (*fields).waker, waker) })
    }

    /// # Safety
    /// The caller must hold the lock of the list to which the node is, or is about to be, linked.
    #[inline]
    unsafe fn set_prev(&self, prev: *const Node) {
        // SAFETY: rule 1: the caller holds the lock.
        self.0.with_mut(|fields| unsafe { (*fields).prev = prev });
    }

    /// # Safety
    /// The caller must hold the lock of the list to which the node is, or is about to be, linked.
    #[inline]
    unsafe fn set_next(&self, next: *const Node) {
        // SAFETY: rule 1: the caller holds the lock.
        self.0.with_mut(|fields| unsafe { (*fields).next = next });
    }

    /// # Safety
    /// The caller must hold the lock of the list to which the node is linked.
    #[inline]
    unsafe fn links(&self) -> (*const Node, *const Node) {
        // SAFETY: rule 1: the caller holds the lock.
        self.0
            .with(|fields| unsafe { ((*fields).prev, (*fields).next) })
    }
}

/// The two ends of a list; null if it is empty.
#[derive(Debug)]
pub(super) struct WaitList {
    head: *const Node,
    tail: *const Node,
}

// SAFETY: rule 1: the nodes at the ends are accessed only under the lock that contains the list,
// whichever OS thread holds it; the wakers in the nodes are `Send`.
unsafe impl Send for WaitList {}

impl WaitList {
    pub(super) const fn new() -> Self {
        Self {
            head: ptr::null(),
            tail: ptr::null(),
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// Links a node at the tail.
    ///
    /// # Safety
    /// The node must never have been linked, and must be pinned (rule 2). `self` must be in its
    /// lock.
    pub(super) unsafe fn push_back(&mut self, node: &Node, waker: TinyWaker) {
        // SAFETY: rule 1 for `node`, which no other code knows yet; rules 1 and 2 for the tail,
        // which is linked.
        unsafe {
            node.set_prev(self.tail);
            node.set_next(ptr::null());
            drop(node.replace_waker(waker));
            match self.tail.as_ref() {
                None => self.head = node,
                Some(tail) => tail.set_next(node),
            }
        }
        self.tail = node;
    }

    /// Unlinks a node from this list, or from a ring that was detached from it, and returns its
    /// waker.
    ///
    /// # Safety
    /// The node must be linked to this list or to such a ring. `self` must be in its lock.
    pub(super) unsafe fn remove(&mut self, node: &Node) -> TinyWaker {
        // SAFETY: rules 1 and 2 for `node` and its neighbors, which are linked to it.
        unsafe {
            let (prev, next) = node.links();
            match prev.as_ref() {
                None => self.head = next,
                Some(prev) => prev.set_next(next),
            }
            match next.as_ref() {
                None => self.tail = prev,
                Some(next) => next.set_prev(prev),
            }
            node.replace_waker(TinyWaker::NONE)
        }
    }

    /// Unlinks the node at the head, records its notification and returns its waker; `None` if the
    /// list is empty.
    ///
    /// # Safety
    /// `self` must be in its lock.
    pub(super) unsafe fn pop_front(&mut self, given: Notification) -> Option<TinyWaker> {
        let head = NonNull::new(self.head.cast_mut())?;
        // SAFETY: rules 1 and 2: the head is linked to this list.
        unsafe {
            let waker = self.remove(head.as_ref());
            head.as_ref().set_next(given.mark());
            Some(waker)
        }
    }

    /// Moves all nodes into a ring with `ring`, in their order; afterwards this list is empty.
    ///
    /// # Safety
    /// `ring` must never have been linked, and must be pinned until [`pop_ring`](Self::pop_ring)
    /// has returned `None`. `self` must be in its lock.
    pub(super) unsafe fn detach(&mut self, ring: &Node) {
        let list = std::mem::replace(self, Self::new());
        // SAFETY: rule 1 for `ring`, which no other code knows yet; rules 1 and 2 for the two ends,
        // which are linked.
        unsafe {
            match (list.head.as_ref(), list.tail.as_ref()) {
                (Some(head), Some(tail)) => {
                    ring.set_next(head);
                    ring.set_prev(tail);
                    head.set_prev(ring);
                    tail.set_next(ring);
                }
                _ => {
                    ring.set_next(ring);
                    ring.set_prev(ring);
                }
            }
        }
    }

    /// Like [`pop_front`](Self::pop_front), from a ring that was detached from this list.
    ///
    /// # Safety
    /// `ring` must have been given to [`detach`](Self::detach) of this list. `self` must be in its
    /// lock.
    pub(super) unsafe fn pop_ring(
        &mut self,
        ring: &Node,
        given: Notification,
    ) -> Option<TinyWaker> {
        // SAFETY: rules 1 and 2: the ring's node and its successor are linked.
        unsafe {
            let (_, first) = ring.links();
            if ptr::eq(first, ring) {
                return None;
            }
            let first = first.as_ref()?;
            let waker = self.remove(first);
            first.set_next(given.mark());
            Some(waker)
        }
    }
}
