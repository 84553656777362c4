//! A controller behind a trait object.

use std::time::Duration;

use tussah::stage::Class;
use tussah::stage::control::{
    Admission, Arrival, Cadence, Controller, Departure, Owns, Rule, Sample, Settings, Verdict,
    WhileAllWait,
};

/// A controller behind a trait object.
pub struct Boxed(pub Box<dyn Controller>);

impl Controller for Boxed {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn owns(&self) -> Owns {
        self.0.owns()
    }
    fn cadence(&self) -> Cadence {
        self.0.cadence()
    }
    fn looks_at_responses(&self) -> bool {
        self.0.looks_at_responses()
    }
    fn looks_at_departures(&self) -> bool {
        self.0.looks_at_departures()
    }
    fn while_all_wait(&self) -> WhileAllWait {
        self.0.while_all_wait()
    }
    fn sample(&mut self, sample: &Sample<'_>, now_ns: u64) -> Settings {
        self.0.sample(sample, now_ns)
    }
    fn effective_target(&self) -> Option<Duration> {
        self.0.effective_target()
    }
    fn rule(&self, class: Class) -> Rule {
        self.0.rule(class)
    }
    fn on_enqueue_many(&mut self, first: &Arrival, most: u64) -> u64 {
        self.0.on_enqueue_many(first, most)
    }
    fn on_enqueue(&mut self, arrival: &Arrival) -> Admission {
        self.0.on_enqueue(arrival)
    }
    fn is_overdue(&self, departure: &Departure) -> bool {
        self.0.is_overdue(departure)
    }
    fn on_dequeue(&mut self, departure: &Departure) -> Verdict {
        self.0.on_dequeue(departure)
    }
}
