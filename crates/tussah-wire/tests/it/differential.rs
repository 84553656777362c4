//! Every message that this parser accepts is accepted and read the same way by httparse.

use proptest::prelude::*;
use tussah_wire::http::head;
use tussah_wire::http::{Method, response};

use crate::compare::compare;
use crate::corpus;

#[test]
fn the_corpus() {
    let limits = head::Limits::default();
    let mut taken = 0;
    for case in corpus::cases() {
        if let Ok(Some(head)) = head::parse(&case.bytes, &limits) {
            compare(&case.bytes, &head);
            taken += 1;
        }
    }
    assert!(taken > 50);
}

/// Pieces of requests, chosen so that random sequences of them are often nearly valid.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "GET ",
        "POST ",
        "OPTIONS ",
        "CONNECT ",
        "/",
        "*",
        "http://a/",
        "a:1",
        "?b",
        " HTTP/1.1",
        " HTTP/1.0",
        "\r\n",
        "\r\n",
        "\r\n",
        "\n",
        "\r",
        " ",
        "\t",
        ":",
        "Host: a",
        "Host: ",
        "Content-Length: 5",
        "Content-Length: 0",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: gzip",
        "Connection: close",
        "Range: bytes=0-1",
        "If-Match: *",
        "X: y",
        "x",
        "\0",
        "\u{e9}",
        ",",
    ]);
    prop_oneof![9 => known.prop_map(|text| text.as_bytes().to_vec()), 1 => prop::collection::vec(any::<u8>(), 0..4)]
}

/// Generates text that resembles a request.
pub fn soup() -> impl Strategy<Value = Vec<u8>> {
    let soup = prop::collection::vec(piece(), 0..12).prop_map(|pieces| pieces.concat());
    let start = prop::sample::select(vec![
        "",
        "GET / HTTP/1.1\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n",
        "POST /a?b HTTP/1.0\r\n",
    ]);
    let end = prop::sample::select(vec!["", "\r\n\r\n", "\r\nHost: a\r\n\r\n", "\r\n\r\nhello"]);
    (start, soup, end)
        .prop_map(|(start, soup, end)| [start.as_bytes(), &soup, end.as_bytes()].concat())
}

proptest! {
    #[test]
    fn mutated_requests(bytes in soup()) {
        if let Ok(Some(head)) = head::parse(&bytes, &head::Limits::default()) {
            compare(&bytes, &head);
        }
    }

    #[test]
    fn mutated_responses(
        start in prop::sample::select(vec!["HTTP/1.1 200 OK", "HTTP/1.0 304", "HTTP/1.1 404 ", "HTTP/1.1 20", "HTTP/2 200", ""]),
        soup in prop::collection::vec(piece(), 0..8),
    ) {
        let bytes = [start.as_bytes(), b"\r\n", &soup.concat(), b"\r\n\r\n"].concat();
        if let Ok(Some(head)) = response::parse(&bytes, Method::Get, &head::Limits::default()) {
            let mut fields = [httparse::EMPTY_HEADER; 128];
            let mut theirs = httparse::Response::new(&mut fields);
            prop_assert_eq!(theirs.parse(&bytes), Ok(httparse::Status::Complete(head.len())));
            prop_assert_eq!(theirs.code, Some(head.status.code()));
            let theirs: Vec<_> = theirs.headers.iter().map(|field| (field.name.as_bytes(), field.value.trim_ascii())).collect();
            prop_assert_eq!(head.fields(&bytes).collect::<Vec<_>>(), theirs);
        }
    }
}
