//! Message heads: parsed, checked, and rewritten for the next hop.

use std::time::Duration;

use super::{Body, Fault, HEAD_MAX};

/// Bound, in fields: the maximum number in a head.
const FIELDS_MAX: usize = 100;

/// A request, with everything that the proxy needs to know about it.
#[derive(Debug)]
pub struct Request {
    /// The length of the received head, in bytes.
    pub len: usize,
    /// The head to forward.
    pub head: Vec<u8>,
    pub body: Body,
    pub host: String,
    pub port: u16,
    /// True if the client wants a tunnel to `host` and `port`.
    pub is_tunnel: bool,
    /// True if the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// The URL, if the response may be served from the cache or stored in it.
    pub cacheable: Option<String>,
    /// True if the client may send another request on its connection.
    pub keeps_alive: bool,
    is_head: bool,
}

/// A response, with everything that the proxy needs to know about it.
#[derive(Debug)]
pub struct Response {
    pub len: usize,
    pub head: Vec<u8>,
    pub body: Body,
    /// True if the client may send another request on its connection after this response.
    pub keeps_alive: bool,
    /// The time for which the response may be cached.
    pub fresh_for: Option<Duration>,
}

type Fields<'a> = &'a [httparse::Header<'a>];

impl Request {
    /// Parses the request at the start of `bytes`. Returns `None` if its head is incomplete.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, Fault> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut request = httparse::Request::new(&mut fields);
        let len = match request.parse(bytes) {
            Ok(httparse::Status::Complete(len)) if len <= HEAD_MAX => len,
            Ok(httparse::Status::Partial) if bytes.len() < HEAD_MAX => return Ok(None),
            Ok(_) => return Err(Fault::new(431, format_args!("at most {HEAD_MAX} bytes"))),
            Err(httparse::Error::TooManyHeaders) => {
                return Err(Fault::new(431, format_args!("at most {FIELDS_MAX} fields")));
            }
            Err(error) => return Err(Fault::bad(error)),
        };
        let method = request.method.unwrap_or_default();
        let target = request.path.unwrap_or_default();
        let minor = request.version.unwrap_or(1);
        let fields = &*request.headers;
        let is_tunnel = method == "CONNECT";
        let (authority, path) = match target.strip_prefix("http://") {
            _ if is_tunnel => (target, ""),
            Some(rest) => rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len())),
            None => return Err(Fault::bad("expected a URL that begins with http://")),
        };
        let (host, port) = split(authority, is_tunnel)?;
        let body = request_body(fields)?;
        if is_tunnel && body != Body::NONE {
            return Err(Fault::bad("a request for a tunnel has no body"));
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        // An HTTP/1.0 client must not get chunks, so the origin is told that the request is
        // HTTP/1.0.
        let mut head = format!("{method} {slash}{path} HTTP/1.{minor}\r\nHost: {authority}\r\n");
        head += "Connection: close\r\n";
        let skipped = ["host", "expect"];
        let head = with_fields(head, fields, &skipped, minor);
        let plain = [
            "authorization",
            "cookie",
            "range",
            "cache-control",
            "pragma",
        ];
        let is_plain = !plain.iter().any(|name| find(fields, name).next().is_some());
        let cacheable = method == "GET" && is_plain && body == Body::NONE && minor == 1;
        Ok(Some(Self {
            len,
            head,
            body,
            host,
            port,
            is_tunnel,
            expects_continue: minor == 1 && has(fields, "expect", "100-continue"),
            cacheable: cacheable.then(|| target.to_owned()),
            is_head: method == "HEAD",
            keeps_alive: minor == 1
                && !has(fields, "connection", "close")
                && !has(fields, "proxy-connection", "close"),
        }))
    }
}

