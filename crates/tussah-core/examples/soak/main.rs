//! A soak test: everything at the same time, for hours.
//!
//! ```sh
//! cargo run --release -p tussah-core --example soak -- MINUTES [SEED]
//! ```
//!
//! One runtime after the other gets posts, threads, readers, requests for one color and for
//! several, timers, aborts, and panics in closures, destructors and wakers. Its events last up to
//! 30 ms, with lengths that change, and the number of workers changes repeatedly. It is then shut
//! down, sometimes immediately. `check.rs` contains the checks. The exit status is non-zero if
//! anything is broken or hangs. The seed determines the load, but not the scheduler's decisions.

mod check;
mod lengths;
mod load;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use check::{Checks, Meant};
use fastrand::Rng;
use tussah_core::Runtime;

/// The time for which a runtime gets its load.
const ROUND: Duration = Duration::from_secs(5);
/// The additional time after which a round counts as hanging.
const HANG: Duration = Duration::from_secs(60);
/// The number of rounds after which the memory must no longer grow.
const WARM_UP: u64 = 10;
/// Bound, in bytes: the growth of the process's memory after the warm-up, as much as the allocator
/// may need.
const GROWTH_MAX: u64 = 64 << 20;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let minutes = arguments.next().and_then(|text| text.parse::<u64>().ok());
    let Some(minutes) = minutes else {
        eprintln!("usage: soak MINUTES [SEED]");
        return ExitCode::from(2);
    };
    let seed = arguments.next().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.payload().is::<Meant>() {
            print(info);
        }
    }));
    println!("{minutes} minutes, seed {seed}");
    match soak(Duration::from_secs(minutes * 60), seed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(broken) => {
            println!("BROKEN with seed {seed}: {broken}");
            ExitCode::FAILURE
        }
    }
}

fn soak(length: Duration, seed: u64) -> Result<(), String> {
    let start = Instant::now();
    let (mut rounds, mut events, mut warm) = (0, 0, 0);
    while start.elapsed() < length {
        let (sender, receiver) = mpsc::channel();
        let round_seed = seed.wrapping_add(rounds);
        // The round has its own OS thread, so that a hang is noticed. A round that hangs or panics
        // leaves its OS threads behind.
        std::thread::spawn(move || sender.send(round(round_seed)));
        events += match receiver.recv_timeout(ROUND + HANG) {
            Ok(outcome) => outcome?,
            Err(RecvTimeoutError::Timeout) => return Err(format!("round {rounds} hangs")),
            Err(RecvTimeoutError::Disconnected) => return Err(format!("round {rounds} panicked")),
        };
        rounds += 1;
        let resident = resident();
        if rounds == WARM_UP {
            warm = resident;
        }
        println!(
            "{} s: {rounds} runtimes, {events} events, {} MB",
            start.elapsed().as_secs(),
            resident >> 20
        );
        if rounds > WARM_UP && resident > warm + GROWTH_MAX {
            return Err(format!(
                "the process takes {resident} bytes, and took {warm} after {WARM_UP} runtimes"
            ));
        }
    }
    Ok(())
}

/// Runs one runtime from start to end. Returns the number of its events.
fn round(seed: u64) -> Result<u64, String> {
    let mut random = Rng::with_seed(seed);
    let workers = 1 + random.u64(..4) as usize;
    let runtime = Runtime::builder().workers(workers).seed(seed).build();
    let runtime = runtime.map_err(|error| format!("a runtime does not start: {error}"))?;
    let checks = Arc::new(Checks::default());
    let until = Instant::now() + ROUND;
    load::run(runtime.handle(), &checks, until, &mut random);
    let drain = [Duration::ZERO, Duration::from_millis(20), HANG / 2];
    let drain = drain[random.u64(..3) as usize];
    let report = runtime.shutdown(drain);
    if report.workers_stuck > 0 {
        return Err(format!("no event lasts a second, and {report:?}"));
    }
    if drain == HANG / 2 && !report.drained {
        return Err(format!("nothing is left to be posted, and {report:?}"));
    }
    checks.at_the_end()?;
    Ok(checks.ran.load(Ordering::Relaxed))
}

/// Returns the memory of this process, in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1);
    pages
        .and_then(|pages| pages.parse::<u64>().ok())
        .unwrap_or(0)
        * 4096
}
