//! The pipeline of tussah in three forms: sending one event at a time, forwarding by batch, and
//! sending without controllers.

use std::time::{Duration, Instant};

use ::tussah::stage::{Batch, BuildError, Network, Sender, SerialHandler, StageBuilder};
use ::tussah::sync::oneshot;

use super::{Count, Event, Size, event};
use crate::cli::Options;
use crate::metric::Metric;
use crate::runtimes;

/// The way in which a stage sends events on, and its controllers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One event at a time, with the default controllers and a latency target.
    Sends,
    /// By batch, with the same controllers and the same target.
    Forwards,
    /// One event at a time, without controllers.
    Bare,
}

/// The source, which sends all events on command.
struct Source {
    size: Size,
    to: Sender<Event>,
}

impl SerialHandler for Source {
    type Event = ();

    async fn handle(&mut self, batch: &mut Batch<()>) {
        batch.next();
        for number in 0..self.size.events {
            let sent = self.to.send(event(number)).await;
            sent.expect("the stage is open");
        }
    }
}

/// A stage that touches each event and sends it on.
struct Middle {
    size: Size,
    to: Sender<Event>,
}

impl SerialHandler for Middle {
    type Event = Event;

    async fn handle(&mut self, batch: &mut Batch<Event>) {
        while let Some(mut event) = batch.next() {
            self.size.touch(&mut event);
            self.to.send(event).await.expect("the stage is open");
        }
    }
}

/// A stage that touches each event in place, and forwards the batch.
struct Forward {
    size: Size,
    to: Sender<Event>,
}

impl SerialHandler for Forward {
    type Event = Event;

    async fn handle(&mut self, batch: &mut Batch<Event>) {
        for event in batch.events_mut() {
            self.size.touch(event);
        }
        self.to.forward(batch).await.expect("the stage is open");
    }
}

/// The last stage, which counts the events and reports when it has all of them.
struct Last {
    size: Size,
    count: Count,
    done: Option<oneshot::Sender<Count>>,
}

impl SerialHandler for Last {
    type Event = Event;

    async fn handle(&mut self, batch: &mut Batch<Event>) {
        while let Some(mut event) = batch.next() {
            self.size.touch(&mut event);
            self.count.add(&event);
        }
        if self.count.events == self.size.events {
            let done = self.done.take().expect("there are no more events");
            done.send(self.count).expect("the benchmark waits for it");
        }
    }
}

pub(super) fn sends(options: &Options) -> Vec<Metric> {
    run(options, Form::Sends)
}

pub(super) fn forwards(options: &Options) -> Vec<Metric> {
    run(options, Form::Forwards)
}

pub(super) fn bare(options: &Options) -> Vec<Metric> {
    run(options, Form::Bare)
}

fn run(options: &Options, form: Form) -> Vec<Metric> {
    let size = Size::of(options);
    let (count, elapsed) = runtimes::tussah(options, async move {
        let start = Instant::now();
        let done = pipeline(size, form).expect("the stages are a pipeline");
        (done.await.expect("no stage panics"), start.elapsed())
    });
    size.report(count, elapsed)
}

fn pipeline(size: Size, form: Form) -> Result<oneshot::Receiver<Count>, BuildError> {
    let network = Network::new("pipeline");
    let (done, all) = oneshot::channel();
    let mut done = Some(done);
    let room = size.capacity() as u64;
    let begin = |name: String| -> StageBuilder<Event> {
        let builder = network.stage(name).queue(room).batch(size.batch);
        match form {
            Form::Bare => builder.manual(),
            // The target is so long that no event is rejected: the controllers only observe.
            Form::Sends | Form::Forwards => builder.target(Duration::from_secs(60)),
        }
    };
    let name = |stage: usize| format!("stage {stage}");
    begin(name(size.stages)).serial(move |_| {
        let (count, done) = (Count::default(), done.take());
        Ok(Last { size, count, done })
    })?;
    for stage in (1..size.stages).rev() {
        let next = name(stage + 1);
        let builder = begin(name(stage));
        if form == Form::Forwards {
            builder.serial(move |edges| {
                let to = edges.named(&next)?.queue(room)?;
                Ok(Forward { size, to })
            })?;
        } else {
            builder.serial(move |edges| {
                let to = edges.named(&next)?.queue(room)?;
                Ok(Middle { size, to })
            })?;
        }
    }
    let first = name(1);
    let source = network.stage("source").serial(move |edges| {
        let to = edges.named(&first)?.queue(room)?;
        Ok(Source { size, to })
    })?;
    let started = source.sender().try_send(());
    started.expect("the source has room for its start");
    Ok(all)
}
