//! Messages on standard error when the log, the listeners or the files of the server fail.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write as _};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::net::sockopt::{socket_acceptconn, socket_type};
use rustix::pipe::{fcntl_setpipe_size, pipe};
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process, pidfd_getfd, pidfd_open,
};
use serde_json::Value;

use super::client::{Client, request};
use super::process::{Process, Site, until};
use crate::fastcgi::php::Php;

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("there is room");
}

/// Reads from a pipe what is there.
struct Reader(File);

impl Reader {
    fn open(path: &Path) -> Self {
        let mut options = File::options();
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        Self(
            options
                .read(true)
                .custom_flags(flags)
                .open(path)
                .expect("it is there"),
        )
    }

    /// Waits until these words have come, and gives all that has.
    #[track_caller]
    fn expect(&mut self, words: &str) -> String {
        let mut text = String::new();
        until(&format!("{words:?} comes"), || {
            let mut piece = [0; 4096];
            match self.0.read(&mut piece) {
                Ok(len) => text += &String::from_utf8_lossy(&piece[..len]),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            text.contains(words)
        });
        text
    }
}

#[test]
fn a_log_without_room_is_reported_once() {
    let mut server = Site::new().serve("--log-file /dev/full");
    assert_eq!(server.get("/a.txt").status, 200);
    let line = server.says("No space left on device");
    assert!(
        line.contains("ERROR") && line.contains("access log"),
        "{line}"
    );
    for _ in 0..3 {
        assert_eq!(server.get("/a.txt").status, 200);
    }
    server.signal(Signal::TERM);
    assert_eq!(server.ended().code(), Some(0));
    server.says("4 requests missing from the access log");
    assert_eq!(
        server.said().matches("No space left").count(),
        2,
        "{}",
        server.said()
    );
}

#[test]
fn a_log_says_why_requests_are_missing() {
    let site = Site::new();
    let path = site.path("log");
    fifo(&path);
    let mut reader = Reader::open(&path);
    let mut server = site.serve("--log-file {}/log");
    assert_eq!(server.get("/a.txt?1").status, 200);
    reader.expect("/a.txt?1");
    drop(reader);
    assert_eq!(server.get("/a.txt?2").status, 200);
    server.says("Broken pipe");
    let mut reader = Reader::open(&path);
    assert_eq!(server.get("/a.txt?3").status, 200);
    let text = reader.expect("Broken pipe (os error 32)\n");
    let lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines[0].contains("/a.txt?3"), "{text}");
    let remark = "# 1 request missing from this log: Broken pipe (os error 32)";
    assert_eq!(lines[1..], [remark], "{text}");
    server.says("the access log can be written again");
}

#[test]
fn a_log_that_nobody_reads_does_not_hold_up_the_start() {
    let site = Site::new();
    fifo(&site.path("log"));
    let mut command = site.command("--listen 127.0.0.1:0 --log-file {}/log");
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command is there");
    let mut status = None;
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        until("it ends", || {
            status = child.try_wait().expect("it is ours");
            status.is_some()
        });
    }));
    drop(child.kill());
    let mut text = String::new();
    let stderr = child.stderr.as_mut().expect("it is piped");
    stderr.read_to_string(&mut text).expect("it is text");
    assert!(ended.is_ok(), "{text:?}");
    assert_eq!(status.and_then(|status| status.code()), Some(1), "{text}");
    assert!(
        text.contains("log") && text.contains("a pipe without a reader"),
        "{text}"
    );
}

#[test]
fn a_log_that_cannot_be_reopened_is_reported() {
    let site = Site::new().file("logs/log", "");
    let mut server = site.serve("--log-file {}/logs/log");
    let (logs, moved) = (server.site.path("logs"), server.site.path("moved"));
    fs::rename(&logs, &moved).expect("it is there");
    server.signal(Signal::HUP);
    let line = server.says("cannot reopen the access log");
    assert!(
        line.contains("ERROR") && line.contains("No such file"),
        "{line}"
    );
    // It goes on where it is.
    assert_eq!(server.get("/a.txt?moved").status, 200);
    until("it is written", || {
        fs::read_to_string(moved.join("log")).is_ok_and(|log| log.contains("?moved"))
    });
}

#[test]
fn a_process_without_descriptors_says_so() {
    let mut server = Site::new().serve("--workers 1");
    assert_eq!(server.get("/a.txt").status, 200);
    server.limit_descriptors(40);
    let clients: Vec<_> = (0..60).map(|_| server.connect()).collect();
    let line = server.says("a free descriptor");
    assert!(line.contains("WARN"), "{line}");
    // However long that lasts, it says it a few times only.
    for mut client in clients {
        client.send(request("/a.txt", ""));
        assert_eq!(client.answer().status, 200);
    }
    let told = server.said().matches("a free descriptor").count();
    assert!(told < 20, "{told}: {}", server.said());
}

/// The listener of a server, as a descriptor of this process.
fn listener(server: &Process) -> TcpListener {
    let process = pidfd_open(server.pid(), PidfdFlags::empty()).expect("it lives");
    let sockets = (3..64).filter_map(|fd| pidfd_getfd(&process, fd, PidfdGetfdFlags::empty()).ok());
    let mut listeners = sockets.filter(|socket| {
        socket_type(socket).is_ok() && socket_acceptconn(socket).is_ok_and(|accepts| accepts)
    });
    listeners
        .next()
        .expect("we may look at our children")
        .into()
}

