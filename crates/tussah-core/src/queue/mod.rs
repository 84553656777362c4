//! The queues that events wait in. None of them owns or allocates what it holds.
//!
//! | queue | of | puts | takes |
//! |---|---|---|---|
//! | [`Ring`] | a worker: what is runnable | the worker | the worker one by one, thieves in batches |
//! | [`Inbox`] | a worker: what others post to it | anyone | anyone, all at once |
//! | [`List`] | a color: its events | whoever has the color | whoever has the color |
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

/// A node of an intrusive list: it has room for the pointer to the next one.
///
/// # Safety
/// For a live node `link` returns a pointer to an initialised atomic inside of it, always the same one, that is
/// valid for as long as the node, and does not touch the node otherwise. Nobody but the list that holds the node
/// accesses that atomic.
pub(crate) unsafe trait Link: Sized {
    /// The place of the link inside of the node.
    fn link(node: NonNull<Self>) -> NonNull<AtomicPtr<Self>>;
}

/// The link of a node.
///
/// # Safety
/// The node is alive, and stays so for `'a`.
#[inline]
unsafe fn link<'a, T: Link>(node: NonNull<T>) -> &'a AtomicPtr<T> {
    // SAFETY: the node is alive as the caller says, and so its link is valid, by the contract of `Link`.
    unsafe { T::link(node).as_ref() }
}

/// A value that has its cache lines to itself, so that who writes its neighbours does not slow it down. 128 bytes:
/// x86 prefetches lines in pairs, and some ARM processors have lines of this size.
#[repr(align(128))]
struct Line<T>(T);

/// What the tests queue.
#[cfg(test)]
struct TestNode {
    link: AtomicPtr<TestNode>,
    /// Who pushes the node.
    from: usize,
    number: usize,
    /// True as long as the node is in a queue. So a test sees whether it is taken once and with its content.
    queued: crate::loom::UnsafeCell<bool>,
}

/// The nodes of one test that one pusher pushes. They outlive the test's queues.
#[cfg(test)]
struct TestNodes(Box<[TestNode]>);

// SAFETY: `queued` belongs to whoever has the node, first the pusher and then the taker; models check it.
#[cfg(test)]
unsafe impl Send for TestNodes {}
// SAFETY: as above.
#[cfg(test)]
unsafe impl Sync for TestNodes {}

// SAFETY: `link` names the same field always, and no test touches it.
#[cfg(test)]
unsafe impl Link for TestNode {
    fn link(node: NonNull<Self>) -> NonNull<AtomicPtr<Self>> {
        // SAFETY: the callers are the lists, which know the node to be alive; no reference is made.
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

    /// A node that is about to be queued.
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
    /// Takes a node that came out of a queue; its `from` and `number`.
    fn take(node: NonNull<Self>) -> (usize, usize) {
        // SAFETY: its `TestNodes` are alive.
        let node = unsafe { node.as_ref() };
        // SAFETY: whoever takes the node out of a queue is the only one to use it.
        let queued = node
            .queued
            .with_mut(|queued| unsafe { queued.replace(false) });
        assert!(queued, "a node was taken twice");
        (node.from, node.number)
    }
}
