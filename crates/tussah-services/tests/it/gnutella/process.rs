//! The command: its start, its end, and its errors.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddrV4, TcpListener};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::servent::Servent;

fn command(options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tussah"));
    command.arg("gnutella").args(options).stdin(Stdio::null());
    command
}

#[test]
fn a_wrong_start_has_one_clear_error() {
    let check = |options: &[&str], code: i32, words: &[&str]| {
        let output = command(options).output().expect("it starts");
        let error = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(code), "{error}");
        for word in words {
            assert!(error.contains(word), "{error}");
        }
        if code == 1 {
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    };
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address").to_string();
    let free = "127.0.0.1:0";
    check(
        &["--listen", &taken, "--http", free],
        1,
        &[&taken, "in use"],
    );
    check(
        &["--listen", free, "--http", &taken],
        1,
        &[&taken, "in use"],
    );
    let free = ["--listen", free, "--http", free];
    let with = |more: &[&'static str]| [&free[..], more].concat();
    check(&with(&["--share", "/none"]), 1, &["/none", "No such file"]);
    check(&with(&["--hosts", "/none"]), 1, &["/none", "No such file"]);
    check(
        &with(&["--keep", "101"]),
        2,
        &["`keep` is 101: expected 0 to 100"],
    );
    check(&with(&["--peer", "host"]), 2, &["--peer", "host"]);
    check(&["--listen", "[::1]:1"], 2, &["--listen"]);
}

#[test]
fn a_signal_takes_leave_of_the_peers() {
    for signal in [Signal::INT, Signal::TERM] {
        let mut command = command(&["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
        command.args(["--workers", "2", "--keep", "0", "--verbose"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("the address");
        let words = line.strip_prefix("tussah gnutella: listening at ");
        let address = words.and_then(|rest| rest.split(' ').next());
        let address = address.unwrap_or_else(|| panic!("an address in {line:?}"));
        let address: SocketAddrV4 = address.parse().expect("an address");
        let mut servent = Servent::connect(address);
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        assert_eq!(servent.expect_bye(200), "this router shuts down");
        let mut rest = String::new();
        out.read_to_string(&mut rest).expect("text");
        let said = "tussah gnutella: shutting down: taking leave of the peers (signal again to quit now)\ntussah gnutella: stopped\n";
        assert_eq!(rest, said);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0));
        let log = String::from_utf8(output.stderr).expect("text");
        assert!(
            log.contains("a connection ended: this router shuts down"),
            "{log}"
        );
    }
}
