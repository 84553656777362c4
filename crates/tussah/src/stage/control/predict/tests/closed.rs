//! Closed loops: a few clients that return are as much of an overload as many clients that each
//! come once.

use super::*;

/// How long rejected clients wait.
#[derive(Clone, Copy, Debug)]
enum Back {
    /// As long as a web server tells them.
    Told,
    /// 20 ms.
    Soon,
}

/// Clients that pause for this mean time between two requests.
fn clients(clients: u32, pause_mean_ns: f64, back: Back) -> Arrivals {
    Arrivals {
        clients,
        pause: Distribution::Exponential(pause_mean_ns),
        retry_ns: 20 * MS,
        told: matches!(back, Back::Told),
        ..Arrivals::default()
    }
}

/// Stages that handle 50 or 100 events per second: by computing, or with servlets half of which
/// wait at a time.
fn stages() -> [Simulation; 4] {
    let constant = Service::computing(Distribution::Constant(20e6));
    let half_waits = Service {
        wait: Distribution::Constant(20e6),
        wait_share: 1.0,
        ..constant
    };
    [
        servers(1, exponential(20e6)),
        servers(2, exponential(20e6)),
        servers(2, constant),
        servers(4, half_waits),
    ]
}

/// Returns the longest 90th percentile of 200 consecutive responses divided by the target, and the
/// goodput divided by the capacity. They are measured after 500 services or ten targets, whichever
/// is longer. Clients that retry on time allow 80 s of it, with several thousand services.
fn settled(stage: Simulation, target_ns: u64) -> (f64, f64) {
    let services_ns = (500.0 / capacity(&stage)) as u64;
    let from_ns = services_ns.max(10 * target_ns);
    let least_s = if stage.arrivals.told { 80 } else { 20 };
    let for_ns = (10 * target_ns).max(least_s * SECOND);
    let stage = Simulation {
        until_ns: from_ns + for_ns,
        ..stage
    };
    let run = Run::new(&stage, target_ns, 1);
    let served = run.served_from(from_ns);
    let p90 = served.chunks(200).map(|part| percentile(part, 0.9)).max();
    let good = goodput(served, target_ns, for_ns) / capacity(&stage);
    (p90.unwrap_or(0) as f64 / target_ns as f64, good)
}

fn check(count: u32, pause_ms: u64, target_ms: u64, back: Back, expected: (f64, f64)) {
    for (number, stage) in stages().into_iter().enumerate() {
        let stage = Simulation {
            arrivals: clients(count, (pause_ms * MS) as f64, back),
            ..stage
        };
        let (p90, good) = settled(stage, target_ms * MS);
        assert!(
            p90 <= expected.0 && good >= expected.1,
            "{count} clients that pause for {pause_ms} ms, {target_ms} ms, {back:?}, stage {number}: {p90} of the target, {good} of the capacity"
        );
    }
}

#[test]
fn clients_that_retry_on_time_meet_the_target_and_servers_stay_busy() {
    for clients in [64, 256] {
        for target_ms in [500, 1000, 5000] {
            check(clients, 0, target_ms, Back::Told, (1.0, 0.95));
        }
    }
    check(256, 100, 500, Back::Told, (1.0, 0.95));
}

#[test]
fn a_rejected_first_wave_does_not_return_as_a_second_one() {
    for target_ms in [1000, 5000] {
        check(1024, 0, target_ms, Back::Told, (1.0, 0.95));
    }
    check(1024, 100, 1000, Back::Told, (1.0, 0.95));
}

#[test]
fn clients_that_retry_early_meet_the_target_and_servers_stay_busy() {
    for (clients, target_ms) in [(64, 1000), (256, 500), (512, 500)] {
        check(clients, 0, target_ms, Back::Soon, (1.0, 0.9));
    }
}

/// Four events may wait even with a short target, so a server is occasionally idle.
#[test]
fn a_target_of_five_services_is_held_with_servers_idle_for_a_tenth_of_the_time() {
    for clients in [64, 256, 1024] {
        check(clients, 0, 100, Back::Told, (1.0, 0.9));
    }
    check(64, 0, 100, Back::Soon, (1.0, 0.9));
    check(64, 100, 100, Back::Told, (2.0, 0.7));
}

#[test]
fn few_clients_that_pause_are_no_overload() {
    for stage in stages() {
        let pause_ns = 64.0 / (0.8 * capacity(&stage));
        let stage = Simulation {
            until_ns: 200 * SECOND,
            arrivals: clients(64, pause_ns, Back::Soon),
            ..stage
        };
        assert_eq!(Run::new(&stage, SECOND, 1).rejected.len(), 0);
    }
}

/// One servlet, whose events take 10 ms, or two, whose events take 2 ms.
#[test]
fn a_few_servlets_refuse_the_clients_of_a_closed_loop_as_soon() {
    for (servlets, ms, count) in [(1, 10, 20), (1, 10, 100), (2, 2, 100)] {
        let service = Service {
            wait: Distribution::Constant(ms as f64 * MS as f64),
            wait_share: 1.0,
            ..Service::computing(Distribution::Constant(20_000.0))
        };
        let stage = Simulation {
            until_ns: 5 * SECOND,
            arrivals: clients(count, 0.0, Back::Soon),
            ..servers(servlets, service)
        };
        let run = Run::new(&stage, 50 * MS, 1);
        let first = run.rejected.iter().map(|outcome| outcome.ended_ns).min();
        let first_ns = first.expect("some are refused");
        let served = run.served.iter().filter(|one| one.ended_ns < first_ns);
        let served = served.count();
        assert!(
            served < 200,
            "{served} of {count} clients at {servlets} servlets"
        );
    }
}

#[test]
fn a_long_burst_that_drains_is_no_closed_loop() {
    // 5,000 events per second. The burst takes 0.6 s to drain. At first, waits exceed the target.
    let servers = servers(10, exponential(2e6));
    let mut rejected = Vec::new();
    for seed in 1..=10 {
        let stage = Simulation {
            until_ns: 4 * SECOND,
            arrivals: Arrivals {
                bursts: vec![(SECOND, 600)],
                ..Arrivals::steps(&[(0, 4000.0)])
            },
            ..servers.clone()
        };
        rejected.push(Run::new(&stage, 100 * MS, seed).rejected.len());
    }
    assert_eq!(rejected, [0; 10]);
}
