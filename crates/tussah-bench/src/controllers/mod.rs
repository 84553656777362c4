//! The bake-off of controllers: `tussah-bench controllers`.
//!
//! Every scenario runs on the simulator of stages with every controller that owns one of the
//! settings that the scenario compares. All controllers get the same seeds.

mod bakeoff;
mod check;
mod contender;
mod cost;
mod figures;
mod oracle;
mod rank;
mod real;
mod scenario;
mod score;
mod table;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use self::contender::Contender;
use self::scenario::Scenario;

/// The cost of a rejection in the second table, in mean service times.
const CHARGED: f64 = 0.01;

/// Default numbers of runs: simulated runs, real runs, and simulated runs that accompany real ones.
const SEEDS: u32 = 100;
const SEEDS_REAL: u32 = 3;
const SEEDS_BESIDE: usize = 10;

/// Compare the controllers of stages on the simulator of stages.
///
/// Each scenario compares the controllers that own one setting; the default controllers own the
/// other settings. Every controller sees the same arrivals with the same service times.
#[derive(Clone, Debug, Parser)]
#[command(name = "tussah-bench controllers")]
pub struct Options {
    /// Scenarios to run, separated by commas
    #[arg(
        long,
        value_name = "NAME|all",
        default_value = "all",
        value_delimiter = ','
    )]
    scenario: Vec<String>,

    /// Controllers to run, separated by commas
    #[arg(
        long,
        value_name = "NAME|all",
        default_value = "all",
        value_delimiter = ','
    )]
    controller: Vec<String>,

    /// Number of runs of each controller in each scenario [default: 100, or 3 with --real]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    seeds: Option<u32>,

    /// Also run the scenarios on a real runtime, in an open loop, and report whether the
    /// controllers rank in the same order as in the simulation; scenarios that take minutes run
    /// only if you name them
    #[arg(long)]
    real: bool,

    /// Print one JSON object per line instead of tables
    #[arg(long)]
    json: bool,

    /// Folder for SVG plots of queue length, number of servlets, admissions and responses over
    /// time; with `--scenario all`, also for plots that reproduce figures of the SEDA and Aspen
    /// papers
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,

    /// Fail if a requirement is not met or, with --real, if the controllers rank in a different
    /// order than in the simulation
    #[arg(long)]
    check: bool,
}

/// Runs the benchmark with the arguments after `controllers`.
pub fn main(arguments: impl Iterator<Item = String>) -> ExitCode {
    let name = std::iter::once("controllers".to_owned());
    let options = Options::parse_from(name.chain(arguments));
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether everything that the options ask to check meets the requirements.
fn run(options: &Options) -> Result<bool, String> {
    let scenarios = scenarios(&options.scenario)?;
    let contenders = contenders(&options.controller)?;
    if options.real {
        return Ok(run_real(options, &scenarios, &contenders));
    }
    let seeds = options.seeds.unwrap_or(SEEDS) as usize;
    let heats = bakeoff::all(&scenarios, &contenders, seeds, true);
    let charged: Vec<Scenario> = scenarios
        .iter()
        .filter(|scenario| {
            scenario
                .settings
                .has(tussah::stage::control::Owns::ADMISSION)
        })
        .map(|scenario| scenario.charged(CHARGED))
        .collect();
    let charged = bakeoff::all(&charged, &contenders, seeds, false);
    if options.json {
        table::print_json(&heats, 0.0);
        table::print_json(&charged, CHARGED);
    } else {
        table::print(&heats);
        table::print_charged(&heats, &charged);
    }
    let checks = check::checks(&heats, seeds);
    if !options.json {
        check::print(&checks);
    }
    if let Some(dir) = &options.plots {
        draw(dir, options, &scenarios, &contenders).map_err(|error| error.to_string())?;
    }
    Ok(!options.check || checks.iter().all(|check| check.passed))
}

fn draw(
    dir: &Path,
    options: &Options,
    scenarios: &[Scenario],
    contenders: &[&Contender],
) -> io::Result<()> {
    figures::draw(dir, scenarios, contenders)?;
    if options.scenario.iter().any(|name| name == "all") {
        figures::draw_papers(dir, contenders)?;
    }
    Ok(())
}

/// Compares real runs with simulated runs. Returns whether the order is the same.
fn run_real(options: &Options, scenarios: &[Scenario], contenders: &[&Contender]) -> bool {
    let named = |scenario: &Scenario| options.scenario.iter().any(|name| name == scenario.name);
    let chosen: Vec<Scenario> = scenarios
        .iter()
        .filter(|s| s.simulation.until_ns <= real::RUN_NS_MAX || named(s))
        // The number of real permits never changes.
        .filter(|s| s.simulation.permits.len() <= 1)
        .cloned()
        .collect();
    let seeds = options.seeds.unwrap_or(SEEDS_REAL) as usize;
    let agreements = rank::all(&chosen, contenders, seeds, SEEDS_BESIDE);
    if options.json {
        for agreement in &agreements {
            table::print_json(std::slice::from_ref(&agreement.real), 0.0);
        }
    } else {
        rank::print(&agreements);
    }
    !options.check || rank::check(&agreements)
}

fn scenarios(names: &[String]) -> Result<Vec<Scenario>, String> {
    let all = scenario::all();
    select(names, &all, |scenario| scenario.name)
        .map(|chosen| chosen.into_iter().cloned().collect())
}

fn contenders(names: &[String]) -> Result<Vec<&'static Contender>, String> {
    select(names, contender::ALL, |contender| contender.name)
}

/// Returns the items with these names, or all items.
fn select<'a, T>(
    names: &[String],
    all: &'a [T],
    name_of: fn(&T) -> &'static str,
) -> Result<Vec<&'a T>, String> {
    if names.iter().any(|name| name == "all") {
        return Ok(all.iter().collect());
    }
    let find = |name: &String| {
        all.iter().find(|one| name_of(one) == name).ok_or_else(|| {
            let known: Vec<_> = all.iter().map(name_of).collect();
            format!("nothing is named {name:?}, but: {}", known.join(", "))
        })
    };
    names.iter().map(find).collect()
}
