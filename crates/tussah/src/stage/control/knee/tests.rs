//! The goals of the controller on simulated stages whose handlers wait.

use std::time::Duration;

use crate::stage::Class;
use crate::stage::control::{AutoTarget, Mode, Why, auto};
use crate::stage::sim::{Arrivals, Distribution, EventEnd, Service, Simulation, Tick};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const TARGET_NS: u64 = 100 * MS;

/// Eight permits that are held for 10 ms each: 800 events per second.
fn permits(load: f64) -> Simulation {
    Simulation {
        until_ns: 4 * SECOND,
        servlets: 1000,
        batch_max: 1,
        permits: vec![(0, 8)],
        services: vec![(
            0,
            Service {
                hold: Distribution::Exponential(10e6),
                ..Service::computing(Distribution::Constant(50_000.0))
            },
        )],
        arrivals: Arrivals::steps(&[(0, 560.0), (SECOND, 800.0 * load)]),
        tick_ns: 100 * MS,
        ..Simulation::default()
    }
}

fn waits(waits: Vec<(u64, Distribution)>, arrivals: Arrivals) -> Simulation {
    let service = |wait| Service {
        wait,
        wait_share: 1.0,
        ..Service::computing(Distribution::Constant(50_000.0))
    };
    let services = waits.into_iter();
    Simulation {
        permits: Vec::new(),
        services: services
            .map(|(at_ns, wait)| (at_ns, service(wait)))
            .collect(),
        arrivals,
        ..permits(0.0)
    }
}

/// Runs a simulation, and counts the events that arrived from `from_ns` on. Returns the events of
/// each class that were answered within `late_ns`, the events that were rejected, and the ticks.
fn run(
    simulation: &Simulation,
    seed: u64,
    from_ns: u64,
    late_ns: u64,
) -> ([f64; 3], u64, Vec<Tick>) {
    let auto = AutoTarget::new(Duration::from_nanos(TARGET_NS));
    let (mut good, mut rejected) = ([0.0; 3], 0);
    let ticks = simulation.run(vec![Box::new(auto)], seed, |outcome| {
        if outcome.arrived_ns < from_ns {
            return;
        }
        match outcome.end {
            EventEnd::Served if outcome.response_ns() <= late_ns => {
                good[usize::from(outcome.class.0)] += 1.0;
            }
            EventEnd::Served => {}
            _ => rejected += 1,
        }
    });
    (good, rejected, ticks)
}

#[test]
fn the_scarce_resource_is_kept_busy_and_other_events_wait_outside() {
    for load in [1.4, 3.0, 10.0] {
        let goods: f64 = (1..=4)
            .map(|seed| {
                let (good, _, ticks) = run(&permits(load), seed, SECOND, TARGET_NS);
                let servlets = ticks.last().expect("there are ticks").servlets;
                assert!((8..=64).contains(&servlets), "{servlets} at {load}");
                good[0] / (3.0 * 800.0)
            })
            .sum();
        assert!(goods / 4.0 > 0.92, "{} at {load} times", goods / 4.0);
    }
}

#[test]
fn a_stage_that_begins_in_overload_is_controlled_too() {
    let simulation = Simulation {
        arrivals: Arrivals::steps(&[(0, 8000.0)]),
        ..permits(0.0)
    };
    let (good, _, _) = run(&simulation, 1, 0, TARGET_NS);
    assert!(good[0] > 0.88 * 4.0 * 800.0, "{}", good[0]);
}

/// A stage starts at its full load, and its services vary much. The first ones that end are short,
/// which says nothing about the others. No resource is scarce.
#[test]
fn the_first_services_that_end_are_not_taken_for_all() {
    for mean_ns in [50e6, 200e6] {
        let wait = Distribution::Exponential(mean_ns);
        let simulation = waits(vec![(0, wait)], Arrivals::steps(&[(0, 1000.0)]));
        let target = Duration::from_nanos(TARGET_NS);
        let rejected: u64 = (1..=6)
            .map(|seed| rejected(&simulation, target, seed))
            .sum();
        assert!(rejected < 240, "{rejected} of 24,000 with {mean_ns} ns");
    }
}

