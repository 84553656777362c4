//! Who is compared: controllers with the parameters that fit a scenario, beside the defaults for what they do not own.
//!
//! All are told the target. Those that need to know more, such as how long a queue may be, are told what somebody would choose who has measured the stage
//! while it was well.

use std::time::Duration;

use tussah::stage::control::{
    self, Aspen, AutoServlets, ByClass, Cadence, Cinnamon, Codel, Controller, Gradient, Owns, Red,
    ResponseMean, ResponseP90, Sample, SedaBatch, SedaServlets, Settings, Threshold,
};

use super::scenario::Scenario;

/// A set of controllers for a stage.
pub type Set = Vec<Box<dyn Controller>>;

/// Somebody who takes part.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    /// What the user types.
    pub name: &'static str,
    /// The setting that it is compared by; none stands for all.
    pub owns: Option<Owns>,
    /// Its controllers for a scenario; none if it cannot take part.
    make: fn(&Scenario) -> Option<Set>,
}

impl Contender {
    /// Its controllers for a scenario; none if it does not take part.
    pub fn controllers(&self, scenario: &Scenario) -> Option<Set> {
        let compared = |owns| scenario.settings.both(owns) != Owns::NOTHING;
        if !self.owns.is_none_or(compared) {
            return None;
        }
        (self.make)(scenario)
    }
}

/// The default set, which takes part everywhere.
pub const AUTO: &str = "auto";

const fn contender(
    name: &'static str,
    owns: Option<Owns>,
    make: fn(&Scenario) -> Option<Set>,
) -> Contender {
    Contender { name, owns, make }
}

/// All contenders, `auto` first.
pub static ALL: &[Contender] = &[
    contender(AUTO, None, |scenario| {
        Some(control::auto(Some(target(scenario))))
    }),
    contender("no-admission", Some(Owns::ADMISSION), |_| Some(defaults())),
    contender("threshold", Some(Owns::ADMISSION), |scenario| {
        Some(admission(Threshold::new(queue(scenario, 0.5))))
    }),
    contender("red", Some(Owns::ADMISSION), |scenario| {
        Some(admission(Red::new(control::red::Config {
            queue_min: queue(scenario, 0.25) as f64,
            queue_max: queue(scenario, 0.75) as f64,
            ..control::red::Config::default()
        })))
    }),
    contender("by-class", Some(Owns::ADMISSION), by_class),
    contender("response-mean", Some(Owns::ADMISSION), |scenario| {
        let config = control::response_mean::Config::new(target(scenario));
        Some(admission(ResponseMean::new(config)))
    }),
    contender("response-p90", Some(Owns::ADMISSION), |scenario| {
        let config = control::response_p90::Config::new(target(scenario));
        Some(admission(ResponseP90::new(config)))
    }),
    contender("codel", Some(Owns::ADMISSION), |scenario| {
        // As one to twenty, as in the article.
        let target = target(scenario);
        let config = control::codel::Config::new(target / 2, target * 10);
        Some(admission(Codel::new(config)))
    }),
    contender("gradient", Some(Owns::ADMISSION), |scenario| {
        Some(admission(Gradient::new(control::gradient::Config {
            interval_ns: 10 * scenario.target_ns(),
            ..control::gradient::Config::default()
        })))
    }),
    contender("cinnamon", Some(Owns::ADMISSION), |scenario| {
        let config = control::cinnamon::Config::new(target(scenario) / 2);
        Some(admission(Cinnamon::new(control::cinnamon::Config {
            interval_ns: config.interval_ns.max(scenario.target_ns()),
            ..config
        })))
    }),
    contender("aspen", Some(Owns::SERVLETS), |scenario| {
        Some(servlets(scenario, Aspen::default()))
    }),
    contender("seda-servlets", Some(Owns::SERVLETS), |scenario| {
        // The paper's 2 s are for a target of about 20 ms here.
        let interval_ns = 100 * scenario.target_ns();
        Some(servlets(
            scenario,
            SedaServlets::new(control::seda_servlets::Config {
                interval_ns,
                idle_ns: interval_ns / 2 * 5,
                ..control::seda_servlets::Config::default()
            }),
        ))
    }),
    contender("1-servlet", Some(Owns::SERVLETS), |scenario| {
        Some(servlets(scenario, Fixed::servlets("1-servlet", 1)))
    }),
    contender("all-servlets", Some(Owns::SERVLETS), |scenario| {
        Some(servlets(
            scenario,
            Fixed::servlets("all-servlets", usize::MAX),
        ))
    }),
    contender("batch-1", Some(Owns::BATCH), |scenario| {
        Some(batch(scenario, Fixed::batch("batch-1", 1)))
    }),
    contender("batch-10", Some(Owns::BATCH), |scenario| {
        Some(batch(scenario, Fixed::batch("batch-10", 10)))
    }),
    contender("batch-100", Some(Owns::BATCH), |scenario| {
        Some(batch(scenario, Fixed::batch("batch-100", 100)))
    }),
];