#[test]
fn a_server_that_can_accept_nothing_ends() {
    let mut server = Site::new().serve("");
    let mut kept = server.connect();
    assert_eq!(kept.ask(&request("/a.txt", "")).status, 200);
    let listener = listener(&server);
    rustix::net::shutdown(&listener, rustix::net::Shutdown::Both).expect("it listens");
    let address = server.address().to_string();
    let line = server.says("ERROR");
    assert!(
        line.contains(&address) && line.contains("Invalid argument"),
        "{line}"
    );
    assert_eq!(server.ended().code(), Some(1));
    server.says("every listener has failed");
}

#[test]
fn the_log_level_and_format_can_be_chosen() {
    let start = |options: &str| {
        let mut server = Site::new().serve(&format!("--log-file /dev/full {options}"));
        assert_eq!(server.get("/a.txt").status, 200);
        assert_eq!(server.connect().ask("GET\r\n\r\n").status, 400);
        server.signal(Signal::TERM);
        assert!(server.ended().success());
        server.says("stopped");
        server
    };
    let quiet = start("--diagnostics-level off");
    assert!(!quiet.said().contains("access log"), "{}", quiet.said());
    let usual = start("");
    assert!(!usual.said().contains("DEBUG"), "{}", usual.said());
    let mut chatty = start("--diagnostics-level debug");
    chatty.says("refused a request");
    assert!(!chatty.said().contains('\u{1b}'), "{}", chatty.said());
    let mut json = start("--diagnostics-format json");
    let line: Value = serde_json::from_str(&json.says("No space left")).expect("it is JSON");
    assert_eq!(line["level"], "ERROR");
    let message = line["fields"]["message"].as_str().expect("a message");
    assert!(message.contains("access log"), "{line}");
}

#[test]
fn the_log_level_can_be_changed_at_run_time() {
    let site = Site::new().file("site.toml", "diagnostics.level = \"off\"");
    let mut server = site.serve("--config {}/site.toml");
    assert_eq!(server.connect().ask("GET\r\n\r\n").status, 400);
    super::reload::reload(
        &mut server,
        "diagnostics.level = \"debug\"",
        super::reload::LOADED,
    );
    assert!(!server.said().contains("refused a request"));
    assert_eq!(server.connect().ask("GET\r\n\r\n").status, 400);
    server.says("refused a request");
}

/// A pipe with little room, of which nothing is read.
fn stalled() -> (OwnedFd, Stdio) {
    let (reader, writer) = pipe().expect("there are descriptors");
    fcntl_setpipe_size(&writer, 4096).expect("it is small");
    (reader, writer.into())
}

/// Has a server write much, and has it end.
#[track_caller]
fn expect_answers_and_the_end(mut server: Process) {
    for _ in 0..200 {
        assert_eq!(server.get("/a.txt").status, 200);
        assert_eq!(server.connect().ask("GET\r\n\r\n").status, 400);
    }
    server.signal(Signal::TERM);
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn a_slow_reader_of_standard_error_holds_up_nothing() {
    let site = Site::new();
    let mut command = site.command("--listen 127.0.0.1:0 --diagnostics-level debug");
    let (_reader, stderr) = stalled();
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(stderr);
    expect_answers_and_the_end(Process::start_as_is(site, command));
}

#[test]
fn a_slow_reader_of_standard_output_holds_up_nothing() {
    let site = Site::new();
    let socket = site.path("socket");
    let mut command = site.command("--listen unix:{}/socket --log-file -");
    let (_reader, stdout) = stalled();
    command.stdin(Stdio::null()).stdout(stdout);
    command.stderr(Stdio::null());
    let mut server = command.spawn().expect("the command is there");
    until("it listens", || UnixStream::connect(&socket).is_ok());
    for _ in 0..200 {
        let stream = UnixStream::connect(&socket).expect("it listens");
        assert_eq!(Client::new(stream).ask(&request("/a.txt", "")).status, 200);
    }
    kill_process(Pid::from_child(&server), Signal::TERM).expect("it is ours");
    let mut status = None;
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        until("it ends", || {
            status = server.try_wait().expect("it is ours");
            status.is_some()
        });
    }));
    drop(server.kill());
    assert!(ended.is_ok(), "it has not ended");
    assert_eq!(status.and_then(|status| status.code()), Some(0));
}

#[test]
fn a_closed_standard_error_is_harmless() {
    let site = Site::new();
    let mut command = site.command("--listen 127.0.0.1:0 --log-file /dev/full");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let full = File::options().write(true).open("/dev/full");
    command.stderr(full.expect("it is there"));
    let mut server = Process::start_as_is(site, command);
    for _ in 0..3 {
        assert_eq!(server.get("/a.txt").status, 200);
    }
    server.signal(Signal::TERM);
    assert_eq!(server.ended().code(), Some(0));
    drop(std::io::stdout().flush());
}

#[test]
fn messages_of_scripts_are_logged() {
    let php = Php::start();
    let code = "<?php error_log(\"first\\nsecond \\x1b[1m\"); echo 'here';";
    let site = Site::new().file("site/a.php", code);
    let mut server = site.serve(&format!("--php {}", php.address()));
    assert_eq!(server.get("/a.php").text(), "here");
    server.says("FastCGI application: PHP message: first");
    server.says("script=/a.php");
    server.says("FastCGI application: second \u{fffd}[1m");
}
