//! The rule that a file's first line says what the file is.

use super::Finding;
use super::source::Source;

pub(super) fn check(source: &Source) -> Option<Finding> {
    let first = source.text.lines().next().unwrap_or_default();
    let says = first
        .strip_prefix("//!")
        .is_some_and(|rest| !rest.trim().is_empty());
    (!says).then(|| {
        let what = "does not say what the file is, expected a first line `//! ...`";
        Finding::new(source.path.as_str(), 1, what)
    })
}

#[cfg(test)]
mod tests {
    use super::super::source::Tree;
    use super::*;

    #[test]
    fn the_first_line_has_to_be_documentation() {
        let found = |text: &str| check(&Tree::of(&[("a.rs", text)]).files[0]).is_some();
        assert!(!found("//! A file.\n"));
        assert!(found(""));
        assert!(found("//!\n"));
        assert!(found("\n//! A file.\n"));
        assert!(found("// A file.\n"));
        assert!(found("#![allow(dead_code)]\n"));
    }
}
