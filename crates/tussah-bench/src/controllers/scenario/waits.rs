//! Stages whose handlers wait for something scarce or something slow.

use tussah::stage::control::Owns;
use tussah::stage::sim::{Arrivals, Distribution, Service, Simulation};

use super::{MS, SECOND, Scenario};

/// The number of permits, and the time for which each event holds one, in nanoseconds.
const PERMITS: usize = 8;
pub(super) const HOLD_NS: f64 = 10e6;

/// The rate that the permits allow, in events per second.
pub(super) const CAPACITY: f64 = PERMITS as f64 * 1e9 / HOLD_NS;

/// The computing time of a handler in addition to the wait, in nanoseconds.
pub(super) const COMPUTE_NS: f64 = 50_000.0;

const TARGET_NS: u64 = 100 * MS;

/// Returns a stage whose handlers hold one of eight permits for 10 ms, exponentially distributed,
/// with a batch for each event. The stage does not know of the waits for permits.
pub(super) fn permits() -> Scenario {
    Scenario {
        name: "",
        about: "",
        settings: Owns::ADMISSION | Owns::SERVLETS,
        simulation: Simulation {
            servlets: Simulation::default().servlets_max,
            batch_max: 1,
            permits: vec![(0, PERMITS)],
            services: vec![(0, holding(HOLD_NS))],
            tick_ns: 50 * MS,
            ..Simulation::default()
        },
        service_ns: HOLD_NS + COMPUTE_NS,
        capacity: CAPACITY,
        from_ns: 0,
        ideal: CAPACITY,
        weights: [1.0; 4],
        ideal_worth: CAPACITY,
        told_ns: Some(TARGET_NS),
        late_ns: None,
    }
}

fn holding(mean_ns: f64) -> Service {
    Service {
        hold: Distribution::Exponential(mean_ns),
        ..Service::computing(Distribution::Constant(COMPUTE_NS))
    }
}

pub(super) fn waiting(wait: Distribution) -> Service {
    Service {
        wait,
        wait_share: 1.0,
        ..Service::computing(Distribution::Constant(COMPUTE_NS))
    }
}

/// Returns a step from 70 % of the rate that the permits allow to a multiple of it, for 5 s.
pub(super) fn step(name: &'static str, about: &'static str, load: f64) -> Scenario {
    let base = permits();
    let rates = [(0, 0.7 * CAPACITY), (SECOND, load * CAPACITY)];
    Scenario {
        name,
        about,
        from_ns: SECOND,
        simulation: Simulation {
            until_ns: 6 * SECOND,
            arrivals: Arrivals::steps(&rates),
            ..base.simulation
        },
        ..base
    }
}

/// Returns a scenario in which the permits are those of a limit: the stage knows of the waits.
pub(super) fn limit(name: &'static str, about: &'static str, base: Scenario) -> Scenario {
    Scenario {
        name,
        about,
        simulation: Simulation {
            limits: true,
            ..base.simulation
        },
        ..base
    }
}

/// Returns a scenario in which OS threads of a blocking stage wait for the permits of a limit.
pub(super) fn blocking_limit() -> Scenario {
    let base = limit(
        "blocking-limit",
        "ten times the rate that the permits of a `Limit` allow, for which the OS threads of a blocking stage wait",
        step("", "", 10.0),
    );
    Scenario {
        simulation: Simulation {
            blocking: true,
            servlets: 1,
            servlets_max: 400,
            ..base.simulation
        },
        ..base
    }
}

pub(super) fn percent_70() -> Scenario {
    let base = step(
        "permits-0.7",
        "handlers hold one of 8 permits for 10 ms: 70 % of the rate that these allow",
        0.7,
    );
    Scenario {
        ideal: 0.7 * CAPACITY,
        ideal_worth: 0.7 * CAPACITY,
        ..base
    }
}

