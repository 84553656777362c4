//! Threads, names, the blocking pool, and the way into a runtime.

use std::future::pending;
use std::sync::mpsc;

use tussah::{
    Color, Handle, NoRuntime, Runtime, consume_budget, named, post, post_in, spawn, spawn_blocking,
    spawn_in, thread_name, try_spawn_blocking, yield_now,
};

use crate::runtime;

#[test]
fn the_runtime_is_current_where_it_runs_something() {
    assert_eq!(Handle::try_current().err(), Some(NoRuntime));
    let runtime = runtime(2);
    runtime.block_on(async {
        Handle::current();
        spawn(async { drop(Handle::current()) })
            .await
            .expect("a thread has a runtime");
    });
    assert_eq!(Handle::try_current().err(), Some(NoRuntime));
}

#[test]
fn functions_say_that_there_is_no_runtime() {
    let calls: [fn(); 4] = [
        || drop(spawn(async {})),
        || drop(post(|| ())),
        || drop(spawn_blocking(|| ())),
        || drop(tussah::after(std::time::Duration::ZERO, Color(1), || ())),
    ];
    for call in calls {
        let payload = std::panic::catch_unwind(call).expect_err("there is no runtime");
        let text = payload.downcast::<String>().expect("a message");
        assert!(text.contains("no runtime here"), "{text}");
    }
}

#[test]
fn threads_of_one_color_run_one_at_a_time() {
    let runtime = runtime(2);
    runtime.block_on(async {
        let inside = std::sync::Arc::new(std::sync::Mutex::new(0));
        let threads: Vec<_> = (0..20)
            .map(|_| {
                let inside = inside.clone();
                spawn_in(Color(9), async move {
                    for _ in 0..100 {
                        *inside.try_lock().expect("nobody else of the color runs") += 1;
                        yield_now().await;
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.await.expect("no panic");
        }
        assert_eq!(*inside.lock().expect("no panic"), 2000);
    });
}

#[test]
fn abort_ends_a_thread_at_an_await() {
    let runtime = runtime(1);
    runtime.block_on(async {
        let thread = spawn(pending::<()>());
        let abort = thread.abort_handle();
        abort.abort();
        assert!(thread.await.expect_err("it was aborted").is_cancelled());
        assert!(abort.is_finished());
        abort.abort(); // once more does nothing
    });
}

#[test]
fn a_name_follows_its_thread() {
    let runtime = runtime(2);
    runtime.block_on(async {
        let thread = spawn(named("outer", async {
            yield_now().await;
            let inner = named(String::from("inner"), async {
                yield_now().await;
                thread_name()
            });
            let inner = inner.await;
            // Names are not inherited.
            let child = spawn(async { thread_name() }).await.expect("no panic");
            (inner, thread_name(), child)
        }));
        let (inner, outer, child) = thread.await.expect("no panic");
        assert_eq!(inner.as_deref(), Some("inner"));
        assert_eq!(outer.as_deref(), Some("outer"));
        assert_eq!(child, None);
    });
}

#[test]
fn blocking_jobs_give_results_and_panics() {
    let runtime = runtime(1);
    runtime.block_on(async {
        assert_eq!(spawn_blocking(|| 6 * 7).await.expect("no panic"), 42);
        let error = spawn_blocking(|| panic!("boom"))
            .await
            .expect_err("it panics");
        assert!(error.is_panic());
        let job = try_spawn_blocking(|| 1).expect("the pool is not full");
        assert_eq!(job.await.expect("no panic"), 1);
    });
}

#[test]
fn a_full_pool_gives_the_closure_back() {
    let policy = tussah::PoolPolicy {
        threads_max: 1,
        queue_max: 1,
        ..Default::default()
    };
    let runtime = Runtime::builder()
        .workers(1)
        .blocking(policy)
        .build()
        .expect("it starts");
    let (go, wait) = mpsc::channel::<()>();
    let (begun, running) = mpsc::channel();
    runtime.block_on(async {
        let first = spawn_blocking(move || {
            begun.send(()).expect("the test listens");
            wait.recv().is_ok()
        });
        running.recv().expect("it began"); // so that the queue is empty
        let second = spawn_blocking(|| 2);
        let refused = try_spawn_blocking(|| 3).expect_err("one runs, one waits");
        assert!(refused.is_full());
        assert_eq!(refused.into_inner()(), 3);
        go.send(()).expect("it waits");
        assert!(first.await.expect("no panic"));
        assert_eq!(second.await.expect("no panic"), 2);
    });
}

#[test]
fn posts_run_in_the_colors_that_they_name() {
    let runtime = runtime(2);
    let (sender, receiver) = mpsc::channel();
    runtime.block_on(async {
        let (first, second) = (sender.clone(), sender.clone());
        post(move || first.send("default").expect("the test listens")).expect("open");
        let color = Handle::current().color(Color(5));
        post_in(&color, move || {
            second.send("five").expect("the test listens")
        })
        .expect("open");
    });
    drop(sender);
    let mut ran: Vec<_> = receiver.iter().collect();
    ran.sort_unstable();
    assert_eq!(ran, ["default", "five"]);
}

#[test]
fn the_budget_ends_a_loop_that_never_waits() {
    let runtime = runtime(1);
    runtime.block_on(async {
        let hog = spawn(async {
            loop {
                consume_budget().await;
            }
        });
        spawn(async {}).await.expect("it gets its turn");
        hog.abort();
        assert!(hog.await.expect_err("it was aborted").is_cancelled());
    });
}

#[test]
fn one_color_is_the_default_of_spawn() {
    let runtime = Runtime::builder()
        .workers(2)
        .one_color(true)
        .build()
        .expect("the workers start");
    runtime.block_on(async {
        let inside = std::sync::Arc::new(std::sync::Mutex::new(0));
        let threads: Vec<_> = (0..20)
            .map(|_| {
                let inside = inside.clone();
                spawn(async move {
                    for _ in 0..100 {
                        *inside.try_lock().expect("there is one color") += 1;
                        yield_now().await;
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.await.expect("no panic");
        }
    });
}

#[test]
fn block_on_spawned_gives_the_output_and_ends_the_runtime() {
    let runtime = runtime(1);
    let handle = runtime.handle().clone();
    assert_eq!(
        runtime.block_on_spawned(async { spawn(async { 7 }).await.expect("no panic") }),
        7
    );
    assert!(handle.post(|| ()).expect_err("it has ended").is_shut_down());
}

#[test]
#[should_panic = "from the body"]
fn block_on_spawned_passes_a_panic_on() {
    runtime(1).block_on_spawned(async { panic!("from the body") });
}

#[tussah::test]
async fn a_test_has_a_runtime() {
    assert_eq!(spawn(async { 7 }).await.expect("no panic"), 7);
}

#[tussah::test(workers = 1, name = "one")]
async fn a_test_has_the_workers_that_it_asks_for() {
    assert_eq!(Handle::current().workers(), 1);
}
