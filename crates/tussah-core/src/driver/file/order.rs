//! The queue of a file's writes: one at a time, in the order in which they were first polled.
//!
//! # Who waits inside of a job of the pool does not wait for the pool
//!
//! An operation that has its turn may be a job in the pool's queue, and who waits behind it may hold the pool's only OS
//! thread. So who waits inside of a job runs the operation that has the turn, unless somebody has begun it ([`Order::help`],
//! `Operate::run_for_another`). One that has begun ends without the waiter's help: the kernel has it, or an OS thread runs it. Then
//! the next has its turn: `next` launches it, and wakes those who wait inside of a job, who look again. A helper puts itself on the list
//! of these under the same lock under which it reads who has the turn, after its waker is in place. So either it sees the new one, or
//! `next` sees it on the list.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::operation::Operate;
use crate::runtime::Handle;

/// The writes of one file that wait, and the one that is under way.
///
/// Bound, in operations: one a future, since a future that is dropped takes its operation out.
#[derive(Default)]
pub(super) struct Order {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// What has its turn. It ends with a call of `next`.
    turn: Option<Arc<dyn Operate>>,
    tickets: u64,
    /// By ticket, so in the order of arrival.
    waiting: BTreeMap<u64, Waiting>,
    /// Those of them that somebody awaits inside of a job of the pool.
    in_jobs: BTreeMap<u64, Arc<dyn Operate>>,
}

/// An operation, and the runtime that is to run it.
type Waiting = (Arc<dyn Operate>, Handle);

impl Order {
    /// Lets the operation begin at once, or gives its place in the queue.
    pub(super) fn wait(&self, operation: Arc<dyn Operate>, handle: &Handle) -> Option<u64> {
        let mut inner = self.inner.lock();
        if inner.turn.is_none() {
            inner.turn = Some(operation);
            return None;
        }
        let ticket = inner.tickets;
        inner.tickets += 1;
        inner.waiting.insert(ticket, (operation, handle.clone()));
        Some(ticket)
    }

    /// Takes an operation out that has not had its turn.
    pub(super) fn remove(&self, ticket: u64) -> Option<Waiting> {
        let mut inner = self.inner.lock();
        let in_job = inner.in_jobs.remove(&ticket);
        let waiting = inner.waiting.remove(&ticket);
        drop(inner);
        drop(in_job);
        waiting
    }

    /// What has its turn now. Who holds the ticket waits inside of a job, and is woken when that changes.
    pub(super) fn help(&self, ticket: u64) -> Option<Arc<dyn Operate>> {
        let mut inner = self.inner.lock();
        let Inner {
            waiting, in_jobs, ..
        } = &mut *inner;
        if let Some((operation, _)) = waiting.get(&ticket) {
            in_jobs.insert(ticket, operation.clone());
        }
        inner.turn.clone()
    }

    /// The operation that was under way has ended: the next one begins. A loop, and not one inside of the other, so that
    /// any number of operations may end without having begun.
    pub(super) fn next(&self) {
        loop {
            let mut inner = self.inner.lock();
            let next = inner.waiting.pop_first();
            let in_job = next
                .as_ref()
                .and_then(|(ticket, _)| inner.in_jobs.remove(ticket));
            let turn = next.as_ref().map(|(_, (operation, _))| operation.clone());
            let ended = std::mem::replace(&mut inner.turn, turn);
            drop(inner);
            drop(ended);
            let Some((_, (operation, handle))) = next else {
                return;
            };
            if operation.launch(&handle) {
                in_job.iter().for_each(|operation| operation.wake());
                self.wake_jobs();
                return;
            }
        }
    }

    /// Wakes those who wait inside of a job.
    fn wake_jobs(&self) {
        let in_jobs: Vec<_> = self.inner.lock().in_jobs.values().cloned().collect();
        in_jobs.iter().for_each(|operation| operation.wake());
    }
}
