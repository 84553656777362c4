//! The effect of a hot color and a long event on other events.
//!
//! Every millisecond, an OS thread posts 0.5 ms of events to one hot color, and 20 events to some
//! of 10,000 cold colors. Every 100 ms, it posts one event that computes for 10 ms. In addition, 8
//! threads wait for a timer every millisecond.
//!
//! `change` does the same with a hot color whose events are short, except for a burst of long ones
//! every 250 ms. A scheduler that expects events to be as long as the previous ones lets the cold
//! colors and the timers wait for the whole burst.

use std::time::{Duration, Instant};

use fastrand::Rng;
use kameo::actor::Spawn;

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::measure::{Latch, Samples, WORK_80_NS, work};
use crate::metric::Metric;
use crate::runtimes;

pub static WORKLOAD: Workload = Workload {
    name: "mixed",
    about: "a hot color at 50 %, 10,000 cold ones, a 10 ms event every 100 ms, 8 timers of 1 kHz; 2 s: p99",
    peers: PEERS,
};

const PEERS: &[Peer] = &[
    peer("floor", |options| floor(options, Mix::Steady)),
    peer("tokio", |options| tokio(options, Mix::Steady)),
    peer("smol", |options| smol(options, Mix::Steady)),
    peer("actor", |options| actor(options, Mix::Steady)),
    #[cfg(feature = "tussah")]
    peer("tussah", |options| tussah(options, Mix::Steady)),
];

pub static CHANGE: Workload = Workload {
    name: "change",
    about: "a hot color, whose events change from 0.1 µs to 3 ms, 10,000 cold ones, 8 timers of 1 kHz; 2 s: p99.9",
    peers: CHANGE_PEERS,
};

const CHANGE_PEERS: &[Peer] = &[
    peer("floor", |options| floor(options, Mix::Change)),
    peer("tokio", |options| tokio(options, Mix::Change)),
    peer("smol", |options| smol(options, Mix::Change)),
    peer("actor", |options| actor(options, Mix::Change)),
    #[cfg(feature = "tussah")]
    peer("tussah", |options| tussah(options, Mix::Change)),
];

/// The behavior of the hot color and the long events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mix {
    Steady,
    Change,
}

const TICK: Duration = Duration::from_millis(1);
const COLD: usize = 10_000;
/// The hot color, which follows the cold ones.
const HOT: usize = COLD;
/// The color of the long events.
const LONG: usize = COLD + 1;
const COLORS: usize = COLD + 2;
const TIMERS: usize = 8;

const COLD_A_TICK: usize = 20;
const HOT_A_TICK: usize = 10;
const LONG_EVERY_TICKS: usize = 100;
/// The number of steps that take about 50 µs, so that the hot color takes half of a worker's time.
const HOT_STEPS: u32 = 625 * WORK_80_NS;
/// The number of steps that take about 10 ms.
const LONG_STEPS: u32 = 125_000 * WORK_80_NS;

/// The number of events in a burst; then the number of ticks between bursts, and the number of
/// steps that take about 3 ms.
const BURST: usize = 20;
const BURST_EVERY_TICKS: usize = 250;
const BURST_STEPS: u32 = 37_500 * WORK_80_NS;

/// The measurements, which live until the process ends.
#[derive(Clone, Copy, Debug)]
struct Run {
    mix: Mix,
    ticks: usize,
    start: Instant,
    cold: &'static Samples,
    timers: &'static Samples,
    /// Counts all events and all timers.
    latch: &'static Latch,
}

/// An event of any color.
#[derive(Debug)]
enum Event {
    /// A cold event, which records its age.
    Cold(Instant),
    /// Any other event, which computes.
    Work(u32),
}

impl Run {
    fn new(options: &Options, mix: Mix) -> Run {
        let ticks = options.scaled(2000);
        let long = match mix {
            Mix::Steady => ticks.div_ceil(LONG_EVERY_TICKS),
            Mix::Change => ticks.div_ceil(BURST_EVERY_TICKS) * BURST,
        };
        let timers = TIMERS * ticks;
        Run {
            mix,
            ticks,
            // The peer needs some time to set up.
            start: Instant::now() + 300 * TICK,
            cold: Samples::leak(ticks * COLD_A_TICK),
            timers: Samples::leak(timers),
            latch: Latch::leak(ticks * (COLD_A_TICK + HOT_A_TICK) + long + timers),
        }
    }

    /// Posts all events of the run from this OS thread, and waits until they have run.
    fn feed(&self, mut post: impl FnMut(usize, Event)) -> Vec<Metric> {
        let mut random = Rng::with_seed(1);
        for tick in 0..self.ticks {
            let due = self.start + tick as u32 * TICK;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let hot_steps = self.post_long(tick, &mut post);
            for _ in 0..HOT_A_TICK {
                post(HOT, Event::Work(hot_steps));
            }
            for _ in 0..COLD_A_TICK {
                post(random.usize(..COLD), Event::Cold(Instant::now()));
            }
        }
        self.latch.wait();
        assert_eq!(
            self.cold.len(),
            self.ticks * COLD_A_TICK,
            "a cold event was lost"
        );
        assert_eq!(self.timers.len(), self.ticks * TIMERS, "a timer was lost");
        let (cold, timer, permille) = match self.mix {
            Mix::Steady => ("µs p99 cold", "µs p99 timer", 990),
            Mix::Change => ("µs p99.9 cold", "µs p99.9 timer", 999),
        };
        vec![
            Metric::lower(cold, self.cold.quantile_ns(permille) / 1e3),
            Metric::lower(timer, self.timers.quantile_ns(permille) / 1e3),
        ]
    }

