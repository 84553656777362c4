//! The required properties of the controller, on simulated queues.

mod closed;

use super::super::testing::{MS, SECOND, arrival, quiet};
use super::*;
use crate::stage::sim::{Arrivals, Distribution, EventEnd, Outcome, Random, Service, Simulation};

/// A stage with this many servlets that never wait for each other, and take one event at a time.
fn servers(count: usize, service: Service) -> Simulation {
    Simulation {
        workers: count,
        servlets: count,
        servlets_max: count,
        batch_max: 1,
        queue_max: 1_000_000,
        services: vec![(0, service)],
        ..Simulation::default()
    }
}

fn exponential(mean_ns: f64) -> Service {
    Service::computing(Distribution::Exponential(mean_ns))
}

/// Two servlets, with services of 100 µs.
fn two_servers() -> Simulation {
    servers(2, exponential(100_000.0))
}

/// Returns the initial capacity, in events per nanosecond.
fn capacity(simulation: &Simulation) -> f64 {
    let service = simulation.services[0].1;
    let mean_ns = service.compute.mean_ns() + service.wait.mean_ns() * service.wait_share;
    simulation.servlets as f64 / mean_ns
}

/// Sets the arrivals: multiples of the capacity, each for some nanoseconds.
fn at_loads(loads: &[(f64, u64)], simulation: Simulation) -> Simulation {
    let per_second = capacity(&simulation) * 1e9;
    let mut until_ns = 0;
    let rates = loads.iter().map(|&(load, for_ns)| {
        let from_ns = until_ns;
        until_ns += for_ns;
        (from_ns, load * per_second)
    });
    Simulation {
        arrivals: Arrivals {
            rates: rates.collect(),
            ..simulation.arrivals
        },
        until_ns,
        ..simulation
    }
}

/// The events of a run.
#[derive(Default)]
struct Run {
    served: Vec<Outcome>,
    rejected: Vec<Outcome>,
}

impl Run {
    fn new(simulation: &Simulation, target_ns: u64, seed: u64) -> Self {
        let predict: Box<dyn Controller> = Box::new(Predict::new(Duration::from_nanos(target_ns)));
        let mut run = Self::default();
        simulation.run(vec![predict], seed, |outcome| match outcome.end {
            EventEnd::Served => run.served.push(*outcome),
            _ => run.rejected.push(*outcome),
        });
        run
    }

    /// Returns the answers from this time on.
    fn served_from(&self, from_ns: u64) -> &[Outcome] {
        let from = self.served.partition_point(|it| it.ended_ns < from_ns);
        &self.served[from..]
    }

    /// Returns the number of events that were rejected in this time.
    fn rejected(&self, from_ns: u64, until_ns: u64) -> usize {
        let within = |it: &&Outcome| (from_ns..until_ns).contains(&it.ended_ns);
        self.rejected.iter().filter(within).count()
    }
}

/// Events answered within the target, per nanosecond.
fn goodput(served: &[Outcome], target_ns: u64, for_ns: u64) -> f64 {
    let good = served.iter().filter(|it| it.response_ns() <= target_ns);
    good.count() as f64 / for_ns as f64
}

fn percentile(served: &[Outcome], share: f64) -> u64 {
    let mut responses: Vec<_> = served.iter().map(Outcome::response_ns).collect();
    responses.sort_unstable();
    responses[(responses.len() as f64 * share) as usize]
}

/// Returns the time from which any hundred consecutive completions include at most one that is
/// late.
fn settled_ns(served: &[Outcome], target_ns: u64, start_ns: u64) -> u64 {
    let is_late = |it: &&Outcome| it.response_ns() > target_ns;
    let late = |window: &&[Outcome]| window.iter().filter(is_late).count() > 1;
    let last = served.windows(100).rfind(late);
    last.map_or(0, |window| window[99].ended_ns - start_ns)
}

/// Runs at 80 % for half a second, then at `load` for some time. Returns the median over the seeds
/// of `f` on the answers in the second part.
fn step(
    (load, for_ns): (f64, u64),
    compute: Distribution,
    seeds: u64,
    f: impl Fn(&[Outcome]) -> f64,
) -> f64 {
    let stage = servers(2, Service::computing(compute));
    let stage = at_loads(&[(0.8, SECOND / 2), (load, for_ns)], stage);
    let one = |seed| {
        let run = Run::new(&stage, MS, seed);
        let before = run.rejected(0, SECOND / 2);
        assert_eq!(before, 0, "before the step, seed {seed}");
        f(run.served_from(SECOND / 2))
    };
    let mut results: Vec<_> = (0..seeds).map(one).collect();
    results.sort_by(f64::total_cmp);
    results[results.len() / 2]
}

