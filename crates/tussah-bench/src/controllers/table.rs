//! The tables of the bake-off, for people and as JSON lines.

use serde::Serialize;

use super::bakeoff::Heat;
use super::score::Score;

#[derive(Serialize)]
struct Line<'a> {
    scenario: &'a str,
    controller: &'a str,
    charged: f64,
    target_ms: f64,
    seeds: usize,
    decision_ns: f64,
    goodput_worst: f64,
    tail: f64,
    #[serde(flatten)]
    median: Score,
}

/// Prints one JSON object per line.
pub fn print_json(heats: &[Heat], charged: f64) {
    for heat in heats {
        for entry in &heat.entries {
            let line = Line {
                scenario: heat.scenario.name,
                controller: entry.contender,
                charged,
                target_ms: heat.scenario.target_ns() as f64 / 1e6,
                seeds: entry.seeds.len(),
                decision_ns: entry.decision_ns,
                goodput_worst: entry.goodput_worst(),
                tail: entry.tail(),
                median: entry.median,
            };
            let line = serde_json::to_string(&line);
            println!(
                "{}",
                line.expect("strings and numbers always have a JSON form")
            );
        }
    }
}

const HEAD: [&str; 15] = [
    "controller",
    "goodput %",
    "worst %",
    "tail %",
    "p50 ms",
    "p90 ms",
    "p99 ms",
    "p99.9 ms",
    "rejected %",
    "reject ms",
    "Jain",
    "settled ms",
    "oscillation",
    "servlets",
    "ns/decision",
];

/// Prints a table for each scenario, with medians over the seeds, the worst goodput, and the share
/// of the seeds with a goodput below 85 % of the median.
pub fn print(heats: &[Heat]) {
    for heat in heats {
        let scenario = &heat.scenario;
        let seeds = heat.entries.first().map_or(0, |entry| entry.seeds.len());
        println!(
            "{}: {}\ntarget {} ms; {seeds} seeds\n",
            scenario.name,
            scenario.about,
            number(scenario.target_ns() as f64 / 1e6)
        );
        let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
        for entry in &heat.entries {
            let score = &entry.median;
            let mut row = vec![entry.contender.to_owned()];
            let figures = [
                score.goodput * 100.0,
                entry.goodput_worst() * 100.0,
                entry.tail() * 100.0,
                score.p50,
                score.p90,
                score.p99,
                score.p999,
                score.rejected * 100.0,
                score.reject,
                score.jain,
                score.settled,
                score.oscillation,
                score.servlets,
                entry.decision_ns,
            ];
            row.extend(figures.map(number));
            rows.push(row);
        }
        columns(&rows);
        println!();
    }
}

/// Prints the goodput of all contenders, with free rejections and with a charge for each.
pub fn print_charged(free: &[Heat], charged: &[Heat]) {
    if charged.is_empty() {
        return;
    }
    println!("goodput in %, and goodput when each rejection costs 1 % of a service\n");
    let head = [
        "scenario",
        "controller",
        "free",
        "charged",
        "p90 ms",
        "reject ms",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for heat in charged {
        let name = heat.scenario.name;
        let was = free.iter().find(|free| free.scenario.name == name);
        for entry in &heat.entries {
            let was = was.and_then(|free| free.entry(entry.contender));
            let score = &entry.median;
            rows.push(vec![
                name.to_owned(),
                entry.contender.to_owned(),
                number(was.map_or(0.0, |was| was.median.goodput) * 100.0),
                number(score.goodput * 100.0),
                number(score.p90),
                number(score.reject),
            ]);
        }
    }
    columns(&rows);
    println!();
}

/// Prints rows in columns: text left-aligned, and numbers right-aligned.
pub fn columns(rows: &[Vec<String>]) {
    let Some(head) = rows.first() else { return };
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..head.len()).map(|c| width(c).unwrap_or(0)).collect();
    for row in rows {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let text = matches!(head[at].as_str(), "scenario" | "controller");
            line.push_str(&if text {
                format!("{cell:<width$}  ")
            } else {
                format!("{cell:>width$}  ")
            });
        }
        println!("{}", line.trim_end());
    }
}

/// Formats a number with three significant digits.
pub fn number(value: f64) -> String {
    match value.abs() {
        f64::INFINITY => "never".to_owned(),
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.3}"),
    }
}
