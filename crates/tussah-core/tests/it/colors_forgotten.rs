//! Tests of which colors given by number are remembered.

use std::sync::mpsc;

use tussah_core::{Color, ColorRef, Handle};

use crate::runtime;

/// The number of colors that may be remembered without being in use: 64 in each of 64 shards, and
/// in each those since the last sweep.
const IDLE: usize = 64 * (64 + 32);

/// Posts to colors and waits for each, so that each is idle afterwards.
fn visit(handle: &Handle, colors: impl Iterator<Item = u64>) {
    let (ran, done) = mpsc::channel();
    for color in colors {
        let ran = ran.clone();
        let posted = handle.post_in(Color(color), move || ran.send(()).expect("the test waits"));
        posted.expect("the runtime is open");
        done.recv().expect("the event runs");
    }
}

/// Has `colors` colors in use at the same time, then none of them.
fn peak(handle: &Handle, colors: u64) {
    let (leave, left) = mpsc::channel::<()>();
    let held = handle.post(move || left.recv().expect("the test tells"));
    held.expect("the runtime is open");
    for color in 1..=colors {
        handle.post_in(Color(color), || ()).expect("open");
    }
    leave.send(()).expect("the event waits");
    visit(handle, 0..1);
}

#[test]
fn dropping_the_last_reference_forgets_an_idle_color() {
    let runtime = runtime(1);
    let before = runtime.stats().colors_remembered;
    let first: Vec<ColorRef> = (1..=10_000).map(|n| runtime.color(Color(n))).collect();
    let second = first.clone();
    drop(first);
    assert_eq!(
        runtime.stats().colors_remembered,
        before + 10_000,
        "a reference keeps its color remembered"
    );
    drop(second);
    let remembered = runtime.stats().colors_remembered;
    assert!(remembered <= IDLE, "{remembered} colors are remembered");
}

#[test]
#[cfg_attr(miri, ignore)] // too many events
fn idle_colors_are_forgotten_as_new_ones_are_named() {
    let runtime = runtime(1);
    // As many colors in each shard as its map holds without growing while the others are named.
    peak(&runtime, 64 * 1_200);
    assert!(runtime.stats().colors_remembered >= 64 * 1_200);
    visit(&runtime, 1_000_000..1_000_000 + 64 * 1_024);
    let remembered = runtime.stats().colors_remembered;
    assert!(remembered <= IDLE, "{remembered} colors are remembered");
}

#[test]
#[cfg_attr(miri, ignore)] // too many events
fn idle_colors_are_forgotten_as_known_ones_are_named() {
    let runtime = runtime(1);
    peak(&runtime, 64 * 150);
    let known: Vec<ColorRef> = (1..=1_000).map(|n| runtime.color(Color(n))).collect();
    for _ in 0..1_300 {
        for color in 1..=known.len() as u64 {
            runtime.post_in(Color(color), || ()).expect("open");
        }
        visit(&runtime, 1..2);
    }
    let remembered = runtime.stats().colors_remembered;
    assert!(remembered <= IDLE, "{remembered} colors are remembered");
}
