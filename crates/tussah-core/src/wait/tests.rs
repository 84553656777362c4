//! Tests of `Notify` with hand-made polls.

use std::sync::{
    Arc,
    atomic::{AtomicPtr, AtomicUsize, Ordering},
};
use std::task::Wake;

use futures_lite::future::block_on;
use proptest::prelude::*;

use super::*;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Count {
    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A future with its own counting waker.
struct Waiter<'a> {
    notified: Pin<Box<Notified<'a>>>,
    count: Arc<Count>,
}

impl<'a> Waiter<'a> {
    fn new(notify: &'a Notify) -> Self {
        Self {
            notified: Box::pin(notify.notified()),
            count: Arc::default(),
        }
    }

    fn queued(notify: &'a Notify) -> Self {
        let mut this = Self::new(notify);
        assert!(!this.poll());
        this
    }

    fn poll(&mut self) -> bool {
        let waker = Waker::from(Arc::clone(&self.count));
        self.notified
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
    }
}

fn has_permit(notify: &Notify) -> bool {
    notify.lock().permit
}

#[test]
fn a_permit_is_stored_once() {
    let notify = Notify::new();
    notify.notify_one();
    notify.notify_one();
    assert!(has_permit(&notify));
    let mut first = Waiter::new(&notify);
    assert!(first.poll() && first.poll(), "complete, and still complete");
    assert!(!Waiter::new(&notify).poll());
    assert!(!has_permit(&notify));
}

#[test]
fn first_come_first_served() {
    let notify = Notify::new();
    let mut waiters: Vec<_> = (0..4).map(|_| Waiter::queued(&notify)).collect();
    drop(waiters.remove(2));
    for i in 0..3 {
        notify.notify_one();
        let woken: Vec<_> = waiters.iter().map(|waiter| waiter.count.get()).collect();
        assert_eq!(
            woken,
            (0..3).map(|j| usize::from(j <= i)).collect::<Vec<_>>()
        );
    }
    assert!(waiters.iter_mut().all(Waiter::poll));
    assert!(!has_permit(&notify));
}

#[test]
fn a_broadcast_reaches_all_futures_and_leaves_nothing() {
    let notify = Notify::new();
    // More than two batches, so that the lock is released in between.
    let mut waiters: Vec<_> = (0..2 * WAKE_BATCH + 3)
        .map(|_| Waiter::queued(&notify))
        .collect();
    let mut unpolled = Waiter::new(&notify);
    notify.notify_waiters();
    assert!(waiters.iter().all(|waiter| waiter.count.get() == 1));
    assert!(waiters.iter_mut().all(Waiter::poll));
    assert!(unpolled.poll());
    assert!(!Waiter::new(&notify).poll());
    assert!(!has_permit(&notify));
}

#[test]
fn a_broadcast_leaves_the_permit_to_others() {
    let notify = Notify::new();
    let mut early = Waiter::new(&notify);
    notify.notify_waiters();
    notify.notify_one();
    assert!(early.poll());
    assert!(has_permit(&notify));
}

#[test]
fn a_dropped_future_passes_its_notification_on() {
    let notify = Notify::new();
    let first = Waiter::queued(&notify);
    let mut second = Waiter::queued(&notify);
    notify.notify_one();
    assert_eq!(second.count.get(), 0);
    drop(first);
    assert_eq!(second.count.get(), 1);
    assert!(second.poll());
    drop(second);
    assert!(!has_permit(&notify), "it was consumed");

    let only = Waiter::queued(&notify);
    notify.notify_one();
    drop(only);
    assert!(has_permit(&notify));
}

#[test]
fn a_dropped_future_does_not_pass_a_broadcast_on() {
    let notify = Notify::new();
    let first = Waiter::queued(&notify);
    notify.notify_waiters();
    drop(first);
    assert!(!has_permit(&notify));
}

#[test]
fn the_last_waker_counts() {
    let notify = Notify::new();
    let mut waiter = Waiter::queued(&notify);
    let old = std::mem::take(&mut waiter.count);
    assert!(!waiter.poll());
    assert_eq!(Arc::strong_count(&old), 1, "the old waker is gone");
    notify.notify_one();
    assert_eq!((old.get(), waiter.count.get()), (0, 1));
}

#[test]
fn enable_takes_a_place() {
    let notify = Notify::new();
    let mut first = Waiter::new(&notify);
    assert!(!first.notified.as_mut().enable());
    assert!(!first.notified.as_mut().enable());
    let mut second = Waiter::queued(&notify);
    notify.notify_one();
    assert!(first.notified.as_mut().enable() && first.poll());
    assert!(!second.poll());
    notify.notify_one();
    assert!(second.poll());
}

#[test]
fn enable_and_then_poll_is_woken() {
    let notify = Notify::new();
    let mut waiter = Waiter::new(&notify);
    assert!(!waiter.notified.as_mut().enable());
    assert!(!waiter.poll());
    notify.notify_one();
    assert_eq!(waiter.count.get(), 1);
}

