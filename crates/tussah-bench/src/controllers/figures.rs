//! Plots of the scenarios over time, and the figures of the papers with our controllers next to
//! those of the papers.
//!
//! The papers are on SEDA (Welsh, Culler and Brewer, SOSP 2001) and Aspen (Upadhyaya, Pai and
//! Midkiff, PPoPP 2007). Their servers and loads are not available; these stages run under loads of
//! the same kind.

use std::io;
use std::path::Path;

use tussah::stage::control::{
    self, Controller, Owns,
    policy::{Aspen, SedaBatch, SedaServlets},
};
use tussah::stage::sim::{Arrivals, Distribution, EventEnd, Outcome, Service, Simulation, Tick};
use tussah_plot::{Axis, Line, Panel, svg};

use super::contender::{Contender, Set};
use super::scenario::{self, Scenario};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const SEED: u64 = 1;

/// Draws the scenarios into a folder, and creates the folder if necessary.
pub fn draw(dir: &Path, scenarios: &[Scenario], contenders: &[&Contender]) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    for scenario in scenarios {
        let title = format!("{}: {}", scenario.name, scenario.about);
        let panels = over_time(scenario, contenders);
        write(dir, scenario.name, &title, &panels)?;
    }
    Ok(())
}

fn write(dir: &Path, name: &str, title: &str, panels: &[Panel]) -> io::Result<()> {
    std::fs::write(dir.join(format!("{name}.svg")), svg(title, panels))
}

/// Draws the papers' figures into an existing folder.
pub fn draw_papers(dir: &Path, contenders: &[&Contender]) -> io::Result<()> {
    write(
        dir,
        "seda-8",
        "As SEDA's figure 8: servlets of a stage that reads files, in three periods of rising load",
        &seda_8(),
    )?;
    write(
        dir,
        "seda-9",
        "As SEDA's figure 9: the batching controller under an oscillating load",
        &seda_9(),
    )?;
    write(
        dir,
        "seda-13",
        "As SEDA's figure 13: distribution of responses at ten times the capacity",
        &seda_13(contenders),
    )?;
    write(
        dir,
        "seda-14",
        "As SEDA's figure 14: 15 % of the events block for 20 ms",
        &seda_14(),
    )?;
    write(
        dir,
        "aspen-6",
        "As Aspen's figure 6: threads and their throughput, through peaks and pauses",
        &aspen_6(),
    )
}

fn panel(x: &str, y: &str, lines: Vec<Line>) -> Panel {
    Panel::new(Axis::new(x), Axis::new(y), lines)
}

fn line(name: &str, ticks: &[Tick], value: impl Fn(&Tick) -> f64) -> Line {
    Line {
        name: name.to_owned(),
        points: ticks
            .iter()
            .map(|tick| (tick.at_ns as f64 / 1e9, value(tick)))
            .collect(),
    }
}

/// Plots queue length, servlets, admissions and responses of all contenders.
fn over_time(scenario: &Scenario, contenders: &[&Contender]) -> Vec<Panel> {
    let runs: Vec<(&str, Vec<Tick>)> = contenders
        .iter()
        .filter_map(|contender| {
            let controllers = contender.controllers(scenario)?;
            let ticks = scenario.simulation.run(controllers, SEED, |_| {});
            Some((contender.name, ticks))
        })
        .collect();
    let tick_s = scenario.simulation.tick_ns as f64 / 1e9;
    let all = |value: &dyn Fn(&Tick) -> f64| {
        let lines = runs.iter().map(|(name, ticks)| line(name, ticks, value));
        lines.collect()
    };
    let admitted = |tick: &Tick| (tick.arrived - tick.rejected.min(tick.arrived)) as f64 / tick_s;
    let mut panels = vec![
        panel("s", "queue length", all(&|tick| tick.queue_len as f64)),
        panel("s", "servlets", all(&|tick| tick.servlets as f64)),
        panel("s", "admitted per second", all(&admitted)),
        panel(
            "s",
            "response, ms",
            all(&|tick| tick.response_mean_ns as f64 / 1e6),
        ),
    ];
    panels[0].y.is_logarithmic = true;
    panels[3].y.is_logarithmic = true;
    panels[3].mark = Some(scenario.target_ns() as f64 / 1e6);
    if scenario.settings.has(Owns::BATCH) {
        panels.push(panel("s", "batch", all(&|tick| tick.batch as f64)));
    }
    panels
}

