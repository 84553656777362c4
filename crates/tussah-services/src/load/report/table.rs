//! The results of a run as text.

use std::fmt::Write;

use super::summary::{Summary, Times};
use crate::units::{show_bytes, show_count, show_ns};

/// Returns the results as a table.
#[must_use]
pub fn table(summary: &Summary) -> String {
    let mut text = String::new();
    // A write to a string cannot fail.
    let _ = write(&mut text, summary);
    text
}

fn write(text: &mut String, summary: &Summary) -> std::fmt::Result {
    let parameters = &summary.parameters;
    let pace = match parameters.rate_per_s {
        Some(rate) => format!("open loop, {rate} requests/s"),
        None if parameters.think_ms > 0.0 => {
            format!("closed loop, {} ms between requests", parameters.think_ms)
        }
        None => "closed loop".to_owned(),
    };
    let interrupted = if summary.interrupted {
        " (interrupted)"
    } else {
        ""
    };
    let Summary {
        url, measured_s, ..
    } = summary;
    let connections = parameters.connections;
    let connecting_s = summary.connecting_s;
    match &parameters.paths {
        Some(paths) => writeln!(text, "{url} (paths from {})", paths.display())?,
        None => writeln!(text, "{url}")?,
    }
    writeln!(
        text,
        "{connections} connections (made in {connecting_s:.2} s before the measurement), {pace}"
    )?;
    match parameters.warm_up_s {
        0.0 => {}
        warm_up_s => writeln!(text, "warmed up for {warm_up_s:.2} s")?,
    }
    writeln!(text, "measured for {measured_s:.2} s{interrupted}\n")?;
    counts(text, summary)?;
    times(text, summary)?;
    costs(text, summary)?;
    for warning in &summary.warnings {
        writeln!(text, "warning: {warning}")?;
    }
    Ok(())
}

/// Writes the outcomes of requests.
fn counts(text: &mut String, summary: &Summary) -> std::fmt::Result {
    let requests = &summary.requests;
    let mut line = |name: &str, count: u64, more: &str| {
        let shown = format!("{name:<22} {:>12}   {more}", show_count(count));
        writeln!(text, "{}", shown.trim_end())
    };
    let rate = summary.served_per_s;
    let bytes = show_bytes(summary.bytes_per_s);
    line(
        "served",
        requests.served,
        &format!("{rate:.1} requests/s, {bytes}/s"),
    )?;
    if let (Some(within), Some(limit_ms)) = (&summary.within, summary.parameters.within_ms) {
        line(
            &format!("  within {}", show_ns(limit_ms * 1e6)),
            within.count,
            &format!(
                "{:.1} requests/s, {:.3} % of all",
                within.per_s,
                within.share * 100.0
            ),
        )?;
    }
    if requests.rejected > 0 {
        line("rejected", requests.rejected, "answered 503")?;
    }
    let share = summary.error_share() * 100.0;
    line("failed", requests.failed, &format!("{share:.3} % errors"))?;
    for (name, &count) in summary.errors.iter().filter(|&(_, &count)| count > 0) {
        let sample = summary.error_samples.get(name).map_or("", String::as_str);
        line(&format!("  {name}"), count, sample)?;
    }
    let unfinished = requests.unfinished + requests.never_sent;
    if unfinished > 0 {
        let wait = show_ns(requests.unfinished_wait_ns as f64);
        line(
            "unfinished",
            unfinished,
            &format!("the oldest had been due for {wait}"),
        )?;
    }
    for (status, &count) in &summary.statuses {
        line(&format!("status {status}"), count, "")?;
    }
    writeln!(text)
}

/// Writes fairness and CPU time.
fn costs(text: &mut String, summary: &Summary) -> std::fmt::Result {
    let Summary { fairness, cpu, .. } = summary;
    writeln!(
        text,
        "\nfairness     {:.4} over the run, {:.4} in the worst window of {:.1} s ({:.0} requests per client)",
        fairness.jain, fairness.jain_worst, fairness.window_s, fairness.window_completions
    )?;
    if let Some(server) = &cpu.server {
        writeln!(
            text,
            "server CPU   {:.3} s, {:.3} ms per 1000 requests, {:.2} CPUs, {} processes",
            server.seconds, server.ms_per_1000_requests, server.cpus, server.processes
        )?;
    }
    let busy = cpu.generator_busy * 100.0;
    writeln!(
        text,
        "own CPU      {:.3} s, workers busy for {busy:.0} % of the time",
        cpu.generator_s
    )
}

/// Writes the distributions, one line each.
fn times(text: &mut String, summary: &Summary) -> std::fmt::Result {
    let rows = [
        ("latency", &summary.latency, summary.latency.count > 0),
        ("with connect", &summary.response, summary.connect.count > 0),
        ("connect", &summary.connect, summary.connect.count > 0),
        (
            "503",
            &summary.rejected_latency,
            summary.requests.rejected > 0,
        ),
        ("sent late", &summary.lag, summary.lag.count > 0),
    ];
    if !rows.iter().any(|(.., is_shown)| *is_shown) {
        return Ok(());
    }
    let names = ["mean", "p50", "p75", "p90", "p95", "p99", "p99.9", "max"];
    write!(text, "{:<12}", "")?;
    for name in names {
        write!(text, " {name:>8}")?;
    }
    writeln!(text)?;
    for (name, times, is_shown) in rows {
        if is_shown {
            writeln!(text, "{name:<12}{}", row(times))?;
        }
    }
    Ok(())
}

fn row(times: &Times) -> String {
    let values = [
        times.mean,
        times.p50 as f64,
        times.p75 as f64,
        times.p90 as f64,
        times.p95 as f64,
        times.p99 as f64,
        times.p99_9 as f64,
        times.max as f64,
    ];
    values.map(|ns| format!(" {:>8}", show_ns(ns))).concat()
}
