//! The command `tussah load files`.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::load::files::{FileSet, generate};
use crate::load::units::{show_bytes, show_count};

/// Write a set of files like that of SPECweb99, to be served and loaded with --files.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// How large it is to be: 100MB are 20 directories and 720 files, 3.3GB (that of the SEDA paper) 678 and 24,408
    #[arg(long, default_value = "100MB", value_parser = FileSet::of_size)]
    size: FileSet,

    /// Where; it is made if it is missing, and what is there already stays
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
                "{}: {} directories, {} files, {}; {} written, {} were there",
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
