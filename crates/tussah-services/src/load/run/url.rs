//! The URL of the server to load.

/// A parsed URL: `http://host:port/path?query` or `https://..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// True if the scheme is `https`.
    pub tls: bool,
    /// A name or an address; an IPv6 address without its brackets.
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
    /// A sentence that says what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = |what: &str| {
            format!("expected {what} in `{text}`, as in http://127.0.0.1:8080/index.html")
        };
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(expected("http:// or https://")),
        };
        let rest = rest.split('#').next().unwrap_or(rest);
        if let Some(odd) = rest.chars().find(|c| !c.is_ascii_graphic()) {
            let what = format!("percent-encoded characters instead of {odd:?}");
            return Err(expected(&what));
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(expected("no user name (use --header 'Authorization: ..')"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => rest.split_once(']').ok_or_else(|| expected("a `]`"))?,
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        if host.is_empty() {
            return Err(expected("a host"));
        }
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().map_err(|_| expected("a port up to 65535"))?,
            None if port.is_empty() => [80, 443][usize::from(tls)],
            None => return Err(expected("a port after the `]`")),
        };
        Ok(Self {
            tls,
            host: host.to_owned(),
            port,
            path: match path.starts_with('/') {
                true => path.to_owned(),
                false => format!("/{path}"),
            },
        })
    }

    /// Returns the value of the field `Host` (RFC 9110, section 7.2).
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
        check("http:///x", "a host");
        check("", "a host");
        check("http://a:b/", "a port");
        check("http://a:70000/", "a port");
        check("http://[::1/", "a `]`");
        check("http://[::1]x/", "a port");
        check("http://me@a/", "no user name");
        check("http://a/b c", "percent-encoded");
    }
}
