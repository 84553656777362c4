//! The variables of a request (RFC 3875, section 4.1).

use std::borrow::Cow;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};

use crate::http::Method;
use crate::http::head::{Head, Version};
use crate::http::response::push_decimal;

/// The data that [`variables`] needs in addition to the head of a request.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The path of the script below the root, for example from
    /// [`split_path_info`](super::split_path_info).
    pub script_name: &'a [u8],
    /// The part of the path after the script.
    pub path_info: &'a [u8],
    /// The directory of the scripts, without a final slash.
    pub document_root: &'a [u8],
    /// The length of the body that the application receives, in bytes; `None` if there is no body.
    /// If the client sends the body in chunks, the server must determine the length first.
    pub content_length: Option<u64>,
    /// The address of the client.
    pub remote: SocketAddr,
    /// The address to which the client connected.
    pub local: SocketAddr,
    /// The host name of the server, for `SERVER_NAME`.
    pub server_name: &'a [u8],
    /// The name and version of the program, such as `tussah/0.1`.
    pub server_software: &'a [u8],
    /// True if the client connected over TLS.
    pub is_https: bool,
}

/// The name and the value of a variable.
pub type Variable<'a> = (Cow<'static, str>, Cow<'a, [u8]>);

/// Returns the variables for the request with this head, which was parsed from `bytes`.
///
/// The variables are `PATH_INFO` and those in nginx's `fastcgi.conf`. In addition, each header
/// field becomes a variable whose name starts with `HTTP_`, except:
///
/// - fields whose names contain characters other than letters, digits and hyphens. `X_Real_IP`
///   would otherwise look like `X-Real-IP`, which a proxy may have checked.
/// - `Proxy`, because many programs send their own requests through the proxy that `HTTP_PROXY`
///   names (httpoxy, CVE-2016-5385).
/// - `Transfer-Encoding`, because the application receives the decoded body (section 4.2).
///
/// Several lines of the same field are joined with commas, or with semicolons for `Cookie`.
///
/// ```
/// use tussah_wire::cgi::{self, Context};
/// use tussah_wire::http::head;
///
/// let bytes = b"GET /a.php?b HTTP/1.1\r\nHost: example.org\r\n\r\n";
/// let head = head::parse(bytes, &head::Limits::default())?.expect("the head is complete");
/// let context = Context {
///     script_name: b"/a.php",
///     path_info: b"",
///     document_root: b"/srv",
///     content_length: None,
///     remote: ([192, 0, 2, 1], 50_000).into(),
///     local: ([192, 0, 2, 2], 80).into(),
///     server_name: b"example.org",
///     server_software: b"tussah",
///     is_https: false,
/// };
/// let variables = cgi::variables(&head, bytes, &context);
/// let value = |name| variables.iter().find(|(it, _)| it == name).map(|(_, value)| &value[..]);
/// assert_eq!(value("SCRIPT_FILENAME"), Some(&b"/srv/a.php"[..]));
/// assert_eq!(value("QUERY_STRING"), Some(&b"b"[..]));
/// assert_eq!(value("HTTP_HOST"), Some(&b"example.org"[..]));
/// # Ok::<(), tussah_wire::http::Refusal>(())
/// ```
pub fn variables<'a>(head: &Head, bytes: &'a [u8], context: &Context<'a>) -> Vec<Variable<'a>> {
    let mut variables = of_request(head, bytes, context);
    let first = variables.len();
    for (name, value) in head.fields(bytes) {
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        let is_plain = name
            .iter()
            .all(|&byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !is_plain || is("proxy") || is("transfer-encoding") {
            continue;
        }
        let value = match head.host(bytes) {
            Some(host) if is("host") => host,
            _ => value,
        };
        if is("content-type")
            && let Some((_, content_type)) = variables.iter_mut().find(|(it, _)| it == CONTENT_TYPE)
        {
            *content_type = value.into();
        }
        let name = variable_name(name);
        let same = variables[first..].iter_mut().find(|(it, _)| *it == name);
        match same {
            Some((_, joined)) => {
                let separator = if is("cookie") { b"; " } else { b", " };
                let joined = joined.to_mut();
                joined.extend_from_slice(separator);
                joined.extend_from_slice(value);
            }
            None => variables.push((name.into(), value.into())),
        }
    }
    variables
}

const CONTENT_TYPE: &str = "CONTENT_TYPE";

/// The variables for which there is room at once: those of a browser's request.
const VARIABLES: usize = 40;

/// The maximum length of an address without its port, in bytes.
const IP_BYTES_MAX: usize = 45;

/// Returns the variables that do not come from fields, and a place for the type of the content.
fn of_request<'a>(head: &Head, bytes: &'a [u8], context: &Context<'a>) -> Vec<Variable<'a>> {
    let join = |start: &[u8], end: &[u8]| Cow::Owned([start, end].concat());
    let number = |number: u64| {
        let mut text = Vec::new();
        push_decimal(&mut text, number);
        Cow::Owned(text)
    };
    let protocol = match head.version {
        Version::Http10 => "HTTP/1.0",
        Version::Http11 => "HTTP/1.1",
    };
    let (scheme, https) = match context.is_https {
        true => ("https", Some("on")),
        false => ("http", None),
    };
    let variables: [(&'static str, Cow<'a, [u8]>); 20] = [
        (
            "SCRIPT_FILENAME",
            join(context.document_root, context.script_name),
        ),
        ("PATH_INFO", context.path_info.into()),
        ("QUERY_STRING", head.query(bytes).unwrap_or_default().into()),
        ("REQUEST_METHOD", head.method_text(bytes).into()),
        (CONTENT_TYPE, Cow::default()),
        (
            "CONTENT_LENGTH",
            context.content_length.map(number).unwrap_or_default(),
        ),
        ("SCRIPT_NAME", context.script_name.into()),
        ("REQUEST_URI", request_uri(head, bytes)),
        ("DOCUMENT_URI", join(context.script_name, context.path_info)),
        ("DOCUMENT_ROOT", context.document_root.into()),
        ("SERVER_PROTOCOL", protocol.as_bytes().into()),
        ("REQUEST_SCHEME", scheme.as_bytes().into()),
        ("GATEWAY_INTERFACE", b"CGI/1.1".into()),
        ("SERVER_SOFTWARE", context.server_software.into()),
        ("REMOTE_ADDR", ip(context.remote.ip())),
        ("REMOTE_PORT", number(context.remote.port().into())),
        ("SERVER_ADDR", ip(context.local.ip())),
        ("SERVER_PORT", number(context.local.port().into())),
        ("SERVER_NAME", context.server_name.into()),
        // PHP with `cgi.force_redirect` refuses requests without it.
        ("REDIRECT_STATUS", b"200".into()),
    ];
    let https = https.map(|on| ("HTTPS", on.as_bytes().into()));
    let named = variables.into_iter().chain(https);
    let mut all = Vec::with_capacity(VARIABLES);
    all.extend(named.map(|(name, value)| (name.into(), value)));
    all
}

/// Returns the text of an address. The formatter of the standard library takes 1,000 instructions
/// for an IPv4 address, a thirtieth of those for a small page.
fn ip<'a>(ip: IpAddr) -> Cow<'a, [u8]> {
    let mut text = Vec::with_capacity(IP_BYTES_MAX);
    match ip {
        IpAddr::V4(ip) => {
            for (at, octet) in ip.octets().into_iter().enumerate() {
                if at > 0 {
                    text.push(b'.');
                }
                push_decimal(&mut text, octet.into());
            }
        }
        IpAddr::V6(ip) => write!(text, "{ip}").expect("a vector takes everything"),
    }
    Cow::Owned(text)
}

/// Returns the path and the query of the target as sent, without the host of an absolute target.
fn request_uri<'a>(head: &Head, bytes: &'a [u8]) -> Cow<'a, [u8]> {
    let target = head.target(bytes);
    if target.starts_with(b"/") || head.method == Method::Connect {
        return target.into();
    }
    let (path, query) = (head.path(bytes), head.query(bytes));
    match query {
        Some(query) => [path, query].join(&b'?').into(),
        None => path.into(),
    }
}

