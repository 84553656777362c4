//! `tussah load` against small servers, whose behavior each test defines.

mod faults;
mod files;
mod judged;
mod requests;
mod server;
mod tls;
mod ways;

use std::process::{Command, Output, Stdio};

use tussah_services::load::Summary;

/// Returns the command with arguments, split at spaces.
fn command(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tussah"));
    command.arg("load").args(arguments.split_ascii_whitespace());
    command.stdin(Stdio::null());
    command
}

fn output(arguments: &str) -> Output {
    command(arguments).output().expect("the command starts")
}

/// Returns the results of a run.
fn summary(arguments: &str) -> Summary {
    let output = output(&format!("{arguments} --json -"));
    let error = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{arguments}: {error}"))
}

/// Returns the exit status and the output of a command.
fn ended(arguments: &str) -> (i32, String) {
    let output = output(arguments);
    let text = [output.stdout, output.stderr].concat();
    let status = output.status.code().expect("it ended by itself");
    (status, String::from_utf8(text).expect("it is text"))
}
