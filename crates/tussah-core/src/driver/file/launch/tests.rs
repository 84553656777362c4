//! Tests of a worker's ring whose entries the kernel has refused.

use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use io_uring::{opcode, squeue};

use super::super::operation::Operate;
use super::super::ring::Ring;
use crate::runtime::{Handle, Runtime};
use crate::yield_now;

/// A test that takes this long is considered hung.
const HANG_LIMIT: Duration = Duration::from_secs(10);

/// After this number of yields the worker has ticked many times.
const YIELDS: usize = 1_000_000;

/// An operation that does nothing, and reports when it is done.
struct Nothing(mpsc::Sender<()>);

impl Nothing {
    fn new() -> (Arc<Self>, mpsc::Receiver<()>) {
        let (done, wait) = mpsc::channel();
        (Arc::new(Self(done)), wait)
    }
}

impl Operate for Nothing {
    fn entry(&self) -> squeue::Entry {
        opcode::Nop::new().build()
    }

    fn completed(self: Arc<Self>, _: io::Result<u32>) {
        let _ = self.0.send(());
    }

    fn fail(self: Arc<Self>, _: io::Error) {}

    fn run(self: Arc<Self>) {}

    fn run_for_another(self: Arc<Self>) -> bool {
        false
    }

    fn is_carried_out(&self) -> bool {
        true
    }

    fn wake(&self) {}

    fn dropped_by_pool(self: Arc<Self>) {}

    fn launch(self: Arc<Self>, _: &Handle) -> bool {
        false
    }
}

/// Returns the ring of a place; `None` on systems without io_uring.
fn ring_of(handle: &Handle, place: usize) -> Option<Arc<Ring>> {
    let shared = &handle.shared;
    let made = |ring: &_| super::super::register(shared, place, ring);
    shared.place(place).files.get_or_make(made).cloned()
}

/// Makes the kernel refuse all entries during a closure, as if it were short of memory.
fn while_refused<R>(ring: &Ring, f: impl FnOnce() -> R) -> R {
    ring.refuse(true);
    let result = f();
    ring.refuse(false);
    result
}

#[test]
#[cfg_attr(miri, ignore)]
fn a_worker_is_woken_for_entries_that_another_could_not_flush() {
    let runtime = Runtime::builder().workers(1).build();
    let runtime = runtime.expect("the worker starts");
    let Some(ring) = ring_of(&runtime, 0) else {
        return;
    };
    while runtime.handle().shared.idle.all_parked().is_none() {
        std::thread::yield_now();
    }
    let (nothing, wait) = Nothing::new();
    while_refused(&ring, || {
        assert!(ring.push(nothing).is_ok());
        // Acts like a peer while the worker sleeps and sees no entries to hand over.
        runtime.handle().shared.place(0).files.serve();
    });
    wait.recv_timeout(HANG_LIMIT).expect("its worker was told");
}

#[test]
#[cfg_attr(miri, ignore)]
fn the_entries_of_a_removed_worker_begin_though_the_first_is_busy() {
    let runtime = Runtime::builder().workers(2).build();
    let runtime = runtime.expect("the workers start");
    let Some(ring) = ring_of(&runtime, 1) else {
        return;
    };
    runtime.set_workers(1).expect("one is left");
    let (nothing, wait) = Nothing::new();
    let busy = runtime.spawn(async move {
        assert!(ring.push(nothing).is_ok());
        for _ in 0..YIELDS {
            if wait.try_recv().is_ok() {
                return true;
            }
            yield_now().await;
        }
        false
    });
    assert!(runtime.block_on(busy).expect("no panic"), "it never began");
}
