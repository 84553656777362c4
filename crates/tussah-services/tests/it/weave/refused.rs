//! Graphs that the system does not let start.

use std::fs::{File, Permissions};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use super::{run, tussah};

/// Writes a graph that prints `in.txt` beside an instance `last`, and returns its directory.
fn graph(last: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let module = last.split('(').next().filter(|it| *it != "FileLines");
    let module = module.map_or_else(String::new, |it| format!(", {it}"));
    let text = format!(
        "use FileLines, LinesOut{module}\n\n\
         graph Printer {{\n  lines = FileLines(\"in.txt\")\n  print = LinesOut()\n  \
         lines -> print\n  last = {last}\n}}\n"
    );
    std::fs::write(directory.path().join("printer.weave"), text).expect("a file");
    std::fs::write(directory.path().join("in.txt"), "one\ntwo\n").expect("a file");
    directory
}

/// Checks that the graph reports an error about `last`, and that no other instance has started.
#[track_caller]
fn check(outcome: (i32, String, String), expected: &str) {
    let expected = format!("error: printer.weave:7:3: `last` cannot start: {expected}\n");
    assert_eq!(outcome, (1, String::new(), expected));
}

fn start(directory: &Path) -> (i32, String, String) {
    tussah(directory, &["run", "printer.weave"])
}

#[test]
fn a_port_is_taken() {
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = tcp.local_addr().expect("it is bound");
    let directory = graph(&format!("TcpListen(\"{address}\")\n  last -> print"));
    let taken = "Address already in use (os error 98)";
    check(
        start(directory.path()),
        &format!("listen at {address}: {taken}"),
    );

    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = udp.local_addr().expect("it is bound");
    let directory = graph(&format!("UdpListen(\"{address}\")\n  last -> print"));
    check(
        start(directory.path()),
        &format!("bind to {address}: {taken}"),
    );
}

#[test]
fn a_file_is_missing_or_a_directory() {
    let directory = graph("FileLines(\"none.txt\")\n  last -> print");
    let expected = "cannot read none.txt: No such file or directory (os error 2)";
    check(start(directory.path()), expected);
    let directory = graph("FileAppend(\"none/out.txt\")\n  lines -> last");
    let expected = "cannot append to none/out.txt: No such file or directory (os error 2)";
    check(start(directory.path()), expected);
    let directory = graph("FileAppend(\".\")\n  lines -> last");
    check(
        start(directory.path()),
        "cannot append to .: Is a directory (os error 21)",
    );
}

#[test]
fn permission_is_denied() {
    let directory = graph("FileLines(\"secret.txt\")\n  last -> print");
    let allow = |path: &str, mode| {
        let path = directory.path().join(path);
        std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    };
    std::fs::write(directory.path().join("secret.txt"), "secret\n").expect("a file");
    allow("secret.txt", 0o000);
    allow(".", 0o755);
    // The system denies root nothing, so another user runs the command. That user may not see the
    // directory of the program, but can execute its open file.
    let program = File::open(env!("CARGO_BIN_EXE_tussah")).expect("the program");
    let mut command = Command::new("sh");
    command.args(["-c", "exec /proc/self/fd/0 run printer.weave"]);
    command.stdin(program).current_dir(directory.path());
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    let expected = "cannot read secret.txt: Permission denied (os error 13)";
    check(run(&mut command), expected);
}
