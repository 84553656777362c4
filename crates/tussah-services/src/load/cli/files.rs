//! The command `tussah load files`.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::load::run::files::{FileSet, generate};
use crate::units::{show_bytes, show_count};

/// Create a file set like that of SPECweb99, for a server to serve while it is loaded with --files.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Size of the set: 100MB gives 20 directories and 720 files; 3.3GB (the SEDA paper's set)
    /// gives 678 directories and 24,408 files
    #[arg(long, default_value = "100MB", value_parser = FileSet::of_size)]
    size: FileSet,

    /// Directory for the set; the command creates the directory if necessary, and keeps files that
    /// are already complete
    directory: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let set = arguments.size;
    let is_seen = std::io::stderr().is_terminal();
    let progress = |done: usize| {
        if is_seen {
            eprint!("\r\x1b[K{done} of {} directories", set.directories());
        }
    };
    let result = generate(set, &arguments.directory, progress);
    if is_seen {
        eprint!("\r\x1b[K");
    }
    match result {
        Ok(made) => {
            println!(
                "{}: {} directories, {} files, {}; {} written, {} existed",
                arguments.directory.display(),
                set.directories(),
                show_count(set.files() as u64),
                show_bytes(set.bytes() as f64),
                show_count(made.written as u64),
                show_count(made.kept as u64),
            );
            ExitCode::SUCCESS
        }
        Err(error) => super::failed(&error.to_string()),
    }
}
