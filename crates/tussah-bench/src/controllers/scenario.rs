//! The scenarios that stages run through.

mod partial;
mod waits;

use tussah::stage::control::Owns;
use tussah::stage::sim::{Arrivals, Distribution, Service, Simulation};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// The target in mean service times, with `TARGET_NS_MIN` as the minimum.
const TARGET_SERVICES: f64 = 10.0;
const TARGET_NS_MIN: u64 = MS;

/// A stage, its load and changes, and the part of the run that counts.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for tables.
    pub about: &'static str,
    /// The settings whose owners compete.
    pub settings: Owns,
    /// The stage and its load.
    pub simulation: Simulation,
    /// The mean time that an event occupies a servlet, waits included, in nanoseconds.
    pub service_ns: f64,
    /// The stage's capacity, in events per second. Contenders with a fixed queue choose its size by
    /// this.
    pub capacity: f64,
    /// The start of the measured part: events that arrive earlier, and earlier responses, do not
    /// count.
    pub from_ns: u64,
    /// The ideal rate of responses in the measured part, in events per second.
    pub ideal: f64,
    /// The weight of a response to each class.
    pub weights: [f64; 4],
    /// The ideal rate of responses, weighted by class, in weighted responses per second.
    pub ideal_worth: f64,
    /// The target that the stage gets, if it does not follow from the mean service time.
    pub told_ns: Option<u64>,
    /// The time within which a response counts, in nanoseconds. It is set only if a single service
    /// takes longer than the target; otherwise the target applies.
    pub late_ns: Option<u64>,
}

impl Scenario {
    /// Returns the target, in nanoseconds.
    pub fn target_ns(&self) -> u64 {
        let by_service_ns = (self.service_ns * TARGET_SERVICES) as u64;
        self.told_ns.unwrap_or(by_service_ns.max(TARGET_NS_MIN))
    }

    /// Returns the time within which a response counts, in nanoseconds.
    pub fn late_ns(&self) -> u64 {
        self.late_ns.unwrap_or(self.target_ns())
    }

    /// Returns the scenario with each rejection charged `services` mean service times.
    pub fn charged(&self, services: f64) -> Self {
        let mut charged = self.clone();
        charged.simulation.rejection_ns = (self.service_ns * services) as u64;
        charged
    }

    /// Returns the scenario cut off after this fraction of the part that counts.
    #[cfg(test)]
    pub fn short(&self, part: f64) -> Self {
        let mut short = self.clone();
        let counts_ns = (self.simulation.until_ns - self.from_ns) as f64;
        short.simulation.until_ns = self.from_ns + (counts_ns * part) as u64;
        short
    }
}

/// Returns a stage that computes 100 µs for an event, exponentially distributed, on two CPUs.
fn computing() -> Scenario {
    let service_ns = 100_000.0;
    Scenario {
        name: "",
        about: "",
        settings: Owns::ADMISSION,
        simulation: Simulation {
            services: vec![(0, Service::computing(Distribution::Exponential(service_ns)))],
            tick_ns: 5 * MS,
            ..Simulation::default()
        },
        service_ns,
        capacity: 20_000.0,
        from_ns: 0,
        ideal: 20_000.0,
        weights: [1.0; 4],
        ideal_worth: 20_000.0,
        told_ns: None,
        late_ns: None,
    }
}

/// Returns a step from 80 % of the capacity to a multiple of it.
fn step(name: &'static str, about: &'static str, load: f64) -> Scenario {
    let base = computing();
    let rates = [(0, 0.8 * base.capacity), (300 * MS, load * base.capacity)];
    Scenario {
        name,
        about,
        from_ns: 300 * MS,
        simulation: Simulation {
            until_ns: 800 * MS,
            arrivals: Arrivals::steps(&rates),
            ..base.simulation
        },
        ..base
    }
}

fn halved() -> Scenario {
    let base = computing();
    Scenario {
        name: "halved",
        about: "80 % of the capacity, which is halved for 0.5 s and then restored",
        from_ns: 300 * MS,
        simulation: Simulation {
            until_ns: 1300 * MS,
            arrivals: Arrivals::steps(&[(0, 0.8 * base.capacity)]),
            speeds: vec![(300 * MS, 0.5), (800 * MS, 1.0)],
            ..base.simulation
        },
        ideal: 13_000.0,
        ideal_worth: 13_000.0,
        ..base
    }
}

fn clumps() -> Scenario {
    let mut clumps = step(
        "clumps",
        "from 80 % to twice the capacity, in a burst of 40 each millisecond: as many as the stage can do in twice the target",
        0.0,
    );
    clumps.simulation.arrivals.bursts = (300..800).map(|ms| (ms * MS, 40)).collect();
    clumps
}

