//! A scenario for each kind of system, and for each manner of clients.

mod classes;
mod path;

use std::time::Duration;

use super::*;
use crate::stage::control::AutoTarget;
use crate::stage::sim::EventEnd;

const MS: f64 = 1e6;
const SECOND: u64 = 1_000_000_000;

fn exponential(ms: f64) -> Distribution {
    Distribution::Exponential(ms * MS)
}

/// No controllers: the stages admit what their queues hold.
fn nobody(_: usize) -> Vec<Box<dyn Controller>> {
    Vec::new()
}

/// A target of 100 ms for the first stage, at which requests arrive.
fn at_the_entry(stage: usize) -> Vec<Box<dyn Controller>> {
    let auto = AutoTarget::new(Duration::from_millis(100));
    match stage {
        0 => vec![Box::new(auto)],
        _ => Vec::new(),
    }
}

/// Clients that arrive at this rate and wait forever.
fn open(per_second: f64) -> Clients {
    Clients {
        arrivals: Arrivals::steps(&[(0, per_second)]),
        ..Clients::default()
    }
}

/// Returns the outcomes and the counters of the stages.
fn run(
    system: &System,
    controllers: impl FnMut(usize) -> Vec<Box<dyn Controller>>,
) -> (Vec<Outcome>, Vec<StageTotals>) {
    let mut outcomes = Vec::new();
    let totals = system.run(controllers, 1, |outcome| outcomes.push(*outcome));
    (outcomes, totals)
}

/// Returns the number of requests whose clients were answered within 100 ms of their last attempt,
/// from this time on.
fn good(outcomes: &[Outcome], from_ns: u64) -> usize {
    let is_good = |one: &&Outcome| {
        let in_time = one.ended_ns - one.last_ns <= SECOND / 10;
        one.end == EventEnd::Served && in_time && one.ended_ns >= from_ns
    };
    outcomes.iter().filter(is_good).count()
}

#[test]
fn a_chain_passes_requests_on_and_its_last_stage_answers() {
    let system = System {
        until_ns: 10 * SECOND,
        stages: vec![
            SimStage::new(vec![Step::Compute(exponential(0.1)), Step::Forward(1)]),
            SimStage::new(vec![Step::Wait(exponential(5.0)), Step::Forward(2)]),
            SimStage {
                servlets: 4,
                servlets_max: 4,
                ..SimStage::new(vec![Step::Wait(exponential(10.0))])
            },
        ],
        clients: vec![open(300.0)],
        ..System::default()
    };
    let (outcomes, totals) = run(&system, nobody);
    assert!(outcomes.iter().all(|one| one.end == EventEnd::Served));
    let mean_ns = outcomes.iter().map(|one| one.ended_ns - one.arrived_ns);
    let mean_ns = mean_ns.sum::<u64>() as f64 / outcomes.len() as f64;
    // Four servlets at a load of 3/4 wait 5.1 ms on average (Erlang C).
    assert!((19.0 * MS..22.0 * MS).contains(&mean_ns), "{mean_ns}");
    let handled: Vec<_> = totals.iter().map(|stage| stage.handled).collect();
    assert!(handled[0] >= handled[1] && handled[1] >= handled[2]);
    assert_eq!(handled[2], outcomes.len() as u64);
    assert_eq!(run(&system, nobody).1, totals, "the same seed");
}

#[test]
fn a_call_of_several_stages_takes_as_long_as_the_slowest() {
    let waits = |ms: f64| SimStage::new(vec![Step::Wait(Distribution::Constant(ms * MS))]);
    let calls = |stages| {
        let system = System {
            stages: vec![
                SimStage::new(vec![Step::Call(stages, Backoff::never())]),
                waits(10.0),
                waits(30.0),
            ],
            clients: vec![open(100.0)],
            ..System::default()
        };
        let (outcomes, totals) = run(&system, nobody);
        let longest_ns = outcomes
            .iter()
            .map(|one| one.ended_ns - one.arrived_ns)
            .max();
        (longest_ns, totals[1].handled, totals[2].handled)
    };
    let (both_ns, first, second) = calls(vec![1, 2]);
    assert_eq!(both_ns, Some(30_000_000));
    assert!(first >= second && second > 50);
    assert_eq!(calls(vec![1]).0, Some(10_000_000));
    assert_eq!(calls(vec![]).0, Some(0));
}

