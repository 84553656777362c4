//! The number and the content of requests.

use super::server::{Action, Server, ok};
use super::{ended, summary};

fn server() -> Server {
    Server::start(|_| Action::Send(ok(b"0123456789")))
}

#[test]
fn the_number_of_requests_is_exact() {
    let server = server();
    let summary = summary(&format!("{}/x -c 7 -n 1000", server.url()));
    assert_eq!(summary.requests.served, 1000);
    assert_eq!(summary.requests.unfinished, 0);
    assert_eq!(summary.latency.count, 1000);
    assert_eq!(summary.statuses, [(200, 1000)].into());
    assert_eq!(summary.bytes, 1000 * ok(b"0123456789").len() as u64);
    let by_seconds: u64 = summary.seconds.iter().map(|second| second.served).sum();
    assert_eq!(by_seconds, 1000);
    assert_eq!(
        server.see(|seen| (seen.requests, seen.connections)),
        (1000, 7)
    );
    assert_eq!(summary.connect_before.count, 7);
    assert!((0.0..=1.0).contains(&summary.fairness.jain));
    let (least, most) = (summary.fairness.served_min, summary.fairness.served_max);
    assert!(least <= 1000 / 7 && most > 1000 / 7, "{least} to {most}");
}

#[test]
fn connections_are_made_anew() {
    let server = server();
    let summary = summary(&format!(
        "{} -c 4 -n 100 --requests-per-connection 5",
        server.url()
    ));
    assert_eq!((summary.requests.served, summary.requests.failed), (100, 0));
    let seen = server.see(|seen| (seen.connections, seen.per_connection.clone()));
    // Connections from before the measurement, and from the measurement.
    assert_eq!(seen.0 as u64, 4 + summary.connect.count);
    assert!(seen.1.iter().all(|&count| count <= 5), "{seen:?}");
    assert!((20..=24).contains(&seen.0), "{seen:?}");
    assert_eq!(summary.response.count, 100);
}

#[test]
fn connections_end_as_asked() {
    let check = |how: &str, announced: bool| {
        let server = server();
        let options = format!("-c 1 -n 10 --requests-per-connection 2 --close-by {how}");
        let summary = summary(&format!("{} {options}", server.url()));
        assert_eq!(
            (summary.requests.served, summary.requests.failed),
            (10, 0),
            "{how}"
        );
        let (head, _) = server.see(|seen| seen.last.take()).expect("a request");
        assert_eq!(
            head.contains("Connection: close"),
            announced,
            "{how}: {head}"
        );
    };
    check("header", true);
    check("client", false);
    check("reset", false);
}

#[test]
fn servers_may_close_after_an_answer() {
    let server =
        Server::start(|_| Action::SendAndClose(b"HTTP/1.1 200 OK\r\n\r\nto the end".to_vec()));
    let summary = summary(&format!("{} -c 2 -n 20", server.url()));
    assert_eq!((summary.requests.served, summary.requests.failed), (20, 0));
}

#[test]
fn requests_go_together() {
    let server = server();
    let summary = summary(&format!("{} -c 1 -n 64 --pipeline 8", server.url()));
    assert_eq!((summary.requests.served, summary.requests.failed), (64, 0));
    assert!(server.see(|seen| seen.together_max) > 1);
}

#[test]
fn the_request_is_sent_with_its_fields() {
    let server = server();
    let url = server.url();
    let check = |options: &str, begins: &str, body: &[u8]| {
        let summary = summary(&format!("{url}/a?b -c 1 -n 1 {options}"));
        assert_eq!(summary.requests.served, 1, "{options}");
        let (head, seen) = server.see(|seen| seen.last.take()).expect("a request");
        assert!(head.starts_with(begins), "{options}: {head}");
        assert_eq!(seen, body, "{options}");
    };
    let host = format!("Host: 127.0.0.1:{}\r\n", server.port);
    check("", &format!("GET /a?b HTTP/1.1\r\n{host}\r\n"), b"");
    check("-H Host:x", "GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n", b"");
    check(
        "--body abc -H A:1 -H B:2",
        &format!("POST /a?b HTTP/1.1\r\n{host}Content-Length: 3\r\nA: 1\r\nB: 2\r\n\r\n"),
        b"abc",
    );
    // Larger than one write to a socket.
    let large = vec![b'x'; 3_000_000];
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), &large).expect("there is room");
    let options = format!("-X PUT --body-file {}", file.path().display());
    check(&options, "PUT /a?b HTTP/1.1\r\n", &large);
}

#[test]
fn answers_to_head_have_no_body() {
    let server = Server::start(|_| {
        Action::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".to_vec())
    });
    let summary = summary(&format!("{} -X HEAD -c 1 -n 10", server.url()));
    assert_eq!((summary.requests.served, summary.requests.failed), (10, 0));
}

#[test]
fn an_open_loop_makes_its_requests() {
    let server = server();
    let summary = summary(&format!("{} -c 3 --rate 1000 -n 300", server.url()));
    assert_eq!(summary.requests.served, 300);
    let requests = &summary.requests;
    assert_eq!((requests.unfinished, requests.never_sent), (0, 0));
    assert_eq!(summary.parameters.rate_per_s, Some(1000.0));
    // No request is sent before it is due, and the last of these is due after 299 ms.
    assert!(summary.measured_s >= 0.29, "{}", summary.measured_s);
}

#[test]
fn latency_counts_from_when_a_request_is_due() {
    // The only connection is busy with its first request, which times out after a second.
    let server = Server::start(|request| match request.number {
        0 => Action::Hang,
        _ => Action::Send(ok(b"x")),
    });
    let options = "-c 1 --rate 100 -n 20 --timeout 1s";
    let summary = summary(&format!("{} {options}", server.url()));
    assert_eq!((summary.requests.served, summary.requests.failed), (19, 1));
    // The second request was due after 10 ms, and was sent after a second.
    assert!(summary.latency.max >= 980_000_000, "{:?}", summary.latency);
}

#[test]
fn the_process_of_the_server_is_measured() {
    let server = server();
    let pid = std::process::id();
    let summary = summary(&format!("{} -c 2 -n 2000 --pid {pid}", server.url()));
    let server = summary.cpu.server.expect("it was asked for");
    assert_eq!(server.pid, pid);
    assert!(server.seconds > 0.0 && server.ms_per_1000_requests > 0.0);
    assert!(summary.cpu.generator_s > 0.0);
}

#[test]
fn the_table_has_every_figure() {
    let server = server();
    let (status, text) = ended(&format!("{} -c 2 -n 1234", server.url()));
    assert_eq!(status, 0, "{text}");
    for part in [
        "1,234",
        "requests/s",
        "latency",
        "p99.9",
        "fairness",
        "own CPU",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