fn bimodal() -> Scenario {
    let base = step(
        "bimodal",
        "twice the capacity; nine in ten take 20 µs, one takes 820 µs",
        2.0,
    );
    let compute = Distribution::Bimodal(20_000.0, 820_000.0, 0.1);
    Scenario {
        simulation: Simulation {
            services: vec![(0, Service::computing(compute))],
            ..base.simulation
        },
        ..base
    }
}

fn priorities() -> Scenario {
    let base = step(
        "priorities",
        "twice the capacity in four classes, worth 8, 4, 2 and 1; the stage knows users",
        2.0,
    );
    Scenario {
        simulation: Simulation {
            arrivals: Arrivals {
                classes: vec![1.0; 4],
                cohorts: true,
                ..base.simulation.arrivals
            },
            ..base.simulation
        },
        weights: [8.0, 4.0, 2.0, 1.0],
        // The upper two of the four classes fill the stage.
        ideal_worth: base.capacity / 2.0 * 12.0,
        ..base
    }
}

fn hot_color() -> Scenario {
    let base = computing();
    let capacity = 12_500.0;
    Scenario {
        name: "hot-color",
        about: "four in five events have one color, twice as many as one CPU can run; three other CPUs are idle",
        settings: Owns::ADMISSION | Owns::SERVLETS,
        from_ns: 300 * MS,
        simulation: Simulation {
            until_ns: 800 * MS,
            workers: 4,
            servlets: 4,
            arrivals: Arrivals::steps(&[(0, 0.8 * capacity), (300 * MS, 2.0 * capacity)]),
            services: vec![(
                0,
                Service {
                    hot_share: 0.8,
                    ..Service::computing(Distribution::Exponential(base.service_ns))
                },
            )],
            ..base.simulation
        },
        capacity,
        ideal: 15_000.0,
        ideal_worth: 15_000.0,
        ..base
    }
}

fn cpu_bound() -> Scenario {
    let base = step(
        "cpu-bound",
        "1.4 times the capacity of a stage that only computes: more servlets do not help",
        1.4,
    );
    Scenario {
        settings: Owns::SERVLETS,
        ..base
    }
}

fn blocking() -> Scenario {
    // SEDA §5.2: of 1000 packets per second, 15 % wait for 20 ms.
    let service_ns = 50_000.0 + 0.15 * 20e6;
    Scenario {
        name: "blocking",
        about: "1000 events a second, 15 % of which block an OS thread for 20 ms: they keep 3 servlets busy, and the stage starts with 1 (SEDA, figure 14)",
        settings: Owns::SERVLETS,
        simulation: Simulation {
            until_ns: 30 * SECOND,
            blocking: true,
            servlets: 1,
            servlets_max: 20,
            arrivals: Arrivals::steps(&[(0, 1000.0)]),
            services: vec![(
                0,
                Service {
                    wait: Distribution::Constant(20e6),
                    wait_share: 0.15,
                    ..Service::computing(Distribution::Exponential(50_000.0))
                },
            )],
            tick_ns: 100 * MS,
            ..Simulation::default()
        },
        service_ns,
        capacity: 2000.0,
        from_ns: 0,
        ideal: 1000.0,
        weights: [1.0; 4],
        ideal_worth: 1000.0,
        told_ns: None,
        late_ns: None,
    }
}

fn ten_a_second() -> Scenario {
    let service_ns = 160e6;
    let capacity = 6.25;
    Scenario {
        name: "ten-a-second",
        about: "events of 160 ms on one CPU: 5 a second for a minute, then 10 a second, which is 1.6 times the capacity",
        settings: Owns::ADMISSION,
        simulation: Simulation {
            until_ns: 240 * SECOND,
            workers: 1,
            servlets: 1,
            arrivals: Arrivals::steps(&[(0, 5.0), (60 * SECOND, 10.0)]),
            services: vec![(0, Service::computing(Distribution::Exponential(service_ns)))],
            tick_ns: SECOND,
            ..Simulation::default()
        },
        service_ns,
        capacity,
        from_ns: 60 * SECOND,
        ideal: capacity,
        weights: [1.0; 4],
        ideal_worth: capacity,
        told_ns: None,
        late_ns: None,
    }
}

