//! The status page for Prometheus, in its text format, version 0.0.4
//! (prometheus.io/docs/instrumenting/exposition_formats).

use std::fmt::{Display, Write as _};
use std::time::Duration;

use tussah::stage::observe::Digest;
use tussah::sync::{LimitClassStats, LimitStats};

use super::report::{Report, Source, allowed, kind_of};
use crate::web::server::counts::Count;

/// The upper ends of the histogram's buckets, in milliseconds.
const BUCKETS_MS: [u64; 14] = [
    1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000,
];

pub(super) fn page(report: &Report) -> String {
    let mut page = Page(String::new());
    page.family("tussah_build_info", "gauge", "The version of the server.");
    page.sample("tussah_build_info", &[("version", report.version)], 1);
    page.family("tussah_uptime_seconds", "gauge", "Time since the start.");
    page.sample("tussah_uptime_seconds", &[], report.up_s);
    connections(&mut page, report);
    requests(&mut page, report);
    durations(&mut page, report);
    limits(&mut page, report);
    let cache = &report.cache;
    let (requests, misses, checks) = (
        "tussah_cache_requests_total",
        "tussah_cache_misses_total",
        "tussah_cache_checks_total",
    );
    page.family(requests, "counter", "Requests for files.");
    page.sample(requests, &[], cache.requests);
    page.family(misses, "counter", "Requests for pages not in memory.");
    page.sample(misses, &[], cache.missed);
    page.family(
        checks,
        "counter",
        "Requests for pages in memory whose file was looked at again.",
    );
    page.sample(checks, &[], cache.checked);
    stages(&mut page, report);
    page.0
}

fn connections(page: &mut Page, report: &Report) {
    let (name, limit) = ("tussah_http_connections", "tussah_http_connections_limit");
    let connections = &report.connections;
    let busy = connections.open.saturating_sub(connections.idle);
    page.family(name, "gauge", "Open connections.");
    page.sample(name, &[("state", "busy")], busy);
    page.sample(name, &[("state", "idle")], connections.idle);
    page.family(limit, "gauge", "The most connections that may be open.");
    page.sample(limit, &[], connections.limit);
}

fn requests(page: &mut Page, report: &Report) {
    let name = "tussah_http_requests_total";
    page.family(name, "counter", "Responses by route and class of status.");
    for source in &report.sources {
        let codes = ["1xx", "2xx", "3xx", "4xx", "5xx"];
        for (code, count) in codes.iter().zip(source.counted.codes()) {
            page.sample(name, &[("route", &source.name), ("code", code)], count);
        }
    }
    let name = "tussah_http_rejected_total";
    let help = "Requests that no handler answered, by reason.";
    page.family(name, "counter", help);
    let reasons = [
        ("overload", Count::Overload),
        ("full", Count::Full),
        ("client_gone", Count::Gone),
        ("cut", Count::Cut),
    ];
    for source in &report.sources {
        for (reason, count) in reasons {
            let labels = [("route", source.name.as_str()), ("reason", reason)];
            page.sample(name, &labels, source.counted.get(count));
        }
    }
    scarce(page, report);
    type Value = fn(&Source) -> u64;
    let families: [(&str, &str, &str, Value); 4] = [
        (
            "tussah_http_would_reject_total",
            "counter",
            "Requests that overload control would have rejected, if it only observes.",
            |source| source.would_reject,
        ),
        (
            "tussah_http_response_bytes_total",
            "counter",
            "Bytes sent, heads included.",
            |source| source.counted.get(Count::Bytes),
        ),
        (
            "tussah_http_requests_in_service",
            "gauge",
            "Requests that handlers are at work on.",
            |source| source.in_service,
        ),
        (
            "tussah_http_requests_queued",
            "gauge",
            "Requests that wait for a handler.",
            |source| source.queued,
        ),
    ];
    for (name, kind, help, value) in families {
        page.family(name, kind, help);
        for source in &report.sources {
            page.sample(name, &[("route", &source.name)], value(source));
        }
    }
}

fn scarce(page: &mut Page, report: &Report) {
    let name = "tussah_http_rejected_for_total";
    let help = "Requests rejected for overload, by the resource that was scarce.";
    page.family(name, "counter", help);
    for source in &report.sources {
        for (resource, count) in &source.rejected_by {
            let (kind, limit) = kind_of(resource);
            let mut labels = vec![("route", source.name.as_str()), ("resource", kind)];
            labels.extend(limit.map(|limit| ("limit", limit)));
            page.sample(name, &labels, count);
        }
    }
}

fn durations(page: &mut Page, report: &Report) {
    let name = "tussah_http_request_duration_seconds";
    let help = "Time from the arrival of a request at its stage to its response.";
    page.family(name, "histogram", help);
    for source in report
        .sources
        .iter()
        .filter(|source| source.name != "other")
    {
        page.histogram(name, ("route", &source.name), &source.times);
    }
}

