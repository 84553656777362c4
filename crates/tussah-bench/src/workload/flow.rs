//! State for each flow: the events of many flows arrive interleaved, and each call adds to the
//! state of its flow.
//!
//! The unit is an event: from the source, through one queue, to its handler. The forms differ in
//! how the handler finds the state. For tokio, each flow is a task with a channel of its own. The
//! sum of all states is checked.

#[cfg(feature = "tussah")]
mod tussah;

use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::measure::{WORK_80_NS, work};
use crate::metric::Metric;
use crate::runtimes;

pub static WORKLOAD: Workload = Workload {
    name: "flow",
    about: "events of --flows flows (10000), each of which has a state: ns an event, bytes of an idle flow (with count-heap)",
    peers: PEERS,
};

const PEERS: &[Peer] = &[
    peer("floor", floor),
    peer("tokio", tokio),
    #[cfg(feature = "tussah")]
    peer("tussah", tussah::per_flow),
    #[cfg(feature = "tussah")]
    peer("tussah-no-state", tussah::no_state),
    #[cfg(feature = "tussah")]
    peer("tussah-keyed", tussah::keyed),
];

/// Bound, in events: the capacity of the queue before the handler.
const QUEUE: usize = 1024;

/// The size of a run.
#[derive(Clone, Copy, Debug)]
struct Size {
    flows: u64,
    events: u64,
    /// The number of steps of work on each event.
    steps: u32,
}

impl Size {
    fn of(options: &Options) -> Size {
        let flows = options.flows.unwrap_or(10_000);
        let work_ns = options.work_ns.unwrap_or(0);
        Size {
            flows,
            events: (options.scaled(2_000_000) as u64).max(flows),
            steps: work_ns.saturating_mul(WORK_80_NS) / 80,
        }
    }

    /// Returns all events: the flow and the number of each.
    fn all(self) -> impl Iterator<Item = (u64, u64)> {
        (0..self.events).map(move |number| (number % self.flows, number))
    }

    /// Adds an event to the state of its flow.
    #[inline]
    fn add(self, state: &mut u64, number: u64) {
        *state += number;
        if self.steps > 0 {
            black_box(work(number, self.steps));
        }
    }

    /// Checks and reports a run. `heap` is the number of bytes of all flows, if that is known.
    fn report(self, sum: u64, elapsed: Duration, heap: Option<f64>) -> Vec<Metric> {
        let expected = self.events * (self.events - 1) / 2;
        assert_eq!(sum, expected, "an event was lost or doubled");
        let flows = format!("{} flows", self.flows);
        let each = Metric::nanos_each(
            &format!("ns an event, {flows}"),
            self.events as usize,
            elapsed,
        );
        let bytes = heap.map(|bytes| {
            let unit = format!("bytes of a flow, {flows}");
            Metric::lower(&unit, bytes / self.flows as f64)
        });
        std::iter::once(each).chain(bytes).collect()
    }
}

/// Returns the number of bytes on the heap since `before`.
fn heap_since(before: Option<f64>) -> Option<f64> {
    Some(crate::heap_bytes()? - before?)
}

/// Keeps all states in a hash table, without a queue.
fn floor(options: &Options) -> Vec<Metric> {
    let size = Size::of(options);
    let before = crate::heap_bytes();
    let start = Instant::now();
    let mut states: HashMap<u64, u64> = HashMap::new();
    for (flow, number) in size.all() {
        size.add(states.entry(flow).or_default(), number);
    }
    let elapsed = start.elapsed();
    let heap = heap_since(before);
    size.report(states.values().sum(), elapsed, heap)
}

/// Runs a task for each flow, with a channel of its own. The source finds the channel.
fn tokio(options: &Options) -> Vec<Metric> {
    let size = Size::of(options);
    let (sum, elapsed, heap) = runtimes::tokio(options, async move {
        let before = crate::heap_bytes();
        let start = Instant::now();
        let mut flows = HashMap::new();
        for (flow, number) in size.all() {
            let (to, _) = flows.entry(flow).or_insert_with(|| {
                // Few events of a flow are under way at a time.
                let (to, mut from) = tokio::sync::mpsc::channel(4);
                let task = tokio::spawn(async move {
                    let mut state = 0;
                    while let Some(number) = from.recv().await {
                        size.add(&mut state, number);
                    }
                    state
                });
                (to, task)
            });
            to.send(number).await.expect("the task waits for it");
        }
        let heap = heap_since(before);
        let mut sum = 0;
        for (to, task) in flows.into_values() {
            drop(to);
            sum += task.await.expect("no task panics");
        }
        (sum, start.elapsed(), heap)
    });
    size.report(sum, elapsed, heap)
}
