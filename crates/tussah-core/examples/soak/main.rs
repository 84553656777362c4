//! A soak test: hours of everything at once.
//!
//! ```sh
//! cargo run --release -p tussah-core --example soak -- MINUTES [SEED]
//! ```
//!
//! One runtime after the other gets posts, threads, readers, requests for one and for several
//! colors, timers, aborts, panics in closures, destructors and wakers, events of up to 30 ms whose
//! lengths change, and repeated changes of the number of workers. Then it is shut down, sometimes
//! at once. `check.rs` has the checks. The exit status is nonzero if anything is broken, or hangs.
//! The seed determines the load, not the scheduler's decisions.

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

/// The life of a runtime.
const ROUND: Duration = Duration::from_secs(5);
/// A round that takes this much longer hangs.
const HANG: Duration = Duration::from_secs(60);
/// The number of rounds after which the memory must not grow any more.
const WARM_UP: u64 = 10;
/// Bound, in bytes: growth of the process's memory after the warm-up, which the allocator may need.
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
        // On an OS thread of its own, so that a hang is seen. A round that hangs, or panics, leaves
        // its OS threads behind.
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

/// Runs one runtime from its beginning to its end. Returns the number of its events.
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
