//! Tables of events with their times, and the resulting steps.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;

const DEADLINE_MS: u64 = 10_000;

/// An event, with its time in milliseconds since the start.
enum Event {
    /// The preferred family, IPv6, has N addresses.
    V6(u8),
    /// The other family has N addresses.
    V4(u8),
    /// The oldest attempt in progress fails.
    Fails,
    /// Nothing has happened, but the time has passed.
    Time,
}

fn addresses(family: Family, count: u8) -> impl Iterator<Item = SocketAddr> {
    (1..=count).map(move |last| match family {
        Family::Preferred => (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into()), 80).into(),
        Family::Other => (Ipv4Addr::new(192, 0, 2, last), 80).into(),
    })
}

/// Plays the events, and writes the step after each: `6.1` for an attempt at the first address of
/// IPv6, `until 50` for waiting.
fn play(events: &[(u64, Event)]) -> String {
    let start = Instant::now();
    let at = |ms: u64| start + Duration::from_millis(ms);
    let mut eyeballs = Eyeballs::new(ATTEMPT_DELAY, at(DEADLINE_MS));
    let mut log = String::new();
    for (ms, event) in events {
        match event {
            Event::V6(count) => {
                eyeballs.answer(
                    at(*ms),
                    Family::Preferred,
                    addresses(Family::Preferred, *count),
                );
            }
            Event::V4(count) => {
                eyeballs.answer(at(*ms), Family::Other, addresses(Family::Other, *count));
            }
            Event::Fails => eyeballs.failed(),
            Event::Time => {}
        }
        loop {
            let step = eyeballs.step(at(*ms));
            match step {
                Step::Connect(SocketAddr::V4(to)) => write!(log, "4.{} ", to.ip().octets()[3]),
                Step::Connect(SocketAddr::V6(to)) => write!(log, "6.{} ", to.ip().octets()[15]),
                Step::Wait(time) => write!(log, "until {}; ", (time - start).as_millis()),
                other => write!(log, "{other:?}; "),
            }
            .expect("text can be written");
            if !matches!(step, Step::Connect(_)) {
                break;
            }
        }
    }
    log.truncate(log.trim_end_matches([';', ' ']).len());
    log
}

#[track_caller]
fn check(events: &[(u64, Event)], expected: &str) {
    assert_eq!(play(events), expected);
}

use Event::{Fails, Time, V4, V6};

#[test]
fn resolution() {
    // The preferred family need not wait for the other family.
    check(&[(3, V6(1))], "6.1 until 10000");
    check(&[(3, V6(2))], "6.1 until 253");
    // The other family waits for the preferred family, for 50 ms.
    check(&[(3, V4(1))], "until 53");
    check(
        &[(3, V4(1)), (52, Time), (53, Time)],
        "until 53; until 53; 4.1 until 10000",
    );
    check(&[(3, V4(2)), (53, Time)], "until 53; 4.1 until 303");
    // Until the preferred family's addresses arrive.
    check(&[(3, V4(1)), (20, V6(1))], "until 53; 6.1 until 270");
    // Or until that family is known to have no address, or its lookup has failed: both count as an
    // empty answer.
    check(&[(3, V4(1)), (20, V6(0))], "until 53; 4.1 until 10000");
    check(&[(3, V6(0)), (20, V4(1))], "until 10000; 4.1 until 10000");
    // Addresses that arrive after the beginning join the others, and do not hasten anything.
    check(
        &[(0, V4(2)), (50, Time), (60, V6(1)), (300, Time)],
        "until 50; 4.1 until 300; until 300; 6.1 until 550",
    );
    check(
        &[(0, V6(1)), (400, V4(1))],
        "6.1 until 10000; 4.1 until 10000",
    );
}

#[test]
fn the_families_alternate() {
    let late = |after: u64| (after * 250, Time);
    check(
        &[(0, V4(3)), (0, V6(2)), late(1), late(2), late(3), late(4)],
        "until 50; 6.1 until 250; 4.1 until 500; 6.2 until 750; 4.2 until 1000; 4.3 until 10000",
    );
    check(
        &[(0, V6(3)), (0, V4(1)), late(1), late(2), late(3)],
        "6.1 until 250; until 250; 4.1 until 500; 6.2 until 750; 6.3 until 10000",
    );
}

#[test]
fn attempts() {
    // An attempt that fails makes room immediately; other attempts continue.
    check(&[(0, V6(2)), (10, Fails)], "6.1 until 250; 6.2 until 10000");
    check(
        &[(0, V6(3)), (250, Time), (260, Fails), (270, Fails)],
        "6.1 until 250; 6.2 until 500; 6.3 until 10000; until 10000",
    );
    // A late look begins one attempt, not several.
    check(&[(0, V6(3)), (5000, Time)], "6.1 until 250; 6.2 until 5250");
}

#[test]
fn the_end() {
    check(&[(0, V6(0)), (1, V4(0))], "until 10000; Exhausted");
    check(
        &[(0, V6(1)), (1, V4(0)), (2, Fails)],
        "6.1 until 10000; until 10000; Exhausted",
    );
    // Not before both lookups have ended.
    check(&[(0, V6(1)), (2, Fails)], "6.1 until 10000; until 10000");
    check(
        &[(0, V6(1)), (2, Fails), (9, V4(0))],
        "6.1 until 10000; until 10000; Exhausted",
    );
    check(&[(0, V6(1)), (10_000, Time)], "6.1 until 10000; TimedOut");
    check(&[(9_990, V4(1)), (10_000, V6(1))], "until 10000; TimedOut");
    check(&[(10_000, V6(1))], "TimedOut");
}

#[test]
fn the_number_of_attempts_is_bounded() {
    let mut eyeballs = Eyeballs::new(ATTEMPT_DELAY, Instant::now() + ATTEMPT_DELAY);
    let now = Instant::now();
    eyeballs.answer(now, Family::Preferred, addresses(Family::Preferred, 200));
    eyeballs.answer(now, Family::Other, addresses(Family::Other, 200));
    let mut attempts = 0;
    while let Step::Connect(_) = eyeballs.step(now) {
        attempts += 1;
        eyeballs.failed();
    }
    assert_eq!(attempts, 2 * ADDRESSES_MAX);
    assert_eq!(eyeballs.step(now), Step::Exhausted);
}
