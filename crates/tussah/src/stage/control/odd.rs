//! Tests of controllers with extreme inputs: no events, no time, no servlets, huge numbers.

use std::time::Duration;

use super::{
    Arrival, AutoServlets, AutoTarget, ClassSample, Controller, Departure, KeyLoad, Predict,
    Sample, Servlets,
    policy::{
        Aspen, ByClass, Cinnamon, CinnamonConfig, Codel, CodelConfig, Gradient, InputRate,
        OutgoingBound, Red, ResponseMean, ResponseMeanConfig, ResponseP90, ResponseP90Config,
        SedaBatch, SedaBatchConfig, SedaServlets, Threshold,
    },
};
use crate::stage::event::Class;
use crate::stage::sim::Random;

const NUMBERS: [u64; 6] = [0, 1, 50, 1_000_000, 1 << 52, u64::MAX];

fn controllers(target: Duration) -> Vec<Box<dyn Controller>> {
    let target_ns = u64::try_from(target.as_nanos()).unwrap_or(u64::MAX);
    vec![
        Box::new(Aspen::default()),
        Box::new(AutoServlets::default()),
        Box::new(AutoTarget::new(target)),
        Box::new(ByClass::new(&[0.5])),
        Box::new(Cinnamon::new(CinnamonConfig::new(target))),
        Box::new(Codel::new(CodelConfig::new(target, target))),
        Box::new(Gradient::default()),
        Box::new(InputRate::packets(1).and_bytes(u64::MAX)),
        Box::new(OutgoingBound::each(target_ns).of_all(1)),
        Box::new(Predict::new(target)),
        Box::new(Red::default()),
        Box::new(ResponseMean::new(ResponseMeanConfig::new(target))),
        Box::new(ResponseP90::new(ResponseP90Config::new(target))),
        Box::new(SedaBatch::new(SedaBatchConfig {
            target_ns: Some(target_ns),
            ..SedaBatchConfig::default()
        })),
        Box::new(SedaServlets::default()),
        Box::new(Threshold::new(target_ns)),
    ]
}

/// A source of extreme numbers; at least `calm` of sixteen draws are 0.
struct Odd(Random, u64);

impl Odd {
    fn number(&mut self) -> u64 {
        if self.0.next() % 16 < self.1 {
            return 0;
        }
        NUMBERS[(self.0.next() % NUMBERS.len() as u64) as usize]
    }

    fn size(&mut self) -> usize {
        usize::try_from(self.number()).unwrap_or(usize::MAX)
    }

    fn class(&mut self) -> ClassSample {
        ClassSample {
            share: self.number() as u32,
            queued: self.number(),
            arrived: self.number(),
            refused: self.number(),
            finished: self.number(),
            response_mean_ns: self.number(),
            response_min_ns: self.number(),
            response_p50_ns: self.number(),
            response_p90_ns: self.number(),
            response_p99_ns: self.number(),
        }
    }

    fn sample<'a>(&mut self, classes: &'a [ClassSample]) -> Sample<'a> {
        Sample {
            interval_ns: self.number(),
            busy_ns: self.number(),
            queue_len: self.number(),
            ready: self.number(),
            queue_max: self.number(),
            threshold: self.number(),
            arrived: self.number(),
            admitted: self.number(),
            refused: self.number(),
            shed: self.number(),
            finished: self.number(),
            failed: self.number(),
            in_service: self.number(),
            batches: self.number(),
            service_ns: self.number(),
            compute_ns: self.number(),
            held_up_ns: self.number(),
            limited_ns: self.number(),
            permits: self.number(),
            ready_ns: self.number(),
            fresh_batches: self.number(),
            service_squares: self.number() as f64,
            bytes: self.number(),
            pace_ns: self.number(),
            outgoing_max: self.number(),
            batch_max: self.size(),
            servlets: Servlets {
                busy: self.size(),
                parked: self.size(),
                target: self.size(),
                max: self.size(),
            },
            waiting: self.size(),
            limited: self.size(),
            workers: self.size(),
            blocking: self.number() == 1,
            process_servlets: self.size(),
            process_servlets_mean: self.number() as f64,
            random: self.0.next(),
            classes,
        }
    }

    fn arrival(&mut self) -> Arrival {
        Arrival {
            class: Class(self.number() as u8),
            credits: self.number() as u32,
            cohort: self.number() as u16,
            queue_len: self.number(),
            ahead: self.number(),
            key: self.key(),
            in_service: self.number(),
            now_ns: self.number(),
            random: self.number(),
        }
    }

    fn key(&mut self) -> Option<KeyLoad> {
        (self.number() == 0).then(|| KeyLoad {
            events: self.number(),
            service_ns: self.number(),
            arrived: self.number(),
            ended: self.number(),
            rejected: self.number(),
        })
    }

    fn departure(&mut self) -> Departure {
        Departure {
            class: Class(self.number() as u8),
            sojourn_ns: self.number(),
            queue_len: self.number(),
            key: self.key(),
            now_ns: self.number(),
        }
    }
}

/// Gives a controller extreme samples and events. It must ask for at least one servlet and one
/// event per batch.
fn show(controller: &mut dyn Controller, odd: &mut Odd) {
    let name = controller.name();
    let classes: Vec<_> = (0..odd.number().min(8)).map(|_| odd.class()).collect();
    let now_ns = odd.number();
    let settings = controller.sample(&odd.sample(&classes), now_ns);
    assert_ne!(settings.servlets, Some(0), "{name}");
    assert_ne!(settings.batch, Some(0), "{name}");
    for _ in 0..3 {
        controller.on_enqueue(&odd.arrival());
        controller.on_enqueue_many(&odd.arrival(), odd.number());
        controller.is_overdue(&odd.departure());
        controller.on_dequeue(&odd.departure());
    }
}

#[test]
fn any_sample_is_taken() {
    for target in [Duration::ZERO, Duration::from_millis(1), Duration::MAX] {
        for calm in [0, 4, 8, 12] {
            for mut controller in controllers(target) {
                let mut odd = Odd(Random::new(calm), calm);
                for _ in 0..5000 {
                    show(&mut *controller, &mut odd);
                }
            }
        }
    }
}

#[test]
fn a_clock_that_stands_still_is_no_reason_to_fail() {
    for target in [Duration::ZERO, Duration::from_millis(1)] {
        for mut controller in controllers(target) {
            let name = controller.name();
            for queue_len in [0, 1, 100].repeat(1000) {
                let sample = Sample {
                    queue_len,
                    queue_max: 1000,
                    threshold: 1000,
                    arrived: 40,
                    refused: 1,
                    finished: 40,
                    batches: 10,
                    batch_max: 100,
                    ..Sample::default()
                };
                let settings = controller.sample(&sample, 0);
                assert_ne!(settings.batch, Some(0), "{name}");
            }
        }
    }
}