/// A stage starts in overload, so even its first services include waits for permits.
#[test]
fn an_unloaded_time_that_was_learned_in_overload_is_corrected() {
    let overloaded = |hold_ms: u64, permits: usize| {
        let capacity = permits as f64 * 1000.0 / hold_ms as f64;
        let service = Service {
            hold: Distribution::Constant((hold_ms * MS) as f64),
            ..Service::computing(Distribution::Constant(50_000.0))
        };
        Simulation {
            until_ns: 8 * SECOND,
            permits: vec![(0, permits)],
            services: vec![(0, service)],
            arrivals: Arrivals::steps(&[(0, 10.0 * capacity)]),
            ..self::permits(0.0)
        }
    };
    let known = Simulation {
        limits: true,
        ..overloaded(10, 4)
    };
    let blocking = Simulation {
        blocking: true,
        servlets: 1,
        servlets_max: 20,
        ..overloaded(20, 4)
    };
    for (simulation, late_ns, possible) in
        [(known, TARGET_NS, 3200.0), (blocking, TARGET_NS, 1600.0)]
    {
        for seed in 1..=3 {
            let (good, ..) = run(&simulation, seed, 0, late_ns);
            assert!(good[0] > 0.9 * possible, "{good:?} of {possible}");
        }
    }
}

/// A blocking stage starts with one OS thread and may have 400. The scarce resource is eight
/// permits, or two CPUs.
#[test]
fn a_blocking_stage_has_only_the_threads_that_a_scarce_resource_needs() {
    let blocking = |simulation: Simulation| Simulation {
        blocking: true,
        servlets: 1,
        servlets_max: 400,
        ..simulation
    };
    let computing = |load| Simulation {
        permits: Vec::new(),
        services: vec![(0, Service::computing(Distribution::Exponential(2.5e6)))],
        ..permits(load)
    };
    let limited = |load| Simulation {
        limits: true,
        ..permits(load)
    };
    for load in [1.4, 3.0, 10.0] {
        for simulation in [permits(load), limited(load), computing(load)] {
            let goods: f64 = (1..=4)
                .map(|seed| {
                    let (good, _, ticks) =
                        run(&blocking(simulation.clone()), seed, SECOND, TARGET_NS);
                    let servlets = ticks.last().expect("there are ticks").servlets;
                    assert!((2..=64).contains(&servlets), "{servlets} at {load}");
                    good[0] / (3.0 * 800.0)
                })
                .sum();
            assert!(goods / 4.0 > 0.88, "{} at {load} times", goods / 4.0);
        }
    }
}

/// Returns the number of events that the default controllers reject.
fn rejected(simulation: &Simulation, target: Duration, seed: u64) -> u64 {
    let mut rejected = 0;
    simulation.run(auto(Some(target)), seed, |outcome| {
        rejected += u64::from(!matches!(outcome.end, EventEnd::Served));
    });
    rejected
}

#[test]
fn long_waits_that_are_rare_are_noticed_and_are_no_scarcity() {
    // One event in twenty waits for 20 ms, and so do the other events of its batch.
    let simulation = Simulation {
        until_ns: SECOND,
        services: vec![(
            0,
            Service {
                wait: Distribution::Exponential(20e6),
                wait_share: 0.05,
                ..Service::computing(Distribution::Exponential(50_000.0))
            },
        )],
        arrivals: Arrivals::steps(&[(0, 32_000.0)]),
        tick_ns: 100 * MS,
        ..Simulation::default()
    };
    for seed in 1..=6 {
        let rejected = rejected(&simulation, Duration::from_micros(10_500), seed);
        assert!(rejected < 300, "{rejected} of 32,000 at seed {seed}");
    }
}

#[test]
fn a_cut_that_leaves_the_servlets_to_long_waits_is_taken_back() {
    // One event in fifty waits for 3 s, so soon most events in service are such ones.
    let simulation = Simulation {
        until_ns: 10 * SECOND,
        services: vec![(
            0,
            Service {
                wait: Distribution::Constant(3e9),
                wait_share: 0.02,
                ..Service::computing(Distribution::Exponential(500_000.0))
            },
        )],
        arrivals: Arrivals::steps(&[(0, 300.0)]),
        ..Simulation::default()
    };
    for seed in 1..=4 {
        let rejected = rejected(&simulation, Duration::from_millis(100), seed);
        assert!(rejected < 150, "{rejected} of 3,000 at seed {seed}");
    }
}

#[test]
fn a_cut_made_before_any_long_service_ends_is_taken_back() {
    let constant = |wait_ms: u64| Distribution::Constant((wait_ms * MS) as f64);
    let became_longer = vec![(0, constant(2)), (2 * SECOND, constant(200))];
    let simulation = Simulation {
        until_ns: 8 * SECOND,
        ..waits(became_longer, Arrivals::steps(&[(0, 2000.0)]))
    };
    for seed in 1..=8 {
        let rejected = rejected(&simulation, Duration::from_millis(100), seed);
        assert!(rejected < 2500, "{rejected} of 16,000 at seed {seed}");
    }
}

