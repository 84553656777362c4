//! The command `tussah`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tussah_services::load;

/// Serves the web, and loads servers, on the concurrency runtime tussah.
#[derive(Parser)]
#[command(name = "tussah", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Load(Box<load::cli::Arguments>),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Load(arguments) => load::cli::run(*arguments),
    }
}
