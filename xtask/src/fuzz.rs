//! `cargo xtask fuzz`: runs the fuzz targets of the parsers, and sums their hours in
//! `record/fuzz.txt`.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;

use crate::ci::{NIGHTLY, Rustup};
use crate::process::{self, End, Interrupt};
use crate::record;

#[derive(Args)]
pub(crate) struct Options {
    /// Time for each target, in minutes
    #[arg(long, value_name = "MINUTES", default_value_t = 10)]
    minutes: u64,
    /// Run only this target (repeatable, or a comma-separated list)
    #[arg(long, value_name = "TARGET", value_delimiter = ',')]
    only: Vec<String>,
    /// Discard the recorded hours of the selected targets; use this after changing a target's
    /// parser
    #[arg(long)]
    from_zero: bool,
}

/// The crates with fuzz targets. The names of the targets differ.
const CRATES: &[&str] = &["tussah-weave", "tussah-wire"];
/// The interval of progress lines.
const PROGRESS: Duration = Duration::from_secs(30);
/// The command prefix that runs a program at idle priority.
const IDLE: &[&str] = &["chrt", "--idle", "0"];
/// The platform that cargo-fuzz builds for.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The name of the record.
const RECORD: &str = "fuzz";
const HEAD: &str = "target          inputs  CPU hours  findings";

/// The totals of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    inputs: u64,
    cpu_hours: f64,
    findings: u64,
}

/// Fuzzes the selected targets and returns whether there were no findings.
///
/// # Errors
///
/// Returns an error if a toolchain or cargo-fuzz is missing, if a target does not build, or if the
/// record cannot be read or written.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<bool> {
    let interrupt = Interrupt::install()?;
    let mut homes: BTreeMap<String, PathBuf> = BTreeMap::new();
    for name in CRATES {
        let home = root.join("crates").join(name);
        let names = targets(&std::fs::read_to_string(home.join("fuzz/Cargo.toml"))?)?;
        homes.extend(names.into_iter().map(|target| (target, home.clone())));
    }
    let all: Vec<String> = homes.keys().cloned().collect();
    if let Some(unknown) = options.only.iter().find(|name| !all.contains(name)) {
        bail!(
            "unknown fuzz target {unknown}; known are {}",
            all.join(", ")
        );
    }
    let selected = |name: &String| options.only.is_empty() || options.only.contains(name);
    let recorded = std::fs::read_to_string(root.join("record/fuzz.txt")).unwrap_or_default();
    let mut sums = parse(&recorded);
    sums.retain(|name, _| all.contains(name) && !(options.from_zero && selected(name)));
    let mut command = format!("cargo xtask fuzz --minutes {}", options.minutes);
    if !options.only.is_empty() {
        command.push_str(&format!(" --only {}", options.only.join(",")));
    }
    let mut found = 0;
    for name in all.iter().filter(|name| selected(name)) {
        let done = fuzz(&homes[name], name, options.minutes, &interrupt)?;
        found += done.findings;
        let sum = sums.entry(name.clone()).or_default();
        sum.inputs += done.inputs;
        sum.cpu_hours += done.cpu_hours;
        sum.findings += done.findings;
        record::write(root, RECORD, &command, &table(&sums))?;
        if interrupt.is_set() {
            break;
        }
    }
    println!("{}", table(&sums));
    Ok(found == 0)
}

/// Fuzzes one target.
fn fuzz(home: &Path, name: &str, minutes: u64, interrupt: &Interrupt) -> anyhow::Result<Sum> {
    println!("==> {name}: building");
    // The fuzzer runs without Cargo around it. It is then a child of this process, so that its CPU
    // time counts even after an interrupt. Cargo would leave the fuzzer running.
    let built = home.join("fuzz/target");
    let mut build = cargo_fuzz()?;
    build.args(["build", name, "--target", TARGET, "--target-dir"]);
    build.arg(&built).current_dir(home);
    match process::run(&mut build, None, interrupt, |_| ControlFlow::Continue(()))? {
        End::Interrupted => return Ok(Sum::default()),
        end if !end.is_success() => bail!(
            "{name} does not build; is cargo-fuzz installed? `cargo install cargo-fuzz --locked`"
        ),
        _ => {}
    }
    let log = built.join(name).with_extension("log");
    let output = File::create(&log).with_context(|| format!("cannot create {}", log.display()))?;
    let corpus = format!("fuzz/corpus/{name}");
    std::fs::create_dir_all(home.join(&corpus)).context("cannot create the corpus")?;
    let mut fuzzer = Command::new(IDLE[0]);
    fuzzer.args(&IDLE[1..]).current_dir(home);
    fuzzer.arg(built.join(TARGET).join("release").join(name));
    fuzzer.arg(corpus);
    if name == "connection" {
        fuzzer.arg("tests/corpus");
    }
    let max_len = if name == "values" { 256 } else { 4096 };
    if home.join("fuzz/http.dict").exists() {
        fuzzer.arg("-dict=fuzz/http.dict");
    }
    fuzzer.arg("-print_final_stats=1");
    let artifacts = home.join(format!("fuzz/artifacts/{name}/"));
    std::fs::create_dir_all(&artifacts).context("cannot create the directory of the findings")?;
    fuzzer.arg(format!("-artifact_prefix={}", artifacts.display()));
    fuzzer.arg(format!("-max_total_time={}", minutes * 60));
    fuzzer.arg(format!("-max_len={max_len}"));
    fuzzer.stdout(Stdio::null()).stderr(output);
    println!("==> {name}: {minutes} minutes");
    let cpu = children_cpu();
    let mut next = PROGRESS;
    let end = process::run(&mut fuzzer, None, interrupt, |elapsed| {
        if elapsed >= next {
            next += PROGRESS;
            println!("    {} s: {}", elapsed.as_secs(), last_line(&log));
        }
        ControlFlow::Continue(())
    })?;
    let text = String::from_utf8_lossy(&std::fs::read(&log)?).into_owned();
    let found = !end.is_success() && end != End::Interrupted;
    if found {
        println!("{text}");
    }
    Ok(Sum {
        inputs: inputs(&text),
        cpu_hours: (children_cpu() - cpu).as_secs_f64() / 3600.0,
        findings: u64::from(found),
    })
}

