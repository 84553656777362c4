//! Requests that are cancelled while their color is in a long event.

use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Waker};

use tussah_core::{Colored, Runtime, with_all};

use crate::{HANG, runtime};

const REQUESTS: usize = if cfg!(miri) { 300 } else { 30_000 };

/// Bound, in bytes: the memory for the requests of a test, enough for some hundreds of them but not
/// for all.
const BYTES: usize = 2 << 20;

/// Polls a request once and drops it.
pub fn give_up<R>(request: impl Future<Output = R>) {
    let polled = pin!(request).poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "the color is not free");
}

/// Posts an event of a value that runs until the sender is dropped.
pub fn hold<T: Send + 'static>(value: &Colored<T>) -> mpsc::Sender<()> {
    let (leave, left) = mpsc::channel::<()>();
    let (entered, enter) = mpsc::channel();
    let posted = value.post(move |_| {
        entered.send(()).expect("the test listens");
        assert!(left.recv().is_err(), "nothing is sent");
    });
    posted.expect("the runtime is open");
    enter.recv().expect("the event runs");
    leave
}

/// The captured data of a closure, so that a request is large.
type Load = [u8; 256];

fn check_memory(runtime: &Runtime, f: impl FnOnce()) {
    let before = runtime.stats().slab_bytes;
    f();
    let bytes = runtime.stats().slab_bytes.saturating_sub(before);
    assert!(bytes <= BYTES, "cancelled requests take {bytes} bytes");
}

#[test]
fn cancelled_requests_leave_the_queue() {
    let runtime = runtime(1);
    let value = Colored::new_in(&runtime, 0);
    let held = hold(&value);
    let load: Load = [1; 256];
    check_memory(&runtime, || {
        for _ in 0..REQUESTS {
            give_up(value.with(move |sum| *sum += load[0]));
            give_up(value.read(move |sum| *sum + load[0]));
        }
    });
    drop(held);
    assert_eq!(runtime.block_on(value.with(|sum| *sum)), 0, "a request ran");
}

#[test]
fn cancelled_requests_for_two_colors_leave_both_queues() {
    let runtime = runtime(2);
    let values = [0, 0].map(|sum| Colored::new_in(&runtime, sum));
    let held = values.each_ref().map(hold);
    let load: Load = [1; 256];
    check_memory(&runtime, || {
        for _ in 0..REQUESTS {
            give_up(with_all((&values[0], &values[1]), move |one, other| {
                *one += load[0];
                *other += load[0];
            }));
        }
    });
    drop(held);
    for value in values {
        assert_eq!(runtime.block_on(value.with(|sum| *sum)), 0, "a request ran");
    }
}

/// A request that waits for a busy color and is cancelled does not keep the other one, whether its
/// ticket arrives there before or after.
#[test]
fn a_cancelled_request_for_two_colors_keeps_none() {
    let runtime = runtime(2);
    let [busy, free] = [0, 0].map(|sum| Colored::new_in(&runtime, sum));
    let held = hold(&busy);
    for arrives_first in [true, false] {
        let held_too = (!arrives_first).then(|| hold(&free));
        let mut request = Box::pin(with_all((&busy, &free), |one, other| *one += *other + 1));
        let polled = request
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "a color is not free");
        if arrives_first {
            runtime.block_on(runtime.spawn(async {})).expect("no panic");
        }
        drop(request);
        drop(held_too);
        let (ran, runs) = mpsc::channel();
        let posted = free.post(move |_| ran.send(()).expect("the test listens"));
        posted.expect("the runtime is open");
        runs.recv_timeout(HANG).expect("the color is free");
    }
    drop(held);
    assert_eq!(runtime.block_on(busy.with(|sum| *sum)), 0, "a request ran");
}

#[test]
fn several_cancelled_requests_leave_the_queue_at_once() {
    let runtime = runtime(1);
    let value = Colored::new_in(&runtime, ());
    let held = hold(&value);
    let load: Load = [1; 256];
    // The oldest of five is cancelled each time, so the newest one never is.
    let mut waiting = std::collections::VecDeque::new();
    check_memory(&runtime, || {
        for _ in 0..REQUESTS {
            let mut request = Box::pin(value.with(move |()| load[0]));
            let polled = request
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending(), "the color is not free");
            waiting.push_back(request);
            if waiting.len() > 5 {
                waiting.pop_front();
            }
        }
    });
    drop(held);
    for request in waiting {
        assert_eq!(runtime.block_on(request), 1);
    }
}

