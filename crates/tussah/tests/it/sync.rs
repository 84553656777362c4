//! Synchronization between OS threads that block: none of it needs a runtime.

mod limit;

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    thread,
};

use futures_lite::future::{block_on, poll_once, yield_now, zip};
use tussah::{
    local::AccessError,
    sync::{Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore, mpmc, mpsc, oneshot, watch},
};

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn is_send<T: Send>(value: T) -> T {
    value
}

#[test]
fn a_mutex_is_held_over_awaits() {
    let counter = Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                block_on(is_send(async {
                    for _ in 0..100 {
                        let mut guard = counter.lock().await;
                        let before = *guard;
                        yield_now().await;
                        *guard = before + 1;
                    }
                }));
            });
        }
    });
    assert_eq!(counter.into_inner(), 300);
}

#[test]
fn a_panic_does_not_poison() {
    let mutex = Mutex::new(0);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        block_on(async {
            let _guard = mutex.lock().await;
            panic!("with the lock");
        });
    }));
    assert!(panicked.is_err());
    assert!(mutex.try_lock().is_some());
}

#[test]
fn a_dropped_lock_future_gives_up_its_place() {
    let mutex = Mutex::new(());
    let guard = mutex.try_lock().expect("free");
    let mut first = Box::pin(mutex.lock());
    let mut second = Box::pin(mutex.lock());
    assert!(poll(first.as_mut()).is_pending());
    assert!(poll(second.as_mut()).is_pending());
    drop(guard);
    drop(first);
    assert!(poll(second.as_mut()).is_ready());
}

#[test]
fn a_semaphore_admits_as_many_as_it_has_permits() {
    let (limit, inside, most) = (Semaphore::new(2), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                block_on(async {
                    for _ in 0..50 {
                        let _permit = limit.acquire().await;
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        yield_now().await;
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            });
        }
    });
    assert!(most.into_inner() <= 2);
    assert_eq!(limit.available_permits(), 2);
}

