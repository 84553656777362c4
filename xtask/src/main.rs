//! The project's own tasks, run as `cargo xtask TASK`.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

mod asan;
mod ci;
mod clients;
mod faults;
mod fuzz;
mod mutants;
mod process;
mod record;
mod soak;
mod tidy;

/// The project's own tasks: what runs in CI, and what keeps the tree tidy.
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run every check that a change has to pass
    ///
    /// The steps run in the order in which --only lists them, the cheap ones first. A step whose
    /// toolchain is missing installs it through rustup; where that cannot be done it is skipped,
    /// and the summary says so and why. The exit status is non-zero if any step failed.
    Ci(ci::Options),
    /// Check the rules of the house that the compiler and clippy do not check
    ///
    /// Sizes of files and functions (exceptions: xtask/tidy-exceptions.toml), where `unsafe` may
    /// stand, what may not be left in the code, the first line of each file, and the list of
    /// bounds in docs/bounds.md. Each finding is printed as `path:line: what is wrong`.
    Tidy(TidyOptions),
    /// Fuzz the parsers of tussah-wire, and add the hours to record/fuzz.txt
    ///
    /// Each target runs for the given time, one after the other, at idle priority. A finding is a
    /// file in crates/tussah-wire/fuzz/artifacts, and makes the exit status non-zero. Ctrl-C ends
    /// the run and records what was done until then. Needs nightly and cargo-fuzz.
    Fuzz(fuzz::Options),
    /// Make each system call of the programs fail, with each documented error, and look what becomes of them
    ///
    /// strace injects the error into the N-th such call of each OS thread (--when). After that the program
    /// has to do its work, to say what it could not do, or to end with a message and a non-zero status; it must
    /// never be silent, deaf or wrong. What was seen is printed as a table, and written to
    /// record/faults.txt if nothing was left out. Traces of defects stay in target/faults. A full sweep takes
    /// some 15 minutes. Needs strace, curl and openssl.
    Faults(faults::Options),
    /// Break the core on purpose, and tell which breaks no test notices
    ///
    /// Each mutant of xtask/mutants.toml replaces one text of one file, in a copy of the tree under
    /// target, and the tests that it names have to fail. A survivor that is not explained in the
    /// table makes the exit status non-zero. The result goes to record/mutants.txt. Takes about a
    /// minute for each mutant.
    Mutants(mutants::Options),
    /// Ask the scheduler for everything at once, for minutes or hours
    ///
    /// Runs crates/tussah-core/examples/soak, which prints a line every few seconds and ends with
    /// an error at the first check that is broken. The result goes to record/soak.txt.
    Soak(soak::Options),
    /// Run the tests of tussah-core and tussah under AddressSanitizer
    ///
    /// Needs nightly. The result goes to record/asan.txt.
    Asan(asan::Options),
}

#[derive(Args)]
struct TidyOptions {
    /// Write docs/bounds.md instead of comparing it with the code
    #[arg(long)]
    bless: bool,
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Ci(options) => ci::run(&workspace_root(), &options),
        Task::Tidy(options) => tidy::run(&workspace_root(), options.bless),
        Task::Fuzz(options) => fuzz::run(&workspace_root(), &options),
        Task::Faults(options) => faults::run(&workspace_root(), &options),
        Task::Mutants(options) => mutants::run(&workspace_root(), &options),
        Task::Soak(options) => soak::run(&workspace_root(), &options),
        Task::Asan(options) => asan::run(&workspace_root(), &options),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The directory of the workspace's `Cargo.toml`.
///
/// What cargo says now is preferred to what it said when this was compiled, because the tree may
/// have been moved in between.
fn workspace_root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map(Path::to_path_buf).unwrap_or(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
