//! Tests of the controller by response time: its rates, its classes, and its bounds.

use super::*;
use crate::stage::control::ClassSample;
use crate::stage::control::testing::{MS, SECOND, arrival, quiet};

/// A class with 1000 arrivals per second.
fn class(p90_ms: u64, refused: u64) -> ClassSample {
    ClassSample {
        arrived: 1000,
        refused,
        finished: 1000 - refused,
        response_p90_ns: p90_ms * MS,
        ..ClassSample::default()
    }
}

fn controller(degrade: bool) -> ResponseP90 {
    ResponseP90::new(ResponseP90Config {
        degrade,
        ..ResponseP90Config::new(Duration::from_millis(100))
    })
}

fn show(controller: &mut ResponseP90, classes: &[ClassSample]) {
    let sample = Sample {
        interval_ns: SECOND,
        classes,
        ..quiet()
    };
    controller.sample(&sample, 0);
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6 * b
}

#[test]
fn a_class_whose_events_are_all_in_service_does_not_count_as_unused() {
    let mut c = controller(false);
    show(&mut c, &[class(200, 0)]);
    let limited = c.rate(0);
    let in_service = |arrived, finished, in_service| {
        let classes = [ClassSample {
            arrived,
            refused: arrived / 2,
            finished,
            response_p90_ns: 200 * MS,
            ..ClassSample::default()
        }];
        (classes, in_service)
    };
    let mut look = |(classes, in_service): ([ClassSample; 1], u64)| {
        let sample = Sample {
            interval_ns: SECOND,
            classes: &classes,
            in_service,
            ..quiet()
        };
        c.sample(&sample, 0);
        c.rate(0)
    };
    assert_eq!(look(in_service(8, 0, 4)), limited);
    assert_eq!(look(in_service(8, 0, 8)), limited);
    // The events end, but still late.
    assert!(look(in_service(0, 8, 0)) < limited);
    let lower = look(in_service(0, 0, 0));
    assert!(look(in_service(8, 0, 0)) > lower, "nobody is here");
}

#[test]
fn classes_that_no_stage_has_are_ignored() {
    let mut c = controller(true);
    for _ in 0..20 {
        show(&mut c, &[class(200, 0); CLASSES_MAX + 1]);
    }
    assert!(c.rate(CLASSES_MAX - 1) < 1000.0);
}

#[test]
fn the_rate_is_divided_above_the_target_and_raised_below_half_of_it() {
    let mut c = controller(false);
    show(&mut c, &[class(99, 0)]);
    assert_eq!(c.rate(0), f64::INFINITY);
    c = controller(false);
    show(&mut c, &[class(101, 0)]);
    assert!(near(c.rate(0), 1000.0 / 1.2));
    show(&mut c, &[class(101, 100)]);
    assert!(near(c.rate(0), 1000.0 / 1.44));
    // Between half of the target and the target, nothing changes: 0.7 · 101 + 0.3 · 60 is 88.7.
    show(&mut c, &[class(60, 100)]);
    assert!(near(c.rate(0), 1000.0 / 1.44));
    for _ in 0..3 {
        show(&mut c, &[class(0, 100)]);
    }
    // By now it is 30.4: an error of -0.6957, and a raise of 0.5957 times 2.
    assert!(c.rate(0) > 1000.0 / 1.44 + 1.0, "{}", c.rate(0));
    assert!(c.rate(0) < 1000.0 / 1.44 + 3.0, "{}", c.rate(0));
}

#[test]
fn quality_falls_before_rejections_begin_and_recovers_last() {
    let mut c = controller(true);
    let ask = |c: &mut ResponseP90, now_ns| {
        let mut arrival = arrival(0, 0, 0);
        arrival.now_ns = now_ns;
        c.on_enqueue(&arrival)
    };
    assert_eq!(ask(&mut c, 0), Admission::Admit);
    show(&mut c, &[class(200, 0)]);
    assert_eq!(
        (ask(&mut c, 1), c.rate(0)),
        (Admission::Degrade, f64::INFINITY)
    );
    show(&mut c, &[class(200, 0)]);
    assert!(c.rate(0).is_finite());
    assert_eq!(ask(&mut c, 2), Admission::Degrade);
    for _ in 0..20 {
        show(&mut c, &[class(1, 0)]);
    }
    assert_eq!(ask(&mut c, 3), Admission::Admit);
}