impl Response {
    /// Parses the response at the start of `bytes`. Returns `None` if its head is incomplete.
    /// Interim responses (RFC 9110, section 15.2) are skipped.
    pub fn parse(bytes: &[u8], request: &Request) -> Result<Option<Self>, Fault> {
        let bad = |text: &str| Fault::broken(text);
        let mut skipped = 0;
        loop {
            let bytes = &bytes[skipped..];
            let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
            let mut response = httparse::Response::new(&mut fields);
            let len = match response.parse(bytes) {
                Ok(httparse::Status::Complete(len)) if len <= HEAD_MAX => len,
                Ok(httparse::Status::Partial) if skipped + bytes.len() < HEAD_MAX => {
                    return Ok(None);
                }
                Ok(_) => return Err(bad("its head is too long")),
                Err(error) => return Err(bad(&error.to_string())),
            };
            let status = response.code.unwrap_or_default();
            if status == 101 {
                return Err(bad("the request asked for no other protocol"));
            }
            if status < 200 {
                skipped += len;
                continue;
            }
            let fields = &*response.headers;
            let body = match response_body(fields).map_err(bad)? {
                _ if request.is_head || status == 204 || status == 304 => Body::NONE,
                body => body,
            };
            let keeps_alive = request.keeps_alive && body != Body::ToTheEnd;
            let reason = response.reason.unwrap_or_default();
            let mut head = format!("HTTP/1.1 {status} {reason}\r\n");
            // Other responses need no such field: the client asked for the close, or uses HTTP/1.0.
            if body == Body::ToTheEnd {
                head += "Connection: close\r\n";
            }
            let skipped_fields: &[_] = match body {
                Body::Chunked(_) => &["content-length"],
                _ => &[],
            };
            let minor = response.version.unwrap_or(1);
            let may_be_kept = status == 200 && matches!(body, Body::Length(_));
            return Ok(Some(Self {
                len: skipped + len,
                head: with_fields(head, fields, skipped_fields, minor),
                body,
                keeps_alive,
                fresh_for: fresh_for(fields).filter(|_| may_be_kept),
            }));
        }
    }
}

/// Splits an authority into host and port, without the brackets of IPv6.
fn split(authority: &str, is_tunnel: bool) -> Result<(String, u16), Fault> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            let port = port.parse().ok().filter(|port| *port != 0);
            (host, port.ok_or_else(|| Fault::bad("expected a port"))?)
        }
        _ if is_tunnel => return Err(Fault::bad("expected a host and a port")),
        _ => (authority, 80),
    };
    let inside = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    match inside {
        Some(host) if host.parse::<std::net::Ipv6Addr>().is_ok() => Ok((host.to_owned(), port)),
        None if !host.is_empty() && host.bytes().all(is_host) => Ok((host.to_owned(), port)),
        _ => Err(Fault::bad("expected a host")),
    }
}

/// Returns the values of a field.
fn find<'a>(fields: Fields<'a>, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    let fields = fields.iter();
    fields
        .filter(move |field| field.name.eq_ignore_ascii_case(name))
        .map(|field| field.value)
}

