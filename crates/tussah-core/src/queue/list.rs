//! An intrusive first-in first-out list with one owner.

use std::ptr::{self, NonNull};

use super::{Chain, Link, link};
use crate::loom::atomic::Ordering;

/// The queue of a color: nodes, oldest first.
///
/// It does not own its nodes: what is in it when it is dropped is forgotten. It has no bound of its own; a node is in
/// it at most once, so the number of live nodes bounds it.
pub(crate) struct List<T> {
    /// The oldest node, from which following the links leads to the newest. Means nothing if `len` is 0.
    first: *mut T,
    /// The newest node, whose own link means nothing. Means nothing if `len` is 0.
    last: *mut T,
    len: usize,
}

impl<T: Link> List<T> {
    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            first: ptr::null_mut(),
            last: ptr::null_mut(),
            len: 0,
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Queues a node behind all others.
    ///
    /// # Safety
    /// The node is alive and in no list, and the caller leaves it to this one until it is popped.
    #[inline]
    pub(crate) unsafe fn push_back(&mut self, node: NonNull<T>) {
        // SAFETY: a chain of one, as the caller says.
        unsafe { self.append_nodes(node, node, 1) }
    }

    /// Takes the oldest node.
    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<NonNull<T>> {
        if self.len == 0 {
            return None;
        }
        self.len -= 1;
        // SAFETY: the list is not empty, so `first` is one of its nodes: these are alive and the list's until now, as
        // the callers of `append_nodes` said. The link of the last node is read too, but the result is not used.
        unsafe {
            let node = NonNull::new_unchecked(self.first);
            self.first = link(node).load(Ordering::Relaxed);
            Some(node)
        }
    }

    /// Queues the rest of a chain behind all others, in the order of the chain.
    #[inline]
    pub(crate) fn append(&mut self, chain: Chain<T>) {
        if let Some((first, last, len)) = chain.into_parts() {
            // SAFETY: the nodes of a chain are alive, linked and its own, and are the list's from now on.
            unsafe { self.append_nodes(first, last, len) }
        }
    }

    /// # Safety
    /// Following the links leads over `len` nodes from `first` to `last`. They are alive and in no list, and the
    /// caller leaves them to this one until they are popped.
    #[inline]
    unsafe fn append_nodes(&mut self, first: NonNull<T>, last: NonNull<T>, len: usize) {
        if self.len == 0 {
            self.first = first.as_ptr();
        } else {
            // SAFETY: the list is not empty, so `last` is one of its nodes; as in `pop_front`.
            unsafe { link(NonNull::new_unchecked(self.last)) }
                .store(first.as_ptr(), Ordering::Relaxed);
        }
        self.last = last.as_ptr();
        self.len += len;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::{Inbox, TestNode, TestNodes};
    use super::*;

    fn push(list: &mut List<TestNode>, nodes: &TestNodes, number: usize) {
        // SAFETY: `get` checks that the node is in no list, and the nodes outlive the list.
        unsafe { list.push_back(nodes.get(number)) }
    }

    fn drain(list: &mut List<TestNode>) -> Vec<usize> {
        std::iter::from_fn(|| list.pop_front())
            .map(|node| TestNode::take(node).1)
            .collect()
    }

    #[test]
    fn first_in_first_out() {
        let nodes = TestNodes::new(0, 5);
        let mut list = List::new();
        assert!(list.is_empty() && list.pop_front().is_none());
        for number in 0..3 {
            push(&mut list, &nodes, number);
        }
        assert_eq!(list.len(), 3);
        assert_eq!(list.pop_front().map(TestNode::take), Some((0, 0)));
        push(&mut list, &nodes, 3);
        assert_eq!(drain(&mut list), [1, 2, 3]);
        assert!(list.is_empty());
        push(&mut list, &nodes, 4); // an empty list forgets what was last
        assert_eq!(drain(&mut list), [4]);
    }

    #[test]
    fn a_node_can_be_queued_again() {
        let nodes = TestNodes::new(0, 2);
        let mut list = List::new();
        push(&mut list, &nodes, 0);
        push(&mut list, &nodes, 1);
        for _ in 0..3 {
            let node = list.pop_front().expect("two nodes are queued");
            // SAFETY: the node was popped and is in no list.
            unsafe { list.push_back(node) };
        }
        assert_eq!(drain(&mut list), [1, 0]);
    }

    #[test]
    fn append_keeps_the_order() {
        let nodes = TestNodes::new(0, 8);
        let inbox = Inbox::new();
        let mut list = List::new();
        let chain = |numbers: std::ops::Range<usize>| {
            for number in numbers {
                // SAFETY: as in `push`.
                unsafe { inbox.push(nodes.get(number)) };
            }
            inbox.take_all()
        };
        list.append(chain(0..0));
        assert!(list.is_empty());
        list.append(chain(0..1));
        list.append(chain(1..4));
        list.append(chain(4..4));
        let mut partly = chain(4..7);
        assert_eq!(partly.next().map(TestNode::take), Some((0, 4)));
        list.append(partly);
        push(&mut list, &nodes, 7);
        assert_eq!(list.len(), 7);
        assert_eq!(drain(&mut list), [0, 1, 2, 3, 5, 6, 7]);
    }

    #[test]
    fn is_three_words() {
        assert_eq!(size_of::<List<TestNode>>(), 3 * size_of::<usize>());
    }
}
