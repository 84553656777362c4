//! Waiting for a future on an OS thread that is not a worker.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::handle::Handle;
use crate::color::held::assert_may_wait;
use crate::time::TimerContext;

impl Handle {
    /// Runs a future to completion on this OS thread. Threads spawned by the future run on the
    /// workers.
    ///
    /// # Panics
    /// Panics if the future panics. Panics if called inside an event, because the call would block
    /// the worker. Also panics if called inside a closure of [`with`](crate::Colored::with),
    /// `read`, `try_with` or [`with_all`](crate::with_all), on any OS thread, because the future
    /// may need the color that the closure has entered.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        assert_may_wait("block_on was called");
        let _here = entered::enter(self.clone());
        let shard = self.shared.place(0).shard.clone();
        let _timers = crate::time::enter(TimerContext {
            shard,
            local: false,
        });
        let mut future = pin!(future);
        let waker = Waker::from(Arc::new(OsThread(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            match future.as_mut().poll(&mut context) {
                Poll::Ready(output) => return output,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

/// Wakes an OS thread that polls a future.
struct OsThread(std::thread::Thread);

impl Wake for OsThread {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// The runtime whose `block_on` runs on this OS thread.
pub(super) mod entered {
    use std::cell::RefCell;

    use super::Handle;

    thread_local! {
        static CURRENT: RefCell<Option<Handle>> = const { RefCell::new(None) };
    }

    pub(super) struct Entered(Option<Handle>);

    impl Drop for Entered {
        fn drop(&mut self) {
            let before = self.0.take();
            drop(CURRENT.try_with(|current| current.replace(before)));
        }
    }

    pub(super) fn enter(handle: Handle) -> Entered {
        // `None` while the OS thread is torn down: no runtime is current then.
        let before = CURRENT.try_with(|current| current.replace(Some(handle)));
        Entered(before.ok().flatten())
    }

    pub(in crate::runtime) fn current() -> Option<Handle> {
        CURRENT
            .try_with(|current| current.borrow().clone())
            .ok()
            .flatten()
    }
}
