//! A burst of 10,000 events every millisecond, with idle time between and afterwards.
//!
//! A thread posts 10 events to each of 1,000 colors, waits until all have run, and sleeps until the
//! next millisecond. A runtime that spins while idle responds fast but burns CPU time, so the
//! workload reports both.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kameo::actor::Spawn;

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::measure::{Samples, cpu_time};
use crate::metric::Metric;
use crate::runtimes;

pub static WORKLOAD: Workload = Workload {
    name: "burst",
    about: "nothing, then 10,000 events over 1,000 colors, each ms (500 times): p99, and CPU of 0.5 s idle",
    peers: PEERS,
};

const PEERS: &[Peer] = &[
    peer("floor", floor),
    peer("tokio", tokio),
    peer("smol", smol),
    peer("actor", actor),
    #[cfg(feature = "tussah")]
    peer("tussah", tussah),
];

const TICK: Duration = Duration::from_millis(1);
const COLORS: usize = 1000;
const EVENTS_EACH: usize = 10;
const IDLE: Duration = Duration::from_millis(500);

/// The number of colors that still have events of this burst to run.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// The state of one color.
#[derive(Debug, Default)]
struct State {
    events: usize,
}

impl State {
    /// Runs one event. Returns whether it was the last event of the burst.
    fn event(&mut self) -> bool {
        self.events += 1;
        // Release and acquire: the event that finishes the burst has seen everything that the other
        // events did in it.
        self.events.is_multiple_of(EVENTS_EACH) && LEFT.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

/// The times of the bursts and the start of the next one.
struct Bursts {
    samples: &'static Samples,
    count: usize,
    due: Instant,
}

impl Bursts {
    fn new(options: &Options) -> Bursts {
        let count = options.scaled(500);
        Bursts {
            samples: Samples::leak(count),
            count,
            due: Instant::now(),
        }
    }

    /// Returns the start of the next burst; `None` after the last burst.
    fn next(&mut self) -> Option<Instant> {
        self.due = (self.due + TICK).max(Instant::now());
        (self.samples.len() < self.count).then_some(self.due)
    }

    /// Starts a burst.
    fn begin(&self) -> Instant {
        LEFT.store(COLORS, Ordering::Release);
        Instant::now()
    }

    /// Records the end of a burst.
    fn end(&self, begin: Instant) {
        self.samples.record(begin.elapsed());
        assert_eq!(LEFT.load(Ordering::Acquire), 0, "a burst ended early");
    }

    /// Stays idle on this OS thread, outside of the runtime, and returns the metrics.
    fn report(&self) -> Vec<Metric> {
        let before = cpu_time();
        std::thread::sleep(IDLE);
        let idle = cpu_time() - before;
        vec![
            Metric::lower("µs p50", self.samples.quantile_ns(500) / 1e3),
            Metric::lower("µs p99", self.samples.quantile_ns(990) / 1e3),
            Metric::lower("µs CPU of 0.5 s idle", idle.as_nanos() as f64 / 1e3),
        ]
    }
}

/// Uses a FIFO loop of boxed closures in one OS thread.
fn floor(options: &Options) -> Vec<Metric> {
    type Event = Box<dyn FnOnce(&mut [State]) -> bool>;
    let mut states: Vec<State> = (0..COLORS).map(|_| State::default()).collect();
    let mut fifo: std::collections::VecDeque<Event> = std::collections::VecDeque::new();
    let mut bursts = Bursts::new(options);
    while let Some(due) = bursts.next() {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let begin = bursts.begin();
        for event in 0..COLORS * EVENTS_EACH {
            let color = event % COLORS;
            fifo.push_back(Box::new(move |states| states[color].event()));
        }
        let mut last = false;
        while let Some(event) = fifo.pop_front() {
            last = event(&mut states);
        }
        assert!(last, "the last event ends the burst");
        bursts.end(begin);
    }
    bursts.report()
}

/// Uses a task with an unbounded channel for each color.
fn tokio(options: &Options) -> Vec<Metric> {
    static DONE: tokio::sync::Notify = tokio::sync::Notify::const_new();
    let mut bursts = Bursts::new(options);
    let bursts = runtimes::tokio(options, async move {
        let color = |_| {
            let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
            tokio::spawn(async move {
                let mut state = State::default();
                while let Some(()) = receiver.recv().await {
                    if state.event() {
                        DONE.notify_one();
                    }
                }
            });
            sender
        };
        let colors: Vec<_> = (0..COLORS).map(color).collect();
        while let Some(due) = bursts.next() {
            tokio::time::sleep_until(due.into()).await;
            let begin = bursts.begin();
            for event in 0..COLORS * EVENTS_EACH {
                colors[event % COLORS]
                    .send(())
                    .expect("the task waits for us");
            }
            DONE.notified().await;
            bursts.end(begin);
        }
        (bursts, colors)
    });
    bursts.0.report()
}

/// Uses a task with an unbounded channel for each color.
fn smol(options: &Options) -> Vec<Metric> {
    let mut bursts = Bursts::new(options);
    runtimes::smol_with(options, options.workers(), runtimes::Reactor::On);
    let bursts = futures_lite::future::block_on(runtimes::SMOL.spawn(async move {
        let (done, all_done) = async_channel::bounded(1);
        let color = |_| {
            let (sender, receiver) = async_channel::unbounded();
            let done = done.clone();
            let task = runtimes::SMOL.spawn(async move {
                let mut state = State::default();
                while let Ok(()) = receiver.recv().await {
                    if state.event() {
                        done.try_send(())
                            .expect("one at a time, and the receiver waits");
                    }
                }
            });
            task.detach();
            sender
        };
        let colors: Vec<_> = (0..COLORS).map(color).collect();
        while let Some(due) = bursts.next() {
            async_io::Timer::at(due).await;
            let begin = bursts.begin();
            for event in 0..COLORS * EVENTS_EACH {
                colors[event % COLORS]
                    .try_send(())
                    .expect("the task waits for us");
            }
            all_done.recv().await.expect("the colors hold senders");
            bursts.end(begin);
        }
        (bursts, colors)
    }));
    bursts.0.report()
}

/// An actor with an unbounded mailbox for each color.
#[derive(kameo::Actor)]
struct Color(State, &'static tokio::sync::Notify);

struct Event;

impl kameo::message::Message<Event> for Color {
    type Reply = ();

    async fn handle(&mut self, Event: Event, _: &mut kameo::message::Context<Self, ()>) {
        if self.0.event() {
            self.1.notify_one();
        }
    }
}

fn actor(options: &Options) -> Vec<Metric> {
    static DONE: tokio::sync::Notify = tokio::sync::Notify::const_new();
    let mut bursts = Bursts::new(options);
    let bursts = runtimes::tokio(options, async move {
        let color = |_| {
            let color = Color(State::default(), &DONE);
            Color::spawn_with_mailbox(color, kameo::mailbox::unbounded())
        };
        let colors: Vec<_> = (0..COLORS).map(color).collect();
        while let Some(due) = bursts.next() {
            tokio::time::sleep_until(due.into()).await;
            let begin = bursts.begin();
            for event in 0..COLORS * EVENTS_EACH {
                colors[event % COLORS]
                    .tell(Event)
                    .try_send()
                    .expect("unbounded");
            }
            DONE.notified().await;
            bursts.end(begin);
        }
        (bursts, colors)
    });
    bursts.0.report()
}

/// Uses a colored state for each color.
#[cfg(feature = "tussah")]
fn tussah(options: &Options) -> Vec<Metric> {
    let mut bursts = Bursts::new(options);
    let done: &'static _ = Box::leak(Box::new(tussah::sync::Notify::new()));
    let bursts = runtimes::tussah(options, async move {
        let color = |_| tussah::Colored::new(State::default());
        let colors: Vec<_> = (0..COLORS).map(color).collect();
        while let Some(due) = bursts.next() {
            tussah::time::sleep_until(due).await;
            let begin = bursts.begin();
            for event in 0..COLORS * EVENTS_EACH {
                let posted = colors[event % COLORS].post(move |state: &mut State| {
                    if state.event() {
                        done.notify_one();
                    }
                });
                assert!(
                    posted.is_ok(),
                    "the color has no limit and the runtime runs"
                );
            }
            done.notified().await;
            bursts.end(begin);
        }
        (bursts, colors)
    });
    bursts.0.report()
}
