//! The required properties of the controller, on simulated queues.

mod closed;

use super::super::testing::{Done, MS, Model, Random, SECOND, Service, Sim, arrival, quiet};
use super::*;

fn sim(model: Model, target_ns: u64, seed: u64) -> Sim<Predict> {
    Sim::new(Predict::new(Duration::from_nanos(target_ns)), model, seed)
}

/// Events answered within the target, per nanosecond.
fn goodput(done: &[Done], target_ns: u64, for_ns: u64) -> f64 {
    let good = done.iter().filter(|d| d.response_ns <= target_ns).count();
    good as f64 / for_ns as f64
}

fn percentile(done: &[Done], share: f64) -> u64 {
    let mut responses: Vec<_> = done.iter().map(|done| done.response_ns).collect();
    responses.sort_unstable();
    responses[(responses.len() as f64 * share) as usize]
}

/// Returns the time from which any hundred consecutive completions include at most one that is
/// late.
fn settled_ns(done: &[Done], target_ns: u64, start_ns: u64) -> u64 {
    let late = |window: &&[Done]| window.iter().filter(|d| d.response_ns > target_ns).count() > 1;
    let last = done.windows(100).rfind(late);
    last.map_or(0, |window| window[99].at_ns - start_ns)
}

/// Runs at 80 % for half a second, then at `load` for the same time. Returns the median over the
/// seeds of `f` on the second half.
fn step(load: f64, service: Service, seeds: u64, f: impl Fn(&Sim<Predict>, u64) -> f64) -> f64 {
    let model = Model {
        service,
        ..Model::two_servers()
    };
    let one = |seed| {
        let mut sim = sim(model, MS, seed);
        sim.run(0.8, model.capacity(), SECOND / 2);
        assert_eq!(
            (sim.refused, sim.shed),
            (0, 0),
            "before the step, seed {seed}"
        );
        sim.done.clear();
        let start_ns = sim.now_ns;
        sim.run(load, model.capacity(), SECOND / 2);
        f(&sim, start_ns)
    };
    let mut results: Vec<_> = (0..seeds).map(one).collect();
    results.sort_by(f64::total_cmp);
    results[results.len() / 2]
}

#[test]
fn goodput_stays_near_the_capacity_in_overload() {
    let check = |load, expected| {
        let per_ns = Model::two_servers().capacity();
        let got = step(load, Service::Exponential, 3, |sim, _| {
            goodput(&sim.done, MS, SECOND / 2) / per_ns
        });
        assert!(got >= expected, "at {load} times the capacity: {got}");
    };
    check(1.4, 0.92);
    check(2.0, 0.96);
    check(4.0, 0.98);
    check(10.0, 0.98);
}

#[test]
fn nine_in_ten_are_within_the_target() {
    for service in [Service::Constant, Service::Lognormal, Service::Bimodal] {
        for load in [1.4, 2.0, 10.0] {
            let p90 = step(load, service, 3, |sim, _| percentile(&sim.done, 0.9) as f64);
            assert!(
                p90 <= MS as f64 * 0.7,
                "at {load} times the capacity: {p90} ns"
            );
        }
    }
}

#[test]
fn admitted_events_meet_the_target_20_ms_after_an_overload() {
    for load in [1.4, 2.0, 10.0] {
        let settled = step(load, Service::Exponential, 15, |sim, start_ns| {
            // Of the thousands of events after that, some hundred have two that are late by chance.
            let soon = |done: &&Done| done.at_ns < start_ns + 100 * MS;
            let done: Vec<_> = sim.done.iter().take_while(soon).copied().collect();
            settled_ns(&done, MS, start_ns) as f64
        });
        assert!(
            settled <= 20e6,
            "at {load} times the capacity: {settled} ns"
        );
    }
}

