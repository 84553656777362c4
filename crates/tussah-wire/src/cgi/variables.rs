//! The variables of a request (RFC 3875, section 4.1).

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

/// Calls `push` with the name and the value of each variable for the request with this head, which
/// was parsed from `bytes`.
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
/// use std::collections::HashMap;
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
/// let mut variables = HashMap::new();
/// cgi::variables(&head, bytes, &context, |name, value| {
///     variables.insert(name.to_vec(), value.to_vec());
/// });
/// assert_eq!(variables[&b"SCRIPT_FILENAME"[..]], b"/srv/a.php");
/// assert_eq!(variables[&b"QUERY_STRING"[..]], b"b");
/// assert_eq!(variables[&b"HTTP_HOST"[..]], b"example.org");
/// # Ok::<(), tussah_wire::http::Refusal>(())
/// ```
pub fn variables(head: &Head, bytes: &[u8], context: &Context<'_>, push: impl FnMut(&[u8], &[u8])) {
    let fields = fields(head, bytes);
    let content_type = fields
        .iter()
        .find(|field| field.0.eq_ignore_ascii_case(b"content-type"));
    let mut variables = Variables {
        push,
        text: Vec::with_capacity(TEXT_BYTES),
    };
    variables.add_request(head, bytes, content_type.map_or(b"", |field| field.1));
    variables.add_context(context);
    let mut name = Vec::with_capacity(NAME_BYTES);
    for (at, field) in fields.iter().enumerate() {
        let is_same = |other: &&Field<'_>| other.0.eq_ignore_ascii_case(field.0);
        let (before, from_here) = fields.split_at(at);
        if !before.iter().any(|other| is_same(&other)) {
            set_name(&mut name, field.0);
            let is_cookie = field.0.eq_ignore_ascii_case(b"cookie");
            let separator = if is_cookie { b"; " } else { b", " };
            variables.add_joined(&name, from_here.iter().filter(is_same), separator);
        }
    }
}

/// The name and the value of a field.
type Field<'b> = (&'b [u8], &'b [u8]);

/// The fields for which there is room at once: those of a browser's request.
const FIELDS: usize = 24;

/// The room for a name, in bytes.
const NAME_BYTES: usize = 32;

/// The room for a value that consists of several parts, in bytes.
const TEXT_BYTES: usize = 128;

/// Returns the fields that become variables.
fn fields<'b>(head: &Head, bytes: &'b [u8]) -> Vec<Field<'b>> {
    let mut fields = Vec::with_capacity(FIELDS);
    for (name, value) in head.fields(bytes) {
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
        if !name.iter().all(is_plain) || is(b"proxy") || is(b"transfer-encoding") {
            continue;
        }
        let value = match head.host(bytes) {
            Some(host) if is(b"host") => host,
            _ => value,
        };
        fields.push((name, value));
    }
    fields
}

/// Sets a name to `HTTP_`, and the name of a field in capitals with underscores (section 4.1.18).
fn set_name(name: &mut Vec<u8>, field: &[u8]) {
    name.clear();
    name.extend_from_slice(b"HTTP_");
    name.extend(field.iter().map(|&byte| match byte {
        b'-' => b'_',
        byte => byte.to_ascii_uppercase(),
    }));
}

/// The receiver of the variables.
struct Variables<P> {
    push: P,
    /// Space for a value.
    text: Vec<u8>,
}

impl<P: FnMut(&[u8], &[u8])> Variables<P> {
    /// Adds the variables that come from the request line, and the type of the content.
    fn add_request(&mut self, head: &Head, bytes: &[u8], content_type: &[u8]) {
        self.add("QUERY_STRING", head.query(bytes).unwrap_or_default());
        self.add("REQUEST_METHOD", head.method_text(bytes));
        self.add("CONTENT_TYPE", content_type);
        let target = head.target(bytes);
        if target.starts_with(b"/") || head.method == Method::Connect {
            self.add("REQUEST_URI", target);
        } else {
            // An absolute target, without its host.
            let (mark, query) = match head.query(bytes) {
                Some(query) => (&b"?"[..], query),
                None => (&b""[..], &b""[..]),
            };
            self.add_parts("REQUEST_URI", &[head.path(bytes), mark, query]);
        }
        let protocol = match head.version {
            Version::Http10 => b"HTTP/1.0",
            Version::Http11 => b"HTTP/1.1",
        };
        self.add("SERVER_PROTOCOL", protocol);
    }

