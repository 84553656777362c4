//! The forms of tussah: a module with state for each flow, one without state, and a stage with keys
//! whose handler has a table of states.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ::tussah::flow::{Args, AsyncOut, Graph, Module, Via, module};
use ::tussah::stage::{Batch, Handler, Network};
use ::tussah::sync::Semaphore;
use ::tussah::time::sleep;
use parking_lot::Mutex;

use super::{QUEUE, Size, heap_since};
use crate::cli::Options;
use crate::metric::Metric;
use crate::runtimes;

/// The time between two looks at the number of handled events.
const LOOK: Duration = Duration::from_micros(200);

/// Sends all events, each in its flow, and closes the flows when it may.
struct Source(Size, Arc<Semaphore>);

#[module]
impl Source {
    fn init(size: Size, close: Arc<Semaphore>) -> Self {
        Self(size, close)
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        for (flow, number) in self.0.all() {
            out.to(flow, number).await;
        }
        let _permit = self.1.acquire().await;
        for flow in 0..self.0.flows {
            out.close(flow);
        }
    }
}

/// Adds the events of each flow, and the flows at their ends.
struct PerFlow(Size, Arc<AtomicU64>);

#[module]
impl PerFlow {
    fn init(size: Size, sum: Arc<AtomicU64>) -> Self {
        Self(size, sum)
    }

    fn run(&self, number: u64, state: &mut u64) {
        self.0.add(state, number);
    }

    fn end(&self, state: u64) {
        self.1.fetch_add(state, Ordering::Relaxed);
    }
}

/// Adds all events.
struct NoState(Size, Arc<AtomicU64>);

#[module]
impl NoState {
    fn init(size: Size, sum: Arc<AtomicU64>) -> Self {
        Self(size, sum)
    }

    fn run(&self, number: u64) {
        let mut state = 0;
        self.0.add(&mut state, number);
        self.1.fetch_add(state, Ordering::Relaxed);
    }
}

pub(super) fn per_flow(options: &Options) -> Vec<Metric> {
    graph::<PerFlow>(options)
}

pub(super) fn no_state(options: &Options) -> Vec<Metric> {
    graph::<NoState>(options)
}

fn graph<M: Module>(options: &Options) -> Vec<Metric> {
    let size = Size::of(options);
    let sum = Arc::new(AtomicU64::new(0));
    let (elapsed, heap) = runtimes::tussah(options, {
        let sum = Arc::clone(&sum);
        async move {
            let close = Arc::new(Semaphore::new(0));
            let mut graph = Graph::new("flows");
            let args = Args::new().with("size", size);
            let source = args.clone().with("close", Arc::clone(&close));
            graph.add::<Source>("source", source).expect("it is new");
            let args = args.with("sum", sum);
            graph.add::<M>("flows", args).expect("it is new");
            let via = Via::queue(QUEUE as u64);
            graph.connect_via("source", "flows", via).expect("known");
            let before = crate::heap_bytes();
            let start = Instant::now();
            let running = graph.start().expect("the graph is whole");
            while running.stats("flows").expect("it is known").finished < size.events {
                sleep(LOOK).await;
            }
            let (elapsed, heap) = (start.elapsed(), heap_since(before));
            close.add_permits(1);
            running.drain().await;
            (elapsed, heap)
        }
    });
    size.report(sum.load(Ordering::Relaxed), elapsed, heap)
}

/// Adds events to the states in a table.
struct Table(Size, Arc<Mutex<HashMap<u64, u64>>>);

impl Handler for Table {
    type Event = (u64, u64);

    async fn handle(&self, batch: &mut Batch<Self::Event>) {
        while let Some((flow, number)) = batch.next() {
            let mut state = *self.1.lock().entry(flow).or_default();
            self.0.add(&mut state, number);
            self.1.lock().insert(flow, state);
        }
    }
}

pub(super) fn keyed(options: &Options) -> Vec<Metric> {
    let size = Size::of(options);
    let (sum, elapsed, heap) = runtimes::tussah(options, async move {
        let states = Arc::new(Mutex::new(HashMap::new()));
        let network = Network::new("keyed");
        let before = crate::heap_bytes();
        let start = Instant::now();
        let stage = network.stage("table").queue(QUEUE as u64);
        let stage = stage.keyed_by(|event: &(u64, u64)| event.0);
        let table = Table(size, Arc::clone(&states));
        let stage = stage.handler(|_| Ok(table)).expect("the stage is alone");
        let sender = stage.sender();
        for event in size.all() {
            sender.send(event).await.expect("the stage is open");
        }
        stage.settled().await;
        let (elapsed, heap) = (start.elapsed(), heap_since(before));
        let sum = states.lock().values().sum();
        (sum, elapsed, heap)
    });
    size.report(sum, elapsed, heap)
}
