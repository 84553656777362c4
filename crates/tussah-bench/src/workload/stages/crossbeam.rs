//! The pipeline of OS threads.

use std::time::Instant;

use super::{Count, Size, event};
use crate::cli::Options;
use crate::metric::Metric;
use crate::runtimes;

/// Uses an OS thread for the source and for each stage, regardless of `--workers`.
pub(super) fn run(options: &Options) -> Vec<Metric> {
    use crossbeam_channel::bounded;

    let size = Size::of(options);
    let pin = |index| {
        if options.pin {
            runtimes::pin_to(index);
        }
    };
    let start = Instant::now();
    let count = std::thread::scope(|scope| {
        let (to, mut from) = bounded(size.capacity());
        scope.spawn(move || {
            pin(0);
            for number in 0..size.events {
                to.send(event(number)).expect("a stage waits for it");
            }
        });
        for index in 1..size.stages {
            let (to, next) = bounded(size.capacity());
            let from = std::mem::replace(&mut from, next);
            scope.spawn(move || {
                pin(index);
                while let Ok(event) = from.recv() {
                    let more = from.try_iter().take(size.batch - 1);
                    for mut event in std::iter::once(event).chain(more) {
                        size.touch(&mut event);
                        to.send(event).expect("a stage waits for it");
                    }
                }
            });
        }
        pin(size.stages);
        let mut count = Count::default();
        while let Ok(event) = from.recv() {
            let more = from.try_iter().take(size.batch - 1);
            for mut event in std::iter::once(event).chain(more) {
                size.touch(&mut event);
                count.add(&event);
            }
        }
        count
    });
    size.report(count, start.elapsed())
}
