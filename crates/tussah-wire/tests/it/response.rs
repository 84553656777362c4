//! Response heads, as a client reads them.

use tussah_wire::http::head::Limits;
use tussah_wire::http::response::{Field, ResponseHead, RetryAfter, parse};
use tussah_wire::http::{Framing, Method, Refusal};

fn response(method: Method, text: &str) -> Result<Option<ResponseHead>, Refusal> {
    parse(text.as_bytes(), method, &Limits::default())
}

fn head(method: Method, line: &str, fields: &str) -> ResponseHead {
    let fields: String = fields
        .split_terminator("; ")
        .map(|field| format!("{field}\r\n"))
        .collect();
    let text = format!("{line}\r\n{fields}\r\n");
    let head = response(method, &text).unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
    let head = head.unwrap_or_else(|| panic!("{text} is not complete"));
    assert_eq!(head.len(), text.len());
    head
}

#[test]
fn bodies_and_connections() {
    let check = |method, line: &str, fields: &str, framing, keep_alive| {
        let head = head(method, line, fields);
        assert_eq!(
            (head.framing, head.keep_alive),
            (framing, keep_alive),
            "{method:?} {line} {fields}"
        );
    };
    let get = Method::Get;
    check(
        get,
        "HTTP/1.1 200 OK",
        "Content-Length: 5",
        Framing::Length(5),
        true,
    );
    check(
        get,
        "HTTP/1.1 200 OK",
        "Content-Length: 0",
        Framing::Length(0),
        true,
    );
    check(
        get,
        "HTTP/1.1 200 OK",
        "Transfer-Encoding: chunked",
        Framing::Chunked,
        true,
    );
    check(
        get,
        "HTTP/1.1 200 OK",
        "Transfer-Encoding: gzip",
        Framing::UntilClose,
        false,
    );
    check(get, "HTTP/1.1 200 OK", "", Framing::UntilClose, false);
    check(
        get,
        "HTTP/1.1 200 OK",
        "Connection: keep-alive",
        Framing::UntilClose,
        false,
    );
    check(
        get,
        "HTTP/1.1 200",
        "Content-Length: 5; Connection: close",
        Framing::Length(5),
        false,
    );
    check(
        get,
        "HTTP/1.0 200 OK",
        "Content-Length: 5",
        Framing::Length(5),
        false,
    );
    check(
        get,
        "HTTP/1.0 200 OK",
        "Content-Length: 5; Connection: Keep-Alive",
        Framing::Length(5),
        true,
    );
    check(get, "HTTP/1.1 204 No Content", "", Framing::None, true);
    check(
        get,
        "HTTP/1.1 304 Not Modified",
        "Content-Length: 5",
        Framing::None,
        true,
    );
    check(get, "HTTP/1.1 100 Continue", "", Framing::None, true);
    check(
        get,
        "HTTP/1.1 503 ",
        "Content-Length: 5",
        Framing::Length(5),
        true,
    );
    check(
        Method::Head,
        "HTTP/1.1 200 OK",
        "Content-Length: 5",
        Framing::None,
        true,
    );
    check(
        Method::Head,
        "HTTP/1.1 200 OK",
        "Transfer-Encoding: chunked",
        Framing::None,
        true,
    );
    check(
        Method::Connect,
        "HTTP/1.1 200 OK",
        "Content-Length: 5",
        Framing::None,
        true,
    );
    check(
        Method::Connect,
        "HTTP/1.1 407 No",
        "Content-Length: 5",
        Framing::Length(5),
        true,
    );
}

#[test]
fn fields() {
    let text = "HTTP/1.1 206 X\r\ncontent-length: 2\r\nCONTENT-TYPE: a/b\r\nContent-Encoding: br\r\nContent-Range: bytes 0-1/9\r\n\
        ETag: \"e\"\r\nLast-Modified: m\r\nLocation: /l\r\nLocation: /other\r\n\r\nhi";
    let head = response(Method::Get, text).unwrap().unwrap();
    let check = |field, value: &str| {
        assert_eq!(
            head.field(field, text.as_bytes()),
            Some(value.as_bytes()),
            "{field:?}"
        )
    };
    check(Field::ContentLength, "2");
    check(Field::ContentType, "a/b");
    check(Field::ContentEncoding, "br");
    check(Field::ContentRange, "bytes 0-1/9");
    check(Field::ETag, "\"e\"");
    check(Field::LastModified, "m");
    check(Field::Location, "/l");
    assert_eq!(head.fields(text.as_bytes()).count(), 8);
    assert_eq!(&text.as_bytes()[head.len()..], b"hi");
}

#[test]
fn retry_after() {
    let check = |value: &str, expected| {
        let head = head(
            Method::Get,
            "HTTP/1.1 503 X",
            &format!("Retry-After: {value}"),
        );
        assert_eq!(head.retry_after, expected, "{value:?}");
    };
    check("3", Some(RetryAfter::Seconds(3)));
    check("0", Some(RetryAfter::Seconds(0)));
    check(
        "Sun, 06 Nov 1994 08:49:37 GMT",
        Some(RetryAfter::At(784_111_777)),
    );
    check("soon", None);
    check("-1", None);
    check("", None);
}

#[test]
fn refused() {
    for text in [
        "ICY 200 OK\r\n\r\n",
        "HTTP/2 200\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 200 O\0K\r\n\r\n",
        "HTTP/1.1 200 OK\n\n",
        "HTTP/1.1 200 OK\r\nX: y\n\r\n",
        "\r\nHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
    ] {
        assert!(response(Method::Get, text).is_err(), "{text:?}");
    }
}

#[test]
fn incomplete() {
    let text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    for len in 0..text.len() {
        assert_eq!(response(Method::Get, &text[..len]), Ok(None), "{len}");
    }
    let long = format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(20_000));
    assert!(response(Method::Get, &long).is_err());
}
