//! Stages whose runtime ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tussah::stage::{Batch, Handler, Network, Reason, Why};
use tussah::sync::Notify;

use crate::runtime;

/// Never ends with the first event that it is given.
struct Waits(Arc<Notify>);

impl Handler for Waits {
    type Event = u64;
    async fn handle(&self, batch: &mut Batch<u64>) {
        batch.next();
        self.0.notify_one();
        std::future::pending().await
    }
}

#[test]
fn what_is_queued_is_dropped_with_its_runtime() {
    let runtime = runtime(1);
    let dropped = Arc::new(AtomicU64::new(0));
    let sender = runtime.block_on(async {
        let network = Network::new("ends");
        let count = Arc::clone(&dropped);
        let stage = network.stage("waits").servlets(1).on_drop(move |_, why| {
            assert_eq!(why, Reason::ShutDown);
            count.fetch_add(1, Ordering::Relaxed);
        });
        let begun = Arc::new(Notify::new());
        let handler = Waits(Arc::clone(&begun));
        let stage = stage.handler(|_| Ok(handler)).expect("the name is free");
        for number in 0..10 {
            stage.sender().try_send(number).expect("there is room");
        }
        begun.notified().await;
        stage.sender()
    });
    drop(runtime);
    assert_eq!(dropped.load(Ordering::Relaxed), 9);
    let late = sender.try_send(10).expect_err("nobody would handle it");
    assert_eq!(late.why, Why::Closed);
}

#[test]
fn a_runtime_that_has_ended_closes_its_stages_with_the_first_event() {
    let runtime = runtime(1);
    let network = Network::on(runtime.handle(), "ended");
    let stage = network.stage("idle");
    let stage = stage.handler(|_| Ok(Waits(Arc::default())));
    let sender = stage.expect("the name is free").sender();
    let blocks = network
        .stage("blocks")
        .blocking(|_| Ok(|_: &mut Batch<u64>| {}));
    let blocks = blocks.expect("the name is free").sender();
    drop(runtime);
    for sender in [sender, blocks] {
        // It is taken before it is found that nobody can be called.
        sender.try_send(1).expect("there is room");
        let late = sender.try_send(2).expect_err("nobody would handle it");
        assert_eq!(late.why, Why::Closed);
    }
}
