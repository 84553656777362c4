//! The pipeline as a flow graph: its stages are modules, which queues or calls connect.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use ::tussah::flow::{Args, AsyncOut, Graph, GraphError, Module, Out, Running, Via, module};
use ::tussah::sync::oneshot;

use super::{Count, Event, Size, event};
use crate::cli::Options;
use crate::metric::Metric;
use crate::runtimes;

/// The way to the end of the benchmark, which the last module takes.
type Done = Arc<Mutex<Option<oneshot::Sender<Count>>>>;

/// Sends all events.
struct Source(Size);

#[module]
impl Source {
    fn init(size: Size) -> Self {
        Self(size)
    }

    async fn start(&self, out: &impl AsyncOut<Event>) {
        for number in 0..self.0.events {
            out.send(event(number)).await;
        }
    }
}

/// Touches each event and sends it on.
struct Middle(Size);

#[module]
impl Middle {
    fn init(size: Size) -> Self {
        Self(size)
    }

    fn run(&mut self, mut event: Event, out: &impl Out<Event>) {
        self.0.touch(&mut event);
        out.send(event);
    }
}

/// Does the same for any number of events at a time.
struct Any(Size);

#[module]
impl Any {
    fn init(size: Size) -> Self {
        Self(size)
    }

    fn run(&self, mut event: Event, out: &impl Out<Event>) {
        self.0.touch(&mut event);
        out.send(event);
    }
}

/// Counts the events, and reports when it has all of them.
struct Last {
    size: Size,
    count: Count,
    done: Done,
}

#[module]
impl Last {
    fn init(size: Size, done: Done) -> Self {
        Self {
            size,
            count: Count::default(),
            done,
        }
    }

    fn run(&mut self, mut event: Event) {
        self.size.touch(&mut event);
        self.count.add(&event);
        if self.count.events == self.size.events {
            let done = self.done.lock().expect("no module panics").take();
            let done = done.expect("there are no more events");
            done.send(self.count).expect("the benchmark waits for it");
        }
    }
}

pub(super) fn queues(options: &Options) -> Vec<Metric> {
    run::<Middle>(options, |size| Via::queue(size.capacity() as u64))
}

pub(super) fn calls(options: &Options) -> Vec<Metric> {
    run::<Any>(options, |_| Via::call())
}

fn run<M: Module>(options: &Options, via: fn(Size) -> Via) -> Vec<Metric> {
    let size = Size::of(options);
    let (count, elapsed) = runtimes::tussah(options, async move {
        let (done, all) = oneshot::channel();
        let start = Instant::now();
        let running = pipeline::<M>(size, done, via(size)).expect("the graph is a pipeline");
        let count = all.await.expect("no module panics");
        drop(running);
        (count, start.elapsed())
    });
    size.report(count, elapsed)
}

/// Makes a pipeline. The first edge is a queue in any case, as the source is no stage.
fn pipeline<M: Module>(
    size: Size,
    done: oneshot::Sender<Count>,
    via: Via,
) -> Result<Running, GraphError> {
    let mut graph = Graph::new("pipeline");
    let sized = || Args::new().with("size", size);
    let name = |stage: usize| format!("stage {stage}");
    graph.add::<Source>("source", sized())?;
    for stage in 1..size.stages {
        graph.add::<M>(&name(stage), sized())?;
    }
    let done: Done = Arc::new(Mutex::new(Some(done)));
    graph.add::<Last>(&name(size.stages), sized().with("done", done))?;
    graph.connect_via("source", &name(1), Via::queue(size.capacity() as u64))?;
    for stage in 1..size.stages {
        graph.connect_via(&name(stage), &name(stage + 1), via.clone())?;
    }
    graph.start()
}
