//! Managers of servlets: stages that share what they work with.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tussah::stage::control::{Applicant, Permits, ThreadManager};
use tussah::stage::{AnyCall, Batch, Handler, Network, Sender, SerialHandler, Stage, StageBuilder};
use tussah::sync::Semaphore;

use crate::runtime;

/// How many are inside of something at once.
#[derive(Clone, Default)]
struct Inside(Arc<[AtomicUsize; 2]>);

impl Inside {
    fn enter(&self) {
        let now = self.0[0].fetch_add(1, Ordering::Relaxed) + 1;
        self.0[1].fetch_max(now, Ordering::Relaxed);
    }

    fn leave(&self) {
        self.0[0].fetch_sub(1, Ordering::Relaxed);
    }

    fn most(&self) -> usize {
        self.0[1].load(Ordering::Relaxed)
    }
}

/// Computes a little for each event.
struct Compute(Inside);

impl Handler for Compute {
    type Event = u64;
    async fn handle(&self, batch: &mut Batch<u64>) {
        self.0.enter();
        for event in batch.drain() {
            std::hint::black_box((0..event % 100).sum::<u64>());
        }
        self.0.leave();
    }
}

fn stage(network: &Network, name: &str) -> StageBuilder<u64> {
    network.stage(name).manual().servlets(4).batch(4).queue(16)
}

/// Waits until no servlet is at work.
async fn until_idle(permits: &Permits) {
    while permits.busy() > 0 {
        tussah::yield_now().await;
    }
}

async fn send_all(stages: &[Stage<u64>], events: u64) {
    let sends = stages.iter().map(|stage| {
        let sender = stage.sender();
        tussah::spawn(async move {
            for event in 0..events {
                sender.send(event).await.expect("it is open");
                if event % 7 == 0 {
                    tussah::yield_now().await;
                }
            }
        })
    });
    let sends: Vec<_> = sends.collect();
    for send in sends {
        send.await.expect("no panic");
    }
    for stage in stages {
        stage.drain().await;
        assert_eq!(stage.stats().finished, events);
    }
}

#[test]
fn stages_share_a_permit() {
    let runtime = runtime(2);
    runtime.block_on(async {
        let network = Network::new("n");
        let permits = Arc::new(Permits::new(1));
        network.set_threads(permits.clone());
        let inside = Inside::default();
        let stages = ["a", "b", "c"].map(|name| {
            let handler = Compute(inside.clone());
            stage(&network, name)
                .handler(|_| Ok(handler))
                .expect("a stage");
            network.find(name).expect("it is there")
        });
        send_all(&stages, 5000).await;
        assert_eq!(inside.most(), 1);
        until_idle(&permits).await;
    });
}

/// A stage that is built with a manager of its own does not ask the network's.
#[test]
fn a_stage_of_its_own_asks_nobody_else() {
    let runtime = runtime(1);
    runtime.block_on(async {
        let network = Network::new("n");
        network.set_threads(Arc::new(Closed::default()));
        let own = stage(&network, "own").threads(Arc::new(Permits::new(2)));
        let own = own
            .handler(|_| Ok(Compute(Inside::default())))
            .expect("a stage");
        own.sender().send(1).await.expect("it is open");
        own.drain().await;
    });
}

