//! The report: a table for people, or JSON lines for `record/`.

use serde::Serialize;

use crate::cli::Options;
use crate::harness::PeerRuns;
use crate::metric::{Better, Metric, Summary};
use crate::workload::{self, Workload};

/// The values of one peer in one unit.
#[derive(Serialize)]
struct PeerLine<'a> {
    workload: &'a str,
    peer: &'a str,
    unit: &'a str,
    #[serde(flatten)]
    summary: Summary,
    #[serde(skip_serializing_if = "str::is_empty")]
    flags: &'a str,
}

/// Ratios of two peers, from pairs within one round.
#[derive(Serialize)]
struct RatioLine<'a> {
    workload: &'a str,
    ratio_of: &'a str,
    to: &'a str,
    unit: &'a str,
    #[serde(flatten)]
    summary: Summary,
    #[serde(skip_serializing_if = "str::is_empty")]
    flags: &'a str,
}

/// Prints every workload with its peers.
pub fn list() {
    for workload in workload::ALL {
        println!("{:<10} {}", workload.name, workload.about);
        let peers: Vec<_> = workload.peers.iter().map(|peer| peer.name).collect();
        println!("{:<10} peers: {}", "", peers.join(", "));
    }
}

/// Prints the values and the paired ratios of all peers.
pub fn print(options: &Options, workload: &Workload, all: &[PeerRuns]) {
    let flags = options.variant();
    let (peers, ratios) = lines(options, workload, all, &flags);
    if options.json {
        let peers = peers.iter().map(serde_json::to_string);
        for line in peers.chain(ratios.iter().map(serde_json::to_string)) {
            println!(
                "{}",
                line.expect("strings and numbers always have a JSON form")
            );
        }
        return;
    }
    println!(
        "{} {flags}  (allocator: {})",
        workload.name,
        crate::ALLOCATOR_NAME
    );
    println!("{}\n", workload.about);
    table(
        ["peer", "unit", "median", "min", "max", "runs"],
        peers.iter().map(PeerLine::cells),
    );
    if !ratios.is_empty() {
        println!(
            "\nfactor by which {} is better, from pairs of runs:\n",
            options.base
        );
        table(
            ["than", "in", "median", "min", "max", "runs"],
            ratios.iter().map(RatioLine::cells),
        );
    }
}

impl PeerLine<'_> {
    fn cells(&self) -> [String; 6] {
        cells(self.peer, self.unit, self.summary)
    }
}

impl RatioLine<'_> {
    fn cells(&self) -> [String; 6] {
        cells(self.to, self.unit, self.summary)
    }
}

/// Summarizes the runs: unit by unit, in the order in which the peers report them.
fn lines<'a>(
    options: &'a Options,
    workload: &'a Workload,
    all: &'a [PeerRuns],
    flags: &'a str,
) -> (Vec<PeerLine<'a>>, Vec<RatioLine<'a>>) {
    let mut units: Vec<(&str, Better)> = Vec::new();
    for metric in all
        .iter()
        .flat_map(|peer| peer.rounds.iter().flatten().flatten())
    {
        if units.iter().all(|(unit, _)| *unit != metric.unit) {
            units.push((&metric.unit, metric.better));
        }
    }
    let base = all.iter().find(|peer| peer.name == options.base);
    let (mut peers, mut ratios) = (Vec::new(), Vec::new());
    for (unit, better) in units {
        for peer in all {
            let values = (0..peer.rounds.len()).filter_map(|round| value(peer, round, unit));
            if let Some(summary) = Summary::of(values) {
                let (workload, peer) = (workload.name, peer.name);
                peers.push(PeerLine {
                    workload,
                    peer,
                    unit,
                    summary,
                    flags,
                });
            }
        }
        let Some(base) = base else { continue };
        for other in all.iter().filter(|peer| peer.name != base.name) {
            let pairs = (0..base.rounds.len()).filter_map(|round| {
                Metric::ratio(
                    better,
                    value(base, round, unit)?,
                    value(other, round, unit)?,
                )
            });
            if let Some(summary) = Summary::of(pairs) {
                let (workload, ratio_of, to) = (workload.name, base.name, other.name);
                ratios.push(RatioLine {
                    workload,
                    ratio_of,
                    to,
                    unit,
                    summary,
                    flags,
                });
            }
        }
    }
    (peers, ratios)
}

/// Returns the value of `unit` that `peer` reported in `round`.
fn value(peer: &PeerRuns, round: usize, unit: &str) -> Option<f64> {
    let metrics = peer.rounds.get(round)?.as_ref()?;
    metrics
        .iter()
        .find(|metric| metric.unit == unit)
        .map(|metric| metric.value)
}

fn cells(name: &str, unit: &str, summary: Summary) -> [String; 6] {
    let number = |value: f64| match value.abs() {
        1000.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    };
    let Summary {
        median,
        min,
        max,
        runs,
    } = summary;
    let numbers = [number(median), number(min), number(max), runs.to_string()];
    let [median, min, max, runs] = numbers;
    [name.to_owned(), unit.to_owned(), median, min, max, runs]
}

/// Prints rows in columns: two columns of text, then numbers.
fn table(head: [&str; 6], rows: impl Iterator<Item = [String; 6]>) {
    let rows: Vec<[String; 6]> = std::iter::once(head.map(str::to_owned))
        .chain(rows)
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; 6] = std::array::from_fn(|column| width(column).unwrap_or(0));
    for row in &rows {
        let [name, unit, numbers @ ..] = row;
        let mut line = format!("{name:<0$}  {unit:<1$}", widths[0], widths[1]);
        for (number, width) in numbers.iter().zip(&widths[2..]) {
            line.push_str(&format!("  {number:>width$}"));
        }
        println!("{}", line.trim_end());
    }
}
