//! The turns of an ordered module's items: the output for an item is sent after the output for all
//! earlier items.
//!
//! The stage gives each item a ticket while a servlet takes the item out of the queue, under the
//! queue's lock. An item that goes back to the queue keeps its ticket. An item that is handled
//! waits for its turn in its servlet. The ticket ends with the item, however the item ends, and
//! then the next item has its turn.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;

/// The turns of an instance.
#[derive(Default)]
pub(crate) struct Turns(Mutex<Line>);

#[derive(Default)]
struct Line {
    /// The number of the next ticket.
    next: u64,
    /// The first ticket that has not ended.
    first: u64,
    /// Later tickets that have ended.
    ended: BTreeSet<u64>,
    /// The items that wait for their turn. One call may wait at several places at once.
    waiting: BTreeMap<u64, Vec<Waker>>,
}

/// The place of an item among the items of its instance.
pub(crate) struct Ticket {
    number: u64,
    turns: Arc<Turns>,
}

impl Turns {
    /// Returns the ticket after all earlier tickets.
    pub(crate) fn ticket(self: &Arc<Self>) -> Ticket {
        let mut line = self.0.lock();
        let number = line.next;
        line.next += 1;
        Ticket {
            number,
            turns: Arc::clone(self),
        }
    }
}

impl Ticket {
    /// Returns the number of the ticket. Earlier tickets have lower numbers.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Waits until all earlier tickets have ended.
    pub(crate) async fn turn(&self) {
        let turn = poll_fn(|cx| {
            let mut line = self.turns.0.lock();
            if line.first == self.number {
                return Poll::Ready(());
            }
            let wakers = line.waiting.entry(self.number).or_default();
            if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
                wakers.push(cx.waker().clone());
            }
            Poll::Pending
        });
        turn.await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut line = self.turns.0.lock();
        let own = line.waiting.remove(&self.number);
        line.ended.insert(self.number);
        while line.ended.first() == Some(&line.first) {
            line.ended.pop_first();
            line.first += 1;
        }
        let first = line.first;
        let next = line.waiting.remove(&first);
        drop(line);
        drop(own);
        next.into_iter().flatten().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_turn_comes_when_all_earlier_tickets_have_ended() {
        let turns = Arc::new(Turns::default());
        let [a, b, c] = [(); 3].map(|()| turns.ticket());
        assert!(a.turn().now_or_never().is_some());
        assert!(c.turn().now_or_never().is_none());
        drop(b);
        assert!(c.turn().now_or_never().is_none());
        drop(a);
        assert!(c.turn().now_or_never().is_some());
        assert!(turns.0.lock().waiting.is_empty());
    }
}
