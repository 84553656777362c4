//! The controller of servlets and admission for a stage with a latency target.

use std::time::Duration;

use super::memory::Learned;
use super::{AutoServlets, FINISHED_MIN, Memory, Mode, Switch};
use crate::stage::control::knee::Knee;
use crate::stage::control::predict::Limit;
use crate::stage::control::{
    Admission, Arrival, Cadence, Controller, Departure, Owns, Predict, Rule, Sample, Settings,
    Verdict, WhileAllWait,
};
use crate::stage::event::Class;

/// A controller that sets the number of servlets and controls admission, so that responses meet a
/// latency target.
///
/// If the stage's handlers compute most of the time, [`AutoServlets`] sets the number of servlets,
/// and [`Predict`] admits as many events as these servlets can serve in time. If the handlers wait,
/// or if no measurements exist yet, the stage serves every event immediately. As an exception, if
/// the handlers wait for a scarce resource, the controller allows just enough events in service to
/// keep this resource busy. Other events wait in the queue, and `Predict` admits as many as the
/// scarce resource can serve in time.
///
/// The handlers of a blocking stage count as waiting, because the stage does not know how long its
/// OS threads compute. If no resource is scarce, the number of threads follows the load, because an
/// OS thread is expensive. A scarce resource may also be the CPU.
///
/// If nearly all events need a permit of a [`Limit`](crate::sync::Limit), the stage measures the
/// waits for permits, and the controller knows when they are scarce. To detect any other scarce
/// resource, the controller varies the number of events in service, and compares the resulting
/// throughputs. The comparison takes a few dozen completions and about three service times. If
/// fewer than about 20 events complete in a period as long as the target, the result comes too late
/// to help much.
///
/// In some stages, the service time alone exceeds the target. Let t be the 90th percentile of the
/// service time while no resource is scarce. If t exceeds half of the target, the *effective
/// target* is t plus half of the target. Without this rule, the controller would reject events
/// because of a target that many responses would miss even without load.
///
/// # Examples
/// If you do not trust a target yet, observe its effect first:
/// ```
/// use std::time::Duration;
/// use tussah::stage::{Batch, BuildError, Handler, Network};
/// use tussah::stage::control::{AutoTarget, Mode, Switch};
///
/// fn observed<H: Handler>(network: &Network, handler: H) -> Result<Switch, BuildError> {
///     let auto = AutoTarget::new(Duration::from_millis(100));
///     let switch = auto.switch();
///     switch.set(Mode::Observe);
///     network.stage("lookup").controller(auto).handler(|_| Ok(handler))?;
///     // Later: switch.observed().refused, and switch.set(Mode::On).
///     Ok(switch)
/// }
/// ```
#[derive(Debug)]
pub struct AutoTarget {
    pub(super) servlets: AutoServlets,
    knee: Knee,
    admission: Predict,
    switch: Switch,
    memory: Option<Memory>,
    /// The number by which the controller owns the memory, after its first sample.
    owner: u64,
    /// True if the number of servlets follows a scarce resource.
    is_scarce: bool,
}

impl AutoTarget {
    /// Creates a controller with a target for the time from an event's arrival to its response. A
    /// target below one microsecond counts as one microsecond.
    #[must_use]
    pub fn new(target: Duration) -> Self {
        let admission = Predict::new(target);
        Self {
            servlets: AutoServlets::default(),
            knee: Knee::new(admission.target_ns()),
            admission,
            switch: Switch::default(),
            memory: None,
            owner: 0,
            is_scarce: false,
        }
    }

    /// Makes the controller start with the knowledge in `memory`, and store new knowledge in
    /// `memory`.
    #[must_use]
    pub fn remember(mut self, memory: &Memory) -> Self {
        self.memory = Some(memory.clone());
        self
    }

    /// Takes over the memory at the first sample.
    fn recall(&mut self, now_ns: u64) {
        let Some(memory) = self.memory.as_ref().filter(|_| self.owner == 0) else {
            return;
        };
        let (owner, contents) = memory.take_over(now_ns);
        self.owner = owner;
        if let Some((learned, weight)) = contents {
            self.servlets.times = learned.times.aged(weight);
            self.knee.recall(learned.knee, weight);
            self.admission.recall(learned.admission, weight, now_ns);
        }
    }

