//! A custom controller in 40 lines: it limits the queue to 5 ms of work, at twice the capacity.
use tussah::stage::control::{Cadence, Controller, Owns, Sample, Settings};
use tussah::stage::sim::{Arrivals, Distribution, Service, Simulation};

struct FiveMs;

impl Controller for FiveMs {
    fn name(&self) -> &'static str {
        "five-ms"
    }
    fn owns(&self) -> Owns {
        Owns::ADMISSION
    }
    fn cadence(&self) -> Cadence {
        Cadence::every_ns(10_000_000)
    }
    fn sample(&mut self, sample: &Sample<'_>, _now_ns: u64) -> Settings {
        Settings {
            threshold: Some(sample.finished * 5_000_000 / sample.interval_ns),
            ..Settings::default()
        }
    }
}

fn main() {
    let overload = Simulation {
        arrivals: Arrivals::steps(&[(0, 40_000.0)]),
        batch_max: 1,
        services: vec![(0, Service::computing(Distribution::Exponential(100_000.0)))],
        ..Simulation::default()
    };
    let ticks = overload.run(vec![Box::new(FiveMs)], 1, |_| {});
    for tick in ticks.iter().step_by(10) {
        let (ms, mean_us) = (tick.at_ns / 1_000_000, tick.response_mean_ns / 1000);
        println!(
            "{ms:4} ms: {:3} queued of {:4}; {:3} served in {mean_us} us",
            tick.queue_len, tick.threshold, tick.served
        );
    }
}