fn set(controller: impl Controller) -> Set {
    vec![Box::new(controller)]
}

/// A function that makes a set of controllers.
type Make = fn() -> Set;

/// Returns the controllers for servlets, with the papers' parameters.
fn servlets() -> [(&'static str, Make); 3] {
    [
        ("seda", || set(SedaServlets::default())),
        ("aspen", || set(Aspen::default())),
        ("auto", || control::auto(None)),
    ]
}

/// Returns a stage whose servlets are OS threads that read from disks.
fn files(arrivals: Arrivals, until_ns: u64) -> Simulation {
    Simulation {
        until_ns,
        blocking: true,
        servlets: 1,
        batch_max: 1,
        arrivals,
        services: vec![(
            0,
            Service {
                wait: Distribution::Exponential(20e6),
                wait_share: 1.0,
                ..Service::computing(Distribution::Exponential(50_000.0))
            },
        )],
        tick_ns: SECOND / 2,
        ..Simulation::default()
    }
}

fn seda_8() -> Vec<Panel> {
    // Clients arrive in bursts of 2 s within periods of 30 s, with pauses of 20 s between the
    // periods.
    let mut rates = Vec::new();
    for (period, rate) in [(0u64, 250.0), (1, 500.0), (2, 750.0)] {
        let from_s = period * 50;
        for burst in 0..15 {
            let high = if burst % 2 == 0 { 1.5 } else { 0.5 };
            rates.push(((from_s + 2 * burst) * SECOND, rate * high));
        }
        rates.push(((from_s + 30) * SECOND, 0.5));
    }
    let simulation = files(Arrivals::steps(&rates), 150 * SECOND);
    let runs = servlets().map(|(name, set)| (name, simulation.run(set(), SEED, |_| {})));
    vec![
        panel(
            "s",
            "queue length",
            runs.iter()
                .map(|(name, ticks)| line(name, ticks, |tick| tick.queue_len as f64))
                .collect(),
        ),
        panel(
            "s",
            "servlets",
            runs.iter()
                .map(|(name, ticks)| line(name, ticks, |tick| tick.servlets as f64))
                .collect(),
        ),
    ]
}

fn seda_9() -> Vec<Panel> {
    // A single servlet makes the batch size decisive. The load oscillates with a period of 4 s and
    // drops suddenly at 16 s.
    let rates: Vec<_> = (0..240u64)
        .map(|step| {
            let phase = step as f64 / 40.0 * std::f64::consts::TAU;
            let drops = if step >= 160 { 0.4 } else { 1.0 };
            (step * 100 * MS, (50_000.0 - 35_000.0 * phase.cos()) * drops)
        })
        .collect();
    let simulation = Simulation {
        until_ns: 24 * SECOND,
        workers: 1,
        servlets: 1,
        servlets_max: 1,
        queue_max: 1000,
        arrivals: Arrivals::steps(&rates),
        services: vec![(
            0,
            Service {
                batch_ns: 50_000,
                ..Service::computing(Distribution::Exponential(12_000.0))
            },
        )],
        tick_ns: 100 * MS,
        ..Simulation::default()
    };
    let ticks = simulation.run(set(SedaBatch::default()), SEED, |_| {});
    vec![
        panel(
            "s",
            "output, events per second",
            vec![
                line("output", &ticks, |tick| tick.served as f64 * 10.0),
                line("offered", &ticks, |tick| tick.arrived as f64 * 10.0),
            ],
        ),
        panel(
            "s",
            "batch",
            vec![line("seda-batch", &ticks, |tick| tick.batch as f64)],
        ),
    ]
}

fn seda_13(contenders: &[&Contender]) -> Vec<Panel> {
    let all = scenario::all();
    let step = all.iter().find(|scenario| scenario.name == "step-10");
    let step = step.expect("it is one of the scenarios");
    let mut lines = Vec::new();
    for contender in contenders {
        let Some(controllers) = contender.controllers(step) else {
            continue;
        };
        let mut responses = Vec::new();
        step.simulation.run(controllers, SEED, |outcome| {
            if outcome.end == EventEnd::Served && outcome.ended_ns >= step.from_ns {
                responses.push(outcome.response_ns() as f64 / 1e6);
            }
        });
        responses.sort_by(f64::total_cmp);
        let all = responses.len().max(1) as f64;
        let every = responses.len().div_ceil(400).max(1);
        let points = responses.iter().enumerate().step_by(every);
        lines.push(Line {
            name: contender.name.to_owned(),
            points: points
                .map(|(at, ms)| (ms.max(1e-3).log10(), (at + 1) as f64 / all))
                .collect(),
        });
    }
    vec![panel(
        "response in ms, as a power of ten; the target is 0",
        "share of the answered events",
        lines,
    )]
}

fn seda_14() -> Vec<Panel> {
    let all = scenario::all();
    let blocking = all.iter().find(|scenario| scenario.name == "blocking");
    let blocking = &blocking.expect("it is one of the scenarios").simulation;
    let at = |rate: f64, tell: &mut dyn FnMut(&Outcome), set: Set| {
        let simulation = Simulation {
            arrivals: Arrivals::steps(&[(0, rate)]),
            ..blocking.clone()
        };
        simulation.run(set, SEED, tell)
    };
    let latency = |name: &str, set: &dyn Fn() -> Set| {
        let loads = [100.0, 200.0, 400.0, 600.0, 800.0, 1000.0];
        let point = |load: f64| {
            let (mut sum_ms, mut count) = (0.0, 0.0);
            let mut tell = |outcome: &Outcome| {
                if outcome.end == EventEnd::Served {
                    sum_ms += outcome.response_ns() as f64 / 1e6;
                    count += 1.0;
                }
            };
            at(load, &mut tell, set());
            (load, sum_ms / f64::max(count, 1.0))
        };
        Line {
            name: name.to_owned(),
            points: loads.map(point).to_vec(),
        }
    };
    let mut latencies = vec![latency("one servlet", &Set::new)];
    latencies.extend(servlets().map(|(name, set)| latency(name, &set)));
    let runs = servlets().map(|(name, set)| (name, at(1000.0, &mut |_| {}, set())));
    let lines = |value: fn(&Tick) -> f64| {
        let lines = runs.iter().map(|(name, ticks)| line(name, ticks, value));
        lines.collect::<Vec<_>>()
    };
    let mut panels = vec![
        panel("events per second", "mean response, ms", latencies),
        panel(
            "s, at 1000 per second",
            "queue length",
            lines(|tick| tick.queue_len as f64),
        ),
        panel(
            "s, at 1000 per second",
            "servlets",
            lines(|tick| tick.servlets as f64),
        ),
    ];
    panels[0].y.is_logarithmic = true;
    panels
}

fn aspen_6() -> Vec<Panel> {
    // Peaks last a minute and take 10 s to rise; pauses last half a minute.
    let mut rates = Vec::new();
    for peak in 0..3u64 {
        let from_s = peak * 90;
        rates.push((from_s * SECOND, 20.0));
        for ramp in 0..10 {
            let rate = 20.0 + 98.0 * (ramp + 1) as f64;
            rates.push(((from_s + 30 + ramp) * SECOND, rate));
        }
    }
    let simulation = files(Arrivals::steps(&rates), 270 * SECOND);
    let runs = servlets().map(|(name, set)| (name, simulation.run(set(), SEED, |_| {})));
    let mut threads = Vec::new();
    for (name, ticks) in &runs {
        threads.push(line(name, ticks, |tick| tick.servlets as f64));
        let mut mean = 0.0;
        let points = ticks.iter().map(|tick| {
            mean += (tick.servlets as f64 - mean) / 20.0;
            (tick.at_ns as f64 / 1e9, mean)
        });
        threads.push(Line {
            name: format!("{name}, mean of 10 s"),
            points: points.collect(),
        });
    }
    vec![
        panel(
            "s",
            "answers per second",
            runs.iter()
                .map(|(name, ticks)| line(name, ticks, |tick| tick.served as f64 * 2.0))
                .collect(),
        ),
        panel("s", "servlets", threads),
    ]
}
