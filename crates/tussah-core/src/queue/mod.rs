//! The queues in which events wait. None of the queues owns or allocates its items.
//!
//! | queue | contents | added by | taken by |
//! |---|---|---|---|
//! | [`Ring`] | a worker's runnable colors | the worker | the worker one by one, thieves in batches |
//! | [`Inbox`] | posts from others to a worker | any OS thread | any OS thread, all at once |
//! | [`List`] | a color's events | the holder of the color | the holder of the color |
//!
//! All three are first in, first out.

mod inbox;
mod list;
mod ring;

pub(crate) use inbox::Inbox;
pub(crate) use list::List;
pub(crate) use ring::Ring;

use std::ptr::NonNull;

use crate::loom::atomic::AtomicPtr;

/// A node of an intrusive list: it has room for the pointer to the next node.
///
/// # Safety
/// For a live node `link` must return a pointer to an initialized atomic inside the node, always
/// the same one. The pointer must be valid as long as the node, and `link` must access nothing else
/// in the node. Only the list that holds the node may access that atomic.
pub(crate) unsafe trait Link: Sized {
    /// Returns the place of the link inside the node.
    fn link(node: NonNull<Self>) -> NonNull<AtomicPtr<Self>>;
}

/// Returns the link of a node.
///
/// # Safety
/// The node must be alive, and must stay so for `'a`.
#[inline]
unsafe fn link<'a, T: Link>(node: NonNull<T>) -> &'a AtomicPtr<T> {
    // SAFETY: the caller promises that the node is alive, so its link is valid, by the contract of
    // `Link`.
    unsafe { T::link(node).as_ref() }
}

/// A value with cache lines of its own, so that writes to its neighbors do not slow it down. The
/// value takes 128 bytes: x86 prefetches lines in pairs, and some ARM processors have lines of this
/// size.
#[repr(align(128))]
struct Line<T>(T);

/// A node for tests.
#[cfg(test)]
struct TestNode {
    link: AtomicPtr<TestNode>,
    /// The number of the pusher.
    from: usize,
    number: usize,
    /// True while the node is in a queue. It lets a test check that the node is taken once and with
    /// its contents.
    queued: crate::loom::UnsafeCell<bool>,
}

/// The nodes of one pusher in a test. They outlive the test's queues.
#[cfg(test)]
struct TestNodes(Box<[TestNode]>);

// SAFETY: `queued` belongs to the node's holder, first the pusher and then the taker; models check
// it.
#[cfg(test)]
unsafe impl Send for TestNodes {}
// SAFETY: as above.
#[cfg(test)]
unsafe impl Sync for TestNodes {}

// SAFETY: `link` always names the same field, and no test touches it.
#[cfg(test)]
unsafe impl Link for TestNode {
    fn link(node: NonNull<Self>) -> NonNull<AtomicPtr<Self>> {
        // SAFETY: the callers are the lists, which know that the node is alive. This makes no
        // reference.
        unsafe { NonNull::new_unchecked(&raw mut (*node.as_ptr()).link) }
    }
}

#[cfg(test)]
impl TestNodes {
    fn new(from: usize, count: usize) -> Self {
        let node = |number| TestNode {
            link: AtomicPtr::new(std::ptr::null_mut()),
            from,
            number,
            queued: crate::loom::UnsafeCell::new(false),
        };
        Self((0..count).map(node).collect())
    }

    /// Returns a node that is about to be queued.
    fn get(&self, number: usize) -> NonNull<TestNode> {
        let node = &self.0[number];
        // SAFETY: the node is in no queue, and its pusher calls this.
        let queued = node
            .queued
            .with_mut(|queued| unsafe { queued.replace(true) });
        assert!(!queued, "a node is queued twice");
        NonNull::from(node)
    }
}

#[cfg(test)]
impl TestNode {
    /// Takes a node that came out of a queue. Returns its `from` and `number`.
    fn take(node: NonNull<Self>) -> (usize, usize) {
        // SAFETY: its `TestNodes` are alive.
        let node = unsafe { node.as_ref() };
        // SAFETY: the code that takes the node out of a queue is its only user.
        let queued = node
            .queued
            .with_mut(|queued| unsafe { queued.replace(false) });
        assert!(queued, "a node was taken twice");
        (node.from, node.number)
    }
}