    /// Adds the variables that come from the server.
    fn add_context(&mut self, context: &Context<'_>) {
        let (root, script, info) = (
            context.document_root,
            context.script_name,
            context.path_info,
        );
        self.add_parts("SCRIPT_FILENAME", &[root, script]);
        self.add("SCRIPT_NAME", script);
        self.add("PATH_INFO", info);
        self.add_parts("DOCUMENT_URI", &[script, info]);
        self.add("DOCUMENT_ROOT", root);
        match context.content_length {
            Some(len) => self.add_number("CONTENT_LENGTH", len),
            None => self.add("CONTENT_LENGTH", b""),
        }
        self.add_ip("REMOTE_ADDR", context.remote.ip());
        self.add_number("REMOTE_PORT", context.remote.port().into());
        self.add_ip("SERVER_ADDR", context.local.ip());
        self.add_number("SERVER_PORT", context.local.port().into());
        self.add("SERVER_NAME", context.server_name);
        self.add("SERVER_SOFTWARE", context.server_software);
        self.add("GATEWAY_INTERFACE", b"CGI/1.1");
        // PHP with `cgi.force_redirect` refuses requests without it.
        self.add("REDIRECT_STATUS", b"200");
        if context.is_https {
            self.add("REQUEST_SCHEME", b"https");
            self.add("HTTPS", b"on");
        } else {
            self.add("REQUEST_SCHEME", b"http");
        }
    }

    fn add(&mut self, name: &str, value: &[u8]) {
        (self.push)(name.as_bytes(), value);
    }

    fn add_parts(&mut self, name: &str, parts: &[&[u8]]) {
        self.add_text(name, |text| {
            for part in parts {
                text.extend_from_slice(part);
            }
        });
    }

    fn add_number(&mut self, name: &str, number: u64) {
        self.add_text(name, |text| push_decimal(text, number));
    }

    /// Adds an address. The formatter of the standard library takes 1,000 instructions for an IPv4
    /// address, a fifth of those for all variables.
    fn add_ip(&mut self, name: &str, ip: IpAddr) {
        self.add_text(name, |text| match ip {
            IpAddr::V4(ip) => {
                for (at, octet) in ip.octets().into_iter().enumerate() {
                    if at > 0 {
                        text.push(b'.');
                    }
                    push_decimal(text, octet.into());
                }
            }
            IpAddr::V6(ip) => write!(text, "{ip}").expect("a vector takes everything"),
        });
    }

    fn add_text(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.text.clear();
        write(&mut self.text);
        (self.push)(name.as_bytes(), &self.text);
    }

    /// Adds the values of several lines of the same field.
    fn add_joined<'f, 'b: 'f>(
        &mut self,
        name: &[u8],
        mut fields: impl Iterator<Item = &'f Field<'b>>,
        separator: &[u8],
    ) {
        let first = fields.next().map_or(&b""[..], |field| field.1);
        let Some(second) = fields.next() else {
            return (self.push)(name, first);
        };
        self.text.clear();
        self.text.extend_from_slice(first);
        for (_, value) in std::iter::once(second).chain(fields) {
            self.text.extend_from_slice(separator);
            self.text.extend_from_slice(value);
        }
        (self.push)(name, &self.text);
    }
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
        let mut all = Vec::new();
        variables(&head, bytes, &context, |name, value| {
            all.push([name, value].map(String::from_utf8_lossy).join("="));
        });
        all
    }

    #[test]
    fn a_request() {
        let request = "POST /a.php/x?q=1&r HTTP/1.1\r\nHost: example.org\r\nContent-Type: a/b\r\n\
            Content-Length: 5\r\nUser-Agent: test\r\n\r\n";
        let expected = [
            "QUERY_STRING=q=1&r",
            "REQUEST_METHOD=POST",
            "CONTENT_TYPE=a/b",
            "REQUEST_URI=/a.php/x?q=1&r",
            "SERVER_PROTOCOL=HTTP/1.1",
            "SCRIPT_FILENAME=/srv/www/a.php",
            "SCRIPT_NAME=/a.php",
            "PATH_INFO=/x",
            "DOCUMENT_URI=/a.php/x",
            "DOCUMENT_ROOT=/srv/www",
            "CONTENT_LENGTH=5",
            "REMOTE_ADDR=192.0.2.1",
            "REMOTE_PORT=50000",
            "SERVER_ADDR=192.0.2.2",
            "SERVER_PORT=80",
            "SERVER_NAME=example.org",
            "SERVER_SOFTWARE=tussah/1",
            "GATEWAY_INTERFACE=CGI/1.1",
            "REDIRECT_STATUS=200",
            "REQUEST_SCHEME=http",
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
        let types = "GET / HTTP/1.0\r\nContent-Type: a/a\r\ncontent-type: b/b\r\n\r\n";
        let variables = of(types, |_| {});
        assert_eq!(variables[2], "CONTENT_TYPE=a/a");
        assert_eq!(variables[20], "HTTP_CONTENT_TYPE=a/a, b/b");
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
