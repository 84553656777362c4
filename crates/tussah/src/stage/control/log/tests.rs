//! Tests of the decision log: the decisions that it keeps, and their text.

use super::super::Servlets;
use super::super::testing::quiet;
use super::*;

#[test]
fn unchanged_values_are_not_logged() {
    let settings = |servlets, batch, threshold| Settings {
        servlets,
        batch,
        threshold,
        order: Some(Order::Fifo),
        ..Settings::default()
    };
    let mut log = Log::default();
    let before = settings(Some(1), Some(10), Some(100));
    log.note(
        1,
        "a",
        &before,
        &settings(Some(1), None, Some(50)),
        &quiet(),
    );
    log.note(2, "b", &before, &Settings::default(), &quiet());
    let changes: Vec<_> = log.iter().map(|d| (d.controller, d.change)).collect();
    assert_eq!(changes, [("a", Change::Threshold(100, 50))]);
}

#[test]
fn the_newest_are_kept() {
    let mut log = Log::default();
    for i in 0..DECISIONS_MAX as u64 + 3 {
        log.push(Decision {
            at_ns: i,
            controller: "c",
            change: Change::Threshold(i, i + 1),
            why: Why::Unsaid,
            target: None,
            limit: None,
            inputs: Inputs::default(),
        });
    }
    assert_eq!(log.iter().len(), DECISIONS_MAX);
    assert_eq!(log.iter().next().map(|d| d.at_ns), Some(3));
    assert!(log.to_string().starts_with("(3 earlier"));
    assert!(size_of::<Decision>() * DECISIONS_MAX <= 64 * 1024);
}

#[test]
fn a_setting_that_keeps_moving_is_logged_at_large_steps() {
    let check = |rules: &[Rule], expected: &[(Rule, Rule)]| {
        let mut log = Log::default();
        for (at_ns, pair) in (1..).zip(rules.windows(2)) {
            // Each class is logged separately: the second class does not change.
            let still = (Rule::Below(7), Rule::Below(7));
            log.note_rules(at_ns, "c", &[(pair[0], pair[1]), still], &quiet());
        }
        let noted: Vec<_> = log
            .iter()
            .map(|decision| match decision.change {
                Change::Rule(Class(0), from, to) => (from, to),
                other => panic!("nothing else changed: {other}"),
            })
            .collect();
        assert_eq!(noted, expected);
    };
    let rate = Rule::Rate;
    // The first value, and another kind of rule.
    check(
        &[Rule::All, rate(50), Rule::All],
        &[(Rule::All, rate(50)), (rate(50), Rule::All)],
    );
    // A tenth away from the last logged value, even in small steps.
    let climbs: Vec<_> = (100..=125).map(rate).collect();
    check(&climbs, &[(rate(100), rate(110)), (rate(110), rate(121))]);
    // A value that stays near is not logged, but the turning point is.
    let turns = [100, 104, 97, 103, 109, 105, 95, 90].map(rate);
    check(&turns, &[(rate(109), rate(90))]);
    // For small numbers, a difference of one counts as none; so does one percent of all events.
    check(
        &[3, 4, 3, 2, 4, 5].map(Rule::Below),
        &[(Rule::Below(2), Rule::Below(5))],
    );
    check(&[0, 9, 0, 9].map(Rule::AllBut), &[]);
    check(
        &[0, 20].map(Rule::AllBut),
        &[(Rule::AllBut(0), Rule::AllBut(20))],
    );
}

#[test]
fn a_target_is_noted_once_when_it_is_a_tenth_away() {
    let mut log = Log::default();
    for pair in [100, 100, 105, 109, 110, 112, 118, 150, 140, 100].windows(2) {
        let [before, after] = [pair[0], pair[1]].map(Duration::from_millis);
        log.note_target(1, "c", before, after, &quiet());
    }
    let noted: Vec<_> = log.iter().map(|it| it.change.to_string()).collect();
    let expected = [
        "100.0ms -> 110.0ms",
        "110.0ms -> 150.0ms",
        "150.0ms -> 100.0ms",
    ];
    assert_eq!(noted, expected.map(|change| format!("target {change}")));
}

#[test]
fn a_decision_says_why() {
    let sample = Sample {
        queue_len: 7,
        arrived: 9,
        refused: 2,
        batches: 2,
        finished: 4,
        service_ns: 3_000_000,
        process_servlets: 5,
        process_servlets_mean: 2.5,
        waiting: 3,
        servlets: Servlets {
            busy: 8,
            target: 8,
            ..quiet().servlets
        },
        ..quiet()
    };
    let decision = Decision {
        at_ns: 1_500_000_000,
        controller: "codel",
        change: Change::Order(Order::Fifo, Order::Lifo),
        why: Why::Unsaid,
        target: Some(Duration::from_millis(100)),
        limit: None,
        inputs: Inputs::of(&sample),
    };
    assert_eq!(
        decision.to_string(),
        "1.500000 s: codel: order Fifo -> Lifo: 8 of 8 servlets at work, 7 queued, 750.0µs each; target 100.0ms; 3 handlers wait, 5 servlets in all stages, 2.5 on average; in 1 ms, 0 of them busy: 9 arrived, 2 refused, 0 shed, 4 finished, 0 failed, batch 1.5 ms, p90 0 ms"
    );
    let decision = Decision {
        change: Change::Servlets(4096, 18),
        why: Why::MoreDoNoMore,
        ..decision
    };
    let said =
        "servlets 4096 -> 18, more events in service do not increase the throughput: 8 of 8 ";
    assert!(decision.to_string().contains(said), "{decision}");
    let decision = Decision {
        limit: Some(LimitUse {
            name: "db".into(),
            permits: 8,
            in_use: 7,
            waiting: 41,
        }),
        ..decision
    };
    let said = "throughput: 7 of 8 in `db`, 41 waiting; 8 of 8 servlets at work, 7 queued";
    assert!(decision.to_string().contains(said), "{decision}");
}
