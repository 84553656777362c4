//! The command: its start, its end, and its errors.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::server::{Client, bytes};

fn command(directory: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tussah"));
    command.arg("video").arg(directory).args(options);
    command.stdin(Stdio::null());
    command
}

/// Returns the exit status and the errors of a command that ends by itself.
fn ended(directory: &Path, options: &[&str]) -> (i32, String) {
    let output = command(directory, options).output().expect("it starts");
    let code = output.status.code().expect("it ends by itself");
    (code, String::from_utf8(output.stderr).expect("text"))
}

/// A server that runs.
struct Process {
    child: Child,
    out: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Process {
    fn start(directory: &Path, options: &[&str]) -> Self {
        let mut command = command(directory, options);
        command.args(["--listen", "127.0.0.1:0", "--workers", "2"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("the address");
        let address = line
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("an address in {line:?}"));
        Self {
            address: address.parse().expect("an address"),
            child,
            out,
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("text");
        line
    }

    /// Returns the exit status and the rest of the output.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("text");
        (self.child.wait().expect("it ends").code(), rest)
    }
}

#[test]
fn a_wrong_start_has_one_clear_error() {
    let directory = tempfile::tempdir().expect("there is room");
    let path = directory.path();
    let check = |path: &Path, options: &[&str], code: i32, words: &[&str]| {
        let (found, error) = ended(path, options);
        assert_eq!(found, code, "{error}");
        for word in words {
            assert!(error.contains(word), "{error}");
        }
        error
    };
    let none = path.join("none");
    let error = check(
        &none,
        &[],
        1,
        &["cannot open the directory", "none", "No such file"],
    );
    assert_eq!(error.lines().count(), 1, "{error}");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let disk = ["--disk", ".=1MB/s"];
    let error = check(
        path,
        &["--listen", &address, disk[0], disk[1]],
        1,
        &[&address],
    );
    assert_eq!(error.lines().count(), 1, "{error}");
    check(
        path,
        &["--disk", "none=1MB/s"],
        1,
        &["cannot open the disk", "none"],
    );
    check(path, &["--disk", "/=1MB/s"], 1, &["not a directory inside"]);
    check(path, &["--disk", ".=1MB"], 2, &["expected a rate such as"]);
    check(
        path,
        &["--chunk", "61s"],
        2,
        &["`chunk` is 61s", "at most `ahead`"],
    );
    check(path, &["--ahead", "10h"], 2, &["`ahead` is 36000s"]);
}

#[test]
fn a_signal_lets_streams_continue() {
    let directory = tempfile::tempdir().expect("there is room");
    std::fs::write(directory.path().join("a.mp4"), bytes(12_000)).expect("there is room");
    let options = "--rate 80kbit/s --disk .=1MB/s --ahead 200ms --chunk 200ms --drain 20s";
    let options: Vec<_> = options.split(' ').collect();
    let mut process = Process::start(directory.path(), &options);
    let mut client = Client::connect(process.address);
    assert_eq!(client.play("/a.mp4").status, 200);
    let mut body = client.read(2000);
    process.signal(Signal::INT);
    assert!(process.line().contains("shutting down"));
    body.extend(client.read(10_000));
    assert!(body == bytes(12_000));
    drop(client);
    assert_eq!(
        process.ended(),
        (Some(0), "tussah video: stopped\n".to_owned())
    );
}

#[test]
fn streams_end_after_the_drain_time_or_a_second_signal() {
    let directory = tempfile::tempdir().expect("there is room");
    std::fs::write(directory.path().join("a.mp4"), bytes(1_000_000)).expect("there is room");
    for (drain, signals, last) in [
        ("100ms", 1, "tussah video: stopped\n"),
        ("10h", 2, "tussah video: stopped now; streams were cut\n"),
    ] {
        let options = ["--rate", "80kbit/s", "--disk", ".=1MB/s", "--drain", drain];
        let mut process = Process::start(directory.path(), &options);
        let mut client = Client::connect(process.address);
        client.play("/a.mp4");
        client.read(600_000);
        process.signal(Signal::INT);
        assert!(process.line().contains("shutting down"));
        if signals == 2 {
            process.signal(Signal::TERM);
        }
        assert_eq!(client.rest(), b"");
        assert_eq!(process.ended(), (Some(0), last.to_owned()));
    }
}

#[test]
fn a_file_at_its_size_limit_does_not_end_the_server() {
    let directory = tempfile::tempdir().expect("there is room");
    let mut process = Process::start(directory.path(), &[]);
    process.signal(Signal::XFSZ);
    process.signal(Signal::TERM);
    assert!(process.line().contains("shutting down"));
    assert_eq!(process.ended().0, Some(0));
}
