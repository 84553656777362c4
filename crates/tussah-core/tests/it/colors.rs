//! Colors: exclusion, order, readers, several at once, priorities, limits.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Waker};

use fastrand::Rng;
use tussah_core::{Candidate, Color, Colored, Policy, Runtime, with_all};

use crate::runtime;

#[test]
fn reads_run_at_the_same_time() {
    let runtime = runtime(2);
    let value = Colored::new_in(&runtime, 7);
    // Each reader waits inside its read until the other is there too: with one reader at a time
    // this never ends.
    let both = Arc::new(Barrier::new(2));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let (value, both) = (value.clone(), both.clone());
            std::thread::spawn(move || {
                futures_lite::future::block_on(value.read(move |value| {
                    both.wait();
                    *value
                }))
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().expect("no panic"), 7);
    }
}

#[test]
fn a_reader_never_passes_a_queued_writer() {
    let runtime = runtime(1);
    let value = Colored::new_in(&runtime, Vec::new());
    let (entered, enter) = mpsc::channel();
    let (leave, left) = mpsc::channel::<()>();
    let reader = {
        let value = value.clone();
        std::thread::spawn(move || {
            futures_lite::future::block_on(value.read(move |_| {
                entered.send(()).expect("the test listens");
                left.recv().expect("the test tells");
            }));
        })
    };
    enter.recv().expect("the reader is in");
    value.post(|log| log.push("write")).expect("open");
    let mut late = pin!(value.read(|log: &Vec<&str>| log.clone()));
    let polled = late.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    leave.send(()).expect("the reader waits");
    assert!(polled.is_pending(), "it passed the writer: {polled:?}");
    let late = futures_lite::future::block_on(late);
    reader.join().expect("no panic");
    assert_eq!(late, ["write"]);
}

#[test]
fn transfers_keep_the_sum() {
    let runtime = runtime(2);
    let accounts: Arc<Vec<_>> =
        Arc::new((0..10).map(|_| Colored::new_in(&runtime, 100i64)).collect());
    let threads: Vec<_> = (0..8u64)
        .map(|seed| {
            let accounts = accounts.clone();
            runtime.spawn(async move {
                let mut random = Rng::with_seed(seed);
                for _ in 0..500 {
                    let (from, to) = (random.usize(..10), random.usize(..10));
                    if from != to {
                        with_all((&accounts[from], &accounts[to]), |from, to| {
                            *from -= 1;
                            *to += 1;
                        })
                        .await;
                    }
                    if random.u8(..8) == 0 {
                        tussah_core::yield_now().await;
                    }
                }
            })
        })
        .collect();
    let sum = runtime.block_on(async {
        for thread in threads {
            thread.await.expect("no panic");
        }
        let mut sum = 0;
        for account in accounts.iter() {
            sum += account.with(|balance| *balance).await;
        }
        sum
    });
    assert_eq!(sum, 1000);
}

/// Posts an event that keeps the color of the value busy. Returns when it runs, with the sender
/// that ends it.
fn hold(value: &Colored<Vec<&'static str>>) -> mpsc::Sender<()> {
    let (go, wait) = mpsc::channel::<()>();
    let (entered, enter) = mpsc::channel();
    value
        .post(move |_| {
            entered.send(()).expect("the test listens");
            wait.recv().expect("the test tells");
        })
        .expect("open");
    enter.recv().expect("the event began");
    go
}