    fn store(&self, now_ns: u64) {
        if let Some(memory) = &self.memory {
            let learned = Learned {
                times: self.servlets.times,
                knee: self.knee.learned(),
                admission: self.admission.learned(),
            };
            memory.store(self.owner, now_ns, learned);
        }
    }

    /// Returns a handle that sets the mode of the controller: on, observing or off.
    #[must_use]
    pub fn switch(&self) -> Switch {
        self.switch.clone()
    }

    /// Returns the effective target, in nanoseconds.
    #[must_use]
    pub fn target_ns(&self) -> u64 {
        self.admission.target_ns()
    }
}

impl Controller for AutoTarget {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn owns(&self) -> Owns {
        Owns::SERVLETS | Owns::ADMISSION
    }

    fn looks_at_responses(&self) -> bool {
        true
    }

    fn looks_at_departures(&self) -> bool {
        self.switch.mode() != Mode::Off && self.admission.looks_at_departures()
    }

    fn cadence(&self) -> Cadence {
        self.admission.cadence()
    }

    fn while_all_wait(&self) -> WhileAllWait {
        if self.is_scarce {
            // The handlers wait for a resource that is in use.
            WhileAllWait::BeginLater
        } else {
            self.servlets.while_all_wait()
        }
    }

    fn sample(&mut self, sample: &Sample<'_>, now_ns: u64) -> Settings {
        self.recall(now_ns);
        let mut settings = self.servlets.sample(sample, now_ns);
        let unknown = self.servlets.times.finished < FINISHED_MIN;
        let mode = self.switch.mode();
        self.is_scarce = false;
        self.switch
            .would_have(settings.servlets.unwrap_or(sample.servlets.target));
        if mode != Mode::Off && (self.servlets.waits() || unknown) {
            let asked = self.knee.sample(sample);
            let servlets = asked.servlets;
            // An event may start an OS thread, so a blocking stage has only as many servlets as its
            // load needs.
            if asked.scarce.is_some() || !sample.blocking {
                self.switch.would_have(servlets);
                if mode == Mode::On {
                    (settings.servlets, settings.why) = (Some(servlets), asked.why);
                    self.is_scarce = asked.scarce.is_some();
                }
            }
            let limit = asked.scarce.map(|scarce| Limit { scarce, servlets });
            self.admission.limit(self.knee.target_ns(), limit);
        } else {
            self.knee.watch(sample);
            self.admission.limit(self.knee.target_ns(), None);
        }
        self.admission.sample(sample, now_ns);
        self.store(now_ns);
        settings
    }

    fn effective_target(&self) -> Option<Duration> {
        let on = self.switch.mode() != Mode::Off;
        on.then(|| self.admission.effective_target()).flatten()
    }

    fn rule(&self, class: Class) -> Rule {
        match (self.switch.mode(), self.admission.rule(class)) {
            (Mode::On, rule) => rule,
            (Mode::Observe, Rule::InTime) => Rule::Observed,
            (Mode::Observe | Mode::Off, _) => Rule::All,
        }
    }

    fn would_reject(&self) -> u64 {
        let observed = self.switch.observed();
        observed.refused + observed.shed
    }

    fn on_enqueue(&mut self, arrival: &Arrival) -> Admission {
        let asked = self.admission.on_enqueue(arrival);
        match self.switch.mode() {
            Mode::On => return asked,
            Mode::Observe if asked == Admission::Reject => self.switch.would_refuse(),
            Mode::Observe | Mode::Off => {}
        }
        Admission::Admit
    }

    fn on_enqueue_many(&mut self, first: &Arrival, most: u64) -> u64 {
        // The stage asks about each event that is not admitted here.
        self.admission.on_enqueue_many(first, most)
    }

    fn is_overdue(&self, departure: &Departure) -> bool {
        self.switch.mode() == Mode::On && self.admission.is_overdue(departure)
    }

    fn on_dequeue(&mut self, departure: &Departure) -> Verdict {
        let asked = self.admission.on_dequeue(departure);
        match self.switch.mode() {
            Mode::On => return asked,
            Mode::Observe if asked == Verdict::Shed => self.switch.would_shed(),
            Mode::Observe | Mode::Off => {}
        }
        Verdict::Serve
    }
}
