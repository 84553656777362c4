//! Scopes whose children run in parallel, and those whose children borrow.

use std::convert::Infallible;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};

use tussah::{Color, Colored, Nursery, Scope, scope, scope_in, spawn, sync::oneshot, yield_now};

use crate::runtime;

fn is_send<T: Send>(value: T) -> T {
    value
}

/// Counts those that are alive.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn wait_for_ever(alive: Alive) -> Result<(), &'static str> {
    let _alive = alive;
    pending().await
}

#[tussah::test]
async fn children_give_their_values() {
    let sum = scope(async |scope: Scope<Infallible>| {
        let children: Vec<_> = (0..100u64)
            .map(|n| scope.spawn(async move { Ok(n) }))
            .collect();
        let mut sum = 0;
        for child in children {
            sum += child.await;
        }
        Ok(sum)
    });
    assert_eq!(sum.await, Ok(4950));
}

#[tussah::test]
async fn a_scope_waits_for_children_that_nobody_awaits() {
    let ended = Arc::new(AtomicUsize::new(0));
    let result = scope(async |scope: Scope<Infallible>| {
        for color in 0..10 {
            let ended = ended.clone();
            scope.spawn_in(Color(color), async move {
                for _ in 0..10 {
                    yield_now().await;
                }
                ended.fetch_add(1, Ordering::SeqCst);
                Ok(())
            });
        }
        assert!(scope.children() <= 10);
        Ok("done")
    });
    assert_eq!(result.await, Ok("done"));
    assert_eq!(ended.load(Ordering::SeqCst), 10);
}

#[tussah::test]
async fn the_first_error_ends_the_rest() {
    let alive = Arc::new(AtomicUsize::new(0));
    let result = scope(async |scope: Scope<&str>| -> Result<(), _> {
        let body = Alive::new(&alive);
        for _ in 0..10 {
            scope.spawn(wait_for_ever(Alive::new(&alive)));
        }
        let fails = scope.spawn::<(), _>(async {
            yield_now().await;
            Err("from a child")
        });
        fails.await;
        drop(body);
        unreachable!("the body is dropped")
    });
    assert_eq!(result.await, Err("from a child"));
    assert_eq!(
        alive.load(Ordering::SeqCst),
        0,
        "the scope waited for all of them"
    );
}

#[tussah::test]
async fn a_child_that_is_started_after_a_failure_ends_too() {
    let alive = Arc::new(AtomicUsize::new(0));
    let result = scope(async |scope: Scope<&str>| -> Result<(), _> {
        let fails = scope.spawn::<(), _>(async { Err("first") });
        // In the same poll, so that the body is not dropped yet.
        while !fails.is_finished() {
            std::thread::yield_now();
        }
        scope.spawn(wait_for_ever(Alive::new(&alive)));
        pending().await
    });
    assert_eq!(result.await, Err("first"));
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[tussah::test]
async fn the_bodys_error_ends_the_children() {
    let alive = Arc::new(AtomicUsize::new(0));
    let result = scope(async |scope: Scope<&str>| {
        scope.spawn(wait_for_ever(Alive::new(&alive)));
        Err::<(), _>("from the body")
    });
    assert_eq!(result.await, Err("from the body"));
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[tussah::test]
async fn an_error_after_the_body_has_ended_is_the_result() {
    let (go, wait) = oneshot::async_channel::<()>();
    let body = scope(async |scope: Scope<&str>| {
        scope.spawn::<(), _>(async move {
            wait.await.expect("the test sends");
            Err("late")
        });
        go.send(()).expect("the child waits");
        Ok(1)
    });
    assert_eq!(body.await, Err("late"));
}

#[tussah::test]
async fn a_panic_of_a_child_is_raised_again() {
    let alive = Arc::new(AtomicUsize::new(0));
    let count = alive.clone();
    let outcome = spawn(async move {
        scope(async |scope: Scope<&str>| {
            scope.spawn(wait_for_ever(Alive::new(&count)));
            scope.spawn::<(), _>(async { panic!("from a child") });
            Ok(())
        })
        .await
    });
    let error = outcome.await.expect_err("it panics");
    assert_eq!(error.into_panic().downcast_ref(), Some(&"from a child"));
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[tussah::test]
async fn a_panic_of_the_body_ends_the_children_first() {
    let alive = Arc::new(AtomicUsize::new(0));
    let count = alive.clone();
    let outcome = spawn(async move {
        scope(async |scope: Scope<&str>| -> Result<(), &str> {
            scope.spawn(wait_for_ever(Alive::new(&count)));
            panic!("from the body")
        })
        .await
    });
    let error = outcome.await.expect_err("it panics");
    assert_eq!(error.into_panic().downcast_ref(), Some(&"from the body"));
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[tussah::test]
async fn dropping_the_scope_aborts_the_children() {
    let (dropped, is_dropped) = oneshot::async_channel::<()>();
    let mut running = Box::pin(scope(async move |scope: Scope<Infallible>| {
        scope.spawn(async move {
            let _dropped = dropped;
            pending::<Result<(), _>>().await
        });
        pending::<Result<(), _>>().await
    }));
    let polled = running
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending));
    drop(running);
    is_dropped
        .await
        .expect_err("the child was dropped, with its sender");
}

#[tussah::test]
async fn scopes_nest_and_are_send() {
    let result = spawn(is_send(async {
        scope(async |outer: Scope<&'static str>| {
            let child = outer.spawn(async {
                scope(async |inner: Scope<&'static str>| {
                    let child = inner.spawn(async { Ok(1) });
                    Ok(child.await + 1)
                })
                .await
            });
            Ok(child.await + 1)
        })
        .await
    }));
    assert_eq!(result.await.expect("no panic"), Ok(3));
}

