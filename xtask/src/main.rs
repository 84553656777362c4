//! The project's own tasks, run as `cargo xtask TASK`.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

mod api;
mod asan;
mod ci;
mod clients;
mod faults;
mod fuzz;
mod guide;
mod idle;
mod measure;
mod mutants;
mod php;
mod process;
mod record;
mod soak;
mod tidy;

/// The project's own tasks: the checks of CI, and commands that run on demand.
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
    /// Run every check that a change must pass
    ///
    /// The steps run in the order in which the help of --only lists them, fastest first. A step
    /// installs a missing toolchain through rustup; if the installation fails, the step is skipped,
    /// and the summary gives the reason. The exit status is non-zero if any step failed.
    Ci(ci::Options),
    /// Check the house rules that the compiler and clippy cannot check
    ///
    /// Checks the lengths of files and functions (exceptions: xtask/tidy-exceptions.toml), the
    /// files that contain `unsafe` code, and the first line of each file. Reports skipped tests.
    /// Checks the list of bounds in docs/bounds.md and the links in the pages. Also checks the
    /// writing rules for comments and pages (exceptions: xtask/prose-exceptions.toml). Each finding
    /// is printed as `path:line: what is wrong`.
    Tidy(TidyOptions),
    /// Compare the public interface of the libraries with the listings in api/
    ///
    /// Needs the nightly toolchain that xtask/src/api.rs names, and installs it through rustup if
    /// it is missing.
    Api(api::Options),
    /// Build the pages of docs as a book in target/book
    ///
    /// Needs mdbook: `cargo install mdbook --version 0.5.4 --locked`.
    Guide(guide::Options),
    /// Fuzz the parsers of tussah-wire and tussah-weave, and add the hours to record/fuzz.txt
    ///
    /// The targets run one after the other, each for the given time, at idle priority. Each finding
    /// becomes a file in the crate's fuzz/artifacts folder, and makes the exit status non-zero.
    /// Ctrl-C ends the run and records the results so far. Needs nightly and cargo-fuzz.
    Fuzz(fuzz::Options),
    /// Make each system call of the programs fail with each documented error, and check the
    /// consequences
    ///
    /// strace injects the error into the N-th matching call of each OS thread (--when). The program
    /// under test must then do its work, report what it could not do, or exit with a message and a
    /// non-zero status. The program must never fail silently, stop responding, or give a wrong
    /// result. The results are printed as a table, and written to record/faults.txt. The traces of
    /// runs that reveal a defect stay in target/faults. A full sweep takes about 30 minutes. Needs
    /// strace, curl, openssl and php-fpm.
    Faults(faults::Options),
    /// Introduce bugs into the core on purpose, and report those that no test detects
    ///
    /// Each mutant in xtask/mutants.toml replaces one piece of text in one file. The command
    /// applies the mutant to a copy of the tree, under target. At least one of the tests listed for
    /// the mutant must then fail. A mutant that survives makes the exit status non-zero, unless its
    /// field `survives` gives the reason. The result goes to record/mutants.txt. Each mutant takes
    /// about a minute.
    Mutants(mutants::Options),
    /// Stress all features of the scheduler at the same time, for minutes or hours
    ///
    /// Runs the program crates/tussah-core/examples/soak. The program prints a line every few
    /// seconds, and exits with an error at the first failed check. The result goes to
    /// record/soak.txt.
    Soak(soak::Options),
    /// Run the tests of tussah-core and tussah under AddressSanitizer
    ///
    /// Needs nightly. The result goes to record/asan.txt.
    Asan(asan::Options),
    /// Count how often the servers wake up when they have nothing to do
    ///
    /// Starts each server and example that waits for clients, lets it answer once, and counts the
    /// voluntary context switches of its OS threads in 10 s. Too many context switches make the
    /// exit status non-zero. The result goes to record/idle.txt. Takes about two minutes after a
    /// build.
    Idle,
    /// Measure tussah and its peers, and write one file for each table
    ///
    /// Builds tussah-bench and runs all variants of its workloads. The runs of tussah and its peers
    /// alternate. Each file contains the command and its output. The measurement takes several
    /// hours; run nothing else on the machine during the measurement. If fio is installed, the
    /// workload `disk` compares tussah with fio. With many idle pairs, the workload `fifo` needs a
    /// high limit on open files (ulimit -Hn). If valgrind is installed, the command also counts the
    /// instructions per thread in the workload `spawn`. With --web, the peers are servers that
    /// scripts/peers installs; the tables name any peer that is missing. Some tables count system
    /// calls or limit memory, which requires root.
    #[command(
        after_help = "Example:\n  cargo xtask record record/today wake burst 'echo --connections 1'"
    )]
    Record(measure::Options),
}

#[derive(Args)]
struct TidyOptions {
    /// Write docs/bounds.md, and lower the counts in xtask/prose-exceptions.toml
    #[arg(long)]
    bless: bool,

    /// Instead of checking, print 100 random sentences from the README, the docs, the help of
    /// options, and the rustdoc of public items, for a reader to judge
    #[arg(long, value_name = "SEED", conflicts_with = "bless")]
    sample: Option<u64>,
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Ci(options) => ci::run(&workspace_root(), &options),
        Task::Tidy(options) => match options.sample {
            Some(seed) => tidy::sample(&workspace_root(), seed),
            None => tidy::run(&workspace_root(), options.bless),
        },
        Task::Api(options) => api::run(&workspace_root(), &options),
        Task::Guide(options) => guide::run(&workspace_root(), &options),
        Task::Fuzz(options) => fuzz::run(&workspace_root(), &options),
        Task::Faults(options) => faults::run(&workspace_root(), &options),
        Task::Mutants(options) => mutants::run(&workspace_root(), &options),
        Task::Soak(options) => soak::run(&workspace_root(), &options),
        Task::Asan(options) => asan::run(&workspace_root(), &options),
        Task::Idle => idle::run(&workspace_root()),
        Task::Record(options) => measure::run(&workspace_root(), &options),
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

/// Returns the directory of the workspace's `Cargo.toml`.
///
/// The value that cargo provides at run time takes precedence over the value from the build,
/// because the tree may have been moved in between.
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
