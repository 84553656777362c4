//! Overload of a keyed stage whose handlers wait for a limit. All times are those of a clock that
//! is moved by hand.

use std::time::Duration;

use tussah::ManualClock;
use tussah::stage::{Ask, Batch, BuildError, Network, Stage};
use tussah::sync::Limit;
use tussah::time::sleep;

use super::support::by;
use crate::by_hand;

const MS: Duration = Duration::from_millis(1);

/// Makes a keyed stage, each of whose events needs one of the permits for `service`.
fn stage(
    network: &Network,
    keys: u64,
    (target, permits, service): (Duration, usize, Duration),
) -> Result<Stage<Ask<u64, u64>, impl Sized + use<>>, BuildError> {
    let limit = Limit::new("database", permits);
    let stage = network.stage("stage").target(target).queue(5000);
    let stage = stage.keyed_by(move |ask: &Ask<u64, u64>| ask.value % keys);
    stage.handler(move |_| {
        Ok(by(move |batch: &mut Batch<Ask<u64, u64>>| {
            let limit = limit.clone();
            Box::pin(async move {
                while let Some(Ask { value, reply }) = batch.next() {
                    let _permit = limit.acquire().await;
                    sleep(service).await;
                    reply.send(value);
                }
            })
        }))
    })
}

/// Moves the clock on, in steps after each of which all that is due happens.
async fn pass(clock: &ManualClock, steps: u32) {
    for _ in 0..steps {
        clock.advance(MS);
        for _ in 0..20 {
            tussah::yield_now().await;
        }
    }
}

#[test]
fn clients_that_wait_for_their_answers_get_them_in_time() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on_spawned(async move {
        let network = Network::new("overload");
        let target = 50 * MS;
        let stage = stage(&network, 50, (target, 2, 2 * MS))?;
        for client in 0..200 {
            let requests = stage.sender();
            drop(tussah::spawn(async move {
                loop {
                    if requests.ask(client).await.is_err() {
                        sleep(10 * MS).await;
                    }
                }
            }));
        }
        pass(&clock, 2000).await;
        let stats = stage.stats();
        assert!(stats.refused > 1000, "{stats:?}");
        assert!(stats.finished > 1500, "{stats:?}");
        assert!(stats.response.p90 <= target, "{stats:?}");
        assert_eq!(stats.target, Some(target));
        Ok(())
    })
}

#[test]
fn events_beyond_the_capacity_are_refused() -> Result<(), BuildError> {
    // One permit, or one key, whose events are handled one at a time.
    for (keys, permits, service, per_ms) in [(50, 1, MS, 5), (1, 2, 10 * MS, 1)] {
        let (clock, runtime) = by_hand();
        runtime.block_on_spawned(async move {
            let network = Network::new("overload");
            let target = 100 * MS;
            let stage = stage(&network, keys, (target, permits, service))?;
            let requests = stage.sender();
            for step in 0..4000_u64 {
                for value in 0..per_ms {
                    let (requests, value) = (requests.clone(), step * per_ms + value);
                    drop(tussah::spawn(async move { requests.ask(value).await }));
                }
                pass(&clock, 1).await;
            }
            let stats = stage.stats();
            // No more events wait than can be answered in time.
            assert!(stats.queued as u32 * service <= target, "{stats:?}");
            assert!(stats.refused > 2000 * per_ms, "{stats:?}");
            assert!(keys == 1 || stats.response.p90 <= target, "{stats:?}");
            Ok::<_, BuildError>(())
        })?;
    }
    Ok(())
}
