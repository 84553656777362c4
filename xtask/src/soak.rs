//! `cargo xtask soak`: all functions of the scheduler at once, for minutes or hours.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::bail;
use clap::Args;

use crate::ci::cargo;
use crate::process::{self, End, Interrupt};
use crate::record;

#[derive(Args)]
pub(crate) struct Options {
    /// Duration in minutes
    #[arg(long, value_name = "MINUTES", default_value_t = 10)]
    minutes: u64,
    /// Seed for the random choices [default: a new seed for each run]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

/// Builds and runs the soak test, and returns whether every check passed.
///
/// # Errors
///
/// Returns an error if the soak test does not build, or the record cannot be written.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<bool> {
    let interrupt = Interrupt::install()?;
    let example = ["--release", "-p", "tussah-core", "--example", "soak"];
    let mut build = cargo();
    build
        .current_dir(root)
        .args(["build", "--quiet"])
        .args(example);
    match process::run(&mut build, None, &interrupt, |_| ControlFlow::Continue(()))? {
        End::Interrupted => return Ok(true),
        end if !end.is_success() => bail!("the soak does not build"),
        _ => {}
    }
    let mut soak = cargo();
    soak.current_dir(root)
        .args(["run", "--quiet"])
        .args(example);
    soak.arg("--").arg(options.minutes.to_string());
    soak.args(options.seed.map(|seed| seed.to_string()));
    let log = root.join("target/soak.log");
    let (end, text) = process::run_logged(&mut soak, &log, None, &interrupt, process::print)?;
    let mut command = format!("cargo xtask soak --minutes {}", options.minutes);
    if let Some(seed) = options.seed {
        command.push_str(&format!(" --seed {seed}"));
    }
    let held = matches!(end, End::Interrupted) || end.is_success();
    let outcome = match end {
        End::Interrupted => "interrupted; every check passed until then",
        _ if held => "every check passed",
        _ => "a check failed",
    };
    record::write(
        root,
        "soak",
        &command,
        &format!("{}\n{outcome}", ends(&text)),
    )?;
    Ok(held)
}

/// Returns the first line, which contains the seed, and the last line.
fn ends(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    match lines.next_back() {
        Some(last) => format!("{first}\n{last}"),
        None => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_and_the_last_line_are_kept() {
        assert_eq!(ends("seed 7\n5 s\n10 s\n"), "seed 7\n10 s");
        assert_eq!(ends("seed 7\n"), "seed 7");
        assert_eq!(ends(""), "");
    }
}