#[test]
fn retries_of_a_call_multiply_the_load() {
    let calls = |retries| {
        let backoff = Backoff {
            retries,
            first_ns: 1_000_000,
            factor: 2.0,
            jitter: 0.5,
        };
        let system = System {
            until_ns: 10 * SECOND,
            stages: vec![
                SimStage::new(vec![Step::Call(vec![1], backoff)]),
                SimStage::new(vec![Step::Compute(exponential(1.0)), Step::Fail(0.5)]),
            ],
            clients: vec![open(200.0)],
            ..System::default()
        };
        let (outcomes, totals) = run(&system, nobody);
        let failed = outcomes.iter().filter(|one| one.end == EventEnd::Failed);
        let failed = failed.count() as f64 / outcomes.len() as f64;
        (failed, totals[1].arrived as f64 / totals[0].arrived as f64)
    };
    let check = |retries, failed: f64, load: f64| {
        let found = calls(retries);
        assert!((found.0 - failed).abs() < 0.03, "{found:?}");
        assert!((found.1 - load).abs() < 0.1, "{found:?}");
    };
    check(0, 0.5, 1.0);
    check(1, 0.25, 1.5);
    check(5, 1.0 / 64.0, 1.97);
}

#[test]
fn stages_that_share_a_resource_share_its_capacity() {
    let system = System {
        until_ns: 10 * SECOND,
        resources: vec![vec![(0, 8)]],
        stages: vec![
            SimStage::new(vec![Step::Hold(0, exponential(10.0))]),
            SimStage::new(vec![Step::Hold(0, exponential(10.0))]),
        ],
        clients: vec![
            open(1600.0),
            Clients {
                stage: 1,
                ..open(100.0)
            },
        ],
        ..System::default()
    };
    // The eight permits allow 800 requests a second.
    let (outcomes, totals) = run(&system, nobody);
    let all = totals[0].handled + totals[1].handled;
    assert!((7_700..8_300).contains(&all), "{totals:?}");
    assert!(good(&outcomes, 2 * SECOND) < 500, "the queue holds seconds");
    let both = |_| -> Vec<Box<dyn Controller>> {
        vec![Box::new(AutoTarget::new(Duration::from_millis(100)))]
    };
    let (outcomes, _) = run(&system, both);
    assert!(
        good(&outcomes, 2 * SECOND) > 5_600,
        "{}",
        good(&outcomes, 2 * SECOND)
    );
}

/// A stage with eight permits, at 70 % of its capacity, with a burst from 2 s to 3 s. Its clients
/// give up after 200 ms, and then do as `clients` says. Returns the answers in time per second in
/// the last 5 s, and the work for nobody.
fn after_a_burst(
    clients: Clients,
    controllers: impl FnMut(usize) -> Vec<Box<dyn Controller>>,
) -> (usize, u64) {
    let system = System {
        until_ns: 15 * SECOND,
        resources: vec![vec![(0, 8)]],
        stages: vec![SimStage::new(vec![Step::Hold(0, exponential(10.0))])],
        clients: vec![Clients {
            arrivals: Arrivals {
                retry_ns: 0,
                ..Arrivals::steps(&[(0, 560.0), (2 * SECOND, 1600.0), (3 * SECOND, 560.0)])
            },
            timeout_ns: SECOND / 5,
            ..clients
        }],
        ..System::default()
    };
    let (outcomes, totals) = run(&system, controllers);
    (good(&outcomes, 10 * SECOND) / 5, totals[0].wasted)
}

