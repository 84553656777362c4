//! The queue of a file's writes, which run one at a time, in the order in which they were first
//! polled.
//!
//! # A waiter inside a job of the pool does not wait for the pool
//!
//! The operation that has the turn may be a job in the pool's queue, while a waiter behind it
//! occupies the pool's only OS thread. So a waiter inside a job runs the operation that has the
//! turn, unless that operation has begun ([`Order::help`], `Operate::run_for_another`).
//!
//! An operation that has begun ends without the waiter's help: either the kernel has it, or an OS
//! thread is running it. Then the next operation gets the turn: `next` launches it, and wakes the
//! waiters inside jobs, which check again.
//!
//! A helper first stores its waker. Under one hold of the lock, it then adds itself to the list of
//! waiters inside jobs and reads which operation has the turn. So either it sees the new turn, or
//! `next` finds it in the list.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::operation::Operate;
use crate::runtime::Handle;

/// The queued writes of one file, and the current one.
///
/// At most one operation for each future, because dropping a future removes its operation.
#[derive(Default)]
pub(super) struct Order {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The operation whose turn it is. A call of `next` ends the turn.
    turn: Option<Arc<dyn Operate>>,
    tickets: u64,
    /// By ticket, and therefore in the order of arrival.
    waiting: BTreeMap<u64, Waiting>,
    /// The queued operations that are awaited inside a job of the pool.
    in_jobs: BTreeMap<u64, Arc<dyn Operate>>,
}

/// An operation, and the runtime that will run it.
type Waiting = (Arc<dyn Operate>, Handle);

impl Order {
    /// Gives the operation the turn if the turn is free. Otherwise queues it and returns its
    /// ticket.
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

    /// Removes an operation that has not had its turn.
    pub(super) fn remove(&self, ticket: u64) -> Option<Waiting> {
        let mut inner = self.inner.lock();
        let in_job = inner.in_jobs.remove(&ticket);
        let waiting = inner.waiting.remove(&ticket);
        drop(inner);
        drop(in_job);
        waiting
    }

    /// Returns the operation that has the turn. The caller holds the ticket, waits inside a job,
    /// and is woken when the turn changes.
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

    /// Ends the turn and begins the next operation. A loop instead of a recursion, because any
    /// number of operations may end without having begun.
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

    /// Wakes the waiters inside jobs.
    fn wake_jobs(&self) {
        let in_jobs: Vec<_> = self.inner.lock().in_jobs.values().cloned().collect();
        in_jobs.iter().for_each(|operation| operation.wake());
    }
}