#[test]
fn a_waker_that_panics_stops_no_other() {
    struct Bad;
    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            panic!("a foreign waker");
        }
    }
    let notify = Notify::new();
    let mut bad = Box::pin(notify.notified());
    let waker = Waker::from(Arc::new(Bad));
    assert!(
        bad.as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    let mut good = Waiter::queued(&notify);
    notify.notify_waiters();
    assert!(good.poll());
    assert!(
        bad.as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
    );

    let mut bad = Box::pin(notify.notified());
    assert!(
        bad.as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    notify.notify_one();
    assert!(
        bad.as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
    );
}

/// A waker that uses the `Notify` and drops futures, even some that are in the ring of the running
/// broadcast.
#[test]
fn a_waker_may_use_the_notify() {
    struct Reentrant {
        notify: &'static Notify,
        victims: parking_lot::Mutex<Vec<Waiter<'static>>>,
        late: parking_lot::Mutex<Vec<Waiter<'static>>>,
    }
    impl Wake for Reentrant {
        fn wake(self: Arc<Self>) {
            self.victims.lock().clear();
            self.late.lock().push(Waiter::queued(self.notify));
            self.notify.notify_one();
        }
    }
    static NOTIFY: Notify = Notify::new();
    let notify = &NOTIFY;
    let reentrant = Arc::new(Reentrant {
        notify,
        victims: parking_lot::Mutex::default(),
        late: parking_lot::Mutex::default(),
    });
    let waker = Waker::from(Arc::clone(&reentrant));
    let mut first = Box::pin(notify.notified());
    assert!(
        first
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    let mut others: Vec<_> = (0..3 * WAKE_BATCH)
        .map(|_| Waiter::queued(notify))
        .collect();
    // From the middle of the first batch, the middle of the ring, and its end.
    for at in [3 * WAKE_BATCH - 1, 2 * WAKE_BATCH, WAKE_BATCH / 2] {
        let victim = others.remove(at);
        reentrant.victims.lock().push(victim);
    }
    notify.notify_waiters();
    assert!(
        others.iter().all(|waiter| waiter.count.get() == 1),
        "the broadcast, once"
    );
    assert!(others.iter_mut().all(Waiter::poll));
    let mut late = std::mem::take(&mut *reentrant.late.lock());
    assert_eq!(late.len(), 1);
    assert!(
        late[0].poll(),
        "notify_one chose the late one and nobody in the ring"
    );
    assert!(!has_permit(notify));
}

#[test]
fn a_leaked_future_keeps_its_place_and_does_no_harm() {
    let notify = Notify::new();
    // The pointer is reachable from here, so that Miri does not report a leak.
    static LEAKED: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
    let Waiter { notified, count } = Waiter::queued(&notify);
    LEAKED.store(
        std::ptr::from_ref(&*notified).cast_mut().cast(),
        Ordering::Relaxed,
    );
    std::mem::forget(notified);
    // The borrow has ended with the leak, so safe code may move the `Notify`.
    let notify = Box::new(notify);
    let mut second = Waiter::queued(&notify);
    notify.notify_one();
    assert_eq!(count.get(), 1);
    assert!(!second.poll());
    notify.notify_one();
    assert!(second.poll());
}

#[test]
fn a_native_and_a_foreign_waker_in_turn() {
    let notify = Notify::new();
    let mut waiter = Waiter::queued(&notify);
    assert!(
        waiter
            .notified
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
    assert!(!waiter.poll());
    notify.notify_waiters();
    assert_eq!(waiter.count.get(), 1);
}

#[test]
fn os_threads_hand_a_token_around() {
    const THREADS: usize = 3;
    const ROUNDS: usize = if cfg!(miri) { 10 } else { 1000 };
    let seats: Vec<_> = (0..THREADS).map(|_| Notify::new()).collect();
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for i in 0..THREADS {
            let (seats, done) = (&seats, &done);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    block_on(seats[i].notified());
                    done.fetch_add(1, Ordering::Relaxed);
                    seats[(i + 1) % THREADS].notify_one();
                }
            });
        }
        seats[0].notify_one();
    });
    assert_eq!(done.into_inner(), THREADS * ROUNDS);
}

#[test]
fn os_threads_drop_and_broadcast() {
    const ROUNDS: usize = if cfg!(miri) { 20 } else { 2000 };
    let notify = Notify::new();
    std::thread::scope(|scope| {
        let notify = &notify;
        for _ in 0..2 {
            scope.spawn(move || {
                for i in 0..ROUNDS {
                    let mut waiter = Waiter::new(notify);
                    waiter.poll();
                    if i % 2 == 0 {
                        waiter.poll();
                    }
                }
            });
        }
        scope.spawn(move || {
            for i in 0..ROUNDS {
                if i % 3 == 0 {
                    notify.notify_waiters()
                } else {
                    notify.notify_one()
                }
            }
        });
    });
    assert!(notify.lock().list.is_empty());
}

