//! A program that was written for one CPU: it first runs unchanged, and is then colored step by
//! step.
//!
//! The program takes requests from connections, computes a digest for each, and counts it in a
//! table. It relies on the fact that nothing else runs between two awaits; its use of `try_lock`
//! checks this.
//!
//! 1. *Unchanged*: [`one_color`](tussah::Builder::one_color) runs every `spawn` in the default
//!    color. The program is as correct as before, and as slow.
//! 2. *The computation*: the digest accesses no shared data, so it gets the color of its
//!    connection. The rest stays in the default color. This change takes one line and achieves most
//!    of the speedup.
//! 3. *The table*: it becomes colored state, and nothing needs the default color any more.
//!
//! The method is that of libasync-mp: Zeldovich et al., USENIX 2003, section 3.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tussah::{Color, Colored, Runtime, spawn, spawn_in, yield_now};

const CONNECTIONS: u64 = 8;
const REQUESTS: u64 = 20;

/// The number of times that each digest occurred.
type Table = BTreeMap<u64, u64>;

fn main() -> std::io::Result<()> {
    let expected = step("1: one color", true, moved_over)?;
    let colored = step("2: the digest colored", true, digest_colored)?;
    assert_eq!(colored, expected);
    let colored = step("3: the table colored", false, table_colored)?;
    assert_eq!(colored, expected);
    Ok(())
}

/// Runs one version of the program. Prints the time it took and the maximum number of concurrent
/// digests.
fn step<F>(name: &str, one_color: bool, program: impl FnOnce() -> F) -> std::io::Result<Table>
where
    F: Future<Output = Table> + Send + 'static,
{
    let runtime = Runtime::builder().one_color(one_color).build()?;
    DIGESTS_MAX.store(0, Ordering::Relaxed);
    let start = Instant::now();
    let table = runtime.block_on(program());
    let (time, at_once) = (start.elapsed(), DIGESTS_MAX.load(Ordering::Relaxed));
    let total: u64 = table.values().sum();
    println!("{name:<24} {total} requests in {time:>9.2?}, at most {at_once} digests at once");
    Ok(table)
}

async fn moved_over() -> Table {
    let table = Arc::new(Mutex::new(Table::new()));
    let connections: Vec<_> = (0..CONNECTIONS)
        .map(|connection| {
            let table = table.clone();
            spawn(async move {
                for request in 0..REQUESTS {
                    let digest = digest(connection, request);
                    *table
                        .try_lock()
                        .expect("one event runs at a time")
                        .entry(digest)
                        .or_default() += 1;
                    yield_now().await; // waits for the next request
                }
            })
        })
        .collect();
    for connection in connections {
        connection.await.expect("no panic");
    }
    std::mem::take(&mut *table.try_lock().expect("one event runs at a time"))
}

async fn digest_colored() -> Table {
    let table = Arc::new(Mutex::new(Table::new()));
    let connections: Vec<_> = (0..CONNECTIONS)
        .map(|connection| {
            let table = table.clone();
            spawn(async move {
                for request in 0..REQUESTS {
                    let color = Color(1 + connection);
                    let digest = spawn_in(color, async move { digest(connection, request) });
                    let digest = digest.await.expect("no panic");
                    *table
                        .try_lock()
                        .expect("one event runs at a time")
                        .entry(digest)
                        .or_default() += 1;
                }
            })
        })
        .collect();
    for connection in connections {
        connection.await.expect("no panic");
    }
    std::mem::take(&mut *table.try_lock().expect("one event runs at a time"))
}

async fn table_colored() -> Table {
    let table = Colored::new(Table::new());
    let connections: Vec<_> = (0..CONNECTIONS)
        .map(|connection| {
            let table = table.clone();
            spawn(async move {
                for request in 0..REQUESTS {
                    let digest = digest(connection, request);
                    table
                        .with(move |table| *table.entry(digest).or_default() += 1)
                        .await;
                    yield_now().await;
                }
            })
        })
        .collect();
    for connection in connections {
        connection.await.expect("no panic");
    }
    table.with(std::mem::take).await
}

/// The number of digests that are being computed, and its maximum.
static DIGESTS: AtomicUsize = AtomicUsize::new(0);
static DIGESTS_MAX: AtomicUsize = AtomicUsize::new(0);

/// Computes for about a millisecond of CPU time.
fn digest(connection: u64, request: u64) -> u64 {
    DIGESTS_MAX.fetch_max(
        DIGESTS.fetch_add(1, Ordering::Relaxed) + 1,
        Ordering::Relaxed,
    );
    let (start, mut rounds) = (Instant::now(), 0u64);
    while start.elapsed() < Duration::from_millis(1) {
        rounds = black_box(rounds + 1);
    }
    DIGESTS.fetch_sub(1, Ordering::Relaxed);
    (connection + request) % 10
}
