//! Models of a connection whose place is taken.

use std::future::poll_fn;
use std::sync::Arc;

use loom::future::block_on;
use loom::thread::{JoinHandle, spawn};

use super::*;

/// Starts a thread that takes the connection's place and returns whether it could.
fn taker(connection: &Arc<Connection>) -> JoinHandle<bool> {
    let connection = Arc::clone(connection);
    spawn(move || connection.make_room())
}

#[test]
fn evicting_an_idle_connection_ends_its_thread() {
    model(|end| {
        let connection = asked();
        let taker = {
            let connection = Arc::clone(&connection);
            spawn(move || {
                let is_taken = connection.make_room();
                match is_taken {
                    true => connection.wake(),
                    // The connection was busy, or had not waited yet. The cut ends the model.
                    false => connection.cut(),
                }
                is_taken
            })
        };
        let mut stages = Vec::new();
        let (mut asked, mut is_last) = (0, false);
        block_on(async {
            loop {
                match event(&connection).await {
                    (Event::Read(Ok(1)), Some(mut exchange)) => {
                        asked += 1;
                        connection.stream.write();
                        connection.begin(&mut exchange);
                        is_last = exchange.is_last;
                        // The last exchange returns.
                        let end = match end {
                            End::Finished if is_last => End::Handed,
                            end => end,
                        };
                        stages.push(spawn(move || end.of(exchange)));
                    }
                    (Event::Handed(Some(exchange)), _) => {
                        Exchange::put(exchange);
                        if is_last {
                            return;
                        }
                        connection.wait(ANSWERED_S);
                    }
                    (Event::Read(Ok(0)) | Event::Handed(None), _) => return,
                    _ => panic!("nothing else happens"),
                }
            }
        });
        for stage in stages {
            stage.join().expect("no panic");
        }
        let is_taken = taker.join().expect("no panic");
        assert!(
            asked == 1 || asked == 0 && !is_taken,
            "what had come is read"
        );
    });
}

#[test]
fn a_busy_connection_is_not_evicted() {
    model(|end| {
        let connection = asked();
        block_on(async {
            let mut spare = None;
            let event = poll_fn(|cx| connection.poll(cx, &mut spare)).await;
            assert!(matches!(event, Event::Read(Ok(1))));
            let mut exchange = spare.take().expect("it was read into");
            let taker = taker(&connection);
            connection.begin(&mut exchange);
            let is_last = exchange.is_last;
            let is_taken = taker.join().expect("no panic");
            assert_eq!(is_last, is_taken, "it is told that it is the last one");
            assert!(!connection.make_room(), "it is busy");
            end.of(exchange);
        });
    });
}
