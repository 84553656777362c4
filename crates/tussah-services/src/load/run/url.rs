//! The URL of the server to load.

use http::Uri;

/// A parsed URL: `http://host:port/path?query` or `https://..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// True if the scheme is `https`.
    pub tls: bool,
    /// The host: a name or an IP address. An IPv6 address is stored without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The path with the query, beginning with `/`.
    pub path: String,
}

impl Url {
    /// Parses a URL; `http://` may be omitted.
    ///
    /// # Errors
    /// Returns an error message that states what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = |what: &str| {
            format!("expected {what} in `{text}`, as in http://127.0.0.1:8080/index.html")
        };
        // `Uri` accepts letters beyond ASCII, which a request target cannot contain.
        if let Some(odd) = text.chars().find(|c| !c.is_ascii_graphic()) {
            let what = format!("percent-encoded characters instead of {odd:?}");
            return Err(expected(&what));
        }
        let uri = match text.contains("://") {
            true => text.parse::<Uri>(),
            false => format!("http://{text}").parse(),
        };
        let uri = uri.map_err(|error| expected(&format!("a URL ({error})")))?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(expected("http:// or https://")),
        };
        let authority = uri.authority().ok_or_else(|| expected("a host"))?;
        if authority.as_str().contains('@') {
            return Err(expected("no user name (use --header 'Authorization: ..')"));
        }
        let host = authority.host();
        let port = match authority.port_u16() {
            Some(port) => port,
            None if authority.as_str() == host => [80, 443][usize::from(tls)],
            None => return Err(expected("a port up to 65535")),
        };
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        if host.is_empty() {
            return Err(expected("a host"));
        }
        Ok(Self {
            tls,
            host: host.to_owned(),
            port,
            path: uri
                .path_and_query()
                .map_or_else(|| "/".to_owned(), ToString::to_string),
        })
    }

    /// Returns the value of the header field `Host` (RFC 9110, section 7.2).
    #[must_use]
    pub fn authority(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        match (self.tls, self.port) {
            (false, 80) | (true, 443) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let check = |text: &str, tls: bool, host: &str, port: u16, path: &str, authority: &str| {
            let url = Url::parse(text).expect("a URL");
            let expected = Url {
                tls,
                host: host.to_owned(),
                port,
                path: path.to_owned(),
            };
            assert_eq!(url, expected, "{text}");
            assert_eq!(url.authority(), authority, "{text}");
        };
        check(
            "http://a.example/x?y#z",
            false,
            "a.example",
            80,
            "/x?y",
            "a.example",
        );
        check("https://a", true, "a", 443, "/", "a");
        check("HTTP://a:81?q", false, "a", 81, "/?q", "a:81");
        check(
            "localhost:8080",
            false,
            "localhost",
            8080,
            "/",
            "localhost:8080",
        );
        check("http://[::1]:8080/", false, "::1", 8080, "/", "[::1]:8080");
        check("https://[::1]/", true, "::1", 443, "/", "[::1]");
    }

    #[test]
    fn not_urls() {
        let check = |text: &str, expected: &str| {
            let error = Url::parse(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("ftp://a/", "http:// or https://");
        check("http:///x", "a URL");
        check("", "a URL");
        check("http://:80/", "a host");
        check("http://a:b/", "a port");
        check("http://a:70000/", "a port");
        check("http://[::1/", "a URL");
        check("http://[::1]x/", "a port");
        check("http://me@a/", "no user name");
        check("http://a/b c", "percent-encoded");
    }
}