#[test]
fn nothing_is_rejected_at_70_percent_or_after_the_overload() {
    for seed in 1..=4 {
        assert_eq!(run(&permits(0.7), seed, 0, TARGET_NS).1, 0);
        let over = Simulation {
            until_ns: 5 * SECOND,
            arrivals: Arrivals::steps(&[(0, 560.0), (SECOND, 2400.0), (3 * SECOND, 560.0)]),
            ..permits(0.0)
        };
        assert_eq!(run(&over, seed, 4 * SECOND, TARGET_NS).1, 0);
    }
}

#[test]
fn the_highest_class_gets_the_scarce_resource_first() {
    let mut simulation = permits(2.0);
    simulation.arrivals.classes = vec![1.0; 3];
    let (good, _, _) = run(&simulation, 1, SECOND, TARGET_NS);
    let each = 3.0 * 1600.0 / 3.0;
    assert!(good[0] > 0.95 * each, "{good:?}");
    assert!(good[1] > 0.3 * each && good[2] < 0.2 * each, "{good:?}");
}

#[test]
fn waits_for_nothing_scarce_are_not_held_back() {
    let arrivals = Arrivals {
        bursts: vec![(0, 200), (2 * SECOND, 200)],
        ..Arrivals::steps(&[(0, 500.0)])
    };
    let simulation = waits(vec![(0, Distribution::Constant(200e6))], arrivals);
    let mut longest_ns = 0;
    let auto = AutoTarget::new(Duration::from_nanos(TARGET_NS));
    simulation.run(vec![Box::new(auto)], 1, |outcome| {
        assert_eq!(outcome.end, EventEnd::Served);
        longest_ns = longest_ns.max(outcome.response_ns());
    });
    assert!(longest_ns < 210 * MS, "{longest_ns}");
}

/// Calls of 1 ms on at most 64 servlets. For 1 s, three in ten get no answer within 100 ms.
fn timeouts() -> Simulation {
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
    Simulation {
        until_ns: 1500 * MS,
        servlets_max: 64,
        services: vec![(0, healthy), (500 * MS, failing)],
        arrivals: Arrivals::steps(&[(0, 10_000.0)]),
        ..Simulation::default()
    }
}

#[test]
fn calls_that_time_out_are_no_scarce_resource() {
    // These seeds include some for which hardly any call ends after a reduction.
    let goods = [1, 2, 3, 34, 108, 125, 193, 194].map(|seed| {
        let mut good = 0.0;
        let auto = AutoTarget::new(Duration::from_millis(10));
        timeouts().run(vec![Box::new(auto)], seed, |outcome| {
            let in_time = outcome.response_ns() <= 10 * MS;
            if outcome.arrived_ns > 500 * MS && outcome.end == EventEnd::Served && in_time {
                good += 1.0;
            }
        });
        good
    });
    let mean = goods.iter().sum::<f64>() / goods.len() as f64;
    let least = goods.iter().fold(f64::INFINITY, |a, b| a.min(*b));
    // Each of 64 servlets answers seven in ten calls, which take 30.8 ms on average.
    let possible = 0.7 * 64.0 / 0.0308;
    assert!(
        mean > 0.55 * possible && least > 0.4 * possible,
        "{goods:?} of {possible}"
    );
}

#[test]
fn a_cut_where_nothing_is_scarce_is_taken_back() {
    let became_longer = vec![
        (0, Distribution::Exponential(20e6)),
        (SECOND, Distribution::Exponential(150e6)),
    ];
    let simulation = Simulation {
        until_ns: 7 * SECOND,
        ..waits(became_longer, Arrivals::steps(&[(0, 1000.0)]))
    };
    let (good, rejected, _) = run(&simulation, 1, 3 * SECOND, 395 * MS);
    assert!(good[0] > 3400.0 && rejected < 100, "{good:?} {rejected}");
}

#[test]
fn more_permits_and_fewer_are_found() {
    let simulation = Simulation {
        until_ns: 8 * SECOND,
        permits: vec![(0, 8), (SECOND, 2), (4 * SECOND, 16)],
        arrivals: Arrivals::steps(&[(0, 560.0), (4 * SECOND, 1400.0)]),
        ..permits(0.0)
    };
    let (good, _, _) = run(&simulation, 1, 6 * SECOND, TARGET_NS);
    assert!(good[0] > 0.9 * 2.0 * 1400.0, "{good:?}");
}