/// Returns `HTTP_`, and the name in capitals with underscores (section 4.1.18).
fn variable_name(field: &[u8]) -> String {
    let letters = field.iter().map(|&byte| match byte {
        b'-' => '_',
        byte => char::from(byte.to_ascii_uppercase()),
    });
    let mut name = String::with_capacity(5 + field.len());
    name.push_str("HTTP_");
    name.extend(letters);
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::head::{Limits, parse};

    fn of(request: &str, change: impl FnOnce(&mut Context<'_>)) -> Vec<String> {
        let mut context = Context {
            script_name: b"/a.php",
            path_info: b"/x",
            document_root: b"/srv/www",
            content_length: None,
            remote: ([192, 0, 2, 1], 50_000).into(),
            local: ([192, 0, 2, 2], 80).into(),
            server_name: b"example.org",
            server_software: b"tussah/1",
            is_https: false,
        };
        change(&mut context);
        let bytes = request.as_bytes();
        let head = parse(bytes, &Limits::default()).unwrap().unwrap();
        let variables = variables(&head, bytes, &context).into_iter();
        variables
            .map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(&value)))
            .collect()
    }

    #[test]
    fn a_request() {
        let request = "POST /a.php/x?q=1&r HTTP/1.1\r\nHost: example.org\r\nContent-Type: a/b\r\n\
            Content-Length: 5\r\nUser-Agent: test\r\n\r\n";
        let expected = [
            "SCRIPT_FILENAME=/srv/www/a.php",
            "PATH_INFO=/x",
            "QUERY_STRING=q=1&r",
            "REQUEST_METHOD=POST",
            "CONTENT_TYPE=a/b",
            "CONTENT_LENGTH=5",
            "SCRIPT_NAME=/a.php",
            "REQUEST_URI=/a.php/x?q=1&r",
            "DOCUMENT_URI=/a.php/x",
            "DOCUMENT_ROOT=/srv/www",
            "SERVER_PROTOCOL=HTTP/1.1",
            "REQUEST_SCHEME=http",
            "GATEWAY_INTERFACE=CGI/1.1",
            "SERVER_SOFTWARE=tussah/1",
            "REMOTE_ADDR=192.0.2.1",
            "REMOTE_PORT=50000",
            "SERVER_ADDR=192.0.2.2",
            "SERVER_PORT=80",
            "SERVER_NAME=example.org",
            "REDIRECT_STATUS=200",
            "HTTP_HOST=example.org",
            "HTTP_CONTENT_TYPE=a/b",
            "HTTP_CONTENT_LENGTH=5",
            "HTTP_USER_AGENT=test",
        ];
        let variables = of(request, |context| context.content_length = Some(5));
        assert_eq!(variables, expected);
    }

    #[test]
    fn fields() {
        let check = |lines: &str, expected: &[&str]| {
            let request = format!("GET /a.php HTTP/1.0\r\n{lines}\r\n");
            let variables = of(&request, |_| {}).split_off(20);
            assert_eq!(variables, expected, "{lines}");
        };
        check("X-Real-IP: 1\r\n", &["HTTP_X_REAL_IP=1"]);
        check("X_Real_IP: 1\r\nX.Real: 2\r\n", &[]);
        check("Proxy: evil\r\npROXY: evil\r\n", &[]);
        check("A: 1\r\nB: 2\r\na: 3\r\n", &["HTTP_A=1, 3", "HTTP_B=2"]);
        check("Cookie: a\r\ncookie: b\r\n", &["HTTP_COOKIE=a; b"]);
        check("A:\r\n", &["HTTP_A="]);
    }

    #[test]
    fn https_and_other_forms_of_a_target() {
        let request =
            "GET http://b/a.php?c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let variables = of(request, |context| context.is_https = true);
        for expected in ["REQUEST_URI=/a.php?c", "HTTPS=on", "REQUEST_SCHEME=https"] {
            assert!(variables.iter().any(|it| it == expected), "{variables:?}");
        }
        assert_eq!(variables.last().unwrap(), "HTTP_HOST=b");
    }
}
