//! The kinds of failures.

use std::net::TcpListener;

use tussah_services::load::Summary;

use super::server::{Action, Server, ok};
use super::{ended, summary};

#[test]
fn kinds() {
    let check = |kind: &str, bytes: &'static [u8], closes: bool| {
        // The first answer is good, so that the number of the failing request is known.
        let server = Server::start(move |request| match (request.number, closes) {
            (0, _) => Action::Send(ok(b"good")),
            (_, true) => Action::SendAndClose(bytes.to_vec()),
            (_, false) => Action::Send(bytes.to_vec()),
        });
        let options = "-c 1 -n 3 --retry-pause 0s --timeout 1s";
        let summary = summary(&format!("{} {options}", server.url()));
        assert_eq!(summary.requests.served, 1, "{kind}");
        assert_eq!(summary.requests.failed, 2, "{kind}: {:?}", summary.errors);
        assert_eq!(summary.errors[kind], 2, "{kind}: {:?}", summary.errors);
    };
    check("closed_early", b"", true);
    check(
        "truncated",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        true,
    );
    check("truncated", b"HTTP/1.1 200 OK\r\nContent-", true);
    check(
        "timeout",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        false,
    );
    check("timeout", b"", false);
    check("bad_response", b"hello\r\n", true);
    check(
        "status",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        false,
    );
    check(
        "status",
        b"HTTP/1.1 500 Oh\r\nConnection: close\r\n\r\n",
        true,
    );
}

/// A server that sends more responses than requests.
#[test]
fn unsolicited_responses_are_errors() {
    let twice = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".repeat(2);
    let server = Server::start(move |_| Action::Send(twice.clone()));
    let options = "-c 2 -n 10 --retry-pause 0s";
    let summary = summary(&format!("{} {options}", server.url()));
    assert_eq!((summary.requests.served, summary.requests.failed), (10, 10));
    assert_eq!(summary.errors["unsolicited"], 10, "{:?}", summary.errors);
    // Each is closed. One client may connect again before the other makes the last request.
    let connections = server.see(|seen| seen.connections);
    assert!((10..=11).contains(&connections), "{connections}");
    let expected = format!("{} {options} --expect errors<=0%", server.url());
    let (status, text) = ended(&expected);
    assert_eq!(status, 3, "{text}");
    assert!(text.contains("unsolicited"), "{text}");
}

/// A server that also sends the beginning of another response.
#[test]
fn a_part_of_an_unsolicited_response_is_an_error() {
    let server = Server::start(|_| Action::Send([&ok(b"good")[..], b"HT"].concat()));
    let summary = summary(&format!("{} -c 1 -n 4 --retry-pause 0s", server.url()));
    assert_eq!((summary.requests.served, summary.requests.failed), (4, 4));
    assert_eq!(summary.errors["unsolicited"], 4, "{:?}", summary.errors);
}

#[test]
fn a_server_that_resets() {
    // A close with unread data resets the connection.
    let server = Server::start(|request| match request.number {
        0 => Action::Send(ok(b"good")),
        _ => Action::SendAndClose(Vec::new()),
    });
    let options = "-c 1 -n 2 --pipeline 1 --retry-pause 0s --body 0123456789 -H Content-Length:3";
    let summary = summary(&format!("{} {options}", server.url()));
    assert_eq!(summary.requests.failed, 1);
    let kinds = summary.errors["reset"] + summary.errors["closed_early"];
    assert_eq!(kinds, 1, "{:?}", summary.errors);
}