#[test]
fn retries_at_once_keep_an_overload_alive_without_admission() {
    let retries = Backoff {
        retries: 20,
        ..Backoff::never()
    };
    let clients = || Clients {
        backoff: retries,
        ..Clients::default()
    };
    let (collapsed, wasted) = after_a_burst(clients(), nobody);
    assert!(collapsed < 60 && wasted > 4_000, "{collapsed} {wasted}");
    let (good, wasted) = after_a_burst(clients(), at_the_entry);
    assert!(good > 480 && wasted < 800, "{good} {wasted}");
}

#[test]
fn clients_that_leave_end_an_overload() {
    let (good, _) = after_a_burst(Clients::default(), nobody);
    assert!(good > 480, "{good}");
}

#[test]
fn clients_that_back_off_or_obey_retry_after_make_fewer_attempts() {
    let attempts = |backoff, retry_ns| {
        let system = System {
            until_ns: 10 * SECOND,
            resources: vec![vec![(0, 8)]],
            stages: vec![SimStage::new(vec![Step::Hold(0, exponential(10.0))])],
            clients: vec![Clients {
                arrivals: Arrivals {
                    retry_ns,
                    ..Arrivals::steps(&[(0, 1600.0)])
                },
                backoff,
                ..Clients::default()
            }],
            ..System::default()
        };
        let (_, totals) = run(&system, at_the_entry);
        totals[0].arrived
    };
    let at_once = Backoff {
        retries: 5,
        first_ns: 1_000_000,
        ..Backoff::never()
    };
    let backs_off = Backoff {
        first_ns: SECOND / 10,
        factor: 2.0,
        jitter: 0.5,
        ..at_once
    };
    let hasty = attempts(at_once, 0);
    assert!(attempts(backs_off, 0) < hasty);
    // Rejected clients wait for the time that they were told.
    assert!(attempts(at_once, 5 * SECOND) * 2 < hasty, "{hasty}");
}

#[test]
fn clients_in_a_closed_loop_wait_for_their_answers() {
    let system = System {
        until_ns: 10 * SECOND,
        stages: vec![SimStage::new(vec![Step::Wait(Distribution::Constant(
            10.0 * MS,
        ))])],
        clients: vec![Clients {
            arrivals: Arrivals {
                clients: 5,
                pause: Distribution::Constant(40.0 * MS),
                ..Arrivals::default()
            },
            ..Clients::default()
        }],
        ..System::default()
    };
    let (outcomes, _) = run(&system, nobody);
    assert!((990..=1000).contains(&outcomes.len()), "{}", outcomes.len());
}

#[test]
fn a_handler_may_skip_requests_of_clients_that_left() {
    let answered = |skips_abandoned| {
        let system = System {
            until_ns: 5 * SECOND,
            stages: vec![SimStage {
                servlets: 8,
                servlets_max: 8,
                skips_abandoned,
                ..SimStage::new(vec![Step::Wait(exponential(10.0))])
            }],
            clients: vec![Clients {
                timeout_ns: SECOND / 5,
                ..open(1600.0)
            }],
            ..System::default()
        };
        let (outcomes, _) = run(&system, nobody);
        let answered = outcomes.iter().filter(|one| one.end == EventEnd::Served);
        answered.count()
    };
    let (skips, works) = (answered(true), answered(false));
    assert!(skips * 2 > works * 3, "{skips} {works}");
}

/// Clients whose requests each wait for this time.
fn asking(per_second: f64, ms: f64) -> Clients {
    let service = Service {
        wait: Distribution::Constant(ms * MS),
        wait_share: 1.0,
        ..Service::computing(Distribution::Constant(0.0))
    };
    Clients {
        services: vec![(0, service)],
        ..open(per_second)
    }
}

#[test]
fn clients_of_several_kinds_ask_one_stage_for_different_services() {
    let times = |clients: Vec<Clients>| {
        let system = System {
            stages: vec![SimStage::new(vec![Step::Serve])],
            clients,
            ..System::default()
        };
        let mut times = [Vec::new(), Vec::new()];
        for one in run(&system, nobody).0 {
            times[one.clients].push((one.arrived_ns, one.response_ns()));
        }
        times
    };
    let [short, long] = times(vec![asking(500.0, 1.0), asking(50.0, 100.0)]);
    assert!(short.len() > 400 && short.iter().all(|one| one.1 == 1_000_000));
    assert!(long.len() > 25 && long.iter().all(|one| one.1 == 100_000_000));
    // The arrivals of a kind do not depend on the others.
    assert_eq!(times(vec![asking(500.0, 1.0)])[0], short);
}

