//! A target for a whole path, beside the best fixed bound on its events.

use super::*;
use crate::stage::control::Sample;
use crate::stage::control::{Admission, Arrival, Cadence, Controller, Owns, Settings};

/// Rejects an event if this many are queued or in service.
struct Bound(u64);

impl Controller for Bound {
    fn name(&self) -> &'static str {
        "bound"
    }
    fn owns(&self) -> Owns {
        Owns::ADMISSION
    }
    fn cadence(&self) -> Cadence {
        Cadence::every_ns(SECOND)
    }
    fn sample(&mut self, _sample: &Sample<'_>, _now_ns: u64) -> Settings {
        Settings::default()
    }
    fn on_enqueue(&mut self, arrival: &Arrival) -> Admission {
        match arrival.queue_len + arrival.in_service < self.0 {
            true => Admission::Admit,
            false => Admission::Reject,
        }
    }
}

/// An entry with whole paths, whose handler hardly computes and then takes this step.
fn entry(step: Step) -> SimStage {
    SimStage {
        whole_path: true,
        ..SimStage::new(vec![Step::Compute(exponential(0.05)), step])
    }
}

/// A stage with this many servlets, each of which waits for this time.
fn limited(servlets: usize, ms: f64) -> SimStage {
    SimStage {
        servlets,
        servlets_max: servlets,
        ..SimStage::new(vec![Step::Wait(exponential(ms))])
    }
}

/// The answers in time, and the 90th percentile of the times of answers, in milliseconds.
fn found(
    system: &System,
    controllers: impl FnMut(usize) -> Vec<Box<dyn Controller>>,
) -> (usize, u64) {
    let (outcomes, _) = run(system, controllers);
    let served = |one: &&Outcome| one.end == EventEnd::Served;
    let mut times: Vec<_> = outcomes
        .iter()
        .filter(served)
        .map(Outcome::response_ns)
        .collect();
    times.sort_unstable();
    (
        good(&outcomes, SECOND),
        times[times.len() * 9 / 10] / 1_000_000,
    )
}

/// Checks a path that can answer this many requests a second, at 70 % and then at `load` times
/// that. It answers at least this share of what the best bound answers in time.
#[track_caller]
fn check(stages: &[SimStage], capacity: f64, (load, least): (f64, f64)) {
    let rates = [(0, 0.7 * capacity), (SECOND, load * capacity)];
    let system = System {
        until_ns: 5 * SECOND,
        stages: stages.to_vec(),
        clients: vec![Clients {
            arrivals: Arrivals::steps(&rates),
            ..Clients::default()
        }],
        ..System::default()
    };
    let auto = found(&system, at_the_entry);
    let bounds = [16, 24, 32, 40, 48, 56, 64, 80];
    let best = bounds.into_iter().map(|bound| {
        let only_entry = |stage| -> Vec<Box<dyn Controller>> {
            match stage {
                0 => vec![Box::new(Bound(bound))],
                _ => Vec::new(),
            }
        };
        (found(&system, only_entry), bound)
    });
    let best = best.max().expect("there are bounds");
    assert!(
        auto.0 as f64 > least * best.0.0 as f64,
        "{auto:?}, {best:?}"
    );
    assert!(auto.1 <= 100, "{auto:?}");
}

#[test]
fn a_limited_stage_later_in_the_path_bounds_the_admission_at_its_entry() {
    let stages = [entry(Step::Forward(1)), limited(8, 10.0)];
    for load in [(1.4, 0.95), (3.0, 0.95), (10.0, 0.93)] {
        check(&stages, 800.0, load);
    }
}

#[test]
fn each_event_of_a_fan_out_counts() {
    // Each request becomes two events for the first stage and one for the second.
    let stages = [
        entry(Step::Send(vec![1, 2, 1])),
        limited(16, 10.0),
        limited(100, 10.0),
    ];
    for load in [(1.4, 0.95), (3.0, 0.95), (10.0, 0.88)] {
        check(&stages, 800.0, load);
    }
}

#[test]
fn without_the_whole_path_the_entry_admits_all() {
    let mut stages = [entry(Step::Forward(1)), limited(8, 10.0)];
    let clients = vec![open(1600.0)];
    stages[0].whole_path = false;
    let system = System {
        until_ns: 5 * SECOND,
        stages: stages.to_vec(),
        clients,
        ..System::default()
    };
    let (answered, p90_ms) = found(&system, at_the_entry);
    assert!(answered < 100 && p90_ms > 1_000, "{answered}, {p90_ms}");
}
