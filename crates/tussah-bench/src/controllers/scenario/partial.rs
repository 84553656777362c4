//! Stages of whose events only some need something scarce.

use tussah::stage::sim::{Arrivals, Distribution, Service, Simulation};

use super::waits::{CAPACITY, COMPUTE_NS, HOLD_NS, permits, waiting};
use super::{SECOND, Scenario};

/// Returns a step from a tenth of a load to the load, for 9 s. All events wait for 10 ms, and a
/// share of them also hold one of eight permits for 10 ms. At a load of 1, the permits suffice.
fn partial(name: &'static str, about: &'static str, share: f64, load: f64) -> Scenario {
    let base = permits();
    let service = Service {
        hold: Distribution::Bimodal(0.0, HOLD_NS, share),
        ..waiting(Distribution::Constant(HOLD_NS))
    };
    let capacity = CAPACITY / share;
    let rates = [(0, 0.1 * load * capacity), (SECOND, load * capacity)];
    Scenario {
        name,
        about,
        from_ns: SECOND,
        simulation: Simulation {
            until_ns: 10 * SECOND,
            arrivals: Arrivals::steps(&rates),
            services: vec![(0, service)],
            ..base.simulation
        },
        service_ns: HOLD_NS * (1.0 + share) + COMPUTE_NS,
        capacity,
        ideal: capacity,
        ideal_worth: capacity,
        ..base
    }
}

pub(super) fn tenth() -> Scenario {
    partial(
        "partial-2",
        "all handlers wait for 10 ms; one event in ten also needs a permit: twice the rate that these allow",
        0.1,
        2.0,
    )
}

pub(super) fn half() -> Scenario {
    partial(
        "partial-3",
        "the same, but every other event needs a permit: three times the rate that these allow",
        0.5,
        3.0,
    )
}
