//! Tests of a small bake-off, which must be repeatable and show the main results of the large one.

use super::*;

fn small(scenario: &str, controllers: &[&str], part: f64, seeds: usize) -> bakeoff::Heat {
    let scenario = scenario::all()
        .into_iter()
        .find(|one| one.name == scenario)
        .expect("it is one of the scenarios")
        .short(part);
    let names: Vec<String> = controllers.iter().map(|name| (*name).to_owned()).collect();
    let contenders = contenders(&names).expect("all of them are known");
    bakeoff::all(&[scenario], &contenders, seeds, false).remove(0)
}

#[test]
fn the_same_seeds_give_the_same_figures() {
    let run = || {
        let heat = small("priorities", &["auto", "cinnamon"], 0.1, 2);
        let figures = heat.entries.iter().map(|entry| entry.seeds.clone());
        figures.collect::<Vec<_>>()
    };
    let one = run();
    assert_eq!(one, run());
    assert_ne!(one[0][0], one[0][1]);
}

#[test]
fn without_admission_nothing_is_in_time_in_overload_and_by_default_nearly_all_is() {
    let heat = small("step-2", &["auto", "no-admission"], 0.3, 2);
    let goodput = |name| heat.entry(name).expect("it took part").median.goodput;
    assert!(goodput("auto") > 0.85, "{}", goodput("auto"));
    assert!(goodput("no-admission") < 0.3, "{}", goodput("no-admission"));
    let auto = heat.entry("auto").expect("it took part").median;
    assert!(auto.p90 < 1.0, "{auto:?}");
}

#[test]
fn runs_far_below_the_median_are_counted() {
    let heat = small("step-2", &["auto"], 0.05, 4);
    let mut entry = heat.entries[0].clone();
    entry.median.goodput = 1.0;
    let goodputs = [0.2, 0.84, 0.86, 1.1];
    for (seed, goodput) in entry.seeds.iter_mut().zip(goodputs) {
        seed.goodput = goodput;
    }
    assert_eq!((entry.tail(), entry.goodput_worst()), (0.5, 0.2));
}

#[test]
fn contenders_fit_the_scenario() {
    let names = [
        "threshold",
        "response-mean",
        "codel",
        "gradient",
        "cinnamon",
    ];
    let heat = small("step-4", &names, 0.3, 2);
    for entry in &heat.entries {
        let goodput = entry.median.goodput;
        assert!(goodput > 0.88, "{}: {goodput}", entry.contender);
    }
}

#[test]
fn batches_give_no_advantage_without_rejections() {
    let heat = small("80-percent", &["auto", "no-admission"], 1.0, 2);
    let goodput = |name| heat.entry(name).expect("it took part").median.goodput;
    assert_eq!(goodput("auto"), goodput("no-admission"));
}

#[test]
fn a_stage_that_blocks_gets_servlets() {
    let heat = small("blocking", &["auto", "1-servlet"], 0.1, 1);
    let goodput = |name| heat.entry(name).expect("it took part").median.goodput;
    assert!(goodput("auto") > 2.0 * goodput("1-servlet"));
}

#[test]
fn requirements_are_reported_with_their_figures() {
    let heat = small("step-10", &["auto", "threshold"], 0.04, 1);
    let checks = check::checks(&[heat], 1);
    // A single load has no peak to compare with.
    assert_eq!(checks.len(), 2);
    assert!(checks.iter().all(|check| !check.figure.is_empty()));
}