#[test]
fn nobody_is_rejected_at_80_percent_though_queues_exceed_the_target() {
    for (servers, service) in [(1, Service::Exponential), (2, Service::Lognormal)] {
        let model = Model {
            servers,
            service,
            ..Model::two_servers()
        };
        let mut sim = sim(model, MS, 1);
        while sim.offered < 200_000 {
            sim.run(0.8, model.capacity(), SECOND);
        }
        assert_eq!((sim.refused, sim.shed), (0, 0));
        assert!(
            percentile(&sim.done, 0.9999) > 2 * MS,
            "the test tests nothing"
        );
    }
}

#[test]
fn a_stage_that_begins_in_overload_is_controlled_as_soon() {
    let model = Model::two_servers();
    let mut sim = sim(model, MS, 3);
    sim.run(3.0, model.capacity(), SECOND / 4);
    assert!(settled_ns(&sim.done, MS, 0) < 20 * MS);
    assert!(goodput(&sim.done, MS, SECOND / 4) > 0.93 * model.capacity());
}

#[test]
fn a_capacity_that_halves_and_comes_back_is_followed() {
    let model = Model::two_servers();
    let mut sim = sim(model, MS, 4);
    sim.run(0.8, model.capacity(), SECOND / 4);
    sim.model.service_mean_ns *= 2.0;
    sim.run(0.8, model.capacity(), SECOND / 20);
    assert!(sim.controller.overloaded());
    sim.done.clear();
    sim.run(0.8, model.capacity(), SECOND / 2);
    let half = model.capacity() / 2.0;
    let seen = sim.controller.capacity_per_second() / 1e9 / half;
    assert!((0.85..1.15).contains(&seen), "{seen} of the capacity");
    assert!(percentile(&sim.done, 0.9) < MS);
    let good = goodput(&sim.done, MS, SECOND / 2) / half;
    assert!(good > 0.8, "{good} of the capacity");

    sim.model.service_mean_ns /= 2.0;
    sim.run(0.8, model.capacity(), SECOND / 2);
    assert!(!sim.controller.overloaded());
    let refused = sim.refused;
    sim.run(0.8, model.capacity(), SECOND / 2);
    assert_eq!(sim.refused, refused);
}

#[test]
fn ten_requests_a_second_are_enough_to_learn_from() {
    let model = Model {
        servers: 1,
        ..Model::two_servers()
    };
    let model = Model {
        service_mean_ns: 1e8,
        ..model
    };
    let mut sim = sim(model, SECOND, 5);
    sim.run(0.8, model.capacity(), 200 * SECOND);
    assert_eq!((sim.refused, sim.shed), (0, 0));
    sim.run(2.0, model.capacity(), 30 * SECOND);
    sim.done.clear();
    sim.run(2.0, model.capacity(), 100 * SECOND);
    assert!(percentile(&sim.done, 0.9) < SECOND);
    assert!(goodput(&sim.done, SECOND, 100 * SECOND) > 0.85 * model.capacity());
}

#[test]
fn batches_are_within_the_target_too() {
    let model = Model {
        batch_max: 64,
        service_mean_ns: 10_000.0,
        ..Model::two_servers()
    };
    let mut sim = sim(model, MS, 6);
    sim.run(0.8, model.capacity(), SECOND / 10);
    assert_eq!((sim.refused, sim.shed), (0, 0));
    sim.run(4.0, model.capacity(), SECOND / 50);
    sim.done.clear();
    sim.run(4.0, model.capacity(), SECOND / 10);
    assert!(percentile(&sim.done, 0.9) < MS);
    assert!(goodput(&sim.done, MS, SECOND / 10) > 0.95 * model.capacity());
}

#[test]
fn servlets_that_wait_are_all_kept_at_work() {
    let model = Model {
        servers: 50,
        service_mean_ns: 20.0 * MS as f64,
        ..Model::two_servers()
    };
    let target_ns = 100 * MS;
    let mut sim = sim(model, target_ns, 7);
    sim.run(0.8, model.capacity(), 2 * SECOND);
    assert_eq!((sim.refused, sim.shed), (0, 0));
    sim.run(2.0, model.capacity(), SECOND);
    sim.done.clear();
    sim.run(2.0, model.capacity(), 2 * SECOND);
    assert!(percentile(&sim.done, 0.9) < target_ns);
    assert!(goodput(&sim.done, target_ns, 2 * SECOND) > 0.95 * model.capacity());
}

