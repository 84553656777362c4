//! Conditional requests.

use super::client::request;
use super::server::{Server, Site, bytes};

const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const LATER: &str = "Sunday, 06-Nov-94 08:49:38 GMT";

fn server() -> Server {
    let site = Site::new()
        .file("small.txt", "first\n")
        .file("large.txt", bytes(5000));
    site.with(|config| {
        config.cache.file_bytes = 1000;
        config.site.cache_control = Some("no-cache".into());
    })
    .start()
}

#[test]
fn conditions_are_met_or_not() {
    let server = server();
    for path in ["/small.txt", "/large.txt"] {
        let etag = server.get(path, "").expect_field("ETag");
        let table = [
            (format!("If-None-Match: {etag}\r\n"), 304),
            (format!("If-None-Match: W/{etag}\r\n"), 304),
            (format!("If-None-Match: \"x\", {etag}\r\n"), 304),
            (
                format!("If-None-Match: \"x\"\r\nIf-None-Match: {etag}\r\n"),
                304,
            ),
            ("If-None-Match: *\r\n".into(), 304),
            ("If-None-Match: \"x\"\r\n".into(), 200),
            (
                format!("If-None-Match: \"x\"\r\nIf-Modified-Since: {MODIFIED}\r\n"),
                200,
            ),
            (format!("If-Modified-Since: {MODIFIED}\r\n"), 304),
            (format!("If-Modified-Since: {LATER}\r\n"), 304),
            (format!("If-Modified-Since: {EARLIER}\r\n"), 200),
            ("If-Modified-Since: yesterday\r\n".into(), 200),
            (format!("If-Match: {etag}\r\n"), 200),
            ("If-Match: *\r\n".into(), 200),
            (format!("If-Match: W/{etag}\r\n"), 412),
            ("If-Match: \"x\"\r\n".into(), 412),
            (format!("If-Unmodified-Since: {MODIFIED}\r\n"), 200),
            (format!("If-Unmodified-Since: {EARLIER}\r\n"), 412),
            (
                format!("If-Match: {etag}\r\nIf-Unmodified-Since: {EARLIER}\r\n"),
                200,
            ),
            (format!("If-Match: \"x\"\r\nIf-None-Match: {etag}\r\n"), 412),
            (
                format!("If-None-Match: {etag}\r\nRange: bytes=0-1\r\n"),
                304,
            ),
        ];
        for method in ["GET", "HEAD"] {
            let mut client = server.connect();
            for (lines, expected) in &table {
                let answer = client.ask(request(method, path, lines));
                assert_eq!(answer.status, *expected, "{method} {path} {lines}");
                assert!(!answer.ends());
            }
        }
    }
}

#[test]
fn an_unmodified_response_has_no_body() {
    let server = server();
    let whole = server.get("/small.txt", "");
    let mut client = server.connect();
    let etag = whole.expect_field("ETag");
    let answer = client.get("/small.txt", &format!("If-None-Match: {etag}\r\n"));
    assert_eq!(answer.status, 304);
    // RFC 9110, section 15.4.5.
    for name in ["ETag", "Cache-Control", "Date", "Last-Modified"] {
        assert_eq!(answer.expect_field(name), whole.expect_field(name));
    }
    assert_eq!(answer.field("Content-Length"), None);
    assert_eq!(answer.field("Content-Type"), None);
    assert_eq!(client.get("/small.txt", "").text(), "first\n");
}

#[test]
fn the_date_is_that_of_the_file() {
    let answer = server().get("/small.txt", "");
    assert_eq!(answer.expect_field("Last-Modified"), MODIFIED);
}