#[test]
fn a_barrier_has_one_leader_a_round() {
    let (barrier, leaders) = (Barrier::new(3), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..20 {
                    if block_on(barrier.wait()).is_leader() {
                        leaders.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(leaders.into_inner(), 20);
}

#[test]
fn a_waiting_writer_keeps_new_readers_out() {
    let lock = RwLock::new(0);
    let reader = lock.try_read().expect("free");
    let mut writer = Box::pin(lock.write());
    assert!(poll(writer.as_mut()).is_pending());
    assert!(lock.try_read().is_none());
    drop(reader);
    let Poll::Ready(mut guard) = poll(writer.as_mut()) else {
        panic!("no reader is left")
    };
    *guard += 1;
    drop(guard);
    assert_eq!(*block_on(lock.read()), 1);
}

#[test]
fn a_once_cell_outlives_a_cancelled_maker() {
    let cell = OnceCell::new();
    let mut maker = Box::pin(cell.get_or_init(std::future::pending::<u32>));
    assert!(poll(maker.as_mut()).is_pending());
    drop(maker);
    assert_eq!(*block_on(cell.get_or_init(|| async { 2 })), 2);
}

#[test]
fn notify_goes_between_os_threads() {
    let notify = Arc::new(Notify::new());
    let other = Arc::clone(&notify);
    let waiter = thread::spawn(move || block_on(is_send(other.notified())));
    notify.notify_one();
    waiter.join().unwrap();
}

#[test]
fn oneshot_sends_drops_and_gives_back() {
    let (sender, receiver) = oneshot::channel();
    let waiter = thread::spawn(|| block_on(is_send(async { receiver.await })));
    sender.send(5).unwrap();
    assert_eq!(waiter.join().unwrap(), Ok(5));

    let (sender, receiver) = oneshot::channel::<u8>();
    let waiter = thread::spawn(|| block_on(async { receiver.await }));
    drop(sender);
    assert_eq!(waiter.join().unwrap(), Err(oneshot::RecvError));
}

#[test]
fn mpsc_bounds_orders_and_closes() {
    let (sender, mut receiver) = mpsc::channel(2);
    assert_eq!((sender.capacity(), receiver.capacity()), (2, 2));
    sender.try_send(1).unwrap();
    sender.try_send(2).unwrap();
    assert_eq!(sender.try_send(3), Err(mpsc::TrySendError::Full(3)));
    let mut waiting = Box::pin(sender.send(4));
    assert!(poll(waiting.as_mut()).is_pending());
    drop(waiting);
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(1), Ok(2)));
    assert_eq!(
        receiver.try_recv(),
        Err(mpsc::TryRecvError::Empty),
        "the dropped send sent nothing"
    );

    let other = sender.clone();
    assert!(other.same_channel(&sender));
    other.try_send(5).unwrap();
    assert!(receiver.close() && !receiver.close());
    assert!(other.is_closed());
    assert_eq!(block_on(sender.send(6)), Err(mpsc::SendError(6)));
    block_on(sender.closed());
    assert_eq!(block_on(receiver.recv()), Ok(5));
    assert_eq!(block_on(receiver.recv()), Err(mpsc::RecvError));
}

#[test]
fn mpsc_from_many_os_threads_keeps_each_order() {
    let (sender, mut receiver) = mpsc::channel(4);
    let senders: Vec<_> = (0..3)
        .map(|who| {
            let sender = sender.clone();
            thread::spawn(move || {
                block_on(async {
                    for i in 0..200 {
                        sender.send((who, i)).await.unwrap();
                    }
                });
            })
        })
        .collect();
    drop(sender);
    let mut next = [0; 3];
    while let Ok((who, i)) = block_on(receiver.recv()) {
        assert_eq!(i, next[who]);
        next[who] += 1;
    }
    assert_eq!(next, [200; 3]);
    for sender in senders {
        sender.join().unwrap();
    }
}

#[test]
fn mpmc_gives_each_value_to_one() {
    let (sender, receiver) = mpmc::channel(3);
    let receivers: Vec<_> = (0..2)
        .map(|_| {
            let receiver = receiver.clone();
            thread::spawn(move || {
                let mut got = Vec::new();
                while let Ok(i) = block_on(receiver.recv()) {
                    got.push(i);
                }
                got
            })
        })
        .collect();
    drop(receiver);
    for i in 0..300 {
        sender.send_blocking(i).unwrap();
    }
    drop(sender);
    let mut all: Vec<i32> = Vec::new();
    for receiver in receivers {
        let got = receiver.join().unwrap();
        assert!(got.is_sorted());
        all.extend(got);
    }
    all.sort_unstable();
    assert_eq!(all, (0..300).collect::<Vec<_>>());
}

#[test]
#[should_panic = "the capacity of a channel must be at least 1"]
fn mpsc_without_room() {
    drop(mpsc::channel::<()>(0));
}

#[test]
#[should_panic = "the capacity of a channel must be at least 1"]
fn mpmc_without_room() {
    drop(mpmc::channel::<()>(0));
}

#[test]
fn watch_skips_to_the_latest() {
    let (sender, mut receiver) = watch::channel(0);
    assert_eq!(receiver.has_changed(), Ok(false));
    sender.send(1).unwrap();
    sender.send(2).unwrap();
    assert_eq!(receiver.has_changed(), Ok(true));
    assert_eq!(*receiver.borrow(), 2);
    assert_eq!(receiver.has_changed(), Ok(true), "a borrow does not count");
    assert_eq!(block_on(receiver.changed()), Ok(()));
    assert!(block_on(poll_once(receiver.changed())).is_none());
    sender.send_modify(|value| *value += 1);
    assert_eq!(*receiver.borrow_and_update(), 3);
    assert_eq!(receiver.has_changed(), Ok(false));
    assert!(!sender.send_if_modified(|_| false));
    assert_eq!(receiver.has_changed(), Ok(false));
}

#[test]
fn each_end_of_a_watch_sees_that_the_other_was_dropped() {
    let (sender, mut receiver) = watch::channel(0);
    let second = sender.clone();
    sender.send(1).unwrap();
    drop(sender);
    let mut late = second.subscribe();
    assert!(receiver.same_channel(&late));
    drop(second);
    assert_eq!(
        receiver.has_changed(),
        Ok(true),
        "the last value before the end"
    );
    block_on(receiver.changed()).unwrap();
    assert!(block_on(receiver.changed()).is_err() && receiver.has_changed().is_err());
    assert!(
        block_on(late.changed()).is_err(),
        "it had seen the value when it was made"
    );
    assert_eq!(*receiver.borrow(), 1);

    let (sender, receiver) = watch::channel(0);
    let clone = receiver.clone();
    assert_eq!(sender.receivers(), 2);
    let mut closed = Box::pin(sender.closed());
    assert!(poll(closed.as_mut()).is_pending());
    drop(receiver);
    assert!(poll(closed.as_mut()).is_pending());
    drop(clone);
    assert!(poll(closed.as_mut()).is_ready());
    assert_eq!(sender.send(1), Err(watch::SendError(1)));
    assert_eq!(sender.send_replace(2), 0);
    let again = sender.subscribe();
    assert_eq!(*again.borrow(), 2);
    assert!(!sender.is_closed());
}

#[test]
fn watch_outlives_a_panic() {
    let (sender, receiver) = watch::channel(0);
    let change = AssertUnwindSafe(|| {
        sender.send_modify(|value| {
            *value = 1;
            panic!("in the middle");
        });
    });
    assert!(catch_unwind(change).is_err());
    assert_eq!(receiver.has_changed(), Ok(false));
    sender.send_modify(|value| *value += 1);
    assert_eq!(*receiver.borrow(), 2);
}

#[test]
fn watchers_on_os_threads_see_the_end() {
    let (sender, receiver) = watch::channel(0);
    let watchers: Vec<_> = (0..3)
        .map(|_| {
            let mut receiver = receiver.clone();
            thread::spawn(move || {
                block_on(is_send(async move {
                    let mut last = 0;
                    while receiver.changed().await.is_ok() {
                        let now = *receiver.borrow_and_update();
                        assert!(now >= last);
                        last = now;
                    }
                    last
                }))
            })
        })
        .collect();
    let mut waiting = receiver;
    let half = thread::spawn(move || {
        block_on(is_send(async move {
            *waiting.wait_for(|&value| value >= 250).await.unwrap()
        }))
    });
    for i in 1..=500 {
        sender.send(i).unwrap();
    }
    drop(sender);
    for watcher in watchers {
        assert_eq!(watcher.join().unwrap(), 500);
    }
    assert!(half.join().unwrap() >= 250);
}

#[test]
fn wait_for_that_cannot_come() {
    let (sender, mut receiver) = watch::channel(1);
    assert_eq!(
        *block_on(receiver.wait_for(|&value| value == 1)).unwrap(),
        1
    );
    drop(sender);
    assert!(block_on(receiver.wait_for(|&value| value == 2)).is_err());
}

tussah::task_local! {
    static NAME: &'static str;
    static OWNED: Arc<AtomicUsize>;
}

#[test]
fn locals_follow_their_future() {
    let read = |name: &'static str| {
        NAME.scope(name, async move {
            for _ in 0..3 {
                assert_eq!(NAME.get(), name);
                yield_now().await;
            }
            NAME.scope("inner", async { assert_eq!(NAME.get(), "inner") })
                .await;
            assert_eq!(NAME.get(), name);
            name
        })
    };
    // Polled in turn on one OS thread.
    assert_eq!(block_on(zip(is_send(read("a")), read("b"))), ("a", "b"));
    assert!(NAME.try_with(|_| ()).is_err_and(|_: AccessError| true));

    // And then on another.
    let mut moved = Box::pin(read("c"));
    assert!(poll(moved.as_mut()).is_pending());
    assert_eq!(thread::spawn(|| block_on(moved)).join().unwrap(), "c");
}

