//! Tests whether and when a runtime's memory is freed.

use std::panic::Location;
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::{Color, Colored, Runtime};

fn runtime() -> Runtime {
    Runtime::builder()
        .workers(2)
        .build()
        .expect("workers start")
}

#[test]
fn a_runtime_is_freed_with_its_last_handle() {
    let runtime = runtime();
    let weak = Arc::downgrade(&runtime.handle().shared);
    runtime.post_in(Color(5), || {}).expect("open");
    let value = Colored::new_in(&runtime, 1);
    let color = runtime.color(Color(6));
    runtime.block_on(runtime.spawn(async {})).expect("no panic");
    drop(runtime.spawn(std::future::pending::<()>()));
    drop(runtime);
    assert!(weak.upgrade().is_some(), "the value and the color keep it");
    drop(value);
    drop(color);
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_waker_keeps_the_memory_of_its_runtime() {
    let runtime = runtime();
    let weak = Arc::downgrade(&runtime.handle().shared);
    let (sender, receiver) = mpsc::channel::<Waker>();
    let thread = runtime.spawn(std::future::poll_fn(move |context: &mut Context<'_>| {
        let _ = sender.send(context.waker().clone());
        Poll::<()>::Pending
    }));
    let waker = receiver.recv().expect("the thread was polled");
    drop(runtime);
    assert!(thread.is_finished(), "its future was dropped");
    waker.wake_by_ref();
    drop(thread);
    assert!(weak.upgrade().is_some());
    drop(waker);
    assert!(weak.upgrade().is_none());
}

#[test]
fn requests_after_the_end_need_no_worker() {
    let runtime = runtime();
    let weak = Arc::downgrade(&runtime.handle().shared);
    let value = Colored::new_in(&runtime, 1);
    drop(runtime);
    let waker = Waker::noop();
    // The color is held: the second request is queued, and dropped at the end of the entry.
    let mut queued = Box::pin(value.with(|value| *value));
    let held = value.try_with(|_| queued.as_mut().poll(&mut Context::from_waker(waker)));
    assert!(matches!(held, Ok(Poll::Pending)));
    drop(queued);
    assert!(matches!(value.try_with(|value| *value), Ok(1)));
    drop(value);
    assert!(weak.upgrade().is_none());
}

/// Acts like an OS thread that found the runtime open and then stalls until the shutdown is over.
#[test]
fn a_thread_that_is_started_after_the_end_keeps_the_memory() {
    let runtime = runtime();
    let handle = runtime.handle().clone();
    let weak = Arc::downgrade(&handle.shared);
    drop(runtime);
    let started = || handle.start(Location::caller(), std::future::pending::<()>());
    // More than one thread: no memory is in use between them.
    drop(started());
    assert_eq!(weak.strong_count(), 1, "nothing but the handle");
    let [first, last] = [started(), started()];
    let abort = last.abort_handle();
    drop(handle);
    assert_eq!(weak.strong_count(), 1, "the threads keep the memory");
    assert!(first.is_finished() && last.is_finished());
    drop((first, last));
    assert_eq!(weak.strong_count(), 1);
    drop(abort);
    assert_eq!(weak.strong_count(), 0);
}

/// Posts an event that holds its worker until the sender is dropped, and waits for the event to
/// begin.
fn hold(runtime: &Runtime, color: u64) -> mpsc::Sender<()> {
    let (release, released) = mpsc::channel();
    let (begin, begun) = mpsc::channel();
    let event = move || {
        let _ = begin.send(());
        let _ = released.recv();
    };
    runtime.post_in(Color(color), event).expect("open");
    begun.recv().expect("it runs");
    release
}

#[test]
#[cfg_attr(miri, ignore = "it leaks on purpose")]
fn a_worker_that_is_left_behind_keeps_the_memory() {
    let runtime = runtime();
    let weak = Arc::downgrade(&runtime.handle().shared);
    let thread = runtime.spawn(std::future::pending::<()>());
    let release = hold(&runtime, 7);
    assert_eq!(runtime.shutdown(Duration::ZERO).workers_stuck, 1);
    assert_eq!(weak.strong_count(), 2, "the worker, and what is left");
    drop(release);
    while weak.strong_count() > 1 {
        std::thread::yield_now();
    }
    assert!(!thread.is_finished());
}

