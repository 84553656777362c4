//! Overload of a keyed stage whose handlers wait for a limit. All times are those of a clock that
//! is moved by hand.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tussah::ManualClock;
use tussah::stage::{Ask, Batch, BuildError, Network, Sender, Stage};
use tussah::sync::Limit;
use tussah::time::sleep;

use super::support::by;
use crate::by_hand;

const MS: Duration = Duration::from_millis(1);

/// Makes a keyed stage, each of whose events needs one of the permits for its service.
fn stage<F>(
    network: &Network,
    keys: u64,
    (target, permits): (Duration, usize),
    service: F,
) -> Result<Stage<Ask<u64, u64>, impl Sized + use<F>>, BuildError>
where
    F: Fn(u64) -> Duration + Copy + Send + Sync + 'static,
{
    let limit = Limit::new("database", permits);
    let stage = network.stage("stage").target(target).queue(5000);
    let stage = stage.keyed_by(move |ask: &Ask<u64, u64>| ask.value % keys);
    stage.handler(move |_| {
        Ok(by(move |batch: &mut Batch<Ask<u64, u64>>| {
            let limit = limit.clone();
            Box::pin(async move {
                while let Some(Ask { value, reply }) = batch.next() {
                    let _permit = limit.acquire().await;
                    sleep(service(value)).await;
                    reply.send(value);
                }
            })
        }))
    })
}

/// Moves the clock on, in steps after each of which all that is due happens. The
/// longest chain of events that one step starts here needs between 100 and 200 turns.
async fn pass(clock: &ManualClock, steps: u32) {
    for _ in 0..steps {
        clock.advance(MS);
        for _ in 0..250 {
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
        let stage = stage(&network, 50, (target, 2), |_| 2 * MS)?;
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
            let stage = stage(&network, keys, (target, permits), move |_| service)?;
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
            // A percentile exceeds the true one by at most a sixteenth.
            let p90 = stats.response.p90 * 16 / 17;
            assert!(keys == 1 || p90 <= target, "{stats:?}");
            Ok::<_, BuildError>(())
        })?;
    }
    Ok(())
}

/// The answers to the events of a group of keys.
#[derive(Debug, Default)]
struct Answers {
    /// The time of each answer since its event was sent, in milliseconds.
    ms: Vec<u64>,
    refused: usize,
}

impl Answers {
    /// Returns the number of answers within this time.
    fn within(&self, ms: u64) -> usize {
        self.ms.iter().filter(|took| **took <= ms).count()
    }
}

/// The duration of a test of busy keys, in milliseconds.
const STEPS: u64 = 6000;

/// Sends events of the keys that `keys_at` returns for each millisecond, and returns the answers:
/// first those for keys below 1000, then those for keys below 2000, and so on.
async fn answers<const GROUPS: usize>(
    clock: &ManualClock,
    requests: &Sender<Ask<u64, u64>>,
    keys_at: impl Fn(u64) -> Vec<u64>,
) -> [Answers; GROUPS] {
    let now = Arc::new(AtomicU64::new(0));
    let groups: [Arc<Mutex<Answers>>; GROUPS] = std::array::from_fn(|_| Arc::default());
    for step in 0..STEPS {
        now.store(step, Relaxed);
        for key in keys_at(step) {
            let answers = Arc::clone(&groups[(key / 1000) as usize]);
            let (requests, now) = (requests.clone(), Arc::clone(&now));
            drop(tussah::spawn(async move {
                let answer = requests.ask(key).await;
                let mut answers = answers.lock().expect("no test has panicked");
                match answer {
                    Ok(_) => answers.ms.push(now.load(Relaxed) - step),
                    Err(_) => answers.refused += 1,
                }
            }));
        }
        pass(clock, 1).await;
    }
    groups.map(|answers| std::mem::take(&mut *answers.lock().expect("no test has panicked")))
}

/// Returns the busy keys that get an event in this millisecond: three in ten.
fn busy_at(step: u64, keys: u64) -> impl Iterator<Item = u64> {
    (0..keys).filter(move |key| (step + key) * 3 % 10 < 3)
}

#[test]
fn busy_keys_do_not_make_the_stage_refuse_events_of_idle_ones() -> Result<(), BuildError> {
    // Events of idle keys take 10 ms, and those of busy keys 10 or 30 ms. Each busy key gets at
    // least three times as many events as it can handle.
    for (busy_keys, busy_ms, idle_per_ms) in [(1, 10, 1), (1, 10, 10), (5, 10, 1), (2, 30, 1)] {
        let (clock, runtime) = by_hand();
        runtime.block_on_spawned(async move {
            let network = Network::new("overload");
            let service = move |key| MS * if key < 1000 { busy_ms } else { 10 };
            let stage = stage(&network, 1 << 32, (100 * MS, 1000), service)?;
            let keys_at = |step| {
                // An idle key has no more than one event at a time.
                let idle = (0..idle_per_ms).map(|i| 1000 + (step * idle_per_ms + i) % 1000);
                busy_at(step, busy_keys).chain(idle).collect()
            };
            let [busy, idle] = answers(&clock, &stage.sender(), keys_at).await;
            let case = format!("{busy_keys} busy, {busy_ms} ms, {idle_per_ms} idle");
            assert_eq!(idle.refused, 0, "{case}");
            let sent = (STEPS - 20) * idle_per_ms;
            assert!(idle.within(12) as u64 > sent, "{case}: {idle:?}");
            let able = (STEPS * busy_keys / u64::from(busy_ms)) as usize;
            assert!(busy.within(100) * 10 > able * 9, "{case}: {busy:?}");
            assert!(
                busy.within(100) * 10 > busy.ms.len() * 9,
                "{case}: {busy:?}"
            );
            Ok::<_, BuildError>(())
        })?;
    }
    Ok(())
}

#[test]
fn a_busy_key_harms_neither_bursts_of_others_nor_keys_that_keep_up() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on_spawned(async move {
        let network = Network::new("overload");
        let stage = stage(&network, 1 << 32, (100 * MS, 1000), |_| 10 * MS)?;
        let keys_at = |step| {
            let is_time = step % 100 == 0;
            // Five events of one key, which take half the time; and one event for each of 40 keys.
            let keeps_up = (0..5).filter(|_| is_time).map(|_| 1000);
            let burst = (0..40).filter(|_| is_time).map(|key| 2000 + key);
            busy_at(step, 1).chain(keeps_up).chain(burst).collect()
        };
        let [busy, keeps_up, burst] = answers(&clock, &stage.sender(), keys_at).await;
        assert_eq!((keeps_up.refused, burst.refused), (0, 0));
        assert_eq!(keeps_up.within(80), 60 * 5, "{keeps_up:?}");
        assert_eq!(burst.within(30), 60 * 40, "{burst:?}");
        assert!(busy.within(100) > 590, "{busy:?}");
        Ok(())
    })
}