/// Makes a request for two colors. Those in `busy` are held when it is made, the others are idle.
fn with_all_in_order(busy: [bool; 2]) {
    let runtime = runtime(2);
    let values = [(); 2].map(|()| Colored::new_in(&runtime, Vec::new()));
    let post = |what: &'static str| {
        for value in &values {
            value.post(move |log| log.push(what)).expect("open");
        }
    };
    post("first");
    let held: Vec<_> = values
        .iter()
        .zip(busy)
        .map(|(value, busy)| busy.then(|| hold(value)))
        .collect();
    post("before");
    let mut request = pin!(with_all(
        (&values[0], &values[1]),
        |one: &mut Vec<_>, other: &mut Vec<_>| {
            let seen = (one.clone(), other.clone());
            one.push("both");
            other.push("both");
            seen
        }
    ));
    let begun = runtime.block_on(futures_lite::future::poll_once(&mut request));
    assert!(begun.is_none(), "a color is held");
    post("after");
    // The last color first: the ticket at the head of its queue waits for the other one.
    for go in held.into_iter().rev().flatten() {
        go.send(()).expect("the event waits");
        post("late");
    }
    let before = vec!["first", "before"];
    assert_eq!(runtime.block_on(request), (before.clone(), before));
    for value in &values {
        let log = runtime.block_on(value.with(|log| log.clone()));
        assert_eq!(log[..4], ["first", "before", "both", "after"]);
        assert!(log[4..].iter().all(|&what| what == "late"), "{log:?}");
    }
}

#[test]
fn with_all_waits_for_busy_colors_in_order() {
    with_all_in_order([true, true]);
    with_all_in_order([true, false]);
    with_all_in_order([false, true]);
}

#[test]
#[should_panic(expected = "same color twice")]
fn with_all_refuses_one_color_twice() {
    let runtime = runtime(1);
    let a = Colored::new_in(&runtime, 0);
    drop(with_all((&a, &a), |a: &mut i32, b: &mut i32| *a += *b));
}

/// Runs the items as colors 1, 2, … on one worker that is busy until all are queued. Returns the
/// order.
fn order(runtime: &Runtime, priorities: &[i8]) -> Vec<usize> {
    let (sender, receiver) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let handle = runtime.handle().clone();
    let priorities = priorities.to_vec();
    runtime
        .post(move || {
            wait.recv().expect("the test tells");
            for (index, priority) in priorities.into_iter().enumerate() {
                let color = handle.color(Color(index as u64 + 1));
                color.set_priority(priority);
                let sender = sender.clone();
                handle
                    .post_in(&color, move || {
                        sender.send(index).expect("the test listens")
                    })
                    .expect("open");
            }
        })
        .expect("open");
    go.send(()).expect("the event waits");
    receiver.iter().collect()
}

#[test]
fn priorities_order_colors() {
    assert_eq!(order(&runtime(1), &[0, 5, -3, 5]), [1, 3, 0, 2]);
}

#[test]
fn a_policy_chooses() {
    struct Newest;
    impl Policy for Newest {
        fn choose(&mut self, candidates: &[Candidate]) -> usize {
            candidates.len() - 1
        }
    }
    let runtime = Runtime::builder()
        .workers(1)
        .policy(|| Newest)
        .build()
        .expect("workers start");
    assert_eq!(order(&runtime, &[0, 0, 0]), [2, 1, 0]);
}

#[test]
fn a_full_color_gives_the_closure_back() {
    let runtime = runtime(1);
    let (go, wait) = mpsc::channel::<()>();
    let color = runtime.color(Color(3));
    color.set_depth_max(2);
    runtime
        .post_in(&color, move || wait.recv().expect("the test tells"))
        .expect("open");
    let ran = Arc::new(AtomicUsize::new(0));
    let mut refused = 0;
    for _ in 0..4 {
        let ran = ran.clone();
        if let Err(error) = runtime.post_in(&color, move || {
            ran.fetch_add(1, Ordering::Relaxed);
        }) {
            assert!(error.is_full());
            refused += 1;
        }
    }
    assert!(
        refused >= 2,
        "two may wait, and the first may have begun: {refused} were refused"
    );
    go.send(()).expect("the event waits");
    let report = runtime.shutdown(std::time::Duration::from_secs(10));
    assert!(report.drained);
    assert_eq!(ran.load(Ordering::Relaxed), 4 - refused);
}