#[test]
#[cfg_attr(miri, ignore = "it leaks on purpose")]
fn the_shutdown_does_not_wait_for_a_change_of_workers() {
    let runtime = runtime();
    let handle = runtime.handle().clone();
    let release = [7, 8].map(|color| hold(&runtime, color));
    handle.set_workers(1).expect("one is left");
    let changer = {
        let handle = handle.clone();
        std::thread::spawn(move || handle.set_workers(2))
    };
    while handle.shared.os_threads.try_lock().is_some() {
        std::thread::yield_now();
    }
    assert_eq!(runtime.shutdown(Duration::ZERO).workers_stuck, 2);
    let error = changer.join().expect("no panic");
    assert!(error.is_err(), "the runtime is shut down");
    drop(release);
}

/// Returns whether any worker has to wait for descriptors.
fn waits_for_descriptors(shared: &super::Shared) -> bool {
    (0..shared.places()).any(|place| shared.waits(place))
}

/// Without waiters for descriptors, no worker polls for them, although the drivers of removed
/// workers stay.
#[test]
fn a_removed_worker_leaves_no_descriptors() {
    let runtime = Runtime::builder().workers(3).build();
    let runtime = runtime.expect("workers start");
    let shared = &runtime.handle().shared;
    for workers in [1, 2, 3, 1] {
        runtime.set_workers(workers).expect("it may be");
        assert!(!waits_for_descriptors(shared), "{workers} workers");
    }
}

/// A removed worker no longer serves its timers: a thread that sets a timer earlier than all others
/// wakes another worker.
#[test]
fn a_timer_of_a_removed_worker_wakes_another() {
    let runtime = runtime();
    let shared = &runtime.handle().shared;
    runtime.set_workers(1).expect("nothing is in the way");
    let before = loop {
        if let Some(parks) = shared.idle.all_parked() {
            break parks;
        }
        std::thread::yield_now();
    };
    shared.place(1).shard.notify();
    // Either the worker is awake, or it has parked again since then.
    assert_ne!(shared.idle.all_parked(), Some(before), "nobody was woken");
}

/// The second driver cannot be adopted, and afterwards nothing has changed.
#[test]
fn a_shrink_that_fails_half_way_leaves_all_as_it_was() {
    let runtime = Runtime::builder().workers(3).build();
    let runtime = runtime.expect("workers start");
    let shared = &runtime.handle().shared;
    // The kernel refuses to let two epoll instances monitor each other.
    let (first, last) = (shared.driver_of(0), shared.driver_of(2));
    last.adopt(first, 0).expect("no limit is reached");
    let error = runtime.set_workers(1).expect_err("it would be a cycle");
    assert_eq!(
        error.raw_os_error(),
        Some(rustix::io::Errno::LOOP.raw_os_error())
    );
    last.give_up(first);
    assert!(!waits_for_descriptors(shared));
    shared.adopt(1).expect("it was given up");
    shared.give_up(1);
    // All three threads run, since each of them waits for the others.
    let all_here = Arc::new(Barrier::new(3));
    let threads = [(); 3].map(|()| {
        let all_here = all_here.clone();
        runtime.spawn(async move {
            all_here.wait();
        })
    });
    for thread in threads {
        runtime.block_on(thread).expect("no panic");
    }
    runtime.set_workers(1).expect("nothing is in the way");
}

/// A worker that finds an edge meant for a worker that has since woken drops the edge. Otherwise it
/// would be passed on forever.
#[test]
fn a_wake_that_is_left_over_is_not_passed_on() {
    use crate::driver::Events;
    use crate::worker::Worker;
    let runtime = runtime();
    let shared = runtime.handle().shared.clone();
    let (tell, told) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let held = runtime.spawn(async move {
        let place = Worker::with(|worker| worker.map(|worker| worker.index));
        tell.send(place.expect("a thread runs on a worker"))
            .expect("the test listens");
        let _ = released.recv();
    });
    let place = told.recv().expect("the thread runs");
    // Both workers are told to wake: the note and the edge remain, although the worker is awake.
    let driver = shared.driver_of(place);
    shared.unpark(place);
    driver.wake();
    shared.look_for(place, &mut Events::new());
    let mut events = Events::new();
    driver.look(&mut events);
    assert!(!events.has_wake(), "it was passed on");
    drop(release);
    runtime.block_on(held).expect("no panic");
}