#[test]
fn blocking_stages_share_permits() {
    let runtime = runtime(1);
    runtime.block_on(async {
        let network = Network::new("n");
        let permits = Arc::new(Permits::new(2));
        let inside = Inside::default();
        let stages = ["a", "b", "c"].map(|name| {
            let inside = inside.clone();
            let stage = stage(&network, name).threads(permits.clone());
            let made = stage.blocking(|_| {
                Ok(move |batch: &mut Batch<u64>| {
                    inside.enter();
                    batch.drain().for_each(drop);
                    std::thread::yield_now();
                    inside.leave();
                })
            });
            made.expect("a stage")
        });
        send_all(&stages, 500).await;
        assert!(inside.most() <= 2, "{}", inside.most());
        until_idle(&permits).await;
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

/// A stage that waits for another's queue lets that one work.
#[test]
fn a_stage_that_waits_has_no_permit() {
    let runtime = runtime(2);
    runtime.block_on(async {
        let network = Network::new("n");
        let permits = Arc::new(Permits::new(1));
        network.set_threads(permits.clone());
        let last = network.stage("last").manual().servlets(2).queue(2).batch(1);
        let last = last
            .handler(|_| Ok(Compute(Inside::default())))
            .expect("a stage");
        let first = stage(&network, "first");
        first
            .handler(|edges| Ok(Pass(edges.to(&last).queue(2)?)))
            .expect("a stage");
        let first = network.find("first").expect("it is there");
        send_all(&[first], 2000).await;
        last.drain().await;
        assert_eq!(last.stats().finished, 2000);
        until_idle(&permits).await;
    });
}

/// Calls another stage with what it is sent.
struct Calls(AnyCall<u64>);

impl Handler for Calls {
    type Event = u64;
    async fn handle(&self, batch: &mut Batch<u64>) {
        self.0.call(batch).await.expect("it is open");
    }
}

impl SerialHandler for Pass {
    type Event = u64;
    async fn handle(&mut self, batch: &mut Batch<u64>) {
        Handler::handle(self, batch).await;
    }
}

/// A servlet that waits for its handler, which a call uses, lets those work that the call waits
/// for.
#[test]
fn a_servlet_that_waits_for_its_handler_has_no_permit() {
    let runtime = runtime(1);
    runtime.block_on(async {
        let network = Network::new("n");
        let permits = Arc::new(Permits::new(1));
        network.set_threads(permits.clone());
        let last = network.stage("last").manual().queue(1).batch(1);
        let last = last
            .handler(|_| Ok(Compute(Inside::default())))
            .expect("a stage");
        let next = last.clone();
        let serial = stage(&network, "serial");
        let serial = serial
            .serial(move |edges| Ok(Pass(edges.to(&next).queue(1)?)))
            .expect("a stage");
        let first = stage(&network, "first");
        let first = first
            .handler(|edges| Ok(Calls(edges.named("serial")?.call()?)))
            .expect("a stage");
        last.pause();
        for event in 0..4 {
            first.sender().try_send(event).expect("there is room");
        }
        while first.stats().waiting == 0 {
            tussah::yield_now().await;
        }
        for event in 0..4 {
            serial.sender().try_send(event).expect("there is room");
        }
        for _ in 0..10 {
            tussah::yield_now().await;
        }
        last.resume();
        let second = std::time::Duration::from_secs(10);
        let drained = tussah::time::timeout(second, first.drain()).await;
        drained.expect("the call goes on");
        serial.drain().await;
        last.drain().await;
        assert_eq!((serial.stats().finished, last.stats().finished), (4, 8));
        until_idle(&permits).await;
    });
}

/// Waits for a permit of its own, and then says its name.
struct Waits {
    name: &'static str,
    gate: Arc<Semaphore>,
    said: Arc<Mutex<Vec<&'static str>>>,
}

impl Handler for Waits {
    type Event = u64;
    async fn handle(&self, batch: &mut Batch<u64>) {
        for _ in batch.drain() {
            self.said.lock().push(self.name);
        }
        self.gate.acquire().await.forget();
    }
}

#[test]
fn permits_go_by_priority() {
    let runtime = runtime(1);
    runtime.block_on(async {
        let network = Network::new("n");
        let permits = Arc::new(Permits::new(1).counting_waiting());
        network.set_threads(permits.clone());
        let gate = Arc::new(Semaphore::new(0));
        let said = Arc::<Mutex<Vec<_>>>::default();
        let names = [("first", 9), ("low", 2), ("high", 1), ("high too", 1)];
        let stages = names.map(|(name, priority)| {
            let waits = Waits {
                name,
                gate: Arc::clone(&gate),
                said: Arc::clone(&said),
            };
            let stage = stage(&network, name).priority(priority);
            stage.handler(|_| Ok(waits)).expect("a stage")
        });
        for (at, stage) in stages.iter().enumerate() {
            stage.sender().send(1).await.expect("it is open");
            while at == 0 && stage.stats().waiting == 0 {
                tussah::yield_now().await;
            }
        }
        assert_eq!((permits.busy(), said.lock().len()), (1, 1));
        gate.add_permits(1);
        while said.lock().len() < 2 {
            tussah::yield_now().await;
        }
        assert_eq!(permits.busy(), 1);
        // The other two at once.
        permits.set_max(3);
        while said.lock().len() < 4 {
            tussah::yield_now().await;
        }
        assert_eq!(permits.busy(), 3);
        gate.add_permits(3);
        for stage in &stages {
            stage.drain().await;
        }
        assert_eq!(*said.lock(), ["first", "high", "high too", "low"]);
        until_idle(&permits).await;
    });
}

/// Lets nobody in until it is opened.
#[derive(Default)]
struct Closed {
    open: AtomicBool,
    left: AtomicUsize,
    waiting: Mutex<Vec<Applicant>>,
}

impl ThreadManager for Closed {
    fn enter(&self, stage: &Applicant) -> bool {
        let open = self.open.load(Ordering::Relaxed);
        if !open {
            self.waiting.lock().push(stage.clone());
        }
        open
    }

    fn leave(&self, _: &Applicant) {
        self.left.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_stage_works_when_its_manager_lets_it() {
    let runtime = runtime(1);
    runtime.block_on(async {
        let network = Network::new("n");
        let manager = Arc::new(Closed::default());
        let inside = Inside::default();
        let handler = Compute(inside.clone());
        let stage = stage(&network, "stage")
            .threads(manager.clone())
            .priority(3);
        let stage = stage.handler(|_| Ok(handler)).expect("a stage");
        for event in 0..4 {
            stage.sender().send(event).await.expect("it is open");
        }
        assert_eq!((stage.stats().queued, stage.stats().servlets.busy), (4, 0));
        manager.open.store(true, Ordering::Relaxed);
        let waiting = std::mem::take(&mut *manager.waiting.lock());
        let seen = (waiting[0].name(), waiting[0].priority());
        assert_eq!(seen, ("stage", 3));
        assert!(waiting.iter().all(|one| one.is(&waiting[0])));
        waiting[0].call();
        stage.drain().await;
        assert_eq!((stage.stats().finished, inside.most()), (4, 1));
        while manager.left.load(Ordering::Relaxed) == 0 {
            tussah::yield_now().await;
        }
        // A stage that is gone is not called.
        drop((stage, network));
        waiting[0].call();
    });
}

/// Panics in each of its methods, and when it is dropped.
struct Broken(Arc<AtomicUsize>);

impl ThreadManager for Broken {
    fn enter(&self, _: &Applicant) -> bool {
        panic!("expected: nobody is let in")
    }

    fn leave(&self, _: &Applicant) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("expected: nobody leaves")
    }

    fn counts_waiting(&self) -> bool {
        panic!("expected: nobody is counted")
    }
}

impl Drop for Broken {
    fn drop(&mut self) {
        panic!("expected: nobody is dropped")
    }
}

/// Whoever sends is told nothing of it, and what is sent is handled.
#[test]
fn a_manager_that_panics_lets_in() {
    let runtime = runtime(1);
    runtime.block_on(async {
        let network = Network::new("n");
        let left = Arc::new(AtomicUsize::new(0));
        let manager = Arc::new(Broken(Arc::clone(&left)));
        let handler = Compute(Inside::default());
        let stage = stage(&network, "stage").threads(manager);
        let stage = stage.handler(|_| Ok(handler)).expect("a stage");
        for event in 0..4 {
            stage.sender().try_send(event).expect("there is room");
            stage.settled().await;
        }
        stage.drain().await;
        assert_eq!(stage.stats().finished, 4);
        while left.load(Ordering::Relaxed) == 0 {
            tussah::yield_now().await;
        }
        drop((stage, network));
    });
}
