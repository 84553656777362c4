//! Models of a slot: waiting against reports, and against other waiters.

use std::future::poll_fn;
use std::task::Poll;

use loom::future::block_on;

use super::*;
use crate::loom::atomic::AtomicUsize;
use crate::loom::{Arc, thread};

/// A descriptor, which may have something to read, and its slot.
struct Pipe {
    slot: Slot,
    bytes: AtomicUsize,
}

impl Pipe {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            slot: Slot::new(0),
            bytes: AtomicUsize::new(0),
        })
    }

    /// Plays the kernel: makes data available, and reports it.
    fn fill(&self) {
        // The kernel orders its steps by its own locks.
        self.bytes.fetch_add(1, Ordering::AcqRel);
        self.slot.report(0, READ).wake();
    }

    /// Takes a byte if there is one: this is the operation that is tried.
    fn take(&self) -> bool {
        let take = |bytes: usize| bytes.checked_sub(1);
        let taken = self
            .bytes
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
        taken.is_ok()
    }

    /// Does the same as `Source::poll_io`.
    fn read(&self) {
        let mut key = 0;
        block_on(poll_fn(|context| {
            loop {
                let seen = self.slot.seen();
                if seen.is_ready(Direction::Read) && self.take() {
                    return Poll::Ready(());
                }
                let again =
                    self.slot
                        .wait(Direction::Read, seen, &mut key, context.waker(), |_| {
                            Ok::<_, ()>(())
                        });
                if again == Ok(false) {
                    return Poll::Pending;
                }
            }
        }));
    }
}

#[test]
fn a_report_is_not_missed() {
    loom::model(|| {
        let pipe = Pipe::new();
        let (kernel, reader) = (pipe.clone(), pipe.clone());
        let threads = [
            thread::spawn(move || kernel.fill()),
            thread::spawn(move || reader.read()),
        ];
        let _ = threads.map(|thread| thread.join().expect("no panic"));
    });
}

#[test]
fn a_report_wakes_all_waiters() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(1);
    model.check(|| {
        let pipe = Pipe::new();
        let readers = [pipe.clone(), pipe.clone()].map(|pipe| thread::spawn(move || pipe.read()));
        let kernel = thread::spawn(move || {
            pipe.fill();
            pipe.fill();
        });
        let _ = readers.map(|reader| reader.join().expect("no panic"));
        kernel.join().expect("no panic");
    });
}

/// A short read clears the ready flag, unless a report has arrived since.
#[test]
fn a_report_is_not_forgotten() {
    loom::model(|| {
        let pipe = Pipe::new();
        pipe.bytes.fetch_add(1, Ordering::AcqRel);
        pipe.slot.lock().moved(0);
        let (kernel, reader) = (pipe.clone(), pipe.clone());
        let threads = [
            thread::spawn(move || kernel.fill()),
            thread::spawn(move || {
                let seen = reader.slot.seen();
                let mut taken = 0;
                while reader.take() {
                    taken += 1;
                }
                reader.slot.exhausted(Direction::Read, seen);
                if taken < 2 {
                    reader.read();
                }
            }),
        ];
        let _ = threads.map(|thread| thread.join().expect("no panic"));
    });
}

/// The bytes arrive before the hang-up, and stay unread.
#[test]
fn a_hang_up_is_not_missed() {
    loom::model(|| {
        let pipe = Pipe::new();
        pipe.slot.lock().moved(0);
        let (kernel, waiter) = (pipe.clone(), pipe);
        let threads = [
            thread::spawn(move || {
                kernel.fill();
                kernel.slot.report(0, READ | CLOSED | HALF).wake();
            }),
            thread::spawn(move || {
                let slot = &waiter.slot;
                block_on(poll_fn(|context| {
                    loop {
                        let seen = slot.seen();
                        if seen.has(HALF) {
                            return Poll::Ready(());
                        }
                        let key = &mut { POLLED };
                        let register = |_: &mut Inner| Ok::<_, ()>(());
                        let again = slot.wait_report(seen, key, context.waker(), register);
                        if again == Ok(false) {
                            return Poll::Pending;
                        }
                    }
                }));
                assert!(
                    slot.seen().is_ready(Direction::Read),
                    "they are still there"
                );
            }),
        ];
        let _ = threads.map(|thread| thread.join().expect("no panic"));
    });
}