pub(super) fn fresh() -> Scenario {
    let base = permits();
    Scenario {
        name: "permits-fresh",
        about: "a stage that starts under ten times the rate that the permits allow",
        simulation: Simulation {
            until_ns: 5 * SECOND,
            arrivals: Arrivals::steps(&[(0, 10.0 * CAPACITY)]),
            ..base.simulation
        },
        ..base
    }
}

pub(super) fn classes() -> Scenario {
    let base = step(
        "permits-classes",
        "twice the rate that the permits allow, in three classes worth 100, 10 and 1",
        2.0,
    );
    let each = 2.0 * CAPACITY / 3.0;
    Scenario {
        simulation: Simulation {
            arrivals: Arrivals {
                classes: vec![1.0; 3],
                ..base.simulation.arrivals
            },
            ..base.simulation
        },
        weights: [100.0, 10.0, 1.0, 1.0],
        // One and a half classes fill the stage.
        ideal_worth: 100.0 * each + 10.0 * (CAPACITY - each),
        ..base
    }
}

pub(super) fn changing() -> Scenario {
    let base = permits();
    let ideal = (4.0 * CAPACITY / 4.0 + 4.0 * 1.75 * CAPACITY) / 8.0;
    Scenario {
        name: "permits-change",
        about: "70 % of the rate that 8 permits allow; then 2 permits for 4 s, and then 16 with 1400 events a second",
        from_ns: 2 * SECOND,
        simulation: Simulation {
            until_ns: 10 * SECOND,
            arrivals: Arrivals::steps(&[(0, 0.7 * CAPACITY), (6 * SECOND, 1.75 * CAPACITY)]),
            permits: vec![(0, PERMITS), (2 * SECOND, 2), (6 * SECOND, 16)],
            ..base.simulation
        },
        ideal,
        ideal_worth: ideal,
        ..base
    }
}

pub(super) fn slow_down() -> Scenario {
    let base = permits();
    let ideal = (4.0 * CAPACITY / 10.0 + 4.0 * 0.7 * CAPACITY) / 8.0;
    Scenario {
        name: "permits-slow",
        about: "70 % of the rate that the permits allow; for 4 s events hold them ten times as long",
        from_ns: 2 * SECOND,
        simulation: Simulation {
            until_ns: 10 * SECOND,
            arrivals: Arrivals::steps(&[(0, 0.7 * CAPACITY)]),
            services: vec![
                (0, holding(HOLD_NS)),
                (2 * SECOND, holding(10.0 * HOLD_NS)),
                (6 * SECOND, holding(HOLD_NS)),
            ],
            ..base.simulation
        },
        ideal,
        ideal_worth: ideal,
        // The 90th percentile of the slowed services, and half of the target.
        late_ns: Some(280 * MS),
        ..base
    }
}

pub(super) fn latency() -> Scenario {
    let base = permits();
    let rate = 1000.0;
    Scenario {
        name: "latency",
        about: "nothing is scarce; waits of 20 ms take 150 ms for 4 s",
        from_ns: 2 * SECOND,
        simulation: Simulation {
            until_ns: 10 * SECOND,
            arrivals: Arrivals::steps(&[(0, rate)]),
            permits: Vec::new(),
            services: vec![
                (0, waiting(Distribution::Exponential(20e6))),
                (2 * SECOND, waiting(Distribution::Exponential(150e6))),
                (6 * SECOND, waiting(Distribution::Exponential(20e6))),
            ],
            ..base.simulation
        },
        service_ns: 20e6 + COMPUTE_NS,
        capacity: rate,
        ideal: rate,
        ideal_worth: rate,
        late_ns: Some(395 * MS),
        ..base
    }
}

