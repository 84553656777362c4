//! The ping-pong of tussah: two threads with a `Notify` for each, and two colors that post to each
//! other.

use std::sync::Arc;
use std::time::Instant;

use ::tussah::sync::Notify;
use ::tussah::{ColorRef, Handle};

use super::{COLORS, THREADS, rounds};
use crate::cli::Options;
use crate::measure::Latch;
use crate::metric::Metric;
use crate::runtimes;

/// Returns the handles of the runtimes of both sides: the same runtime twice, or two with one
/// pinned worker each.
fn sides(options: &Options) -> [Handle; 2] {
    if !options.pin {
        let handle = runtimes::tussah_with(options, options.workers())
            .handle()
            .clone();
        return [handle.clone(), handle];
    }
    [0, 1].map(|index| {
        let build = move || {
            runtimes::pin_to(index);
            let runtime = ::tussah::Runtime::builder().workers(1).build();
            // The worker inherits the CPU of the OS thread that starts it.
            let runtime = Box::leak(Box::new(runtime.expect("the OS gives us a thread")));
            runtime.handle().clone()
        };
        std::thread::spawn(build)
            .join()
            .expect("building a runtime does not panic")
    })
}

struct Player {
    handle: Handle,
    color: ColorRef,
}

fn play(players: &'static [Player; 2], left: usize, latch: &'static Latch) {
    if left == 0 {
        return latch.count_down();
    }
    let next = &players[left % 2];
    let posted = next
        .handle
        .post_in(&next.color, move || play(players, left - 1, latch));
    assert!(
        posted.is_ok(),
        "the color has no limit and the runtime runs"
    );
}

pub fn run(options: &Options) -> Vec<Metric> {
    let rounds = rounds(options);
    let sides = sides(options);
    let notifies = [Arc::new(Notify::new()), Arc::new(Notify::new())];
    let [ping, pong] = notifies.clone();
    let start = Instant::now();
    let a = sides[0].spawn(async move {
        for _ in 0..rounds {
            pong.notify_one();
            ping.notified().await;
        }
    });
    let [ping, pong] = notifies;
    let b = sides[1].spawn(async move {
        for _ in 0..rounds {
            pong.notified().await;
            ping.notify_one();
        }
    });
    futures_lite::future::block_on(a).expect("no thread panics");
    futures_lite::future::block_on(b).expect("no thread panics");
    let threads = Metric::nanos_each(THREADS, rounds, start.elapsed());

    let mut number = 0;
    let player = |handle: Handle| {
        number += 1;
        let color = handle.color(::tussah::Color(number));
        Player { handle, color }
    };
    let players: &'static [Player; 2] = Box::leak(Box::new(sides.map(player)));
    let latch = Latch::leak(1);
    let start = Instant::now();
    play(players, 2 * rounds, latch);
    latch.wait();
    vec![threads, Metric::nanos_each(COLORS, rounds, start.elapsed())]
}
