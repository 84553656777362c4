//! The command `tussah load compare`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::load::report::compare::compare;
use crate::load::report::summary::{Summary, VERSION};

/// Print the results of two runs side by side, with the ratio and the better value for each
/// measure.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// JSON file with the results of the baseline run
    before: PathBuf,

    /// JSON file with the results of the run to compare with the baseline
    after: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    match read(&arguments.before).and_then(|before| Ok((before, read(&arguments.after)?))) {
        Ok((before, after)) => match super::print(&compare(&before, &after)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => super::failed(&error),
        },
        Err(error) => super::usage(&error),
    }
}

/// Reads the results of a run.
fn read(path: &Path) -> Result<Summary, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = fs::read(path).map_err(|error| failed(&error))?;
    let value: serde_json::Value = serde_json::from_slice(&text).map_err(|error| failed(&error))?;
    match value.get("version").and_then(serde_json::Value::as_u64) {
        Some(version) if version == u64::from(VERSION) => {
            serde_json::from_value(value).map_err(|error| failed(&error))
        }
        Some(version) => Err(failed(&format!(
            "expected results of version {VERSION}, not {version}"
        ))),
        None => Err(failed(&"expected results written by `tussah load --json`")),
    }
}
