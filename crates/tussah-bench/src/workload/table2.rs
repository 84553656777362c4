//! 16 colors, each a chain of events: an event does some work, then posts the next event of the
//! same color.
//!
//! It follows table 2 of the paper on libasync-smp: the cost to post, queue and run one event while
//! every event's color is already running. The floor only does the work.

use std::hint::black_box;
use std::time::Instant;

use kameo::actor::Spawn;

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::measure::{WORK_80_NS, work};
use crate::metric::Metric;
use crate::runtimes;

pub static WORKLOAD: Workload = Workload {
    name: "table2",
    about: "16 colors, each a chain of events of about 80 ns that post the next one (5 M in all)",
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

const COLORS: usize = 16;

/// Returns the length of each chain, and the steps of work in each event.
fn size(options: &Options) -> (usize, u32) {
    (
        options.scaled(5_000_000 / COLORS),
        options.work.unwrap_or(WORK_80_NS),
    )
}

fn report(length: usize, start: Instant) -> Vec<Metric> {
    vec![Metric::rate(COLORS * length, start.elapsed())]
}

/// Uses OS threads that divide the chains among themselves and run them as loops.
fn floor(options: &Options) -> Vec<Metric> {
    let (length, steps) = size(options);
    let workers = options.workers();
    let elapsed = runtimes::os_threads(options, workers, |index| {
        for color in (index..COLORS).step_by(workers) {
            let mut x = color as u64 + 1;
            for _ in 0..length {
                x = work(black_box(x), steps);
            }
            black_box(x);
        }
    });
    vec![Metric::rate(COLORS * length, elapsed)]
}

/// Uses a task with an unbounded channel for each color; the task sends to itself.
fn tokio(options: &Options) -> Vec<Metric> {
    let (length, steps) = size(options);
    let chain = move |color: usize| async move {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        sender
            .send((color as u64 + 1, length))
            .expect("the receiver is in this task");
        let mut events = 0;
        while let Some((x, left)) = receiver.recv().await {
            events += 1;
            let x = work(x, steps);
            if left == 1 {
                break;
            }
            sender
                .send((x, left - 1))
                .expect("the receiver is in this task");
        }
        assert_eq!(events, length);
    };
    runtimes::tokio(options, async move {
        let start = Instant::now();
        let tasks: Vec<_> = (0..COLORS)
            .map(|color| tokio::spawn(chain(color)))
            .collect();
        for task in tasks {
            task.await.expect("the chain counts right");
        }
        report(length, start)
    })
}

/// Uses a task with an unbounded channel for each color; the task sends to itself.
fn smol(options: &Options) -> Vec<Metric> {
    let (length, steps) = size(options);
    let chain = move |color: usize| async move {
        let (sender, receiver) = async_channel::unbounded();
        sender
            .try_send((color as u64 + 1, length))
            .expect("the receiver is in this task");
        let mut events = 0;
        while let Ok((x, left)) = receiver.recv().await {
            events += 1;
            let x = work(x, steps);
            if left == 1 {
                break;
            }
            sender
                .try_send((x, left - 1))
                .expect("the receiver is in this task");
        }
        assert_eq!(events, length);
    };
    runtimes::smol(options, async move {
        let start = Instant::now();
        let tasks: Vec<_> = (0..COLORS)
            .map(|color| runtimes::SMOL.spawn(chain(color)))
            .collect();
        for task in tasks {
            task.await;
        }
        report(length, start)
    })
}

/// An actor with an unbounded mailbox for each color; it sends to itself.
#[derive(kameo::Actor)]
struct Chain {
    steps: u32,
    events: usize,
}

/// The state of the chain and the number of events left.
struct Step(u64, usize);

impl kameo::message::Message<Step> for Chain {
    type Reply = ();

    async fn handle(&mut self, Step(x, left): Step, ctx: &mut kameo::message::Context<Self, ()>) {
        self.events += 1;
        let x = work(x, self.steps);
        if left == 1 {
            ctx.stop();
        } else {
            let told = ctx.actor_ref().tell(Step(x, left - 1)).try_send();
            told.expect("an unbounded mailbox takes everything");
        }
    }
}

fn actor(options: &Options) -> Vec<Metric> {
    let (length, steps) = size(options);
    runtimes::tokio(options, async move {
        let start = Instant::now();
        let actors: Vec<_> = (0..COLORS)
            .map(|color| {
                let actor = Chain::prepare_with_mailbox(kameo::mailbox::unbounded());
                let first = Step(color as u64 + 1, length);
                actor.actor_ref().tell(first).try_send().expect("unbounded");
                actor.spawn(Chain { steps, events: 0 })
            })
            .collect();
        for actor in actors {
            let (chain, _) = actor.await.expect("not aborted").expect("no panic");
            assert_eq!(chain.events, length);
        }
        report(length, start)
    })
}

/// Uses a pinned color for each chain, and a closure that posts itself again.
#[cfg(feature = "tussah")]
fn tussah(options: &Options) -> Vec<Metric> {
    use crate::measure::Latch;

    struct Chain {
        color: tussah::ColorRef,
        steps: u32,
        latch: &'static Latch,
    }

    fn step(chain: &'static Chain, x: u64, left: usize) {
        let x = work(x, chain.steps);
        if left == 1 {
            black_box(x);
            chain.latch.count_down();
        } else {
            let posted = tussah::post_in(&chain.color, move || step(chain, x, left - 1));
            assert!(
                posted.is_ok(),
                "the color has no limit and the runtime runs"
            );
        }
    }

    let (length, steps) = size(options);
    let latch = Latch::leak(COLORS);
    let start = runtimes::tussah(options, async move {
        let handle = tussah::Handle::current();
        let chain = |color| Chain {
            color: handle.color(tussah::Color(color + 1)),
            steps,
            latch,
        };
        let chains: &'static [Chain] = (0..COLORS as u64).map(chain).collect::<Vec<_>>().leak();
        let start = Instant::now();
        for (color, chain) in chains.iter().enumerate() {
            let x = color as u64 + 1;
            let posted = tussah::post_in(&chain.color, move || step(chain, x, length));
            assert!(
                posted.is_ok(),
                "the color has no limit and the runtime runs"
            );
        }
        start
    });
    latch.wait();
    report(length, start)
}
