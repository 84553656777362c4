//! What stages are put through.

use tussah::stage::control::Owns;
use tussah::stage::sim::{Arrivals, Service, Simulation, Time};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// The target is so many mean service times, but no less than `TARGET_NS_MIN`.
const TARGET_SERVICES: f64 = 10.0;
const TARGET_NS_MIN: u64 = MS;

/// A stage, what happens to it, and which part of the run counts.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What the user types.
    pub name: &'static str,
    /// One line for tables.
    pub about: &'static str,
    /// The settings whose owners are compared.
    pub settings: Owns,
    /// The stage and what happens to it.
    pub simulation: Simulation,
    /// The mean time that an event takes of a servlet, waits included, in nanoseconds.
    pub service_ns: f64,
    /// What the stage can do, in events a second: what a sender who knows it would size queues by.
    pub capacity: f64,
    /// From when on outcomes count: those of events that arrive later, and what is answered later.
    pub from_ns: u64,
    /// What could be answered from then on, in events a second.
    pub ideal: f64,
    /// What an answer to each class is worth.
    pub weights: [f64; 4],
    /// The same as `ideal`, in what it is worth.
    pub ideal_worth: f64,
}

impl Scenario {
    /// Within what an answer counts, in nanoseconds.
    pub fn target_ns(&self) -> u64 {
        ((self.service_ns * TARGET_SERVICES) as u64).max(TARGET_NS_MIN)
    }

    /// The same, with each rejection charged so many mean service times.
    pub fn charged(&self, services: f64) -> Self {
        let mut charged = self.clone();
        charged.simulation.rejection_ns = (self.service_ns * services) as u64;
        charged
    }

    /// Cut off after so much of the part that counts.
    #[cfg(test)]
    pub fn short(&self, part: f64) -> Self {
        let mut short = self.clone();
        let counts_ns = (self.simulation.until_ns - self.from_ns) as f64;
        short.simulation.until_ns = self.from_ns + (counts_ns * part) as u64;
        short
    }
}

/// A stage that computes 100 µs for an event, exponential, on two CPUs.
fn computing() -> Scenario {
    let service_ns = 100_000.0;
    Scenario {
        name: "",
        about: "",
        settings: Owns::ADMISSION,
        simulation: Simulation {
            services: vec![(0, Service::computing(Time::Exponential(service_ns)))],
            tick_ns: 5 * MS,
            ..Simulation::default()
        },
        service_ns,
        capacity: 20_000.0,
        from_ns: 0,
        ideal: 20_000.0,
        weights: [1.0; 4],
        ideal_worth: 20_000.0,
    }
}

/// From 80 % of the capacity to a multiple of it.
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
        about: "80 % of the capacity, which is halved for 0.5 s, and then is as it was",
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
        "from 80 % to twice the capacity, which comes in clumps of 40 each millisecond: all that can be done in twice the target",
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
    let compute = Time::Bimodal(20_000.0, 820_000.0, 0.1);
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
        // Two of the four classes fill it.
        ideal_worth: base.capacity / 2.0 * 12.0,
        ..base
    }
}

