//! Compares two runs.

use std::fmt::Write;

use super::summary::{Summary, Times};
use crate::units::{show_bytes, show_ns};

/// Ratios closer to 1 than this count as equal.
const SAME: f64 = 0.01;

/// Returns a table that compares the results of two runs: the ratio of each pair of values, which
/// of the two is better, and reasons to doubt the comparison.
#[must_use]
pub fn compare(before: &Summary, after: &Summary) -> String {
    let mut text = format!(
        "{:<26} {:>12} {:>12} {:>8}\n",
        "", "before", "after", "ratio"
    );
    for (old, new) in values(before).into_iter().zip(values(after)) {
        let Value {
            name, better, show, ..
        } = new;
        let (Some(old), Some(new)) = (old.value, new.value) else {
            continue;
        };
        // A write to a string cannot fail.
        let _ = writeln!(
            text,
            "{name:<26} {:>12} {:>12} {:>8} {}",
            show(old),
            show(new),
            ratio(old, new),
            verdict(old, new, better)
        );
    }
    for warning in warnings(before, after) {
        let _ = writeln!(text, "warning: {warning}");
    }
    text
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Better {
    Higher,
    Lower,
}

/// One of the results; `None` if it was not measured.
struct Value {
    name: &'static str,
    better: Better,
    value: Option<f64>,
    show: fn(f64) -> String,
}

fn values(summary: &Summary) -> Vec<Value> {
    use Better::{Higher, Lower};
    let value = |name, better, value, show| Value {
        name,
        better,
        value,
        show,
    };
    let time = |name, times: &Times, ns: u64| {
        let ns = (times.count > 0).then_some(ns as f64);
        value(name, Lower, ns, show_ns)
    };
    let show_rate: fn(f64) -> String = |rate| format!("{rate:.1}");
    let index: fn(f64) -> String = |index| format!("{index:.4}");
    let Summary {
        latency, fairness, ..
    } = summary;
    let rejected = &summary.rejected_latency;
    let connected = match summary.connect.count {
        0 => &Times::default(),
        _ => &summary.response,
    };
    let server = summary.cpu.server.as_ref();
    let cpu_ms = server.map(|server| server.ms_per_1000_requests);
    let rate = Some(summary.served_per_s);
    let goodput = summary.within.as_ref().map(|within| within.per_s);
    let share = Some(summary.error_share());
    vec![
        value("served a second", Higher, rate, show_rate),
        value("in time a second", Higher, goodput, show_rate),
        value(
            "bytes a second",
            Higher,
            Some(summary.bytes_per_s),
            show_bytes,
        ),
        value("failed", Lower, share, |share| {
            format!("{:.3} %", share * 100.0)
        }),
        time("latency mean", latency, latency.mean as u64),
        time("latency p50", latency, latency.p50),
        time("latency p90", latency, latency.p90),
        time("latency p99", latency, latency.p99),
        time("latency p99.9", latency, latency.p99_9),
        time("latency max", latency, latency.max),
        time("with connect p99", connected, connected.p99),
        time("with connect max", connected, connected.max),
        time("503 p99", rejected, rejected.p99),
        value("fairness", Higher, Some(fairness.jain), index),
        value(
            "fairness, worst window",
            Higher,
            Some(fairness.jain_worst),
            index,
        ),
        value("server CPU, 1000 requests", Lower, cpu_ms, |ms| {
            format!("{ms:.3} ms")
        }),
    ]
}

fn ratio(old: f64, new: f64) -> String {
    match old {
        0.0 if new == 0.0 => "1.000".to_owned(),
        0.0 => "-".to_owned(),
        _ => format!("{:.3}", new / old),
    }
}

fn verdict(old: f64, new: f64, better: Better) -> &'static str {
    let is_same = (new - old).abs() <= old.abs() * SAME;
    match (is_same, better, new > old) {
        (true, ..) => "same",
        (_, Better::Higher, true) | (_, Better::Lower, false) => "better",
        _ => "worse",
    }
}

/// Returns the reasons why the comparison is doubtful.
fn warnings(before: &Summary, after: &Summary) -> Vec<String> {
    let mut warnings = Vec::new();
    if before.parameters != after.parameters {
        warnings.push("the two runs had different parameters".to_owned());
    }
    for (name, summary) in [("before", before), ("after", after)] {
        if summary.interrupted {
            warnings.push(format!("{name}: the run was interrupted"));
        }
        let own = summary.warnings.iter();
        warnings.extend(own.map(|warning| format!("{name}: {warning}")));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::report::summary::tests::summary;

    #[test]
    fn verdicts() {
        let check = |old: f64, new: f64, better: Better, expected: &str| {
            assert_eq!(verdict(old, new, better), expected, "{old} and {new}");
        };
        check(100.0, 110.0, Better::Higher, "better");
        check(100.0, 110.0, Better::Lower, "worse");
        check(100.0, 90.0, Better::Higher, "worse");
        check(100.0, 90.0, Better::Lower, "better");
        check(100.0, 100.9, Better::Lower, "same");
        check(0.0, 0.0, Better::Lower, "same");
        check(0.0, 0.1, Better::Lower, "worse");
    }

    #[test]
    fn tables() {
        let mut before = summary();
        before.served_per_s = 1000.0;
        let mut after = before.clone();
        after.served_per_s = 1500.0;
        after.parameters.connections += 1;
        after.warnings.push("it rained".to_owned());
        let text = compare(&before, &after);
        let line = text
            .lines()
            .find(|line| line.starts_with("served"))
            .expect("a row");
        let words: Vec<&str> = line.split_whitespace().skip(3).collect();
        assert_eq!(words, ["1000.0", "1500.0", "1.500", "better"]);
        assert!(!text.contains("latency"), "none was measured: {text}");
        assert!(text.contains("different parameters"), "{text}");
        assert!(text.contains("after: it rained"), "{text}");
    }
}
