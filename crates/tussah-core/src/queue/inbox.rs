//! An intrusive queue: any OS thread puts nodes into it, and a taker takes out everything at once.
//!
//! It is the stack of Treiber ("Systems Programming: Coping with Parallelism", IBM RJ 5118, 1986)
//! without its pop operation: a taker takes everything with one swap, and reverses it. A Vyukov
//! queue would avoid the reversal, but in it a stalled poster hides the completed posts of other
//! posters behind its own.
//!
//! # Why it is right
//!
//! *Nothing is lost or taken twice.* The top changes only by read-modify-write, so its values form
//! one sequence. A push that succeeds puts its node over exactly the top that the node links to. A
//! swap takes the top, and with it everything below the top. Nodes below the top never change: a
//! node's link is written before the node is published, and not again until the node is taken.
//!
//! *ABA does no harm.* Between a pusher's load and its compare-and-swap, the stack may have been
//! taken and the same node pushed again. That node is then the top, and the pusher's node has to
//! link to the top. A pusher never reads the node that it links to.
//!
//! *The content arrives.* A push is Release, a take is Acquire. Every change of the top is a
//! read-modify-write, and so continues the release sequences of all pushes before it: the Acquire
//! that reads the newest push synchronizes with all of them. So links can be Relaxed, and a pusher
//! needs no Acquire.
//!
//! *Order.* If one push happens before another, its node is deeper in the stack, or was taken
//! earlier. The loom models below check all of this except the last step of ABA, which needs a node
//! that is freed and allocated again.

use std::iter::FusedIterator;
use std::ptr::{self, NonNull};

use super::{Line, Link, link};
use crate::loom::atomic::{AtomicPtr, Ordering};

/// The nodes that other OS threads post to a worker.
///
/// It does not own its nodes: dropping the inbox forgets them. It has no bound of its own. A node
/// is in it at most once, so the number of live nodes bounds its length.
pub(crate) struct Inbox<T> {
    newest: Line<AtomicPtr<T>>,
}

