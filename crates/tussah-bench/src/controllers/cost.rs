//! Measures the cost of a controller's decisions in real time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tussah::stage::Class;
use tussah::stage::control::{
    Admission, Arrival, Cadence, Controller, Departure, Owns, Rule, Sample, Settings, Verdict,
};

use super::contender::Contender;
use super::scenario::Scenario;

/// Bound, in nanoseconds of virtual time after the step: enough for thousands of decisions.
const MEASURED_NS: u64 = 200_000_000;

/// The measurements of a controller.
#[derive(Debug, Default)]
struct Spent {
    ns: AtomicU64,
    calls: AtomicU64,
    decisions: AtomicU64,
}

impl Spent {
    fn time<R>(&self, decides: bool, call: impl FnOnce() -> R) -> R {
        let begun = Instant::now();
        let result = call();
        let ns = begun.elapsed().as_nanos() as u64;
        self.ns.fetch_add(ns, Ordering::Relaxed);
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.decisions
            .fetch_add(u64::from(decides), Ordering::Relaxed);
        result
    }
}

/// A controller that measures the time of its calls.
struct Timed {
    inner: Box<dyn Controller>,
    spent: Arc<Spent>,
}

impl Controller for Timed {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn owns(&self) -> Owns {
        self.inner.owns()
    }
    fn cadence(&self) -> Cadence {
        self.inner.cadence()
    }
    fn looks_at_responses(&self) -> bool {
        self.inner.looks_at_responses()
    }
    fn looks_at_departures(&self) -> bool {
        self.inner.looks_at_departures()
    }
    fn sample(&mut self, sample: &Sample<'_>, now_ns: u64) -> Settings {
        // A controller that decides about each event is called for each event.
        let decides = !self.inner.owns().has(Owns::ADMISSION);
        self.spent
            .time(decides, || self.inner.sample(sample, now_ns))
    }
    fn rule(&self, class: Class) -> Rule {
        self.inner.rule(class)
    }
    fn on_enqueue(&mut self, arrival: &Arrival) -> Admission {
        self.spent.time(true, || self.inner.on_enqueue(arrival))
    }
    fn is_overdue(&self, departure: &Departure) -> bool {
        self.inner.is_overdue(departure)
    }
    fn on_dequeue(&mut self, departure: &Departure) -> Verdict {
        self.spent.time(false, || self.inner.on_dequeue(departure))
    }
}

/// Returns the time that a contender's own controller spends per decision, in nanoseconds; 0 if it
/// has no controller of its own.
///
/// For a controller that decides about arrivals, a decision is an arrival, with its share of the
/// samples. For any other controller, a decision is a sample.
pub fn decision_ns(scenario: &Scenario, contender: &Contender) -> f64 {
    let Some(controllers) = contender.controllers(scenario) else {
        return 0.0;
    };
    let owns = contender.owns.unwrap_or(scenario.settings);
    let compared = if scenario.settings.has(Owns::ADMISSION) && owns.has(Owns::ADMISSION) {
        Owns::ADMISSION
    } else {
        owns.both(scenario.settings)
    };
    let spent = Arc::new(Spent::default());
    let controllers = controllers.into_iter().map(|inner| {
        if inner.owns().both(compared) == Owns::NOTHING {
            return inner;
        }
        let spent = Arc::clone(&spent);
        Box::new(Timed { inner, spent })
    });
    let mut simulation = scenario.simulation.clone();
    simulation.until_ns = simulation.until_ns.min(scenario.from_ns + MEASURED_NS);
    simulation.run(controllers.collect(), 1, |_| {});
    let calls = spent.calls.load(Ordering::Relaxed) as f64;
    let decisions = spent.decisions.load(Ordering::Relaxed) as f64;
    let ns = spent.ns.load(Ordering::Relaxed) as f64 - calls * clock_ns();
    ns.max(0.0) / decisions.max(1.0)
}

/// Returns the cost of two reads of the clock, in nanoseconds.
fn clock_ns() -> f64 {
    let spent = Spent::default();
    const READS: u32 = 10_000;
    for _ in 0..READS {
        spent.time(true, || {});
    }
    spent.ns.load(Ordering::Relaxed) as f64 / f64::from(READS)
}
