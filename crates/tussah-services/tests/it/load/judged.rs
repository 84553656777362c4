//! The verdict, the output and the end of a run.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use tussah_services::load::Summary;

use super::server::{Action, Server, ok};
use super::{command, ended, output, summary};

fn server() -> Server {
    Server::start(|_| Action::Send(ok(b"x")))
}

#[test]
fn bounds_set_the_exit_status() {
    let server = server();
    let check = |options: &str, expected: i32, part: &str| {
        let (status, text) = ended(&format!("{} -c 1 -n 10 {options}", server.url()));
        assert_eq!(status, expected, "{options}: {text}");
        assert!(text.contains(part), "{options}: {text}");
    };
    check(
        "--expect errors<=0% --expect p99<1h",
        0,
        "errors<=0% met: 0.000 %",
    );
    check(
        "--expect errors<=0% --expect rate>1e9",
        3,
        "rate>1e9 NOT MET",
    );
    check("--expect connect.max<1h", 3, "not measured");
    check("--expect fast", 2, "p99<20ms");
}

#[test]
fn a_run_in_which_nothing_was_served_has_failed() {
    let check = |answer: &'static [u8], expected: &str| {
        let server = Server::start(|_| Action::Send(answer.to_vec()));
        let load = format!("{} -c 2 -n 20 --retry-pause 0s", server.url());
        for options in ["", "--expect busy>=0%"] {
            let (status, text) = ended(&format!("{load} {options}"));
            assert_eq!(status, 1, "{options}: {text}");
            assert!(text.contains(expected), "{options}: {text}");
        }
    };
    check(
        b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
        "the server served no request: 20 failed, 0 were rejected",
    );
    check(
        b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n",
        "the server served no request: 0 failed, 20 were rejected",
    );
    // One success in four is enough for a result, which reports the number of failures.
    let server = Server::start(|request| match request.number % 4 {
        0 => Action::Send(ok(b"x")),
        _ => Action::Send(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n".to_vec()),
    });
    let (status, text) = ended(&format!("{} -c 1 -n 20 --retry-pause 0s", server.url()));
    assert_eq!(status, 0, "{text}");
}

#[test]
fn goodput_is_reported() {
    let server = Server::start(|request| match request.number % 4 {
        0 => Action::Send(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_vec()),
        _ => Action::Send(ok(b"x")),
    });
    let load = |options: &str| format!("{} -c 1 -n 40 --retry-pause 0s {options}", server.url());
    let check = |limit: &str, count: u64, share: f64| {
        let summary = summary(&load(&format!("--within {limit}")));
        let within = summary.within.expect("it was asked for");
        assert_eq!((within.count, within.share), (count, share), "{limit}");
        // JSON loses at most the last digit.
        let off = within.per_s * summary.measured_s - count as f64;
        assert!(off.abs() < 1e-6, "{limit}: {off}");
    };
    check("1h", 30, 0.75);
    check("1ns", 0, 0.0);
    assert_eq!(summary(&load("")).within, None);
    let check = |options: &str, expected: i32, part: &str| {
        let (status, text) = ended(&load(options));
        assert_eq!(status, expected, "{options}: {text}");
        assert!(text.contains(part), "{options}: {text}");
    };
    check(
        "--within 1h --expect within>=75% --expect goodput>0",
        0,
        "within>=75% met: 75.000 %",
    );
    check(
        "--within 1ns --expect goodput>0",
        3,
        "goodput>0 NOT MET: 0.0",
    );
    check("--within 1h", 0, "requests/s, 75.000 % of all");
    check("--expect within>0%", 2, "needs --within");
    check("--expect goodput>0", 2, "needs --within");
    check("--expect cpu<1h", 2, "needs --pid");
    check("--within 0s", 2, "above zero");
}

#[test]
fn without_an_answer_there_are_no_times() {
    let server = Server::start(|_| {
        Action::Send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec())
    });
    let (_, text) = ended(&format!("{} -c 1 -n 2", server.url()));
    assert!(text.contains("status 404"), "{text}");
    assert!(!text.contains("p99"), "{text}");
}

