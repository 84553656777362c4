//! Stages whose runtime ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_lite::future::{block_on, poll_once};
use tussah::stage::{Batch, Handler, Network, Reason, Refusal};
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
fn queued_events_are_dropped_with_their_runtime() {
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
    assert_eq!(late.why, Refusal::Closed);
}

#[test]
fn a_runtime_that_ends_closes_its_stages() {
    let runtime = runtime(1);
    let network = Network::on(runtime.handle(), "ended");
    let stage = network.stage("idle");
    let stage = stage.handler(|_| Ok(Waits(Arc::default())));
    let stage = stage.expect("the name is free");
    let blocks = network
        .stage("blocks")
        .blocking(|_| Ok(|_: &mut Batch<u64>| {}));
    let blocks = blocks.expect("the name is free").sender();
    drop(runtime);
    assert_eq!(network.names().len(), 0, "it has forgotten them");
    assert_eq!(stage.stats().gate, "closed");
    for sender in [stage.sender(), blocks] {
        let late = sender.try_send(1).expect_err("nobody would handle it");
        assert_eq!(late.why, Refusal::Closed);
    }
}

#[test]
fn a_runtime_that_ends_drops_what_a_paused_stage_holds() {
    let runtime = runtime(1);
    let dropped = Arc::new(AtomicU64::new(0));
    let network = Network::on(runtime.handle(), "paused");
    let count = Arc::clone(&dropped);
    let stage = network.stage("stage").on_drop(move |_, why| {
        assert_eq!(why, Reason::ShutDown);
        count.fetch_add(1, Ordering::Relaxed);
    });
    let stage = stage.handler(|_| Ok(Waits(Arc::default())));
    let stage = stage.expect("the name is free");
    stage.pause();
    stage.sender().try_send(1).expect("there is room");
    drop(runtime);
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}

#[test]
fn a_network_of_a_runtime_that_has_ended_closes_its_stages_with_the_first_event() {
    let runtime = runtime(1);
    let handle = runtime.handle().clone();
    drop(runtime);
    let network = Network::on(&handle, "late");
    let stage = network.stage("idle");
    let stage = stage.handler(|_| Ok(Waits(Arc::default())));
    let sender = stage.expect("the name is free").sender();
    let blocks = network
        .stage("blocks")
        .blocking(|_| Ok(|_: &mut Batch<u64>| {}));
    let blocks = blocks.expect("the name is free").sender();
    for sender in [sender, blocks] {
        // It is taken before it is found that nobody can be called.
        sender.try_send(1).expect("there is room");
        let late = sender.try_send(2).expect_err("nobody would handle it");
        assert_eq!(late.why, Refusal::Closed);
    }
}

#[test]
fn waiting_senders_of_a_paused_stage_fail_when_the_runtime_ends() {
    let runtime = runtime(1);
    let network = Network::on(runtime.handle(), "paused");
    let stage = network.stage("stage").queue(1);
    let stage = stage.handler(|_| Ok(Waits(Arc::default())));
    let stage = stage.expect("the name is free");
    stage.pause();
    let sender = stage.sender();
    sender.try_send(1).expect("there is room");
    block_on(async {
        let mut waiting = Box::pin(sender.send(2));
        assert!(poll_once(&mut waiting).await.is_none());
        let mut settled = Box::pin(stage.settled());
        assert!(poll_once(&mut settled).await.is_none());
        drop(runtime);
        assert_eq!(
            waiting.await.expect_err("it is closed").why,
            Refusal::Closed
        );
        settled.await;
    });
}
