//! Models of a client that disconnects while its request is being answered.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Wake};

use loom::future::block_on;
use loom::thread::spawn;

use super::sync::CancelHandle;
use super::*;

/// Waits for the next event, which is the last event.
async fn last_event(connection: &Connection) {
    match event(connection).await {
        (Event::Read(Ok(0)) | Event::Handed(None), _) => {}
        (Event::Handed(Some(exchange)), _) => Exchange::put(exchange),
        (Event::Read(_), _) => panic!("nothing more was sent"),
    }
}

/// A response and the client's end happen at the same time: the thread learns of both, and the
/// request ends once.
#[test]
fn an_answer_and_a_client_that_goes() {
    model(|end| {
        let connection = asked();
        let client = beside(&connection, |connection| connection.stream.hang_up());
        let stage = block_on(async {
            let (Event::Read(Ok(1)), Some(mut exchange)) = event(&connection).await else {
                panic!("there is something to read");
            };
            connection.stream.write();
            connection.begin(&mut exchange);
            let stage = spawn(move || {
                let connection = exchange.connection.as_ref().expect("it has begun");
                let end = if connection.is_gone() { End::Lost } else { end };
                connection.stream.write();
                end.of(exchange);
            });
            last_event(&connection).await;
            connection.stream.write();
            stage
        });
        for thread in [client, stage] {
            thread.join().expect("no panic");
        }
    });
}

/// A request waits in a queue, or for something that never happens, until it is cancelled.
#[test]
fn a_request_that_waits_is_cancelled_when_the_client_goes() {
    for more in [false, true] {
        model(move |end| {
            if end != End::Lost {
                return; // there is no answer
            }
            let connection = asked();
            let client = {
                let connection = Arc::clone(&connection);
                spawn(move || {
                    if more {
                        connection.stream.ask();
                    }
                    connection.stream.hang_up();
                })
            };
            let stage = block_on(async {
                let (Event::Read(Ok(1)), Some(mut exchange)) = event(&connection).await else {
                    panic!("there is something to read");
                };
                connection.begin(&mut exchange);
                let stage = spawn(move || {
                    let connection = exchange.connection.as_ref().expect("it has begun");
                    let mut is_left = false;
                    block_on(poll_fn(|cx| {
                        let request = match is_left {
                            false => Some(CancelHandle::new(cx.waker().clone())),
                            true => connection.take_request(),
                        };
                        is_left = true;
                        // This is a spurious wake-up if the request is still there.
                        let Some(request) = request else {
                            return Poll::Ready(());
                        };
                        connection.leave(request);
                        Poll::Pending
                    }));
                    assert!(connection.is_gone());
                    connection.stream.write();
                    drop(exchange);
                });
                let (event, _) = event(&connection).await;
                assert!(matches!(event, Event::Handed(None)), "nothing more begins");
                connection.stream.write();
                stage
            });
            for thread in [client, stage] {
                thread.join().expect("no panic");
            }
        });
    }
}

/// The response takes the cancel handle back: from then on, the client's end cancels nothing.
#[test]
fn a_request_is_taken_back_or_its_client_has_gone() {
    model(|end| {
        let connection = asked();
        let client = beside(&connection, |connection| connection.stream.hang_up());
        let stage = block_on(async {
            let (Event::Read(Ok(1)), Some(mut exchange)) = event(&connection).await else {
                panic!("there is something to read");
            };
            connection.begin(&mut exchange);
            let stage = spawn(move || {
                let connection = exchange.connection.as_ref().expect("it has begun");
                let cancelled = Arc::new(Cancelled::default());
                let waker = Arc::clone(&cancelled).into();
                connection.leave(CancelHandle::new(waker));
                let taken = connection.take_request();
                let is_cancelled = cancelled.0.load(Ordering::Relaxed);
                match taken {
                    Some(request) => {
                        assert!(!is_cancelled);
                        request.detach();
                    }
                    None => assert!(connection.is_gone()),
                }
                let end = if connection.is_gone() { End::Lost } else { end };
                end.of(exchange);
            });
            last_event(&connection).await;
            stage
        });
        for thread in [client, stage] {
            thread.join().expect("no panic");
        }
    });
}

/// A flag that the cancellation of a request sets.
#[derive(Default)]
struct Cancelled(AtomicBool);

impl Wake for Cancelled {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A request that arrives after the end does not start.
#[test]
fn a_request_behind_the_end_is_gone_from_its_beginning() {
    model(|end| {
        let connection = asked();
        connection.stream.ask();
        connection.stream.hang_up();
        let stages = block_on(async {
            let mut stages = Vec::new();
            while let (Event::Read(Ok(1)), Some(mut exchange)) = event(&connection).await {
                connection.begin(&mut exchange);
                assert!(connection.is_gone());
                stages.push(spawn(move || end.of(exchange)));
                if end == End::Handed {
                    let (Event::Handed(Some(exchange)), _) = event(&connection).await else {
                        panic!("it comes back");
                    };
                    Exchange::put(exchange);
                    connection.wait(ANSWERED_S);
                }
            }
            stages
        });
        assert_eq!(stages.len(), if end == End::Lost { 1 } else { 2 });
        for stage in stages {
            stage.join().expect("no panic");
        }
    });
}
