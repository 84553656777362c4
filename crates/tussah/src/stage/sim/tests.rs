//! Tests that simulated stages behave as queues are known to behave, and identically for the same
//! seed.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::*;
use crate::stage::control::{
    Admission, Arrival, AutoTarget, Cadence, Controller, Departure, Owns, Sample, Settings, Verdict,
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// A stage with one servlet on one CPU.
fn one_server(rate: f64, compute: Distribution) -> Simulation {
    Simulation {
        until_ns: 20 * SECOND,
        workers: 1,
        servlets: 1,
        servlets_max: 1,
        batch_max: 1,
        queue_max: 1_000_000,
        arrivals: Arrivals::steps(&[(0, rate)]),
        services: vec![(0, Service::computing(compute))],
        ..Simulation::default()
    }
}

fn outcomes(simulation: &Simulation, seed: u64) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    simulation.run(Vec::new(), seed, |outcome| outcomes.push(*outcome));
    outcomes
}

fn mean_ms(outcomes: &[Outcome]) -> f64 {
    let sum: u64 = outcomes.iter().map(Outcome::response_ns).sum();
    sum as f64 / outcomes.len() as f64 / MS as f64
}

/// A controller that sets the number of servlets once.
struct Fixed(usize);

impl Controller for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }
    fn owns(&self) -> Owns {
        Owns::SERVLETS
    }
    fn cadence(&self) -> Cadence {
        Cadence::every_ns(MS)
    }
    fn sample(&mut self, _sample: &Sample<'_>, _now_ns: u64) -> Settings {
        Settings {
            servlets: Some(self.0),
            ..Settings::default()
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_another() {
    let simulation = Simulation {
        until_ns: SECOND / 10,
        arrivals: Arrivals {
            bursts: vec![(MS, 100), (MS, 50), (70 * MS, 10)],
            classes: vec![1.0, 2.0],
            cohorts: true,
            ..Arrivals::steps(&[(0, 15_000.0), (50 * MS, 30_000.0)])
        },
        services: vec![(
            0,
            Service {
                wait: Distribution::Erlang(200_000.0, 3),
                wait_share: 0.2,
                hot_share: 0.3,
                fail_share: 0.01,
                timeout_ns: MS,
                batch_ns: 1000,
                ..Service::computing(Distribution::Exponential(80_000.0))
            },
        )],
        speeds: vec![(60 * MS, 0.5)],
        queue_max: 500,
        rejection_ns: 800,
        ..Simulation::default()
    };
    let one = outcomes(&simulation, 1);
    assert!(one.len() > 1000);
    assert_eq!(one, outcomes(&simulation, 1));
    assert_ne!(one, outcomes(&simulation, 2));
    for end in [EventEnd::Served, EventEnd::Failed, EventEnd::Rejected] {
        assert!(one.iter().any(|outcome| outcome.end == end), "{end:?}");
    }
    let ticks = |seed| simulation.run(Vec::new(), seed, |_| {});
    assert_eq!(ticks(1), ticks(1));
    assert_eq!(ticks(1).len(), 10);
}

#[test]
fn responses_are_those_of_the_theory_of_queues() {
    // Pollaczek and Khinchine: the mean wait is r / (1 - r) times the mean residual service.
    let check = |compute: Distribution, variation: f64| {
        let responses = outcomes(&one_server(700.0, compute), 1);
        let expected = 1.0 + 0.7 / 0.3 * (1.0 + variation) / 2.0;
        let seen = mean_ms(&responses);
        assert!(
            (seen / expected - 1.0).abs() < 0.1,
            "{compute:?}: {seen} ms instead of {expected} ms"
        );
    };
    check(Distribution::Constant(1e6), 0.0);
    check(Distribution::Exponential(1e6), 1.0);
    check(Distribution::Erlang(1e6, 4), 0.25);
    check(Distribution::Bimodal(5e5, 3e6, 0.2), 1.0);
}

#[test]
fn lognormal_times_have_their_mean_and_deviation() {
    let mut random = Random::new(1);
    let time = Distribution::Lognormal(1e6, 5e5);
    let draws: Vec<f64> = (0..100_000)
        .map(|_| time.draw(&mut random) as f64)
        .collect();
    let mean = draws.iter().sum::<f64>() / 1e5;
    let squares: f64 = draws.iter().map(|ns| (ns - mean).powi(2)).sum();
    let deviation = (squares / 1e5).sqrt();
    assert!((mean / time.mean_ns() - 1.0).abs() < 0.02, "{mean}");
    assert!((deviation / 5e5 - 1.0).abs() < 0.05, "{deviation}");
}

#[test]
fn clients_in_a_closed_loop_send_when_they_are_answered() {
    let clients = |queue_max| Simulation {
        queue_max,
        arrivals: Arrivals {
            clients: 4,
            retry_ns: 10 * MS,
            ..Arrivals::default()
        },
        ..one_server(0.0, Distribution::Constant(1e6))
    };
    // If all clients are let in, each waits for the three others.
    let all = outcomes(&clients(10), 1);
    assert!(all.iter().all(|outcome| outcome.end == EventEnd::Served));
    assert!(all.len() >= 19_990 && (mean_ms(&all[100..]) - 4.0).abs() < 0.01);
    // There is room for one event in the queue and one in service; the other clients come back
    // every 10 ms.
    let some = outcomes(&clients(1), 1);
    let refused = some
        .iter()
        .filter(|outcome| outcome.end == EventEnd::Rejected);
    assert!((3_990..=4_000).contains(&refused.count()));
    assert_eq!(some, outcomes(&clients(1), 1));
}

#[test]
fn arrivals_have_their_rates() {
    let simulation = Simulation {
        until_ns: 3 * SECOND,
        arrivals: Arrivals {
            bursts: vec![(SECOND / 2, 1000)],
            classes: vec![3.0, 1.0],
            ..Arrivals::steps(&[(SECOND, 5000.0), (2 * SECOND, 20_000.0)])
        },
        ..Simulation::default()
    };
    let plan: Vec<_> = simulation.plan(5).collect();
    let within = |from, to| {
        let in_it = |p: &&Planned| (from..to).contains(&(p.at_ns / (SECOND / 2)));
        plan.iter().filter(in_it).count()
    };
    assert_eq!((within(0, 1), within(1, 2)), (0, 1000));
    assert!((4700..5300).contains(&within(2, 4)));
    assert!((19_500..20_500).contains(&within(4, 6)));
    assert!(plan.is_sorted_by_key(|planned| planned.at_ns));
    let low = plan.iter().filter(|planned| planned.class == Class(1));
    let share = low.count() as f64 / plan.len() as f64;
    assert!((0.24..0.26).contains(&share), "{share}");
}

#[test]
fn servlets_that_compute_take_turns_and_os_threads_share() {
    let burst = |blocking| Simulation {
        workers: 1,
        blocking,
        servlets: 2,
        servlets_max: 2,
        arrivals: Arrivals {
            bursts: vec![(0, 2)],
            ..Arrivals::default()
        },
        batch_max: 1,
        services: vec![(0, Service::computing(Distribution::Constant(1e6)))],
        ..Simulation::default()
    };
    let ends = |blocking| -> Vec<_> {
        let outcomes = outcomes(&burst(blocking), 1);
        outcomes.iter().map(|o| o.ended_ns / MS).collect()
    };
    assert_eq!(ends(false), [1, 2]);
    assert_eq!(ends(true), [2, 2]);
}

#[test]
fn a_change_of_speed_affects_services_in_progress() {
    let simulation = Simulation {
        arrivals: Arrivals {
            bursts: vec![(0, 1)],
            ..Arrivals::default()
        },
        services: vec![(0, Service::computing(Distribution::Constant(4e6)))],
        speeds: vec![(2 * MS, 0.5), (4 * MS, 1.0)],
        ..Simulation::default()
    };
    assert_eq!(outcomes(&simulation, 1)[0].ended_ns, 5 * MS);
}

#[test]
fn waits_take_no_cpu_and_as_many_servlets_as_there_are() {
    let waiting = |servlets, blocking| Simulation {
        workers: 1,
        blocking,
        servlets,
        servlets_max: 8,
        arrivals: Arrivals {
            bursts: vec![(0, 8)],
            ..Arrivals::default()
        },
        batch_max: 8,
        services: vec![(
            0,
            Service {
                wait: Distribution::Constant(1e7),
                wait_share: 1.0,
                ..Service::computing(Distribution::Constant(1e6))
            },
        )],
        ..Simulation::default()
    };
    for blocking in [false, true] {
        let last = |servlets, batch_max| {
            let simulation = Simulation {
                batch_max,
                ..waiting(servlets, blocking)
            };
            let outcomes = outcomes(&simulation, 1);
            assert_eq!(outcomes.len(), 8);
            outcomes.iter().map(|o| o.ended_ns / MS).max()
        };
        assert_eq!(last(1, 1), Some(88));
        assert_eq!(last(8, 1), Some(18));
        let two = last(2, 1).expect("there are outcomes");
        assert!((44..=48).contains(&two), "{two}");
    }
}

#[test]
fn hot_events_are_handled_one_at_a_time_by_color_or_by_key() {
    let hot = |keyed, servlets| Simulation {
        until_ns: 4 * SECOND,
        workers: 4,
        keyed,
        servlets,
        batch_max: 1,
        queue_max: 200,
        arrivals: Arrivals::steps(&[(0, 4000.0)]),
        services: vec![(
            0,
            Service {
                hot_share: 0.5,
                ..Service::computing(Distribution::Constant(1e6))
            },
        )],
        ..Simulation::default()
    };
    let served = |keyed, servlets| {
        let outcomes = outcomes(&hot(keyed, servlets), 1);
        let served = outcomes.iter().filter(|o| o.end == EventEnd::Served);
        let hot = served.clone().filter(|o| o.hot).count();
        (hot, served.count() - hot)
    };
    // 1000 hot events per second and no more; the other events wait behind them, but not in a keyed
    // stage.
    let (by_color, behind) = served(false, 4);
    assert!((3900..=4000).contains(&by_color), "{by_color}");
    assert!(behind < 5000, "{behind}");
    let (by_key, _) = served(true, 4);
    assert!((3900..=4000).contains(&by_key), "{by_key}");
    assert_eq!(served(false, 1).0 + served(false, 1).1, 3999);
}

#[test]
fn rejections_cost_what_they_are_said_to() {
    let overloaded = |rejection_ns| Simulation {
        until_ns: 2 * SECOND,
        rejection_ns,
        queue_max: 10,
        ..one_server(10_000.0, Distribution::Constant(1e6))
    };
    let served = |rejection_ns| {
        let outcomes = outcomes(&overloaded(rejection_ns), 1);
        let (served, rejected): (Vec<Outcome>, Vec<Outcome>) = outcomes
            .into_iter()
            .partition(|o| o.end == EventEnd::Served);
        assert_eq!(
            rejected.iter().all(|o| o.response_ns() == 0),
            rejection_ns == 0
        );
        (served.len(), rejected.len())
    };
    assert_eq!(served(0).0, 1999);
    let (served, rejected) = served(20_000);
    let busy_ms = served as f64 + rejected as f64 * 0.02;
    assert!((1998.0..=2000.0).contains(&busy_ms), "{busy_ms}");
}

#[test]
fn controllers_set_what_they_own() {
    let simulation = Simulation {
        arrivals: Arrivals::steps(&[(0, 1000.0)]),
        ..Simulation::default()
    };
    let ticks = simulation.run(vec![Box::new(Fixed(7))], 1, |_| {});
    assert_eq!(ticks[0].servlets, 7);
    assert_eq!(ticks.last().expect("a second has ticks").batch, 100);
}

#[test]
fn a_servlet_whose_handler_waits_leaves_the_others_their_share() {
    let simulation = Simulation {
        servlets: 8,
        servlets_max: 8,
        arrivals: Arrivals {
            bursts: vec![(0, 8), (SECOND / 2, 8)],
            ..Arrivals::default()
        },
        services: vec![(
            0,
            Service {
                wait: Distribution::Constant(1e7),
                wait_share: 1.0,
                ..Service::computing(Distribution::Constant(1e4))
            },
        )],
        ..Simulation::default()
    };
    let outcomes = outcomes(&simulation, 1);
    let second = outcomes.iter().filter(|o| o.arrived_ns > 0);
    let longest_ms = second.map(|o| o.response_ns() / MS).max();
    assert_eq!(longest_ms, Some(10));
}

#[test]
fn batches_are_filled_whatever_the_chunks_are() {
    // From 512 events, in chunks of 128, batches of 100 take 100 events each time.
    let simulation = Simulation {
        workers: 1,
        servlets: 1,
        servlets_max: 1,
        arrivals: Arrivals {
            bursts: vec![(0, 513)],
            ..Arrivals::default()
        },
        services: vec![(
            0,
            Service {
                batch_ns: MS,
                ..Service::computing(Distribution::Constant(0.0))
            },
        )],
        ..Simulation::default()
    };
    let outcomes = outcomes(&simulation, 1);
    let ends: std::collections::BTreeSet<_> = outcomes.iter().map(|o| o.ended_ns).collect();
    // The first event is taken alone, as soon as it arrives; the rest of a chunk may be a separate
    // batch.
    assert!(ends.len() <= 10, "{ends:?}");
}

#[test]
fn the_log_has_the_controllers_of_each_event() {
    use crate::stage::control::log::Change;
    use crate::stage::control::{Predict, Rule};
    use std::time::Duration;
    let mut simulation = one_server(3000.0, Distribution::Constant(1e6));
    simulation.until_ns = SECOND;
    let target = Duration::from_millis(10);
    let controllers: Vec<Box<dyn Controller>> = vec![Box::new(Predict::new(target))];
    let log = simulation.log(controllers, 1);
    let decision = log.iter().next().expect("it is an overload");
    assert_eq!(
        (decision.controller, decision.change),
        ("predict", Change::Rule(Class(0), Rule::All, Rule::InTime))
    );
    let text = decision.to_string();
    assert!(
        text.contains("class 0 let in: all -> those that can be answered in time: 1 of 1 servlets"),
        "{text}"
    );
}

/// In overload, the time that small batches cost is lost goodput.
#[test]
fn a_stage_with_costly_batches_reaches_the_capacity_of_large_ones_in_overload() {
    use crate::stage::control::auto;
    use std::time::Duration;
    let simulation = Simulation {
        until_ns: 600 * MS,
        arrivals: Arrivals::steps(&[(0, 3e6)]),
        services: vec![(
            0,
            Service {
                batch_ns: 56_000,
                ..Service::computing(Distribution::Exponential(1000.0))
            },
        )],
        ..Simulation::default()
    };
    let target = Duration::from_millis(5);
    let goodput = |but: &str| {
        let mut controllers = auto(Some(target));
        controllers.retain(|controller| controller.name() != but);
        let mut served = 0;
        simulation.run(controllers, 1, |outcome| {
            let settled = outcome.arrived_ns > 200 * MS;
            let in_time = u128::from(outcome.response_ns()) <= target.as_nanos();
            served += u64::from(settled && in_time && outcome.end == EventEnd::Served);
        });
        served as f64
    };
    let share = goodput("") / goodput("seda-batch");
    assert!(share > 0.95, "{share} of what batches of 100 do");
}

#[test]
fn a_service_without_end_does_not_end() {
    let mut simulation = one_server(1000.0, Distribution::Constant(f64::INFINITY));
    simulation.until_ns = SECOND / 10;
    simulation.services[0].1.batch_ns = 1;
    assert_eq!(outcomes(&simulation, 1), []);
}

#[test]
fn skipped_events_are_shed_when_overdue_and_not_at_their_turn() {
    use crate::stage::control::Predict;
    const TARGET_NS: u64 = 20 * MS;
    // The higher class alone exceeds the capacity.
    let simulation = Simulation {
        arrivals: Arrivals {
            classes: vec![1.0, 1.0],
            ..Arrivals::steps(&[(0, 3000.0)])
        },
        ..one_server(0.0, Distribution::Exponential(MS as f64))
    };
    let predict: Box<dyn Controller> = Box::new(Predict::new(Duration::from_nanos(TARGET_NS)));
    let (mut shed, mut longest_ns) = (0, 0);
    simulation.run(vec![predict], 1, |outcome| {
        if outcome.end == EventEnd::Shed && outcome.class == Class(1) {
            shed += 1;
            longest_ns = longest_ns.max(outcome.response_ns());
        }
    });
    // Some events arrived before the capacity was known.
    assert!(shed > 10, "{shed}");
    assert!(longest_ns < 4 * TARGET_NS, "{longest_ns}");
}

/// A controller, and the shortest time after which a queued event of a stage without classes was
/// overdue at each sample.
struct Observed<C> {
    controller: C,
    overdue: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl<C: Controller> Controller for Observed<C> {
    fn name(&self) -> &'static str {
        self.controller.name()
    }
    fn owns(&self) -> Owns {
        self.controller.owns()
    }
    fn cadence(&self) -> Cadence {
        self.controller.cadence()
    }
    fn looks_at_responses(&self) -> bool {
        self.controller.looks_at_responses()
    }
    fn looks_at_departures(&self) -> bool {
        self.controller.looks_at_departures()
    }
    fn sample(&mut self, sample: &Sample<'_>, now_ns: u64) -> Settings {
        let settings = self.controller.sample(sample, now_ns);
        let is_overdue = |sojourn_ns| {
            self.controller.is_overdue(&Departure {
                class: Class(0),
                sojourn_ns,
                queue_len: 0,
                key: None,
                now_ns,
            })
        };
        let (mut never_ns, mut overdue_ns) = (0, u64::MAX);
        while is_overdue(u64::MAX) && never_ns + 1 < overdue_ns {
            let ns = never_ns.midpoint(overdue_ns);
            if is_overdue(ns) {
                overdue_ns = ns;
            } else {
                never_ns = ns;
            }
        }
        self.overdue.lock().push((now_ns, overdue_ns));
        settings
    }
    fn on_enqueue(&mut self, arrival: &Arrival) -> Admission {
        self.controller.on_enqueue(arrival)
    }
    fn is_overdue(&self, departure: &Departure) -> bool {
        self.controller.is_overdue(departure)
    }
    fn on_dequeue(&mut self, departure: &Departure) -> Verdict {
        self.controller.on_dequeue(departure)
    }
}

/// Handlers take two seconds, and there are few servlets: most events could only be shed long after
/// they are overdue, if that waited for their turn.
#[test]
fn overdue_events_are_shed_within_50_ms() {
    let simulation = Simulation {
        until_ns: 30 * SECOND,
        servlets: 8,
        servlets_max: 8,
        batch_max: 1,
        arrivals: Arrivals {
            bursts: vec![(5 * SECOND, 100)],
            ..Arrivals::steps(&[(0, 3.0), (6 * SECOND, 12.0)])
        },
        services: vec![(
            0,
            Service {
                wait: Distribution::Constant(2e9),
                wait_share: 1.0,
                ..Service::computing(Distribution::Constant(1e5))
            },
        )],
        ..Simulation::default()
    };
    for seed in 1..=20 {
        let overdue = Arc::default();
        let controller = Observed {
            controller: AutoTarget::new(Duration::from_secs(1)),
            overdue: Arc::clone(&overdue),
        };
        let mut shed = Vec::new();
        simulation.run(vec![Box::new(controller)], seed, |outcome| {
            if outcome.end == EventEnd::Shed {
                shed.push(*outcome);
            }
        });
        assert!(shed.len() > 10, "seed {seed}: {}", shed.len());
        let samples = overdue.lock();
        for outcome in shed {
            // Since when every sample has named it as overdue.
            let mut since_ns = outcome.ended_ns;
            let before = samples.iter().rev();
            for (at_ns, overdue_ns) in before.skip_while(|it| it.0 > outcome.ended_ns) {
                let from_ns = outcome.arrived_ns.saturating_add(*overdue_ns).max(*at_ns);
                since_ns = since_ns.min(from_ns);
                if from_ns > *at_ns {
                    break;
                }
            }
            let late_ns = outcome.ended_ns - since_ns;
            assert!(
                late_ns <= 50 * MS,
                "seed {seed}: {late_ns} ns for {outcome:?}"
            );
        }
    }
}

/// A controller that samples every 10 ms, and for which events are overdue after 20 ms.
struct Impatient;

impl Controller for Impatient {
    fn name(&self) -> &'static str {
        "impatient"
    }
    fn owns(&self) -> Owns {
        Owns::ADMISSION
    }
    fn cadence(&self) -> Cadence {
        Cadence::every_ns(10 * MS)
    }
    fn sample(&mut self, _sample: &Sample<'_>, _now_ns: u64) -> Settings {
        Settings::default()
    }
    fn is_overdue(&self, departure: &Departure) -> bool {
        departure.sojourn_ns > 20 * MS
    }
}

/// The last check finds an idle stage. Then two events arrive, and no sample is due until the first
/// of them ends.
#[test]
fn events_of_a_stage_that_was_idle_are_shed_when_they_are_overdue() {
    let waits = |ms: u64| Service {
        wait: Distribution::Constant((ms * MS) as f64),
        wait_share: 1.0,
        ..Service::computing(Distribution::Constant(0.0))
    };
    let simulation = Simulation {
        until_ns: SECOND,
        servlets: 1,
        servlets_max: 1,
        batch_max: 1,
        arrivals: Arrivals {
            bursts: vec![(20 * MS, 1), (46 * MS, 2)],
            ..Arrivals::default()
        },
        services: vec![(0, waits(18)), (46 * MS, waits(500))],
        ..Simulation::default()
    };
    let mut shed_ms = Vec::new();
    simulation.run(vec![Box::new(Impatient)], 1, |outcome| {
        if outcome.end == EventEnd::Shed {
            shed_ms.push(outcome.ended_ns / MS);
        }
    });
    assert_eq!(shed_ms, [71]);
}

#[test]
fn no_more_handlers_hold_a_permit_than_there_are() {
    let hold = Service {
        hold: Distribution::Constant(1e7),
        ..Service::computing(Distribution::Constant(0.0))
    };
    let last = |permits| {
        let simulation = Simulation {
            servlets: 8,
            batch_max: 1,
            arrivals: Arrivals {
                bursts: vec![(0, 8)],
                ..Arrivals::default()
            },
            services: vec![(0, hold)],
            permits,
            ..Simulation::default()
        };
        let outcomes = outcomes(&simulation, 1);
        assert_eq!(outcomes.len(), 8);
        outcomes.iter().map(|o| o.ended_ns / MS).max()
    };
    assert_eq!(last(vec![]), Some(10));
    assert_eq!(last(vec![(0, 2)]), Some(40));
    // Two more services for the last four events.
    assert_eq!(last(vec![(0, 2), (20 * MS, 4)]), Some(30));
}
