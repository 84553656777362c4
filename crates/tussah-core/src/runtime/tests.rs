//! That a runtime's memory is given back, and when.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

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
    let (sender, receiver) = std::sync::mpsc::channel::<Waker>();
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
    // Held: the second request is queued, and dropped with the entry's end.
    let mut queued = Box::pin(value.with(|value| *value));
    let held = value.try_with(|_| queued.as_mut().poll(&mut Context::from_waker(waker)));
    assert!(matches!(held, Ok(Poll::Pending)));
    drop(queued);
    assert!(matches!(value.try_with(|value| *value), Ok(1)));
    drop(value);
    assert!(weak.upgrade().is_none());
}