fn oscillating() -> Scenario {
    let rates: Vec<_> = (0..10u64)
        .map(|i| (i * 200 * MS, if i % 2 == 0 { 30_000.0 } else { 120_000.0 }))
        .collect();
    Scenario {
        name: "oscillating",
        about: "events of 10 µs and a cost of 50 µs per batch; alternating 30,000 and 120,000 a second (SEDA, figure 9)",
        settings: Owns::BATCH,
        simulation: Simulation {
            until_ns: 2 * SECOND,
            arrivals: Arrivals::steps(&rates),
            services: vec![(
                0,
                Service {
                    batch_ns: 50_000,
                    ..Service::computing(Distribution::Exponential(10_000.0))
                },
            )],
            tick_ns: 10 * MS,
            ..Simulation::default()
        },
        service_ns: 10_500.0,
        capacity: 190_000.0,
        from_ns: 0,
        ideal: 75_000.0,
        weights: [1.0; 4],
        ideal_worth: 75_000.0,
        told_ns: None,
        late_ns: None,
    }
}

fn normal() -> Scenario {
    let base = computing();
    let rate = 0.8 * base.capacity;
    Scenario {
        name: "80-percent",
        about: "80 % of the capacity: there is nothing to reject",
        simulation: Simulation {
            until_ns: 800 * MS,
            arrivals: Arrivals::steps(&[(0, rate)]),
            ..base.simulation
        },
        ideal: rate,
        ideal_worth: rate,
        ..base
    }
}

/// Returns all scenarios in the order of the tables.
pub fn all() -> Vec<Scenario> {
    vec![
        normal(),
        step("step-1.4", "from 80 % to 1.4 times the capacity", 1.4),
        step("step-2", "from 80 % to twice the capacity", 2.0),
        step("step-4", "from 80 % to four times the capacity", 4.0),
        step("step-10", "from 80 % to ten times the capacity", 10.0),
        halved(),
        bimodal(),
        clumps(),
        priorities(),
        hot_color(),
        ten_a_second(),
        waits::timeouts(),
        waits::slow_readers(),
        cpu_bound(),
        blocking(),
        oscillating(),
        waits::percent_70(),
        waits::step(
            "permits-1.4",
            "1.4 times the rate that the permits allow",
            1.4,
        ),
        waits::step("permits-3", "three times what the permits allow", 3.0),
        waits::step("permits-10", "ten times what the permits allow", 10.0),
        waits::fresh(),
        waits::classes(),
        waits::changing(),
        waits::slow_down(),
        waits::limit(
            "limit-10",
            "ten times the rate that the permits of a `Limit` allow",
            waits::step("", "", 10.0),
        ),
        waits::limit(
            "limit-fresh",
            "a stage that starts under ten times the rate that the permits of a `Limit` allow",
            waits::fresh(),
        ),
        waits::limit(
            "limit-slow",
            "70 % of the rate that the permits of a `Limit` allow; for 4 s events hold them ten times as long",
            waits::slow_down(),
        ),
        waits::blocking_limit(),
        partial::tenth(),
        partial::half(),
        waits::latency(),
        waits::bursts(),
        waits::mixed_closed(),
        waits::mixed_step(
            "mixed-1.4",
            "the same handlers: from 70 % to 1.4 times the capacity of the CPUs",
            1.4,
        ),
        waits::mixed_step("mixed-3", "the same, to three times", 3.0),
        waits::mixed_fresh(),
    ]
}

/// Returns a scenario with 80 % of the capacity until about `events` events have arrived.
pub fn long(events: f64) -> Scenario {
    let mut long = normal();
    let seconds = events / long.ideal;
    long.simulation.until_ns = (seconds * SECOND as f64) as u64;
    long
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_targets_as_they_were_asked_for() {
        let all = all();
        for scenario in &all {
            let same = all.iter().filter(|other| other.name == scenario.name);
            assert_eq!(same.count(), 1, "{}", scenario.name);
            let target_ns = scenario.target_ns();
            let by_service = target_ns as f64 >= 9.99 * scenario.service_ns;
            assert!(target_ns >= MS && (by_service || scenario.told_ns.is_some()));
        }
    }

    #[test]
    fn service_times_match_the_scenarios() {
        for scenario in all() {
            let plan = scenario.simulation.plan(1);
            let (mut sum_ns, mut count) = (0.0, 0.0);
            // The first entry of each list applies from the start.
            let changes = scenario.simulation.services.get(1);
            let until_ns = changes.map_or(u64::MAX, |change| change.0);
            let mut clients = scenario.simulation.plan(1);
            let closed = scenario.simulation.arrivals.clients > 0;
            let closed =
                std::iter::repeat_with(|| clients.client(0)).take(if closed { 20_000 } else { 0 });
            let plan = plan
                .take_while(|planned| planned.at_ns < until_ns)
                .chain(closed);
            for planned in plan.filter(|planned| !planned.fails).take(20_000) {
                sum_ns += (planned.compute_ns + planned.wait_ns + planned.hold_ns) as f64;
                count += 1.0;
            }
            let seen = sum_ns / count / scenario.service_ns;
            assert!((0.9..1.1).contains(&seen), "{}: {seen}", scenario.name);
        }
    }
}