#[tussah::test]
async fn a_scope_that_runs_long_forgets_its_children() {
    scope(async |scope: Scope<Infallible>| {
        for _ in 0..1000 {
            scope.spawn(async { Ok(()) }).await;
        }
        // The last one may be about to leave.
        while scope.children() > 0 {
            yield_now().await;
        }
        Ok(())
    })
    .await
    .expect("nothing fails");
}

#[tussah::test]
async fn children_start_children_and_wait_for_each_other() {
    let sum = scope(async |scope: Scope<Infallible>| {
        let siblings = scope.clone();
        let first = scope.spawn(async move {
            let grandchild = siblings.spawn(async { Ok(40) });
            Ok(grandchild.await + 1)
        });
        let second = scope.spawn(async move { Ok(first.await + 1) });
        Ok(second.await)
    });
    assert_eq!(sum.await, Ok(42));
}

#[tussah::test]
async fn a_scope_that_has_ended_starts_nothing() {
    let ended = scope(async |scope: Scope<Infallible>| Ok(scope))
        .await
        .expect("nothing fails");
    let outcome = spawn(async move { drop(ended.spawn(async { Ok(()) })) });
    let text = outcome.await.expect_err("it panics").into_panic();
    assert_eq!(
        text.downcast_ref(),
        Some(&"cannot start a child: the scope has ended")
    );
}

#[tussah::test]
async fn a_child_may_be_awaited_outside_of_its_scope() {
    let child = scope(async |scope: Scope<Infallible>| Ok(scope.spawn(async { Ok(7) }))).await;
    assert_eq!(child.expect("nothing fails").await, 7);
}

#[tussah::test(workers = 3)]
async fn a_failed_child_that_is_awaited_outside_panics_when_the_scope_has_ended() {
    let (give, take) = oneshot::async_channel();
    let (begun, has_begun) = oneshot::async_channel();
    let (go, wait) = mpsc::channel::<()>();
    let outside = spawn(async move {
        let mut child: tussah::ScopedJoinHandle<(), &str> = take.await.expect("the body sends");
        while !child.is_finished() {
            yield_now().await;
        }
        // Another child keeps the scope from ending.
        assert!(futures_lite::future::poll_once(&mut child).await.is_none());
        drop(go);
        child.await;
    });
    let result = scope(async |scope: Scope<&str>| {
        scope.spawn(async move {
            begun.send(()).expect("the other child waits");
            assert!(wait.recv().is_err());
            Ok(())
        });
        let fails = scope.spawn(async {
            has_begun.await.expect("the first child begins");
            Err("no")
        });
        assert!(give.send(fails).is_ok());
        pending::<Result<(), _>>().await
    });
    assert_eq!(result.await, Err("no"));
    let text = outside.await.expect_err("there is no result").into_panic();
    let expected = "a scope's child was awaited outside the scope after it failed or was aborted";
    assert_eq!(text.downcast_ref(), Some(&expected));
}

#[test]
fn a_scope_works_outside_of_the_runtime() {
    let runtime = runtime(2);
    let sum =
        futures_lite::future::block_on(scope_in(&runtime, async |scope: Scope<Infallible>| {
            let (a, b) = (scope.spawn(async { Ok(1) }), scope.spawn(async { Ok(2) }));
            Ok(a.await + b.await)
        }));
    assert_eq!(sum, Ok(3));
}

#[test]
#[should_panic = "shut down while a scope had running children"]
fn a_scope_says_that_its_runtime_has_ended() {
    let runtime = runtime(1);
    let handle = runtime.handle().clone();
    let mut runtime = Some(runtime);
    let _: Result<(), Infallible> =
        futures_lite::future::block_on(scope_in(&handle, async |scope: Scope<Infallible>| {
            let child = scope.spawn(pending::<Result<(), _>>());
            drop(runtime.take());
            child.await;
            Ok(())
        }));
}

#[tussah::test]
async fn children_of_a_nursery_borrow() {
    let value = Colored::new(40);
    let text = String::from("ab");
    let mut nursery = Nursery::new();
    nursery.spawn(async { Ok::<_, Infallible>(text.len()) });
    nursery.spawn(async { Ok(value.with(|value| *value).await) });
    assert_eq!(nursery.len(), 2);
    let mut values = nursery.join().await.expect("nothing fails");
    values.sort_unstable();
    assert_eq!(values, [2, 40]);
    assert_eq!(text, "ab");
}

#[tussah::test]
async fn a_nursery_gives_children_as_they_end() {
    let mut nursery = Nursery::default();
    let (go, wait) = oneshot::async_channel::<()>();
    nursery.spawn(async {
        wait.await.expect("it is told");
        Ok::<_, Infallible>("slow")
    });
    nursery.spawn(async { Ok("fast") });
    assert_eq!(nursery.next().await, Some(Ok("fast")));
    go.send(()).expect("it waits");
    assert_eq!(nursery.next().await, Some(Ok("slow")));
    assert_eq!(nursery.next().await, None);
    assert!(nursery.is_empty());
}

#[tussah::test]
async fn the_first_error_ends_a_nursery() {
    let alive = Arc::new(AtomicUsize::new(0));
    let mut nursery = Nursery::new();
    nursery.spawn(wait_for_ever(Alive::new(&alive)));
    nursery.spawn(async { Err("no") });
    assert_eq!(nursery.join().await, Err("no"));
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}
