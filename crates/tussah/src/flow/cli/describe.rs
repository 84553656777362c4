//! The command `describe`.

use std::process::ExitCode;

use super::Program;

/// Prints the manifest of the program's modules.
pub(super) fn run(program: &Program) -> ExitCode {
    let manifest = serde_json::to_string_pretty(program.modules.signatures());
    println!("{}", manifest.expect("a manifest has only text keys"));
    ExitCode::SUCCESS
}
