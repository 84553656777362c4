//! The page `/work`, whose cost the request sets, for measurements.
//!
//! It is the bottleneck of the paper (Welsh, Culler and Brewer: SEDA, SOSP 2001, section 5.1.4): a
//! page that reads files and sums their bytes for some time, and then waits as if for another
//! service.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tussah_wire::http::Status;

use super::reply::Reply;
use super::route::{Request, Routes};

/// Bound, in milliseconds: the longest time to compute or to wait in one request for `/work`.
const TIME_MS_MAX: u64 = 10_000;

/// The maximum computing time between yields, in microseconds. A page then delays other ready
/// requests by little more than a millisecond.
const TURN_US: u64 = 400;

/// The size of the response: 8 KB, as in the paper.
const ANSWER_BYTES: usize = 8192;

/// Adds the page.
pub(crate) fn route(routes: Routes, root: &Path) -> Routes {
    let file: Arc<Path> = some_file(root).into();
    routes.route("/work", move |request| work(request, Arc::clone(&file)))
}

/// Returns a file to read: the directory's index, or this program.
fn some_file(root: &Path) -> PathBuf {
    let index = root.join("index.html");
    if index.is_file() {
        return index;
    }
    std::env::current_exe().unwrap_or(index)
}

async fn work(request: Request, file: Arc<Path>) -> Reply {
    let (mut compute, mut wait) = (Duration::ZERO, Duration::ZERO);
    for (name, value) in request.query() {
        let time = match &*name {
            "compute" => &mut compute,
            "wait" => &mut wait,
            _ => return bad(&format!("expected `compute` and `wait`, found `{name}`\n")),
        };
        match milliseconds(&value) {
            Some(asked) => *time = asked,
            None => {
                let max = TIME_MS_MAX;
                return bad(&format!(
                    "{name}: expected a time such as 20ms, up to {max}ms, found `{value}`\n"
                ));
            }
        }
    }
    let sum = computed(compute, &file).await;
    if !wait.is_zero() {
        tussah::time::sleep(wait).await;
    }
    let mut text = format!("{sum:016x}\n");
    text.extend(std::iter::repeat_n('.', ANSWER_BYTES - text.len()));
    Reply::text(text)
}

/// Reads and sums a file for some CPU time, yielding to others.
async fn computed(time: Duration, path: &Path) -> u64 {
    let turn = Duration::from_micros(TURN_US);
    let mut left = time;
    let mut sum = 0_u64;
    let mut buffer = [0; 4096];
    while !left.is_zero() {
        let begun = Instant::now();
        while begun.elapsed() < turn.min(left) {
            let read = File::open(path).and_then(|mut file| file.read(&mut buffer));
            let bytes = &buffer[..read.unwrap_or(0)];
            sum = bytes.iter().fold(sum, |sum, &byte| {
                sum.wrapping_mul(31).wrapping_add(byte.into())
            });
        }
        left = left.saturating_sub(begun.elapsed());
        tussah::yield_now().await;
    }
    sum
}

fn milliseconds(text: &str) -> Option<Duration> {
    let number = text.strip_suffix("ms")?;
    let number: u64 = number.parse().ok()?;
    (number <= TIME_MS_MAX).then(|| Duration::from_millis(number))
}

fn bad(text: &str) -> Reply {
    Reply {
        status: Status::BAD_REQUEST,
        ..Reply::text(text)
    }
}
