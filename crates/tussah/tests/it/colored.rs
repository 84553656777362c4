//! Colored state, from within a runtime and from other executors.

use std::sync::mpsc;

use futures_lite::future::block_on;
use tussah::{Color, ColorName, Colored, spawn, with_all, yield_now};

use crate::runtime;

#[tussah::test]
async fn each_request_has_the_value_in_turn() {
    let value = Colored::new(0u64);
    let threads: Vec<_> = (0..50)
        .map(|_| {
            let value = value.clone();
            spawn(async move {
                for _ in 0..100 {
                    value.with(|value| *value += 1).await;
                    value.write(|value| *value += 1).await;
                    yield_now().await;
                }
            })
        })
        .collect();
    for thread in threads {
        thread.await.expect("no panic");
    }
    assert_eq!(value.read(|value| *value).await, 10_000);
}

#[test]
fn the_futures_run_on_any_executor() {
    let runtime = runtime(2);
    let value = Colored::new_in(&runtime, vec![1]);
    block_on(async {
        value.with(|value| value.push(2)).await;
        assert_eq!(value.read(|value| value.len()).await, 2);
    });
    assert_eq!(value.try_with(|value| value.pop()).ok(), Some(Some(2)));
}

#[test]
fn posts_to_a_value_keep_their_order() {
    let runtime = runtime(2);
    let value = Colored::new_in(&runtime, Vec::new());
    for n in 0..1000 {
        value.post(move |value| value.push(n)).expect("open");
    }
    let all = block_on(value.with(std::mem::take));
    assert_eq!(all, (0..1000).collect::<Vec<_>>());
}

#[test]
fn a_busy_value_gives_the_closure_back() {
    let runtime = runtime(1);
    let value = Colored::new_in(&runtime, 1);
    let (begun, running) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    value
        .post(move |_| {
            begun.send(()).expect("the test listens");
            assert!(wait.recv().is_err());
        })
        .expect("open");
    running.recv().expect("it began");
    let add = value.try_with(|value| *value += 1).expect_err("it is busy");
    drop(go);
    block_on(value.with(add));
    assert_eq!(block_on(value.read(|value| *value)), 2);
}

#[tussah::test]
async fn several_values_at_once() {
    let accounts: Vec<_> = (0..3).map(|_| Colored::new(100i64)).collect();
    let threads: Vec<_> = (0..30)
        .map(|n| {
            let (from, to) = (accounts[n % 3].clone(), accounts[(n + 1) % 3].clone());
            spawn(async move {
                for _ in 0..20 {
                    with_all((&from, &to), |from: &mut i64, to: &mut i64| {
                        *from -= 1;
                        *to += 1;
                    })
                    .await;
                }
            })
        })
        .collect();
    for thread in threads {
        thread.await.expect("no panic");
    }
    for account in &accounts {
        assert_eq!(account.read(|account| *account).await, 100);
    }
}

#[tussah::test]
async fn a_panic_comes_back_and_poisons_nothing() {
    let value = Colored::new(1);
    let other = value.clone();
    let error = spawn(async move { other.with(|_| panic!("boom")).await }).await;
    assert!(error.expect_err("it panics").is_panic());
    assert_eq!(value.read(|value| *value).await, 1);
}

#[test]
fn the_stats_name_the_colors() {
    let runtime = runtime(1);
    let (sender, receiver) = mpsc::channel();
    runtime
        .post_in(Color(77), move || {
            sender.send(()).expect("the test listens")
        })
        .expect("open");
    receiver.recv().expect("it runs");
    runtime.set_workers(2).expect("it starts");
    assert_eq!(runtime.stats().workers.len(), 2);
    let _: fn(&tussah::ColorStats) -> &ColorName = |stats| &stats.color;
}