    /// Posts the long events of a tick. Returns the length of the hot ones.
    fn post_long(&self, tick: usize, post: &mut impl FnMut(usize, Event)) -> u32 {
        if self.mix == Mix::Steady {
            if tick.is_multiple_of(LONG_EVERY_TICKS) {
                post(LONG, Event::Work(LONG_STEPS));
            }
            return HOT_STEPS;
        }
        if tick.is_multiple_of(BURST_EVERY_TICKS) {
            for _ in 0..BURST {
                post(HOT, Event::Work(BURST_STEPS));
            }
        }
        WORK_80_NS
    }

    /// Runs one event.
    fn run(&self, event: Event) {
        match event {
            Event::Cold(posted) => self.cold.record(posted.elapsed()),
            Event::Work(steps) => {
                std::hint::black_box(work(1, steps));
            }
        }
        self.latch.count_down();
    }

    /// Returns the deadlines of one timer thread: every millisecond, but at other moments than the
    /// feeder and the other timers.
    fn deadlines(&self, timer: usize) -> impl Iterator<Item = Instant> + Send + use<> {
        let first = self.start + TICK / TIMERS as u32 * timer as u32 + TICK / 16;
        (0..self.ticks as u32).map(move |tick| first + tick * TICK)
    }

    /// Records that a timer fired.
    fn fired(&self, deadline: Instant) {
        self.timers.record(deadline.elapsed());
        self.latch.count_down();
    }
}

/// Uses OS threads, which the kernel preempts: one for each kind of event and one for each timer.
fn floor(options: &Options, mix: Mix) -> Vec<Metric> {
    let run = Run::new(options, mix);
    let thread = || {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || receiver.into_iter().for_each(|event| run.run(event)));
        sender
    };
    let (cold, hot, long) = (thread(), thread(), thread());
    for timer in 0..TIMERS {
        std::thread::spawn(move || {
            for deadline in run.deadlines(timer) {
                std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
                run.fired(deadline);
            }
        });
    }
    run.feed(|color, event| {
        let sender = match color {
            HOT => &hot,
            LONG => &long,
            _ => &cold,
        };
        sender.send(event).expect("the OS thread waits for us");
    })
}

/// Starts the timer threads of tokio, which the actor crate also has to use.
fn tokio_timers(runtime: &tokio::runtime::Runtime, run: Run) {
    for timer in 0..TIMERS {
        runtime.spawn(async move {
            for deadline in run.deadlines(timer) {
                tokio::time::sleep_until(deadline.into()).await;
                run.fired(deadline);
            }
        });
    }
}

/// Uses a task with an unbounded channel for each color.
fn tokio(options: &Options, mix: Mix) -> Vec<Metric> {
    let runtime = runtimes::tokio_with(options, options.workers());
    let run = Run::new(options, mix);
    let color = |_| {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        runtime.spawn(async move {
            while let Some(event) = receiver.recv().await {
                run.run(event);
            }
        });
        sender
    };
    let colors: Vec<_> = (0..COLORS).map(color).collect();
    tokio_timers(runtime, run);
    run.feed(|color, event| {
        assert!(
            colors[color].send(event).is_ok(),
            "the task runs until the sender is gone"
        );
    })
}

/// Uses a task with an unbounded channel for each color.
fn smol(options: &Options, mix: Mix) -> Vec<Metric> {
    runtimes::smol_with(options, options.workers(), runtimes::Reactor::On);
    let run = Run::new(options, mix);
    let color = |_| {
        let (sender, receiver) = async_channel::unbounded();
        let task = runtimes::SMOL.spawn(async move {
            while let Ok(event) = receiver.recv().await {
                run.run(event);
            }
        });
        task.detach();
        sender
    };
    let colors: Vec<_> = (0..COLORS).map(color).collect();
    for timer in 0..TIMERS {
        let task = runtimes::SMOL.spawn(async move {
            for deadline in run.deadlines(timer) {
                async_io::Timer::at(deadline).await;
                run.fired(deadline);
            }
        });
        task.detach();
    }
    run.feed(|color, event| {
        assert!(
            colors[color].try_send(event).is_ok(),
            "the task runs until the sender is gone"
        );
    })
}

/// An actor with an unbounded mailbox for each color.
#[derive(kameo::Actor)]
struct Color(Run);

impl kameo::message::Message<Event> for Color {
    type Reply = ();

    async fn handle(&mut self, event: Event, _: &mut kameo::message::Context<Self, ()>) {
        self.0.run(event);
    }
}

fn actor(options: &Options, mix: Mix) -> Vec<Metric> {
    let runtime = runtimes::tokio_with(options, options.workers());
    let run = Run::new(options, mix);
    let _context = runtime.enter();
    let color = |_| Color::spawn_with_mailbox(Color(run), kameo::mailbox::unbounded());
    let colors: Vec<_> = (0..COLORS).map(color).collect();
    tokio_timers(runtime, run);
    run.feed(|color, event| {
        assert!(
            colors[color].tell(event).try_send().is_ok(),
            "the actor runs"
        );
    })
}

/// Uses a pinned color for each color.
#[cfg(feature = "tussah")]
fn tussah(options: &Options, mix: Mix) -> Vec<Metric> {
    let runtime = runtimes::tussah_with(options, options.workers());
    let run = Run::new(options, mix);
    let color = |color| runtime.color(tussah::Color(color as u64 + 1));
    let colors: Vec<_> = (0..COLORS).map(color).collect();
    for timer in 0..TIMERS {
        drop(runtime.spawn(async move {
            for deadline in run.deadlines(timer) {
                tussah::time::sleep_until(deadline).await;
                run.fired(deadline);
            }
        }));
    }
    run.feed(|color, event| {
        let posted = runtime.post_in(&colors[color], move || run.run(event));
        assert!(
            posted.is_ok(),
            "the color has no limit and the runtime runs"
        );
    })
}
