//! A chain of calls whose receiver has no room: an instance handles nothing else before what it
//! sent has arrived, and everything arrives in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use tussah::flow::expansion::{Along, Fuse, port_number};
use tussah::flow::{Args, Graph, Module, Out, Via, module};
use tussah::sync::Semaphore;
use tussah::yield_now;

use super::change::{Burst, HoldOne, Pass, add, send};
use super::{Notes, turns};
use crate::runtime;

const OUT: u64 = port_number("out");

/// Passes numbers on, one at a time.
#[derive(Default)]
struct PassOne;

#[module]
impl PassOne {
    fn run(&mut self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

/// Makes the graph `head -> middle -> last`. The head calls the middle, and the last instance has
/// one number in hand, and one in its queue.
fn chain<H: Module, M: Module>(is_fused: bool, args: [Args; 3]) -> Graph {
    let mut graph = Graph::new("chain");
    let [head, middle, last] = args;
    add::<H>(&mut graph, "head", head);
    add::<M>(&mut graph, "middle", middle);
    add::<HoldOne>(&mut graph, "last", last);
    for (from, to, via) in [
        ("head", "middle", Via::call()),
        ("middle", "last", Via::queue(1)),
    ] {
        graph.connect_via(from, to, via).expect("both exist");
    }
    if is_fused {
        graph.fuse::<H, Fuse<OUT, H, M, Along>>("head");
    }
    graph
}

/// Checks what arrives behind a chain of `Burst` and another module.
fn burst<M: Module>(is_fused: bool) {
    let (notes, go) = (Notes::default(), Arc::new(Semaphore::new(0)));
    let last = notes.args().with("go", Arc::clone(&go));
    let graph = chain::<Burst, M>(is_fused, [Args::new(), Args::new(), last]);
    runtime(2).block_on(async {
        let running = graph.start().expect("it is whole");
        send(&running, "head", [100]).await;
        while notes.0.lock().is_empty() {
            yield_now().await;
        }
        turns().await;
        // One number is in hand, one in the queue, and one waits.
        let called = running.stats("middle").expect("it exists").called;
        assert!(called <= 3, "fused: {is_fused}, {called} calls");
        go.add_permits(100);
        running.drain().await;
    });
    let expected: Vec<_> = (0..100).map(|number| number.to_string()).collect();
    assert_eq!(notes.take(), expected, "fused: {is_fused}");
}

#[test]
fn what_one_call_sends_waits_in_order() {
    for is_fused in [false, true] {
        burst::<Pass>(is_fused);
        burst::<PassOne>(is_fused);
    }
}

/// The progress of two calls, and the number of the calls that they make.
#[derive(Default)]
struct Progress {
    step: AtomicU8,
    calls: AtomicU64,
    notes: Notes,
}

impl Progress {
    fn step(&self, step: u8) {
        self.step.store(step, Ordering::SeqCst);
    }

    fn is_at(&self, step: u8) -> bool {
        self.step.load(Ordering::SeqCst) == step
    }

    fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }
}

/// Sends from two calls. The first one begins before the second one, and sends after it.
struct Two(Arc<Progress>);

#[module]
impl Two {
    fn init(progress: Arc<Progress>) -> Self {
        Self(progress)
    }

    fn run(&self, number: u64, out: &impl Out<u64>) {
        let Self(progress) = self;
        if number == 0 {
            progress.step(1);
            while !progress.is_at(2) {
                std::thread::yield_now();
            }
            let before = progress.calls();
            out.send(0);
            let is_called = progress.calls() > before;
            progress.step(if is_called { 4 } else { 3 });
        } else {
            out.send(0);
            while progress.notes.0.lock().is_empty() {
                std::thread::yield_now();
            }
            (0..5).for_each(|_| out.send(0));
            progress.step(2);
        }
    }
}

/// Sends the numbers of its calls.
struct Count(Arc<Progress>);

#[module]
impl Count {
    fn init(progress: Arc<Progress>) -> Self {
        Self(progress)
    }

    fn run(&mut self, _number: u64, out: &impl Out<u64>) {
        out.send(self.0.calls.fetch_add(1, Ordering::SeqCst));
    }
}

/// The second call of the head leaves the middle without room while the first one can still call
/// it.
#[test]
fn what_two_calls_send_waits_in_order() {
    for is_fused in [false, true] {
        let (progress, go) = (Arc::<Progress>::default(), Arc::new(Semaphore::new(0)));
        let args = Args::new().with("progress", Arc::clone(&progress));
        let last = progress.notes.args().with("go", Arc::clone(&go));
        let graph = chain::<Two, Count>(is_fused, [args.clone(), args, last]);
        // One for each call of the head, and one for the last instance.
        runtime(3).block_on(async {
            let running = graph.start().expect("it is whole");
            send(&running, "head", [0]).await;
            while progress.is_at(0) {
                yield_now().await;
            }
            send(&running, "head", [1]).await;
            while !progress.is_at(3) {
                assert!(!progress.is_at(4), "fused: {is_fused}");
                yield_now().await;
            }
            // Both calls wait for room now.
            turns().await;
            go.add_permits(7);
            running.drain().await;
        });
        let expected: Vec<_> = (0..7).map(|number| number.to_string()).collect();
        assert_eq!(progress.notes.take(), expected, "fused: {is_fused}");
    }
}