#[test]
fn goodput_stays_near_the_capacity_in_overload() {
    let check = |load, expected| {
        let per_ns = capacity(&two_servers());
        let half = (load, SECOND / 2);
        let got = step(half, Distribution::Exponential(100_000.0), 3, |served| {
            goodput(served, MS, SECOND / 2) / per_ns
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
    for compute in [
        Distribution::Constant(100_000.0),
        Distribution::Lognormal(100_000.0, 100_000.0),
        Distribution::Bimodal(100_000.0 / 1.4, 500_000.0 / 1.4, 0.1),
    ] {
        for load in [1.4, 2.0, 10.0] {
            let half = (load, SECOND / 2);
            let p90 = step(half, compute, 3, |served| percentile(served, 0.9) as f64);
            assert!(
                p90 <= MS as f64 * 0.7,
                "{compute:?} at {load} times the capacity: {p90} ns"
            );
        }
    }
}

#[test]
fn admitted_events_meet_the_target_20_ms_after_an_overload() {
    for load in [1.4, 2.0, 10.0] {
        let compute = Distribution::Exponential(100_000.0);
        // Of thousands of events, some hundred have two that are late by chance.
        let settled = step((load, 100 * MS), compute, 15, |served| {
            settled_ns(served, MS, SECOND / 2) as f64
        });
        assert!(
            settled <= 20e6,
            "at {load} times the capacity: {settled} ns"
        );
    }
}

#[test]
fn nobody_is_rejected_at_80_percent_though_queues_exceed_the_target() {
    let lognormal = Service::computing(Distribution::Lognormal(100_000.0, 100_000.0));
    for stage in [servers(1, exponential(100_000.0)), servers(2, lognormal)] {
        let for_ns = (200_000.0 / 0.8 / capacity(&stage)) as u64;
        let run = Run::new(&at_loads(&[(0.8, for_ns)], stage), MS, 1);
        assert_eq!(run.rejected.len(), 0);
        let longest_ns = percentile(&run.served, 0.9999);
        assert!(longest_ns > 2 * MS, "the test tests nothing");
    }
}

#[test]
fn a_stage_that_begins_in_overload_is_controlled_as_soon() {
    let run = Run::new(&at_loads(&[(3.0, SECOND / 4)], two_servers()), MS, 3);
    assert!(settled_ns(&run.served, MS, 0) < 20 * MS);
    assert!(goodput(&run.served, MS, SECOND / 4) > 0.93 * capacity(&two_servers()));
}

#[test]
fn a_capacity_that_halves_and_comes_back_is_followed() {
    let stage = Simulation {
        services: vec![
            (0, exponential(100_000.0)),
            (SECOND / 4, exponential(200_000.0)),
            (4 * SECOND / 5, exponential(100_000.0)),
        ],
        ..two_servers()
    };
    let run = Run::new(&at_loads(&[(0.8, 9 * SECOND / 5)], stage), MS, 4);
    let served = run.served_from(3 * SECOND / 10);
    let halved = &served[..served.partition_point(|it| it.ended_ns < 4 * SECOND / 5)];
    assert!(percentile(halved, 0.9) < MS);
    let good = goodput(halved, MS, SECOND / 2) / capacity(&two_servers()) * 2.0;
    assert!(good > 0.8, "{good} of the capacity");
    // The rest is rejected, and nothing any more when the capacity is back.
    let rejected = run.rejected(3 * SECOND / 10, 4 * SECOND / 5);
    assert!((2500..4500).contains(&rejected), "{rejected}");
    assert_eq!(run.rejected(13 * SECOND / 10, 9 * SECOND / 5), 0);
}

/// Runs at 80 % of the capacity for some time, in which nothing may be rejected. Then runs at
/// another load; of this, only the last part counts. Returns the answers in it and their number
/// within the target, divided by the capacity.
fn overloaded(
    stage: Simulation,
    target_ns: u64,
    (normal_ns, load, settles_ns, counts_ns): (u64, f64, u64, u64),
) -> (Vec<Outcome>, f64) {
    let per_ns = capacity(&stage);
    let stage = at_loads(&[(0.8, normal_ns), (load, settles_ns + counts_ns)], stage);
    let run = Run::new(&stage, target_ns, 5);
    assert_eq!(run.rejected(0, normal_ns), 0);
    let served = run.served_from(normal_ns + settles_ns);
    let good = goodput(served, target_ns, counts_ns) / per_ns;
    (served.to_vec(), good)
}

#[test]
fn ten_requests_a_second_are_enough_to_learn_from() {
    let phases = (200 * SECOND, 2.0, 30 * SECOND, 100 * SECOND);
    let (served, good) = overloaded(servers(1, exponential(1e8)), SECOND, phases);
    assert!(percentile(&served, 0.9) < SECOND);
    assert!(good > 0.85, "{good}");
}

#[test]
fn batches_are_within_the_target_too() {
    let stage = Simulation {
        batch_max: 64,
        ..servers(2, exponential(10_000.0))
    };
    let (served, good) = overloaded(stage, MS, (SECOND / 10, 4.0, SECOND / 50, SECOND / 10));
    assert!(percentile(&served, 0.9) < MS);
    assert!(good > 0.95, "{good}");
}

#[test]
fn servlets_that_wait_are_all_kept_at_work() {
    let waits = Service {
        wait: Distribution::Exponential(20e6),
        wait_share: 1.0,
        ..Service::computing(Distribution::Constant(0.0))
    };
    let phases = (2 * SECOND, 2.0, SECOND, 2 * SECOND);
    let (served, good) = overloaded(servers(50, waits), 100 * MS, phases);
    assert!(percentile(&served, 0.9) < 100 * MS);
    assert!(good > 0.95, "{good}");
}

#[test]
fn the_cost_of_events_is_counted_in_credits() {
    let run = |credits| {
        let mut stage = two_servers();
        stage.arrivals.credits = credits;
        overloaded(stage, 10 * MS, (SECOND / 4, 4.0, SECOND / 20, SECOND / 4))
    };
    let (served, good) = run(7);
    assert!(percentile(&served, 0.9) < 10 * MS);
    assert!(good > 0.95, "{good}");
    // Events wait as long as if they cost one credit.
    let [median, expected] = [served, run(1).0].map(|served| percentile(&served, 0.5) as f64);
    assert!((median / expected - 1.0).abs() < 0.2, "{median} {expected}");
}

/// Runs a stage with four equal classes, and counts the events after the first 50 ms.
fn four_classes(load: f64, for_ns: u64) -> Run {
    let mut stage = two_servers();
    stage.arrivals.classes = vec![1.0; 4];
    let mut run = Run::new(&at_loads(&[(load, SECOND / 20 + for_ns)], stage), MS, 9);
    run.served.retain(|it| it.ended_ns >= SECOND / 20);
    run.rejected.retain(|it| it.ended_ns >= SECOND / 20);
    run
}

#[test]
fn higher_classes_are_let_in_first() {
    // Each class brings four tenths of the capacity, so there is room for two and a half classes.
    let mut good = [0.0; 4];
    let run = four_classes(1.6, SECOND / 2);
    for outcome in run.served {
        if outcome.response_ns() <= MS {
            let per_ns = 1.0 / (SECOND / 2) as f64;
            good[usize::from(outcome.class.0)] += per_ns / capacity(&two_servers());
        }
    }
    assert!(good[0] > 0.37 && good[1] > 0.34, "{good:?}");
    assert!(good[2] > 0.1 && good[3] < 0.05, "{good:?}");
    // Most of the others are rejected on arrival, and not when their turn has passed.
    let is_shed = |it: &&Outcome| it.end == EventEnd::Shed;
    let shed = run.rejected.iter().filter(is_shed).count();
    let all = run.rejected.len();
    assert!(shed * 8 < all, "{shed} of {all}");
}

#[test]
fn the_highest_class_is_within_the_target_when_it_alone_is_an_overload() {
    let served = four_classes(10.0, SECOND / 4).served;
    let others = served.iter().filter(|it| it.class.0 > 0).count();
    assert!(others * 20 < served.len(), "{others} of {}", served.len());
    assert!(percentile(&served, 0.9) < MS);
    assert!(goodput(&served, MS, SECOND / 4) > 0.95 * capacity(&two_servers()));
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
            ready: queue,
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
            ready: 3,
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
            ready: i,
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
    const TARGET_NS: u64 = 5 * MS;
    let run = |clump: u32| {
        // A clump of `clump` events every 2.5 ms, a time in which 50 can be handled; before that,
        // 80 % of the capacity.
        let bursts = (200..1000).map(|i| (i * 5 * MS / 2, clump)).collect();
        let simulation = Simulation {
            until_ns: 5 * SECOND / 2,
            services: vec![(0, exponential(100_000.0))],
            arrivals: Arrivals {
                bursts,
                ..Arrivals::steps(&[(0, 16_000.0), (SECOND / 2, 0.0)])
            },
            ..Simulation::default()
        };
        let run = Run::new(&simulation, TARGET_NS, 1);
        let counts = run.served.iter().filter(|it| it.arrived_ns >= SECOND / 2);
        let good = counts.filter(|it| it.response_ns() <= TARGET_NS).count();
        (good as f64 / 40_000.0, run.rejected.len())
    };
    let (good, rejected) = run(100);
    assert!(good >= 0.8 && rejected >= 35_000, "{good} {rejected}");
    assert_eq!(run(40).1, 0);
}