/// Returns `cargo fuzz` with the nightly toolchain.
fn cargo_fuzz() -> anyhow::Result<Command> {
    let rustup = Rustup { may_install: true };
    let mut cargo = rustup.cargo(NIGHTLY, &[]).map_err(anyhow::Error::msg)?;
    cargo.arg("fuzz").env_remove("LD_LIBRARY_PATH");
    Ok(cargo)
}

/// Returns the names of the targets.
fn targets(manifest: &str) -> anyhow::Result<Vec<String>> {
    let manifest: toml::Table = manifest.parse().context("fuzz/Cargo.toml does not parse")?;
    let bins = manifest.get("bin").and_then(toml::Value::as_array);
    let names = bins
        .into_iter()
        .flatten()
        .filter_map(|bin| bin.get("name")?.as_str());
    Ok(names.map(str::to_owned).collect())
}

/// Returns the CPU time of all children that have been waited for, and of their descendants.
fn children_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // proc(5): the name in parentheses is field 2; `cutime` and `cstime` are fields 16 and 17.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields
        .split_whitespace()
        .skip(13)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok());
    Duration::from_secs_f64(
        ticks.sum::<u64>() as f64 / rustix::param::clock_ticks_per_second() as f64,
    )
}

/// Returns the number of inputs that a fuzzer reports: at its end, or else in its last line of
/// progress.
fn inputs(log: &str) -> u64 {
    let stat = |line: &str| {
        let number = line.strip_prefix("stat::number_of_executed_units:")?;
        number.trim().parse().ok()
    };
    let progress = |line: &str| {
        line.strip_prefix('#')?
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    };
    let lines = || log.lines().rev();
    lines()
        .find_map(stat)
        .or_else(|| lines().find_map(progress))
        .unwrap_or(0)
}

fn last_line(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rev().find(|line| line.starts_with('#'));
    line.unwrap_or("starting").to_owned()
}

fn table(sums: &BTreeMap<String, Sum>) -> String {
    let mut text = format!("{HEAD}\n");
    for (name, sum) in sums {
        let Sum {
            inputs,
            cpu_hours,
            findings,
        } = sum;
        text.push_str(&format!(
            "{name:<11}{inputs:>11}  {cpu_hours:>9.2}  {findings:>8}\n"
        ));
    }
    text
}

fn parse(record: &str) -> BTreeMap<String, Sum> {
    let rows = record.lines().skip_while(|line| *line != HEAD).skip(1);
    let row = |line: &str| {
        let mut fields = line.split_whitespace();
        let name = fields.next()?.to_owned();
        let inputs = fields.next()?.parse().ok()?;
        let cpu_hours = fields.next()?.parse().ok()?;
        let findings = fields.next()?.parse().ok()?;
        Some((
            name,
            Sum {
                inputs,
                cpu_hours,
                findings,
            },
        ))
    };
    rows.filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_as_it_is_written() {
        let sum = Sum {
            inputs: 13_900_000,
            cpu_hours: 4.25,
            findings: 1,
        };
        let sums = BTreeMap::from([
            ("connection".to_owned(), sum),
            ("values".to_owned(), Sum::default()),
        ]);
        let text = format!("$ cargo xtask fuzz\n2026-11-23\n\n{}", table(&sums));
        assert_eq!(parse(&text), sums);
    }

    #[test]
    fn inputs_are_counted_at_the_end_or_so_far() {
        let log = "#2\tINITED cov: 1\n#4096\tpulse  cov: 2\n";
        assert_eq!(inputs(log), 4096);
        let ended = format!("{log}Done\nstat::number_of_executed_units: 5000\nstat::x: 1\n");
        assert_eq!(inputs(&ended), 5000);
        assert_eq!(inputs(""), 0);
    }

    #[test]
    fn targets_are_the_programs_of_the_manifest() {
        let manifest = "[[bin]]\nname = \"a\"\n[[bin]]\nname = \"b\"\n";
        assert_eq!(targets(manifest).unwrap(), ["a", "b"]);
    }
}