#[test]
fn the_cost_of_events_is_counted_in_credits() {
    let model = Model {
        cost: 7,
        ..Model::two_servers()
    };
    let mut sim = sim(model, MS, 8);
    sim.run(0.8, model.capacity(), SECOND / 4);
    assert_eq!((sim.refused, sim.shed), (0, 0));
    sim.run(4.0, model.capacity(), SECOND / 20);
    sim.done.clear();
    sim.run(4.0, model.capacity(), SECOND / 4);
    assert!(percentile(&sim.done, 0.9) < MS);
    assert!(goodput(&sim.done, MS, SECOND / 4) > 0.95 * model.capacity());
}

#[test]
fn higher_classes_are_let_in_first() {
    let model = Model {
        classes: 4,
        ..Model::two_servers()
    };
    let mut sim = sim(model, MS, 9);
    sim.run(1.6, model.capacity(), SECOND / 20);
    sim.done.clear();
    sim.run(1.6, model.capacity(), SECOND / 2);
    // Each class brings four tenths of the capacity, so there is room for two and a half classes.
    let mut served = [0.0; 4];
    for done in sim.done.iter().filter(|done| done.response_ns <= MS) {
        served[usize::from(done.class)] += 1.0 / (SECOND / 2) as f64 / model.capacity();
    }
    assert!(served[0] > 0.37 && served[1] > 0.34, "{served:?}");
    assert!(served[2] > 0.1 && served[3] < 0.05, "{served:?}");
}

#[test]
fn the_highest_class_is_within_the_target_when_it_alone_is_an_overload() {
    let model = Model {
        classes: 4,
        ..Model::two_servers()
    };
    let mut sim = sim(model, MS, 10);
    sim.run(10.0, model.capacity(), SECOND / 20);
    sim.done.clear();
    sim.run(10.0, model.capacity(), SECOND / 4);
    let others = sim.done.iter().filter(|done| done.class > 0).count();
    assert!(
        others * 20 < sim.done.len(),
        "{others} of {}",
        sim.done.len()
    );
    assert!(percentile(&sim.done, 0.9) < MS);
    assert!(goodput(&sim.done, MS, SECOND / 4) > 0.95 * model.capacity());
}

/// Returns how many events are refused from a load of one half and a burst of `size`, with services
/// of 10 µs. Also returns whether the load is an overload at the end.
fn burst(size: u64, slots: u64) -> (u64, bool) {
    let mut predict = Predict::new(Duration::from_millis(1));
    let mut random = Random::new(1);
    let (mut queue, mut refused) = (0u64, 0u64);
    for slot in 0..slots {
        let arrives = if slot == 3000 {
            size
        } else {
            random.next() % 10
        };
        for _ in 0..arrives {
            if predict.on_enqueue(&arrival(0, queue, 1)) == Admission::Admit {
                queue += 1;
            } else {
                refused += 1;
            }
        }
        let finished = queue.min(12);
        queue -= finished;
        let classes = [super::super::ClassSample {
            queued: queue,
            ..Default::default()
        }];
        let sample = Sample {
            classes: &classes,
            interval_ns: 125_000,
            busy_ns: finished * 10_000,
            queue_len: queue,
            queue_max: 10_000,
            arrived: arrives,
            admitted: arrives,
            finished,
            batches: finished,
            service_ns: finished * 10_000,
            ..quiet()
        };
        predict.sample(&sample, slot * 125_000);
    }
    (refused, predict.overloaded())
}

#[test]
fn a_burst_is_let_in_whole() {
    assert_eq!(burst(380, 4000), (0, false));
}

#[test]
fn a_burst_of_many_targets_is_refused_at_once() {
    let (refused, overloaded) = burst(1000, 3001);
    // All but 400 events and those for which senders may have reserved places.
    assert!((330..=360).contains(&refused) && overloaded, "{refused}");
    assert!(!burst(1000, 4000).1, "it is never over");
}

