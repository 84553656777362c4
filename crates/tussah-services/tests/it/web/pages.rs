//! The server's own pages, and its log.

use std::fs;
use std::net::SocketAddr;

use serde_json::Value;
use tussah_services::web::Reply;
use tussah_services::web::config::{ListenAddress, LogFile, LogFormat};

use super::client::{Client, request};
use super::server::{Server, Site};

fn site() -> Site {
    Site::new().file("a.txt", "first\n")
}

#[test]
fn the_status_page_is_for_people_and_programs() {
    let made = async |_| Reply::text("made");
    let server = site().start_with(|web| web.route("/made/*", made));
    let page = server.get("/status", "");
    assert_eq!(
        page.expect_field("Content-Type"),
        "text/html; charset=utf-8"
    );
    assert_eq!(page.expect_field("Cache-Control"), "no-store");
    for stage in [
        "accept",
        "parse",
        "receive",
        "page cache 0",
        "cache miss",
        "disk",
        "route /made/*",
        "send",
    ] {
        assert!(
            page.text().contains(&format!("<th scope=row>{stage}")),
            "{stage}"
        );
    }
    let page = server.get("/status?json", "");
    assert_eq!(page.expect_field("Content-Type"), "application/json");
    let page: Value = serde_json::from_slice(&page.body).expect("it is JSON");
    let of = |name: &str| {
        let stages = page["stages"].as_array().expect("stages");
        let stage = stages.iter().find(|stage| stage["name"] == name);
        stage.unwrap_or_else(|| panic!("{name} in {page}")).clone()
    };
    assert_eq!(of("parse")["called"], 2);
    assert_eq!(of("route /made/*")["arrived"], 0);
}

#[test]
fn the_status_page_is_for_this_machine() {
    let behind = |client: &str| format!("X-Forwarded-For: {client}\r\n");
    let server = site().with(|config| {
        config.trusted_proxies = vec!["127.0.0.0/8".parse().expect("a network")];
    });
    let server = server.start();
    let table = [
        // A proxy that names nobody.
        ("".to_owned(), 404),
        (behind("nonsense"), 404),
        (behind("192.0.2.1:80, 127.0.0.1"), 404),
        (behind("127.0.0.9"), 200),
        (behind("::1"), 200),
        (behind("::ffff:127.0.0.1"), 200),
        (behind("192.0.2.1"), 404),
        (behind("127.0.0.1, 192.0.2.1"), 404),
        (behind("127.0.0.1") + &behind("192.0.2.1"), 404),
        (behind("192.0.2.1, 127.0.0.1"), 404),
    ];
    for (lines, expected) in table {
        assert_eq!(server.get("/status", &lines).status, expected, "{lines}");
    }
    // Nobody's word is believed unless it is said so.
    let server = site().start();
    assert_eq!(server.get("/status", &behind("127.0.0.1")).status, 404);
    let other = "Forwarded: for=127.0.0.1\r\n";
    assert_eq!(server.get("/status", other).status, 404);
    server.check_status("/status", 200);
    let server = site().with(|config| config.status.from.clear()).start();
    server.check_status("/status", 404);
    let server = site().with(|config| config.status.path = None).start();
    server.check_status("/status", 404);
}

#[test]
fn this_machine_is_known_by_both_kinds_of_addresses() {
    let any = ListenAddress::Tcp("[::]:0".parse().expect("an address"));
    let server = site().with(|config| config.listen = vec![any]).start();
    let port = server.address.port();
    for address in [
        SocketAddr::from(([127, 0, 0, 1], port)),
        SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port)),
    ] {
        assert_eq!(
            Client::connect(address).get("/status", "").status,
            200,
            "{address}"
        );
    }
}

#[test]
fn the_status_page_can_be_read_only() {
    let server = site().start();
    let mut client = server.connect();
    for method in ["POST", "DELETE"] {
        assert_eq!(
            client.ask(request(method, "/status", "")).status,
            405,
            "{method}"
        );
    }
    assert_eq!(client.ask(request("HEAD", "/status", "")).status, 200);
}

