//! The controllers to compare, each with parameters that suit the scenario. The defaults keep the
//! settings that a controller does not own.
//!
//! Every controller gets the target. A controller that needs more, such as a queue length, gets the
//! value that an operator would choose after measuring the stage without overload.

use std::time::Duration;

use tussah::stage::control::{
    self, Cadence, Controller, Owns, Sample, Settings,
    policy::{
        Aspen, ByClass, Cinnamon, Codel, Gradient, Red, ResponseMean, ResponseP90, SedaServlets,
        Threshold,
    },
};

use super::oracle;
use super::scenario::Scenario;

/// A set of controllers for a stage.
pub type Set = Vec<Box<dyn Controller>>;

/// A set of controllers that takes part in the comparison.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    /// The name on the command line.
    pub name: &'static str,
    /// The setting that it competes for; `None` stands for all settings.
    pub owns: Option<Owns>,
    /// Makes its controllers for a scenario; `None` if it cannot take part.
    make: fn(&Scenario) -> Option<Set>,
}

impl Contender {
    /// Returns its controllers for a scenario, or `None` if it does not take part.
    pub fn controllers(&self, scenario: &Scenario) -> Option<Set> {
        let compared = |owns| scenario.settings.both(owns) != Owns::NOTHING;
        if !self.owns.is_none_or(compared) {
            return None;
        }
        (self.make)(scenario)
    }
}

/// The name of the default set, which takes part in every scenario.
pub const AUTO: &str = "auto";

/// The name of the best fixed settings, found by a search that knows the whole scenario.
pub const ORACLE: &str = "oracle";

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
    contender(ORACLE, Some(Owns::ADMISSION), oracle::controllers),
    contender("no-admission", Some(Owns::ADMISSION), |scenario| {
        Some(without(scenario, Owns::ADMISSION))
    }),
    contender("threshold", Some(Owns::ADMISSION), |scenario| {
        Some(in_place_of(scenario, Threshold::new(queue(scenario, 0.5))))
    }),
    contender("red", Some(Owns::ADMISSION), |scenario| {
        // The paper's weight and probability are for gateways that forward thousands of packets per
        // round trip.
        let config = control::policy::RedConfig {
            queue_min: queue(scenario, 0.1) as f64,
            queue_max: queue(scenario, 0.5) as f64,
            reject_max: 0.1,
            weight: 0.02,
        };
        Some(in_place_of(scenario, Red::new(config)))
    }),
    contender("by-class", Some(Owns::ADMISSION), by_class),
    contender("response-mean", Some(Owns::ADMISSION), |scenario| {
        // With a mean of half the target, nine in ten stay within the target. A decision follows as
        // soon as the last decision can show its effect.
        let config = control::policy::ResponseMeanConfig::new(target(scenario) / 2);
        Some(in_place_of(
            scenario,
            ResponseMean::new(control::policy::ResponseMeanConfig {
                interval_ns: scenario.target_ns(),
                raise: queue(scenario, 0.05),
                ..config
            }),
        ))
    }),
    contender("response-p90", Some(Owns::ADMISSION), |scenario| {
        // A decision may raise the admitted rate by a tenth of the capacity, and 20 responses lead
        // to a decision. The paper's increase of 2 per second and its 100 responses suit a service
        // of some hundreds per second that is overloaded for minutes.
        let config = control::policy::ResponseP90Config::new(target(scenario));
        Some(in_place_of(
            scenario,
            ResponseP90::new(control::policy::ResponseP90Config {
                finished: 20,
                raise: scenario.capacity / 10.0,
                burst_ns: scenario.target_ns() / 4,
                ..config
            }),
        ))
    }),
    contender("codel", Some(Owns::ADMISSION), |scenario| {
        // No event may wait longer than the target, even while the queue is not a standing queue.
        let target = target(scenario);
        let config = control::policy::CodelConfig::new(target / 2, target);
        Some(in_place_of(scenario, Codel::new(config)))
    }),
    contender("gradient", Some(Owns::ADMISSION), |scenario| {
        let config = control::policy::GradientConfig {
            interval_ns: scenario.target_ns(),
            limit: queue(scenario, 0.5) as f64,
            limit_min: 1.0,
            allowance: 2.0,
            ..control::policy::GradientConfig::default()
        };
        Some(in_place_of(scenario, Gradient::new(config)))
    }),
    contender("cinnamon", Some(Owns::ADMISSION), |scenario| {
        let config = control::policy::CinnamonConfig::new(target(scenario) / 2);
        Some(in_place_of(
            scenario,
            Cinnamon::new(control::policy::CinnamonConfig {
                interval_ns: config.interval_ns.max(scenario.target_ns()),
                ..config
            }),
        ))
    }),
    contender("aspen", Some(Owns::SERVLETS), |scenario| {
        Some(in_place_of(scenario, Aspen::default()))
    }),
    contender("seda-servlets", Some(Owns::SERVLETS), |scenario| {
        // The paper's 2 s correspond to a target of about 20 ms here.
        let interval_ns = 100 * scenario.target_ns();
        Some(in_place_of(
            scenario,
            SedaServlets::new(control::policy::SedaServletsConfig {
                interval_ns,
                idle_ns: interval_ns / 2 * 5,
                ..control::policy::SedaServletsConfig::default()
            }),
        ))
    }),
    contender("1-servlet", Some(Owns::SERVLETS), |scenario| {
        Some(in_place_of(scenario, Fixed::servlets("1-servlet", 1)))
    }),
    contender("all-servlets", Some(Owns::SERVLETS), |scenario| {
        Some(in_place_of(
            scenario,
            Fixed::servlets("all-servlets", usize::MAX),
        ))
    }),
    contender("batch-1", Some(Owns::BATCH), |scenario| {
        Some(in_place_of(scenario, Fixed::batch("batch-1", 1)))
    }),
    contender("batch-10", Some(Owns::BATCH), |scenario| {
        Some(in_place_of(scenario, Fixed::batch("batch-10", 10)))
    }),
    contender("batch-100", Some(Owns::BATCH), |scenario| {
        Some(in_place_of(scenario, Fixed::batch("batch-100", 100)))
    }),
];

