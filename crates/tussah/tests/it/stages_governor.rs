//! The governor of a network: caps, and the cause of an overload.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber, field};
use tussah::Runtime;
use tussah::stage::control::process::Constraint;
use tussah::stage::control::process::Governor;
use tussah::stage::{Batch, Handler, Network, Sender, Stage, StageBuilder};
use tussah::sync::Semaphore;

use crate::{by_hand, runtime};

/// Has tests that log run one after the other: `tracing` may ask only the first who comes to a
/// place whether it listens there.
pub static LOGS: Mutex<()> = Mutex::new(());

/// Waits for a permit for each batch.
struct Gated(Arc<Semaphore>);

impl Handler for Gated {
    type Event = u64;
    async fn handle(&self, batch: &mut Batch<u64>) {
        batch.drain().for_each(drop);
        self.0.acquire().await.forget();
    }
}

fn gated(builder: StageBuilder<u64>, gate: &Arc<Semaphore>) -> Stage<u64> {
    let gated = Gated(Arc::clone(gate));
    let stage = builder.manual().batch(1).declare().expect("a stage");
    let any = stage.stage();
    stage.handler(|_| Ok(gated)).expect("a stage");
    any
}

/// Waits until N servlets of a stage wait.
async fn waiting(stage: &Stage<u64>, servlets: usize) {
    while stage.stats().waiting != servlets {
        tussah::yield_now().await;
    }
}

#[test]
fn servlets_are_divided() {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let network = Network::new("n");
        network.govern(Governor::new(6));
        let gates = [0, 1].map(|_| Arc::new(Semaphore::new(0)));
        let stage = |name: &str, priority: u8| {
            let stage = network.stage(name).priority(priority).servlets(8);
            gated(stage, &gates[usize::from(priority)])
        };
        let (low, high) = (stage("low", 1), stage("high", 0));
        // The first plan is made at once, and the next when 10 ms have passed.
        low.sender().try_send(0).expect("there is room");
        waiting(&low, 1).await;
        clock.advance(Duration::from_millis(10));
        for event in 0..20 {
            low.sender().try_send(event).expect("there is room");
            high.sender().try_send(event).expect("there is room");
        }
        waiting(&high, 5).await;
        waiting(&low, 1).await;
        let caps = |stages: [&Stage<u64>; 2]| stages.map(|stage| stage.stats().cap);
        assert_eq!(caps([&low, &high]), [Some(1), Some(5)]);
        // What one stage gives up the others get, when its batches have ended.
        high.destroy(Duration::ZERO).await;
        clock.advance(Duration::from_millis(10));
        low.sender().try_send(20).expect("there is room");
        crate::idle().await;
        assert_eq!(low.stats().servlets.busy, 1);
        gates[0].add_permits(100);
        clock.advance(Duration::from_millis(10));
        waiting(&low, 6).await;
        let late = stage("late", 0);
        clock.advance(Duration::from_millis(10));
        low.sender().try_send(21).expect("there is room");
        assert_eq!(caps([&low, &late]), [Some(1), Some(1)]);
        assert_eq!(low.stats().servlets.busy, 6);
        // Ends one batch after the other until one servlet is left.
        for left in (1..6).rev() {
            gates[1].add_permits(1);
            while low.stats().servlets.busy > left {
                tussah::yield_now().await;
            }
            // The servlet that ends makes the next plan.
            while late.stats().cap != Some(6 - left) {
                tussah::yield_now().await;
            }
        }
        gates[1].add_permits(100);
        low.drain().await;
    });
}

/// Waits for a permit, and sends two events for each batch.
struct SendsTwo(Arc<Semaphore>, Sender<u64>);

impl Handler for SendsTwo {
    type Event = u64;
    async fn handle(&self, batch: &mut Batch<u64>) {
        batch.drain().for_each(drop);
        self.0.acquire().await.forget();
        for event in 0..2 {
            self.1.send(event).await.expect("it is open");
        }
    }
}