#[test]
fn work_costs_what_it_is_asked_for() {
    let server = site().with(|config| config.work = true).start();
    let mut client = server.connect();
    for query in ["", "?compute=2ms", "?wait=2ms&compute=1ms", "?compute=0ms"] {
        let answer = client.get(&format!("/work{query}"), "");
        assert_eq!((answer.status, answer.body.len()), (200, 8192), "{query}");
    }
    for query in [
        "?compute=2",
        "?compute=-1ms",
        "?other=1ms",
        "?wait=10001ms",
        "?compute",
    ] {
        let answer = client.get(&format!("/work{query}"), "");
        assert_eq!(answer.status, 400, "{query}");
        assert!(answer.text().contains("expected"), "{}", answer.text());
    }
    site().start().check_status("/work", 404);
}

#[test]
fn routes_go_by_the_longest_path() {
    let server = site().start_with(|web| {
        let say = |text: &'static str| move |_| async move { Reply::text(text) };
        web.route("/x/*", say("beneath"))
            .route("/x/y/*", say("further"))
            .route("/x/exact", say("exact"))
            .route("/a b", say("decoded"))
    });
    let table = [
        ("/x/", Some("beneath")),
        ("/x/z", Some("beneath")),
        ("/x/y/z", Some("further")),
        ("/x/exact", Some("exact")),
        ("/x/exact/", Some("beneath")),
        ("/a%20b", Some("decoded")),
        ("/x", None),
    ];
    for (path, expected) in table {
        let answer = server.get(path, "");
        match expected {
            Some(text) => assert_eq!(answer.text(), text, "{path}"),
            None => assert_eq!(answer.status, 404, "{path}"),
        }
    }
}

#[test]
fn a_handler_cannot_break_the_framing() {
    let server = site().start_with(|web| {
        let reply = async |request: tussah_services::web::Request| {
            let (name, value) = request.query().next().expect("a field");
            Reply::text("body").with(name, value)
        };
        let status = async |request: tussah_services::web::Request| {
            let code = request.query().next().expect("a code").0.parse();
            let status = tussah_services::web::Status::new(code.expect("a number"));
            Reply::status(status.expect("a status"))
        };
        web.route("/field", reply).route("/code", status)
    });
    let mut client = server.connect();
    for field in [
        "Content-Length=99",
        "content-length=2",
        "Transfer-Encoding=chunked",
        "Connection=close",
        "Date=today",
        "Server=other",
        "Content-Type=text/html",
        "X=a%0d%0aContent-Length:+9",
        "X%3a=y",
    ] {
        let answer = client.get(&format!("/field?{field}"), "");
        assert_eq!(answer.text(), "body", "{field}");
        assert_eq!(answer.expect_field("Content-Length"), "4", "{field}");
        assert_eq!(
            answer.expect_field("Content-Type"),
            "text/plain; charset=utf-8",
            "{field}"
        );
        assert_eq!(answer.expect_field("Server"), "tussah", "{field}");
        assert!(answer.expect_field("Date").ends_with("GMT"), "{field}");
        assert_eq!(
            answer
                .head
                .lines()
                .filter(|line| line.starts_with('X'))
                .count(),
            0,
            "{field}"
        );
    }
    assert_eq!(client.get("/field?X=y", "").expect_field("X"), "y");
    for (code, expected) in [
        (100, 500),
        (101, 500),
        (204, 204),
        (304, 304),
        (599, 599),
        (999, 999),
    ] {
        assert_eq!(client.get(&format!("/code?{code}"), "").status, expected);
    }
    let reset = client.get("/code?205", "");
    assert_eq!((reset.status, reset.text()), (205, ""));
    assert_eq!(reset.expect_field("Content-Length"), "0");
    assert_eq!(client.get("/a.txt", "").text(), "first\n");
}