#[test]
fn cpu_time_is_divided_by_all_answers() {
    let server = Server::start(|_| {
        Action::Send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec())
    });
    let options = format!("-c 1 -n 10 --retry-pause 0s --pid {}", std::process::id());
    let cpu = summary(&format!("{} {options}", server.url())).cpu;
    let server = cpu.server.expect("it was asked for");
    let off = server.ms_per_1000_requests * 10.0 - server.seconds * 1e6;
    assert!(off.abs() <= server.seconds, "{server:?}");
}

#[test]
fn arguments_that_make_no_sense() {
    let check = |arguments: &str, part: &str| {
        let (status, text) = ended(arguments);
        assert_eq!(status, 2, "{arguments}: {text}");
        assert!(text.contains(part), "{arguments}: {text}");
    };
    check("ftp://127.0.0.1/", "http:// or https://");
    check("http://127.0.0.1:1 -c 0", "1..=10000");
    check("http://127.0.0.1:1 -c 10001", "1..=10000");
    check("http://127.0.0.1:1 -d 0s", "above zero");
    check("http://127.0.0.1:1 -d soon", "expected a duration");
    check("http://127.0.0.1:1 --rate 0", "requests a second");
    check(
        "http://127.0.0.1:1 --rate 10 --think 1s",
        "cannot be used with",
    );
    check("http://127.0.0.1:1 -H nonsense", "Accept: text/html");
    check("http://127.0.0.1:1 --pid 4000000000", "no process");
    check("http://127.0.0.1:1 --body-file /no/such", "/no/such");
    check("compare /no/such /no/such", "/no/such");
}

#[test]
fn ctrl_c_prints_the_results_so_far() {
    let server = server();
    let mut child = command(&format!("{} -c 2 -d 1h --json -", server.url()))
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    while server.see(|seen| seen.requests) < 100 {
        std::thread::yield_now();
    }
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).expect("it runs");
    let mut json = String::new();
    let mut stdout = child.stdout.take().expect("it is piped");
    stdout.read_to_string(&mut json).expect("it is text");
    assert!(child.wait().expect("it ends").success());
    let summary: Summary = serde_json::from_str(&json).expect("it has the format");
    assert!(summary.interrupted);
    assert!(summary.requests.served > 0);
}

#[test]
fn results_in_files() {
    let server = server();
    let root = tempfile::tempdir().expect("a directory");
    let path = |name: &str| root.path().join(name).display().to_string();
    let run = |name: &str, count: u32| {
        let files = format!("--json {} --svg {}", path(name), path("plot.svg"));
        let output = output(&format!("{} -c 1 -n {count} {files}", server.url()));
        assert!(output.status.success());
    };
    run("before.json", 100);
    run("after.json", 200);
    let svg = fs::read_to_string(path("plot.svg")).expect("it was written");
    assert!(
        svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    let compare = format!("compare {} {}", path("before.json"), path("after.json"));
    let (status, text) = ended(&compare);
    assert_eq!(status, 0, "{text}");
    assert!(
        text.contains("latency p99") && text.contains("different parameters"),
        "{text}"
    );
    let json = fs::read_to_string(path("after.json")).expect("it was written");
    let later = json.replacen("\"version\": 1", "\"version\": 2", 1);
    fs::write(path("after.json"), later).expect("there is room");
    let (status, text) = ended(&compare);
    assert_eq!(status, 2);
    assert!(
        text.contains("expected results of version 1, not 2"),
        "{text}"
    );
    let (status, text) = ended(&format!("{} -n 1 --json /no/such", server.url()));
    assert_eq!(status, 1);
    assert!(text.contains("/no/such"), "{text}");
}

#[test]
fn results_that_cannot_be_written() {
    let server = server();
    for options in ["--json -", "", "--expect errors<=0%"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full");
        let output = command(&format!("{} -c 1 -n 1 {options}", server.url()))
            .stdout(full.expect("it is there"))
            .output()
            .expect("the command starts");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{options}: {text}");
        assert!(
            text.contains("cannot write the results"),
            "{options}: {text}"
        );
    }
}
