//! The command `tussah load compare`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

/// Compares two runs by their JSON.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The run that the other is measured by
    before: PathBuf,
    /// The run that is judged
    after: PathBuf,
}

pub(super) fn run(_: &Arguments) -> ExitCode {
    super::failed("not yet")
}