#[test]
fn rejections_are_apart() {
    let server = Server::start(|request| match request.number % 2 {
        0 => Action::Send(ok(b"good")),
        _ => Action::Send(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n".to_vec()),
    });
    let summary = summary(&format!("{} -c 1 -n 100 --retry-pause 0s", server.url()));
    assert_eq!(
        (summary.requests.served, summary.requests.rejected),
        (50, 50)
    );
    assert_eq!(summary.requests.failed, 0);
    assert_eq!(
        (summary.latency.count, summary.rejected_latency.count),
        (50, 50)
    );
    assert_eq!(summary.statuses, [(200, 50), (503, 50)].into());
}

#[test]
fn clients_honor_retry_after() {
    let answer = |wait: &str| {
        let answer = format!("HTTP/1.1 503 No\r\nContent-Length: 0\r\nRetry-After: {wait}\r\n\r\n");
        Server::start(move |_| Action::Send(answer.clone().into_bytes()))
    };
    // The clients would wait for an hour.
    let server = answer("3600");
    let summary_of = |server: &Server, options: &str| {
        let arguments = format!("{} -c 3 -d 1s --retry-pause 0s {options}", server.url());
        summary(&arguments).requests.rejected
    };
    assert_eq!(summary_of(&server, "--honor-retry-after"), 3);
    assert!(summary_of(&server, "") > 3);
    let server = answer("Fri, 31 Dec 2100 23:59:59 GMT");
    assert_eq!(summary_of(&server, "--honor-retry-after"), 3);
    let server = answer("18446744073709551615");
    assert_eq!(summary_of(&server, "--honor-retry-after"), 3);
    let server = answer("0");
    assert!(summary_of(&server, "--honor-retry-after") > 3);
}

#[test]
fn a_refused_connection_is_an_error() {
    let (_socket, address) = crate::refusing();
    let (status, text) = ended(&format!("http://{address} -c 2 -n 2"));
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("cannot connect: "), "{text}");
    assert!(text.contains("Connection refused"), "{text}");
}

#[test]
fn a_server_that_goes_away() {
    let server = Server::start(|request| match request.number {
        0..10 => Action::Send(ok(b"good")),
        _ => Action::Hang,
    });
    let summary = summary(&format!("{} -c 2 -d 2s", server.url()));
    assert_eq!(summary.requests.served, 10);
    assert_eq!(summary.requests.unfinished, 2);
    assert!(summary.requests.unfinished_wait_ns > 0);
}

#[test]
fn unanswered_requests_are_no_success() {
    let load = |options: &str| {
        let server = Server::start(|request| match request.number {
            0..10 => Action::Send(ok(b"good")),
            _ => Action::Hang,
        });
        summary(&format!(
            "{} -c 2 -d 2s --within 100ms {options}",
            server.url()
        ))
    };
    let within = |summary: &Summary| summary.within.as_ref().map_or(1.0, |within| within.share);
    // 200 requests are due, and most of them are never sent.
    let open = load("--rate 100");
    assert_eq!((open.requests.served, open.requests.unfinished), (10, 2));
    assert!(open.error_share() > 0.9, "{:?}", open.requests);
    assert!(within(&open) < 0.1, "{:?}", open.within);
    // Both connections wait. Their requests are too late, but not yet errors.
    let closed = load("");
    assert_eq!(
        (closed.requests.served, closed.requests.unfinished),
        (10, 2)
    );
    assert_eq!(closed.error_share(), 0.0);
    assert!(within(&closed) < 0.9, "{:?}", closed.within);
}

#[test]
fn a_server_that_never_answers() {
    let server = Server::start(|_| Action::Hang);
    let (status, text) = ended(&format!("{} -c 2 -d 300ms", server.url()));
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("nothing was measured"), "{text}");
}

#[test]
fn a_server_that_accepts_no_connection() {
    // The server accepts, but never completes the TLS handshake.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let options = "-k -c 1000 -n 1 --connect-timeout 1s";
    let (status, text) = ended(&format!("https://127.0.0.1:{port} {options}"));
    assert_eq!(status, 1, "{text}");
    let (_, rest) = text.split_once("cannot connect: ").expect(&text);
    let (tried, _) = rest.split_once(" of 1000 clients").expect(&text);
    assert!(tried.parse::<u32>().expect(&text) < 500, "{text}");
}
