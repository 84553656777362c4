//! Media types (RFC 9110, section 8.3.1) by file name extension.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The media type of a file whose extension is unknown.
const UNKNOWN: &str = "application/octet-stream";

/// The media types of a site.
#[derive(Debug)]
pub(super) struct MediaTypes {
    /// The operator's types by extension in lower case, without the dot; they override the known
    /// types.
    own: BTreeMap<String, Arc<str>>,
}

impl MediaTypes {
    pub(super) fn new(own: &BTreeMap<String, String>) -> Self {
        let entry = |(extension, value): (&String, &String)| {
            let extension = extension.trim_start_matches('.').to_ascii_lowercase();
            (extension, Arc::from(value.as_str()))
        };
        Self {
            own: own.iter().map(entry).collect(),
        }
    }

    /// Returns the type of a file by its name. Known text types get the charset UTF-8; the
    /// operator's types are used as they are.
    pub(super) fn of(&self, name: &[u8]) -> Arc<str> {
        let extension = name.rsplit(|&byte| byte == b'.').next();
        let extension = extension.filter(|e| e.len() < name.len());
        let Some(extension) = extension.and_then(|e| str::from_utf8(e).ok()) else {
            return UNKNOWN.into();
        };
        if let Some(own) = self.own.get(&extension.to_ascii_lowercase()) {
            return own.clone();
        }
        match mime_guess::from_ext(extension).first_raw() {
            // RFC 9239, section 6, merged these types into one.
            Some("application/javascript") => "text/javascript; charset=utf-8".into(),
            Some(text) if text.starts_with("text/") => format!("{text}; charset=utf-8").into(),
            Some(other) => other.into(),
            None => UNKNOWN.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_by_name() {
        let own = [
            ("Foo", "application/x-foo"),
            (".txt", "text/plain; charset=latin1"),
        ];
        let own = own.map(|(extension, value)| (extension.into(), value.into()));
        let types = MediaTypes::new(&own.into());
        let table: [(&[u8], &str); 16] = [
            (b"index.html", "text/html; charset=utf-8"),
            (b"A.CSS", "text/css; charset=utf-8"),
            (b"a.js", "text/javascript; charset=utf-8"),
            (b"a.mjs", "text/javascript; charset=utf-8"),
            (b"a.json", "application/json"),
            (b"a.svg", "image/svg+xml"),
            (b"a.wasm", "application/wasm"),
            (b"a.woff2", "font/woff2"),
            (b"a.avif", "image/avif"),
            (b"a.tar.gz", "application/gzip"),
            (b"a.FOO", "application/x-foo"),
            (b"a.txt", "text/plain; charset=latin1"),
            (b"html", UNKNOWN),
            (b"a.", UNKNOWN),
            (b"a.nobody-knows", UNKNOWN),
            (b"a.\xff", UNKNOWN),
        ];
        for (name, expected) in table {
            assert_eq!(&*types.of(name), expected, "{}", name.escape_ascii());
        }
    }
}
