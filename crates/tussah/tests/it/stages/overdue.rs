//! Overdue events: in an overload they are shed when they are overdue, not at their turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tussah::ManualClock;
use tussah::stage::control::{Cadence, Controller, Departure, Owns, Sample, Settings};
use tussah::stage::{BuildError, Event, Network, Reason, Stage};

use super::support::{Door, Noted, adds_up, by, notes};
use crate::{by_hand, idle, runtime};

const MS: Duration = Duration::from_millis(1);

/// Sheds an event that was queued for 100 ms while there is an overload, and counts the questions.
#[derive(Clone, Default)]
struct Late {
    overloaded: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

impl Controller for Late {
    fn name(&self) -> &'static str {
        "late"
    }
    fn owns(&self) -> Owns {
        Owns::ADMISSION
    }
    fn cadence(&self) -> Cadence {
        Cadence::every_ns(1)
    }
    fn sample(&mut self, _: &Sample<'_>, _: u64) -> Settings {
        Settings::default()
    }
    fn is_overdue(&self, departure: &Departure) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.overloaded.load(Ordering::Relaxed) && departure.sojourn_ns >= 100_000_000
    }
}

/// Sends ten events to a stage whose handler waits at the door with the first one.
async fn ten(
    network: &Network,
    late: Late,
    door: &Door,
) -> Result<(Stage<u32>, Noted<u32>, Noted<(u32, Reason)>), BuildError> {
    let (came, told) = (Noted::default(), Noted::default());
    let handle = notes(&came, door);
    network
        .stage("stage")
        .batch(1)
        .servlets(1)
        .controller(late)
        .handler(move |_| Ok(by(handle)))?;
    let stage = network.find("stage")?;
    for n in 0..10 {
        let tell = told.clone();
        let event = Event::new(n).on_drop(move |why| tell.add((n, why)));
        stage.sender().send(event).await.expect("there is room");
        door.until(1).await;
    }
    Ok((stage, came, told))
}

/// Advances the clock in small steps.
async fn pass(clock: &ManualClock, ms: u32) {
    for _ in 0..ms / 5 {
        clock.advance(5 * MS);
        idle().await;
    }
}

/// Advances the clock until N events were shed. They are counted before each of them is reported.
async fn shed(clock: &ManualClock, stage: &Stage<u32>, count: u64) {
    for _ in 0..1000 {
        if stage.stats().shed == count {
            return;
        }
        pass(clock, 5).await;
    }
    panic!("{:?}", stage.stats());
}

/// Advances the clock until the stage asks no more questions.
async fn quiet(clock: &ManualClock, asked: &AtomicUsize) {
    for _ in 0..10 {
        let before = asked.load(Ordering::Relaxed);
        pass(clock, 500).await;
        if asked.load(Ordering::Relaxed) == before {
            return;
        }
    }
    panic!("the stage goes on asking");
}

#[test]
fn events_behind_a_handler_that_waits_are_shed_when_they_are_overdue() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let (network, door, late) = (Network::new("overdue"), Door::new(), Late::default());
        late.overloaded.store(true, Ordering::Relaxed);
        let (stage, came, told) = ten(&network, late, &door).await?;
        // The first sample, after some time has passed.
        clock.advance(5 * MS);
        stage.sender().send(10).await.expect("there is room");
        pass(&clock, 90).await;
        assert_eq!(told.len(), 0);
        shed(&clock, &stage, 10).await;
        told.until(9).await;
        let ended: Vec<_> = (1..10).map(|n| (n, Reason::Shed)).collect();
        assert_eq!((came.take(), told.take()), (vec![0], ended));
        assert_eq!(stage.stats().queued, 0);
        adds_up(&stage);
        door.let_through(1);
        stage.drain().await;
        Ok(())
    })
}

/// All workers are busy with threads that yield, and nobody sends or takes an event meanwhile.
#[test]
fn busy_workers_do_not_keep_overdue_events_queued() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let (network, door, late) = (Network::new("overdue"), Door::new(), Late::default());
        late.overloaded.store(true, Ordering::Relaxed);
        let done = Arc::new(AtomicBool::new(false));
        for _ in 0..4 {
            let done = Arc::clone(&done);
            drop(tussah::spawn(async move {
                while !done.load(Ordering::Relaxed) {
                    tussah::yield_now().await;
                }
            }));
        }
        let (stage, came, told) = ten(&network, late, &door).await?;
        told.until(9).await;
        done.store(true, Ordering::Relaxed);
        assert_eq!((came.take(), stage.stats().shed), (vec![0], 9));
        door.let_through(1);
        stage.drain().await;
        Ok(())
    })
}

#[test]
fn only_a_queue_in_an_overload_is_checked() -> Result<(), BuildError> {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let (network, door, late) = (Network::new("overdue"), Door::new(), Late::default());
        let (asked, overloaded) = (Arc::clone(&late.asked), Arc::clone(&late.overloaded));
        let (stage, _, told) = ten(&network, late, &door).await?;
        quiet(&clock, &asked).await;
        assert_eq!(told.len(), 0);
        // The next sample finds the overload. At its end, nothing is queued or in service.
        overloaded.store(true, Ordering::Relaxed);
        stage.sender().send(10).await.expect("there is room");
        shed(&clock, &stage, 10).await;
        door.let_through(1);
        stage.settled().await;
        quiet(&clock, &asked).await;
        // The operator has paused the stage.
        stage.pause();
        stage.sender().send(11).await.expect("there is room");
        quiet(&clock, &asked).await;
        assert_eq!(stage.stats().queued, 1);
        stage.resume();
        stage.drain().await;
        Ok(())
    })
}
