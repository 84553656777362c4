//! Computes the results from the counts.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::summary::{
    Cpu, Fairness, Parameters, Requests, Second, ServerCpu, Summary, Times, VERSION, Within,
};
use super::tally::Tally;
use super::warnings::warnings;
use crate::load::run::fault::Fault;
use crate::load::run::phases::Course;
use crate::load::run::shared::Run;

impl Times {
    fn of(histogram: &Histogram<u64>) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        let at = |quantile: f64| histogram.value_at_quantile(quantile).min(histogram.max());
        Self {
            count: histogram.len(),
            min: histogram.min(),
            mean: histogram.mean(),
            deviation: histogram.stdev(),
            p50: at(0.50),
            p75: at(0.75),
            p90: at(0.90),
            p95: at(0.95),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.9999),
            max: histogram.max(),
        }
    }
}

impl Summary {
    /// Returns the results of a run, with all counts.
    pub(in crate::load) fn of(
        run: &Run,
        url: &str,
        file_directories: Option<usize>,
        course: &Course,
    ) -> (Self, Tally) {
        let mut tally = Tally::new();
        run.tallies(|part| tally.add(part));
        let measured_s = course.measured.as_secs_f64();
        let per_s = |count: u64| count as f64 / measured_s.max(f64::MIN_POSITIVE);
        let ended = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let requests = requests(run, &tally, course);
        let response = tally.response();
        let mut summary = Self {
            version: VERSION,
            url: url.to_owned(),
            generator: concat!("tussah load ", env!("CARGO_PKG_VERSION")).to_owned(),
            ended_unix_s: ended.map_or(0, |since| since.as_secs()),
            parameters: Parameters::of(run, file_directories),
            interrupted: course.interrupted,
            measured_s,
            connecting_s: course.connecting.as_secs_f64(),
            served_per_s: per_s(requests.served),
            within: None,
            bytes: tally.bytes,
            bytes_per_s: per_s(tally.bytes),
            latency: Times::of(&tally.latency()),
            response: Times::of(&response),
            rejected_latency: Times::of(&tally.rejected),
            connect: Times::of(&tally.connect),
            connect_before: Times::of(&tally.connect_before),
            lag: Times::of(&tally.lag),
            errors: Fault::ALL
                .into_iter()
                .map(|fault| (fault.name().to_owned(), tally.faults[fault as usize]))
                .collect(),
            errors_before: named(run.failures_before()),
            error_samples: named(run.samples()),
            statuses: (100..)
                .zip(tally.statuses.iter().copied())
                .filter(|&(_, count)| count > 0)
                .collect(),
            fairness: Fairness::of(run, course),
            cpu: Cpu::of(run, &tally, course),
            seconds: tally.seconds.iter().map(Second::of).collect(),
            warnings: Vec::new(),
            requests,
        };
        summary.within = run.settings.within.map(|limit| {
            let count = response.count_between(0, limit.as_nanos() as u64);
            let late: u64 = run.records().iter().map(|record| record.late).sum();
            let all = summary.requests.ended() + late;
            Within {
                count,
                share: count as f64 / all.max(1) as f64,
                per_s: per_s(count),
            }
        });
        summary.warnings = warnings(&summary, course);
        (summary, tally)
    }
}

fn requests(run: &Run, tally: &Tally, course: &Course) -> Requests {
    let records = run.records();
    let oldest_ns = records.iter().filter_map(|record| record.oldest_ns).min();
    Requests {
        served: tally.served(),
        rejected: tally.rejected.len(),
        failed: tally.failed(),
        unfinished: records.iter().map(|record| record.under_way).sum(),
        never_sent: records.iter().map(|record| record.never_sent).sum(),
        overdue: records.iter().map(|record| record.overdue).sum(),
        unfinished_wait_ns: oldest_ns
            .map_or(0, |oldest_ns| course.until_ns.saturating_sub(oldest_ns)),
    }
}

fn named<T>(map: BTreeMap<&'static str, T>) -> BTreeMap<String, T> {
    let map = map.into_iter();
    map.map(|(name, value)| (name.to_owned(), value)).collect()
}

impl Parameters {
    fn of(run: &Run, file_directories: Option<usize>) -> Self {
        let settings = &run.settings;
        Self {
            connections: settings.connections,
            workers: settings.workers,
            requests: settings.requests,
            duration_s: settings.duration.map(|duration| duration.as_secs_f64()),
            rate_per_s: settings.rate,
            think_ms: settings.think.as_secs_f64() * 1e3,
            warm_up_s: settings.warm_up.as_secs_f64(),
            requests_per_connection: settings.requests_per_connection,
            close_by: settings.close_by,
            pipeline: settings.pipeline,
            timeout_s: settings.timeout.as_secs_f64(),
            honor_retry_after: settings.honor_retry_after,
            retry_pause_ms: settings.retry_pause.as_secs_f64() * 1e3,
            check_every: settings.check_every,
            within_ms: settings.within.map(|limit| limit.as_secs_f64() * 1e3),
            file_directories,
            paths: None,
            seed: settings.seed,
        }
    }
}

impl Fairness {
    fn of(run: &Run, course: &Course) -> Self {
        let records = run.records();
        let clients = records.iter();
        let clients: Vec<_> = clients
            .map(|record| (record.total, &*record.served))
            .collect();
        let fairness = run.slots.judge(&clients, course.measured.as_nanos() as u64);
        let totals = || clients.iter().map(|&(total, _)| total);
        Self {
            jain: fairness.index,
            jain_worst: fairness
                .windows
                .iter()
                .copied()
                .fold(fairness.index, f64::min),
            window_s: fairness.window_s,
            window_completions: fairness.completions,
            windows: fairness.windows,
            served_min: totals().min().unwrap_or(0),
            served_max: totals().max().unwrap_or(0),
        }
    }
}

impl Cpu {
    fn of(run: &Run, tally: &Tally, course: &Course) -> Self {
        let measured_s = course.measured.as_secs_f64().max(f64::MIN_POSITIVE);
        let answered: u64 = tally.statuses.iter().sum();
        let server = course.server.zip(run.settings.pid).map(|(used, pid)| {
            let seconds = used.time.as_secs_f64();
            ServerCpu {
                pid,
                processes: used.processes,
                seconds,
                ms_per_1000_requests: seconds * 1e6 / answered.max(1) as f64,
                cpus: seconds / measured_s,
            }
        });
        let generator_s = course.own.as_secs_f64();
        Self {
            server,
            generator_s,
            generator_busy: generator_s / (run.settings.workers as f64 * measured_s),
        }
    }
}

impl Second {
    fn of(second: &super::tally::Second) -> Self {
        Self {
            served: second.served,
            rejected: second.rejected,
            failed: second.failed,
        }
    }
}
