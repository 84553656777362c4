//! Tests of a slot, one step at a time.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::Wake;

use super::*;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn counter() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (count.clone(), count.into())
}

fn wait(slot: &Slot, direction: Direction, key: &mut Key, waker: &Waker) -> bool {
    let waited = slot.wait(direction, slot.seen(), key, waker, |_| Ok::<_, ()>(()));
    !waited.expect("it registers")
}

#[test]
fn each_direction_waits_for_itself() {
    let slot = Slot::new(0);
    let ((reads, reader), (writes, writer)) = (counter(), counter());
    assert!(wait(&slot, Direction::Read, &mut 0, &reader));
    assert!(wait(&slot, Direction::Write, &mut 0, &writer));
    assert!(!slot.seen().is_ready(Direction::Read));
    assert_eq!(slot.report(0, WRITE).wake(), 1);
    assert!(slot.seen().is_ready(Direction::Write) && !slot.seen().is_ready(Direction::Read));
    assert_eq!(slot.report(0, READ | WRITE).wake(), 1);
    assert_eq!(slot.report(0, READ | WRITE).wake(), 0);
    for count in [reads, writes] {
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn a_report_after_the_look_is_not_waited_for() {
    let slot = Slot::new(0);
    let (_, waker) = counter();
    slot.lock().moved(0);
    let seen = slot.seen();
    slot.report(0, READ).wake();
    let waited = slot.wait(Direction::Read, seen, &mut 0, &waker, |_| Ok::<_, ()>(()));
    assert_eq!(waited, Ok(true));
    slot.exhausted(Direction::Read, seen);
    assert!(slot.seen().is_ready(Direction::Read));
    slot.came_short(Direction::Read, slot.seen());
    assert!(!slot.seen().is_ready(Direction::Read));
}

/// A descriptor that no waiter has registered is tried every time.
#[test]
fn an_unregistered_descriptor_stays_ready() {
    let slot = Slot::new(0);
    slot.exhausted(Direction::Read, slot.seen());
    assert!(slot.seen().is_ready(Direction::Read));
}

#[test]
fn the_end_is_not_forgotten() {
    let slot = Slot::new(0);
    slot.lock().moved(0);
    slot.report(0, READ | CLOSED).wake();
    slot.came_short(Direction::Read, slot.seen());
    assert!(
        slot.seen().is_ready(Direction::Read),
        "the end is still to be read"
    );
    // As after urgent data: an operation that would block is not at the end of the stream.
    slot.exhausted(Direction::Read, slot.seen());
    assert!(!slot.seen().is_ready(Direction::Read));
}

#[test]
fn a_waiter_for_a_hang_up_leaves_the_direction_ready() {
    let slot = Slot::new(0);
    let (count, waker) = counter();
    let wait = |seen| {
        let waited = slot.wait_report(seen, &mut { POLLED }, &waker, |_| Ok::<_, ()>(()));
        waited.expect("it registers")
    };
    slot.report(0, READ).wake();
    let seen = slot.seen();
    assert!(!wait(seen), "nothing was reported since");
    assert!(slot.seen().is_ready(Direction::Read));
    assert_eq!(slot.report(0, READ | CLOSED | HALF).wake(), 1);
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    assert!(wait(seen), "something was reported since");
    // The flag stays after all data has been read, and does not mean the end of the connection.
    slot.lock().moved(0);
    slot.exhausted(Direction::Read, slot.seen());
    assert!(slot.seen().has(HALF) && !slot.seen().has(FULL));
    slot.report(0, READ | WRITE | CLOSED | FULL).wake();
    assert!(slot.seen().has(FULL));
    slot.reset();
    assert!(!slot.seen().has(HALF | FULL), "as new");
}

/// A waiter that gives up leaves nothing behind, wherever it was in the line.
#[test]
fn all_wait_except_those_that_gave_up() {
    for gone in 0..4 {
        let slot = Slot::new(0);
        let mut keys = [0; 4];
        let counts = [(); 4].map(|()| counter());
        for (key, (_, waker)) in keys.iter_mut().zip(&counts) {
            assert!(wait(&slot, Direction::Read, key, waker));
            // A second time, like a thread that was polled for another reason.
            assert!(wait(&slot, Direction::Read, key, waker));
        }
        slot.cancel(Direction::Read, keys[gone]);
        slot.cancel(Direction::Read, keys[gone]);
        assert_eq!(slot.report(0, READ).wake(), 3);
        for (n, (count, waker)) in counts.iter().enumerate() {
            assert_eq!(count.0.load(Ordering::Relaxed), usize::from(n != gone));
            assert!(
                Arc::strong_count(count) == 2,
                "only {waker:?} is left of it"
            );
        }
    }
}

#[test]
fn the_last_poller_is_woken() {
    let slot = Slot::new(0);
    let ((first, early), (second, late)) = (counter(), counter());
    assert!(wait(&slot, Direction::Write, &mut { POLLED }, &early));
    assert!(wait(&slot, Direction::Write, &mut { POLLED }, &late));
    assert_eq!(slot.report(0, WRITE).wake(), 1);
    assert_eq!(first.0.load(Ordering::Relaxed), 0);
    assert_eq!(second.0.load(Ordering::Relaxed), 1);
}

#[test]
fn a_report_for_the_previous_descriptor_is_ignored() {
    let slot = Slot::new(0);
    let (count, waker) = counter();
    assert!(wait(&slot, Direction::Read, &mut 0, &waker));
    assert_eq!(
        slot.reset().0.wake(),
        1,
        "who waited for the old one is woken"
    );
    assert!(wait(&slot, Direction::Read, &mut 0, &waker));
    assert_eq!(slot.report(0, READ | WRITE).wake(), 0);
    assert!(!slot.seen().is_ready(Direction::Read));
    assert_eq!(slot.report(1, READ).wake(), 1);
    assert_eq!(count.0.load(Ordering::Relaxed), 2);
}

#[test]
fn a_descriptor_moves_after_sixteen_waits_elsewhere() {
    let slot = Slot::new(0);
    let mut inner = slot.lock();
    assert_eq!(inner.moved(3), None);
    for _ in 1..FOREIGN_MAX {
        assert!(!inner.is_foreign(1));
    }
    assert!(!inner.is_foreign(3), "at home");
    assert!(inner.is_foreign(1), "what came before is not forgotten");
    assert_eq!(inner.moved(1), Some(3));
    assert!(!inner.is_foreign(1));
}

/// Without a registration an operation is tried every time, because nothing would be reported.
#[test]
fn a_failed_registration_leaves_the_descriptor_ready() {
    let slot = Slot::new(0);
    let (count, waker) = counter();
    let waited = slot.wait(Direction::Read, slot.seen(), &mut 0, &waker, |_| Err(()));
    assert_eq!(waited, Err(()));
    assert!(slot.seen().is_ready(Direction::Read));
    assert_eq!(slot.report(0, READ).wake(), 0);
    assert_eq!(Arc::strong_count(&count), 2);
}

/// Keys are reused, but not while a waiter has them.
#[test]
fn no_two_wait_with_one_key() {
    let slot = Slot::new(0);
    let (_, waker) = counter();
    let mut keys = [0; 3];
    assert!(wait(&slot, Direction::Read, &mut keys[0], &waker));
    assert!(wait(&slot, Direction::Read, &mut keys[1], &waker));
    slot.lock().last_key = u32::MAX;
    assert!(wait(&slot, Direction::Read, &mut keys[2], &waker));
    assert!(keys[2] > keys[1] && keys[1] > keys[0], "{keys:?}");
    assert_eq!(slot.report(0, READ).wake(), 3);
}
