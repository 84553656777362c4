//! The paths of requests, as decoded bytes.

/// A path that may be looked up beneath a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SitePath<'a> {
    /// The path without its leading slashes; empty for the root itself.
    relative: &'a [u8],
}

impl<'a> SitePath<'a> {
    /// Accepts a path that begins with a slash and has neither dot segments nor NUL. A parser
    /// produces no other paths, so `None` needs no reason.
    pub(super) fn new(path: &'a [u8]) -> Option<Self> {
        let relative = path.strip_prefix(b"/")?.trim_prefix_slashes();
        let odd = path.contains(&0) || segments(relative).any(|s| s == b"." || s == b"..");
        (!odd).then_some(Self { relative })
    }

    /// Returns the path for the kernel, relative to the root.
    pub(super) fn relative(self) -> &'a [u8] {
        if self.relative.is_empty() {
            b"."
        } else {
            self.relative
        }
    }

    /// Returns whether the path names a directory.
    pub(super) fn is_directory(self) -> bool {
        self.relative.is_empty() || self.relative.ends_with(b"/")
    }

    /// Returns whether a segment is hidden: it begins with a dot and is not `.well-known` (RFC
    /// 8615).
    pub(super) fn is_hidden(self) -> bool {
        segments(self.relative).any(is_hidden_name)
    }

    /// Returns whether the last segment has no dot, like a location in an application and unlike a
    /// file.
    pub(super) fn lacks_extension(self) -> bool {
        !name(self.relative).contains(&b'.')
    }

    /// Returns the path of a file in this directory.
    pub(super) fn child(self, name: &str) -> Vec<u8> {
        [self.relative, name.as_bytes()].concat()
    }

    /// Returns the address of this path with a final slash.
    pub(super) fn location(self) -> String {
        let mut location = String::from("/");
        percent_encode(self.relative, true, &mut location);
        location.push('/');
        location
    }
}

/// Returns whether a directory entry is hidden.
pub(super) fn is_hidden_name(name: &[u8]) -> bool {
    name.starts_with(b".") && name != b".well-known"
}

/// Returns whether a request can name a directory entry: no path contains a control character or a
/// backslash ([`target::path`](tussah_wire::http::target::path)).
pub(super) fn can_be_asked_for(name: &[u8]) -> bool {
    !name
        .iter()
        .any(|byte| byte.is_ascii_control() || *byte == b'\\')
}

/// Returns the last segment.
pub(super) fn name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// Encodes all bytes except the unreserved bytes (RFC 3986, section 2.3) and, in a path, slashes.
pub(crate) fn percent_encode(bytes: &[u8], in_path: bool, out: &mut String) {
    for &byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(byte.into());
            }
            b'/' if in_path => out.push('/'),
            _ => {
                const HEX: &[u8; 16] = b"0123456789ABCDEF";
                out.push('%');
                out.push(HEX[usize::from(byte >> 4)].into());
                out.push(HEX[usize::from(byte & 15)].into());
            }
        }
    }
}

fn segments(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/')
}

/// Methods that the standard library provides only for strings.
trait TrimSlashes {
    fn trim_prefix_slashes(&self) -> &Self;
}

impl TrimSlashes for [u8] {
    fn trim_prefix_slashes(&self) -> &Self {
        let slashes = self.iter().take_while(|&&byte| byte == b'/').count();
        &self[slashes..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_without_dot_segments_are_taken() {
        let table = [
            ("/", Some(".")),
            ("/a/b", Some("a/b")),
            ("/a/b/", Some("a/b/")),
            ("//a//b", Some("a//b")),
            ("/...", Some("...")),
            ("/..a/b..", Some("..a/b..")),
            ("", None),
            ("a", None),
            ("/..", None),
            ("/a/../b", None),
            ("/a/..", None),
            ("/./a", None),
            ("//..", None),
            ("/a\0b", None),
        ];
        for (path, expected) in table {
            let relative = SitePath::new(path.as_bytes()).map(SitePath::relative);
            assert_eq!(relative, expected.map(str::as_bytes), "{path:?}");
        }
    }

    #[test]
    fn locations_stay_on_this_host() {
        let table = [
            ("/a", "/a/"),
            ("//evil.example", "/evil.example/"),
            ("///evil.example/a", "/evil.example/a/"),
            ("/a b/\u{fc}?#", "/a%20b/%C3%BC%3F%23/"),
            ("/\\evil.example", "/%5Cevil.example/"),
            ("/\r\nX: y", "/%0D%0AX%3A%20y/"),
        ];
        for (path, expected) in table {
            let path = SitePath::new(path.as_bytes()).expect("a path");
            assert_eq!(path.location(), expected);
        }
    }

    #[test]
    fn a_slash_stays_only_in_a_path() {
        let check = |in_path, expected: &str| {
            let mut encoded = String::new();
            percent_encode("a-b_c.d~1 ä/%".as_bytes(), in_path, &mut encoded);
            assert_eq!(encoded, expected);
        };
        check(true, "a-b_c.d~1%20%C3%A4/%25");
        check(false, "a-b_c.d~1%20%C3%A4%2F%25");
    }

    #[test]
    fn hidden_paths_and_paths_without_an_extension() {
        let table = [
            ("/a/b", false, true),
            ("/a.b/c", false, true),
            ("/a/b.c", false, false),
            ("/a/", false, true),
            ("/", false, true),
            ("/.git/config", true, true),
            ("/a/.env", true, false),
            ("/.well-known/acme-challenge/x", false, true),
            ("/.well-known/.x/y", true, true),
            ("/.well-knownx", true, false),
        ];
        for (path, hidden, place) in table {
            let parsed = SitePath::new(path.as_bytes()).expect("a path");
            assert_eq!(
                (parsed.is_hidden(), parsed.lacks_extension()),
                (hidden, place),
                "{path}"
            );
        }
    }
}