/// Eight permits of a limit: the stage knows which handlers wait for one.
fn limit(load: f64) -> Simulation {
    Simulation {
        limits: true,
        ..permits(load)
    }
}

#[test]
fn waits_for_a_limit_need_no_trial() {
    use crate::stage::control::log::Change;
    for load in [1.4, 3.0, 10.0] {
        let goods: f64 = (1..=4)
            .map(|seed| run(&limit(load), seed, SECOND, TARGET_NS).0[0])
            .sum();
        let share = goods / (4.0 * 3.0 * 800.0);
        assert!(share > 0.96, "{share} at {load} times");
        let auto = AutoTarget::new(Duration::from_nanos(TARGET_NS));
        let log = limit(load).log(vec![Box::new(auto)], 1);
        let servlets = log
            .iter()
            .filter(|decision| matches!(decision.change, Change::Servlets(..)));
        let whys: Vec<Why> = servlets.map(|decision| decision.why).collect();
        assert_eq!(whys.first(), Some(&Why::PermitsInUse), "{log}");
        let trials = |why: &&Why| matches!(why, Why::TriesFewer | Why::TriesMore);
        assert_eq!(whys.iter().filter(trials).count(), 0, "{log}");
    }
}

#[test]
fn the_services_of_a_burst_raise_no_target() {
    use crate::stage::control::log::Change;
    for limits in [true, false] {
        let simulation = Simulation {
            until_ns: 6 * SECOND,
            limits,
            queue_max: 5000,
            arrivals: Arrivals {
                bursts: vec![(0, 3000)],
                ..Arrivals::steps(&[(0, 0.0), (3 * SECOND, 100.0)])
            },
            services: vec![(
                0,
                Service {
                    hold: Distribution::Constant(10e6),
                    ..Service::computing(Distribution::Constant(5_000.0))
                },
            )],
            ..permits(0.0)
        };
        let auto = AutoTarget::new(Duration::from_nanos(TARGET_NS));
        let log = simulation.log(vec![Box::new(auto)], 1);
        let targets = log
            .iter()
            .filter(|decision| matches!(decision.change, Change::Target(..)));
        assert_eq!(targets.count(), 0, "{limits}: {log}");
    }
}

#[test]
fn the_log_says_why() {
    use crate::stage::control::log::Change;
    let auto = AutoTarget::new(Duration::from_nanos(TARGET_NS));
    let log = permits(3.0).log(vec![Box::new(auto)], 1);
    let servlets = log
        .iter()
        .filter(|decision| matches!(decision.change, Change::Servlets(..)));
    let whys: Vec<Why> = servlets.map(|decision| decision.why).collect();
    assert_eq!(whys.first(), Some(&Why::TriesFewer), "{log}");
    assert!(
        log.iter()
            .any(|decision| matches!(decision.change, Change::Rule(Class(0), ..)))
    );
}

/// Handlers that compute for 20 ms and then wait for 10 ms: each worker completes 50 per second.
fn mixed(workers: usize, arrivals: Arrivals) -> Simulation {
    let service = Service {
        wait: Distribution::Constant(10e6),
        wait_share: 1.0,
        ..Service::computing(Distribution::Constant(20e6))
    };
    Simulation {
        until_ns: 20 * SECOND,
        workers,
        permits: Vec::new(),
        services: vec![(0, service)],
        arrivals,
        ..permits(0.0)
    }
}

#[test]
fn an_observing_controller_rejects_nothing_and_counts() {
    let simulation = Simulation {
        queue_max: 100_000,
        ..permits(3.0)
    };
    let rejected = |mode| {
        let auto = AutoTarget::new(Duration::from_nanos(TARGET_NS));
        let switch = auto.switch();
        switch.set(mode);
        let mut rejected = 0;
        simulation.run(vec![Box::new(auto)], 1, |outcome| {
            rejected += u64::from(outcome.end != EventEnd::Served);
        });
        let observed = switch.observed();
        (rejected, observed.refused + observed.shed)
    };
    let (on, off) = (rejected(Mode::On), rejected(Mode::Off));
    let observed = rejected(Mode::Observe);
    assert!(on.0 > 4000 && on.1 == 0, "{on:?}");
    assert!(observed.0 == 0 && observed.1 > 4000, "{observed:?}");
    assert_eq!(off, (0, 0));
}