fn hot_color() -> Scenario {
    let base = computing();
    let capacity = 12_500.0;
    Scenario {
        name: "hot-color",
        about: "four events in five are of one color, twice as many as one CPU can do; three other CPUs are idle",
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
                    ..Service::computing(Time::Exponential(base.service_ns))
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
    // SEDA §5.2: of 1000 packets a second, 15 % wait for 20 ms.
    let service_ns = 50_000.0 + 0.15 * 20e6;
    Scenario {
        name: "blocking",
        about: "1000 events a second, 15 % of which block an OS thread for 20 ms: 3 servlets are busy, and it begins with 1 (SEDA, figure 14)",
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
                    wait: Time::Constant(20e6),
                    wait_share: 0.15,
                    ..Service::computing(Time::Exponential(50_000.0))
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
    }
}

fn timeouts() -> Scenario {
    let healthy = Service {
        wait: Time::Erlang(900_000.0, 3),
        wait_share: 1.0,
        ..Service::computing(Time::Exponential(100_000.0))
    };
    let failing = Service {
        fail_share: 0.3,
        timeout_ns: 100 * MS,
        ..healthy
    };
    // While it lasts, 64 servlets do 64 / 30.8 ms, of which 70 % are answers.
    let ideal = (1.0 * 0.7 * 64.0 / 0.0308 + 0.5 * 10_000.0) / 1.5;
    Scenario {
        name: "timeouts",
        about: "each event asks another service; for 1 s, three in ten of its answers never come, and are given up after 100 ms; 64 servlets at most",
        settings: Owns::ADMISSION | Owns::SERVLETS,
        simulation: Simulation {
            until_ns: 2 * SECOND,
            servlets_max: 64,
            arrivals: Arrivals::steps(&[(0, 10_000.0)]),
            services: vec![(0, healthy), (500 * MS, failing), (1500 * MS, healthy)],
            tick_ns: 10 * MS,
            ..Simulation::default()
        },
        service_ns: 1e6,
        capacity: 20_000.0,
        from_ns: 500 * MS,
        ideal,
        weights: [1.0; 4],
        ideal_worth: ideal,
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
            services: vec![(0, Service::computing(Time::Exponential(service_ns)))],
            tick_ns: SECOND,
            ..Simulation::default()
        },
        service_ns,
        capacity,
        from_ns: 60 * SECOND,
        ideal: capacity,
        weights: [1.0; 4],
        ideal_worth: capacity,
    }
}

fn slow_readers() -> Scenario {
    let rate = 32_000.0;
    Scenario {
        name: "slow-readers",
        about: "80 % of the CPUs; one in twenty answers is read slowly, in 20 ms, and its servlet waits",
        settings: Owns::ADMISSION | Owns::SERVLETS,
        simulation: Simulation {
            until_ns: SECOND,
            arrivals: Arrivals::steps(&[(0, rate)]),
            services: vec![(
                0,
                Service {
                    wait: Time::Exponential(20e6),
                    wait_share: 0.05,
                    ..Service::computing(Time::Exponential(50_000.0))
                },
            )],
            tick_ns: 10 * MS,
            ..Simulation::default()
        },
        service_ns: 50_000.0 + 0.05 * 20e6,
        capacity: 40_000.0,
        from_ns: 0,
        ideal: rate,
        weights: [1.0; 4],
        ideal_worth: rate,
    }
}

fn oscillating() -> Scenario {
    let rates: Vec<_> = (0..10u64)
        .map(|i| (i * 200 * MS, if i % 2 == 0 { 30_000.0 } else { 120_000.0 }))
        .collect();
    Scenario {
        name: "oscillating",
        about: "events of 10 µs and batches of 50 µs besides; 30,000 and 120,000 a second in turns (SEDA, figure 9)",
        settings: Owns::BATCH,
        simulation: Simulation {
            until_ns: 2 * SECOND,
            arrivals: Arrivals::steps(&rates),
            services: vec![(
                0,
                Service {
                    batch_ns: 50_000,
                    ..Service::computing(Time::Exponential(10_000.0))
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

/// All scenarios, in the order of the tables.
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
        timeouts(),
        slow_readers(),
        cpu_bound(),
        blocking(),
        oscillating(),
    ]
}

/// 80 % of the capacity until about so many events have arrived.
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
            assert!(target_ns >= MS && target_ns as f64 >= 9.99 * scenario.service_ns);
        }
    }

    #[test]
    fn service_times_are_what_the_scenarios_say() {
        for scenario in all() {
            let plan = scenario.simulation.plan(1);
            let (mut sum_ns, mut count) = (0.0, 0.0);
            for planned in plan.filter(|planned| !planned.fails).take(20_000) {
                sum_ns += (planned.compute_ns + planned.wait_ns) as f64;
                count += 1.0;
            }
            let seen = sum_ns / count / scenario.service_ns;
            assert!((0.9..1.1).contains(&seen), "{}: {seen}", scenario.name);
        }
    }
}