#[test]
fn an_event_that_cancels_requests_to_its_own_color_does_not_fill_the_queue() {
    let runtime = runtime(1);
    let value = Colored::new_in(&runtime, 0);
    let own = value.clone();
    let load: Load = [1; 256];
    let (begun, begin) = mpsc::channel();
    let (leave, left) = mpsc::channel::<()>();
    check_memory(&runtime, || {
        let posted = value.post(move |_| {
            for _ in 0..REQUESTS {
                give_up(own.with(move |sum| *sum += load[0]));
            }
            begun.send(()).expect("the test listens");
            assert!(left.recv().is_err(), "nothing is sent");
        });
        posted.expect("the runtime is open");
        begin.recv().expect("the event runs");
    });
    drop(leave);
    assert_eq!(runtime.block_on(value.with(|sum| *sum)), 0, "a request ran");
}

/// Each post to its own color moves the requests of others to where only the event can reach them.
#[test]
fn requests_cancelled_between_two_posts_of_an_event_leave_the_queue() {
    const AT_ONCE: usize = 20;
    let rounds = REQUESTS / AT_ONCE;
    let runtime = runtime(1);
    let value = Colored::new_in(&runtime, 0);
    let own = value.clone();
    let load: Load = [1; 256];
    let (asked, ask) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel();
    let posted = value.post(move |_| {
        for () in goes_on {
            own.post(|sum| *sum += 1).expect("the runtime is open");
            asked.send(()).expect("the test listens");
        }
    });
    posted.expect("the runtime is open");
    check_memory(&runtime, || {
        for _ in 0..rounds {
            let request = |_| {
                let mut request = Box::pin(value.with(move |sum| *sum += usize::from(load[0])));
                let polled = request
                    .as_mut()
                    .poll(&mut Context::from_waker(Waker::noop()));
                assert!(polled.is_pending(), "the color is not free");
                request
            };
            let requests = Vec::from_iter((0..AT_ONCE).map(request));
            go_on.send(()).expect("the event listens");
            ask.recv().expect("the event posts");
            drop(requests);
        }
    });
    drop(go_on);
    let sum = runtime.block_on(value.with(|sum| *sum));
    assert_eq!(sum, rounds, "a request ran, or a post did not");
}

#[test]
fn a_cancelled_request_does_not_move_the_others() {
    let runtime = runtime(1);
    let value = Colored::new_in(&runtime, Vec::new());
    let held = hold(&value);
    let mut waiting = Vec::new();
    for number in 0..300 {
        give_up(value.with(|log| log.push(usize::MAX)));
        if number % 3 == 0 {
            value.post(move |log| log.push(number)).expect("open");
        } else {
            let mut request = Box::pin(value.with(move |log| log.push(number)));
            let polled = request
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending(), "the color is not free");
            waiting.push(request);
        }
    }
    drop(held);
    let log = runtime.block_on(value.with(std::mem::take));
    assert_eq!(log, Vec::from_iter(0..300));
}

/// A request for two colors has one of them when it is cancelled. That color goes on before the
/// other one's event ends.
#[test]
fn a_color_goes_on_after_a_cancelled_request_had_it() {
    let runtime = runtime(2);
    let (busy, idle) = (Colored::new_in(&runtime, ()), Colored::new_in(&runtime, 7));
    let held = hold(&busy);
    give_up(with_all((&idle, &busy), |_, ()| ()));
    for _ in 0..100 {
        give_up(busy.with(|()| ()));
    }
    assert_eq!(runtime.block_on(idle.with(|value| *value)), 7);
    drop(held);
}

/// Only an event of the color reaches its own requests. It does not count those that are cancelled
/// elsewhere.
#[test]
fn requests_of_an_event_to_its_own_color_that_another_cancels_leave_the_queue() {
    let runtime = runtime(1);
    let value = Colored::new_in(&runtime, 0);
    let (own, elsewhere) = (value.clone(), Colored::new_in(&runtime, ()));
    let load: Load = [1; 256];
    let (begun, begin) = mpsc::channel();
    let (leave, left) = mpsc::channel::<()>();
    check_memory(&runtime, || {
        let posted = value.post(move |_| {
            for _ in 0..REQUESTS {
                let mut request = Box::pin(own.with(move |sum| *sum += load[0]));
                let polled = request
                    .as_mut()
                    .poll(&mut Context::from_waker(Waker::noop()));
                assert!(polled.is_pending(), "the color is not free");
                assert!(elsewhere.try_with(|()| drop(request)).is_ok());
            }
            begun.send(()).expect("the test listens");
            assert!(left.recv().is_err(), "nothing is sent");
        });
        posted.expect("the runtime is open");
        begin.recv().expect("the event runs");
    });
    drop(leave);
    assert_eq!(runtime.block_on(value.with(|sum| *sum)), 0, "a request ran");
}
