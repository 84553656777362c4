//! A custom scheduler: shortest job first.
//!
//! `cargo run --release --example my_scheduler`
//!
//! One worker gets 64 colors whose events take 1 ms, 200 µs or 10 µs. With first in, first out,
//! short events wait for long ones. With shortest job first, they do not, so the mean time from the
//! post to the end of an event decreases.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use tussah::{Candidate, Color, Policy, Priorities, Runtime};

/// Chooses the color whose turns have been the shortest so far. Colors without a turn so far go
/// first, so that they are measured.
struct ShortestFirst;

impl Policy for ShortestFirst {
    fn choose(&mut self, candidates: &[Candidate]) -> usize {
        let shortest = (0..candidates.len()).min_by_key(|&index| candidates[index].turn_ns);
        shortest.unwrap_or(0)
    }
}

const COLORS: u64 = 64;
const ROUNDS: u32 = 40;

fn work(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn length(color: u64) -> Duration {
    Duration::from_micros([1000, 200, 10, 10][color as usize % 4])
}

/// Repeatedly posts an event to each color, and waits for all of them. Returns the mean time from
/// the post to the end of an event.
fn mean_time<P: Policy + 'static>(policy: fn() -> P) -> std::io::Result<Duration> {
    let runtime = Runtime::builder().workers(1).policy(policy).build()?;
    let colors: Vec<_> = (1..=COLORS).map(|n| runtime.color(Color(n))).collect();
    let (sender, receiver) = mpsc::channel();
    let mut sum = Duration::ZERO;
    for round in 0..ROUNDS {
        for (color, number) in colors.iter().zip(1..) {
            let (sender, posted) = (sender.clone(), Instant::now());
            let event = move || {
                work(length(number));
                // The receiver lives as long as the runtime.
                let _ = sender.send(posted.elapsed());
            };
            runtime
                .post_in(color, event)
                .expect("the color is not full");
        }
        let times: Duration = receiver.iter().take(COLORS as usize).sum();
        // The first half teaches the policy the lengths of the turns.
        if round >= ROUNDS / 2 {
            sum += times;
        }
    }
    Ok(sum / (ROUNDS / 2 * COLORS as u32))
}

fn main() -> std::io::Result<()> {
    let fifo = mean_time(|| Priorities)?;
    let shortest = mean_time(|| ShortestFirst)?;
    println!("mean time from post to end");
    println!("  first in, first out  {fifo:>10.1?}");
    println!("  shortest first       {shortest:>10.1?}");
    Ok(())
}