fn target(scenario: &Scenario) -> Duration {
    Duration::from_nanos(scenario.target_ns())
}

/// Returns the number of events that a stage at full capacity serves in the given part of the
/// target.
fn queue(scenario: &Scenario, part: f64) -> u64 {
    let seconds = scenario.target_ns() as f64 / 1e9;
    ((scenario.capacity * seconds * part) as u64).max(1)
}

/// Returns the default controllers without those for the settings in `owned`. They know the target,
/// whichever contender takes part.
fn without(scenario: &Scenario, owned: Owns) -> Set {
    control::auto_besides(Some(target(scenario)), owned)
}

/// Returns the default controllers with `controller` in place of those for the settings that it
/// owns.
fn in_place_of(scenario: &Scenario, controller: impl Controller) -> Set {
    let mut set = without(scenario, controller.owns());
    set.push(Box::new(controller));
    set
}

/// Filters by class, in scenarios that have classes: each class may fill half of the share of the
/// class above it.
fn by_class(scenario: &Scenario) -> Option<Set> {
    if scenario.simulation.arrivals.classes.len() < 2 {
        return None;
    }
    let whole = queue(scenario, 0.5) as f64 / scenario.simulation.queue_max as f64;
    let shares = [1.0, 0.5, 0.25, 0.125].map(|share| share * whole);
    Some(in_place_of(scenario, ByClass::new(&shares)))
}

/// A controller that keeps a setting at one value.
pub struct Fixed {
    name: &'static str,
    owns: Owns,
    settings: Settings,
}

impl Fixed {
    /// Returns a controller that fixes the number of servlets.
    pub fn servlets(name: &'static str, servlets: usize) -> Self {
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

    /// Returns the scenarios, cut to 10 ms, so that the oracle's search takes no time.
    fn short() -> impl Iterator<Item = Scenario> {
        scenario::all().into_iter().map(|mut scenario| {
            scenario.from_ns = 0;
            scenario.simulation.until_ns = 10_000_000;
            scenario
        })
    }

    #[test]
    fn names_are_unique_and_no_set_has_two_owners_of_a_setting() {
        for contender in ALL {
            let same = ALL.iter().filter(|other| other.name == contender.name);
            assert_eq!(same.count(), 1, "{}", contender.name);
            for scenario in short() {
                let mut owned = Owns::NOTHING;
                for controller in contender.controllers(&scenario).into_iter().flatten() {
                    assert_eq!(owned.both(controller.owns()), Owns::NOTHING);
                    owned = owned | controller.owns();
                }
            }
        }
    }

    #[test]
    fn each_scenario_has_several_contenders() {
        for scenario in short() {
            let part = ALL.iter().filter_map(|c| c.controllers(&scenario));
            assert!(part.count() >= 4, "{}", scenario.name);
        }
    }
}