/// The number selects one of the latest futures; 0 is the future that was made last.
#[derive(Clone, Copy, Debug)]
enum Op {
    Make,
    Poll(usize),
    Drop(usize),
    One,
    All,
}

/// The state of a future in the model: a plain list instead of links.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Model {
    New { broadcasts: usize },
    Waits,
    Given(Notification),
    Done,
}

#[derive(Default)]
struct Line {
    models: Vec<Option<Model>>,
    queue: Vec<usize>,
    permit: bool,
    broadcasts: usize,
}

impl Line {
    fn one(&mut self) {
        if self.queue.is_empty() {
            self.permit = true;
        } else {
            let first = self.queue.remove(0);
            self.models[first] = Some(Model::Given(Notification::One));
        }
    }

    fn all(&mut self) {
        self.broadcasts += 1;
        for i in std::mem::take(&mut self.queue) {
            self.models[i] = Some(Model::Given(Notification::All));
        }
    }

    fn poll(&mut self, i: usize) -> bool {
        let after = match self.models[i].expect("the future exists") {
            Model::New { broadcasts } if broadcasts != self.broadcasts => Model::Done,
            Model::New { .. } if std::mem::take(&mut self.permit) => Model::Done,
            Model::New { .. } => {
                self.queue.push(i);
                Model::Waits
            }
            Model::Waits => Model::Waits,
            Model::Given(_) | Model::Done => Model::Done,
        };
        self.models[i] = Some(after);
        after == Model::Done
    }

    fn drop(&mut self, i: usize) {
        self.queue.retain(|&other| other != i);
        if self.models[i].take() == Some(Model::Given(Notification::One)) {
            self.one();
        }
    }
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => Just(Op::Make),
        4 => (0..8_usize).prop_map(Op::Poll),
        2 => (0..8_usize).prop_map(Op::Drop),
        2 => Just(Op::One),
        1 => Just(Op::All),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 512 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn behaves_as_a_plain_line(ops in prop::collection::vec(op(), 1..if cfg!(miri) { 40 } else { 80 })) {
        let notify = Notify::new();
        let mut line = Line::default();
        let mut waiters: Vec<Option<Waiter<'_>>> = Vec::new();
        for op in ops {
            let made = waiters.len();
            let latest = |back: usize| made.checked_sub(back + 1);
            match op {
                Op::Make => {
                    waiters.push(Some(Waiter::new(&notify)));
                    line.models.push(Some(Model::New { broadcasts: line.broadcasts }));
                }
                Op::One => {
                    notify.notify_one();
                    line.one();
                }
                Op::All => {
                    notify.notify_waiters();
                    line.all();
                }
                Op::Poll(back) => {
                    let Some(i) = latest(back) else { continue };
                    if let Some(waiter) = &mut waiters[i] {
                        prop_assert_eq!(waiter.poll(), line.poll(i));
                    }
                }
                Op::Drop(back) => {
                    let Some(i) = latest(back) else { continue };
                    if waiters[i].take().is_some() {
                        line.drop(i);
                    }
                }
            }
            for (waiter, model) in waiters.iter().zip(&line.models) {
                if let (Some(waiter), Some(model)) = (waiter, model) {
                    let woken = waiter.count.get() == 1;
                    match model {
                        Model::New { .. } | Model::Waits => prop_assert!(!woken),
                        Model::Given(_) => prop_assert!(woken),
                        Model::Done => {}
                    }
                }
            }
            prop_assert_eq!(has_permit(&notify), line.permit);
        }
    }
}

/// A thread's waker is native: it is stored in the node without a box.
#[test]
fn threads_wait_natively() {
    let runtime = crate::Runtime::builder().workers(2).build().unwrap();
    let (notify, passed) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let threads: Vec<_> = (0..WAKE_BATCH + 5)
        .map(|_| {
            let (notify, passed) = (Arc::clone(&notify), Arc::clone(&passed));
            runtime.handle().spawn(async move {
                let mut notified = std::pin::pin!(notify.notified());
                std::future::poll_fn(|context| {
                    let tiny = TinyWaker::from_waker(context.waker());
                    assert_eq!(format!("{tiny:?}"), "TinyWaker(native)");
                    assert!(tiny.will_wake(context.waker()) && !tiny.will_wake(Waker::noop()));
                    notified.as_mut().poll(context)
                })
                .await;
                passed.fetch_add(1, Ordering::Relaxed);
                // One waiter after the other.
                notify.notify_one();
            })
        })
        .collect();
    notify.notify_one();
    runtime.handle().block_on(async {
        for thread in threads {
            thread.await.unwrap();
        }
    });
    assert_eq!(passed.load(Ordering::Relaxed), WAKE_BATCH + 5);
    assert!(has_permit(&notify));
}
