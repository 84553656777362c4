//! `tussah load`, with little servers that do as each test wants.

mod faults;
mod files;
mod judged;
mod requests;
mod server;
mod tls;
mod ways;

use std::process::{Command, Output, Stdio};

use tussah_services::load::Summary;

/// The command with arguments, divided at blanks.
fn command(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tussah"));
    command.arg("load").args(arguments.split_ascii_whitespace());
    command.stdin(Stdio::null());
    command
}

fn output(arguments: &str) -> Output {
    command(arguments).output().expect("the command starts")
}

/// What a run has shown.
fn summary(arguments: &str) -> Summary {
    let output = output(&format!("{arguments} --json -"));
    let error = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{arguments}: {error}"))
}

/// How a command has ended, and what it has said.
fn ended(arguments: &str) -> (i32, String) {
    let output = output(arguments);
    let text = [output.stdout, output.stderr].concat();
    let status = output.status.code().expect("it ended by itself");
    (status, String::from_utf8(text).expect("it is text"))
}
