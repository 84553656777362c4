//! Rules that add header fields to responses by path.

use std::fmt;

/// Fields about the transfer of the message, or fields that the server determines itself. If an
/// operator set one of them, messages would be wrong, or clients would read one message as two.
const OWN_FIELDS: [&str; 15] = [
    "accept-ranges",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "etag",
    "keep-alive",
    "last-modified",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A rule that sets header fields in a response if the requested path matches a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRule {
    pattern: String,
    fields: Vec<(String, String)>,
}

impl FieldRule {
    /// Creates a rule for all paths that match a pattern. In a pattern, `*` stands for any sequence
    /// of characters, including slashes, and `?` for any single character. A field with an empty
    /// value is omitted from the response, even if an earlier rule has set that field.
    ///
    /// # Errors
    /// Returns an error if the pattern cannot match any path, if a name or a value is invalid, or
    /// if a field is one that the server sets itself.
    pub fn new(pattern: &str, fields: Vec<(String, String)>) -> Result<Self, FieldRuleError> {
        if !pattern.starts_with(['/', '*', '?']) {
            return Err(FieldRuleError::Pattern);
        }
        for (name, value) in &fields {
            check_field(name, value)?;
        }
        Ok(Self {
            pattern: pattern.into(),
            fields,
        })
    }

    /// Returns the pattern that was passed to [`new`](Self::new).
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Returns the fields that were passed to [`new`](Self::new).
    #[must_use]
    pub fn fields(&self) -> &[(String, String)] {
        &self.fields
    }
}

/// Returns the fields for a path, in the order in which rules first set them.
pub(super) fn fields<'a>(
    cache_control: Option<&'a str>,
    rules: &'a [FieldRule],
    path: &[u8],
) -> Vec<(&'a str, &'a str)> {
    let mut set: Vec<_> = cache_control
        .map(|value| ("Cache-Control", value))
        .into_iter()
        .collect();
    let matching = rules
        .iter()
        .filter(|rule| matches(rule.pattern.as_bytes(), path));
    for (name, value) in matching.flat_map(|rule| &rule.fields) {
        match set
            .iter_mut()
            .find(|(earlier, _)| earlier.eq_ignore_ascii_case(name))
        {
            Some(earlier) => *earlier = (name, value),
            None => set.push((name, value)),
        }
    }
    set.retain(|(_, value)| !value.is_empty());
    set
}

/// Returns whether a string matches, in at most (length of the pattern) × (length of the string)
/// steps: after a mismatch, only the last star can match more.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut pos) = (0, 0);
    let mut star = None;
    while pos < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, pos));
                at += 1;
            }
            Some(&c) if c == b'?' || c == text[pos] => (at, pos) = (at + 1, pos + 1),
            _ => match &mut star {
                Some((star, from)) => {
                    *from += 1;
                    (at, pos) = (*star + 1, *from);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&c| c == b'*')
}

/// Checks a field by RFC 9110, sections 5.1 and 5.5.
fn check_field(name: &str, value: &str) -> Result<(), FieldRuleError> {
    let token = |c: u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(FieldRuleError::Name(name.into()));
    }
    if OWN_FIELDS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Err(FieldRuleError::Own(name.into()));
    }
    let visible = |c: u8| matches!(c, b' '..=b'~' | b'\t' | 0x80..);
    if !value.bytes().all(visible) || value.trim() != value {
        return Err(FieldRuleError::Value(name.into()));
    }
    Ok(())
}

/// The reason why a rule is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldRuleError {
    /// The pattern cannot match any path, because paths begin with a slash.
    Pattern,
    /// The name is not a valid field name.
    Name(String),
    /// The server sets this field itself.
    Own(String),
    /// The value is not a valid field value.
    Value(String),
}

impl fmt::Display for FieldRuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern => f.write_str("expected a pattern that begins with `/` or `*`"),
            Self::Name(name) => write!(f, "expected the name of a header field, found {name:?}"),
            Self::Own(name) => write!(f, "`{name}` is set by the server itself"),
            Self::Value(name) => write!(
                f,
                "expected a value for `{name}` without control characters and spaces around it"
            ),
        }
    }
}

impl std::error::Error for FieldRuleError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(pattern: &str, fields: &[(&str, &str)]) -> Result<FieldRule, FieldRuleError> {
        let owned = |&(name, value): &(&str, &str)| (name.into(), value.into());
        FieldRule::new(pattern, fields.iter().map(owned).collect())
    }

    #[test]
    fn patterns_match_whole_paths() {
        let table = [
            ("/assets/*", "/assets/", true),
            ("/assets/*", "/assets/a/b.css", true),
            ("/assets/*", "/assets", false),
            ("/assets/*", "/x/assets/a", false),
            ("*.css", "/a/b.css", true),
            ("*.css", "/a/b.css.map", false),
            ("*.c?s", "/b.cs.cxs", true),
            ("/", "/", true),
            ("/", "/a", false),
            ("*", "/anything", true),
            ("/a*b*c", "/a-b-b-c-c", true),
            ("/a*b*c", "/a-c-b", false),
            ("/**", "/", true),
        ];
        for (pattern, path, expected) in table {
            let matched = matches(pattern.as_bytes(), path.as_bytes());
            assert_eq!(matched, expected, "{pattern} {path}");
        }
    }

    #[test]
    fn later_rules_replace_earlier_ones() {
        let rules = [
            rule("*", &[("X-A", "1"), ("X-B", "2"), ("X-C", "3")]),
            rule("/b/*", &[("x-a", "4"), ("X-B", "")]),
        ];
        let rules = rules.map(Result::unwrap);
        assert_eq!(
            fields(None, &rules, b"/"),
            [("X-A", "1"), ("X-B", "2"), ("X-C", "3")]
        );
        assert_eq!(fields(None, &rules, b"/b/c"), [("x-a", "4"), ("X-C", "3")]);
        let caching = [rule("/b", &[("cache-control", "no-store")]).unwrap()];
        assert_eq!(
            fields(Some("no-cache"), &caching, b"/"),
            [("Cache-Control", "no-cache")]
        );
        assert_eq!(
            fields(Some("no-cache"), &caching, b"/b"),
            [("cache-control", "no-store")]
        );
    }

    #[test]
    fn field_values_that_would_split_a_message_are_refused() {
        let table: [(&str, &str, Option<FieldRuleError>); 9] = [
            ("Cache-Control", "max-age=60", None),
            ("X-Name", "\u{fc}ber\tuns", None),
            ("X", "", None),
            ("", "x", Some(FieldRuleError::Name(String::new()))),
            ("X Y", "x", Some(FieldRuleError::Name("X Y".into()))),
            ("X:", "x", Some(FieldRuleError::Name("X:".into()))),
            ("X", "a\r\nb", Some(FieldRuleError::Value("X".into()))),
            ("X", " a", Some(FieldRuleError::Value("X".into()))),
            (
                "Content-Length",
                "5",
                Some(FieldRuleError::Own("Content-Length".into())),
            ),
        ];
        for (name, value, expected) in table {
            assert_eq!(
                rule("/*", &[(name, value)]).err(),
                expected,
                "{name:?}: {value:?}"
            );
        }
        assert_eq!(rule("assets/*", &[]), Err(FieldRuleError::Pattern));
    }
}