fn limits(page: &mut Page, report: &Report) {
    type Value = fn(&LimitStats) -> u64;
    let families: [(&str, &str, &str, Value); 4] = [
        (
            "tussah_limit_permits",
            "gauge",
            "Permits of a limited resource.",
            |limit| limit.permits as u64,
        ),
        ("tussah_limit_in_use", "gauge", "Permits in use.", |limit| {
            limit.in_use as u64
        }),
        (
            "tussah_limit_waiting",
            "gauge",
            "Futures that wait for a permit.",
            |limit| limit.waiting as u64,
        ),
        (
            "tussah_limit_acquired_total",
            "counter",
            "Permits acquired.",
            |limit| limit.acquired,
        ),
    ];
    for (name, kind, help, value) in families {
        page.family(name, kind, help);
        for limit in &report.limits {
            page.sample(name, &[("limit", &limit.name)], value(limit));
        }
    }
    limit_classes(page, report);
    type Times = fn(&LimitStats) -> &Digest;
    let families: [(&str, &str, Times); 2] = [
        (
            "tussah_limit_wait_seconds",
            "Time from arrival to the permit.",
            |limit| &limit.wait,
        ),
        (
            "tussah_limit_hold_seconds",
            "Time for which a permit was held.",
            |limit| &limit.hold,
        ),
    ];
    for (name, help, times) in families {
        page.family(name, "histogram", help);
        for limit in &report.limits {
            page.histogram(name, ("limit", &limit.name), times(limit));
        }
    }
}

fn limit_classes(page: &mut Page, report: &Report) {
    type Value = fn(&LimitClassStats) -> u64;
    let families: [(&str, &str, &str, Value); 3] = [
        (
            "tussah_limit_class_in_use",
            "gauge",
            "Permits that a class of callers has in use.",
            |class| class.in_use as u64,
        ),
        (
            "tussah_limit_class_waiting",
            "gauge",
            "Futures of a class that wait for a permit.",
            |class| class.waiting as u64,
        ),
        (
            "tussah_limit_class_acquired_total",
            "counter",
            "Permits that a class of callers acquired.",
            |class| class.acquired,
        ),
    ];
    for (name, kind, help, value) in families {
        page.family(name, kind, help);
        for limit in &report.limits {
            for (number, class) in limit.classes.iter().enumerate() {
                let number = number.to_string();
                page.sample(
                    name,
                    &[("limit", &limit.name), ("class", &number)],
                    value(class),
                );
            }
        }
    }
}

/// Returns a number of a stage.
type StageValue = fn(&tussah::stage::observe::StageStats) -> u64;

fn stages(page: &mut Page, report: &Report) {
    let families: [(&str, &str, &str, StageValue); 10] = [
        (
            "tussah_stage_arrived_total",
            "counter",
            "Events that came by the queue or by calls.",
            |stage| stage.arrived + stage.called,
        ),
        (
            "tussah_stage_finished_total",
            "counter",
            "Events that were handled.",
            |stage| stage.finished + stage.called,
        ),
        (
            "tussah_stage_failed_total",
            "counter",
            "Of these, events that failed.",
            |stage| stage.failed,
        ),
        (
            "tussah_stage_refused_total",
            "counter",
            "Events that were not let in.",
            |stage| stage.refused,
        ),
        (
            "tussah_stage_shed_total",
            "counter",
            "Events that were taken out of the queue.",
            |stage| stage.shed,
        ),
        (
            "tussah_stage_cancelled_total",
            "counter",
            "Events that were cancelled.",
            |stage| stage.cancelled,
        ),
        (
            "tussah_stage_queued",
            "gauge",
            "Events in the queue.",
            |stage| stage.queued,
        ),
        (
            "tussah_stage_in_service",
            "gauge",
            "Events that handlers are at work on.",
            |stage| stage.in_service,
        ),
        (
            "tussah_stage_servlets",
            "gauge",
            "Busy servlets.",
            |stage| stage.servlets.busy as u64,
        ),
        (
            "tussah_stage_servlets_allowed",
            "gauge",
            "Servlets that may be busy at the same time.",
            |stage| allowed(stage) as u64,
        ),
    ];
    for (name, kind, help, value) in families {
        page.family(name, kind, help);
        for stage in &report.stages {
            page.sample(name, &[("stage", &stage.name)], value(stage));
        }
    }
}

/// The text of the page.
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn histogram(&mut self, name: &str, label: (&str, &str), times: &Digest) {
        let bucket = format!("{name}_bucket");
        for ms in BUCKETS_MS {
            let end = Duration::from_millis(ms);
            let le = end.as_secs_f64().to_string();
            self.sample(&bucket, &[label, ("le", &le)], times.at_most(end));
        }
        self.sample(&bucket, &[label, ("le", "+Inf")], times.count());
        self.sample(&format!("{name}_sum"), &[label], times.sum().as_secs_f64());
        self.sample(&format!("{name}_count"), &[label], times.count());
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (n, (label, text)) in labels.iter().enumerate() {
            let begin = if n == 0 { '{' } else { ',' };
            let text = text.replace('\\', "\\\\").replace('"', "\\\"");
            let text = text.replace('\n', "\\n");
            let _ = write!(self.0, "{begin}{label}=\"{text}\"");
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{end} {value}");
    }
}