fn target(scenario: &Scenario) -> Duration {
    Duration::from_nanos(scenario.target_ns())
}

/// How many events a queue holds that takes so much of the target to be emptied by a stage that is well.
fn queue(scenario: &Scenario, part: f64) -> u64 {
    let seconds = scenario.target_ns() as f64 / 1e9;
    ((scenario.capacity * seconds * part) as u64).max(1)
}

fn defaults() -> Set {
    vec![
        Box::new(AutoServlets::default()),
        Box::new(SedaBatch::default()),
    ]
}

/// The defaults with this admission.
fn admission(controller: impl Controller) -> Set {
    let mut set = defaults();
    set.push(Box::new(controller));
    set
}

/// The defaults, but for what this controller owns.
fn in_place_of(scenario: &Scenario, controller: impl Controller) -> Set {
    let owns = controller.owns();
    let mut set = control::auto(Some(target(scenario)));
    set.retain(|other| other.owns().both(owns) == Owns::NOTHING);
    set.push(Box::new(controller));
    set
}

fn servlets(scenario: &Scenario, controller: impl Controller) -> Set {
    in_place_of(scenario, controller)
}

fn batch(scenario: &Scenario, controller: impl Controller) -> Set {
    in_place_of(scenario, controller)
}

/// Filters by kind, where there are kinds: each class may fill half of what the class above may.
fn by_class(scenario: &Scenario) -> Option<Set> {
    if scenario.simulation.arrivals.classes.len() < 2 {
        return None;
    }
    let whole = queue(scenario, 0.5) as f64 / scenario.simulation.queue_max as f64;
    let shares = [1.0, 0.5, 0.25, 0.125].map(|share| share * whole);
    Some(admission(ByClass::new(&shares)))
}

/// Leaves a setting at one value.
struct Fixed {
    name: &'static str,
    owns: Owns,
    settings: Settings,
}

impl Fixed {
    fn servlets(name: &'static str, servlets: usize) -> Self {
        Self {
            name,
            owns: Owns::SERVLETS,
            settings: Settings {
                servlets: Some(servlets),
                ..Settings::default()
            },
        }
    }

    fn batch(name: &'static str, batch: usize) -> Self {
        Self {
            name,
            owns: Owns::BATCH,
            settings: Settings {
                batch: Some(batch),
                ..Settings::default()
            },
        }
    }
}

impl Controller for Fixed {
    fn name(&self) -> &'static str {
        self.name
    }
    fn owns(&self) -> Owns {
        self.owns
    }
    fn cadence(&self) -> Cadence {
        Cadence::every_ns(1_000_000)
    }
    fn sample(&mut self, _sample: &Sample<'_>, _now_ns: u64) -> Settings {
        self.settings
    }
}

#[cfg(test)]
mod tests {
    use super::super::scenario;
    use super::*;

    #[test]
    fn names_are_unique_and_no_set_has_two_owners_of_a_setting() {
        for contender in ALL {
            let same = ALL.iter().filter(|other| other.name == contender.name);
            assert_eq!(same.count(), 1, "{}", contender.name);
            for scenario in scenario::all() {
                let mut owned = Owns::NOTHING;
                for controller in contender.controllers(&scenario).into_iter().flatten() {
                    assert_eq!(owned.both(controller.owns()), Owns::NOTHING);
                    owned = owned | controller.owns();
                }
            }
        }
    }

    #[test]
    fn each_scenario_has_several_who_take_part() {
        for scenario in scenario::all() {
            let part = ALL.iter().filter_map(|c| c.controllers(&scenario));
            assert!(part.count() >= 4, "{}", scenario.name);
        }
    }
}