impl<T: Link> Inbox<T> {
    pub(crate) fn new() -> Self {
        Self {
            newest: Line(AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// Returns whether there was nothing to take at some moment during the call.
    ///
    /// Relaxed: a caller that must not miss a post, for example before it sleeps, needs its own
    /// fence before the call.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.newest.0.load(Ordering::Relaxed).is_null()
    }

    /// Adds a node. Returns true if the inbox was empty.
    ///
    /// # Safety
    /// The node must be alive and in no list, and the caller must leave it to the taker, on any OS
    /// thread.
    #[inline]
    pub(crate) unsafe fn push(&self, node: NonNull<T>) -> bool {
        // SAFETY: a chain of one.
        unsafe { self.push_chain(node, node) }
    }

    /// Adds several nodes at once. Returns true if the inbox was empty. The nodes are linked from
    /// the newest to the oldest, and no other nodes come between them.
    ///
    /// # Safety
    /// Every node must meet the requirements of [`push`](Self::push). Following the links must lead
    /// from `newest` to `oldest`.
    #[inline]
    pub(crate) unsafe fn push_chain(&self, newest: NonNull<T>, oldest: NonNull<T>) -> bool {
        // SAFETY: the node is alive and belongs to the caller until the exchange succeeds.
        let link = unsafe { link(oldest) };
        let mut below = self.newest.0.load(Ordering::Relaxed);
        loop {
            link.store(below, Ordering::Relaxed);
            // Release pairs with the Acquire in `take_all`: it publishes the links and the contents
            // of the nodes.
            match self.newest.0.compare_exchange_weak(
                below,
                newest.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return below.is_null(),
                Err(now) => below = now,
            }
        }
    }

    /// Takes all nodes.
    #[inline]
    pub(crate) fn take_all(&self) -> Chain<T> {
        if self.is_empty() {
            return Chain {
                first: ptr::null_mut(),
                len: 0,
            };
        }
        // Acquire pairs with the Release in `push_chain` of every push since the last swap.
        Chain::reverse(self.newest.0.swap(ptr::null_mut(), Ordering::Acquire))
    }
}

/// Nodes taken out of an [`Inbox`], oldest first. They belong to the chain.
///
/// Dropping a chain forgets the nodes that are still in it.
#[must_use = "the nodes that are left in a chain are forgotten"]
pub(crate) struct Chain<T> {
    /// The oldest node, null if there is none. Each node links to the next newer node; the last one
    /// links to null.
    first: *mut T,
    len: usize,
}

impl<T: Link> Chain<T> {
    /// Makes a chain of nodes that belong to the caller and are linked newest first.
    fn reverse(newest: *mut T) -> Self {
        let mut rest = newest;
        let mut chain = Self {
            first: ptr::null_mut(),
            len: 0,
        };
        while let Some(node) = NonNull::new(rest) {
            // SAFETY: `push_chain` was given live nodes, and the swap has made them ours.
            let link = unsafe { link(node) };
            rest = link.load(Ordering::Relaxed);
            link.store(chain.first, Ordering::Relaxed);
            chain.first = node.as_ptr();
            chain.len += 1;
        }
        chain
    }
}

impl<T: Link> Iterator for Chain<T> {
    type Item = NonNull<T>;

    #[inline]
    fn next(&mut self) -> Option<NonNull<T>> {
        let node = NonNull::new(self.first)?;
        // SAFETY: the node is alive and belongs to the chain until it is returned.
        self.first = unsafe { link(node) }.load(Ordering::Relaxed);
        self.len -= 1;
        Some(node)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<T: Link> ExactSizeIterator for Chain<T> {}
impl<T: Link> FusedIterator for Chain<T> {}

#[cfg(test)]
mod test_support {
    use super::super::{TestNode, TestNodes};
    use super::*;

    pub(super) fn push(inbox: &Inbox<TestNode>, nodes: &TestNodes, number: usize) -> bool {
        // SAFETY: `get` checks that the node is in no list, and the nodes outlive the inbox.
        unsafe { inbox.push(nodes.get(number)) }
    }

    /// Pushes the node with this number and, as the newer one, the next node, both at once.
    pub(super) fn push_two(inbox: &Inbox<TestNode>, nodes: &TestNodes, number: usize) -> bool {
        let (oldest, newest) = (nodes.get(number), nodes.get(number + 1));
        // SAFETY: as in `push`, and the nodes are linked newest first.
        unsafe {
            link(newest).store(oldest.as_ptr(), Ordering::Relaxed);
            inbox.push_chain(newest, oldest)
        }
    }

    /// Takes everything.
    pub(super) fn take(inbox: &Inbox<TestNode>) -> Vec<(usize, usize)> {
        let chain = inbox.take_all();
        let len = chain.len();
        let taken: Vec<_> = chain.map(TestNode::take).collect();
        assert_eq!(taken.len(), len);
        taken
    }

    /// Checks that the nodes of each pusher arrived in the order in which it pushed them, with none
    /// missing.
    pub(super) fn check_complete(taken: &[(usize, usize)], pushers: usize, each: usize) {
        assert_eq!(taken.len(), pushers * each);
        for pusher in 0..pushers {
            let numbers = taken
                .iter()
                .filter(|node| node.0 == pusher)
                .map(|node| node.1);
            assert!(numbers.eq(0..each), "of pusher {pusher} came {taken:?}");
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::{TestNode, TestNodes};
    use super::test_support::{check_complete, push, push_two, take};
    use super::*;

    #[test]
    fn first_in_first_out() {
        let nodes = TestNodes::new(0, 5);
        let inbox = Inbox::new();
        assert!(inbox.is_empty());
        assert_eq!(take(&inbox), []);
        assert!(push(&inbox, &nodes, 0), "the first finds nothing");
        assert!(!push(&inbox, &nodes, 1));
        assert!(!inbox.is_empty());
        assert!(!push_two(&inbox, &nodes, 2));
        assert!(!push(&inbox, &nodes, 4));
        assert_eq!(take(&inbox), [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4)]);
        assert!(inbox.is_empty());
        assert!(push_two(&inbox, &nodes, 0));
        assert_eq!(take(&inbox), [(0, 0), (0, 1)]);
    }

    #[test]
    fn a_chain_knows_its_len() {
        let nodes = TestNodes::new(0, 3);
        let inbox = Inbox::new();
        for number in 0..3 {
            push(&inbox, &nodes, number);
        }
        let mut chain = inbox.take_all();
        for left in (0..3).rev() {
            chain
                .next()
                .map(TestNode::take)
                .expect("three nodes were pushed");
            assert_eq!(chain.len(), left);
        }
        assert!(chain.next().is_none());
    }

    #[test]
    fn stress() {
        const PUSHERS: usize = 3;
        const EACH: usize = if cfg!(miri) { 32 } else { 50_000 };
        let nodes: Vec<_> = (0..PUSHERS)
            .map(|pusher| TestNodes::new(pusher, EACH))
            .collect();
        let inbox = Inbox::new();
        let mut taken = Vec::new();
        std::thread::scope(|scope| {
            for nodes in &nodes {
                let inbox = &inbox;
                scope.spawn(move || {
                    for number in (0..EACH).step_by(4) {
                        push_two(inbox, nodes, number);
                        push(inbox, nodes, number + 2);
                        push(inbox, nodes, number + 3);
                    }
                });
            }
            while taken.len() < PUSHERS * EACH {
                taken.append(&mut take(&inbox));
                std::thread::yield_now();
            }
        });
        check_complete(&taken, PUSHERS, EACH);
        assert!(inbox.is_empty());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    // This is the standard `Arc`: the main thread joins all others and is the last to drop it, so
    // it needs no model.
    use std::sync::Arc;

    use super::super::{TestNode, TestNodes};
    use super::test_support::{check_complete, push, push_two, take};
    use super::*;
    use crate::loom::thread::{self, JoinHandle};
    use crate::worker::model::explore;

    type Shared = Arc<(Inbox<TestNode>, [TestNodes; 2])>;

    fn shared() -> Shared {
        Arc::new((Inbox::new(), [TestNodes::new(0, 2), TestNodes::new(1, 2)]))
    }

    fn spawn<R: 'static>(
        shared: &Shared,
        f: impl FnOnce(&Inbox<TestNode>, &[TestNodes; 2]) -> R + 'static,
    ) -> JoinHandle<R> {
        let shared = Arc::clone(shared);
        thread::spawn(move || f(&shared.0, &shared.1))
    }

    fn join<R>(thread: JoinHandle<R>) -> R {
        thread.join().expect("no panic")
    }

    // Loom does not explore the first thread of a model well beside others, so this thread only
    // starts and joins them.

    #[test]
    fn two_pushers_and_a_taker() {
        explore(4, || {
            let shared = shared();
            let one = spawn(&shared, |inbox, [nodes, _]| {
                usize::from(push(inbox, nodes, 0)) + usize::from(push(inbox, nodes, 1))
            });
            let two = spawn(&shared, |inbox, [_, nodes]| {
                usize::from(push_two(inbox, nodes, 0))
            });
            let taker = spawn(&shared, |inbox, _| vec![take(inbox), take(inbox)]);
            let first = join(one) + join(two);
            let mut takes = join(taker);
            takes.push(take(&shared.0));
            check_complete(&takes.concat(), 2, 2);
            takes.retain(|take| !take.is_empty());
            assert_eq!(
                first,
                takes.len(),
                "each batch has one push that found nothing"
            );
        });
    }

    #[test]
    fn two_takers() {
        explore(6, || {
            let shared = shared();
            push(&shared.0, &shared.1[0], 0);
            let takers = [(); 2].map(|()| spawn(&shared, |inbox, _| take(inbox)));
            let pusher = spawn(&shared, |inbox, [_, nodes]| push(inbox, nodes, 0));
            let mut taken = takers.map(join).concat();
            join(pusher);
            taken.append(&mut take(&shared.0));
            taken.sort_unstable();
            assert_eq!(taken, [(0, 0), (1, 0)]);
        });
    }
}