/// The lines of a server's log, when it has stopped.
fn log(format: LogFormat, run: impl FnOnce(&Server)) -> Vec<String> {
    let place = tempfile::tempdir().expect("there is room for a directory");
    let path = place.path().join("access.log");
    let file = Some(LogFile::Path(path.clone()));
    let site = site().with(|config| {
        config.log.file = file;
        config.log.format = format;
    });
    let mut server = site.start();
    run(&server);
    server.stop();
    let text = fs::read_to_string(path).expect("there is a log");
    // Without the time.
    let line = |line: &str| {
        let (before, rest) = line.split_once(" [").expect("a time");
        format!("{before}{}", rest.split_once(']').expect("its end").1)
    };
    text.lines().map(line).collect()
}

#[test]
fn each_request_is_a_line_of_the_log() {
    let mut lines = log(LogFormat::Combined, |server| {
        let mut client = server.connect();
        client.get("/a.txt?x=y", "Referer: http://b/\r\nUser-Agent: \"me\"\r\n");
        client.ask(request("HEAD", "/a.txt", ""));
        client.get("/a.txt", "Range: bytes=0-1\r\n");
        client.get("/a.txt", "If-None-Match: *\r\n");
        client.send(request("GET", "/none", "").repeat(2));
        client.answer();
        client.answer();
        client.ask("POST /a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
        server.ask("GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n");
        server.get("/a.txt", "");
        server.site.write("large.bin", vec![0; 2_000_000], 0);
        server.get("/large.bin", "");
    });
    let mut expected = [
        r#"127.0.0.1 - - "GET /a.txt?x=y HTTP/1.1" 200 6 "http://b/" "\x22me\x22""#,
        r#"127.0.0.1 - - "HEAD /a.txt HTTP/1.1" 200 - "-" "-""#,
        r#"127.0.0.1 - - "GET /a.txt HTTP/1.1" 206 2 "-" "-""#,
        r#"127.0.0.1 - - "GET /a.txt HTTP/1.1" 304 - "-" "-""#,
        r#"127.0.0.1 - - "GET /none HTTP/1.1" 404 14 "-" "-""#,
        r#"127.0.0.1 - - "GET /none HTTP/1.1" 404 14 "-" "-""#,
        r#"127.0.0.1 - - "POST /a.txt HTTP/1.1" 405 23 "-" "-""#,
        r#"127.0.0.1 - - "GET /\x01 HTTP/1.1" 400 16 "-" "-""#,
        r#"127.0.0.1 - - "GET /a.txt HTTP/1.1" 200 6 "-" "-""#,
        r#"127.0.0.1 - - "GET /large.bin HTTP/1.1" 200 2000000 "-" "-""#,
    ];
    // A line is written after its answer, so the lines of two connections have no order.
    lines.sort_unstable();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

#[test]
fn the_common_log_has_less() {
    let lines = log(LogFormat::Common, |server| {
        drop(server.get("/a.txt", "Referer: x\r\n"))
    });
    assert_eq!(lines, [r#"127.0.0.1 - - "GET /a.txt HTTP/1.1" 200 6"#]);
}

#[test]
fn an_aborted_download_is_logged() {
    let lines = log(LogFormat::Common, |server| {
        server.site.write("large.bin", vec![0; 20_000_000], 0);
        let mut client = server.connect();
        client.send(request("GET", "/large.bin", ""));
        client.fill_to(1_000_000);
    });
    let [line] = &lines[..] else {
        panic!("one line: {lines:?}");
    };
    // The client's address is unknown after a reset.
    let line = line.replace("127.0.0.1", "-");
    let start = r#"- - - "GET /large.bin HTTP/1.1" 200 "#;
    let bytes = line.strip_prefix(start).and_then(|rest| rest.parse().ok());
    assert!(bytes.is_some_and(|bytes: u64| bytes < 20_000_000), "{line}");
}