#[test]
fn places_that_senders_ask_for_are_no_burst() {
    let mut predict = Predict::new(Duration::from_millis(1));
    for slot in 0..1000u64 {
        // With services of a tenth of a millisecond, few events wait; but each sender asks for a
        // whole chunk.
        predict.on_enqueue_many(&arrival(0, 3, 1), 128);
        assert_eq!(predict.on_enqueue(&arrival(0, 131, 1)), Admission::Admit);
        let classes = [super::super::ClassSample {
            queued: 3,
            ..Default::default()
        }];
        let sample = Sample {
            interval_ns: 125_000,
            busy_ns: 125_000,
            queue_len: 3,
            arrived: 1,
            admitted: 1,
            finished: 1,
            batches: 1,
            service_ns: 100_000,
            classes: &classes,
            ..quiet()
        };
        predict.sample(&sample, slot * 125_000);
        assert!(!predict.overloaded());
    }
}

#[test]
fn nothing_is_decided_before_anything_was_done() {
    let mut predict = Predict::new(Duration::ZERO);
    for i in 0..10_000 {
        assert_eq!(predict.on_enqueue(&arrival(200, i, 0)), Admission::Admit);
        let sample = Sample {
            queue_len: i,
            arrived: u64::MAX / 4,
            interval_ns: 1,
            ..quiet()
        };
        predict.sample(&sample, i);
    }
    assert!(!predict.overloaded());
    assert_eq!(predict.target_ns(), 1_000);
}

#[test]
fn responses_longer_than_predicted_make_the_room_smaller() {
    let mut predict = Predict::new(Duration::from_millis(1));
    let mut show = |overloaded, busy_ns, response_mean_ns| {
        predict.overloaded = overloaded;
        let classes = [super::super::ClassSample {
            finished: 1000,
            response_mean_ns,
            ..Default::default()
        }];
        for _ in 0..500 {
            let sample = Sample {
                finished: 1000,
                busy_ns,
                classes: &classes,
                ..quiet()
            };
            predict.correct(&sample);
        }
        predict.correction
    };
    assert_eq!(show(false, MS, 2 * MS), 1.0);
    assert_eq!(show(true, MS, MS / 2), 1.0);
    assert_eq!(show(true, MS, MS / 2 + 10), 0.25);
    assert_eq!(show(true, MS, MS / 4), 1.0);
    // Servlets without work make the correction larger.
    assert!(show(true, MS / 2, MS / 4) > 3.0);
    assert_eq!(show(true, MS, MS / 4), 1.0);
}

#[test]
fn clumps_above_the_capacity_are_an_overload_and_those_below_are_none() {
    use crate::stage::sim::{Arrivals, Distribution, EventEnd, Service, Simulation};
    const TARGET_NS: u64 = 5 * MS;
    let run = |clump: u32| {
        // A clump of `clump` events every 2.5 ms, a time in which 50 can be handled; before that,
        // 80 % of the capacity.
        let bursts = (200..1000).map(|i| (i * 5 * MS / 2, clump)).collect();
        let simulation = Simulation {
            until_ns: 5 * SECOND / 2,
            services: vec![(0, Service::computing(Distribution::Exponential(100_000.0)))],
            arrivals: Arrivals {
                bursts,
                ..Arrivals::steps(&[(0, 16_000.0), (SECOND / 2, 0.0)])
            },
            ..Simulation::default()
        };
        let predict: Box<dyn Controller> = Box::new(Predict::new(Duration::from_nanos(TARGET_NS)));
        let (mut good, mut turned_away) = (0, 0);
        simulation.run(vec![predict], 1, |outcome| match outcome.end {
            EventEnd::Rejected | EventEnd::Shed => turned_away += 1,
            _ => {
                let counts = outcome.arrived_ns >= SECOND / 2;
                good += u64::from(counts && outcome.response_ns() <= TARGET_NS);
            }
        });
        (good as f64 / 40_000.0, turned_away)
    };
    let (good, turned_away) = run(100);
    assert!(good >= 0.8 && turned_away >= 35_000, "{good} {turned_away}");
    assert_eq!(run(40).1, 0);
}
