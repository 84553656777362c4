//! Models of notification against waiting and dropping.

use std::sync::atomic::{AtomicUsize as PlainUsize, Ordering::Relaxed};
use std::task::Wake;

use loom::future::block_on;

use super::*;
use crate::loom::{Arc, atomic::AtomicUsize, atomic::Ordering, thread};

/// A waker for futures that are polled by hand; a plain counter, since no model waits for it.
#[derive(Default)]
struct Count(PlainUsize);

impl Wake for Count {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn poll(notified: Pin<&mut Notified<'_>>, count: &std::sync::Arc<Count>) -> bool {
    let waker = Waker::from(std::sync::Arc::clone(count));
    notified.poll(&mut Context::from_waker(&waker)).is_ready()
}

#[test]
fn notify_one_wakes_a_waiter_that_sees_earlier_writes() {
    loom::model(|| {
        let shared = Arc::new((Notify::new(), AtomicUsize::new(0)));
        let other = Arc::clone(&shared);
        let notifier = thread::spawn(move || {
            other.1.store(1, Ordering::Relaxed);
            other.0.notify_one();
        });
        block_on(shared.0.notified());
        assert_eq!(shared.1.load(Ordering::Relaxed), 1);
        notifier.join().unwrap();
        assert!(!shared.0.lock().permit);
    });
}

/// The waker changes while the notification arrives: either the poll sees the notification, or it
/// goes to the new waker.
#[test]
fn a_new_waker_against_a_notification() {
    loom::model(|| {
        let notify = Arc::new(Notify::new());
        let [first, second]: [std::sync::Arc<Count>; 2] = Default::default();
        let mut notified = Box::pin(notify.notified());
        assert!(!poll(notified.as_mut(), &first));
        let other = Arc::clone(&notify);
        let notifier = thread::spawn(move || other.notify_one());
        let ready = poll(notified.as_mut(), &second);
        notifier.join().unwrap();
        assert!(ready || second.0.load(Relaxed) == 1, "the wake-up is lost");
    });
}

#[test]
fn one_notification_goes_through_two_waiters() {
    // With three OS threads that block, a search of the whole space takes minutes.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let notify = Arc::new(Notify::new());
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let notify = Arc::clone(&notify);
                thread::spawn(move || {
                    block_on(notify.notified());
                    // Passed on, so that one notification is enough for both waiters.
                    notify.notify_one();
                })
            })
            .collect();
        notify.notify_one();
        for waiter in waiters {
            waiter.join().unwrap();
        }
        assert!(notify.lock().permit);
    });
}

#[test]
fn a_drop_against_a_notification_loses_nothing() {
    loom::model(|| {
        let notify = Arc::new(Notify::new());
        let other = Arc::clone(&notify);
        let dropper = thread::spawn(move || {
            let count = std::sync::Arc::default();
            let mut notified = Box::pin(other.notified());
            let consumed = poll(notified.as_mut(), &count);
            drop(notified);
            consumed
        });
        notify.notify_one();
        let consumed = dropper.join().unwrap();
        assert_eq!(notify.lock().permit, !consumed);
        assert!(notify.lock().list.is_empty());
    });
}

#[test]
fn a_drop_passes_its_notification_to_a_waiter() {
    loom::model(|| {
        let notify = Arc::new(Notify::new());
        let count = std::sync::Arc::default();
        let mut first = Box::pin(notify.notified());
        assert!(!poll(first.as_mut(), &count));
        let other = Arc::clone(&notify);
        let notifier = thread::spawn(move || other.notify_one());
        let other = Arc::clone(&notify);
        let waiter = thread::spawn(move || block_on(other.notified()));
        // Whether or not the first waiter has been notified by now, the second one gets the
        // notification.
        drop(first);
        notifier.join().unwrap();
        waiter.join().unwrap();
    });
}

#[test]
fn a_broadcast_against_drops_and_a_later_notification() {
    loom::model(|| {
        let notify = Arc::new(Notify::new());
        let count: std::sync::Arc<Count> = std::sync::Arc::default();
        let mut early: Vec<_> = (0..2).map(|_| Box::pin(notify.notified())).collect();
        for notified in &mut early {
            assert!(!poll(notified.as_mut(), &count));
        }
        let other = Arc::clone(&notify);
        // A batch is one waker here, so the lock is released between the two wakers.
        let notifier = thread::spawn(move || {
            other.notify_waiters();
            other.notify_one();
        });
        let mut last = early.pop().expect("there were two");
        drop(early);
        poll(last.as_mut(), &count);
        notifier.join().unwrap();
        assert!(poll(last.as_mut(), &count));
        drop(last);
        assert!(
            notify.lock().permit,
            "the broadcast came first and had both"
        );
        assert!(notify.lock().list.is_empty());
    });
}

#[test]
fn a_condition_and_a_broadcast() {
    loom::model(|| {
        let shared = Arc::new((Notify::new(), AtomicUsize::new(0)));
        let other = Arc::clone(&shared);
        let setter = thread::spawn(move || {
            other.1.store(1, Ordering::Release);
            other.0.notify_waiters();
        });
        block_on(async {
            loop {
                let notified = shared.0.notified();
                if shared.1.load(Ordering::Acquire) == 1 {
                    break;
                }
                notified.await;
            }
        });
        setter.join().unwrap();
    });
}