/// Returns the members of a list, which may be spread over several fields. Members that are not
/// text are skipped.
fn members<'a>(fields: Fields<'a>, name: &'a str) -> impl Iterator<Item = &'a str> {
    let values = find(fields, name).map(|value| std::str::from_utf8(value).unwrap_or_default());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

fn has(fields: Fields<'_>, name: &str, member: &str) -> bool {
    members(fields, name).any(|other| other.eq_ignore_ascii_case(member))
}

/// Returns the length that the fields state; they must all agree (RFC 9112, section 6.3, item 5).
fn length(fields: Fields<'_>) -> Result<Option<u64>, &'static str> {
    let mut length = None;
    for text in members(fields, "content-length") {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_number);
        let number = Some(number.ok_or("expected a length")?);
        if length.is_some() && length != number {
            return Err("expected one length");
        }
        length = number;
    }
    Ok(length)
}

fn request_body(fields: Fields<'_>) -> Result<Body, Fault> {
    let mut codings = members(fields, "transfer-encoding");
    match (codings.next(), length(fields).map_err(Fault::bad)?) {
        (None, length) => Ok(Body::Length(length.unwrap_or(0))),
        // A request with two lengths is an attack (RFC 9112, section 11.2).
        (Some(_), Some(_)) => Err(Fault::bad(
            "expected either Content-Length or Transfer-Encoding",
        )),
        (Some(coding), None)
            if coding.eq_ignore_ascii_case("chunked") && codings.next().is_none() =>
        {
            Ok(Body::CHUNKED)
        }
        (Some(_), None) => Err(Fault::new(501, "unknown transfer coding")),
    }
}

fn response_body(fields: Fields<'_>) -> Result<Body, &'static str> {
    match members(fields, "transfer-encoding").last() {
        Some(coding) if coding.eq_ignore_ascii_case("chunked") => Ok(Body::CHUNKED),
        Some(_) => Ok(Body::ToTheEnd),
        None => Ok(length(fields)?.map_or(Body::ToTheEnd, Body::Length)),
    }
}

/// Returns the time for which a response may be cached, if it may be cached at all. This covers
/// what a shared cache may do without revalidation (RFC 9111, sections 3 and 4.2), except for some
/// cases that are harder to get right.
fn fresh_for(fields: Fields<'_>) -> Option<Duration> {
    let mut seconds = None;
    for member in members(fields, "cache-control") {
        let (name, value) = member.split_once('=').unwrap_or((member, ""));
        let name = name.to_ascii_lowercase();
        match &*name {
            "no-store" | "no-cache" | "private" | "must-understand" => return None,
            "s-maxage" => seconds = Some(value.trim_matches('"').parse::<u64>().ok()?),
            "max-age" if seconds.is_none() => seconds = Some(value.trim_matches('"').parse().ok()?),
            _ => {}
        }
    }
    if ["set-cookie", "vary", "age"]
        .iter()
        .any(|name| find(fields, name).next().is_some())
    {
        return None;
    }
    seconds
        .filter(|seconds| *seconds > 0)
        .map(Duration::from_secs)
}

/// Appends the fields to forward, and adds this proxy to `Via`; hop-by-hop fields (RFC 9110,
/// section 7.6.1) and the `skipped` ones are left out.
fn with_fields(head: String, fields: Fields<'_>, skipped: &[&str], minor: u8) -> Vec<u8> {
    let mut head = head.into_bytes();
    let of_one_hop = [
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "upgrade",
    ];
    for field in fields {
        let is = |name: &&str| field.name.eq_ignore_ascii_case(name);
        // A sender must not remove the message length by naming its field in `Connection`.
        let says_length = ["content-length", "transfer-encoding"].iter().any(is);
        let is_named = !says_length && has(fields, "connection", field.name);
        if is_named || of_one_hop.iter().any(is) || skipped.iter().any(is) {
            continue;
        }
        head.extend_from_slice(field.name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(field.value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(format!("Via: 1.{minor} tussah\r\n\r\n").as_bytes());
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Result<String, u16> {
        let parsed = Request::parse(text.as_bytes()).map_err(|fault| fault.status)?;
        let Some(request) = parsed else {
            return Ok("more".to_owned());
        };
        assert_eq!(request.len, text.find("\r\n\r\n").expect("it ends") + 4);
        let head = String::from_utf8(request.head).expect("it is text");
        Ok(format!(
            "{}|{}|{:?}|{head}",
            request.host, request.port, request.body
        ))
    }

    fn check(text: &str, expected: Result<&str, u16>) {
        assert_eq!(request(text), expected.map(str::to_owned), "{text:?}");
    }

    #[test]
    fn requests() {
        check("GET http://a/ HTTP/1.1\r\nHost: a", Ok("more"));
        check(
            "GET http://a:81/x?y HTTP/1.1\r\nHost: b\r\nConnection: x-one\r\nX-One: 1\r\nX-Two: 2\r\nTE: x\r\n\r\n",
            Ok(
                "a|81|Length(0)|GET /x?y HTTP/1.1\r\nHost: a:81\r\nConnection: close\r\nX-Two: 2\r\nVia: 1.1 tussah\r\n\r\n",
            ),
        );
        check(
            "POST http://[::1]?q HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc",
            Ok(
                "::1|80|Length(3)|POST /?q HTTP/1.0\r\nHost: [::1]\r\nConnection: close\r\nContent-Length: 3\r\nVia: 1.0 tussah\r\n\r\n",
            ),
        );
        check(
            "CONNECT a:443 HTTP/1.1\r\n\r\n",
            Ok(
                "a|443|Length(0)|CONNECT / HTTP/1.1\r\nHost: a:443\r\nConnection: close\r\nVia: 1.1 tussah\r\n\r\n",
            ),
        );
        for text in [
            "CONNECT a HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http:///x HTTP/1.1\r\n\r\n",
            "GET http://user@a/x HTTP/1.1\r\n\r\n",
            "GET http://a:0/x HTTP/1.1\r\n\r\n",
            "GET http://a:b/x HTTP/1.1\r\n\r\n",
            "nonsense\r\n\r\n",
            "POST http://a/ HTTP/1.1\r\nContent-Length: +3\r\n\r\n",
            "POST http://a/ HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
            "POST http://a/ HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            check(text, Err(400));
        }
        check(
            "POST http://a/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            Err(501),
        );
        let long = "x".repeat(HEAD_MAX);
        check(&format!("GET http://a/{long}"), Err(431));
        let many = "a: b\r\n".repeat(FIELDS_MAX + 1);
        check(&format!("GET http://a/ HTTP/1.1\r\n{many}\r\n"), Err(431));
    }

    fn response(text: &str, method: &str) -> Result<(Body, bool, Option<u64>), u16> {
        let request = format!("{method} http://a/ HTTP/1.1\r\n\r\n");
        let request = Request::parse(request.as_bytes())
            .expect("it is right")
            .expect("it ends");
        let response = Response::parse(text.as_bytes(), &request).map_err(|fault| fault.status)?;
        let response = response.expect("it ends");
        assert_eq!(response.len, text.len());
        let fresh_for = response.fresh_for.map(|time| time.as_secs());
        Ok((response.body, response.keeps_alive, fresh_for))
    }

    #[test]
    fn responses() {
        let check = |fields: &str, expected: (Body, bool, Option<u64>)| {
            let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
            assert_eq!(response(&text, "GET"), Ok(expected), "{fields:?}");
        };
        let ten = Body::Length(10);
        check("", (Body::ToTheEnd, false, None));
        check("Content-Length: 10\r\n", (ten, true, None));
        check(
            "Content-Length: 10\r\nTransfer-Encoding: chunked\r\n",
            (Body::CHUNKED, true, None),
        );
        for (fields, expected) in [
            ("Cache-Control: public, Max-Age=5\r\n", Some(5)),
            ("Cache-Control: max-age=5, s-maxage=7\r\n", Some(7)),
            ("Cache-Control: max-age=0\r\n", None),
            (
                "Cache-Control: max-age=5\r\nCache-Control: no-store\r\n",
                None,
            ),
            ("Cache-Control: max-age=5\r\nVary: Accept\r\n", None),
        ] {
            check(
                &format!("Content-Length: 10\r\n{fields}"),
                (ten, true, expected),
            );
        }
        let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
        assert_eq!(response(text, "HEAD"), Ok((Body::NONE, true, None)));
        assert_eq!(response(text, "GET"), Ok((ten, true, None)));
        assert_eq!(response("HTTP/1.1 101 Upgrade\r\n\r\n", "GET"), Err(502));
        assert_eq!(response("nonsense\r\n\r\n", "GET"), Err(502));
    }
}