pub(super) fn bursts() -> Scenario {
    let base = permits();
    let rate = 2.0 * 200.0 / 16.0 + 10.0;
    Scenario {
        name: "waits",
        about: "nothing is scarce: waits of 2 s, twice the target; 10 a second, and 200 at once, at the start and after 8 s",
        simulation: Simulation {
            until_ns: 18 * SECOND,
            arrivals: Arrivals {
                bursts: vec![(0, 200), (8 * SECOND, 200)],
                ..Arrivals::steps(&[(0, 10.0), (16 * SECOND, 0.0)])
            },
            permits: Vec::new(),
            services: vec![(0, waiting(Distribution::Constant(2e9)))],
            ..base.simulation
        },
        service_ns: 2e9,
        capacity: rate,
        ideal: rate * 16.0 / 18.0,
        ideal_worth: rate * 16.0 / 18.0,
        told_ns: Some(SECOND),
        // The duration of a wait, and half of the target.
        late_ns: Some(2500 * MS),
        ..base
    }
}

pub(super) fn timeouts() -> Scenario {
    let healthy = Service {
        wait: Distribution::Erlang(900_000.0, 3),
        wait_share: 1.0,
        ..Service::computing(Distribution::Exponential(100_000.0))
    };
    let failing = Service {
        fail_share: 0.3,
        timeout_ns: 100 * MS,
        ..healthy
    };
    // During that time, 64 servlets finish 64 / 30.8 ms, of which 70 % are answers.
    let ideal = (1.0 * 0.7 * 64.0 / 0.0308 + 0.5 * 10_000.0) / 1.5;
    Scenario {
        name: "timeouts",
        about: "each event calls another service; for 1 s, three in ten calls get no answer and time out after 100 ms; 64 servlets at most",
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
        told_ns: None,
        late_ns: None,
    }
}

pub(super) fn slow_readers() -> Scenario {
    let rate = 32_000.0;
    Scenario {
        name: "slow-readers",
        about: "80 % of the CPUs; a client reads one in twenty answers slowly, in 20 ms, while the servlet waits",
        settings: Owns::ADMISSION | Owns::SERVLETS,
        simulation: Simulation {
            until_ns: SECOND,
            arrivals: Arrivals::steps(&[(0, rate)]),
            services: vec![(
                0,
                Service {
                    wait: Distribution::Exponential(20e6),
                    wait_share: 0.05,
                    ..Service::computing(Distribution::Exponential(50_000.0))
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
        told_ns: None,
        late_ns: None,
    }
}

/// Returns handlers that compute for 20 ms and then wait for 10 ms, on two workers. The workers
/// allow 100 per second, which requires three servlets if none ever has to wait for a CPU.
fn mixed(name: &'static str, about: &'static str, arrivals: Arrivals) -> Scenario {
    let base = permits();
    let capacity = 100.0;
    let service = Service {
        wait: Distribution::Constant(10e6),
        wait_share: 1.0,
        ..Service::computing(Distribution::Constant(20e6))
    };
    Scenario {
        name,
        about,
        simulation: Simulation {
            until_ns: 45 * SECOND,
            permits: Vec::new(),
            services: vec![(0, service)],
            arrivals,
            tick_ns: 100 * MS,
            ..base.simulation
        },
        service_ns: 30e6,
        capacity,
        ideal: capacity,
        ideal_worth: capacity,
        told_ns: Some(200 * MS),
        ..base
    }
}

pub(super) fn mixed_closed() -> Scenario {
    let arrivals = Arrivals {
        clients: 40,
        retry_ns: 100 * MS,
        ..Arrivals::default()
    };
    mixed(
        "mixed-closed",
        "handlers compute for 20 ms and wait for 10 ms; 40 clients send again after an answer, or 100 ms after a rejection",
        arrivals,
    )
}

pub(super) fn mixed_fresh() -> Scenario {
    mixed(
        "mixed-fresh",
        "the same, on a stage that starts under ten times the capacity of the CPUs",
        Arrivals::steps(&[(0, 1000.0)]),
    )
}

pub(super) fn mixed_step(name: &'static str, about: &'static str, load: f64) -> Scenario {
    let rates = [(0, 70.0), (5 * SECOND, 100.0 * load)];
    Scenario {
        from_ns: 5 * SECOND,
        ..mixed(name, about, Arrivals::steps(&rates))
    }
}
