//! Tests of the signs of an overload.

use super::super::super::testing::{MS, Random, quiet};
use super::*;

/// Ten events arrive per millisecond.
fn capacity() -> Capacity {
    let mut capacity = Capacity::default();
    let sample = Sample {
        finished: 1000,
        service_ns: 100 * MS,
        ..quiet()
    };
    capacity.observe(&sample, false, 0.0);
    capacity
}

/// Returns a change of the queue's length, so that it is not steady.
fn swing(ms: u64) -> f64 {
    (STEADY_BAND_MAX + 1.0) * (ms % 2) as f64
}

/// Returns the number of milliseconds after which an overload is detected, if that happens
/// within 10 s.
fn risen(arrived: impl Fn(u64) -> u64, idle: bool, queued: f64, wait_ms: f64) -> Option<u64> {
    let mut load = Load::default();
    let capacity = capacity();
    (0..10_000).find(|ms| {
        let sample = Sample {
            arrived: arrived(*ms),
            finished: 10,
            service_ns: MS,
            ..quiet()
        };
        load.observe(&sample, &capacity, idle, 0.0);
        let wait_ns = wait_ms * MS as f64;
        load.risen(queued + swing(*ms), wait_ns, &sample, 10.0 * MS as f64)
    })
}

#[test]
fn arrivals_above_the_capacity_are_an_overload_unless_a_servlet_is_idle_or_waits_are_short() {
    let at = |load| risen(move |_| load, false, 60.0, 6.0);
    assert_eq!(at(8), Some(200));
    // 22 (1 + 32 / 1000) divided by 14 ln 1.75 - 6, and by 20 ln 1.75 - 6.
    assert_eq!(at(14), Some(12));
    assert_eq!(at(20), Some(4));
    // Lasting waits are detected nevertheless.
    assert_eq!(risen(|_| 40, true, 60.0, 6.0), Some(200));
    assert_eq!(risen(|_| 40, false, 60.0, 4.0), None);
}

#[test]
fn a_queue_that_stands_is_an_overload_and_sooner_if_there_was_one() {
    let found = |turned: bool, arrived: u64, queued: f64| {
        let mut load = Load::default();
        if turned {
            load.turned();
        }
        let capacity = capacity();
        (0..195).find(|ms| {
            let queued = queued + swing(*ms);
            let sample = Sample {
                arrived,
                finished: 10,
                service_ns: MS,
                ..quiet()
            };
            load.observe(&sample, &capacity, false, 0.0);
            load.risen(queued, queued / 10.0 * MS as f64, &sample, 10.0 * MS as f64)
        })
    };
    // 18 (1 + 32 / 1000) - 62 ln 1.25, divided by 10 ln 1.25 - 2; later a fifth of the 18 and
    // more, divided by the same.
    assert_eq!(found(false, 10, 62.0), Some(21));
    assert_eq!(found(true, 10, 62.0), Some(0));
    assert_eq!(found(false, 10, 51.0), Some(32));
    assert_eq!(found(false, 8, 62.0), None);
    // Some time has to pass, whatever the number of waiting events.
    assert_eq!(found(false, 10, 190.0), Some(19));
    assert_eq!(found(false, 6, 190.0), None);
}

#[test]
fn events_that_servlets_take_show_a_higher_capacity() {
    let mut load = Load::default();
    for _ in 0..1000 {
        let sample = Sample {
            arrived: 20,
            ..quiet()
        };
        load.observe(&sample, &capacity(), false, 20.0);
        assert_eq!(load.rise, 0.0);
    }
}

#[test]
fn sampling_at_arrivals_makes_no_clumps() {
    let mut random = Random::new(7);
    let mut load = Load::default();
    for _ in 0..20_000 {
        let unit = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
        let sample = Sample {
            arrived: 1,
            // Five per millisecond.
            interval_ns: 1 + (-(1.0 - unit).ln() * MS as f64 / 5.0) as u64,
            ..quiet()
        };
        load.observe(&sample, &capacity(), false, 1.0);
        assert!(load.clumps.value < 3.0, "{:?}", load.clumps);
    }
}

#[test]
fn a_burst_is_not_an_overload() {
    let burst = |ms| if ms == 50 { 1_000_000 } else { 5 };
    let mut load = Load::default();
    for ms in 0..100 {
        let sample = Sample {
            arrived: burst(ms),
            ..quiet()
        };
        load.observe(&sample, &capacity(), false, 0.0);
        assert!(load.rise < RISE_SUM / 2.0, "{}", load.rise);
    }
}

#[test]
fn a_long_standing_queue_is_an_overload_whatever_arrives() {
    assert_eq!(risen(|_| 0, false, 300.0, 30.0), Some(40));
    assert_eq!(risen(|_| 0, false, 100.0, 30.0), Some(200));
    assert_eq!(risen(|_| 0, false, 300.0, 19.0), Some(200));
}

#[test]
fn waits_that_stay_above_half_the_target_are_an_overload() {
    assert_eq!(risen(|_| 0, false, 60.0, 6.0), Some(200));
    assert_eq!(risen(|_| 0, false, 60.0, 5.0), None);
}

#[test]
fn clumps_need_more_evidence() {
    let clumps = |ms| if ms % 10 == 0 { 140 } else { 0 };
    let mut load = Load::default();
    for ms in 0..1000 {
        let sample = Sample {
            arrived: clumps(ms),
            ..quiet()
        };
        load.observe(&sample, &capacity(), false, 0.0);
    }
    assert!(load.threshold_scale > 10.0, "{}", load.threshold_scale);
}

#[test]
fn an_overload_is_over_when_less_arrives_or_nobody_is_rejected() {
    let fallen = |arrived, refused| {
        let mut load = Load::default();
        let capacity = capacity();
        (0..10_000).find(|_| {
            let sample = Sample {
                arrived,
                refused,
                ..quiet()
            };
            load.observe(&sample, &capacity, false, 0.0);
            load.fallen(&sample, 10.0 * MS as f64)
        })
    };
    assert_eq!(fallen(10, 1), None);
    // 10 divided by 1.5 - 8 ln (1 / 0.85), and by 1.5.
    assert_eq!(fallen(8, 1), Some(50));
    assert_eq!(fallen(0, 1), Some(6));
    assert_eq!(fallen(10, 0), Some(640));
}

#[test]
fn a_queue_that_stays_as_long_as_it_is_while_events_finish_is_an_overload() {
    let found = |finished: u64, queued: fn(u64) -> f64, wait_ms: u64| {
        let mut load = Load::default();
        (0..200).find(|ms| {
            let sample = Sample {
                arrived: finished,
                finished,
                ..quiet()
            };
            let wait_ns = (wait_ms * MS) as f64;
            load.risen(queued(*ms), wait_ns, &sample, 10.0 * MS as f64)
        })
    };
    assert_eq!(found(1, |_| 20.0, 11), Some(65));
    // Samples between which many events finish show little.
    assert_eq!(found(50, |_| 20.0, 11), Some(17));
    // Twice the square of five and two.
    assert_eq!(found(1, |ms| 20.0 + (ms % 6) as f64, 11), Some(99));
    // All answers are within the target.
    assert_eq!(found(1, |_| 20.0, 9), None);
    // The queue gets shorter, by one in ten.
    assert_eq!(found(1, |ms| 100.0 - (ms / 10) as f64, 11), None);
    // The band is left, and another one begins.
    assert_eq!(
        found(1, |ms| if ms < 50 { 20.0 } else { 40.0 }, 11),
        Some(115)
    );
}
