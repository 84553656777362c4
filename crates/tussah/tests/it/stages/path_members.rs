//! The events that belong to a path, and the counts of the event with which it began.

use std::time::Duration;

use tussah::stage::{Batch, BuildError, Network, Restarts};

use super::support::{Work, by};
use crate::runtime;

/// Fails odd numbers, or panics with them.
fn fails(batch: &mut Batch<u32>, how: &str) {
    while let Some(n) = batch.next() {
        match how {
            _ if n % 2 == 0 => {}
            "panic" => panic!("as the test wants"),
            _ => batch.fail(1),
        }
    }
}

#[test]
fn an_event_that_fails_counts_once() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        for how in ["fail", "panic", "blocking"] {
            let network = Network::new("path");
            let stage = network
                .stage("entry")
                .whole_path()
                .restarts(Restarts::new(1_000_000, Duration::from_secs(1)));
            if how == "blocking" {
                stage.blocking(|_| Ok(|batch: &mut Batch<u32>| fails(batch, "fail")))?;
            } else {
                stage.handler(move |_| {
                    Ok(by(move |batch: &mut Batch<u32>| -> Work<'_> {
                        Box::pin(async move { fails(batch, how) })
                    }))
                })?;
            }
            let entry = network.find::<u32>("entry")?;
            // Events that are known to be short share a run.
            for numbers in [[0; 100], std::array::from_fn(|n| n as u32)] {
                entry.pause();
                for n in numbers {
                    entry.sender().send(n).await.expect("it is open");
                }
                entry.resume();
                entry.settled().await;
            }
            let stats = entry.stats();
            assert_eq!((stats.finished, stats.failed), (200, 50), "{how}");
        }
        Ok(())
    })
}
