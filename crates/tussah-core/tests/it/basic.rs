//! Threads, events and colored values in their simplest use.

use std::sync::mpsc;
use std::time::Duration;

use tussah_core::{Color, Colored};

use crate::runtime;

#[test]
fn spawn_gives_the_result() {
    let runtime = runtime(2);
    let handle = runtime.spawn(async { 6 * 7 });
    assert_eq!(runtime.block_on(handle).expect("no panic"), 42);
}

#[test]
fn posts_run_in_order() {
    let runtime = runtime(2);
    let (sender, receiver) = mpsc::channel();
    for n in 0..1000 {
        let sender = sender.clone();
        runtime
            .post_in(Color(5), move || sender.send(n).expect("the test listens"))
            .expect("open");
    }
    drop(sender);
    assert_eq!(
        receiver.iter().collect::<Vec<_>>(),
        (0..1000).collect::<Vec<_>>()
    );
}

#[test]
fn with_from_many_threads_counts_all() {
    let runtime = runtime(2);
    let counter = Colored::new_in(&runtime, 0u64);
    let threads: Vec<_> = (0..64)
        .map(|_| {
            let counter = counter.clone();
            runtime.spawn(async move {
                for _ in 0..1000 {
                    counter.with(|counter| *counter += 1).await;
                }
            })
        })
        .collect();
    runtime.block_on(async {
        for thread in threads {
            thread.await.expect("no panic");
        }
        assert_eq!(counter.with(|counter| *counter).await, 64_000);
    });
    drop(counter);
    let report = runtime.shutdown(Duration::from_secs(1));
    assert!(report.drained);
}

#[test]
fn a_panic_reaches_the_joiner() {
    let runtime = runtime(1);
    let handle = runtime.spawn(async { panic!("boom") });
    let error = runtime.block_on(handle).expect_err("it panicked");
    assert!(error.is_panic());
}

#[test]
fn pending_threads_are_dropped_at_the_end() {
    struct Tell(mpsc::Sender<()>);
    impl Drop for Tell {
        fn drop(&mut self) {
            self.0.send(()).expect("the test listens");
        }
    }
    let runtime = runtime(2);
    let (sender, receiver) = mpsc::channel();
    let tell = Tell(sender);
    drop(runtime.spawn(async move {
        let _tell = tell;
        std::future::pending::<()>().await;
    }));
    let report = runtime.shutdown(Duration::from_secs(1));
    assert_eq!(report.threads_dropped, 1);
    receiver.recv().expect("the future was dropped");
}
