//! Classes in overload: by priority at a resource, and by shares at a stage.

use super::*;
use crate::stage::event::CLASSES_MAX;

/// For each class, the share of its requests from the second second on that are answered in time.
fn in_time(outcomes: &[Outcome], classes: usize) -> Vec<f64> {
    let mut counts = [(0, 0); CLASSES_MAX];
    for one in outcomes.iter().filter(|one| one.arrived_ns >= SECOND) {
        let (good, all) = &mut counts[usize::from(one.class.0)];
        let in_time = one.end == EventEnd::Served && one.response_ns() <= SECOND / 10;
        (*good, *all) = (*good + u32::from(in_time), *all + 1);
    }
    let share = |(good, all): &(u32, u32)| f64::from(*good) / f64::from(*all);
    counts[..classes].iter().map(share).collect()
}

fn three(arrivals: Vec<f64>, stages: Vec<SimStage>) -> System {
    System {
        until_ns: 6 * SECOND,
        resources: vec![vec![(0, 8)]],
        stages,
        clients: vec![Clients {
            arrivals: Arrivals {
                classes: arrivals,
                ..Arrivals::steps(&[(0, 560.0), (SECOND, 1600.0)])
            },
            ..Clients::default()
        }],
        ..System::default()
    }
}

#[test]
fn nearly_all_of_the_first_class_are_in_time_at_twice_the_capacity() {
    let holds = SimStage::new(vec![Step::Hold(0, exponential(10.0))]);
    for arrivals in [
        vec![1.0, 1.0, 1.0],
        vec![0.2, 0.8, 1.0],
        vec![1.0, 3.0, 6.0],
    ] {
        let (outcomes, _) = run(&three(arrivals.clone(), vec![holds.clone()]), at_the_entry);
        let shares = in_time(&outcomes, 3);
        assert!(
            shares[0] > 0.95 && shares[0] > shares[1] && shares[1] > shares[2],
            "{shares:?}"
        );
        // The capacity allows 4,000 in these five seconds.
        assert!(good(&outcomes, SECOND) > 3_800);
    }
}

/// Runs classes with these rates, in events/s, and these shares, at a stage whose step allows
/// 800/s. Returns the rates of the answers in time.
fn by_shares(rates: &[f64], shares: &[u32], step: Step) -> Vec<f64> {
    let stage = SimStage {
        class_shares: shares.to_vec(),
        ..SimStage::new(vec![step])
    };
    let mut system = System {
        until_ns: 11 * SECOND,
        ..three(rates.to_vec(), vec![stage])
    };
    let sum = rates.iter().sum();
    system.clients[0].arrivals.rates = vec![(0, 560.0), (SECOND, sum)];
    let (outcomes, _) = run(&system, at_the_entry);
    let in_time = in_time(&outcomes, rates.len());
    in_time
        .iter()
        .zip(rates)
        .map(|(part, rate)| part * rate)
        .collect()
}

/// Rates, shares, and the rates of the answers that are due.
type Case = ([f64; 3], [u32; 3], [f64; 3]);

const CASES: [Case; 7] = [
    ([800.0, 800.0, 800.0], [4, 2, 1], [457.0, 229.0, 114.0]),
    ([800.0, 800.0, 800.0], [1, 2, 4], [114.0, 229.0, 457.0]),
    // The first class needs less than its share.
    ([100.0, 1000.0, 1000.0], [4, 2, 1], [100.0, 467.0, 233.0]),
    ([100.0, 200.0, 3000.0], [4, 2, 1], [100.0, 200.0, 500.0]),
    ([600.0, 50.0, 3000.0], [8, 1, 1], [600.0, 50.0, 150.0]),
    ([480.0, 10.0, 7200.0], [3, 1, 1], [480.0, 10.0, 310.0]),
    ([7200.0, 10.0, 120.0], [3, 1, 1], [670.0, 10.0, 120.0]),
];

#[test]
fn classes_get_their_shares_in_overload() {
    let computes = Step::Compute(exponential(2.5));
    // Where handlers wait, the capacity is less certain. So is the room of a class beside another
    // class that floods the stage.
    let waits = Step::Hold(0, exponential(10.0));
    let tests = [
        (computes, 0.92..1.08, &CASES[..]),
        (waits, 0.85..1.15, &CASES[..4]),
    ];
    for (step, range, cases) in tests {
        for (rates, shares, expected) in cases {
            let found = by_shares(rates, shares, step.clone());
            let ratios = found.iter().zip(expected).map(|(found, due)| found / due);
            let ratios: Vec<_> = ratios.collect();
            assert!(
                ratios.iter().all(|ratio| range.contains(ratio)),
                "{rates:?} by {shares:?}, {step:?}: {ratios:?}"
            );
        }
    }
}
