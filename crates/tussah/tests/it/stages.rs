//! Stages: what they promise to those who send and to those who handle.

mod ask;
mod batches;
mod blocking;
mod bounds;
mod calls;
mod cancelled;
mod direct;
mod drain;
mod dropped;
mod expiry;
mod fairness;
mod forward;
mod graph;
mod in_service;
mod keyed;
mod keyed_overload;
mod keyed_panics;
mod keyed_runs;
mod life;
mod model;
mod order;
mod outgoing;
mod outside;
mod overdue;
mod panics;
mod path;
mod path_members;
mod released;
mod scarce;
mod servlets;
mod support;
mod swap;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tussah::stage::{Batch, BuildError, Event, Handler, Network, SendError, Sender, SerialHandler};

use crate::runtime;

/// Adds up what it is sent.
struct Sum(Arc<AtomicU64>);

impl Handler for Sum {
    type Event = u64;
    async fn handle(&self, batch: &mut Batch<u64>) {
        for value in batch.drain() {
            self.0.fetch_add(value, Ordering::Relaxed);
        }
    }
}

/// Sends on twice what it is sent.
struct Double(Sender<u64>);

impl SerialHandler for Double {
    type Event = u64;
    async fn handle(&mut self, batch: &mut Batch<u64>) {
        while let Some(value) = batch.next() {
            self.0
                .send(2 * value)
                .await
                .expect("the next stage is open");
        }
    }
}

#[test]
fn a_pipeline_handles_each_event_once() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let network = Network::new("pipeline");
        let total = Arc::new(AtomicU64::new(0));
        let sum = Arc::clone(&total);
        let sum = network
            .stage("sum")
            .queue(10)
            .batch(3)
            .handler(|_| Ok(Sum(sum)))?;
        let last = sum.clone();
        let double = network
            .stage("double")
            .serial(move |edges| Ok(Double(edges.to(&last).queue(10)?)))?;
        let sender = double.sender();
        for value in 1..=1000 {
            sender.send(value).await.expect("the stage is open");
        }
        double.drain().await;
        sum.drain().await;
        assert_eq!(total.load(Ordering::Relaxed), 1000 * 1001);
        let stats = sum.stats();
        assert_eq!(
            (stats.arrived, stats.finished, stats.queued),
            (1000, 1000, 0)
        );
        assert_eq!(network.edges().len(), 1);
        Ok(())
    })
}

/// An event is as shareable as its value, whatever its drop callback is.
const _: () = {
    const fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Event<u64>>();
    is_send_and_sync::<SendError<u64>>();
    is_send_and_sync::<Batch<u64>>();
};

#[test]
fn a_refusal_converts_to_an_error() {
    async fn send(to: &Sender<u64>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        to.send(Event::new(1).on_drop(drop)).await?;
        Ok(())
    }
    runtime(1).block_on(async {
        let network = Network::new("closed");
        let stage = network
            .stage("sum")
            .handler(|_| Ok(Sum(Arc::default())))
            .expect("a stage");
        send(&stage.sender()).await.expect("it is open");
        stage.drain().await;
        let error = send(&stage.sender()).await.expect_err("it is closed");
        assert_eq!(
            error.to_string(),
            "the stage `sum` did not take the event: the stage is closed"
        );
        let said = format!("{error:?}");
        assert!(said.contains("sum") && said.contains("Closed"), "{said}");
    });
}