#[test]
fn a_new_stage_has_a_servlet_for_which_all_others_may_wait() {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let network = Network::new("n");
        network.govern(Governor::new(3));
        let (gate, open) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(100)));
        let last = gated(network.stage("last").servlets(1), &open);
        let declared = network
            .stage("first")
            .manual()
            .batch(1)
            .servlets(2)
            .declare();
        let declared = declared.expect("a stage");
        let first = declared.stage();
        let made = declared.handler(|edges| {
            let last = edges.to(&last).queue(1)?;
            Ok(SendsTwo(Arc::clone(&gate), last))
        });
        made.expect("a stage");
        first.sender().try_send(0).expect("there is room");
        waiting(&first, 1).await;
        clock.advance(Duration::from_millis(10));
        first.sender().try_send(1).expect("there is room");
        waiting(&first, 2).await;
        // All servlets that the governor has are at work.
        let proxy = network.stage("proxy").queue(1).handler(|edges| {
            let last = edges.to(&last).queue(1)?;
            Ok(SendsTwo(Arc::clone(&open), last))
        });
        let proxy = proxy.expect("a stage");
        assert_eq!(proxy.stats().cap, Some(1));
        let _between = proxy.between("first", &last).expect("there is an edge");
        gate.add_permits(2);
        while first.stats().finished < 2 {
            tussah::yield_now().await;
        }
    });
}

/// Counts who is at work at the same time, in all stages.
#[derive(Default)]
struct AtWork {
    now: AtomicUsize,
    most: AtomicUsize,
}

struct Counted(Arc<AtWork>);

impl Handler for Counted {
    type Event = u64;
    async fn handle(&self, batch: &mut Batch<u64>) {
        batch.drain().for_each(drop);
        let now = self.0.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.0.most.fetch_max(now, Ordering::Relaxed);
        for _ in 0..3 {
            tussah::yield_now().await;
        }
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Stages come and go, and then only loads change.
#[test]
fn no_more_servlets_are_at_work_than_the_governor_has() {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let network = Network::new("n");
        let at_work = Arc::new(AtWork::default());
        let make = |round: usize| {
            let stage = network.stage(format!("{round}")).servlets(8).batch(1);
            let stage = stage.priority((round % 3) as u8).manual();
            let counted = Counted(Arc::clone(&at_work));
            stage.handler(|_| Ok(counted)).expect("a stage");
            network
                .find::<u64>(&format!("{round}"))
                .expect("it is there")
        };
        network.govern(Governor::new(6));
        let mut stages = Vec::new();
        for round in 0..40 {
            stages.push(make(round));
            for (at, stage) in stages.iter().enumerate() {
                for _ in 0..(round + at) % 30 {
                    // Whether there is room or not.
                    let _ = stage.sender().try_send(1);
                }
            }
            clock.advance(Duration::from_millis(3));
            for _ in 0..round {
                tussah::yield_now().await;
            }
            if stages.len() > 4 {
                stages.remove(round % 5).destroy(Duration::ZERO).await;
            }
        }
        // One more than the governor has for each new stage; at most five exist at the same time.
        assert!(at_work.most.load(Ordering::Relaxed) <= 6 + 5);
        for stage in &stages {
            stage.settled().await;
        }
        at_work.most.store(0, Ordering::Relaxed);
        for round in 0..10_000 {
            // On a busy machine, few servlets are at work at the same time at first.
            if round > 1_000 && at_work.most.load(Ordering::Relaxed) >= 6 {
                break;
            }
            for (at, stage) in stages.iter().enumerate() {
                for _ in 0..(round / 50 + at) % 7 {
                    let _ = stage.sender().try_send(1);
                }
            }
            clock.advance(Duration::from_millis(3));
            tussah::yield_now().await;
        }
        for stage in &stages {
            stage.drain().await;
        }
        assert_eq!(at_work.most.load(Ordering::Relaxed), 6);
    });
}

/// Sends on what it is sent.
struct Pass(Sender<u64>);

impl Handler for Pass {
    type Event = u64;
    async fn handle(&self, batch: &mut Batch<u64>) {
        while let Some(event) = batch.next() {
            self.0.send(event).await.expect("it is open");
        }
    }
}

