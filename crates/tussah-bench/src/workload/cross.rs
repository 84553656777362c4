//! Ping-pong between two threads, and between two colors.
//!
//! With `--workers 1` both are on one worker. With two workers (the default) the runtime decides
//! where they run. With `--pin` each has a worker pinned to its own CPU, so that every message
//! crosses CPUs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Instant;

use kameo::actor::Spawn;

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::metric::Metric;
use crate::runtimes;

#[cfg(feature = "tussah")]
mod tussah;

pub static WORKLOAD: Workload = Workload {
    name: "cross",
    about: "ping-pong between two threads and between two colors: ns a round; --workers 1, 2, --pin",
    peers: PEERS,
};

const PEERS: &[Peer] = &[
    peer("floor", floor),
    peer("floor-os-threads", floor_os_threads),
    peer("tokio", tokio),
    peer("smol", smol),
    peer("actor", actor),
    #[cfg(feature = "tussah")]
    peer("tussah", tussah::run),
];

const THREADS: &str = "ns a round of threads";
const COLORS: &str = "ns a round of colors";

/// Returns the number of rounds, which is lower for pinned workers, since each round then requires
/// two wake-ups of an OS thread.
fn rounds(options: &Options) -> usize {
    options.scaled(if options.pin { 20_000 } else { 100_000 })
}

/// Runs two futures to their end, each on its own pinned OS thread, and reports the time.
fn on_two_os_threads<A, B>(
    rounds: usize,
    unit: &str,
    block_on: impl Fn(Pin<Box<dyn Future<Output = ()> + Send>>) + Sync,
    a: A,
    b: B,
) -> Metric
where
    A: Future<Output = ()> + Send + 'static,
    B: Future<Output = ()> + Send + 'static,
{
    let start = Instant::now();
    std::thread::scope(|scope| {
        let block_on = &block_on;
        let run = |index: usize, future: Pin<Box<dyn Future<Output = ()> + Send>>| {
            move || {
                runtimes::pin_to(index);
                block_on(future);
            }
        };
        scope.spawn(run(0, Box::pin(a)));
        scope.spawn(run(1, Box::pin(b)));
    });
    Metric::nanos_each(unit, rounds, start.elapsed())
}

/// Uses one OS thread: two futures polled in turn by hand, and a FIFO loop of boxed closures.
fn floor(options: &Options) -> Vec<Metric> {
    use std::collections::VecDeque;
    type Event = Box<dyn FnOnce(&mut VecDeque<Step>)>;
    struct Step(Event);

    fn event(left: usize) -> Step {
        Step(Box::new(move |fifo| {
            if left > 1 {
                fifo.push_back(event(left - 1));
            }
        }))
    }

    let rounds = rounds(options);
    let future = || -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async move {
            for _ in 1..rounds {
                futures_lite::future::yield_now().await;
            }
        })
    };
    let (mut ping, mut pong) = (future(), future());
    let mut context = Context::from_waker(Waker::noop());
    let start = Instant::now();
    while ping.as_mut().poll(&mut context).is_pending() {
        assert!(pong.as_mut().poll(&mut context).is_pending());
    }
    assert!(pong.as_mut().poll(&mut context).is_ready());
    let threads = Metric::nanos_each(THREADS, rounds, start.elapsed());

    let mut fifo = VecDeque::new();
    let start = Instant::now();
    fifo.push_back(event(2 * rounds));
    while let Some(Step(event)) = fifo.pop_front() {
        event(&mut fifo);
    }
    vec![threads, Metric::nanos_each(COLORS, rounds, start.elapsed())]
}

/// Uses two OS threads that park and unpark each other, with a tenth of the rounds, since each
/// round is two system calls.
fn floor_os_threads(options: &Options) -> Vec<Metric> {
    let rounds = rounds(options).div_ceil(10);
    let turn = Arc::new(AtomicUsize::new(0));
    let player = |me: usize, turn: Arc<AtomicUsize>, other: Option<std::thread::Thread>| {
        let mut other = other;
        for round in 0..rounds {
            // Acquire: pairs with the release of the other OS thread.
            while turn.load(Ordering::Acquire) != 2 * round + me {
                std::thread::park();
            }
            turn.store(2 * round + me + 1, Ordering::Release);
            if let Some(other) = &mut other {
                other.unpark();
            }
        }
    };
    let pin = options.pin;
    let start = Instant::now();
    std::thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel();
        let ping = scope.spawn({
            let turn = Arc::clone(&turn);
            move || {
                if pin {
                    runtimes::pin_to(0);
                }
                player(0, turn, told.recv().ok());
            }
        });
        let ping = ping.thread().clone();
        let turn = Arc::clone(&turn);
        scope.spawn(move || {
            if pin {
                runtimes::pin_to(1);
            }
            tell.send(std::thread::current())
                .expect("the first one waits for it");
            player(1, turn, Some(ping));
        });
    });
    assert_eq!(turn.load(Ordering::Acquire), 2 * rounds);
    vec![Metric::nanos_each(THREADS, rounds, start.elapsed())]
}