#[test]
fn permits_and_speeds_change_during_a_run() {
    let ends = |step: Step, resources, speeds| -> Vec<u64> {
        let burst = Arrivals {
            bursts: vec![(0, 6)],
            ..Arrivals::default()
        };
        let system = System {
            resources,
            speeds,
            stages: vec![SimStage::new(vec![step])],
            clients: vec![Clients {
                arrivals: burst,
                ..Clients::default()
            }],
            ..System::default()
        };
        let (outcomes, _) = run(&system, nobody);
        outcomes
            .iter()
            .map(|one| one.ended_ns / 1_000_000)
            .collect()
    };
    let ten_ms = || Distribution::Constant(10.0 * MS);
    let permits = vec![vec![
        (0, 1),
        (20_000_000, 2),
        (30_000_000, 0),
        (90_000_000, 8),
    ]];
    assert_eq!(
        ends(Step::Hold(0, ten_ms()), permits, vec![]),
        [10, 20, 30, 30, 100, 100]
    );
    let speeds = vec![(10_000_000, 0.5)];
    assert_eq!(
        ends(Step::Compute(ten_ms()), vec![], speeds),
        [10, 10, 30, 30, 50, 50]
    );
}

#[test]
fn a_retry_is_a_request_of_its_own() {
    let system = System {
        until_ns: 10 * SECOND,
        stages: vec![SimStage::new(vec![Step::Serve])],
        clients: vec![Clients {
            services: vec![(
                0,
                Service {
                    fail_share: 0.5,
                    ..Service::computing(Distribution::Constant(0.0))
                },
            )],
            backoff: Backoff {
                retries: 1,
                ..Backoff::never()
            },
            ..open(200.0)
        }],
        ..System::default()
    };
    let (outcomes, _) = run(&system, nobody);
    let failed = outcomes.iter().filter(|one| one.end == EventEnd::Failed);
    let failed = failed.count() as f64 / outcomes.len() as f64;
    assert!((failed - 0.25).abs() < 0.03, "{failed}");
}

/// Seven clients in a closed loop, of which one is in service and two are in the queue. Each of the
/// others comes back after 1 or 2 s if the stage handles an event in 0.1 s. If that takes 10 s,
/// it comes back after 3 to 6 s.
#[test]
fn rejected_clients_wait_for_the_retry_after_of_a_web_server() {
    let rejections = |ms: f64| {
        let system = System {
            until_ns: 1000 * SECOND,
            stages: vec![SimStage {
                servlets: 1,
                servlets_max: 1,
                queue_max: 2,
                ..SimStage::new(vec![Step::Serve])
            }],
            clients: vec![Clients {
                arrivals: Arrivals {
                    clients: 7,
                    told: true,
                    ..Arrivals::default()
                },
                ..asking(0.0, ms)
            }],
            ..System::default()
        };
        run(&system, nobody).1[0].rejected
    };
    let (fast, slow) = (rejections(100.0), rejections(10_000.0));
    assert!((2_500..2_800).contains(&fast), "{fast}");
    assert!((850..920).contains(&slow), "{slow}");
}

#[test]
fn events_take_their_credits_from_the_queue() {
    let system = System {
        stages: vec![SimStage {
            servlets: 1,
            servlets_max: 1,
            queue_max: 10,
            ..SimStage::new(vec![Step::Serve])
        }],
        clients: vec![Clients {
            arrivals: Arrivals {
                bursts: vec![(0, 10)],
                credits: 5,
                ..Arrivals::default()
            },
            ..asking(0.0, 1.0)
        }],
        ..System::default()
    };
    // One is in service, and two are in the queue.
    assert_eq!(run(&system, nobody).1[0].rejected, 7);
}
