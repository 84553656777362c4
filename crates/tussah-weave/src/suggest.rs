//! Suggestions of known names for a misspelled name.

/// The maximum length of a name for which one is suggested, in bytes. No one misspells a longer
/// name, and comparing takes quadratic time.
const NAME_LEN_MAX: usize = 64;
/// The maximum number of names that are compared. A file with more names was not written by hand.
const COMPARED_MAX: usize = 1000;

/// Returns the known name that is most similar to a misspelt one, if any is similar.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > NAME_LEN_MAX {
        return None;
    }
    let changes_max = (name.len() / 3).max(1);
    // Names that differ more in their lengths cannot be near.
    let near = known
        .into_iter()
        .filter(|known| known.len().abs_diff(name.len()) <= changes_max)
        .take(COMPARED_MAX);
    near.map(|known| {
        let (lower, other) = (name.to_lowercase(), known.to_lowercase());
        (strsim::damerau_levenshtein(&lower, &other), known)
    })
    .filter(|&(changes, _)| changes <= changes_max)
    .min_by_key(|&(changes, _)| changes)
    .map(|(_, known)| known)
}

/// Returns a hint that suggests the most similar known name. If no known name is similar, the hint
/// lists all known names. Returns `None` if there are no known names, or if none is similar and the
/// list would be too long.
///
/// # Examples
/// ```
/// use tussah_weave::suggest::help;
///
/// assert_eq!(help("repyl", ["read", "reply"]).as_deref(), Some("did you mean `reply`?"));
/// assert_eq!(help("x", ["read", "reply"]).as_deref(), Some("known: `read`, `reply`"));
/// ```
pub fn help<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let mut known: Vec<&str> = known.into_iter().collect();
    known.sort_unstable();
    known.dedup();
    match nearest(name, known.iter().copied()) {
        Some(near) => Some(format!("did you mean `{near}`?")),
        None if known.is_empty() || known.len() > LISTED_MAX => None,
        None => Some(format!("known: {}", list(known))),
    }
}

/// Bound, in names: the maximum number that an error lists as known; a longer list does not help.
const LISTED_MAX: usize = 12;

/// Returns the names with backticks, separated by commas.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_near_if_a_third_of_it_differs() {
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(
                nearest(name, ["reply", "read", "requests"]),
                expected,
                "{name}"
            );
        };
        check("repyl", Some("reply"));
        check("raed", Some("read"));
        check("Requests", Some("requests"));
        check("pages", None);
        check(&"r".repeat(100), None);
    }

    #[test]
    fn a_name_is_compared_with_a_thousand_names_of_its_length() {
        let far = ["abcde"].into_iter().cycle();
        let check = |before: usize, expected: Option<&str>| {
            let known = far.clone().take(before).chain(["reply"]);
            assert_eq!(nearest("repyl", known), expected, "{before}");
        };
        check(999, Some("reply"));
        check(1000, None);
        // Names that are much longer are not compared.
        let known = ["r".repeat(64)];
        let long = known.iter().map(String::as_str).cycle().take(5000);
        assert_eq!(nearest("repyl", long.chain(["reply"])), Some("reply"));
    }
}
