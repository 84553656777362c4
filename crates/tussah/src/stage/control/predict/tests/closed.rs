//! Closed loops: a few clients that return are as much of an overload as many clients that each
//! come once.

use super::super::super::testing::{Back, Clients};
use super::*;

const TOLD: Back = Back::WhenTold;
const SOON: Back = Back::After(20 * MS);

/// Stages that handle 50 or 100 events per second: by computing, or with servlets half of which
/// wait at a time.
fn stages() -> [Model; 4] {
    let stage = |servers, service, ms: u64| Model {
        servers,
        service,
        service_mean_ns: (ms * MS) as f64,
        ..Model::two_servers()
    };
    [
        stage(1, Service::Exponential, 20),
        stage(2, Service::Exponential, 20),
        stage(2, Service::Constant, 20),
        stage(4, Service::Constant, 40),
    ]
}

/// Returns the longest 90th percentile of 200 consecutive responses divided by the target, and the
/// goodput divided by the capacity. They are measured for 20 s or ten targets, after 500 services
/// or ten targets, whichever is longer.
fn settled(model: Model, clients: Clients, target_ns: u64) -> (f64, f64) {
    let mut sim = sim(model, target_ns, 1);
    let services_ns = (500.0 / model.capacity()) as u64;
    sim.run_closed(clients, services_ns.max(10 * target_ns));
    sim.done.clear();
    let for_ns = (10 * target_ns).max(20 * SECOND);
    sim.go_on(for_ns);
    let p90 = sim.done.chunks(200).map(|part| percentile(part, 0.9)).max();
    let good = goodput(&sim.done, target_ns, for_ns) / model.capacity();
    (p90.unwrap_or(0) as f64 / target_ns as f64, good)
}

fn check(clients: u64, think_ms: u64, target_ms: u64, back: Back, expected: (f64, f64)) {
    for (stage, model) in stages().into_iter().enumerate() {
        let clients_here = Clients::new(clients, (think_ms * MS) as f64, back);
        let (p90, good) = settled(model, clients_here, target_ms * MS);
        assert!(
            p90 <= expected.0 && good >= expected.1,
            "{clients} clients that think for {think_ms} ms, {target_ms} ms, {back:?}, stage {stage}: {p90} of the target, {good} of the capacity"
        );
    }
}

#[test]
fn clients_that_retry_on_time_meet_the_target_and_servers_stay_busy() {
    for clients in [64, 256] {
        for target_ms in [500, 1000, 5000] {
            check(clients, 0, target_ms, TOLD, (1.0, 0.95));
        }
    }
    check(256, 100, 500, TOLD, (1.0, 0.95));
}

#[test]
fn a_rejected_first_wave_does_not_return_as_a_second_one() {
    for target_ms in [1000, 5000] {
        check(1024, 0, target_ms, TOLD, (1.0, 0.95));
    }
    check(1024, 100, 1000, TOLD, (1.0, 0.95));
}

#[test]
fn clients_that_retry_early_meet_the_target_and_servers_stay_busy() {
    for (clients, target_ms) in [(64, 500), (64, 1000), (256, 500), (256, 1000), (1024, 500)] {
        check(clients, 0, target_ms, SOON, (1.0, 0.9));
    }
}

/// Four events may wait even with a short target, so a server is occasionally idle.
#[test]
fn a_target_of_five_services_is_held_with_servers_idle_for_a_tenth_of_the_time() {
    for clients in [64, 256, 1024] {
        check(clients, 0, 100, TOLD, (1.0, 0.9));
    }
    check(64, 0, 100, SOON, (1.0, 0.9));
    check(64, 100, 100, TOLD, (2.0, 0.7));
}

#[test]
fn few_clients_that_think_are_no_overload() {
    for model in stages() {
        let mut sim = sim(model, SECOND, 1);
        let think_ns = 64.0 / (0.8 * model.capacity());
        sim.run_closed(Clients::new(64, think_ns, SOON), 200 * SECOND);
        assert_eq!((sim.refused, sim.shed), (0, 0));
    }
}
