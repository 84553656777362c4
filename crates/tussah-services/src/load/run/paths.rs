//! A list of paths to request, each with a weight.

/// Bound, in characters: the maximum length of the part of a wrong line that an error shows.
const SHOWN_MAX: usize = 80;

/// The paths of a list.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::load) struct Paths {
    pub(in crate::load) paths: Vec<String>,
    /// The weight of each path, more than 0.
    pub(in crate::load) weights: Vec<f64>,
}

impl Paths {
    /// Parses a list: in each line a path that begins with `/`, after an optional weight and a
    /// space. The default weight is 1. Empty lines and lines that begin with `#` are skipped, and
    /// so is a byte order mark. Comments may have any encoding.
    ///
    /// # Errors
    /// Returns a sentence that names the line, and states what was expected.
    pub(in crate::load) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut sum = 0.0;
        let mut list = Self {
            paths: Vec::new(),
            weights: Vec::new(),
        };
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (weight, path) = match line.split_once([' ', '\t']) {
                Some((weight, path)) => (weight.parse().ok(), path.trim_start()),
                None => (Some(1.0), line),
            };
            // A client never sends a fragment.
            let is_sent = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
            let is_path = path.starts_with('/') && path.bytes().all(is_sent);
            match weight.filter(|weight: &f64| weight.is_finite() && *weight > 0.0) {
                Some(weight) if is_path => {
                    list.paths.push(path.to_owned());
                    list.weights.push(weight);
                    sum += weight;
                }
                _ => {
                    let shown = line.chars().take(SHOWN_MAX);
                    let shown: String = shown.flat_map(char::escape_debug).collect();
                    return Err(format!(
                        "line {}: expected a path such as `/a?b=c`, or a weight above 0 and a path \
                         such as `0.5 /a`, not `{shown}`",
                        at + 1
                    ));
                }
            }
            if sum == f64::INFINITY {
                return Err(format!(
                    "line {}: the sum of the weights is too large, expected at most 1e308",
                    at + 1
                ));
            }
        }
        if list.paths.is_empty() {
            return Err("expected at least one line with a path".to_owned());
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_and_without_weights() {
        let list = Paths::parse(b"# a mix\n/a?b\n\n2.5 /c\n\t3\t /d\n").expect("a list");
        assert_eq!(list.paths, ["/a?b", "/c", "/d"]);
        assert_eq!(list.weights, [1.0, 2.5, 3.0]);
        // As some editors write it, and with a comment in Latin-1.
        let list = Paths::parse(b"\xef\xbb\xbf2 /a\r\n# \xe4\r\n/b").expect("a list");
        assert_eq!(
            (list.paths, list.weights),
            (vec!["/a".to_owned(), "/b".to_owned()], vec![2.0, 1.0])
        );
    }

    #[test]
    fn wrong_lines_are_named() {
        let wrong = |text: &[u8]| Paths::parse(text).expect_err("it is wrong");
        let check = |line: &[u8], shown: &str| {
            let error = wrong(&[b"/good\n", line, b"\n"].concat());
            assert!(error.starts_with("line 2: "), "{shown}: {error}");
            assert!(error.ends_with(&format!("`{shown}`")), "{error}");
        };
        for line in [
            "a", "0 /a", "-1 /a", "inf /a", "nan /a", "x /a", "2 a", "/a b", "/ä", "/a#b",
        ] {
            check(line.as_bytes(), line);
        }
        check(b"/a\x1b[31m", "/a\\u{1b}[31m");
        check(b"/\xe4", "/\u{fffd}");
        check(&[b'a'; 1000], &"a".repeat(SHOWN_MAX));
        assert!(wrong(b"# nothing\n").contains("at least one line"));
        let error = wrong(b"1e308 /a\n1e308 /b\n/c\n");
        assert!(
            error.starts_with("line 2: the sum of the weights"),
            "{error}"
        );
    }
}
