//! Unbalanced load: all colors start on one worker, and the others have to steal them.
//!
//! The events either take about 8 µs of CPU, or (`--memory`) walk the 256 KB of their color, which
//! makes a color expensive to move. `floor-1-thread` is the speed of a single worker, and `floor`
//! that of perfectly divided work.

use std::hint::black_box;
use std::time::{Duration, Instant};

use kameo::actor::Spawn;

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::measure::{WORK_80_NS, work};
use crate::metric::Metric;
use crate::runtimes;

pub static WORKLOAD: Workload = Workload {
    name: "steal",
    about: "64 colors of 400 events (8 µs each, or --memory: 256 KB a color), all posted by one worker",
    peers: PEERS,
};

const PEERS: &[Peer] = &[
    peer("floor-1-thread", floor_one),
    peer("floor", floor),
    peer("tokio", tokio),
    peer("smol", smol),
    peer("actor", actor),
    #[cfg(feature = "tussah")]
    peer("tussah-no-steal", tussah_no_steal),
    #[cfg(feature = "tussah")]
    peer("tussah", tussah),
];

const COLORS: usize = 64;
const COLOR_WORDS: usize = 256 * 1024 / size_of::<u64>();

/// The number of events of each color and the work of each event.
#[derive(Clone, Copy, Debug)]
struct Size {
    events: usize,
    steps: u32,
    memory: bool,
}

impl Size {
    fn of(options: &Options) -> Size {
        Size {
            events: options.scaled(400),
            steps: options.work.unwrap_or(100 * WORK_80_NS),
            memory: options.memory,
        }
    }

    fn report(self, elapsed: Duration) -> Vec<Metric> {
        vec![Metric::rate(COLORS * self.events, elapsed)]
    }
}

/// The state of one color.
#[derive(Debug)]
struct State {
    x: u64,
    left: usize,
    steps: u32,
    words: Vec<u64>,
}

impl State {
    fn new(color: usize, size: Size) -> State {
        let words = if size.memory {
            vec![1; COLOR_WORDS]
        } else {
            Vec::new()
        };
        State {
            x: color as u64 + 1,
            left: size.events,
            steps: size.steps,
            words,
        }
    }

    /// Runs one event. Returns whether it was the last event of its color.
    fn event(&mut self) -> bool {
        if self.words.is_empty() {
            self.x = work(black_box(self.x), self.steps);
        }
        for word in &mut self.words {
            *word = word.wrapping_mul(3).wrapping_add(self.x);
        }
        black_box(&mut self.words);
        self.left = self.left.checked_sub(1).expect("an event ran twice");
        self.left == 0
    }
}

/// Divides the colors evenly by hand.
fn floor(options: &Options) -> Vec<Metric> {
    by_hand(options, options.workers())
}

/// Runs all colors in one OS thread.
fn floor_one(options: &Options) -> Vec<Metric> {
    by_hand(options, 1)
}

fn by_hand(options: &Options, workers: usize) -> Vec<Metric> {
    let size = Size::of(options);
    let elapsed = runtimes::os_threads(options, workers, |index| {
        for color in (index..COLORS).step_by(workers) {
            let mut state = State::new(color, size);
            while !state.event() {}
        }
    });
    size.report(elapsed)
}

/// Uses a task for each color, spawned by one task; all events are already in its channel.
fn tokio(options: &Options) -> Vec<Metric> {
    let size = Size::of(options);
    runtimes::tokio(options, async move {
        let states: Vec<_> = (0..COLORS).map(|color| State::new(color, size)).collect();
        let start = Instant::now();
        let mut tasks = Vec::new();
        for mut state in states {
            let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
            tasks.push(tokio::spawn(async move {
                while let Some(()) = receiver.recv().await {
                    state.event();
                }
                assert_eq!(state.left, 0);
            }));
            for _ in 0..size.events {
                sender
                    .send(())
                    .expect("the task runs until the sender is gone");
            }
        }
        for task in tasks {
            task.await.expect("no event was lost");
        }
        size.report(start.elapsed())
    })
}

/// Uses a task for each color, spawned by one task; all events are already in its channel.
fn smol(options: &Options) -> Vec<Metric> {
    let size = Size::of(options);
    runtimes::smol(options, async move {
        let states: Vec<_> = (0..COLORS).map(|color| State::new(color, size)).collect();
        let start = Instant::now();
        let mut tasks = Vec::new();
        for mut state in states {
            let (sender, receiver) = async_channel::unbounded();
            tasks.push(runtimes::SMOL.spawn(async move {
                while let Ok(()) = receiver.recv().await {
                    state.event();
                }
                assert_eq!(state.left, 0);
            }));
            for _ in 0..size.events {
                sender
                    .try_send(())
                    .expect("the task runs until the sender is gone");
            }
        }
        for task in tasks {
            task.await;
        }
        size.report(start.elapsed())
    })
}

/// An actor for each color, spawned by one task; all events are already in its mailbox.
#[derive(kameo::Actor)]
struct Color(State);

struct Event;

impl kameo::message::Message<Event> for Color {
    type Reply = ();

    async fn handle(&mut self, Event: Event, _: &mut kameo::message::Context<Self, ()>) {
        self.0.event();
    }
}

fn actor(options: &Options) -> Vec<Metric> {
    let size = Size::of(options);
    runtimes::tokio(options, async move {
        let states: Vec<_> = (0..COLORS).map(|color| State::new(color, size)).collect();
        let start = Instant::now();
        let mut actors = Vec::new();
        for state in states {
            let actor = Color::prepare_with_mailbox(kameo::mailbox::unbounded());
            for _ in 0..size.events {
                actor.actor_ref().tell(Event).try_send().expect("unbounded");
            }
            actors.push(actor.spawn(Color(state)));
        }
        for actor in actors {
            let (color, _) = actor.await.expect("not aborted").expect("no panic");
            assert_eq!(color.0.left, 0);
        }
        size.report(start.elapsed())
    })
}

/// Uses a colored state for each color; one thread posts all events.
#[cfg(feature = "tussah")]
fn tussah(options: &Options) -> Vec<Metric> {
    use crate::measure::Latch;

    let size = Size::of(options);
    let latch = Latch::leak(COLORS);
    let start = runtimes::tussah(options, async move {
        let state = |color| tussah::Colored::new(State::new(color, size));
        let states: Vec<_> = (0..COLORS).map(state).collect();
        let start = Instant::now();
        for state in &states {
            for _ in 0..size.events {
                let posted = state.post(move |state: &mut State| {
                    if state.event() {
                        latch.count_down();
                    }
                });
                assert!(
                    posted.is_ok(),
                    "the color has no limit and the runtime runs"
                );
            }
        }
        start
    });
    latch.wait();
    size.report(start.elapsed())
}

/// Does the same without stealing, so that the two can be compared as a pair.
#[cfg(feature = "tussah")]
fn tussah_no_steal(options: &Options) -> Vec<Metric> {
    tussah(&Options {
        no_steal: true,
        ..options.clone()
    })
}