/// A stage that passes on to one that waits, which is full.
async fn overloaded(runtime: &Runtime, gate: &Arc<Semaphore>) -> (Network, Stage<u64>) {
    let network = Network::on(runtime.handle(), "n");
    network.govern(Governor::new(10).overloaded_after_ns(50_000_000));
    let disk = gated(network.stage("disk").servlets(2).queue(2), gate);
    let parse = network
        .stage("parse")
        .manual()
        .servlets(1)
        .queue(2)
        .batch(1);
    let parse = parse.handler(|edges| Ok(Pass(edges.to(&disk).queue(2)?)));
    let parse = network.find(parse.expect("a stage").name());
    let parse: Stage<u64> = parse.expect("it is there");
    // Two in service and two in the queue of `disk`, one that waits for room there, and two behind
    // it.
    for event in 0..7 {
        parse.sender().send(event).await.expect("it is open");
    }
    waiting(&disk, 2).await;
    waiting(&parse, 1).await;
    (network, parse)
}

#[test]
fn the_cause_of_an_overload_is_found_where_the_waiting_ends() {
    let _logs = LOGS.lock();
    let (clock, runtime) = by_hand();
    let gate = Arc::new(Semaphore::new(0));
    let (network, parse) = runtime.block_on(overloaded(&runtime, &gate));
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        for _ in 0..6 {
            assert_eq!(network.overload(), None);
            clock.advance(Duration::from_millis(10));
            parse.sender().try_send(8).expect_err("it is full");
        }
        let cause = network.overload().expect("it is overloaded");
        assert_eq!(
            (&*cause.name, cause.why, cause.held_up),
            ("disk", Constraint::Busy, 1)
        );
        clock.advance(Duration::from_millis(10));
        parse.sender().try_send(8).expect_err("it is full");
        gate.add_permits(100);
        runtime.block_on(async {
            parse.settled().await;
            let disk = network.find::<u64>("disk").expect("it is there");
            disk.settled().await;
            // Nobody is left who could make the next plan.
            while parse.stats().servlets.busy + disk.stats().servlets.busy > 0 {
                tussah::yield_now().await;
            }
            parse.pause();
            clock.advance(Duration::from_millis(10));
        });
        // Nobody has looked since.
        assert!(network.overload().is_some());
        parse.sender().try_send(8).expect("there is room");
        assert_eq!(network.overload(), None);
    });
    let said = [
        "stage \"disk\" has been overloaded for 50 ms: all its servlets are at work; 1 stage waits for it",
        "no overload any more",
    ];
    assert_eq!(*log.0.lock(), said);
}

#[test]
fn a_stage_that_sheds_is_overloaded_by_itself() {
    let _logs = LOGS.lock();
    let (clock, runtime) = by_hand();
    let network = Network::on(runtime.handle(), "n");
    network.govern(Governor::new(10).overloaded_after_ns(20_000_000));
    let gate = Arc::new(Semaphore::new(0));
    let stage = gated(network.stage("stage").servlets(20).queue(2), &gate);
    while stage.stats().waiting < 10 {
        // Whether there is room or not.
        let _ = stage.sender().try_send(1);
        std::thread::yield_now();
    }
    let mut rounds = 0;
    while network.overload().is_none() {
        while stage.sender().try_send(1).is_ok() {}
        clock.advance(Duration::from_millis(10));
        rounds += 1;
    }
    assert!(rounds >= 3);
    // It asks for 20 servlets, and has all 10 that there are.
    let cause = network.overload().expect("it is overloaded");
    assert_eq!((cause.why, cause.held_up), (Constraint::Capped, 0));
    gate.add_permits(1000);
}

/// Without a governor nothing is capped.
#[test]
fn a_network_need_not_be_governed() {
    let runtime = runtime(1);
    let network = Network::on(runtime.handle(), "n");
    let stage = gated(
        network.stage("stage").servlets(20),
        &Arc::new(Semaphore::new(1)),
    );
    stage.sender().try_send(1).expect("there is room");
    assert_eq!((stage.stats().cap, network.overload()), (None, None));
}

/// Keeps the messages of what is logged.
#[derive(Clone, Default)]
pub struct Log(pub Arc<Mutex<Vec<String>>>);

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let said = &mut *self.0.lock();
        event.record(&mut |field: &field::Field, value: &dyn std::fmt::Debug| {
            if field.name() == "message" {
                said.push(format!("{value:?}"));
            }
        });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