#[test]
fn the_rate_is_raised_by_the_same_wherever_it_is() {
    let mut c = controller(false);
    let fast = |p90_ms| ClassSample {
        arrived: 100_000,
        ..class(p90_ms, 100)
    };
    for p90_ms in [200].into_iter().chain([40; 20]) {
        show(&mut c, &[fast(p90_ms)]);
    }
    let before = c.rate(0);
    assert!(before > 10_000.0, "{before}");
    show(&mut c, &[fast(40)]);
    // An error of -0.6, minus -0.1, times 2.
    let raised = c.rate(0) - before;
    assert!((0.9..1.1).contains(&raised), "{raised}");
}

#[test]
fn lower_classes_are_cut_first() {
    let mut c = controller(false);
    for _ in 0..60 {
        show(&mut c, &[class(200, 0), class(10, 0), class(10, 0)]);
    }
    assert!(near(c.rate(2), 0.05));
    assert!(c.rate(1) < 1000.0 && c.rate(1) > 0.05);
    assert_eq!(c.rate(0), f64::INFINITY);
    for _ in 0..60 {
        show(&mut c, &[class(200, 0), class(10, 0), class(10, 0)]);
    }
    assert!(c.rate(0).is_finite());
}

#[test]
fn tokens_come_at_the_rate() {
    let mut c = controller(false);
    show(&mut c, &[class(101, 0)]);
    let mut admitted = 0;
    for i in 0..20_000 {
        let mut arrival = arrival(0, 0, 0);
        arrival.now_ns = i * SECOND / 10_000;
        admitted += u64::from(c.on_enqueue(&arrival) == Admission::Admit);
    }
    // In 2 s at 833 per second, with 8 events accumulated.
    assert!((1655..=1676).contains(&admitted), "{admitted}");
}

#[test]
fn a_class_that_is_rejected_wholly_comes_back() {
    let mut c = controller(false);
    for _ in 0..200 {
        show(&mut c, &[class(1000, 0)]);
    }
    assert!(near(c.rate(0), 0.05));
    for _ in 0..10 {
        show(&mut c, &[class(0, 1000)]);
    }
    assert!(c.rate(0) > 10.0);
}

#[test]
fn parameters_that_are_no_numbers_or_lower_what_they_should_raise_are_replaced() {
    let odd = |change: fn(&mut ResponseP90Config)| {
        let mut config = ResponseP90Config {
            degrade: false,
            ..ResponseP90Config::new(Duration::from_millis(100))
        };
        change(&mut config);
        let mut c = ResponseP90::new(config);
        for p90_ms in [200, 200].into_iter().chain([40; 20]) {
            show(&mut c, &[class(p90_ms, 100)]);
        }
        let cut = c.rate(0);
        assert!(cut < 1000.0, "{config:?}: {cut} a second");
        show(&mut c, &[class(40, 100)]);
        assert!(c.rate(0) > cut, "{config:?}: {} a second", c.rate(0));
        assert!(c.rate(0).is_finite(), "{config:?}");
    };
    odd(|_| {});
    odd(|config| config.raise_offset = f64::NAN);
    odd(|config| config.raise_offset = -1.0);
    odd(|config| config.error_cut = f64::NAN);
    odd(|config| config.raise = f64::INFINITY);
    odd(|config| config.rate_min = f64::INFINITY);
    odd(|config| config.cut = f64::INFINITY);
}

#[test]
fn parameters_are_brought_into_their_range() {
    let config = ResponseP90Config {
        target_ns: 0,
        finished: 0,
        keep: 1.0,
        error_raise: 3.0,
        cut: 1.0,
        raise: f64::NAN,
        rate_min: 0.0,
        ..ResponseP90Config::new(Duration::ZERO)
    };
    let expected = ResponseP90Config {
        target_ns: 1,
        finished: 100,
        error_raise: 0.0,
        raise_offset: 0.0,
        ..ResponseP90Config::new(Duration::ZERO)
    };
    let got = ResponseP90::new(config).config;
    assert_eq!(
        ResponseP90Config {
            finished: 100,
            ..got
        },
        expected
    );
    assert_eq!(got.finished, 1);
}
