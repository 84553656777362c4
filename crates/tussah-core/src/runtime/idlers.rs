//! Threads that wait until a worker has nothing else to do.
//!
//! Each such thread is in a list of the runtime. A worker wakes the whole list instead of going to
//! sleep. It does so when it has found nothing to run or steal, and its timers and descriptors have
//! nothing to report. Each woken thread is then an event of its color like any other event.
//!
//! `on_idle` of `tussah` needs this list: no thread can find out that its worker is idle, because
//! the worker runs an event to ask. The list costs a load before each sleep, and nothing per event.
//!
//! # Why no waiter is forgotten
//!
//! A waiter either enters the list in an event of some worker, or enters it elsewhere and then
//! posts an event. The worker of that event checks the list after the event, before it sleeps
//! again, and the event makes the entry visible to it. If the worker is removed instead, it wakes
//! the list as it ends. If it is stuck in an event, other workers check the list when their watch
//! finds nothing. So the flag needs no fence.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::handle::Handle;
use super::shared::Shared;
use crate::loom::atomic::{AtomicBool, Ordering};
use crate::loom::{Mutex, lock};
use crate::tiny_waker::TinyWaker;
use crate::worker::Worker;

/// The threads that wait for an idle worker.
pub(crate) struct Idlers {
    /// True if the list has a waiter; written under the lock.
    any: AtomicBool,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    last_number: u64,
    waiting: Vec<(u64, TinyWaker)>,
}

impl Idlers {
    pub(super) fn new() -> Self {
        Self {
            any: AtomicBool::new(false),
            list: Mutex::new(List::default()),
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut List) -> R) -> R {
        let mut list = lock(&self.list);
        let result = f(&mut list);
        self.any.store(!list.waiting.is_empty(), Ordering::Relaxed);
        result
    }
}

impl Shared {
    /// Returns whether waiters must be woken before a worker sleeps. Returns false while the
    /// runtime drains, because the runtime has to come to rest.
    pub(crate) fn has_idlers(&self) -> bool {
        self.idlers.any.load(Ordering::Relaxed) && self.is_open()
    }

    /// Wakes the waiters for an idle worker.
    pub(crate) fn wake_idlers(&self) {
        let waiting = self.idlers.with(|list| std::mem::take(&mut list.waiting));
        for (_, waker) in waiting {
            waker.wake_guarded();
        }
    }
}

impl Handle {
    /// Waits until a worker of this runtime has nothing else to do: no event to run or steal, no
    /// timer that is due, and no descriptor that is ready.
    ///
    /// The future behaves like an idle watcher of libev (ev(3), `ev_idle`), but has no priority.
    /// The choice of the worker is not fair: the first worker that runs out of work wakes all
    /// waiters. A thread that waits for `idle` in a loop keeps one worker busy.
    ///
    /// Once the runtime is shutting down, the future never completes.
    ///
    /// # Cancellation
    /// Dropping the future cancels the wait.
    ///
    /// # Examples
    /// ```
    /// # let runtime = tussah_core::Runtime::builder().workers(1).build()?;
    /// let handle = runtime.handle().clone();
    /// # runtime.block_on(
    /// runtime.spawn(async move {
    ///     handle.idle().await;
    ///     println!("time to tidy up");
    /// })
    /// # ).expect("it does not panic");
    /// # std::io::Result::Ok(())
    /// ```
    pub fn idle(&self) -> Idle {
        Idle {
            handle: self.clone(),
            number: 0,
        }
    }
}

/// The future of [`Handle::idle`].
#[must_use = "futures do nothing unless they are polled"]
pub struct Idle {
    handle: Handle,
    /// The waiter's number in the list; 0 before the first poll.
    number: u64,
}

impl Future for Idle {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let number = self.number;
        let waker = TinyWaker::from_waker(context.waker());
        let shared = &self.handle.shared;
        // The waker that was replaced is dropped outside of the lock.
        let (number, _before) = shared.idlers.with(|list| {
            if number == 0 {
                list.last_number += 1;
                list.waiting.push((list.last_number, waker));
                return (list.last_number, None);
            }
            match list.waiting.iter_mut().find(|(other, _)| *other == number) {
                Some((_, place)) => (number, Some(std::mem::replace(place, waker))),
                None => (0, Some(waker)),
            }
        });
        if number == 0 {
            return Poll::Ready(());
        }
        let is_here = Worker::with(|worker| worker.is_some_and(|worker| worker.is_of(shared)));
        if !is_here && self.number == 0 {
            // Makes some worker check the list. If the runtime has ended, the post is refused and
            // there is nothing to wait for.
            let _ = self.handle.post(|| ());
        }
        self.number = number;
        Poll::Pending
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        if self.number == 0 {
            return;
        }
        let _waker = self.handle.shared.idlers.with(|list| {
            let mut waiting = list.waiting.iter();
            let at = waiting.position(|(number, _)| *number == self.number)?;
            Some(list.waiting.swap_remove(at))
        });
    }
}

impl fmt::Debug for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idle")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}