#[test]
fn the_log_has_decisions_that_are_only_observed() {
    use crate::stage::control::{Rule, log::Change};
    let auto = AutoTarget::new(Duration::from_nanos(TARGET_NS));
    auto.switch().set(Mode::Observe);
    let log = permits(3.0).log(vec![Box::new(auto)], 1);
    let mut rules = log.iter().filter_map(|decision| match decision.change {
        Change::Rule(_, from, to) => Some((from, to)),
        _ => None,
    });
    assert_eq!(rules.next(), Some((Rule::All, Rule::Observed)), "{log}");
}

#[test]
fn the_log_says_when_the_target_cannot_be_kept() {
    use crate::stage::control::log::Change;
    let waits = waits(
        vec![(0, Distribution::Constant(80e6))],
        Arrivals::steps(&[(0, 500.0)]),
    );
    let auto = AutoTarget::new(Duration::from_nanos(TARGET_NS));
    let log = waits.log(vec![Box::new(auto)], 1);
    let targets = log.iter().filter_map(|decision| match decision.change {
        Change::Target(from, to) => Some((from.as_millis(), to.as_millis())),
        _ => None,
    });
    assert_eq!(targets.collect::<Vec<_>>(), [(100, 130)], "{log}");
}

#[test]
fn services_that_wait_for_a_worker_are_not_taken_for_long_ones() {
    for workers in [1, 2] {
        let clients = Arrivals {
            clients: 20 * workers as u32,
            retry_ns: 100 * MS,
            ..Arrivals::default()
        };
        let auto = AutoTarget::new(Duration::from_millis(200));
        let mut responses = Vec::new();
        mixed(workers, clients).run(vec![Box::new(auto)], 1, |outcome| {
            if outcome.end == EventEnd::Served && outcome.arrived_ns > SECOND {
                responses.push(outcome.response_ns());
            }
        });
        responses.sort_unstable();
        let p90_ns = responses[responses.len() * 9 / 10];
        assert!(p90_ns <= 200 * MS, "{p90_ns} with {workers} workers");
        let capacity = 19.0 * 50.0 * workers as f64;
        let done = responses.len() as f64;
        assert!(done > 0.95 * capacity, "{done} of {capacity}");
    }
}

/// Of all events, `share` need one of eight permits, for 10 ms: `rate` is several times as many as
/// can get one. All events also wait for 10 ms.
fn mixture(share: f64, rate: f64, limits: bool) -> Simulation {
    let service = Service {
        hold: Distribution::Bimodal(0.0, 10e6, share),
        wait: Distribution::Constant(10e6),
        wait_share: 1.0,
        ..Service::computing(Distribution::Constant(50_000.0))
    };
    Simulation {
        until_ns: 10 * SECOND,
        limits,
        services: vec![(0, service)],
        arrivals: Arrivals::steps(&[(0, rate / 10.0), (SECOND, rate)]),
        ..permits(0.0)
    }
}

#[test]
fn a_resource_that_some_events_need_does_not_stop_the_others() {
    // A bound of a few hundred events in service would answer all that it lets in. After a
    // reduction, the events that wait for permits are left over, and end far more slowly.
    for (share, rate, least) in [
        (0.1, 16_000.0, 0.85),
        (0.33, 24_000.0, 0.55),
        (0.5, 4800.0, 0.6),
    ] {
        for limits in [false, true] {
            let simulation = mixture(share, rate, limits);
            let able = 8.0 * 800.0 / share;
            let goods = (1..=4).map(|seed| run(&simulation, seed, 2 * SECOND, TARGET_NS).0[0]);
            let good = goods.sum::<f64>() / 4.0 / able;
            assert!(good > least, "{good} of what is possible, {share} {limits}");
        }
    }
}

/// The load is 70 % of what eight permits allow. For 4 s, events hold them ten times as long.
#[test]
fn a_resource_that_becomes_slower_is_found_and_followed() {
    let holding = |mean_ns| Service {
        hold: Distribution::Exponential(mean_ns),
        ..Service::computing(Distribution::Constant(50_000.0))
    };
    let simulation = |limits| Simulation {
        limits,
        until_ns: 10 * SECOND,
        services: vec![
            (0, holding(10e6)),
            (2 * SECOND, holding(100e6)),
            (6 * SECOND, holding(10e6)),
        ],
        arrivals: Arrivals::steps(&[(0, 560.0)]),
        ..permits(0.0)
    };
    let possible = 4.0 * 80.0 + 4.0 * 560.0;
    for (limits, seed) in (1..=12).flat_map(|seed| [(false, seed), (true, seed)]) {
        // The 90th percentile of the long services, and half of the target.
        let good = run(&simulation(limits), seed, 2 * SECOND, 280 * MS).0[0] / possible;
        assert!(good > 0.7, "{good} at seed {seed}, {limits}");
    }
}