/// Uses two tasks with a `Notify` each for threads, and two tasks with an unbounded channel each
/// for colors.
fn tokio(options: &Options) -> Vec<Metric> {
    use tokio::sync::{Notify, mpsc};
    let rounds = rounds(options);
    let notifies = [Arc::new(Notify::new()), Arc::new(Notify::new())];
    let [ping, pong] = notifies.clone();
    let a = async move {
        for _ in 0..rounds {
            pong.notify_one();
            ping.notified().await;
        }
    };
    let [ping, pong] = notifies;
    let b = async move {
        for _ in 0..rounds {
            pong.notified().await;
            ping.notify_one();
        }
    };
    let threads = tokio_pair(options, THREADS, a, b);

    let (to_a, mut at_a) = mpsc::unbounded_channel();
    let (to_b, mut at_b) = mpsc::unbounded_channel();
    let a = async move {
        for round in 0..rounds {
            to_b.send(round).expect("the other color waits");
            assert_eq!(at_a.recv().await, Some(round));
        }
    };
    let b = async move {
        while let Some(round) = at_b.recv().await {
            to_a.send(round).expect("the other color waits");
        }
    };
    vec![threads, tokio_pair(options, COLORS, a, b)]
}

/// Runs two futures on tokio: on two single-threaded runtimes if pinned, otherwise as tasks of one
/// runtime.
fn tokio_pair<A, B>(options: &Options, unit: &'static str, a: A, b: B) -> Metric
where
    A: Future<Output = ()> + Send + 'static,
    B: Future<Output = ()> + Send + 'static,
{
    let rounds = rounds(options);
    if options.pin {
        let block_on = |future| {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            runtime
                .expect("a runtime without a driver needs nothing")
                .block_on(future);
        };
        return on_two_os_threads(rounds, unit, block_on, a, b);
    }
    runtimes::tokio(options, async move {
        let start = Instant::now();
        let (a, b) = (tokio::spawn(a), tokio::spawn(b));
        a.await.expect("no task panics");
        b.await.expect("no task panics");
        Metric::nanos_each(unit, rounds, start.elapsed())
    })
}

/// Uses two tasks with a channel for one message each for threads, and unbounded channels for
/// colors.
fn smol(options: &Options) -> Vec<Metric> {
    let rounds = rounds(options);
    if !options.pin {
        runtimes::smol_with(options, options.workers(), runtimes::Reactor::Off);
    }
    let mut metrics = Vec::new();
    for unit in [THREADS, COLORS] {
        let channel = || match unit {
            THREADS => async_channel::bounded(1),
            _ => async_channel::unbounded(),
        };
        let ((to_a, at_a), (to_b, at_b)) = (channel(), channel());
        let a = async move {
            for round in 0..rounds {
                to_b.try_send(round)
                    .expect("the other one has taken the last message");
                assert_eq!(at_a.recv().await, Ok(round));
            }
        };
        let b = async move {
            while let Ok(round) = at_b.recv().await {
                to_a.try_send(round)
                    .expect("the other one has taken the last message");
            }
        };
        metrics.push(if options.pin {
            on_two_os_threads(rounds, unit, futures_lite::future::block_on, a, b)
        } else {
            futures_lite::future::block_on(runtimes::SMOL.spawn(async move {
                let start = Instant::now();
                let (a, b) = (runtimes::SMOL.spawn(a), runtimes::SMOL.spawn(b));
                a.await;
                b.await;
                Metric::nanos_each(unit, rounds, start.elapsed())
            }))
        });
    }
    metrics
}

/// An actor for each color; the message names the actor to which to respond.
#[derive(kameo::Actor)]
struct Player;

struct Ball {
    left: usize,
    from: kameo::actor::ActorRef<Player>,
    done: tokio::sync::oneshot::Sender<()>,
}

impl kameo::message::Message<Ball> for Player {
    type Reply = ();

    async fn handle(&mut self, ball: Ball, ctx: &mut kameo::message::Context<Self, ()>) {
        if ball.left == 0 {
            ball.done.send(()).expect("the workload waits");
            return;
        }
        let back = Ball {
            left: ball.left - 1,
            from: ctx.actor_ref().clone(),
            done: ball.done,
        };
        assert!(
            ball.from.tell(back).try_send().is_ok(),
            "the other actor runs"
        );
    }
}

fn actor(options: &Options) -> Vec<Metric> {
    use kameo::mailbox::unbounded;
    let rounds = rounds(options);
    let (done, all_done) = tokio::sync::oneshot::channel();
    let (ping, pong) = (
        Player::prepare_with_mailbox(unbounded()),
        Player::prepare_with_mailbox(unbounded()),
    );
    let (ping_ref, pong_ref) = (ping.actor_ref().clone(), pong.actor_ref().clone());
    let serve = move || {
        let ball = Ball {
            left: 2 * rounds,
            from: pong_ref,
            done,
        };
        assert!(ping_ref.tell(ball).try_send().is_ok(), "the actor runs");
    };
    if options.pin {
        let a = async move {
            serve();
            ping.run(Player).await.expect("no panic");
        };
        let b = async move {
            let served = async { all_done.await.expect("the last player tells") };
            let playing = async {
                // The actor ends when the other actor has dropped its reference, which may be just
                // before its message is seen here.
                let _ = pong.run(Player).await;
                std::future::pending::<()>().await;
            };
            futures_lite::future::or(served, playing).await;
        };
        let block_on = |future| {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            runtime
                .expect("a runtime without a driver needs nothing")
                .block_on(future);
        };
        return vec![on_two_os_threads(rounds, COLORS, block_on, a, b)];
    }
    runtimes::tokio(options, async move {
        let start = Instant::now();
        let _tasks = (ping.spawn(Player), pong.spawn(Player));
        serve();
        all_done.await.expect("the last player tells");
        vec![Metric::nanos_each(COLORS, rounds, start.elapsed())]
    })
}
