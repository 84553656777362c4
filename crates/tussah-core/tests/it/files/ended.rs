//! Waiters outside of the workers, for a runtime that has ended.

use std::sync::mpsc;
use std::time::Duration;

use tussah_core::{Color, Runtime};

use super::help::{eventually, pipe};

#[test]
fn an_outside_waiter_is_woken_even_if_a_worker_is_stuck() {
    let runtime = Runtime::builder().workers(1).build();
    let runtime = runtime.expect("the worker starts");
    if !runtime.driver().files_by_io_uring() {
        return;
    }
    let (reader, _writer) = pipe();
    // Threads wait too: one that is dropped, and one whose color the stuck worker never leaves.
    let waiting = [Color(1), Color(2)].map(|color| {
        let file = reader.clone();
        runtime.spawn_in(
            color,
            async move { file.read(vec![0; 16], 0, false).await.0 },
        )
    });
    eventually("both reads", || runtime.driver().files_in_flight() == 2);
    let (begun, begins) = mpsc::channel();
    let (end, ends) = mpsc::channel::<()>();
    let holder = runtime.spawn_in(Color(1), async move {
        begun.send(()).expect("the test listens");
        let _ = ends.recv();
    });
    begins.recv().expect("it runs");
    let outside = std::thread::spawn({
        let (handle, file) = (runtime.handle().clone(), reader.clone());
        move || handle.block_on(file.read(vec![0; 16], 0, false)).0
    });
    eventually("the read", || runtime.driver().files_in_flight() == 3);
    let handle = runtime.handle().clone();
    let report = runtime.shutdown(Duration::ZERO);
    assert_eq!(report.workers_stuck, 1);
    let error = outside.join().expect("no panic").expect_err("it ended");
    assert_eq!(error.to_string(), "the runtime is shut down");
    let (read, _) = handle.block_on(reader.read(vec![0; 16], 0, false));
    let error = read.expect_err("it has ended");
    assert_eq!(error.to_string(), "the runtime is shut down");
    drop((end, holder, waiting));
}