/// Half of the services become long. The short ones go on as before.
#[test]
fn services_of_which_half_become_long_are_no_scarcity() {
    let wait = |long_ns| Distribution::Bimodal(5e6, long_ns, 0.5);
    let simulation = Simulation {
        until_ns: 12 * SECOND,
        servlets: 4096,
        ..waits(
            vec![(0, wait(5e6)), (2 * SECOND, wait(300e6))],
            Arrivals::steps(&[(0, 1000.0)]),
        )
    };
    let rejected = |seed| run(&simulation, seed, 2 * SECOND, TARGET_NS).1;
    let rejected: u64 = (1..=4).map(rejected).sum();
    assert!(rejected < 8000, "{rejected} of 40,000");
}

/// One event in ten needs the only permit, for 100 ms: five times as many as can get it. All others
/// wait for 10 ms.
#[test]
fn events_that_need_a_scarce_resource_hardly_hold_back_others() {
    let service = Service {
        hold: Distribution::Bimodal(0.0, 100e6, 0.1),
        wait: Distribution::Constant(10e6),
        wait_share: 1.0,
        ..Service::computing(Distribution::Constant(50_000.0))
    };
    for (limits, batch_max) in [(false, 1), (true, 1), (true, 8)] {
        let simulation = Simulation {
            until_ns: 10 * SECOND,
            permits: vec![(0, 1)],
            limits,
            batch_max,
            services: vec![(0, service)],
            arrivals: Arrivals::steps(&[(0, 50.0), (SECOND, 500.0)]),
            ..permits(0.0)
        };
        for seed in 1..=4 {
            let (good, rejected, _) = run(&simulation, seed, 5 * SECOND, TARGET_NS);
            assert!(good[0] > 0.8 * 0.9 * 2500.0, "{good:?} {rejected}");
        }
    }
}

/// Some events need no permit. While the others accumulate, these end fast, which says nothing
/// about the throughput of a steady number in service.
#[test]
fn a_growing_number_in_service_shows_no_throughput() {
    for (share, limits) in [(0.8, false), (0.8, true), (0.95, false), (0.95, true)] {
        let service = Service {
            hold: Distribution::Bimodal(0.0, 10e6, share),
            wait: Distribution::Constant(10e6),
            wait_share: 1.0,
            ..Service::computing(Distribution::Constant(50_000.0))
        };
        let simulation = Simulation {
            limits,
            services: vec![(0, service)],
            arrivals: Arrivals::steps(&[(0, 560.0), (SECOND, 8000.0 / share)]),
            ..permits(0.0)
        };
        for seed in 1..=4 {
            let (good, ..) = run(&simulation, seed, SECOND, TARGET_NS);
            let possible = 3.0 * 800.0 / share;
            assert!(good[0] > 0.6 * possible, "{share} {limits}: {good:?}");
        }
    }
}

/// One event in ten needs a permit, and for 8 s holds it ten times as long. These events take most
/// servlets, and the others go on beside them.
#[test]
fn no_trial_stops_events_that_need_nothing_scarce() {
    let service = |hold_ns| Service {
        hold: Distribution::Bimodal(0.0, hold_ns, 0.1),
        wait: Distribution::Constant(10e6),
        wait_share: 1.0,
        ..Service::computing(Distribution::Constant(50_000.0))
    };
    for (limits, seed) in (1..=4).flat_map(|seed| [(false, seed), (true, seed)]) {
        let simulation = Simulation {
            until_ns: 12 * SECOND,
            limits,
            services: vec![
                (0, service(10e6)),
                (2 * SECOND, service(100e6)),
                (10 * SECOND, service(10e6)),
            ],
            arrivals: Arrivals::steps(&[(0, 5000.0)]),
            ..permits(0.0)
        };
        // The seconds in which events end.
        let mut ended = [0; 12];
        simulation.run(
            auto(Some(Duration::from_nanos(TARGET_NS))),
            seed,
            |outcome| {
                if matches!(outcome.end, EventEnd::Served) {
                    let end_ns = outcome.arrived_ns + outcome.response_ns();
                    ended[(end_ns / SECOND) as usize] += 1;
                }
            },
        );
        let least = ended.iter().min();
        assert!(least > Some(&400), "{ended:?} at seed {seed}, {limits}");
    }
}