#[test]
fn locals_are_restored_after_a_panic() {
    NAME.sync_scope("outer", || {
        let future = NAME.scope("inner", async { panic!("inside") });
        assert!(catch_unwind(AssertUnwindSafe(|| block_on(future))).is_err());
        assert_eq!(NAME.get(), "outer");
        let call = || NAME.sync_scope("inner", || panic!("inside"));
        assert!(catch_unwind(call).is_err());
        assert_eq!(NAME.get(), "outer");
    });
    assert!(NAME.try_with(|_| ()).is_err());
}

#[test]
fn destructors_see_their_local() {
    struct Reads;
    impl Drop for Reads {
        fn drop(&mut self) {
            OWNED.with(|count| count.fetch_add(1, Ordering::Relaxed));
        }
    }
    let count = Arc::new(AtomicUsize::new(0));
    {
        let reads = Reads;
        let mut future = pin!(OWNED.scope(Arc::clone(&count), async {
            let _reads = reads;
            std::future::pending::<()>().await;
        }));
        assert!(poll(future.as_mut()).is_pending());
    }
    assert_eq!(count.load(Ordering::Relaxed), 1);
    let reads = Reads;
    block_on(OWNED.scope(Arc::clone(&count), async move { drop(reads) }));
    assert_eq!(count.load(Ordering::Relaxed), 2);
    assert_eq!(Arc::strong_count(&count), 1);
}

#[test]
#[should_panic = "read outside its scope"]
fn a_local_that_is_not_set() {
    let _ = NAME.get();
}

#[test]
#[should_panic = "inside `with` of the same local"]
fn a_local_that_is_in_use() {
    NAME.sync_scope("outer", || NAME.with(|_| NAME.sync_scope("inner", || ())));
}
