//! Tests of the default controllers: how they choose the number of servlets and the batch size.

use super::super::testing::{MS, quiet};
use super::super::{Controller as _, Servlets};
use super::*;

fn look(target: usize, service_ms: u64, compute_ms: u64) -> Sample<'static> {
    Sample {
        interval_ns: 10 * MS,
        arrived: 10,
        finished: 10,
        service_ns: service_ms * MS,
        compute_ns: compute_ms * MS,
        servlets: Servlets {
            target,
            ..quiet().servlets
        },
        ..quiet()
    }
}

/// Runs a stage whose servlets are all busy, with queued events, and returns the number of
/// servlets.
fn at_work(auto: &mut AutoServlets, sample: &Sample<'_>) -> Option<usize> {
    (0..20).find_map(|_| auto.sample(&full(*sample), 0).servlets)
}

fn full(sample: Sample<'_>) -> Sample<'_> {
    let servlets = Servlets {
        busy: sample.servlets.target,
        ..sample.servlets
    };
    Sample {
        queue_len: 1,
        ready: 1,
        servlets,
        ..sample
    }
}

#[test]
fn servlets_that_wait_for_each_other_keep_their_number() {
    let mut auto = AutoServlets::default();
    assert_eq!(at_work(&mut auto, &look(2, 20, 10)), Some(8));
    // The workers have no other work.
    assert_eq!(at_work(&mut auto, &look(8, 80, 10)), Some(2));
    assert!(!auto.waits());
    let mut events = 0;
    while auto.sample(&full(look(2, 20, 10)), 0).servlets.is_none() {
        events += 10;
    }
    assert!((3_900..4_200).contains(&events), "{events}");
    // Now they have other work.
    assert_eq!(at_work(&mut auto, &look(8, 80, 20)), None);
    assert!(!auto.trial.is_on());
}

#[test]
fn a_stage_that_computes_has_a_servlet_a_worker() {
    let check = |target, expected| {
        let mut auto = AutoServlets::default();
        assert_eq!(auto.sample(&look(target, 40, 40), 0).servlets, expected);
        assert!(!auto.waits());
    };
    check(1, Some(2));
    check(2, None);
    check(50, Some(2));
}

#[test]
fn a_stage_that_waits_half_of_the_time_has_servlets_for_that_and_some_to_spare() {
    let first = |sample: Sample<'_>| at_work(&mut AutoServlets::default(), &sample);
    assert_eq!(first(look(2, 20, 10)), Some(8));
    assert_eq!(first(look(7, 20, 10)), None);
    assert_eq!(first(look(2, 29, 20)), None);
    // A wait for a worker does not count.
    let sharing = Sample {
        ready_ns: 180 * MS,
        ..look(16, 200, 10)
    };
    assert_eq!(first(sharing), Some(8));
}

#[test]
fn no_more_servlets_wait_than_keep_the_workers_at_work_twice_over() {
    let mut auto = AutoServlets::default();
    // A thousand events arrive per millisecond, and few are admitted.
    let rejecting = Sample {
        arrived: 10_000,
        ..look(2, 50, 10)
    };
    assert_eq!(auto.sample(&rejecting, 0).servlets, Some(20));
    assert!(auto.waits());
    let stuck = Sample {
        finished: 0,
        waiting: 20,
        queue_len: 1,
        ready: 1,
        ..look(20, 0, 0)
    };
    assert_eq!(auto.sample(&stuck, 0).servlets, None);
}

#[test]
fn a_stage_that_waits_has_twice_as_many_as_are_busy() {
    let mut auto = AutoServlets::default();
    let above_the_mean = Sample {
        process_servlets: 100,
        process_servlets_mean: 2.0,
        ..look(2, 400, 1)
    };
    assert_eq!(auto.sample(&above_the_mean, 0).servlets, Some(80));
    assert!(auto.waits());
    assert_eq!(auto.sample(&look(80, 400, 1), 0).servlets, None);
}

#[test]
fn servlets_are_doubled_while_all_wait_and_events_are_queued() {
    let next = |waiting, queue_len| {
        let mut auto = AutoServlets::default();
        auto.sample(&look(2, 40, 1), 0);
        assert!(auto.waits());
        let stuck = Sample {
            finished: 0,
            waiting,
            queue_len,
            ..full(look(16, 0, 0))
        };
        auto.sample(&stuck, 0).servlets
    };
    assert_eq!(next(16, 1), Some(32));
    assert_eq!(next(15, 1), None);
    assert_eq!(next(16, 0), None);
}

#[test]
fn a_few_servlets_have_more_to_spare() {
    for (by_load, expected) in [(1, 3), (2, 4), (4, 6), (6, 7), (8, 8), (100, 100)] {
        assert_eq!(with_spare(by_load), expected);
    }
}

#[test]
fn servlets_that_are_not_needed_are_removed() {
    let mut auto = AutoServlets::default();
    let mut check = |ms: u64, busy, target, expected| {
        let look = look(target, 30, 1);
        let sample = Sample {
            arrived: ms,
            interval_ns: ms * MS,
            servlets: Servlets {
                busy,
                ..look.servlets
            },
            ..look
        };
        assert_eq!(auto.sample(&sample, ms * MS).servlets, expected, "{ms} ms");
    };
    check(10, 0, 100, Some(7));
    // Nine are needed at this time, and for a while after it.
    check(500, 9, 12, Some(9));
    check(1499, 0, 9, None);
    check(2499, 0, 9, Some(7));
}

/// In section 5.2.2 of the SEDA paper, a router needs 3 threads: 150 queries a second take 20 ms
/// each. Here they arrive independently of each other, so that sometimes more are in service.
#[test]
fn a_waiting_stage_settles_near_the_number_that_the_load_needs() {
    use crate::stage::sim::{Arrivals, Distribution, Service, Simulation};
    let service = Service {
        wait: Distribution::Constant(20.0 * MS as f64),
        wait_share: 1.0,
        ..Service::computing(Distribution::Constant(20_000.0))
    };
    let simulation = Simulation {
        until_ns: 60_000 * MS,
        workers: 1,
        batch_max: 1,
        arrivals: Arrivals::steps(&[(0, 150.0)]),
        services: vec![(0, service)],
        ..Simulation::default()
    };
    let (mut all, mut late) = (0, 0);
    let ticks = simulation.run(auto(None), 1, |outcome| {
        all += 1;
        late += u32::from(outcome.response_ns() > 21 * MS);
    });
    let settled: Vec<_> = ticks[500..].iter().map(|tick| tick.servlets).collect();
    let mean = settled.iter().sum::<usize>() as f64 / settled.len() as f64;
    assert!((7.0..9.0).contains(&mean), "{mean} servlets on average");
    assert!(settled.iter().all(|servlets| *servlets <= 20));
    assert!(100 * late < all, "{late} of {all} events are late");
}

#[test]
fn a_stage_without_samples_is_not_limited() {
    let mut auto = AutoServlets::default();
    let fresh = |finished| Sample {
        finished,
        ..look(2, 0, 0)
    };
    let max = quiet().servlets.max;
    assert_eq!(auto.sample(&fresh(0), 0).servlets, Some(max));
    assert_eq!(auto.sample(&fresh(FINISHED_MIN - 1), 0).servlets, Some(max));
    // The stage is known to compute, and its servlets have nothing to do.
    let computed = Sample {
        finished: 1,
        ..look(max, 10, 10)
    };
    assert_eq!(auto.sample(&computed, 0).servlets, Some(2));
}

#[test]
fn waiting_for_room_in_the_next_stage_does_not_count_as_waiting() {
    let mut auto = AutoServlets::default();
    let held_up = Sample {
        held_up_ns: 395 * MS,
        ..look(2, 400, 4)
    };
    assert_eq!(auto.sample(&held_up, 0).servlets, None);
    assert!(!auto.waits());
}

#[test]
fn a_blocking_stage_waits_though_its_threads_are_taken() {
    let mut auto = AutoServlets::default();
    let sample = Sample {
        blocking: true,
        ..look(1, 30, 30)
    };
    assert_eq!(auto.sample(&sample, 0).servlets, Some(3));
}

#[test]
fn a_blocking_stage_doubles_its_threads_while_all_are_busy() {
    let mut auto = AutoServlets::default();
    let rare = Sample {
        blocking: true,
        interval_ns: 60_000 * MS,
        ..look(1, 10_000, 10_000)
    };
    assert_eq!(auto.sample(&rare, 0).servlets, None);
    for target in [1, 2] {
        let burst = Sample {
            blocking: true,
            arrived: 4,
            ..look(target, 0, 0)
        };
        assert_eq!(auto.sample(&full(burst), 0).servlets, Some(2 * target));
    }
}

/// A stage has up to 20 OS threads, each of which waits 50 ms for an event. The load is a quarter
/// of the capacity, except in an overload of two seconds.
#[test]
fn a_blocking_stage_refuses_nothing_after_an_overload() {
    use crate::stage::sim::{Arrivals, Distribution, EventEnd, Service, Simulation};
    let service = Service {
        wait: Distribution::Constant(50.0 * MS as f64),
        wait_share: 1.0,
        ..Service::computing(Distribution::Constant(20_000.0))
    };
    for seed in 0..8 {
        let simulation = Simulation {
            until_ns: 12_000 * MS,
            blocking: true,
            servlets_max: 20,
            batch_max: 1,
            arrivals: Arrivals::steps(&[(0, 100.0), (3000 * MS, 1000.0), (5000 * MS, 100.0)]),
            services: vec![(0, service)],
            ..Simulation::default()
        };
        let target = Some(Duration::from_millis(200));
        let (mut before, mut answered, mut after) = (0, 0, 0);
        simulation.run(auto(target), seed, |outcome| {
            let refused = u32::from(outcome.end == EventEnd::Rejected);
            match outcome.arrived_ns / (1000 * MS) {
                0..3 => before += refused,
                3..5 => answered += 1 - refused,
                5 => {}
                6.. => after += refused,
            }
        });
        assert_eq!((before, after), (0, 0), "seed {seed}");
        assert!(answered > 780, "{answered} of 800 with seed {seed}");
    }
}

#[test]
fn no_servlets_are_added_when_the_workers_are_full() {
    let mut auto = AutoServlets::default();
    auto.sample(&look(2, 100, 1), 0);
    assert!(auto.waits());
    // The servlets wait for workers now: 19 of 20 ms of workers were used in 10 ms.
    assert_eq!(auto.sample(&look(10, 400, 19), 0).servlets, None);
    assert_eq!(auto.sample(&look(10, 400, 10), 0).servlets, Some(60));
}

#[test]
fn a_stage_whose_work_changes_is_learned_anew() {
    let mut auto = AutoServlets::default();
    auto.sample(&look(2, 100, 1), 0);
    assert!(auto.waits());
    for _ in 0..100 {
        auto.sample(&look(10, 10, 9), 0);
    }
    assert!(!auto.waits());
    assert_eq!(auto.sample(&look(10, 10, 9), 0).servlets, Some(2));
}

#[test]
fn no_setting_has_two_owners() {
    let mut all = Owns::NOTHING;
    for controller in auto(Some(Duration::from_millis(1))) {
        assert_eq!(all.both(controller.owns()), Owns::NOTHING);
        all = all | controller.owns();
    }
    assert_eq!(all, Owns::SERVLETS | Owns::BATCH | Owns::ADMISSION);
}

#[test]
fn batches_that_cost_something_are_not_made_small_in_overload() {
    use crate::stage::sim::{Arrivals, Distribution, EventEnd, Service, Simulation};
    let target = Duration::from_millis(1);
    // In batches of 12, the single CPU completes 70,000 events per second; in batches of 1,
    // 16,000.
    let service = Service {
        batch_ns: 50_000,
        ..Service::computing(Distribution::Exponential(10_000.0))
    };
    let simulation = Simulation {
        until_ns: 1_000_000_000,
        workers: 1,
        servlets: 1,
        services: vec![(0, service)],
        arrivals: Arrivals::steps(&[(0, 30_000.0), (200_000_000, 120_000.0)]),
        ..Simulation::default()
    };
    let mut good = 0;
    simulation.run(auto(Some(target)), 1, |outcome| {
        let in_time = u128::from(outcome.response_ns()) <= target.as_nanos();
        let counts = outcome.arrived_ns >= 200_000_000 && outcome.end == EventEnd::Served;
        good += u32::from(counts && in_time);
    });
    assert!(good >= 48_000, "{good} in 0.8 s");
}

/// Runs a stage at three times the capacity of its eight permits, and returns the number of answers
/// in time among the first second's, of which there could be 800.
fn in_time(memory: &Memory, for_s: u64) -> usize {
    use crate::stage::sim::{Arrivals, Distribution, EventEnd, Service, Simulation};
    let service = Service {
        hold: Distribution::Exponential(10.0 * MS as f64),
        ..Service::computing(Distribution::Constant(0.0))
    };
    let simulation = Simulation {
        until_ns: for_s * 1000 * MS,
        servlets_max: 4096,
        batch_max: 1,
        queue_max: 20_000,
        arrivals: Arrivals::steps(&[(0, 2400.0)]),
        services: vec![(0, service)],
        permits: vec![(0, 8)],
        ..Simulation::default()
    };
    let auto = AutoTarget::new(Duration::from_millis(100)).remember(memory);
    let mut in_time = 0;
    simulation.run(vec![Box::new(auto)], 7, |outcome| {
        let counts = outcome.end == EventEnd::Served && outcome.ended_ns < 1000 * MS;
        in_time += usize::from(counts && outcome.response_ns() <= 100 * MS);
    });
    in_time
}

#[test]
fn a_successor_begins_with_what_was_learned() {
    let memory = Memory::default();
    let fresh = in_time(&memory, 10);
    let next = in_time(&memory, 10);
    assert!(next > 700 && fresh < next, "{fresh} {next}");
}

#[test]
fn what_was_learned_ages() {
    let memory = Memory::default();
    let mut auto = AutoTarget::new(Duration::from_millis(100)).remember(&memory);
    for at_ns in 1..=20 {
        auto.sample(&look(2, 400, 1), at_ns);
    }
    let after = |half_lives: u32| {
        let mut auto = AutoTarget::new(Duration::from_millis(100)).remember(&memory);
        let nothing = Sample {
            finished: 0,
            ..look(2, 0, 0)
        };
        let now = Memory::HALF_LIFE * half_lives;
        auto.sample(&nothing, 20 + now.as_nanos() as u64);
        auto.servlets.times.finished
    };
    assert_eq!([0, 1, 2, 8].map(after), [200, 100, 50, 0]);
}

#[test]
fn only_the_latest_controller_stores_what_it_learns() {
    let memory = Memory::default();
    let controller = || AutoTarget::new(Duration::from_millis(100)).remember(&memory);
    let (mut before, mut after) = (controller(), controller());
    before.sample(&look(2, 40, 1), 1);
    after.sample(&look(2, 400, 1), 1);
    before.sample(&look(2, 40, 1), 1);
    let (_, learned) = memory.take_over(1);
    let (learned, _) = learned.expect("it was stored");
    assert_eq!(learned.times.finished, 20);
    assert_eq!(learned.times.service_ns, 440 * MS);
}
