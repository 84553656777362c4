//! The chain as a compiled graph, as an interpreted graph, with queues, and by hand.

use std::sync::Arc;
use std::time::Instant;

use ::tussah::flow::{AsyncOut, Graph, Out, Params, Value, WeaveError, module, weave};
use ::tussah::sync::oneshot;
use parking_lot::Mutex;

use crate::cli::Options;
use crate::metric::Metric;
use crate::runtimes;

/// Sends numbers.
struct Numbers(u64);

#[module]
impl Numbers {
    fn init(count: u64) -> Self {
        Self(count)
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        for number in 0..self.0 {
            out.send(number).await;
        }
    }
}

/// Adds all numbers, and mixes each with the sum.
#[derive(Default)]
struct Mix(u64);

impl Mix {
    #[inline]
    fn mix(&mut self, number: u64) -> u64 {
        self.0 = self.0.wrapping_add(number);
        number ^ (self.0 >> 3)
    }
}

#[module]
impl Mix {
    fn run(&mut self, number: u64, out: &impl Out<u64>) {
        out.send(self.mix(number));
    }
}

/// The way to the end of the benchmark.
#[derive(Clone)]
struct Done(Arc<Mutex<Option<oneshot::Sender<u64>>>>);

/// Adds numbers, and reports the sum when it has all of them.
struct Last {
    left: u64,
    sum: u64,
    done: Done,
}

impl Last {
    #[inline]
    fn add(&mut self, number: u64) {
        self.sum = self.sum.wrapping_add(number);
        self.left -= 1;
        if self.left == 0 {
            let done = self.done.0.lock().take();
            let done = done.expect("there are no more numbers");
            done.send(self.sum).expect("the benchmark waits for it");
        }
    }
}

#[module]
impl Last {
    fn init(count: u64, done: Done) -> Self {
        Self {
            left: count,
            sum: 0,
            done,
        }
    }

    fn run(&mut self, number: u64) {
        self.add(number);
    }
}

/// All steps in one module.
struct All([Mix; 3], Last);

#[module]
impl All {
    fn init(count: u64, done: Done) -> Self {
        Self(Default::default(), Last::init(count, done))
    }

    fn run(&mut self, number: u64) {
        let [a, b, c] = &mut self.0;
        let number = c.mix(b.mix(a.mix(number)));
        self.1.add(number);
    }
}

weave! {
    use Numbers, Mix, Last

    graph Chain(count: count, done: Done) {
        numbers = Numbers(count)
        a = Mix()
        b = Mix()
        c = Mix()
        last = Last(count, done)
        numbers -> a
        fuse a -> b -> c -> last
    }
}

weave! {
    use Numbers, All

    graph ByHand(count: count, done: Done) {
        numbers = Numbers(count)
        all = All(count, done)
        numbers -> all
    }
}

pub(super) fn by_hand(options: &Options) -> Vec<Metric> {
    run(options, ByHand::graph)
}

pub(super) fn fused(options: &Options) -> Vec<Metric> {
    run(options, Chain::graph)
}

pub(super) fn called(options: &Options) -> Vec<Metric> {
    run(options, |params| {
        Chain::modules().graph("chain", Chain::TEXT, params)
    })
}

pub(super) fn queued(options: &Options) -> Vec<Metric> {
    let text = Chain::TEXT.replace("fuse ", "");
    run(options, move |params| {
        Chain::modules().graph("chain", &text, params)
    })
}

fn run(
    options: &Options,
    graph: impl FnOnce(&Params) -> Result<Graph, WeaveError> + Send + 'static,
) -> Vec<Metric> {
    let count = options.scaled(2_000_000) as u64;
    let (sum, elapsed) = runtimes::tussah(options, async move {
        let (done, sum) = oneshot::channel();
        let done = Done(Arc::new(Mutex::new(Some(done))));
        let params = Params::new().with("count", Value::Count(count));
        let graph = graph(&params.typed("done", done)).expect("the text is right");
        let start = Instant::now();
        let running = graph.start().expect("the graph is whole");
        let sum = sum.await.expect("no module panics");
        let elapsed = start.elapsed();
        drop(running);
        (sum, elapsed)
    });
    let mut steps = <[Mix; 3]>::default();
    let expected = (0..count).fold(0u64, |sum, number| {
        let number = steps
            .iter_mut()
            .fold(number, |number, step| step.mix(number));
        sum.wrapping_add(number)
    });
    assert_eq!(sum, expected, "an item was lost, doubled or overtaken");
    vec![Metric::nanos_each("ns an item", count as usize, elapsed)]
}
